//! Repositories that the `git` program fetches, with its configuration, credential helpers and keys.

#![expect(
    clippy::disallowed_methods,
    reason = "git gets the environment of this process, with some variables changed"
)]

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use base64::Engine;
use net::{Url, shown};
use tokio::process::Command;

use super::FetchError;

/// Identifier of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit(pub String);

impl Commit {
    /// Returns the first twelve digits, as people write it.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// Variables that describe the repository that git is working in, for example in a hook. Git would use them for the fetched
/// repository.
const NOT_OURS: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

struct Wanted {
    url: Url,
    reference: Option<String>,
    depth: Option<u32>,
    key: Option<Vec<u8>>,
}

impl Wanted {
    fn parse(url: &Url) -> Result<Wanted, FetchError> {
        let mut wanted = Wanted {
            url: url.clone(),
            reference: None,
            depth: None,
            key: None,
        };
        let mut rest: Vec<(String, String)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (name, value) in url.query_pairs().into_owned() {
            // If an argument is repeated, the first one counts, as in Terraform.
            if matches!(name.as_str(), "ref" | "depth" | "sshkey") && !seen.insert(name.clone()) {
                continue;
            }
            match name.as_str() {
                "ref" => wanted.reference = Some(value).filter(|v| !v.is_empty()),
                "depth" => wanted.depth = value.parse().ok().filter(|d| *d > 0),
                "sshkey" => {
                    // In a query, the plus sign of base64 is decoded as a blank.
                    let text = value.replace(' ', "+");
                    let key = base64::engine::general_purpose::STANDARD.decode(text.trim());
                    wanted.key = Some(key.map_err(|_| FetchError::SshKey)?);
                }
                _ => rest.push((name, value)),
            }
        }
        if rest.is_empty() {
            wanted.url.set_query(None);
        } else {
            wanted.url.query_pairs_mut().clear().extend_pairs(rest);
        }
        match &wanted.reference {
            // git would read such a reference as an option.
            Some(reference) if reference.starts_with('-') => Err(FetchError::Revision(reference.clone())),
            _ => Ok(wanted),
        }
    }

    fn missing(&self, reference: &str) -> FetchError {
        let named = self.depth.is_some();
        // Hexadecimal digits look like a commit, which `--branch` does not accept.
        let hint = if named && reference.len() >= 7 && reference.bytes().all(|b| b.is_ascii_hexdigit()) {
            ". With the argument \"depth\", \"ref\" must be the name of a branch or a tag, or a whole commit that the server gives"
        } else {
            ""
        };
        let kinds = if named {
            "branch or tag"
        } else {
            "branch, tag or commit"
        };
        FetchError::NoRevision {
            repository: shown(&self.url),
            kinds,
            reference: reference.to_owned(),
            hint,
        }
    }
}

/// Clones the repository of an address, with its submodules.
pub(super) async fn fetch(url: &Url, to: &Path) -> Result<(), FetchError> {
    let wanted = Wanted::parse(url)?;
    let key = match &wanted.key {
        None => None,
        Some(key) => {
            // Temporary files are readable by their owner only, as ssh requires of a key.
            let file = tempfile::NamedTempFile::new().and_then(|mut file| file.write_all(key).map(|()| file));
            Some(file.map_err(FetchError::Temporary)?.into_temp_path())
        }
    };
    let ssh = key.as_ref().map(|key| {
        let before = std::env::var("GIT_SSH_COMMAND").ok().filter(|c| !c.is_empty());
        // Options that the user has set for ssh stay in force.
        format!("{} -i '{}'", before.as_deref().unwrap_or("ssh"), key.display())
    });
    let git = |dir: Option<&Path>| {
        let mut command = command(dir);
        if let Some(ssh) = &ssh {
            command.env("GIT_SSH_COMMAND", ssh);
        }
        command
    };

    clone(&git, &wanted, to).await?;
    // With a depth, `clone` has already checked out the reference.
    if let (Some(reference), None) = (&wanted.reference, wanted.depth) {
        checkout(&git, &wanted, reference, to).await?;
    }
    if to.join(".gitmodules").exists() {
        let mut submodules = git(Some(to));
        submodules.args(["submodule", "--quiet", "update", "--init", "--recursive"]);
        if let Some(depth) = wanted.depth {
            submodules.arg("--depth").arg(depth.to_string());
        }
        let done = run(submodules).await?;
        if !done.status.success() {
            return Err(FetchError::Repository {
                action: format!("git could not fetch the submodules of {}", shown(&wanted.url)),
                output: output_text(&done),
            });
        }
    }
    Ok(())
}

/// Clones a repository. With a depth, fetches only this number of commits of the requested branch, tag or commit.
async fn clone(git: &impl Fn(Option<&Path>) -> Command, wanted: &Wanted, to: &Path) -> Result<(), FetchError> {
    let mut clone = git(None);
    clone.args(["clone", "--quiet"]);
    if let Some(depth) = wanted.depth {
        clone.arg("--depth").arg(depth.to_string());
        if let Some(reference) = &wanted.reference {
            clone.arg("--branch").arg(reference);
        }
    }
    // `--` ends the options, since an address could begin with a hyphen.
    clone.arg("--").arg(wanted.url.as_str()).arg(to);
    let cloned = run(clone).await?;
    if !cloned.status.success() {
        let output = output_text(&cloned);
        // The messages are compared without the first letter, whose case differs between messages.
        let no_branch = output.contains("emote branch") && output.contains("not found");
        let failed = FetchError::Repository {
            action: format!("git could not clone {}", shown(&wanted.url)),
            output,
        };
        match (&wanted.reference, wanted.depth) {
            (Some(commit), Some(depth)) if no_branch && is_commit(commit) => {
                shallow(git, wanted, commit, depth, to).await?;
            }
            (Some(reference), _) if no_branch => return Err(wanted.missing(reference)),
            _ => return Err(failed),
        }
    }
    Ok(())
}

async fn checkout(
    git: &impl Fn(Option<&Path>) -> Command,
    wanted: &Wanted,
    reference: &str,
    to: &Path,
) -> Result<(), FetchError> {
    let mut checkout = git(Some(to));
    checkout.args(["checkout", "--quiet", reference]);
    let done = run(checkout).await?;
    if done.status.success() {
        return Ok(());
    }
    // git has one exit status for all failures, so they are distinguished by its output.
    let output = output_text(&done);
    Err(
        if output.contains("did not match any") || output.contains("reference is not a tree") {
            wanted.missing(reference)
        } else {
            FetchError::Repository {
                action: format!("git could not check out \"{reference}\" of {}", shown(&wanted.url)),
                output,
            }
        },
    )
}

/// Returns true if a reference is a whole commit. `git clone --branch` takes names of branches and tags only.
fn is_commit(reference: &str) -> bool {
    matches!(reference.len(), 40 | 64) && reference.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Fetches one commit and a number of commits before it. Not every server provides commits that no branch or tag refers to.
async fn shallow(
    git: &impl Fn(Option<&Path>) -> Command,
    wanted: &Wanted,
    commit: &str,
    depth: u32,
    to: &Path,
) -> Result<(), FetchError> {
    let mut init = git(None);
    init.args(["init", "--quiet", "--"]).arg(to);
    let mut fetch = git(Some(to));
    fetch
        .args(["fetch", "--quiet", "--no-tags", "--depth"])
        .arg(depth.to_string())
        .arg("--")
        .arg(wanted.url.as_str())
        .arg(commit);
    let mut remote = git(Some(to));
    // Submodules with relative addresses are resolved relative to the remote `origin`.
    remote.args(["remote", "add", "origin", wanted.url.as_str()]);
    let mut checkout = git(Some(to));
    checkout.args(["checkout", "--quiet", "--detach", "FETCH_HEAD"]);
    for (command, step) in [
        (init, "create a repository for"),
        (remote, "create a repository for"),
        (fetch, "fetch a commit of"),
        (checkout, "check out a commit of"),
    ] {
        let done = run(command).await?;
        if done.status.success() {
            continue;
        }
        let output = output_text(&done);
        // An incomplete repository would prevent another attempt.
        drop(std::fs::remove_dir_all(to));
        let refused = [
            "not our ref",
            "unadvertised object",
            "couldn't find remote ref",
            "no such remote ref",
        ];
        return Err(match refused.iter().any(|text| output.contains(text)) {
            true => wanted.missing(commit),
            false => FetchError::Repository {
                action: format!("git could not {step} {}", shown(&wanted.url)),
                output,
            },
        });
    }
    Ok(())
}

fn command(dir: Option<&Path>) -> Command {
    let mut command = Command::new("git");
    for name in NOT_OURS {
        command.env_remove(name);
    }
    // Several commands run at the same time, so none may prompt. Users can allow it by setting the variable themselves.
    if std::env::var_os("GIT_TERMINAL_PROMPT").is_none() {
        command.env("GIT_TERMINAL_PROMPT", "0");
    }
    // Errors are recognised by their English text.
    command.env("LC_ALL", "C");
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Git must not outlive an installation that was interrupted.
        .kill_on_drop(true);
    command
}

async fn run(mut command: Command) -> Result<Output, FetchError> {
    match command.output().await {
        Ok(output) => Ok(output),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(FetchError::NoProgram {
            repository: "git",
            program: "git",
        }),
        Err(source) => Err(FetchError::Program { program: "git", source }),
    }
}

/// Returns the errors that git printed, in one line.
fn output_text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim().trim_start_matches("fatal: ").trim_start_matches("error: "))
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        output.status.to_string()
    } else {
        lines.join("; ").trim_end_matches('.').to_owned()
    }
}

/// Returns the checked-out commit, if the directory is the top of a repository's working tree.
pub(super) async fn commit(dir: &Path) -> Option<Commit> {
    // In a directory without a repository, git would answer for a repository around it.
    if !dir.join(".git").exists() {
        return None;
    }
    answer(dir, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
        .await
        .map(Commit)
}

pub(super) async fn is_tag(dir: &Path, name: &str) -> bool {
    answer(dir, ["rev-parse", "--verify", "--quiet", &format!("refs/tags/{name}")])
        .await
        .is_some()
}

async fn answer<A: AsRef<OsStr>>(dir: &Path, args: impl IntoIterator<Item = A>) -> Option<String> {
    let mut command = command(Some(dir));
    command.args(args);
    let output = command.output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_address() {
        let parse = |text: &str| Wanted::parse(&Url::parse(text).unwrap());
        let wanted = parse("https://example.com/x.git?ref=v1&depth=2&sshkey=aGk=&a=b").unwrap();
        assert_eq!(wanted.url.as_str(), "https://example.com/x.git?a=b");
        assert_eq!((wanted.reference.as_deref(), wanted.depth), (Some("v1"), Some(2)));
        assert_eq!(wanted.key.as_deref(), Some(&b"hi"[..]));
        assert!(parse("https://example.com/x.git?ref=--upload-pack=x").is_err());
        let twice = parse("https://example.com/x.git?ref=v1&ref=v2&depth=1&depth=5").unwrap();
        assert_eq!((twice.reference.as_deref(), twice.depth), (Some("v1"), Some(1)));
        assert_eq!(parse("https://example.com/x.git?ref=&ref=v2").unwrap().reference, None);
        assert!(parse("https://example.com/x.git?sshkey=%21").is_err());
    }
}
