//! `docs`: describes the parts of this executable, without a network.

mod page;
mod site;

use std::sync::Arc;

use lang::functions::signature;
use packages::builtin::BuiltinProvider;
use plugins::Program;
use provider::ProviderSchema;
use schema::Schema;
use syntax::Diagnostics;
use syntax::content::{did_you_mean, suggest};

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

use page::Kind;

pub const COMMAND: Command = Command {
    path: "docs",
    about: "Describe what is built in: functions, resources, providers",
    positional: "[NAME]",
    details: "Describes what is part of this executable by its own schemas, with an example that has what the schema requires: a function of the language, a \
      resource, data source or other type of a built-in provider, a function of one (provider::NAME::FUNCTION), the provider \
      itself, or a provisioner. With -html it writes pages of all of these, of the commands and of the guides, for a browser: they need \
      no server, and their search works from a file. Nothing is downloaded.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    html: Option<String>,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            html: flags.value(
                "html",
                "DIR",
                "Write the documentation of everything as a static site into this directory, in place of one page.",
            ),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if let Some(dir) = &arguments.html {
        if !arguments.positional.is_empty() {
            return Err(Failure::usage(
                "Too many command line arguments",
                "With -html, pages about everything are written. Leave the name out.",
            ));
        }
        return site::write(session, dir);
    }
    let [name] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly one argument: the name of a function, a type of resource, a provider, or a provisioner.",
        ));
    };
    let (pages, known) = find(session, name)?;
    if pages.is_empty() {
        let hint = did_you_mean(suggest(name, known.iter().map(String::as_str)));
        return Err(Failure::new(
            "Nothing of that name is built in",
            format!("No function, and no built-in type, provider or provisioner is called \"{name}\".{hint}"),
        ));
    }
    Ok(Outcome::text(pages.join("\n")))
}

/// Returns the pages about a name, and the names for suggestions.
fn find(session: &Session, name: &str) -> Result<(Vec<String>, Vec<String>), Diagnostics> {
    let width = session.ui.width().clamp(40, 100);
    let mut pages = Vec::new();
    let functions = signature::all();
    let mut known: Vec<String> = functions.keys().map(|name| (*name).to_owned()).collect();
    // `core::` is the namespace of the language's own functions.
    let plain = name.strip_prefix("core::").unwrap_or(name);
    if let Some((name, function)) = functions.get_key_value(plain) {
        pages.push(page::function(name, function, width));
    }
    let builtins = &session.builtins;
    known.extend(builtins.providers.iter().map(|provider| provider.name.clone()));
    known.extend(builtins.provisioners.iter().cloned());
    let own = name.strip_prefix("provider::").and_then(|rest| rest.split_once("::"));
    // The prefix of a type names its provider, as in a resource block without `provider`.
    let wanted = match own {
        Some((provider, _)) => provider,
        None => name.split('_').next().unwrap_or(name),
    };
    if let Some(provider) = builtins.providers.iter().find(|provider| provider.name == wanted) {
        let schema = schema(session, provider)?;
        known.extend(Kind::ALL.iter().flat_map(|kind| kind.names(&schema)));
        match own {
            Some((_, function)) => {
                let found = schema.functions.get(function);
                pages.extend(found.map(|found| page::provider_function(name, found, width)));
            }
            None => {
                for kind in Kind::ALL {
                    let found = kind.schema(&schema, name);
                    pages.extend(found.map(|found| page::of_type(kind, name, provider, found, width)));
                }
                if name == provider.name {
                    pages.push(page::provider(provider, &schema, width));
                }
            }
        }
    }
    if builtins.provisioners.iter().any(|provisioner| provisioner == name) {
        let schema = provisioner_schema(session, name)?;
        pages.push(page::provisioner(name, &schema, width));
    }
    Ok((pages, known))
}

/// Fetches the schema of a built-in provisioner.
fn provisioner_schema(session: &Session, name: &str) -> Result<Arc<Schema>, Diagnostics> {
    let program = Program::Builtin {
        name: name.to_owned(),
        // Provisioners exist in version 5 of the protocol only.
        protocols: vec![5],
    };
    let host = session.plugin_host()?;
    session.runtime()?.block_on(async {
        let running = host.provisioner(name, program).await?;
        let schema = running.schema().await;
        running.close().await;
        schema
    })
}

/// Fetches the schema of a built-in provider, independent of the configuration and the lock file.
fn schema(session: &Session, provider: &BuiltinProvider) -> Result<Arc<ProviderSchema>, Diagnostics> {
    let program = Program::Builtin {
        name: provider.name.clone(),
        protocols: provider.protocols.clone(),
    };
    let host = session.plugin_host()?;
    session.runtime()?.block_on(async {
        let running = host.provider(&provider.address, program)?;
        let schema = running.schema().await;
        running.close().await;
        schema
    })
}
