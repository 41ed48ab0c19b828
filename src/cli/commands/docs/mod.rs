//! `docs`: describes the parts of this executable, without a network.

mod installed;
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
use views::wrap::wrap;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

use page::Kind;

pub const COMMAND: Command = Command {
    path: "docs",
    about: "Describe functions, types, providers and provisioners",
    positional: "[NAME]",
    details: "Describes what a configuration can use by its schema, with an example that has what the schema requires: a function of the language, a \
      resource, data source or other type of a provider, a function of one (provider::NAME::FUNCTION), the provider \
      itself, or a provisioner. Providers are the built-in ones, those that are installed for the configuration, and those of a \
      pack. Without a name it lists what there is. With -html it writes pages of all of these, of the commands and of the guides, for a browser: they need \
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
    let name = match arguments.positional.as_slice() {
        [] => return list(session),
        [name] => name,
        _ => {
            return Err(Failure::usage(
                "Too many command line arguments",
                "Give one name at most: of a function, a type of resource, a provider, or a provisioner.",
            ));
        }
    };
    let (mut pages, mut known) = find(session, name)?;
    let is_built_in = !pages.is_empty();
    pages.extend(find_installed(session, name, is_built_in, &mut known)?);
    if pages.is_empty() {
        let hint = did_you_mean(suggest(name, known.iter().map(String::as_str)));
        return Err(Failure::new(
            "Nothing of that name is known",
            format!(
                "No function and no provisioner is called \"{name}\", and no type or provider that is built in, packed or installed for \
                 the configuration in this directory.{hint} Without a name, this command lists what there is."
            ),
        ));
    }
    Ok(Outcome::text(pages.join("\n")))
}

/// Lists the functions, providers and provisioners of this executable.
fn list(session: &Session) -> Result<Outcome, Failure> {
    let width = session.ui.width().clamp(40, 100);
    let mut out = String::new();
    let mut section = |title: &str, names: Vec<String>| {
        if names.is_empty() {
            return;
        }
        out.push_str(&format!("{title}:\n\n"));
        for line in wrap(&names.join(", "), width - 2) {
            out.push_str(&format!("  {line}\n"));
        }
        out.push('\n');
    };
    let functions = signature::all();
    section("Functions", functions.keys().map(|name| (*name).to_owned()).collect());
    let builtins = &session.builtins;
    let providers = builtins.providers.iter().map(|provider| provider.name.clone());
    section("Built-in providers", providers.collect());
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for one in installed::all(session)? {
        match one.described(session) {
            Ok(found) => here.push(format!("{}{}", one.provider.for_display(), found.version)),
            Err(_) => missing.push(one.provider.for_display()),
        }
    }
    section("Installed and packed providers", here);
    section("Required by the configuration, and not installed (run init)", missing);
    section("Provisioners", builtins.provisioners.clone());
    let command = session.ui.program.command;
    out.push_str(&format!(
        "\"{command} docs NAME\" describes one of them. That of a provider lists its types, which have pages, too.\n"
    ));
    Ok(Outcome::text(out))
}

/// Returns the pages about a name of a provider that is installed or packed. If a required provider has the same name as a
/// built-in one, the pages of both are shown.
fn find_installed(
    session: &Session,
    name: &str,
    is_built_in: bool,
    known: &mut Vec<String>,
) -> Result<Vec<String>, Failure> {
    let width = session.ui.width().clamp(40, 100);
    let own = name.strip_prefix("provider::").and_then(|rest| rest.split_once("::"));
    let wanted = match own {
        Some((provider, _)) => provider,
        None => name.split('_').next().unwrap_or(name),
    };
    let (likely, others): (Vec<_>, Vec<_>) = installed::all(session)?
        .into_iter()
        .partition(|one| one.is_called(wanted) || one.is_called(name));
    let mut pages = Vec::new();
    // Types usually begin with the name of their provider, so providers of that name are searched first, and usually no others are started.
    for (one, is_likely) in likely
        .iter()
        .map(|one| (one, true))
        .chain(others.iter().map(|one| (one, false)))
    {
        if !is_likely && (is_built_in || !pages.is_empty()) {
            break;
        }
        known.push(one.provider.ty.to_string());
        let described = match one.described(session) {
            Ok(described) => described,
            // Another provider may have the type.
            Err(_) if !is_likely => continue,
            Err(problems) => return Err(problems.into()),
        };
        let Some(schema) = one.schema(session)? else { continue };
        known.extend(Kind::ALL.iter().flat_map(|kind| kind.names(&schema)));
        if let Some((_, function)) = own.filter(|_| is_likely) {
            let found = schema.functions.get(function);
            pages.extend(found.map(|found| page::provider_function(name, found, width)));
            continue;
        }
        for kind in Kind::ALL {
            let found = kind.schema(&schema, name);
            pages.extend(found.map(|found| page::of_type(kind, name, &described, found, width)));
        }
        if one.is_called(name) {
            pages.push(page::provider(&described, &schema, width));
        }
    }
    Ok(pages)
}

/// Returns the pages about a name of this executable, and the names for suggestions.
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
                    pages.extend(found.map(|found| page::of_type(kind, name, &provider.into(), found, width)));
                }
                if name == provider.name {
                    pages.push(page::provider(&provider.into(), &schema, width));
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

/// Starts a built-in provisioner, and requests its schema.
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
