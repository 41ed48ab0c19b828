//! `monoform internal-plugin`: serves built-in plugins, lists them, and links to them for other tools.
//!
//! - `provider NAME`, `provisioner NAME`, `state NAME`: serves the plugin over gRPC to the program that started it.
//! - `key-provider NAME`: answers one request for a key of the encryption of states.
//! - `packed ADDRESS VERSION`: runs a provider of the pack from memory.
//! - `list`: prints the table of built-in plugins, and the providers of the pack.
//! - `link DIR`: links to the built-in providers in the layout of a filesystem mirror, so that Terraform and OpenTofu can
//!   run them.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use packages::packed::Carried;

use crate::builtins::{KEY_PROVIDERS, Kind, PLUGINS, Plugin, Sort, find, own_executable, serve_keys};
use crate::packed;

const USAGE: &str = "\
Usage: monoform internal-plugin provider NAME
       monoform internal-plugin provisioner NAME
       monoform internal-plugin state NAME
       monoform internal-plugin key-provider NAME
       monoform internal-plugin packed ADDRESS VERSION
       monoform internal-plugin list
       monoform internal-plugin link DIR

  provider, provisioner and state serve a built-in plugin, key-provider answers
  one request for a key, and packed becomes a provider that this executable
  carries; they are called by the program that uses the plugin, not by people.
  list shows all of them. link
  makes links to the built-in providers below DIR, in the layout of a
  filesystem mirror, for use by other tools.
";

const USAGE_PROVIDER: &str = "\
Usage: monoform internal-plugin provider NAME
       monoform internal-plugin provisioner NAME
       monoform internal-plugin state NAME
       monoform internal-plugin key-provider NAME
       monoform internal-plugin packed ADDRESS VERSION

  Serves a built-in plugin over gRPC to the program that started it, answers a
  request for a key, or runs a provider that this executable carries from
  memory. People do not run it themselves.
";

const USAGE_LIST: &str = "\
Usage: monoform internal-plugin list

  Lists the built-in plugins: name, kind, the version each one implements,
  and the protocol versions it is served with. Of a pack, it lists the
  providers that it carries, too.
";

const USAGE_LINK: &str = "\
Usage: monoform internal-plugin link DIR

  Makes links to the built-in providers below DIR, in the layout of a
  filesystem mirror. With DIR as a filesystem_mirror in its CLI
  configuration another tool uses the providers of this executable. Existing
  links are replaced. A directory whose name begins with a dash is written
  as ./-DIR.
";

pub fn serve(plugin: &Plugin) -> ExitCode {
    (plugin.serve)()
}

/// Runs the subcommand of `internal-plugin` that the arguments name.
pub fn run(args: &[OsString]) -> ExitCode {
    let words: Vec<String> = args.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let helps = |word: &&str| matches!(*word, "-help" | "--help" | "-h");
    if words.iter().any(helps) {
        let command = words.iter().find(|word| !helps(word));
        return print(match command {
            Some(&("provider" | "provisioner" | "state" | "key-provider" | "packed")) => USAGE_PROVIDER,
            Some(&"list") => USAGE_LIST,
            Some(&"link") => USAGE_LINK,
            _ => USAGE,
        });
    }
    match words.as_slice() {
        ["provider", name] => named(name, Sort::Provider),
        ["provisioner", name] => named(name, Sort::Provisioner),
        ["state", name] => named(name, Sort::StateStore),
        ["key-provider", name] => serve_keys(name).unwrap_or_else(|| {
            let known = KEY_PROVIDERS.join(", ");
            fail(&format!(
                "There is no built-in key provider \"{name}\". The built-in ones are: {known}.\n"
            ))
        }),
        ["packed", provider, version] => fail(&packed::run(provider, version)),
        ["list"] => print(&(list() + &carried())),
        ["link", dir] if dir.starts_with('-') => fail(&format!("There is no option {dir}.\n\n{USAGE_LINK}")),
        ["link", _] => match link(Path::new(&args[1])) {
            Ok(report) => print(&report),
            Err(error) => fail(&format!("{error}\n")),
        },
        ["help"] => print(USAGE),
        ["list", ..] => fail(USAGE_LIST),
        ["link", ..] => fail(USAGE_LINK),
        ["provider" | "provisioner" | "state" | "key-provider" | "packed", ..] => fail(USAGE_PROVIDER),
        _ => fail(USAGE),
    }
}

fn named(name: &str, sort: Sort) -> ExitCode {
    match find(name, sort) {
        Some(plugin) => serve(plugin),
        None => {
            let word = match sort {
                Sort::Provider => "provider",
                Sort::Provisioner => "provisioner",
                Sort::StateStore => "state store",
            };
            let known: Vec<&str> = PLUGINS
                .iter()
                .filter(|p| p.kind.sort() == sort)
                .map(|p| p.name)
                .collect();
            fail(&format!(
                "There is no built-in {word} \"{name}\". The built-in ones are: {}.\n",
                known.join(", ")
            ))
        }
    }
}

fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Err(e) => fail(&format!("Standard output cannot be written: {e}\n")),
    }
}

fn fail(text: &str) -> ExitCode {
    // If standard error is closed, too, only the exit status can report the failure.
    let _ = std::io::stderr().write_all(text.as_bytes());
    ExitCode::FAILURE
}

fn list() -> String {
    let mut out = format!("{:<12} {:<12} {:<18} {}\n", "NAME", "KIND", "IMPLEMENTS", "PROTOCOLS");
    for plugin in PLUGINS {
        let kind = match plugin.kind.sort() {
            Sort::Provider => "provider",
            Sort::Provisioner => "provisioner",
            Sort::StateStore => "state store",
        };
        // Plugins that are not released separately are parts of Terraform.
        let stands_for = match (plugin.kind, plugin.version) {
            (Kind::Provider, Some(version)) => version.to_owned(),
            (_, Some(version)) => format!("Terraform {version}"),
            (_, None) => "-".to_owned(),
        };
        let protocols: Vec<String> = plugin.protocols().iter().map(u32::to_string).collect();
        out.push_str(&format!(
            "{:<12} {:<12} {:<18} {}\n",
            plugin.name,
            kind,
            stands_for,
            protocols.join(", ")
        ));
    }
    let implemented = format!("OpenTofu {}", addrs::program::OPENTOFU_VERSION);
    for name in KEY_PROVIDERS {
        out.push_str(&format!("{name:<12} {:<12} {implemented:<18} -\n", "key provider"));
    }
    out
}

/// Lists the providers of the pack that this executable contains.
#[expect(clippy::disallowed_methods, reason = "no command line has read the environment here")]
fn carried() -> String {
    let environment = cli::Environment::read(std::env::vars_os());
    match Carried::by(&own_executable(), &environment) {
        Carried::Nothing => String::new(),
        Carried::Damaged(why) => format!("\nNothing that this executable carries can be used: {why}.\n"),
        Carried::Pack(pack) => {
            let lines = pack.index().providers.iter().map(|provider| {
                let name = provider.address.for_display();
                format!("  {name} {} for {}\n", provider.version, provider.platform)
            });
            format!("\nThis executable carries:\n{}", lines.collect::<String>())
        }
    }
}

/// Reason why the links cannot be made.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    #[error("The directory {} cannot be created: {}.", .0.display(), cli::io_reason(.1))]
    Directory(PathBuf, #[source] std::io::Error),
    #[error("The link {} cannot be created: {}.", .0.display(), cli::io_reason(.1))]
    Link(PathBuf, #[source] std::io::Error),
}

/// Makes the links to the built-in providers below a directory, and returns the text to print.
fn link(dir: &Path) -> Result<String, LinkError> {
    let executable = own_executable();
    let platform = addrs::platform::Platform::current().to_string();
    let mut out = String::new();
    for plugin in PLUGINS.iter().filter(|p| p.kind == Kind::Provider) {
        let Some(version) = plugin.version else { continue };
        // Terraform and OpenTofu search for the same provider below different hosts.
        for host in ["registry.terraform.io", "registry.opentofu.org"] {
            let package: PathBuf = [host, "hashicorp", plugin.name, version, &platform].iter().collect();
            let package = dir.join(package);
            std::fs::create_dir_all(&package).map_err(|error| LinkError::Directory(package.clone(), error))?;
            let path = package.join(format!("terraform-provider-{}_v{version}", plugin.name));
            let path = system::Os::CURRENT.executable(&path);
            replace_link(&executable, &path).map_err(|error| LinkError::Link(path.clone(), error))?;
            out.push_str(&format!("{}\n", path.display()));
        }
    }
    Ok(out)
}

/// Makes a link to a program and replaces an existing one. Anything else at the path is an error and is not changed.
fn replace_link(target: &Path, path: &Path) -> std::io::Result<()> {
    if system::files::is_program_link(path) {
        std::fs::remove_file(path)?;
    }
    system::files::link_program(target, path)
}
