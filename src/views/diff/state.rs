//! Text of a state: every object as a block, and the outputs.

use std::collections::HashSet;
use std::sync::Arc;

use ::state::{Attributes, Object, ObjectStatus, State};
use addrs::ModuleStep;
use cty::{Type, Value};
use engine::instance::{decode, stored_marks};
use provider::Schemas;

use super::Style;
use super::compare;
use super::heading;
use super::paint::Text;
use super::pair::{Pair, Paths};
use super::render::{self, attribute_name};
use super::signs::Options;

const OPTIONS: Options = Options {
    short: false,
    cut: false,
    no_signs: true,
    no_null: true,
    all_replace: false,
    none_replace: true,
    show_all: true,
};

pub(super) fn write(state: &State, schemas: &Schemas, style: Style) -> String {
    let mut text = Text::new(style.colour);
    if state.is_empty() {
        text.push("The state file is empty. No resources are represented.\n");
        return text.out;
    }
    let with_objects: HashSet<&[ModuleStep]> = state
        .resources
        .iter()
        .filter(|(_, r)| !r.instances.is_empty())
        .map(|(r, _)| &*r.module.0)
        .collect();
    let mut module: Option<&[ModuleStep]> = None;
    let mut first = true;
    // A module comes right before its child modules.
    let mut instances: Vec<_> = state.instances().collect();
    instances.sort_by(|a, b| a.0.module.0.cmp(&b.0.module.0));
    for (resource, existing, key, instance) in instances {
        let steps = &*resource.module.0;
        if module != Some(steps) {
            // An empty line separates modules if an outer module with objects was shown before.
            module = Some(steps);
            first = !(0..steps.len()).any(|n| with_objects.contains(&steps[..n]));
            if !first {
                text.push("\n");
            }
        }
        let address = resource.instance(key.clone());
        let mode = resource.resource.mode;
        let schema = schemas.resource(&existing.provider.provider, mode, &resource.resource.ty);
        let deposed = instance.deposed.iter().map(|(key, object)| (Some(key), object));
        for (deposed, object) in instance.current.iter().map(|o| (None, o)).chain(deposed) {
            if !first {
                text.push("\n");
            }
            first = false;
            text.push(&format!("# {address}:"));
            match deposed {
                Some(key) => text.push(&format!(" (deposed object {key})")),
                None if object.status == ObjectStatus::Tainted => text.push(" (tainted)"),
                None => &mut text,
            };
            text.push("\n");
            heading::block_header(&mut text, &resource.resource);
            let decoded = schema.and_then(|s| Some((s, decode(s, object, &address).ok()?)));
            match decoded {
                Some((schema, stored)) => {
                    let value = stored.marked(schema);
                    let pair = Pair::of_object(&value, &value, Paths::none(), Paths::All).revealed(style.revealed);
                    // The same value on both sides results in a tree without changes.
                    render::node(&mut text, &compare::block(&pair, &schema.block), 0, OPTIONS);
                }
                None => {
                    let value = as_stored(object);
                    let pair = Pair::of_value(Some(&value), Some(&value)).revealed(style.revealed);
                    render::node(&mut text, &compare::dynamic(pair), 0, OPTIONS);
                }
            }
            text.push("\n");
        }
    }
    if !state.outputs.is_empty() {
        text.push("\n\nOutputs:\n\n");
        for (name, output) in &state.outputs {
            text.push(&attribute_name(name)).push(" = ");
            let pair = Pair::of_value(Some(&output.value), Some(&output.value))
                .sensitive(output.sensitive, output.sensitive)
                .revealed(style.revealed);
            render::node(&mut text, &compare::typed(pair, output.value.ty()), 0, OPTIONS);
            text.push("\n");
        }
    }
    text.out
}

/// Returns the attributes of an object without its schema.
fn as_stored(object: &Arc<Object>) -> Value {
    match &object.attributes {
        Attributes::Json(raw) => cty::json::from_simple_json(&raw.to_value().unwrap_or_default())
            .unwrap_or_else(|_| Value::null(Type::Dynamic)),
        Attributes::Flat(flat) => Value::object(flat.iter().map(|(k, v)| (k.as_str(), Value::string(v)))),
    }
    .mark_paths(&stored_marks(object))
}
