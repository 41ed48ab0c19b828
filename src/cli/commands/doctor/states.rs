//! Checks of the working directory: configuration, installed providers, state with lock, and leftovers of crashes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use files::io_reason;
use stores::backend::{self, StateBackend};
use stores::session::ERRORED_STATE;
use syntax::Severity;

use super::Findings;
use crate::session::Session;
use crate::workdir;

/// Depth of package directories: host, namespace, type, version, platform.
const DEPTH: usize = 5;

/// Checks the working directory; returns the hosts of its providers.
pub(super) fn check(session: &Session, found: &mut Findings) -> BTreeSet<String> {
    let (project, problems) = workdir::read_as_installed(session);
    let root = &project.config.root.module;
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    match (errors, root.files.is_empty()) {
        (0, true) => found.note(
            "configuration",
            "This directory has no configuration.",
            "Change to the directory that has it, or use -chdir.",
        ),
        (0, false) => found.ok("configuration", "It can be read"),
        (n, _) => found.problem(
            "configuration",
            format!("It has {n} errors."),
            format!("Run: {} validate", session.ui.program.command),
        ),
    }
    packages(session, found);
    match backend::selected(&session.stores(), Some(&project.config)) {
        Ok(location) => match &location.backend {
            StateBackend::Local(local) => local_state(session, &local.state(&location.workspace), found),
            StateBackend::Store(_) => found.ok(
                "state",
                format!(
                    "In the backend \"{}\", workspace \"{}\"",
                    location.backend.ty(),
                    location.workspace
                ),
            ),
        },
        Err(problems) => {
            let first = problems.iter().next();
            found.problem(
                "state",
                first.map_or_else(String::new, |problem| {
                    format!("{}: {}", problem.summary, problem.detail)
                }),
                format!("Run: {} init", session.ui.program.command),
            );
        }
    }
    leftovers(session, found);
    let nodes = project.config.nodes();
    let required = nodes.iter().flat_map(|node| node.module.required_providers.values());
    required.map(|required| required.provider.host.to_string()).collect()
}

/// Reports links to packages that no longer exist.
fn packages(session: &Session, found: &mut Findings) {
    let dir = Path::new(session.env.data_dir()).join("providers");
    let mut broken = Vec::new();
    dangling(&dir, DEPTH, &mut broken);
    if broken.is_empty() {
        if dir.is_dir() {
            found.ok("installed providers", dir.display().to_string());
        }
        return;
    }
    for link in broken {
        found.problem(
            "installed providers",
            format!("{} leads to a package that is not there any more.", link.display()),
            format!("Run: {} init", session.ui.program.command),
        );
    }
}

fn dangling(dir: &Path, depth: usize, broken: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        match fs::metadata(&path) {
            Ok(facts) if facts.is_dir() && depth > 1 => dangling(&path, depth - 1, broken),
            Err(_) if path.is_symlink() => broken.push(path),
            _ => {}
        }
    }
    broken.sort();
}

fn local_state(session: &Session, path: &Path, found: &mut Findings) {
    let command = session.ui.program.command;
    const SUBJECT: &str = "state";
    let shown = path.display();
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            found.ok(SUBJECT, format!("{shown} is not there yet"));
            return;
        }
        Err(error) => {
            found.problem(
                SUBJECT,
                format!("{shown} cannot be read: {}.", io_reason(&error)),
                "Make it readable.",
            );
            return;
        }
    };
    let read = session.state_codec().map_err(|problems| {
        let first = problems.iter().find(|problem| problem.is_error());
        first.map_or_else(String::new, |problem| {
            format!("{}: {}", problem.summary, problem.detail.trim_end_matches('.'))
        })
    });
    match read.and_then(|codec| state::store::read_copy(path, &codec).map_err(|e| e.to_string())) {
        Ok(_) => found.ok(SUBJECT, shown.to_string()),
        Err(error) => found.problem(
            SUBJECT,
            format!("{shown} cannot be read: {error}."),
            format!("Look at {shown}.backup, and restore the newest copy that is whole."),
        ),
    }
    let mode = system::files::rights_of_others(&facts);
    if mode & 0o022 != 0 {
        found.problem(
            SUBJECT,
            format!("Other users can write {shown}."),
            format!("Run: chmod go-w {shown}"),
        );
    }
    if mode & 0o044 != 0 {
        found.note(
            SUBJECT,
            format!("Other users can read {shown}, which may hold secrets."),
            format!("Run: chmod go-r {shown}"),
        );
    }
    if let Some(held) = state::lock::read_info(path) {
        found.note(
            "lock",
            format!(
                "{} is locked, or was when a command was killed: {} by {} at {}, ID {}.",
                shown, held.operation, held.who, held.created, held.id
            ),
            format!(
                "Wait for that command. If it does not run any more, run: {} force-unlock {}",
                command, held.id
            ),
        );
    } else {
        found.ok("lock", "Nobody has locked the state");
    }
    let journal = state::journal::path_of(path);
    if journal.exists() {
        found.note(
            "journal",
            format!(
                "A run was killed, or is running: {} has results that are not in the state file.",
                journal.display()
            ),
            format!(
                "Run: {} plan. The next command that locks the state takes the results over.",
                command
            ),
        );
    }
}

/// Reports files that failed commands have left in the working directory.
fn leftovers(session: &Session, found: &mut Findings) {
    if Path::new(ERRORED_STATE).exists() {
        found.problem(
            "leftovers",
            format!("{ERRORED_STATE} is a state that could not be saved."),
            format!(
                "Run: {} state push {ERRORED_STATE}, and delete the file when that has succeeded.",
                session.ui.program.command
            ),
        );
    }
    let Ok(entries) = fs::read_dir(&session.working_dir) else {
        return;
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    for name in names {
        if name.starts_with("monoform-crash-") || name == "crash.log" {
            found.note(
                "leftovers",
                format!("{name} is the report of a crash."),
                "Report it to those who maintain the program, and delete it.",
            );
        // Only unused journals are counted: the name of a journal in use begins with a dot.
        } else if name.ends_with(".journal") && !name.starts_with('.') {
            found.problem(
                "leftovers",
                format!("{name} has results of a killed run that do not belong to the state that is here."),
                "Restore its state, and rename the file to the journal of that state. Otherwise import the objects that it names.",
            );
        }
    }
}
