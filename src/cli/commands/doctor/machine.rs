//! Checks of the program itself, the CLI configuration, plugin directories and proxies.

use std::fs;
use std::path::Path;

use addrs::program::Mode;
use files::io_reason;
use packages::cli_config::{self, Source};
use system::files::MetadataExt as _;

use super::Findings;
use crate::process;
use crate::session::Session;

/// Checks everything that depends on the machine and the user, not on the working directory.
pub(super) fn check(session: &Session, found: &mut Findings) {
    executable(session, found);
    configuration(session, found);
    directories(session, found);
    proxies(session, found);
}

fn executable(session: &Session, found: &mut Findings) {
    let path = &session.builtins.executable;
    match fs::metadata(path) {
        Ok(facts) if system::files::is_program(path, &facts) => found.ok(
            "program",
            format!(
                "Version {}, as {} {}, in {}",
                crate::VERSION,
                Mode::current().tool(),
                crate::core_version(),
                path.display()
            ),
        ),
        Ok(_) => found.problem(
            "program",
            format!(
                "{} must not be executed, so its built-in plugins cannot be started.",
                path.display()
            ),
            format!("Run: chmod +x {}", path.display()),
        ),
        Err(error) => found.problem(
            "program",
            format!(
                "{} is not there any more ({}), so built-in plugins cannot be started.",
                path.display(),
                io_reason(&error)
            ),
            "Install the program again, or start it again if it was replaced just now.",
        ),
    }
    if process::clock_is_unset() {
        found.problem(
            "clock",
            "The clock is set to a time before 1970, and no certificate is valid then.",
            "Set the clock of this machine.",
        );
    }
}

/// Returns the paths of the user's CLI configuration in this mode.
fn paths(session: &Session) -> Option<system::CliPaths> {
    session.env.cli_configuration(Mode::current().paths())
}

fn configuration(session: &Session, found: &mut Findings) {
    const SUBJECT: &str = "CLI configuration";
    // TERRAFORM_CONFIG is the older name, which still has an effect.
    let named = ["TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG"]
        .into_iter()
        .find_map(|name| Some((name, session.env.get(name)?)));
    match named {
        Some((name, path)) if session.original_dir.join(path).is_file() => {
            found.ok(SUBJECT, format!("{path}, which {name} names"));
        }
        Some((name, path)) => found.problem(
            SUBJECT,
            format!("{name} names {path}, which is no file, so there are no settings and no credentials."),
            format!("Create the file, or unset {name}."),
        ),
        None => match paths(session).map(|paths| paths.file) {
            Some(path) if path.is_file() => found.ok(SUBJECT, path.display().to_string()),
            _ => found.ok(SUBJECT, "No file of the user's; the defaults hold"),
        },
    }
    for problem in session.cli_problems.iter().filter(|problem| problem.is_error()) {
        // The detail of a problem with an environment variable begins with the name of the variable.
        let variable = problem.detail.strip_prefix(cli_config::OF_VARIABLE);
        let variable = variable.and_then(|rest| rest.split_once(':'));
        let mend = match variable {
            Some((name, _)) => format!("Correct or unset {name}: until then the setting has its default."),
            None => "Correct the setting: until then it has its default.".to_owned(),
        };
        found.problem(SUBJECT, problem.detail.clone(), mend);
    }
    let credentials = paths(session).map(|paths| paths.directory.join("credentials.tfrc.json"));
    if let Some(path) = credentials
        && let Ok(facts) = fs::metadata(&path)
        && system::files::rights_of_others(&facts) != 0
    {
        found.problem(
            "credentials",
            format!("Other users can read the tokens in {}.", path.display()),
            format!("Run: chmod 600 {}", path.display()),
        );
    }
}

fn directories(session: &Session, found: &mut Findings) {
    let config = &session.cli_config;
    if let Some(dir) = &config.plugin_cache_dir {
        directory(
            found,
            "plugin cache",
            dir,
            match session.env.get("TF_PLUGIN_CACHE_DIR").filter(|dir| !dir.is_empty()) {
                Some(_) => "Create it, or unset TF_PLUGIN_CACHE_DIR.",
                None => "Create it, or take plugin_cache_dir out of the CLI configuration.",
            },
        );
        if let Ok(facts) = fs::metadata(dir)
            // The permission is tested by its mode: doctor changes nothing, so it does not try to write.
            && facts.mode() & 0o222 == 0
        {
            found.problem(
                "plugin cache",
                format!("Nothing can be written to {}.", dir.display()),
                format!("Run: chmod u+w {}", dir.display()),
            );
        }
    }
    for method in config.provider_installation.iter().flatten() {
        match &method.source {
            Source::FilesystemMirror(dir) => directory(
                found,
                "mirror",
                dir,
                "Create it with \"providers mirror\", or correct filesystem_mirror in the CLI configuration.",
            ),
            Source::NetworkMirror(url) => found.ok("mirror", format!("{} (asked only with -network)", hidden(url))),
            Source::OciMirror(template) => found.ok("mirror", format!("{template} (asked only with -network)")),
            Source::Direct => {}
        }
    }
    for (provider, dir) in &config.dev_overrides {
        let before = found.0.len();
        directory(
            found,
            "dev_overrides",
            dir,
            "Build the provider there, or take it out of dev_overrides in the CLI configuration.",
        );
        if let Some(finding) = found.0.get_mut(before) {
            finding.found = format!("{provider}: {}", finding.found);
        }
    }
    let user = paths(session).into_iter().flat_map(|paths| paths.plugins);
    let local = session.working_dir.join("terraform.d/plugins");
    for dir in user.chain([local]).filter(|dir| dir.exists()) {
        directory(found, "plugin directory", &dir, "Make it readable for this user.");
    }
}

/// Checks that a directory exists and can be read.
fn directory(found: &mut Findings, subject: &'static str, dir: &Path, mend: &str) {
    match fs::read_dir(dir) {
        Ok(_) => found.ok(subject, dir.display().to_string()),
        Err(error) => found.problem(
            subject,
            format!("The directory {} cannot be read: {}.", dir.display(), io_reason(&error)),
            mend,
        ),
    }
}

fn proxies(session: &Session, found: &mut Findings) {
    const SUBJECT: &str = "proxy";
    let mut any = false;
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"] {
        let lower = name.to_ascii_lowercase();
        // Upper case takes precedence over lower case, as in Go.
        let values = [session.env.get(name), session.env.get(&lower)];
        let Some(value) = values.iter().flatten().find(|value| !value.is_empty()) else {
            continue;
        };
        any = true;
        if let [Some(a), Some(b)] = values
            && a != b
        {
            found.note(
                SUBJECT,
                format!("{name} and {lower} have different values; programs do not agree on which one counts."),
                "Give both the same value, or unset one of them.",
            );
        }
        let scheme = value.split_once("://").map(|(scheme, _)| scheme);
        let known = |scheme: &str| matches!(scheme, "http" | "https" | "socks5" | "socks5h");
        match scheme {
            Some(scheme) if name != "NO_PROXY" && !known(scheme) => found.problem(
                SUBJECT,
                format!("{name} has the scheme {scheme}, which is not supported for proxies."),
                format!("Set {name} to http://HOST:PORT."),
            ),
            _ => found.ok(SUBJECT, format!("{name} is {}", hidden(value))),
        }
    }
    for name in ["ALL_PROXY", "all_proxy"] {
        if session.env.get(name).is_some() {
            found.note(
                SUBJECT,
                format!("{name} has no effect: neither Terraform nor this program reads it."),
                "Set HTTPS_PROXY and HTTP_PROXY.",
            );
        }
    }
    if !any {
        found.ok(SUBJECT, "None is set; connections are direct");
    }
}

/// Removes user and password from a URL, for display.
pub(super) fn hidden(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}***@{}", &rest[at + 1..]),
        None => format!("{scheme}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(hidden("http://user:p@ss@proxy:8080/x@y"), "http://***@proxy:8080/x@y");
        assert_eq!(hidden("user:pass@proxy"), "***@proxy");
        assert_eq!(hidden("proxy:3128"), "proxy:3128");
    }
}
