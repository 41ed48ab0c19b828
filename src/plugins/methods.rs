//! gRPC paths of the requests in both protocols, which differ in the names of six.

/// gRPC paths of a protocol's requests: `/package.Service/Method`.
pub struct Methods {
    pub version: u32,
    /// The schemas of the provider.
    pub get_schema: &'static str,
    /// Validation of the provider's configuration.
    pub validate_provider: &'static str,
    /// Validation of a resource's configuration.
    pub validate_resource: &'static str,
    /// Check of a data source's configuration.
    pub validate_data: &'static str,
    /// Check of an ephemeral resource's configuration.
    pub validate_ephemeral: &'static str,
    /// Upgrade of a stored object to the current schema.
    pub upgrade: &'static str,
    /// The schemas of identities.
    pub identity_schemas: &'static str,
    /// Upgrade of a stored identity to the current schema.
    pub upgrade_identity: &'static str,
    /// Generation of the configuration for an object.
    pub generate_config: &'static str,
    /// Check of a list resource's configuration.
    pub validate_list: &'static str,
    /// Listing of the existing objects of a type.
    pub list: &'static str,
    /// Configuration of the provider.
    pub configure: &'static str,
    /// Refresh of a resource's object.
    pub read: &'static str,
    /// Plan of a change of a resource's object.
    pub plan: &'static str,
    /// Application of a planned change.
    pub apply: &'static str,
    /// Import by id or identity.
    pub import: &'static str,
    /// Conversion of an object of another type to a type of this provider.
    pub move_state: &'static str,
    pub read_data: &'static str,
    pub open_ephemeral: &'static str,
    pub renew_ephemeral: &'static str,
    pub close_ephemeral: &'static str,
    pub get_functions: &'static str,
    pub call_function: &'static str,
    pub validate_action: &'static str,
    pub plan_action: &'static str,
    pub invoke_action: &'static str,
    /// Request to end all running operations early.
    pub stop: &'static str,
}

impl Methods {
    /// Returns the paths of a protocol: 5 or 6, since the handshake accepts no other.
    #[must_use]
    pub fn for_protocol(protocol: u32) -> &'static Methods {
        if protocol == 5 { &V5 } else { &V6 }
    }
}

const V5: Methods = Methods {
    version: 5,
    get_schema: "/tfplugin5.Provider/GetSchema",
    validate_provider: "/tfplugin5.Provider/PrepareProviderConfig",
    validate_resource: "/tfplugin5.Provider/ValidateResourceTypeConfig",
    validate_data: "/tfplugin5.Provider/ValidateDataSourceConfig",
    validate_ephemeral: "/tfplugin5.Provider/ValidateEphemeralResourceConfig",
    upgrade: "/tfplugin5.Provider/UpgradeResourceState",
    identity_schemas: "/tfplugin5.Provider/GetResourceIdentitySchemas",
    upgrade_identity: "/tfplugin5.Provider/UpgradeResourceIdentity",
    generate_config: "/tfplugin5.Provider/GenerateResourceConfig",
    validate_list: "/tfplugin5.Provider/ValidateListResourceConfig",
    list: "/tfplugin5.Provider/ListResource",
    configure: "/tfplugin5.Provider/Configure",
    read: "/tfplugin5.Provider/ReadResource",
    plan: "/tfplugin5.Provider/PlanResourceChange",
    apply: "/tfplugin5.Provider/ApplyResourceChange",
    import: "/tfplugin5.Provider/ImportResourceState",
    move_state: "/tfplugin5.Provider/MoveResourceState",
    read_data: "/tfplugin5.Provider/ReadDataSource",
    open_ephemeral: "/tfplugin5.Provider/OpenEphemeralResource",
    renew_ephemeral: "/tfplugin5.Provider/RenewEphemeralResource",
    close_ephemeral: "/tfplugin5.Provider/CloseEphemeralResource",
    get_functions: "/tfplugin5.Provider/GetFunctions",
    call_function: "/tfplugin5.Provider/CallFunction",
    validate_action: "/tfplugin5.Provider/ValidateActionConfig",
    plan_action: "/tfplugin5.Provider/PlanAction",
    invoke_action: "/tfplugin5.Provider/InvokeAction",
    stop: "/tfplugin5.Provider/Stop",
};

const V6: Methods = Methods {
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
    get_functions: "/tfplugin6.Provider/GetFunctions",
    call_function: "/tfplugin6.Provider/CallFunction",
    validate_action: "/tfplugin6.Provider/ValidateActionConfig",
    plan_action: "/tfplugin6.Provider/PlanAction",
    invoke_action: "/tfplugin6.Provider/InvokeAction",
    stop: "/tfplugin6.Provider/StopProvider",
};
