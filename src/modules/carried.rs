//! Error texts for modules that are missing in the pack.

use config::loader::MissingModule;
use config::source_address::ModuleSource;
use config::version::Version;

use crate::mirror::Mirror;
use crate::shown::public;

/// Returns the end of an error about a module that the executable does not carry: the versions that it carries, if any, and the
/// command that makes a pack with the module. Empty if the module is local, or is carried in a version that the call allows.
pub(crate) fn lacks(carried: &Mirror, call: &MissingModule, program: addrs::Program) -> String {
    let (source, versions) = match &call.source {
        ModuleSource::Local(_) => return String::new(),
        ModuleSource::Remote(remote) => match carried.has(&remote.package) {
            true => return String::new(),
            false => (public(&remote.package), Vec::new()),
        },
        ModuleSource::Registry(module) => (module.package(), carried.versions(module)),
    };
    let constraint = call.version.as_ref().map_or("", |constraint| constraint.text.as_str());
    let allows = |version: &Version| {
        call.version
            .as_ref()
            .is_none_or(|constraint| constraint.allows(version))
    };
    if versions.iter().any(|one| allows(&one.version)) {
        return String::new();
    }
    let versions: Vec<&str> = versions.iter().map(|one| one.text.as_str()).collect();
    let carries = match versions.is_empty() {
        true => format!("This executable carries other modules, but not \"{source}\"."),
        false => format!(
            "This executable carries \"{source}\" in versions that the constraint \"{constraint}\" does not allow: {}.",
            versions.join(", ")
        ),
    };
    let at = if constraint.is_empty() { "" } else { "@" };
    format!(
        "\n\n{carries} Where there is a network, this command makes a pack that carries it (\"help air-gapped\"):\n  {} pack \
         -out=FILE \"-module={source}{at}{constraint}\"",
        program.command
    )
}
