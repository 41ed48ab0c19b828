//! The command `version`, which shows the versions of the program and of providers.

use std::path::Path;

use addrs::platform::Platform;
use addrs::program::Mode;
use packages::lock_file::LockFile;
use serde_json::json;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::Outcome;
use crate::session::Surroundings;
use crate::{VERSION, core_version};

pub const COMMAND: Command = Command {
    path: "version",
    about: "Show the current version",
    positional: "",
    details: "Shows the version of this program, of the providers that it carries, and of those the lock file chose.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| {
        let Arguments { json } = flags::read(matches);
        Ok(outcome(session, json))
    },
};

struct Arguments {
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        // Positional arguments are ignored, as in Terraform.
        flags.positional();
        Arguments {
            json: flags.switch("json", false, "Output the version information as a JSON object."),
        }
    }
}

/// Returns the versions. Wrappers of Terraform and OpenTofu parse the first line, so under their names, this program
/// prints the line of those tools.
pub fn outcome(surroundings: &Surroundings, as_json: bool) -> Outcome {
    let locked = LockFile::load(Path::new(".")).map(|(lock, _)| lock).unwrap_or_default();
    let platform = Platform::current();
    let own = format!("Monoform v{VERSION}");
    let carried = surroundings.builtins.carried.pack();
    let carried = carried.iter().flat_map(|pack| &pack.index().providers);
    let carried: Vec<_> = carried.filter(|provider| provider.platform == platform).collect();
    if as_json {
        let selections: serde_json::Map<String, serde_json::Value> = locked
            .providers
            .iter()
            .map(|(p, l)| (p.to_string(), l.version.to_string().into()))
            .collect();
        // No server is asked for newer versions, so this version is never shown as outdated.
        let mut document = json!({
            "terraform_version": core_version(),
            "platform": platform.to_string(),
            "provider_selections": selections,
            "terraform_outdated": false,
        });
        if let Some(object) = document.as_object_mut() {
            object.insert("monoform_version".into(), VERSION.into());
            if !carried.is_empty() {
                let versions = carried
                    .iter()
                    .map(|p| json!({"address": p.address.to_string(), "version": p.version.to_string()}));
                object.insert("carried_providers".into(), versions.collect::<Vec<_>>().into());
            }
        }
        return Outcome::document(&document);
    }
    let mode = Mode::current();
    let mut text = match mode {
        Mode::Monoform => format!(
            "{own}\non {platform}\n+ compatible with {} v{}\n",
            mode.tool(),
            mode.version()
        ),
        Mode::Terraform | Mode::OpenTofu => {
            format!("{} v{}\non {platform}\n+ {own}\n", mode.tool(), mode.version())
        }
    };
    for provider in carried {
        let (address, version) = (&provider.address, &provider.version);
        text.push_str(&format!("+ carries provider {address} v{version}\n"));
    }
    for (provider, locked) in &locked.providers {
        text.push_str(&format!("+ provider {provider} v{}\n", locked.version));
    }
    Outcome::text(text)
}
