//! Configurations in packs: whole directories, without files of earlier runs and without secrets.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use config::files::{clean, join};
use config::model::ModuleNode;
use pack::write::{ConfigurationContents, Tree, tree};
use tfe::ignore::{self, Rules};

use super::failed;
use super::gathered::Gathered;
use crate::outcome::Failure;
use crate::session::Session;
use crate::workdir::Project;

const SUMMARY: &str = "Cannot pack the configuration";

/// Number of bytes that are read to identify a file.
const HEAD: u64 = 4096;

/// Adds the configuration in the working directory, with the local modules that it calls outside of it. `outer` is the directory
/// in which the command was called.
pub(super) fn add(session: &Session, outer: &Path, project: &Project, out: &mut Gathered) -> Result<(), Failure> {
    let not_readable = |path: &Path, error: &std::io::Error| {
        let reason = files::io_reason(error);
        Failure::new(SUMMARY, format!("{} cannot be read: {reason}.", path.display()))
    };
    // Links are resolved, so that each directory has one path.
    let here = system::files::canonicalize(&session.working_dir);
    let here = here.map_err(|error| not_readable(&session.working_dir, &error))?;
    let outer = system::files::canonicalize(outer).unwrap_or_else(|_| outer.to_owned());
    let name = name_of(&outer, &here);
    if out.configurations.iter().any(|one| one.name == name) {
        return Err(Failure::new(
            SUMMARY,
            format!(
                "Two of the configurations are named \"{name}\". Run the command where their directories have different paths."
            ),
        ));
    }
    let rules = match std::fs::read_to_string(here.join(ignore::FILE)) {
        Ok(text) => Rules::parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Rules::parse(""),
        Err(error) => return Err(not_readable(&here.join(ignore::FILE), &error)),
    };
    let mut local = BTreeSet::new();
    outside(
        &project.config.root,
        &join(session.env.data_dir(), "modules"),
        &mut local,
    );
    // A pack stores everything relative to the directory that contains all modules.
    let up = local.iter().map(|dir| steps_up(dir)).max().unwrap_or_default();
    let Some(top) = here.ancestors().nth(up) else {
        return Err(Failure::new(
            SUMMARY,
            "A local module is outside of all directories.".to_owned(),
        ));
    };
    let root = relative(&here, top);
    let mut dirs = vec![here.clone()];
    // A directory inside another one is packed with it.
    for dir in &local {
        let dir = PathBuf::from(join(&here.to_string_lossy(), dir));
        if !dirs.iter().any(|other| dir.starts_with(other)) {
            dirs.retain(|other| *other == here || !other.starts_with(&dir));
            dirs.push(dir);
        }
    }
    let packed = Packed {
        root: &here,
        top,
        data_dir: clean(session.env.data_dir()),
        rules: &rules,
    };
    let whole = packed.trees(session, &dirs)?;
    out.configurations.push(ConfigurationContents {
        name,
        root,
        tree: whole,
    });
    Ok(())
}

/// Returns the path of a directory relative to one above it, as a pack names it.
fn relative(dir: &Path, top: &Path) -> String {
    dir.strip_prefix(top).unwrap_or(dir).to_string_lossy().into_owned()
}

struct Packed<'p> {
    /// Directory of the root module.
    root: &'p Path,
    /// Directory that contains all modules, to which paths are relative.
    top: &'p Path,
    data_dir: String,
    /// Rules of the root module's `.terraformignore`.
    rules: &'p Rules,
}

impl Packed<'_> {
    /// Lists the files and links of these directories. Files that are left out of the pack are reported.
    fn trees(&self, session: &Session, dirs: &[PathBuf]) -> Result<Tree<'static>, Failure> {
        let mut whole = Tree::default();
        let left = RefCell::new(Vec::new());
        for dir in dirs {
            // The rules and the data directory are those of the root module.
            let is_root = dir == self.root;
            let leave = |path: &str, is_dir: bool| {
                if is_root && is_dir && path == self.data_dir {
                    return true;
                }
                if is_root && is_ignored(self.rules, path, is_dir) {
                    return true;
                }
                match left_out(&dir.join(path), is_dir) {
                    Leave::No => false,
                    Leave::Silently => true,
                    Leave::Because(reason) => {
                        left.borrow_mut()
                            .push(format!("{}: it is {reason}", dir.join(path).display()));
                        true
                    }
                }
            };
            let (part, links) = tree(dir, &leave).map_err(|error| failed(SUMMARY, &error))?;
            let prefix = relative(dir, self.top);
            let below = |path: String| match prefix.is_empty() {
                true => path,
                false => format!("{prefix}/{path}"),
            };
            whole.files.extend(part.files.into_iter().map(|mut file| {
                file.path = below(file.path);
                file
            }));
            whole.links.extend(part.links.into_iter().map(|mut link| {
                link.path = below(link.path);
                link
            }));
            let links = links.into_iter();
            left.borrow_mut().extend(links.map(|link| {
                format!(
                    "{}: it is a link that leads out of the directory",
                    dir.join(link).display()
                )
            }));
        }
        // The order of directories must not change the bytes of a pack.
        whole.files.sort_by(|a, b| a.path.cmp(&b.path));
        whole.links.sort();
        for line in left.into_inner() {
            session.ui.line(format!("- Leaving out {line}"));
        }
        Ok(whole)
    }
}

/// Returns the name of the configuration in a directory: its path relative to where the command was called, or its last part.
fn name_of(outer: &Path, here: &Path) -> String {
    let inside = here
        .strip_prefix(outer)
        .ok()
        .filter(|path| !path.as_os_str().is_empty());
    let name = inside.map(Path::as_os_str).or(here.file_name());
    name.map_or_else(
        || "configuration".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn steps_up(dir: &str) -> usize {
    dir.split('/').take_while(|step| *step == "..").count()
}

/// Collects the directories of local modules outside the working directory, relative to it. Installed modules are not local.
fn outside(node: &ModuleNode, installed: &str, out: &mut BTreeSet<String>) {
    for child in node.children.values() {
        let dir = child.source_dir();
        if steps_up(dir) > 0 && !Path::new(dir).starts_with(installed) {
            out.insert(dir.to_owned());
        }
        outside(child, installed, out);
    }
}

fn is_ignored(rules: &Rules, path: &str, is_dir: bool) -> bool {
    match is_dir {
        true => rules.verdict(&format!("{path}/")).below_too,
        false => rules.verdict(path).excluded,
    }
}

/// Decision whether a file is packed, left out silently, or left out with a report.
#[derive(Debug, PartialEq, Eq)]
enum Leave {
    No,
    Silently,
    Because(&'static str),
}

/// Decides whether a file or directory is left out for reasons other than the rules in `.terraformignore`.
fn left_out(path: &Path, is_dir: bool) -> Leave {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if is_dir {
        return match name {
            ".terraform" | ".git" | ".hg" | ".svn" => Leave::Silently,
            "terraform.tfstate.d" => Leave::Because("a directory of states"),
            _ => Leave::No,
        };
    }
    if name.ends_with(".tfstate") || name.contains(".tfstate.") || (name.starts_with('.') && name.ends_with(".journal"))
    {
        return Leave::Because("a state, or belongs to one");
    }
    if name == "crash.log" || (name.starts_with("crash.") && name.ends_with(".log")) {
        return Leave::Silently;
    }
    if matches!(
        name,
        ".terraformrc" | "terraform.rc" | "credentials.tfrc.json" | ".netrc"
    ) {
        return Leave::Because("a file of credentials");
    }
    let Ok(head) = head(path) else {
        // The error is reported when the file is packed.
        return Leave::No;
    };
    let text = String::from_utf8_lossy(&head);
    let has = |part: &str| text.contains(part);
    // State files are recognized by their content, since copies can have any name.
    if has("\"lineage\"") && has("\"serial\"") && has("\"terraform_version\"") {
        return Leave::Because("a state");
    }
    // The name of the first entry of a ZIP archive is at offset 30.
    let entry = head.get(30..).unwrap_or_default();
    if head.starts_with(b"PK\x03\x04")
        && [&b"tfplan"[..], b"tfstate", b"tfconfig/"]
            .iter()
            .any(|name| entry.starts_with(name))
    {
        return Leave::Because("a saved plan");
    }
    if has("PRIVATE KEY-----") {
        return Leave::Because("a private key; copy it to its destination by other means");
    }
    if pack::is_made_by_pack(path) {
        return Leave::Silently;
    }
    Leave::No
}

fn head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if path.is_file() {
        File::open(path)?.take(HEAD).read_to_end(&mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_plans_and_keys_stay_out_by_name_or_content() {
        let dir = tempfile::tempdir().unwrap();
        let check = |name: &str, content: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            left_out(&path, false)
        };
        for (name, content) in [
            ("terraform.tfstate", ""),
            ("terraform.tfstate.backup", ""),
            (".terraform.tfstate.lock.info", ""),
            (
                "prod.json",
                "{\"version\": 4, \"terraform_version\": \"1\", \"serial\": 1, \"lineage\": \"x\"}",
            ),
            ("plan", "PK\u{3}\u{4}aaaaaaaaaaaaaaaaaaaaaaaaaatfplan"),
            ("key.pem", "-----BEGIN EC PRIVATE KEY-----"),
        ] {
            assert!(matches!(check(name, content), Leave::Because(_)), "{name}");
        }
        assert_eq!(check("crash.log", ""), Leave::Silently);
        assert_eq!(left_out(&dir.path().join(".terraform"), true), Leave::Silently);
        for name in [
            "main.tf",
            "prod.tfvars",
            ".terraform.lock.hcl",
            "a.tftest.hcl",
            "archive.zip",
        ] {
            assert_eq!(check(name, "PK\u{3}\u{4}"), Leave::No, "{name}");
        }
    }

    #[test]
    fn configurations_are_named_by_their_directories() {
        for (outer, here, name) in [
            ("/a/b", "/a/b", "b"),
            ("/a/b", "/a/b/envs/prod", "envs/prod"),
            ("/a/b", "/c", "c"),
            ("/", "/", "configuration"),
        ] {
            assert_eq!(name_of(Path::new(outer), Path::new(here)), name);
        }
        assert_eq!(steps_up("../../a"), 2);
        assert_eq!(steps_up("a"), 0);
    }
}
