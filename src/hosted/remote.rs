//! States in HCP Terraform: the execution modes and versions of their workspaces.
//!
//! States are read and written by the stores `remote` and `cloud`. The requests here use the same API, and find out what a command needs to
//! know: the selected workspace, its execution mode, and the version that may write its state.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::program::core_version;
use config::Config;
use cty::Type;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting, Schema};
use stores::backend::CLOUD;
use stores::backend::record::{Record, Saved};
use stores::backend::settings as blocks;
use syntax::{Diagnostic, Diagnostics};
use tfe::{Arguments, Compatibility, Connection, Kind, Mapping, Problem, Settings, Workspace, compatible};

use crate::Context;

/// Type of the backend `remote`, which uses the same service as `cloud`.
const REMOTE: &str = "remote";

/// Effect of a workspace's Terraform version on a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteVersion {
    /// No check: the command itself does not write the state.
    #[default]
    Unimportant,
    /// A version that is not compatible is an error.
    Checked,
    /// A different version is only a warning: `-ignore-remote-version`.
    Ignored,
}

fn diagnostics(problem: Problem) -> Diagnostics {
    Diagnostic::error(problem.summary, problem.detail).into()
}

/// Returns true if the last `init` has recorded `cloud` or `remote`.
#[must_use]
pub fn is_recorded(data_dir: &str) -> bool {
    let record = Record::read(data_dir);
    record.is_ok_and(|record| record.backend.is_some_and(|saved| matches!(&*saved.ty, CLOUD | REMOTE)))
}

/// Returns the settings of the recorded backend without starting a store, if the block is unchanged. Returns `None` for other backends, or
/// if `init` must be run again, which starting the store reports.
///
/// # Errors
/// The settings contradict each other.
pub fn recorded(context: &Context<'_>, config: &Config) -> Result<Option<Settings>, Diagnostics> {
    let (Some(block), Some(saved)) = (
        blocks::block(Some(config)),
        Record::read(context.stores.data_dir)?.backend,
    ) else {
        return Ok(None);
    };
    let kind = match &*saved.ty {
        ty if ty != &*block.ty => return Ok(None),
        CLOUD => Kind::Cloud,
        REMOTE => Kind::Remote,
        _ => return Ok(None),
    };
    let schema = schema(kind);
    let config = blocks::decode(&block.body, &schema)?;
    // A different hash alone does not count as a change (see `stores::backend::current`).
    if saved.hash != blocks::hash(&block.ty, &config) && saved.value(&schema)? != config {
        return Ok(None);
    }
    let arguments = Arguments::of_json(&saved.config);
    Settings::new(kind, arguments, context.environment)
        .map(Some)
        .map_err(|problems| problems.into_iter().flat_map(diagnostics).collect())
}

/// Returns the schema of a block, equal to that of its store.
fn schema(kind: Kind) -> Schema {
    let texts = |names: &[&str]| {
        let text = AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            optional: true,
            ..AttributeSchema::default()
        };
        names
            .iter()
            .map(|name| (Arc::from(*name), text.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let mut workspaces = BlockSchema::default();
    match kind {
        Kind::Remote => workspaces.attributes = texts(&["name", "prefix"]),
        Kind::Cloud => {
            let any = AttributeSchema {
                optional: true,
                ..AttributeSchema::default()
            };
            workspaces.attributes = texts(&["name", "project"]);
            workspaces.attributes.insert("tags".into(), any);
        }
    }
    let nested = NestedBlock {
        block: workspaces,
        nesting: Nesting::Single,
        min_items: 0,
        max_items: 0,
    };
    let block = BlockSchema {
        attributes: texts(&["hostname", "organization", "token"]),
        blocks: BTreeMap::from([("workspaces".into(), nested)]),
        ..BlockSchema::default()
    };
    Schema::new(0, block)
}

/// Converts the recorded settings of a store to settings of HCP Terraform. Returns `None` for other stores.
///
/// # Errors
/// The settings contradict each other.
pub fn settings(context: &Context<'_>, store: &Saved) -> Result<Option<Settings>, Diagnostics> {
    if store.provider.is_some() {
        return Ok(None);
    }
    let kind = match &*store.ty {
        CLOUD => Kind::Cloud,
        REMOTE => Kind::Remote,
        _ => return Ok(None),
    };
    let arguments = Arguments::of_json(&store.config);
    Settings::new(kind, arguments, context.environment)
        .map(Some)
        .map_err(|problems| problems.into_iter().flat_map(diagnostics).collect())
}

/// Describes the tags by which a `cloud` block selects its workspaces; empty without tags.
///
/// # Errors
/// The settings contradict each other.
pub fn tags(context: &Context<'_>, store: &Saved) -> Result<String, Diagnostics> {
    Ok(match settings(context, store)?.map(|settings| settings.mapping) {
        Some(Mapping::Tags(tags)) => tags.describe(),
        _ => String::new(),
    })
}

/// Checks that this version of the program may write the state of a workspace directly, outside of a run.
///
/// # Errors
/// This version may not change the state, or the workspace cannot be read.
pub fn check(context: &Context<'_>, version: RemoteVersion, store: &Saved, workspace: &str) -> Result<(), Diagnostics> {
    if version == RemoteVersion::Unimportant {
        return Ok(());
    }
    let Some(settings) = settings(context, store)? else {
        return Ok(());
    };
    let Some(name) = settings.remote_name(workspace) else {
        // An invalid name is reported when the store is opened.
        return Ok(());
    };
    let (net, login) = (context.net.clone(), context.stores.program.command);
    let asked = context.stores.plugins.runtime()?.block_on(async {
        let connection = Connection::open(net, settings, login).await.map_err(diagnostics)?;
        let workspace = connection.workspace(&name).await.map_err(|e| {
            Diagnostics::from(Diagnostic::error(
                "Error looking up workspace",
                format!("The workspace \"{name}\" cannot be read: {e}."),
            ))
        })?;
        Ok::<_, Diagnostics>((connection, workspace))
    });
    match asked? {
        (connection, Some(found)) => compare(context, version == RemoteVersion::Ignored, &connection, &found),
        // A workspace that does not exist will be created with this version.
        (_, None) => Ok(()),
    }
}

fn compare(
    context: &Context<'_>,
    ignored: bool,
    connection: &Connection,
    workspace: &Workspace,
) -> Result<(), Diagnostics> {
    let (own, settings) = (core_version(), &connection.settings);
    let (organization, name) = (&settings.organization, &workspace.name);
    let (summary, why) = match (compatible(workspace, own), settings.kind) {
        (Compatibility::Compatible, _) => return Ok(()),
        (Compatibility::Incompatible(_), Kind::Remote) => (
            "Terraform version mismatch",
            format!(
                "The local Terraform version ({own}) does not match the configured version for remote workspace \
                 {organization}/{name} ({}).",
                workspace.terraform_version
            ),
        ),
        (Compatibility::Incompatible(wanted), Kind::Cloud) => (
            "Incompatible Terraform version",
            format!(
                "The local Terraform version ({own}) does not meet the version requirements for remote workspace \
                 {organization}/{name} ({wanted})."
            ),
        ),
        (Compatibility::Unknown, _) => (
            "Incompatible Terraform version",
            format!(
                "The workspace {organization}/{name} asks for the version \"{}\", which is neither a version nor a constraint, so it is \
                 not known whether the local Terraform version ({own}) may write its state.",
                workspace.terraform_version
            ),
        ),
    };
    if ignored {
        context.console.warn_now(Diagnostic::warning(summary, why));
        return Ok(());
    }
    Err(Diagnostic::error(
        summary,
        format!(
            "{why}\n\nA state written by this version may not be readable in the workspace any more. To write it all the same, use \
             the option -ignore-remote-version."
        ),
    )
    .into())
}
