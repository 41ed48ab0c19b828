//! Checks a configuration against the rules of its schema.

use cty::{Path, Step, Value};

use crate::diag::{Diagnostic, Diagnostics, Severity};
use crate::model::Model;
use crate::model_error::UNREADABLE;
use crate::schema::{Compiled, CompiledMember, Nesting};
use crate::validate::{Check, is_absent};

/// Runs a plugin's own rules for whole models. A model that cannot represent an unknown part (blocks as a plain `Vec`, whose
/// number is unknown) is not checked until the part is known.
pub(crate) fn own_rules<M: Model>(config: &Value, rules: impl FnOnce(&M) -> Diagnostics) -> Diagnostics {
    match M::from_cty(config) {
        Ok(model) => rules(&model),
        // The configuration is validated again when it is known.
        Err(error) if error.unknown => Diagnostics::new(),
        Err(error) => error.of_configuration(),
    }
}

/// Adds the findings of a plugin's own rules to those of the schema's rules. A value that does not fit its Rust type is reported
/// once.
pub(crate) fn with_own_rules(mut found: Diagnostics, own: Diagnostics) -> Diagnostics {
    let reported = |own: &Diagnostic| {
        own.summary == UNREADABLE
            && (found.0.iter()).any(|d| d.severity == Severity::Error && d.attribute == own.attribute)
    };
    let (_, new): (Vec<_>, Vec<_>) = own.0.into_iter().partition(reported);
    found.0.extend(new);
    found
}

/// Checks a configuration against every rule of its schema, and warns of deprecated attributes.
pub(crate) fn against_schema(schema: &Compiled, config: &Value, write_only_allowed: bool) -> Diagnostics {
    let mut out = Diagnostics::new();
    if let Some(advice) = schema.deprecated {
        out.push(Diagnostic::warning("Deprecated", advice));
    }
    check_block(
        &schema.members,
        config,
        config,
        &Path::root(),
        write_only_allowed,
        &mut out,
    );
    for group in &schema.at_least_one_of {
        let members: Vec<&Value> = group.iter().filter_map(|name| config.get(name)).collect();
        // An unknown value may turn out to be set.
        if members.iter().all(|v| v.is_known() && is_absent(v)) {
            out.push(Diagnostic::error(
                "Missing Attribute Configuration",
                format!(
                    "At least one of these attributes must be configured: [{}]",
                    group.join(",")
                ),
            ));
        }
    }
    for group in &schema.groups {
        group.check(config, &mut out);
    }
    out
}

fn check_block(
    members: &[CompiledMember],
    block: &Value,
    config: &Value,
    path: &Path,
    write_only_allowed: bool,
    out: &mut Diagnostics,
) {
    for member in members {
        let (name, validators) = (member.name(), member.validators());
        let Some(value) = block.get(name) else { continue };
        for validator in validators {
            validator.run_into(
                Check {
                    path: path.attribute(name),
                    value,
                    block,
                    config,
                    write_only_allowed,
                },
                out,
            );
        }
        if let Some(a) = member.attribute() {
            if !a.rules.is_empty() {
                a.rules.check(&path.attribute(name), value, out);
            }
            if a.required && value.is_null() {
                out.push(missing(name).at(path.attribute(name)));
            }
            // The host sends null for a computed attribute, so any other value was set by the user.
            if a.computed && !a.optional && !value.is_null() {
                out.push(read_only(name).at(path.attribute(name)));
            }
            if a.write_only && !write_only_allowed && !value.is_null() {
                out.push(
                    Diagnostic::error(
                        "WriteOnly Attribute Not Allowed",
                        format!(
                            "The attribute {name} is never stored, which the program that runs this plugin does not \
                                 support. Write-only attributes need Terraform 1.11 or later."
                        ),
                    )
                    .at(path.attribute(name)),
                );
            }
            if let Some(advice) = a.deprecated
                && value.is_present()
            {
                out.push(Diagnostic::warning("Attribute Deprecated", advice).at(path.attribute(name)));
            }
        }
        if let Some((nesting, members)) = member.inside() {
            let path = path.attribute(name);
            let mut check =
                |item: &Value, path: &Path| check_block(members, item, config, path, write_only_allowed, out);
            match nesting {
                Nesting::Single | Nesting::Group if value.is_present() => check(value, &path),
                Nesting::Single | Nesting::Group => {}
                Nesting::List => {
                    for (i, item) in value.as_seq().unwrap_or_default().iter().enumerate() {
                        check(item, &path.with(Step::Index(Value::number(i as i64))));
                    }
                }
                Nesting::Set => {
                    for item in value.as_seq().unwrap_or_default() {
                        check(item, &path.with(Step::Index(item.clone())));
                    }
                }
                Nesting::Map => {
                    for (key, item) in value.entries().into_iter().flatten() {
                        check(item, &path.with(Step::Index(Value::shared_string(key.clone()))));
                    }
                }
            }
        }
    }
}

fn missing(name: &str) -> Diagnostic {
    let detail = format!("The attribute {name} is required: give it a value that is not null.");
    Diagnostic::error("Missing Configuration for Required Attribute", detail)
}

fn read_only(name: &str) -> Diagnostic {
    let detail = format!("The attribute {name} is a result and cannot be set. Remove it from the configuration.");
    Diagnostic::error("Invalid Configuration for Read-Only Attribute", detail)
}
