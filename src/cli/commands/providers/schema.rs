//! The command `providers schema`, which prints schemas of providers as JSON.

use std::sync::Arc;

use addrs::Provider;
use provider::{ProviderSchema, invalid_schema};
use serde_json::{Map, Value as Json, json};
use syntax::Diagnostics;
use views::json::schemas;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::commands::output::current_state;
use crate::outcome::{Failure, Outcome};
use crate::plugin_source::{Plugins, requirements};
use crate::session::Session;
use crate::workdir;

pub const COMMAND: Command = Command {
    path: "providers schema",
    about: "Show schemas for the providers used in the configuration",
    positional: "",
    details: "Shows the schemas of all providers that the configuration and the state use.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            json: flags.switch("json", false, "Required: output the schemas as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.json {
        return Err(Failure::usage(
            "The -json option is required",
            "The schemas are shown only in machine-readable form: use -json.",
        ));
    }
    let project = workdir::load(session)?;
    let state = current_state(session, None)?;
    let ask = || -> Result<Plugins, Diagnostics> {
        let plugins = session.plugins()?;
        plugins.resolve(&project.config, &state)?;
        // Providers that are only required are included, and those of which only functions are called.
        let all = requirements(&project.config, &state)?.into_keys();
        session.runtime()?.block_on(plugins.ask(all)).into_result(plugins)
    };
    let described = ask()?.schemas().providers;
    let problem = |(provider, schema): (&Provider, &Arc<ProviderSchema>)| {
        Some(invalid_schema(&provider.for_display(), schema.first_problem()?))
    };
    let problems: Diagnostics = described.iter().filter_map(problem).collect();
    problems.into_result(())?;
    let all: Map<String, Json> = described
        .iter()
        .map(|(p, schema)| (p.to_string(), schemas::provider(schema)))
        .collect();
    let mut document = json!({"format_version": "1.0"});
    // As in Terraform, the document has no member `provider_schemas` if there are no providers.
    if let Some(object) = document.as_object_mut().filter(|_| !all.is_empty()) {
        object.insert("provider_schemas".into(), all.into());
    }
    Ok(Outcome::exact(cty::json::to_text(&document, None) + "\n"))
}
