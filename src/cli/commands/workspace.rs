//! `workspace`, and its old name `env`: several states of one configuration.

use std::path::Path;

use files::io_reason;
use serde_json::json;
use state::State;
use stores::backend::{self, Snapshots, Source, StateBackend};
use stores::session::{Backup, Opening, StateSession};
use stores::workspace;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};
use views::json::diagnostics;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, VariableFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::{self, Closing as _};
use crate::workdir;

const DEFAULT: &str = "default";

const LIST_DETAILS: &str = "Lists the workspaces; a star marks the one that is selected.";
const NEW_DETAILS: &str =
    "Creates a workspace, with a state of its own, and selects it. The state is empty unless -state names one.";
const SELECT_DETAILS: &str = "Selects another workspace.";
const DELETE_DETAILS: &str = "Deletes a workspace with its state. One that still has objects is deleted only with -force, and they are forgotten.";

macro_rules! command {
    ($path:literal, $about:literal, $positional:literal, $details:expr, $arguments:ty, $run:expr) => {
        Command {
            path: $path,
            about: $about,
            positional: $positional,
            details: $details,
            declare: flags::declare::<$arguments>,
            refused: &[],
            run: |session, matches| {
                if $path.starts_with("env ") {
                    deprecated(session);
                }
                $run(session, &flags::read::<$arguments>(matches))
            },
        }
    };
}

pub const LIST: Command = command!(
    "workspace list",
    "List workspaces",
    "",
    LIST_DETAILS,
    ListArguments,
    list
);
pub const SHOW: Command = command!(
    "workspace show",
    "Show the name of the current workspace",
    "",
    "Prints the name of the workspace that is selected.",
    ShowArguments,
    show
);
pub const NEW: Command = command!(
    "workspace new",
    "Create a new workspace",
    "NAME",
    NEW_DETAILS,
    NewArguments,
    new
);
pub const SELECT: Command = command!(
    "workspace select",
    "Select a workspace",
    "NAME",
    SELECT_DETAILS,
    SelectArguments,
    select
);
pub const DELETE: Command = command!(
    "workspace delete",
    "Delete a workspace",
    "NAME",
    DELETE_DETAILS,
    DeleteArguments,
    delete
);
pub const ENV_LIST: Command = command!(
    "env list",
    "Old name of workspace list",
    "",
    LIST_DETAILS,
    ListArguments,
    list
);
pub const ENV_NEW: Command = command!(
    "env new",
    "Old name of workspace new",
    "NAME",
    NEW_DETAILS,
    NewArguments,
    new
);
pub const ENV_SELECT: Command = command!(
    "env select",
    "Old name of workspace select",
    "NAME",
    SELECT_DETAILS,
    SelectArguments,
    select
);
pub const ENV_DELETE: Command = command!(
    "env delete",
    "Old name of workspace delete",
    "NAME",
    DELETE_DETAILS,
    DeleteArguments,
    delete
);

struct ListArguments {
    positional: Vec<String>,
    json: bool,
}

impl FromFlags for ListArguments {
    fn read(flags: &mut Flags<'_>) -> ListArguments {
        flags.json_into();
        // The settings of a backend can depend on variables; their values are in the session.
        VariableFlags::read(flags);
        ListArguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Output the workspaces as JSON."),
        }
    }
}

struct ShowArguments;

impl FromFlags for ShowArguments {
    fn read(flags: &mut Flags<'_>) -> ShowArguments {
        // Positional arguments are ignored, as in Terraform.
        flags.positional();
        ShowArguments
    }
}

struct NewArguments {
    lock: LockFlags,
    positional: Vec<String>,
    state: Option<String>,
}

impl FromFlags for NewArguments {
    fn read(flags: &mut Flags<'_>) -> NewArguments {
        flags.json_into();
        VariableFlags::read(flags);
        NewArguments {
            lock: LockFlags::read(flags),
            positional: flags.positional(),
            state: flags.value(
                "state",
                "PATH",
                "A state file whose content is copied into the new workspace.",
            ),
        }
    }
}

struct SelectArguments {
    positional: Vec<String>,
    or_create: bool,
}

impl FromFlags for SelectArguments {
    fn read(flags: &mut Flags<'_>) -> SelectArguments {
        flags.json_into();
        VariableFlags::read(flags);
        SelectArguments {
            positional: flags.positional(),
            or_create: flags.switch(
                "or-create",
                false,
                "Create the workspace if there is none of that name.",
            ),
        }
    }
}

struct DeleteArguments {
    lock: LockFlags,
    positional: Vec<String>,
    force: bool,
}

impl FromFlags for DeleteArguments {
    fn read(flags: &mut Flags<'_>) -> DeleteArguments {
        flags.json_into();
        VariableFlags::read(flags);
        DeleteArguments {
            lock: LockFlags::read(flags),
            positional: flags.positional(),
            force: flags.switch(
                "force",
                false,
                "Delete the workspace even if there are objects in its state.",
            ),
        }
    }
}

/// Warns that an `env` command is the old name of a `workspace` command.
pub fn deprecated(session: &Session) {
    session.message(session.ui.style().yellow(format!(
        "Warning: the \"{} env\" family of commands is deprecated.\n\nThese commands are now called \"workspace\", and do the \
         same under that name.\n",
        session.ui.program.command
    )));
}

/// Backend with the states of all workspaces, and the selected workspace.
struct Workspaces {
    backend: StateBackend,
    selected: String,
}

impl Workspaces {
    /// Determines the backend without checking the selected workspace: if its name is invalid, it must be possible to
    /// select another one.
    fn to_select(session: &Session) -> Result<Workspaces, Failure> {
        match workspace::selected(&session.stores()) {
            Ok(_) => Workspaces::new(session),
            Err(_) => Ok(Workspaces {
                backend: state_session::backend_of_all(session)?,
                selected: String::new(),
            }),
        }
    }

    fn new(session: &Session) -> Result<Workspaces, Failure> {
        let selected = workspace::selected(&session.stores())?;
        // Errors of the configuration are reported here.
        let backend = state_session::location(session)?.backend;
        Ok(Workspaces { backend, selected })
    }

    /// Returns the names of the workspaces, the default one first.
    fn names(&self) -> Result<Vec<String>, Failure> {
        match self.backend.workspaces() {
            Ok(Some(names)) => Ok(names),
            Ok(None) => Err(Failure::from(unsupported(&self.backend))),
            Err(problems) => Err(Failure::from(problems)),
        }
    }
}

fn unsupported(backend: &StateBackend) -> Diagnostic {
    Diagnostic::error(
        "Workspaces not supported",
        format!(
            "The backend \"{}\" has one state only, and no workspaces beside the one called \"default\".",
            backend.ty()
        ),
    )
}

/// Records the selected workspace.
fn remember(session: &Session, name: &str) -> Result<(), Failure> {
    workspace::select(session.env.data_dir(), name).map_err(Failure::from)
}

fn name(args: &[String]) -> Result<&str, Failure> {
    let [name] = args else {
        return Err(Failure::usage(
            "Expected a single argument: NAME.",
            "Give the name of one workspace.",
        ));
    };
    if !workspace::is_name(name) {
        return Err(Failure::new(
            format!("The workspace name \"{name}\" is not allowed"),
            "A name may have only characters that a URL takes as they are: letters, digits, and - _ . ~",
        ));
    }
    Ok(name)
}

fn list(session: &Session, arguments: &ListArguments) -> Result<Outcome, Failure> {
    if !arguments.positional.is_empty() {
        return Err(Failure::usage(
            "Too many command line arguments",
            "To list the workspaces of another directory, use the global -chdir flag.",
        ));
    }
    if arguments.json {
        return Ok(list_json(session));
    }
    let text = list_text(session).unwrap_or_else(Outcome::from);
    Ok(session.with_document(text, || list_json(session)))
}

fn list_text(session: &Session) -> Result<Outcome, Failure> {
    let workspaces = Workspaces::new(session)?;
    let names = workspaces.names()?;
    let mut outcome = Outcome::success().and_unplaced(noted(session, &names));
    for name in names {
        let mark = if name == workspaces.selected { "* " } else { "  " };
        outcome = outcome.and_line(format!("{mark}{name}"));
    }
    Ok(outcome.and_line(""))
}

/// Returns the warnings that are shown with a list of workspaces.
fn noted(session: &Session, names: &[String]) -> Diagnostics {
    let mut notes = Diagnostics::new();
    if session.env.workspace().is_some() {
        notes.push(Diagnostic::warning(
            "The active workspace is overridden",
            "The environment variable TF_WORKSPACE selects this workspace.",
        ));
    }
    if names.is_empty() {
        notes.push(Diagnostic::warning(
            "No workspaces found",
            "Create one with \"workspace new\": until then there is none to work in.",
        ));
    }
    notes
}

/// Returns the JSON document of all workspaces, including diagnostics.
fn list_json(session: &Session) -> Outcome {
    let (project, found) = workdir::read(session);
    // Other errors of the configuration do not concern the workspaces.
    let mut problems: Diagnostics = found.into_iter().filter(state_session::is_refusal).collect();
    let has_errors = problems.has_errors();
    let mut listed = || -> Result<(Vec<String>, String), Diagnostics> {
        let location = backend::selected(&session.stores(), Some(&project.config))?;
        problems.extend(location.backend.take_warnings());
        let names = location
            .backend
            .workspaces()?
            .ok_or_else(|| Diagnostics::from(unsupported(&location.backend)))?;
        Ok((names, location.workspace))
    };
    // A configuration with errors does not determine where its states are.
    let listed = (!has_errors).then(&mut listed);
    let (names, selected) = match listed {
        Some(Ok(listed)) => {
            problems.extend(noted(session, &listed.0));
            listed
        }
        Some(Err(found)) => {
            problems.extend(found);
            (Vec::new(), String::new())
        }
        None => (Vec::new(), String::new()),
    };
    let workspace = |name: &String| {
        let mut out = json!({ "name": name });
        if *name == selected {
            out["is_current"] = true.into();
        }
        out
    };
    let document = json!({
        "format_version": "1.0",
        "workspaces": names.iter().map(workspace).collect::<Vec<_>>(),
        "diagnostics": diagnostics::list(&problems, &project.sources),
    });
    Outcome::document(&document).with_status(u8::from(problems.has_errors()))
}

fn show(session: &Session, _: &ShowArguments) -> Result<Outcome, Failure> {
    Ok(Outcome::line(workspace::selected(&session.stores())?))
}

/// Reports an error if `TF_WORKSPACE` would override the selection.
fn not_overridden(session: &Session, what: &str) -> Result<(), Failure> {
    if session.env.workspace().is_none() {
        return Ok(());
    }
    Err(Failure::new(
        format!("Cannot {what} a workspace while TF_WORKSPACE is set"),
        "The environment variable TF_WORKSPACE selects the workspace, and commands cannot change that. Unset it, or set it to \
         the name you want.",
    ))
}

fn created(session: &Session, name: &str) -> Outcome {
    let style = session.ui.style();
    Outcome::text(format!(
        "{}\n\nThis workspace has a state of its own, so nothing that exists in another one is planned for\nhere.\n",
        style.good(format!("Created and switched to workspace \"{name}\"!"))
    ))
}

fn new(session: &Session, arguments: &NewArguments) -> Result<Outcome, Failure> {
    let name = name(&arguments.positional)?;
    not_overridden(session, "create")?;
    let run = || -> Result<Outcome, Failure> {
        let workspaces = Workspaces::to_select(session)?;
        if workspaces.names()?.iter().any(|n| n == name) {
            return Err(Failure::new(
                format!("Workspace \"{name}\" already exists"),
                "Select it with \"workspace select\".",
            ));
        }
        // The state to copy is read first, so that a wrong path leaves no workspace behind.
        let seed = arguments.state.as_deref().map(|path| seed(session, path)).transpose()?;
        create(session, &workspaces, name)?;
        let mut unlocked = Outcome::success();
        if let Some(seed) = seed {
            let mut opened = open(session, arguments.lock, workspaces.backend.state(name), "workspace-new")?;
            opened.write(&seed)?;
            // The workspace is selected even if the lock cannot be released.
            unlocked = opened.close(Ok(unlocked))?;
        }
        remember(session, name)?;
        Ok(unlocked.with_status(0).and_outcome(created(session, name)))
    };
    run()
}

/// Opens the state of a workspace, without a backup.
fn open<'s>(
    session: &'s Session,
    lock: LockFlags,
    source: Source,
    operation: &str,
) -> Result<StateSession<'s>, Failure> {
    let opening = Opening {
        // These commands create or delete whole states, so there is no changed content that a backup could restore.
        backup: Backup::None,
        ..Opening::new(source, operation, lock.timeout)
    };
    StateSession::open(session.stores(), &opening).map_err(Failure::from)
}

fn create(session: &Session, workspaces: &Workspaces, name: &str) -> Result<(), Failure> {
    let local = match &workspaces.backend {
        StateBackend::Local(local) => local,
        // Opening a workspace of a store creates it.
        StateBackend::Store(store) => {
            return Snapshots::open(store, name, session.state_codec()?)
                .map(drop)
                .map_err(Failure::from);
        }
    };
    let dir = local.others().join(name);
    std::fs::create_dir_all(&dir).map_err(|e| {
        Failure::new(
            "Failed to create the workspace",
            format!("The directory {} cannot be created: {}.", dir.display(), io_reason(&e)),
        )
    })
}

fn seed(session: &Session, path: &str) -> Result<State, Failure> {
    let failed = |detail: String| Failure::new("Failed to read the state to copy", detail);
    if !Path::new(path).exists() {
        return Err(failed(format!("There is no file {path}.")));
    }
    match state::store::read_copy(Path::new(path), &session.state_codec()?) {
        Ok(state) => Ok(state.unwrap_or_default()),
        Err(e) => Err(failed(e.to_string())),
    }
}

fn unknown(name: &str, names: &[String]) -> Failure {
    let hint = did_you_mean(suggest(name, names.iter().map(String::as_str)));
    Failure::new(
        format!("Workspace \"{name}\" doesn't exist."),
        format!("Create it with \"workspace new\", or select it with -or-create.{hint}"),
    )
}

fn select(session: &Session, arguments: &SelectArguments) -> Result<Outcome, Failure> {
    let name = name(&arguments.positional)?;
    not_overridden(session, "select")?;
    let run = || -> Result<Outcome, Failure> {
        let workspaces = Workspaces::to_select(session)?;
        // The name is compared with the selected one before the names are requested: selecting the current
        // workspace needs no access to the backend.
        if workspaces.selected == name {
            return Ok(Outcome::success());
        }
        let names = workspaces.names()?;
        let exists = names.iter().any(|n| n == name);
        if !exists && !arguments.or_create {
            return Err(unknown(name, &names));
        }
        if !exists {
            create(session, &workspaces, name)?;
        }
        remember(session, name)?;
        if !exists {
            return Ok(created(session, name));
        }
        let style = session.ui.style();
        Ok(Outcome::line(style.green(format!("Switched to workspace \"{name}\"."))))
    };
    run()
}

fn delete(session: &Session, arguments: &DeleteArguments) -> Result<Outcome, Failure> {
    let [name] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "Expected a single argument: NAME.",
            "Give the name of one workspace.",
        ));
    };
    let run = || -> Result<Outcome, Failure> {
        let workspaces = Workspaces::new(session)?;
        let names = workspaces.names()?;
        if !names.contains(name) {
            return Err(unknown(name, &names));
        }
        if workspaces.selected == *name {
            return Err(Failure::new(
                format!("Workspace \"{name}\" is your active workspace."),
                "A workspace cannot be deleted while it is selected. Select another one first.",
            ));
        }
        if name == DEFAULT {
            return Err(Failure::new(
                "Cannot delete the default workspace",
                "The workspace \"default\" is always there.",
            ));
        }
        let force = arguments.force;
        let mut opened = open(
            session,
            arguments.lock,
            workspaces.backend.state(name),
            "workspace-delete",
        )?;
        let state = opened.state.take().unwrap_or_default();
        if state.has_resources() && !force {
            return Err(opened.fail(not_empty(name, &state)));
        }
        // The lock is released before the workspace is deleted, because it would be deleted with the workspace.
        opened.unlock()?;
        remove(&workspaces.backend, name)?;
        let style = session.ui.style();
        let mut outcome = Outcome::line(style.green(format!("Deleted workspace \"{name}\"!")));
        if state.has_resources() {
            outcome = outcome.and_line(style.yellow(format!(
                "WARNING: \"{name}\" was non-empty.\nThe objects of the deleted workspace may still exist, but nothing knows of \
                 them\nany more.\n"
            )));
        }
        Ok(outcome)
    };
    run()
}

/// Deletes a workspace with its state.
fn remove(backend: &StateBackend, name: &str) -> Result<(), Failure> {
    match backend {
        StateBackend::Local(local) => {
            let dir = local.others().join(name);
            std::fs::remove_dir_all(&dir).map_err(|e| {
                Failure::new(
                    "Failed to delete the workspace",
                    format!("The directory {} cannot be removed: {}.", dir.display(), io_reason(&e)),
                )
            })
        }
        StateBackend::Store(store) => store.delete(name).map_err(Failure::from),
    }
}

fn not_empty(name: &str, state: &State) -> Failure {
    let all: Vec<String> = state
        .instances()
        .map(|(resource, _, key, _)| format!("\n  - {}", resource.instance(key.clone())))
        .collect();
    Failure::new(
        "Workspace is not empty",
        format!(
            "Workspace \"{name}\" is currently tracking the following resource instances:{}\n\nIf the workspace were deleted, \
             nothing would know of these objects any more, and they would have to be deleted by hand. Destroy them first. To \
             delete the workspace and forget them nevertheless, use the -force option.",
            all.concat()
        ),
    )
}
