//! A state, as people read it.

use engine::providers::Schemas;
use state::{Object, State};

use crate::ui::Style;
use crate::views::diff::build;
use crate::views::diff::render::{Options, Writer};

/// The text of a state. An object whose schema is not known, or does not fit, is shown by the shape of what is stored.
#[must_use]
pub fn text(state: &State, schemas: &Schemas, style: Style) -> String {
    if state.is_empty() {
        return "The state file is empty. No resources are represented.\n".into();
    }
    let mut out = String::new();
    let mut module = None;
    for (resource, kept, key, instance) in state.instances() {
        if module.as_ref().is_some_and(|m| *m != resource.module) {
            out.push('\n');
        }
        module = Some(resource.module.clone());
        let address = resource.instance(key.clone()).to_string();
        if let Some(current) = &instance.current {
            out.push_str(&object(
                &address,
                None,
                resource,
                &kept.provider.provider,
                current,
                schemas,
                style,
            ));
        }
        for (key, deposed) in &instance.deposed {
            out.push_str(&object(
                &address,
                Some(&key.0),
                resource,
                &kept.provider.provider,
                deposed,
                schemas,
                style,
            ));
        }
    }
    if state.outputs.is_empty() {
        // The last object needs no blank line behind it.
        out.pop();
    } else {
        out.push_str("\nOutputs:\n\n");
        let width = 0;
        let writer = Writer {
            style,
            no_symbols: true,
        };
        for (name, output) in &state.outputs {
            let mut value = output.value.clone();
            if output.sensitive {
                value = value.with_marks(cty::Marks::SENSITIVE);
            }
            let diff = build::typed(Some(&value), Some(&value), value.ty());
            let options = Options {
                show_unchanged: true,
                ..Options::default()
            };
            out.push_str(&format!("{name:width$} = {}\n", writer.render(&diff, 0, options)));
        }
    }
    out
}

/// The text of one object.
#[must_use]
pub fn object(
    address: &str,
    deposed: Option<&str>,
    resource: &addrs::AbsResource,
    provider: &addrs::Provider,
    object: &Object,
    schemas: &Schemas,
    style: Style,
) -> String {
    let resource = &resource.resource;
    let keyword = match resource.mode {
        addrs::Mode::Data => "data",
        addrs::Mode::Managed => "resource",
        addrs::Mode::Ephemeral => "ephemeral",
    };
    let mut note = String::new();
    if object.status == state::ObjectStatus::Tainted {
        note.push_str(" (tainted)");
    }
    if let Some(key) = deposed {
        note.push_str(&format!(" (deposed object {key})"));
    }
    let writer = Writer {
        style,
        no_symbols: true,
    };
    let options = Options {
        show_unchanged: true,
        ..Options::default()
    };
    let marks: Vec<_> = object
        .sensitive_paths
        .iter()
        .map(|p| (p.clone(), cty::Marks::SENSITIVE))
        .collect();
    let schema = schemas.resource(provider, resource.mode, &resource.ty);
    let value = schema
        .filter(|s| s.version == object.schema_version)
        .and_then(|schema| Some((schema, object.attributes.decode(&schema.implied_type()).ok()?)));
    let diff = match value {
        Some((schema, value)) => {
            let value = lang::marking::mark_sensitive(&schema.block, value.mark_paths(&marks));
            build::object(&value, &value, &schema.block, &[])
        }
        None => {
            let value = match &object.attributes {
                state::Attributes::Json(json) => json.to_value().ok().map(|v| cty::json::from_simple_json(&v)),
                state::Attributes::Flat(flat) => Some(cty::Value::object(
                    flat.iter().map(|(k, v)| (k.as_str(), cty::Value::string(v))),
                )),
            };
            let value = value.unwrap_or_else(cty::Value::empty_object).mark_paths(&marks);
            build::anything(Some(&value), Some(&value))
        }
    };
    format!(
        "# {address}:{note}\n{keyword} \"{}\" \"{}\" {}\n\n",
        resource.ty,
        resource.name,
        writer.render(&diff, 0, options)
    )
}
