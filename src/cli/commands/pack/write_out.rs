//! Writing the configuration of a pack to a directory.

use std::fs;
use std::path::{Path, PathBuf};

use config::files::is_ignored;
use config::values::is_automatic;
use files::{Output, Policy};
use pack::index::{Blob, PackedConfiguration};
use pack::{Pack, PackError};

use super::failed;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

const SUMMARY: &str = "Cannot unpack the configuration";

/// Limit of the files that an error names.
const NAMED: usize = 10;

/// Writes a configuration to a directory, which may have other files. Files with other content are replaced only with `replace`.
pub(super) fn write(session: &Session, pack: &Pack, name: &str, dir: &Path, replace: bool) -> Result<Outcome, Failure> {
    let all = &pack.index().configurations;
    let Some(configuration) = all.iter().find(|one| one.name == name) else {
        let names: Vec<String> = all.iter().map(|one| format!("\"{}\"", one.name)).collect();
        let has = match names.is_empty() {
            true => "no configuration; \"pack -include-config\" makes one that does".to_owned(),
            false => format!("these: {}", names.join(", ")),
        };
        let path = pack.path().display();
        return Err(Failure::new(
            SUMMARY,
            format!("The pack {path} has no configuration \"{name}\". It has {has}."),
        ));
    };
    let plan = match Plan::new(pack, configuration, dir) {
        Ok(plan) => plan,
        Err(error) => return Err(failed(SUMMARY, &error)),
    };
    if !replace && !plan.differ.is_empty() {
        let mut list: Vec<String> = plan
            .differ
            .iter()
            .take(NAMED)
            .map(|path| format!("  - {path}"))
            .collect();
        if plan.differ.len() > NAMED {
            list.push(format!("  - and {} more", plan.differ.len() - NAMED));
        }
        let detail = format!(
            "These files in {} differ from those of the pack:\n{}\n\nNothing was written. The option -replace replaces them.",
            dir.display(),
            list.join("\n")
        );
        return Err(Failure::new(SUMMARY, detail));
    }
    // All conflicts were found before the first write, so a refusal leaves the directory as it was.
    if let Err(error) = plan.carry_out(pack, dir) {
        return Err(failed(SUMMARY, &error));
    }
    let style = session.ui.style();
    let root = dir.join(&configuration.root);
    let done = match plan.write.len() + plan.links.len() {
        0 => "is there already".to_owned(),
        1 => "is complete: 1 file was written".to_owned(),
        count => format!("is complete: {count} files were written"),
    };
    let mut outcome = Outcome::line(style.good(format!("The configuration \"{name}\" in {} {done}.", root.display())));
    let more = others(&root, configuration);
    if !more.is_empty() {
        outcome = outcome.and_line(format!(
            "\nThese configuration files are in {} and not in the pack. They are part of the configuration nevertheless:\n  - {}",
            root.display(),
            more.join("\n  - ")
        ));
    }
    Ok(outcome)
}

/// Files and links to write.
struct Plan<'p> {
    /// Path, content and executable bit of each file.
    write: Vec<(&'p str, &'p Blob, bool)>,
    /// Path and target of each link.
    links: Vec<(&'p str, &'p str)>,
    /// Paths at which the directory has a file or link with other content.
    differ: Vec<&'p str>,
}

impl<'p> Plan<'p> {
    fn new(pack: &'p Pack, configuration: &'p PackedConfiguration, dir: &Path) -> Result<Plan<'p>, PackError> {
        let mut plan = Plan {
            write: Vec::new(),
            links: Vec::new(),
            differ: Vec::new(),
        };
        for file in &configuration.files {
            let Some(blob) = pack.index().blob_of(file) else {
                continue;
            };
            let path = dir.join(&file.path);
            // Links are not followed: a link in place of a file is a difference, even if its target has the
            // right content.
            let there = fs::symlink_metadata(&path);
            if there.as_ref().is_ok_and(fs::Metadata::is_file) && blob.is_content_of(&path)? {
                continue;
            }
            if there.is_ok() {
                plan.differ.push(&file.path);
            }
            plan.write.push((&file.path, blob, file.executable));
        }
        for link in &configuration.links {
            let path = dir.join(&link.path);
            if fs::read_link(&path).is_ok_and(|target| target == Path::new(&link.target)) {
                continue;
            }
            if fs::symlink_metadata(&path).is_ok() {
                plan.differ.push(&link.path);
            }
            plan.links.push((&link.path, &link.target));
        }
        Ok(plan)
    }

    fn carry_out(&self, pack: &Pack, dir: &Path) -> Result<(), PackError> {
        let failed = |path: PathBuf| move |source: std::io::Error| PackError::Write { path, source };
        let directory_of = |path: &Path| match path.parent() {
            Some(parent) => fs::create_dir_all(parent).map_err(failed(parent.to_owned())),
            None => Ok(()),
        };
        for (path, blob, executable) in &self.write {
            let path = dir.join(path);
            directory_of(&path)?;
            // Writing through a link would change a file elsewhere.
            if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
                fs::remove_file(&path).map_err(failed(path.clone()))?;
            }
            let policy = Policy {
                mode: if *executable { 0o777 } else { 0o666 },
                keep_mode: false,
                durable: false,
            };
            let mut out = Output::create(&path, policy).map_err(failed(path.clone()))?;
            pack.copy(blob, &mut out).map_err(|error| error.at(&path))?;
            out.commit().map_err(failed(path.clone()))?;
        }
        for (path, target) in &self.links {
            let path = dir.join(path);
            directory_of(&path)?;
            match fs::symlink_metadata(&path) {
                Ok(meta) if !meta.is_dir() => fs::remove_file(&path).map_err(failed(path.clone()))?,
                _ => {}
            }
            system::files::symlink(target, &path).map_err(failed(path.clone()))?;
        }
        Ok(())
    }
}

/// Returns the configuration and variable files in the directory of the root module that are not from the pack: they would
/// become part of the configuration.
fn others(root: &Path, configuration: &PackedConfiguration) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let prefix = match configuration.root.is_empty() {
        true => String::new(),
        false => format!("{}/", configuration.root),
    };
    let known = |name: &str| {
        let path = format!("{prefix}{name}");
        configuration.files.iter().any(|file| file.path == path)
            || configuration.links.iter().any(|link| link.path == path)
    };
    let counts = |name: &String| (is_configuration(name) || is_automatic(name)) && !known(name);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(counts)
        .collect();
    names.sort();
    names
}

fn is_configuration(name: &str) -> bool {
    config::file_names::is_configuration(name) && !is_ignored(name)
}
