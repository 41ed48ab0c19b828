//! Converts schemas and function signatures of protocol 5 to protocol 6. Attributes of protocol 5 have no nested attribute types.

use proto::{tfplugin5 as v5, tfplugin6 as v6};

/// Converts a schema to protocol 6.
#[must_use]
pub fn schema(schema: v5::Schema) -> v6::Schema {
    v6::Schema {
        version: schema.version,
        block: schema.block.map(block),
    }
}

// The recursion is bounded, because prost refuses messages that are nested more than a hundred levels deep.
fn block(block: v5::schema::Block) -> v6::schema::Block {
    v6::schema::Block {
        version: block.version,
        attributes: block.attributes.into_iter().map(attribute).collect(),
        block_types: block.block_types.into_iter().map(nested_block).collect(),
        description: block.description,
        description_kind: block.description_kind,
        deprecated: block.deprecated,
        deprecation_message: block.deprecation_message,
        // Computed blocks and nested attribute types exist in protocol 6 only.
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

/// Converts the signature of a function to protocol 6.
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

/// Converts a diagnostic to protocol 6.
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
