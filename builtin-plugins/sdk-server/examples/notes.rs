//! An example of a provider: notes, one file each, in a directory that the provider's configuration names.
//!
//! An external provider needs nothing else: a crate that depends on `monoform-sdk` and `monoform-sdk-server`, with this file as its
//! `main.rs`. Name the executable `terraform-provider-notes_v1.0.0`, and put it into a filesystem mirror or into the directory that
//! `dev_overrides` names. Terraform, OpenTofu and Monoform then use it as `example/notes`. With the argument `-debug` it waits for a host
//! that has its address in `TF_REATTACH_PROVIDERS`.
//!
//! ```hcl
//! resource "notes_note" "shopping" {
//!   name = "shopping"
//!   text = "bread\n"
//!   lifecycle {
//!     action_trigger {
//!       events  = [after_create, after_update]
//!       actions = [action.notes_copy.all]
//!     }
//!   }
//! }
//!
//! action "notes_copy" "all" {
//!   config {
//!     to = "copies"
//!   }
//! }
//! ```

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{
    Action, Arguments, Attr, Check, Context, Deferral, Diagnostic, Diagnostics, EphemeralResource, Found, Function,
    IdentityAttribute, ListResource, Members, Model, MoveSource, Opened, Parameter, Plan, Progress, Provider, Resource,
    Result, Schema, StateClient, StateStore, Validator, async_trait,
};
use monoform_sdk_server::{debug_provider, serve_provider};

fn main() -> ExitCode {
    if std::env::args().any(|argument| argument == "-debug") {
        return debug_provider("registry.terraform.io/example/notes", Notes);
    }
    serve_provider(Notes)
}

/// The provider.
struct Notes;

/// The configuration of the provider.
#[derive(Clone, Default, Model)]
struct Config {
    /// The directory of the notes.
    #[member(required())]
    directory: Attr<String>,
}

#[async_trait]
impl Provider for Notes {
    type Config = Config;
    /// Client of the resources: here, the directory of the notes.
    type Client = PathBuf;

    fn members(&self, members: &mut Members<PathBuf>) {
        members.resource("notes_note", NoteResource);
        members.resource("notes_memo", MemoResource);
        members.ephemeral("notes_text", Text);
        members.list("notes_note", NoteList);
        members.action("notes_copy", CopyAction);
        members.function("title", title());
        members.state_store("notes_state", States);
    }

    async fn configure(&self, config: Config, _terraform_version: &str) -> Result<PathBuf> {
        let directory = PathBuf::from(config.directory.text());
        std::fs::create_dir_all(&directory).map_err(|e| failed(&directory, &e))?;
        tracing::info!(directory = %directory.display(), "configured");
        Ok(directory)
    }
}

/// A note.
#[derive(Clone, Default, Model)]
struct Note {
    /// The name of the note, and of its file.
    #[member(required().validate(Validator::custom(file_name)).requires_replace())]
    name: Attr<String>,
    /// The text of the note.
    #[member(optional().computed().default(String::new()))]
    text: Attr<String>,
    /// The size of the note in bytes.
    #[member(computed())]
    size: Attr<i64>,
}

fn file_name(check: &Check<'_>) -> Option<Diagnostic> {
    let name = check.value.as_str()?;
    let bad = name.is_empty() || name.starts_with('.') || name.contains('/');
    let detail = format!("{name:?} is no name of a file that is to be found again.");
    bad.then(|| Diagnostic::error("Invalid name", detail).at(check.path.clone()))
}

/// The type `notes_note`.
struct NoteResource;

#[async_trait]
impl Resource for NoteResource {
    type Model = Note;
    type Client = PathBuf;
    const GENERATES_CONFIG: bool = true;

    /// A note is identified by its name.
    fn identity(&self) -> Vec<IdentityAttribute> {
        vec![IdentityAttribute {
            name: "name",
            required_for_import: true,
            description: "The name of the note.",
        }]
    }

    /// Defers a note whose name is not known yet, if the run allows that.
    async fn plan(&self, plan: &mut Plan<'_, Note>, cx: &mut Context<PathBuf>) -> Result<()> {
        if plan.config()?.name.is_unknown() && cx.deferral_allowed() {
            cx.defer(Deferral::ResourceConfigUnknown)?;
        }
        Ok(())
    }

    async fn create(&self, plan: Note, cx: &mut Context<PathBuf>) -> Result<Note> {
        let path = cx.client()?.join(plan.name.text());
        std::fs::write(&path, plan.text.text()).map_err(|e| failed(&path, &e))?;
        Ok(Note {
            size: (plan.text.text().len() as i64).into(),
            ..plan
        })
    }

    async fn read(&self, state: Note, cx: &mut Context<PathBuf>) -> Result<Option<Note>> {
        let path = cx.client()?.join(state.name.text());
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(Note {
                size: (text.len() as i64).into(),
                text: text.into(),
                ..state
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    async fn update(&self, _prior: Note, plan: Note, cx: &mut Context<PathBuf>) -> Result<Note> {
        self.create(plan, cx).await
    }

    async fn delete(&self, state: Note, cx: &mut Context<PathBuf>) -> Result<()> {
        let path = cx.client()?.join(state.name.text());
        std::fs::remove_file(&path).map_err(|e| failed(&path, &e))
    }

    async fn import(&self, id: &str, cx: &mut Context<PathBuf>) -> Result<Note> {
        let note = Note {
            name: id.into(),
            ..Note::default()
        };
        let missing = || Diagnostic::error("No such note", format!("There is no note {id:?}.")).into();
        self.read(note, cx).await?.ok_or_else(missing)
    }

    /// Converts memos to notes, for `moved` blocks.
    async fn move_from(&self, source: MoveSource, _cx: &mut Context<PathBuf>) -> Result<Option<Note>> {
        if source.type_name != "notes_memo" {
            return Ok(None);
        }
        let memo: Memo = source.read()?;
        // The title is the identity. In states written before memos had identities, it is only an attribute.
        let name = match source.identity.as_ref().and_then(|identity| identity["title"].as_str()) {
            Some(title) => title.into(),
            None => memo.title,
        };
        Ok(Some(Note {
            name,
            size: (memo.text.text().len() as i64).into(),
            text: memo.text,
        }))
    }
}

/// A note under its earlier name.
#[derive(Clone, Default, Model)]
struct Memo {
    /// The title, and the name of the file.
    #[member(required().validate(Validator::custom(file_name)).requires_replace())]
    title: Attr<String>,
    /// The text of the note.
    #[member(required().requires_replace())]
    text: Attr<String>,
}

/// The type `notes_memo`, which is no longer to be used.
struct MemoResource;

#[async_trait]
impl Resource for MemoResource {
    type Model = Memo;
    type Client = PathBuf;

    fn schema(&self) -> Schema {
        Schema::of::<Memo>().deprecated("Use notes_note: a moved block takes the object over.")
    }

    fn identity(&self) -> Vec<IdentityAttribute> {
        vec![IdentityAttribute {
            name: "title",
            required_for_import: true,
            description: "The title of the memo.",
        }]
    }

    async fn create(&self, plan: Memo, cx: &mut Context<PathBuf>) -> Result<Memo> {
        let path = cx.client()?.join(plan.title.text());
        std::fs::write(&path, plan.text.text()).map_err(|e| failed(&path, &e))?;
        Ok(plan)
    }

    async fn delete(&self, state: Memo, cx: &mut Context<PathBuf>) -> Result<()> {
        let path = cx.client()?.join(state.title.text());
        std::fs::remove_file(&path).map_err(|e| failed(&path, &e))
    }
}

/// The text of a note, for this run only.
#[derive(Clone, Default, Model)]
struct Said {
    /// The name of the note.
    #[member(required().validate(Validator::custom(file_name)))]
    name: Attr<String>,
    /// The text of the note.
    #[member(computed().sensitive())]
    text: Attr<String>,
}

/// The type of ephemeral resource `notes_text`.
struct Text;

#[async_trait]
impl EphemeralResource for Text {
    type Model = Said;
    type Client = PathBuf;

    async fn open(&self, config: Said, cx: &mut Context<PathBuf>) -> Result<Opened<Said>> {
        let path = cx.client()?.join(config.name.text());
        let text = std::fs::read_to_string(&path).map_err(|e| failed(&path, &e))?;
        Ok(Opened::from(Said {
            text: text.into(),
            ..config
        }))
    }
}

/// A search for notes.
#[derive(Clone, Default, Model)]
struct Search {
    /// The prefix of the names of the notes.
    #[member(optional())]
    prefix: Attr<String>,
}

/// The notes that exist, for queries:
///
/// ```hcl
/// list "notes_note" "all" {
///   provider = notes
/// }
/// ```
struct NoteList;

#[async_trait]
impl ListResource for NoteList {
    type Config = Search;
    type Model = Note;
    type Client = PathBuf;

    async fn list(&self, config: Search, found: &mut Found<Note>, cx: &mut Context<PathBuf>) -> Result<()> {
        let directory = PathBuf::clone(&*cx.client()?);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&directory).map_err(|e| failed(&directory, &e))? {
            let entry = entry.map_err(|e| failed(&directory, &e))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        names.retain(|name| name.starts_with(config.prefix.text()));
        for name in names {
            let note = Note {
                name: name.as_str().into(),
                ..Note::default()
            };
            let note = match found.wants_objects() {
                true => NoteResource.read(note, cx).await?,
                false => Some(note),
            };
            if let Some(note) = note
                && !found.push(format!("the note {name}"), note).await
            {
                break;
            }
        }
        Ok(())
    }
}

/// A copy of all notes.
#[derive(Clone, Default, Model)]
struct Copy {
    /// Path of the directory for the copies.
    #[member(required())]
    to: Attr<String>,
    /// A text that is appended to each copy. It is neither stored nor shown.
    #[member(optional().write_only())]
    signature: Attr<String>,
}

/// The type of action `notes_copy`.
struct CopyAction;

#[async_trait]
impl Action for CopyAction {
    type Config = Copy;
    type Client = PathBuf;

    async fn invoke(&self, config: Copy, progress: Progress, cx: &mut Context<PathBuf>) -> Result<()> {
        let from = cx.client()?;
        let to = Path::new(config.to.text());
        std::fs::create_dir_all(to).map_err(|e| failed(to, &e))?;
        let notes = std::fs::read_dir(&*from).map_err(|e| failed(&from, &e))?;
        for note in notes {
            let name = note.map_err(|e| failed(&from, &e))?.file_name();
            let path = from.join(&name);
            let mut text = std::fs::read_to_string(&path).map_err(|e| failed(&path, &e))?;
            text.push_str(config.signature.text());
            let copy = to.join(&name);
            std::fs::write(&copy, text).map_err(|e| failed(&copy, &e))?;
            progress.report(format!("copied {}", name.display())).await;
        }
        Ok(())
    }
}

/// The function `provider::notes::title`.
fn title() -> Function {
    Function::new(
        "The first line of a text.",
        "Gives the first line of a text, without what ends it.",
        vec![Parameter::new::<String>("text", "The text.")],
        |arguments: Arguments<'_>| {
            let text: String = arguments.get(0)?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        },
    )
}

/// A state store: each state is a file of a directory.
struct States;

/// The configuration of the state store.
#[derive(Clone, Default, Model)]
struct StatesConfig {
    /// The directory of the states.
    #[member(required())]
    directory: Attr<String>,
}

#[async_trait]
impl StateStore for States {
    type Config = StatesConfig;

    async fn configure(&self, config: StatesConfig) -> Result<Arc<dyn StateClient>> {
        let directory = PathBuf::from(config.directory.text());
        std::fs::create_dir_all(&directory).map_err(|e| failed(&directory, &e))?;
        Ok(Arc::new(Directory(directory)))
    }
}

/// A directory of states, and of locks beside them.
struct Directory(PathBuf);

impl Directory {
    fn state(&self, workspace: &str) -> PathBuf {
        self.0.join(format!("{workspace}.tfstate"))
    }

    fn lock_file(&self, workspace: &str) -> PathBuf {
        self.0.join(format!("{workspace}.lock"))
    }

    fn holder(&self, workspace: &str) -> Option<LockInfo> {
        LockInfo::from_json(&std::fs::read(self.lock_file(workspace)).ok()?)
    }
}

/// Returns the content of a file; `None` if the file does not exist.
fn content(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(path, &e)),
    }
}

#[async_trait]
impl StateClient for Directory {
    async fn workspaces(&self) -> Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.0).map_err(|e| failed(&self.0, &e))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let names = names.filter_map(|name| Some(name.strip_suffix(".tfstate")?.to_owned()));
        Ok(names.collect())
    }

    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
        content(&self.state(workspace))
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
        let path = self.state(workspace);
        // Written under another name and renamed, so that the file has either the old state or the new one, even after a crash.
        let new = path.with_extension("new");
        let written = std::fs::write(&new, state).and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|e| failed(&path, &e))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let path = self.state(workspace);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(failed(&path, &e)),
            _ => Ok(()),
        }
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let path = self.lock_file(workspace);
        match File::create_new(&path).and_then(|mut file| file.write_all(info.to_json().as_bytes())) {
            Ok(()) => Ok(info.id),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                Err(LockError::held(self.holder(workspace), "The state is locked."))
            }
            Err(e) => Err(LockError::Failed(failed(&path, &e))),
        }
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let path = self.lock_file(workspace);
        if self.holder(workspace).is_none_or(|holder| holder.id != id) {
            let detail = format!("{} is not the lock {id}.", path.display());
            return Err(Diagnostic::error("State not locked", detail).into());
        }
        std::fs::remove_file(&path).map_err(|e| failed(&path, &e))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Diagnostics {
    Diagnostic::error("Unusable note", format!("{}: {error}.", path.display())).into()
}
