//! `self-check`: verifies this executable, and lists its contents.

use std::path::{Path, PathBuf};

use files::io_reason;
use pack::executable::{self, Checksum, Executable, Linking};
use pack::signature::PublicKey;
use pack::{Conditions, Pack, PackError, Trust};
use packages::builtin::Builtins;
use serde_json::{Value as Json, json};
use views::wrap::wrap;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, no_positional};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::{VERSION, commands};

pub const COMMAND: Command = Command {
    path: "self-check",
    about: "Check whether this executable is whole",
    positional: "",
    details: "Says how this executable is linked, for which platform it is, and what is built in. Its bytes are compared with the \
      checksum that a distributed executable ends with; one that was built without has none, and is not checked. Of a pack, every byte \
      is compared with its checksum; with -trust, it must be signed with that key. The exit status is 1 if something is damaged. \
      Nothing is changed, and nothing is requested from a network.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    trust: Option<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            trust: flags.value(
                "trust",
                "KEYFILE",
                "Require that what it carries is signed with the key in this file. MONOFORM_PACK_TRUST names it if it is not given.",
            ),
            json: flags.switch("json", false, "Output what was found as JSON."),
        }
    }
}

struct Problem {
    summary: &'static str,
    detail: String,
}

/// Results of all checks of the executable.
struct Found {
    path: PathBuf,
    /// `None` if the file is not an executable of this program.
    executable: Option<Executable>,
    linking: Linking,
    /// `None` if the file cannot be read.
    checksum: Option<Checksum>,
    /// Pack with the number of bytes that were verified.
    pack: Option<(Pack, Option<u64>)>,
    problems: Vec<Problem>,
}

impl Found {
    /// Returns true if every byte of the executable was compared with a checksum: its own or that of the pack.
    fn is_checked(&self) -> bool {
        self.checksum == Some(Checksum::Matches) || matches!(self.pack, Some((_, Some(_))))
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "check")?;
    let conditions = session
        .pack_conditions()
        .with_key(arguments.trust.as_deref().map(Path::new));
    let found = check(&session.builtins.executable, conditions);
    if arguments.json {
        let status = u8::from(!found.problems.is_empty());
        return Ok(Outcome::document(&document(session, &found)).with_status(status));
    }
    show(session, &found);
    let problems = found.problems.iter();
    Ok(problems.fold(Outcome::success(), |outcome, problem| {
        outcome.and_failure(Failure::new(problem.summary, problem.detail.clone()))
    }))
}

fn check(path: &Path, conditions: Conditions) -> Found {
    let mut found = Found {
        path: path.to_owned(),
        executable: None,
        linking: Linking::Unknown,
        checksum: None,
        pack: None,
        problems: Vec::new(),
    };
    let mut problem = |summary: &'static str, detail: String| found.problems.push(Problem { summary, detail });
    let trust = conditions.trust.clone();
    // An untrusted pack is shown, too, because nothing in it is used.
    let inspect = conditions.to_inspect();
    match Executable::open(path, true, &inspect) {
        Ok(executable) => {
            match executable.checksum() {
                Ok(checksum) => found.checksum = Some(checksum),
                Err(error) => problem(
                    "The executable is damaged",
                    format!("{} cannot be read: {}.", path.display(), io_reason(&error)),
                ),
            }
            if found.checksum == Some(Checksum::Differs) {
                problem(
                    "The executable is damaged",
                    format!(
                        "The bytes of {} do not match the checksum at its end. Copy it again.",
                        path.display()
                    ),
                );
            }
            found.executable = Some(executable);
        }
        Err(error) => problem("The executable is damaged", sentence(&error)),
    }
    match Linking::detect(path) {
        Ok(linking) => found.linking = linking,
        Err(error) => problem(
            "The executable is damaged",
            format!(
                "The header of {} cannot be read: {}.",
                path.display(),
                io_reason(&error)
            ),
        ),
    }
    if executable::is_cut_off(path).unwrap_or_default() {
        problem(
            "The executable is damaged",
            format!("The file {} was not copied as a whole: copy it again.", path.display()),
        );
    }
    if let Err(error) = trust.key() {
        problem("The key cannot be read", sentence(&error));
    }
    let (pack, problems) = carried(path, &inspect, &trust, found.executable.is_some());
    found.pack = pack;
    found.problems.extend(problems);
    found
}

/// Returns the pack of an executable with the number of verified bytes, and its problems.
fn carried(
    path: &Path,
    inspect: &Conditions,
    trust: &Trust,
    is_executable: bool,
) -> (Option<(Pack, Option<u64>)>, Vec<Problem>) {
    let problem = |summary, detail| Problem { summary, detail };
    match Pack::find(path, inspect) {
        Ok(Some(pack)) => {
            let verified = pack.verify().map(|verified| verified.bytes);
            // A key that cannot be read was reported already.
            let trusted = trust
                .check(&pack)
                .err()
                .filter(|error| !matches!(error, PackError::Key { .. }));
            let errors = verified.as_ref().err().into_iter().chain(&trusted);
            let problems = errors.map(|error| problem("The contents cannot be verified", sentence(error)));
            let problems = problems.collect();
            (Some((pack, verified.ok())), problems)
        }
        Ok(None) if matches!(trust, Trust::Option(_)) => {
            let detail = "This executable is not a pack, and only packs are signed. Leave out -trust.";
            (None, vec![problem("There is no signature", detail.to_owned())])
        }
        Ok(None) => (None, Vec::new()),
        Err(error) if is_executable => (None, vec![problem("The contents are damaged", sentence(&error))]),
        // The pack is this executable, whose error has been reported above.
        Err(_) => (None, Vec::new()),
    }
}

/// Returns the names of the backends. The core itself keeps states in files, so `local` is no state store.
fn backends(builtins: &Builtins) -> Vec<String> {
    let mut names = builtins.state_stores.clone();
    names.push("local".to_owned());
    names.sort();
    names
}

fn sentence(error: &PackError) -> String {
    let text = error.to_string();
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn linking(linking: Linking) -> &'static str {
    match linking {
        Linking::Static => "static",
        Linking::Dynamic => "dynamic",
        Linking::Unknown => "unknown",
    }
}

/// Returns the result of comparing the executable with its own checksum.
fn checksum(found: &Found) -> &'static str {
    match found.checksum {
        Some(Checksum::Matches) => "matches",
        Some(Checksum::Differs) => "differs",
        Some(Checksum::Missing) | None => "not checked",
    }
}

fn document(session: &Session, found: &Found) -> Json {
    let builtins = &session.builtins;
    let providers = builtins.providers.iter().map(|provider| {
        let version = provider.version.as_ref().map(ToString::to_string);
        json!({"address": provider.address.to_string(), "version": version.unwrap_or_default()})
    });
    let executable = found.executable.as_ref();
    let pack = found.pack.as_ref().map(|(pack, verified)| {
        let carried = pack.index().providers.iter().map(|provider| {
            json!({
                "address": provider.address.to_string(),
                "version": provider.version.to_string(),
                "platform": provider.platform.to_string(),
            })
        });
        json!({
            "identity": pack.identity(),
            "signed_by": pack.signed_by().map(PublicKey::fingerprint),
            "verified_bytes": verified.unwrap_or_default(),
            "providers": carried.collect::<Vec<_>>(),
        })
    });
    let problems = found.problems.iter();
    let problems = problems.map(|problem| json!({"summary": problem.summary, "detail": problem.detail}));
    json!({
        "format_version": "1.0",
        "whole": found.problems.is_empty(),
        "executable": {
            "path": found.path.to_string_lossy(),
            "version": executable.map_or(VERSION, |executable| executable.version.as_str()),
            "platform": executable.map_or_else(current_platform, |executable| executable.platform.to_string()),
            "size": executable.map_or(0, |executable| executable.size),
            "linking": linking(found.linking),
            "checksum": checksum(found),
        },
        "built_in": {
            "providers": providers.collect::<Vec<_>>(),
            "provisioners": builtins.provisioners,
            "backends": backends(builtins),
        },
        "pack": pack,
        "problems": problems.collect::<Vec<_>>(),
    })
}

fn current_platform() -> String {
    addrs::platform::Platform::current().to_string()
}

fn show(session: &Session, found: &Found) {
    let ui = &session.ui;
    let builtins = &session.builtins;
    if let Some(executable) = &found.executable {
        ui.line(format!(
            "Monoform v{} for {}, linking: {} ({})",
            executable.version,
            executable.platform,
            linking(found.linking),
            commands::pack::bytes(executable.size)
        ));
    }
    ui.line(found.path.display().to_string());
    let list = |title: &str, names: Vec<String>| {
        ui.line(format!("\n{title}:"));
        for line in wrap(&names.join(", "), 76) {
            ui.line(format!("  {line}"));
        }
    };
    let providers = builtins.providers.iter().map(|provider| match &provider.version {
        Some(version) => format!("{} v{version}", provider.address.for_display()),
        None => provider.address.for_display(),
    });
    list("Built-in providers", providers.collect());
    list("Built-in provisioners", builtins.provisioners.clone());
    list("Built-in backends", backends(builtins));
    if let Some((pack, verified)) = &found.pack {
        let carried = pack.index().providers.iter().map(|provider| {
            format!(
                "{} v{} for {}",
                provider.address.for_display(),
                provider.version,
                provider.platform
            )
        });
        list("Packed providers", carried.collect());
        let signed = match pack.signed_by() {
            Some(key) => format!("signed with the key {}", key.fingerprint()),
            None => "not signed".to_owned(),
        };
        if let Some(size) = verified {
            ui.line(format!(
                "\nThe content is whole ({}), and {signed}.",
                commands::pack::bytes(*size)
            ));
        }
    }
    if !found.problems.is_empty() {
        return;
    }
    match found.is_checked() {
        true => ui.line(format!("\n{} Nothing is damaged.", ui.style().good("Success!"))),
        false => ui.line(
            "\nThe bytes of the executable were not checked: it has no checksum of its own. Distributed executables have one.",
        ),
    }
}
