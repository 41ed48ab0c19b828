//! Protocol 6: the paths of its requests.

use crate::grpc::Methods;

/// Paths of the requests of protocol 6.
pub const METHODS: Methods = Methods {
    version: 6,
    get_schema: "/tfplugin6.Provider/GetProviderSchema",
    validate_provider: "/tfplugin6.Provider/ValidateProviderConfig",
    validate_resource: "/tfplugin6.Provider/ValidateResourceConfig",
    validate_data: "/tfplugin6.Provider/ValidateDataResourceConfig",
    validate_ephemeral: "/tfplugin6.Provider/ValidateEphemeralResourceConfig",
    upgrade: "/tfplugin6.Provider/UpgradeResourceState",
    identity_schemas: "/tfplugin6.Provider/GetResourceIdentitySchemas",
    upgrade_identity: "/tfplugin6.Provider/UpgradeResourceIdentity",
    generate_config: "/tfplugin6.Provider/GenerateResourceConfig",
    validate_list: "/tfplugin6.Provider/ValidateListResourceConfig",
    list: "/tfplugin6.Provider/ListResource",
    configure: "/tfplugin6.Provider/ConfigureProvider",
    read: "/tfplugin6.Provider/ReadResource",
    plan: "/tfplugin6.Provider/PlanResourceChange",
    apply: "/tfplugin6.Provider/ApplyResourceChange",
    import: "/tfplugin6.Provider/ImportResourceState",
    move_state: "/tfplugin6.Provider/MoveResourceState",
    read_data: "/tfplugin6.Provider/ReadDataSource",
    open_ephemeral: "/tfplugin6.Provider/OpenEphemeralResource",
    renew_ephemeral: "/tfplugin6.Provider/RenewEphemeralResource",
    close_ephemeral: "/tfplugin6.Provider/CloseEphemeralResource",
    call_function: "/tfplugin6.Provider/CallFunction",
    validate_action: "/tfplugin6.Provider/ValidateActionConfig",
    plan_action: "/tfplugin6.Provider/PlanAction",
    invoke_action: "/tfplugin6.Provider/InvokeAction",
    stop: "/tfplugin6.Provider/StopProvider",
};
