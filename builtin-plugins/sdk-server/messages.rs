//! Conversions between the SDK's types and the messages of the protocol. Only two kinds of messages need conversions for a specific
//! version: schemas, which differ between the versions, and provisioners, which only version 5 has. One macro defines these for both
//! versions. All other conversions use the messages of version 6: see [`crate::provider`].

/// Conversions to and from the messages of one version of the protocol.
macro_rules! messages {
    ($pb:path, $($nested:item)*) => {
        use monoform_sdk::cty::{self, Path, Type};
        pub(crate) use $pb as pb;
        use monoform_sdk::guard::reported;
        use monoform_sdk::schema::{Attribute, Block, NestedBlock, Nesting, Schema, Text};
        use monoform_sdk::wire::Wire;
        use monoform_sdk::{Diagnostic, Diagnostics, Function, Parameter, Severity};

        pub(crate) fn wire(value: Option<pb::DynamicValue>) -> Wire {
            value
                .map(|v| Wire {
                    msgpack: v.msgpack,
                    json: v.json,
                })
                .unwrap_or_default()
        }

        pub(crate) fn diagnostics(list: Diagnostics) -> Vec<pb::Diagnostic> {
            reported(list).0.into_iter().map(diagnostic).collect()
        }

        fn diagnostic(d: Diagnostic) -> pb::Diagnostic {
            let severity = match d.severity {
                Severity::Error => pb::diagnostic::Severity::Error,
                Severity::Warning => pb::diagnostic::Severity::Warning,
            };
            pb::Diagnostic {
                severity: severity.into(),
                summary: d.summary,
                detail: d.detail,
                attribute: d.attribute.filter(|p| !p.0.is_empty()).map(|p| path(&p)),
            }
        }

        /// Converts a path. The result ends before a step that the protocol cannot represent, such as an element of a set.
        pub(crate) fn path(path: &Path) -> pb::AttributePath {
            use pb::attribute_path::step::Selector;
            let steps = path.0.iter().map_while(|step| {
                let selector = match step {
                    cty::Step::Attribute(name) => Selector::AttributeName(name.to_string()),
                    cty::Step::Index(key) => match (key.as_str(), key.as_number().and_then(|n| n.to_i64())) {
                        (Some(text), _) => Selector::ElementKeyString(text.to_owned()),
                        (_, Some(number)) => Selector::ElementKeyInt(number),
                        _ => return None,
                    },
                };
                Some(pb::attribute_path::Step {
                    selector: Some(selector),
                })
            });
            pb::AttributePath {
                steps: steps.collect(),
            }
        }

        pub(crate) fn type_bytes(ty: &Type) -> Vec<u8> {
            cty::json::type_text(ty).into_bytes()
        }

        pub(crate) fn schema(schema: &Schema) -> pb::Schema {
            pb::Schema {
                version: schema.version,
                block: Some(block(&schema.root, schema.version)),
            }
        }

        /// Returns the markup of a description. An empty description counts as plain text.
        fn kind(text: Text, description: &str) -> i32 {
            match text {
                Text::Markdown if !description.is_empty() => pb::StringKind::Markdown.into(),
                _ => pb::StringKind::Plain.into(),
            }
        }

        #[allow(clippy::needless_update, reason = "protocol 6 has fields here that protocol 5 has not")]
        fn block(b: &Block, version: i64) -> pb::schema::Block {
            pb::schema::Block {
                version,
                attributes: b.attributes.iter().map(attribute).collect(),
                block_types: b.blocks.iter().map(nested_block).collect(),
                description: b.description.clone(),
                description_kind: kind(b.text, &b.description),
                deprecated: b.deprecated.is_some(),
                deprecation_message: b.deprecated.unwrap_or_default().to_owned(),
                ..Default::default()
            }
        }

        #[allow(clippy::needless_update, reason = "protocol 6 has fields here that protocol 5 has not")]
        fn attribute(a: &Attribute) -> pb::schema::Attribute {
            with_nested(a, pb::schema::Attribute {
                name: a.name.to_owned(),
                r#type: type_bytes(&a.ty),
                description: a.description.clone(),
                description_kind: kind(a.text, &a.description),
                required: a.required,
                optional: a.optional,
                computed: a.computed,
                sensitive: a.sensitive,
                deprecated: a.deprecated.is_some(),
                write_only: a.write_only,
                deprecation_message: a.deprecated.unwrap_or_default().to_owned(),
                ..Default::default()
            })
        }

        $($nested)*

        fn nested_block(b: &NestedBlock) -> pb::schema::NestedBlock {
            use pb::schema::nested_block::NestingMode;
            let nesting = match b.nesting {
                Nesting::Single => NestingMode::Single,
                Nesting::List => NestingMode::List,
                Nesting::Set => NestingMode::Set,
                Nesting::Map => NestingMode::Map,
                Nesting::Group => NestingMode::Group,
            };
            pb::schema::NestedBlock {
                type_name: b.name.to_owned(),
                block: Some(with_computed(b, block(&b.block, 0))),
                nesting: nesting.into(),
                min_items: b.min_items.into(),
                max_items: b.max_items.into(),
            }
        }

        pub(crate) fn function(f: &Function) -> pb::Function {
            let parameter = |p| parameter(p, f.text);
            pb::Function {
                parameters: f.parameters.iter().map(parameter).collect(),
                variadic_parameter: f.variadic.as_ref().map(parameter),
                r#return: Some(pb::function::Return {
                    r#type: type_bytes(&f.returns),
                }),
                summary: f.summary.to_owned(),
                description: f.description.to_owned(),
                description_kind: kind(f.text, f.description),
                ..Default::default()
            }
        }

        fn parameter(p: &Parameter, text: Text) -> pb::function::Parameter {
            pb::function::Parameter {
                name: p.name.to_owned(),
                r#type: type_bytes(&p.ty),
                allow_null_value: p.allow_null,
                allow_unknown_values: p.allow_unknown,
                description: p.description.to_owned(),
                description_kind: kind(text, p.description),
            }
        }
    };
}

/// Conversions to and from the messages of protocol 5.
pub(crate) mod v5 {
    messages! {
        proto::tfplugin5,
        /// Returns the message unchanged: a provider with nested attributes is not served in protocol 5.
        fn with_nested(_: &Attribute, message: pb::schema::Attribute) -> pb::schema::Attribute {
            message
        }

        /// Returns the message unchanged: a provider with computed blocks is not served in protocol 5.
        fn with_computed(_: &NestedBlock, message: pb::schema::Block) -> pb::schema::Block {
            message
        }
    }
}

/// Conversions to and from the messages of protocol 6.
pub(crate) mod v6 {
    use monoform_sdk::Deferral;
    use monoform_sdk::wire::RawState;

    messages! {
        proto::tfplugin6,
        /// Replaces the type of an attribute by its nested schema, if it has one.
        fn with_nested(a: &Attribute, mut message: pb::schema::Attribute) -> pb::schema::Attribute {
            use pb::schema::object::NestingMode;
            if let Some(nested) = &a.nested {
                let nesting = match nested.nesting {
                    // Unlike blocks, attributes have no group mode in the protocol.
                    Nesting::Single | Nesting::Group => NestingMode::Single,
                    Nesting::List => NestingMode::List,
                    Nesting::Set => NestingMode::Set,
                    Nesting::Map => NestingMode::Map,
                };
                message.r#type.clear();
                message.nested_type = Some(pb::schema::Object {
                    attributes: nested.block.attributes.iter().map(attribute).collect(),
                    nesting: nesting.into(),
                    ..Default::default()
                });
            }
            message
        }

        fn with_computed(b: &NestedBlock, mut message: pb::schema::Block) -> pb::schema::Block {
            message.computed = b.computed;
            message
        }
    }

    pub(crate) fn dynamic(wire: Wire) -> pb::DynamicValue {
        pb::DynamicValue {
            msgpack: wire.msgpack,
            json: wire.json,
        }
    }

    pub(crate) fn raw_state(state: Option<pb::RawState>) -> RawState {
        let state = state.unwrap_or_default();
        RawState {
            // Terraform before 0.12 wrote states as a flat map of strings.
            is_flat: state.json.is_empty() && !state.flatmap.is_empty(),
            json: state.json,
        }
    }

    pub(crate) fn deferred(why: Option<Deferral>) -> Option<pb::Deferred> {
        use pb::deferred::Reason;
        let reason = |why| match why {
            Deferral::ResourceConfigUnknown => Reason::ResourceConfigUnknown,
            Deferral::ProviderConfigUnknown => Reason::ProviderConfigUnknown,
            Deferral::AbsentPrerequisite => Reason::AbsentPrereq,
        };
        why.map(|why| pb::Deferred {
            reason: reason(why).into(),
        })
    }

    pub(crate) fn deferral_allowed(capabilities: Option<&pb::ClientCapabilities>) -> bool {
        capabilities.is_some_and(|c| c.deferral_allowed)
    }
}
