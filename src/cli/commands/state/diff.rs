//! `state diff`: differences between the states after two runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;
use state::{Attributes, Object, State};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state diff",
    about: "Show what differs between the states after two runs",
    positional: "RUN RUN",
    details: "Shows the objects and outputs that the second run's state has more (+), in another form (~) and less (-) than that of \
              the first, with their attributes. Sensitive values are not shown. For the backend pg with layout = \"objects\", which \
              keeps the history; \"state history\" lists the runs.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let [first, second] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly two arguments: the numbers of two runs.",
        ));
    };
    let (first, second) = (state_session::run_number(first)?, state_session::run_number(second)?);
    let (store, workspace) = state_session::with_history(session)?;
    let codec = session.stores().encryption.states()?;
    let before = entries(&store.state_at(&workspace, first, &codec)?);
    let after = entries(&store.state_at(&workspace, second, &codec)?);
    let mut lines = Vec::new();
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for address in all {
        let (old, new) = (before.get(address), after.get(address));
        if old == new {
            continue;
        }
        let sign = match (old, new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        lines.push(format!("{sign} {address}"));
        lines.extend(differences(old, new));
    }
    if lines.is_empty() {
        return Ok(Outcome::line("The states after both runs are the same."));
    }
    Ok(lines.into_iter().fold(Outcome::success(), Outcome::and_line))
}

/// Parts of an object or an output that are compared: the values by name, the names of those that are sensitive, and private data.
#[derive(Default, PartialEq)]
struct Entry {
    values: BTreeMap<String, Json>,
    sensitive: BTreeSet<String>,
    /// Private data and other facts that are not shown.
    hidden: Vec<u8>,
}

fn entries(state: &State) -> BTreeMap<String, Entry> {
    let mut out = BTreeMap::new();
    for (resource, kept, key, instance) in state.instances() {
        let address = resource.instance(key.clone()).to_string();
        if let Some(object) = &instance.current {
            out.insert(address.clone(), entry(object, &kept.provider.to_string()));
        }
        for (deposed, object) in &instance.deposed {
            let address = format!("{address} (deposed object {deposed})");
            out.insert(address, entry(object, &kept.provider.to_string()));
        }
    }
    for (name, output) in &state.outputs {
        let value = cty::json::to_json(&output.value, output.value.ty()).unwrap_or(Json::Null);
        let name_of_value = "value".to_owned();
        let entry = Entry {
            sensitive: output.sensitive.then(|| name_of_value.clone()).into_iter().collect(),
            values: BTreeMap::from([(name_of_value, value)]),
            hidden: Vec::new(),
        };
        out.insert(format!("output.{name}"), entry);
    }
    out
}

fn entry(object: &Object, provider: &str) -> Entry {
    let values = match &object.attributes {
        Attributes::Json(text) => match text.to_value() {
            Ok(Json::Object(members)) => members.into_iter().collect(),
            _ => BTreeMap::new(),
        },
        Attributes::Flat(flat) => flat
            .iter()
            .map(|(name, value)| (name.clone(), Json::from(value.clone())))
            .collect(),
    };
    let sensitive = object.sensitive_paths.iter().filter_map(|path| match path.0.first() {
        Some(cty::Step::Attribute(name)) => Some(name.to_string()),
        _ => None,
    });
    let mut entry = Entry {
        sensitive: sensitive.collect(),
        values,
        hidden: object.private.clone(),
    };
    // The parentheses keep these entries apart from attributes.
    entry.values.insert("(provider)".to_owned(), provider.into());
    if object.status == state::ObjectStatus::Tainted {
        entry.values.insert("(tainted)".to_owned(), true.into());
    }
    entry
}

/// Returns a line for each value that differs.
fn differences(old: Option<&Entry>, new: Option<&Entry>) -> Vec<String> {
    let empty = Entry::default();
    let (before, after) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
    let names: BTreeSet<&String> = before.values.keys().chain(after.values.keys()).collect();
    let mut lines = Vec::new();
    for name in names {
        let is_sensitive = before.sensitive.contains(name) || after.sensitive.contains(name);
        let shown = |value: &Json| match is_sensitive {
            true => "(sensitive value)".to_owned(),
            false => cty::json::to_text(value, None),
        };
        lines.push(match (before.values.get(name), after.values.get(name)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => format!("    ~ {name}: {} -> {}", shown(old), shown(new)),
            (None, Some(new)) => format!("    + {name}: {}", shown(new)),
            (Some(old), None) => format!("    - {name}: {}", shown(old)),
            (None, None) => continue,
        });
    }
    if lines.is_empty() {
        lines.push("    ~ (data that only the provider reads)".to_owned());
    }
    lines
}
