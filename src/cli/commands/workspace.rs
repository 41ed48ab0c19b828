//! `workspace`, and `env`, as it was called before: several states of one configuration.

use std::path::Path;

use files::io_reason;
use serde_json::json;
use state::State;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::json::diagnostics;
use views::program;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::LockFlags;
use crate::backend::{Place, Source, select};
use crate::commands::Command;
use crate::session::{Session, Status};
use crate::state_session::{self, Backup, Opening, StateSession};
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
        ListArguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Output the workspaces as JSON."),
        }
    }
}

struct ShowArguments;

impl FromFlags for ShowArguments {
    fn read(flags: &mut Flags<'_>) -> ShowArguments {
        // More arguments have no effect.
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

/// What is said before every `env` command.
pub fn deprecated(session: &Session) {
    session.ui.line(session.ui.style().yellow(format!(
        "Warning: the \"{} env\" family of commands is deprecated.\n\nThese commands are now called \"workspace\", and do the \
         same under that name.\n",
        program::command()
    )));
}

/// Where the states of workspaces are.
struct Places {
    place: Place,
    selected: String,
}

impl Places {
    /// The places, whatever workspace is selected: it may have a name that no workspace can have, which another one is selected
    /// for.
    fn to_select(session: &Session) -> Result<Places, Status> {
        match workdir::workspace(session) {
            Ok(_) => Places::new(session),
            Err(_) => Ok(Places {
                place: state_session::place_of_all(session)?,
                selected: String::new(),
            }),
        }
    }

    fn new(session: &Session) -> Result<Places, Status> {
        let shown = |problems: Diagnostics| {
            session.show(&problems, &SourceMap::default());
            1
        };
        let selected = workdir::workspace(session).map_err(shown)?;
        // What refuses this version, or cannot be used, is told by this.
        let place = state_session::place(session)?.place;
        Ok(Places { place, selected })
    }

    /// All names, the default first.
    fn names(&self, session: &Session) -> Result<Vec<String>, Status> {
        match self.place.workspaces() {
            Ok(Some(names)) => Ok(names),
            Ok(None) => {
                session.show(&unsupported(&self.place).into(), &SourceMap::default());
                Err(1)
            }
            Err(problems) => {
                session.show(&problems, &SourceMap::default());
                Err(1)
            }
        }
    }
}

fn unsupported(place: &Place) -> Diagnostic {
    Diagnostic::error(
        "Workspaces not supported",
        format!(
            "The backend \"{}\" has one state only, and no workspaces beside the one called \"default\".",
            place.ty()
        ),
    )
}

/// Writes down which workspace is selected.
fn remember(session: &Session, name: &str) -> Result<(), Status> {
    select::remember(session, name).map_err(|problems| {
        session.show(&problems, &SourceMap::default());
        1
    })
}

fn name<'a>(session: &Session, args: &'a [String]) -> Result<Result<&'a str, Status>, UsageError> {
    let [name] = args else {
        return Err(UsageError::new(
            "Expected a single argument: NAME.",
            "Give the name of one workspace.",
        ));
    };
    if !workdir::is_workspace_name(name) {
        let status = session.fail(
            format!("The workspace name \"{name}\" is not allowed"),
            "A name may have only characters that a URL takes as they are: letters, digits, and - _ . ~",
        );
        return Ok(Err(status));
    }
    Ok(Ok(name))
}

fn list(session: &Session, arguments: &ListArguments) -> Result<Status, UsageError> {
    if !arguments.positional.is_empty() {
        return Err(UsageError::new(
            "Too many command line arguments",
            "To list the workspaces of another directory, use the global -chdir flag.",
        ));
    }
    if arguments.json {
        return Ok(list_json(session));
    }
    let run = || -> Result<Status, Status> {
        let places = Places::new(session)?;
        let names = places.names(session)?;
        session.show(&noted(session, &names), &SourceMap::default());
        for name in names {
            let mark = if name == places.selected { "* " } else { "  " };
            session.ui.line(format!("{mark}{name}"));
        }
        session.ui.line("");
        Ok(0)
    };
    Ok(run().unwrap_or_else(|status| status))
}

/// What is said beside a list of workspaces.
fn noted(session: &Session, names: &[String]) -> Diagnostics {
    let mut notes = Diagnostics::new();
    if session.env.workspace().is_some() {
        notes.push(Diagnostic::warning(
            "The active workspace is overridden",
            "It is the one that the environment variable TF_WORKSPACE names.",
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

/// The document of all workspaces, in which problems are, too.
fn list_json(session: &Session) -> Status {
    let (project, found) = workdir::read(session);
    let mut problems: Diagnostics = found.into_iter().filter(state_session::is_refusal).collect();
    let mut listed = || -> Result<(Vec<String>, String), Diagnostics> {
        if problems.has_errors() {
            return Err(Diagnostics::new());
        }
        let place = workdir::state_place(session, Some(&project.config))?;
        problems.extend(place.place.take_warnings());
        let names = place
            .place
            .workspaces()?
            .ok_or_else(|| Diagnostics::from(unsupported(&place.place)))?;
        Ok((names, place.workspace))
    };
    let listed = listed();
    let (names, selected) = match listed {
        Ok(listed) => {
            problems.extend(noted(session, &listed.0));
            listed
        }
        Err(found) => {
            problems.extend(found);
            (Vec::new(), String::new())
        }
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
    session.ui.exact_line(cty::json::to_text(&document, Some(2)));
    u8::from(problems.has_errors())
}

fn show(session: &Session, _: &ShowArguments) -> Result<Status, UsageError> {
    match workdir::workspace(session) {
        Ok(name) => {
            session.ui.line(name);
            Ok(0)
        }
        Err(problems) => {
            session.show(&problems, &SourceMap::default());
            Ok(1)
        }
    }
}

/// What `TF_WORKSPACE` says cannot be changed by a command.
fn overridden(session: &Session, what: &str) -> Option<Status> {
    session.env.workspace()?;
    Some(session.fail(
        format!("Cannot {what} a workspace while TF_WORKSPACE is set"),
        "The environment variable TF_WORKSPACE says which workspace is selected, whatever commands do. Unset it, or set it to \
         the name you want.",
    ))
}

fn created(session: &Session, name: &str) {
    let style = session.ui.style();
    session.ui.out(format!(
        "{}\n\nThis workspace has a state of its own, so nothing that exists in another one is planned for\nhere.\n",
        style.good(format!("Created and switched to workspace \"{name}\"!"))
    ));
}

fn new(session: &Session, arguments: &NewArguments) -> Result<Status, UsageError> {
    let name = match name(session, &arguments.positional)? {
        Ok(name) => name,
        Err(status) => return Ok(status),
    };
    if let Some(status) = overridden(session, "create") {
        return Ok(status);
    }
    let run = || -> Result<Status, Status> {
        let places = Places::to_select(session)?;
        if places.names(session)?.iter().any(|n| n == name) {
            return Err(session.fail(
                format!("Workspace \"{name}\" already exists"),
                "Select it with \"workspace select\".",
            ));
        }
        // The state to copy is read before anything is made, so that a wrong path leaves nothing behind.
        let seed = arguments.state.as_deref().map(|path| seed(session, path)).transpose()?;
        create(session, &places, name)?;
        if let Some(seed) = seed {
            let mut opened = open(session, arguments.lock, places.place.state(name), "workspace-new")?;
            opened.write(&seed)?;
            let _ = opened.close(0);
        }
        remember(session, name)?;
        created(session, name);
        Ok(0)
    };
    Ok(run().unwrap_or_else(|status| status))
}

/// Opens the state of a workspace, which gets no backup.
fn open<'s>(
    session: &'s Session,
    lock: LockFlags,
    source: Source,
    operation: &str,
) -> Result<StateSession<'s>, Status> {
    let opening = Opening {
        backup: Backup::None,
        ..Opening::new(source, operation, lock.timeout)
    };
    StateSession::open(session, &opening).map_err(|problems| {
        session.show(&problems, &SourceMap::default());
        1
    })
}

fn create(session: &Session, places: &Places, name: &str) -> Result<(), Status> {
    let local = match &places.place {
        Place::Local(local) => local,
        // To open a workspace of a store is to create it.
        Place::Store(store) => {
            return store.open(name).map(drop).map_err(|problems| {
                session.show(&problems, &SourceMap::default());
                1
            });
        }
    };
    let dir = local.others().join(name);
    std::fs::create_dir_all(&dir).map_err(|e| {
        session.fail(
            "Failed to create the workspace",
            format!("The directory {} cannot be created: {}.", dir.display(), io_reason(&e)),
        )
    })
}

fn seed(session: &Session, path: &str) -> Result<State, Status> {
    let failed = |detail: String| session.fail("Failed to read the state to copy", detail);
    if !Path::new(path).exists() {
        return Err(failed(format!("There is no file {path}.")));
    }
    match state::store::read_copy(Path::new(path)) {
        Ok(state) => Ok(state.unwrap_or_default()),
        Err(e) => Err(failed(e.to_string())),
    }
}

fn unknown(session: &Session, name: &str, names: &[String]) -> Status {
    let hint = did_you_mean(suggest(name, names.iter().map(String::as_str)));
    session.fail(
        format!("Workspace \"{name}\" doesn't exist."),
        format!("Create it with \"workspace new\", or select it with -or-create.{hint}"),
    )
}

fn select(session: &Session, arguments: &SelectArguments) -> Result<Status, UsageError> {
    let name = match name(session, &arguments.positional)? {
        Ok(name) => name,
        Err(status) => return Ok(status),
    };
    if let Some(status) = overridden(session, "select") {
        return Ok(status);
    }
    let run = || -> Result<Status, Status> {
        let places = Places::to_select(session)?;
        if places.selected == name {
            return Ok(0);
        }
        let names = places.names(session)?;
        let exists = names.iter().any(|n| n == name);
        if !exists && !arguments.or_create {
            return Err(unknown(session, name, &names));
        }
        if !exists {
            create(session, &places, name)?;
        }
        remember(session, name)?;
        if exists {
            let style = session.ui.style();
            session
                .ui
                .line(style.green(format!("Switched to workspace \"{name}\".")));
        } else {
            created(session, name);
        }
        Ok(0)
    };
    Ok(run().unwrap_or_else(|status| status))
}

fn delete(session: &Session, arguments: &DeleteArguments) -> Result<Status, UsageError> {
    let [name] = arguments.positional.as_slice() else {
        return Err(UsageError::new(
            "Expected a single argument: NAME.",
            "Give the name of one workspace.",
        ));
    };
    let run = || -> Result<Status, Status> {
        let places = Places::new(session)?;
        let names = places.names(session)?;
        if !names.contains(name) {
            return Err(unknown(session, name, &names));
        }
        if places.selected == *name {
            return Err(session.fail(
                format!("Workspace \"{name}\" is your active workspace."),
                "A workspace cannot be deleted while it is selected. Select another one first.",
            ));
        }
        if name == DEFAULT {
            return Err(session.fail(
                "Cannot delete the default workspace",
                "The workspace \"default\" is always there.",
            ));
        }
        let force = arguments.force;
        let mut opened = open(session, arguments.lock, places.place.state(name), "workspace-delete")?;
        let state = opened.state.take().unwrap_or_default();
        if state.has_resources() && !force {
            return Err(opened.close(not_empty(session, name, &state)));
        }
        // The lock is on what goes.
        if opened.close(0) != 0 {
            return Err(1);
        }
        remove(session, &places.place, name)?;
        session
            .ui
            .line(session.ui.style().green(format!("Deleted workspace \"{name}\"!")));
        if state.has_resources() {
            session.ui.line(session.ui.style().yellow(format!(
                "WARNING: \"{name}\" was non-empty.\nThe objects of the deleted workspace may still exist, but nothing knows of \
                 them\nany more.\n"
            )));
        }
        Ok(0)
    };
    Ok(run().unwrap_or_else(|status| status))
}

/// Deletes a workspace with its state.
fn remove(session: &Session, place: &Place, name: &str) -> Result<(), Status> {
    match place {
        Place::Local(local) => {
            let dir = local.others().join(name);
            std::fs::remove_dir_all(&dir).map_err(|e| {
                session.fail(
                    "Failed to delete the workspace",
                    format!("The directory {} cannot be removed: {}.", dir.display(), io_reason(&e)),
                )
            })
        }
        Place::Store(store) => store.delete(name).map_err(|problems| {
            session.show(&problems, &SourceMap::default());
            1
        }),
    }
}

fn not_empty(session: &Session, name: &str, state: &State) -> Status {
    let all: Vec<String> = state
        .instances()
        .map(|(resource, _, key, _)| format!("\n  - {}", resource.instance(key.clone())))
        .collect();
    let problem = Diagnostic::error(
        "Workspace is not empty",
        format!(
            "Workspace \"{name}\" is currently tracking the following resource instances:{}\n\nIf the workspace were deleted, \
             nothing would know of these objects any more, and they would have to be deleted by hand. Destroy them first. To \
             delete the workspace and forget them nevertheless, use the -force option.",
            all.concat()
        ),
    );
    session.show(&problem.into(), &SourceMap::default());
    1
}
