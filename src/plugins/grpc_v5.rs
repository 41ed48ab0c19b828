//! Protocol 5: other names for six requests, and attributes without nested schemas.

use proto::{tfplugin5 as v5, tfplugin6 as v6};

use crate::grpc::Methods;

/// The requests of protocol 5.
pub const METHODS: Methods = Methods {
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
    call_function: "/tfplugin5.Provider/CallFunction",
    validate_action: "/tfplugin5.Provider/ValidateActionConfig",
    plan_action: "/tfplugin5.Provider/PlanAction",
    invoke_action: "/tfplugin5.Provider/InvokeAction",
    stop: "/tfplugin5.Provider/Stop",
};

/// A schema in the form of protocol 6.
#[must_use]
pub fn schema(schema: v5::Schema) -> v6::Schema {
    v6::Schema {
        version: schema.version,
        block: schema.block.map(block),
    }
}

// Recursion is bounded: messages nested more than a hundred deep are refused while decoding.
fn block(block: v5::schema::Block) -> v6::schema::Block {
    v6::schema::Block {
        version: block.version,
        attributes: block.attributes.into_iter().map(attribute).collect(),
        block_types: block.block_types.into_iter().map(nested_block).collect(),
        description: block.description,
        description_kind: block.description_kind,
        deprecated: block.deprecated,
        deprecation_message: block.deprecation_message,
        computed: false,
    }
}

fn nested_block(nested: v5::schema::NestedBlock) -> v6::schema::NestedBlock {
    v6::schema::NestedBlock {
        type_name: nested.type_name,
        block: nested.block.map(block),
        nesting: nested.nesting,
        min_items: nested.min_items,
        max_items: nested.max_items,
    }
}

fn attribute(a: v5::schema::Attribute) -> v6::schema::Attribute {
    v6::schema::Attribute {
        name: a.name,
        r#type: a.r#type,
        description: a.description,
        required: a.required,
        optional: a.optional,
        computed: a.computed,
        sensitive: a.sensitive,
        description_kind: a.description_kind,
        deprecated: a.deprecated,
        nested_type: None,
        write_only: a.write_only,
        deprecation_message: a.deprecation_message,
    }
}

/// The signature of a function in the form of protocol 6.
#[must_use]
pub fn function(f: v5::Function) -> v6::Function {
    let parameter = |p: v5::function::Parameter| v6::function::Parameter {
        name: p.name,
        r#type: p.r#type,
        allow_null_value: p.allow_null_value,
        allow_unknown_values: p.allow_unknown_values,
        description: p.description,
        description_kind: p.description_kind,
    };
    v6::Function {
        parameters: f.parameters.into_iter().map(parameter).collect(),
        variadic_parameter: f.variadic_parameter.map(parameter),
        r#return: f.r#return.map(|r| v6::function::Return { r#type: r.r#type }),
        summary: f.summary,
        description: f.description,
        description_kind: f.description_kind,
        deprecation_message: f.deprecation_message,
    }
}

/// A problem in the form of protocol 6.
#[must_use]
pub fn diagnostic(d: v5::Diagnostic) -> v6::Diagnostic {
    use v5::attribute_path::step::Selector as S5;
    use v6::attribute_path::step::Selector as S6;
    let step = |s: v5::attribute_path::Step| v6::attribute_path::Step {
        selector: s.selector.map(|selector| match selector {
            S5::AttributeName(name) => S6::AttributeName(name),
            S5::ElementKeyString(key) => S6::ElementKeyString(key),
            S5::ElementKeyInt(key) => S6::ElementKeyInt(key),
        }),
    };
    v6::Diagnostic {
        severity: d.severity,
        summary: d.summary,
        detail: d.detail,
        attribute: d.attribute.map(|path| v6::AttributePath {
            steps: path.steps.into_iter().map(step).collect(),
        }),
    }
}
