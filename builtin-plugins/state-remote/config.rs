//! Arguments of the two blocks, `backend "remote"` and `cloud`.

use std::collections::BTreeMap;

use files::Environment;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk::schema::{block, optional, required};
use monoform_sdk::{Any, Attr, Diagnostic, Diagnostics, Model, Result};
use tfe::{Arguments, Kind, Problem, Settings, Tags};

/// The host and its token: the arguments that both blocks have.
#[derive(Clone, Default, Model)]
pub struct Server {
    /// The host. The default is TF_CLOUD_HOSTNAME (for a cloud block only), or else app.terraform.io.
    #[member(optional())]
    pub hostname: Attr<String>,
    /// The token for the host. Better keep it out of the configuration: the command `login` stores one.
    #[member(optional())]
    pub token: Attr<String>,
}

impl Server {
    /// Returns the arguments that both blocks have, in a common form.
    fn arguments(&self, organization: &Attr<String>, name: Option<&Attr<String>>) -> Arguments {
        Arguments {
            hostname: text(&self.hostname),
            organization: text(organization),
            token: text(&self.token),
            name: name.and_then(text),
            ..Arguments::default()
        }
    }
}

/// The arguments of a `backend "remote"`.
#[derive(Clone, Default, Model)]
pub struct RemoteConfig {
    /// The host of the organization.
    #[member(flatten)]
    pub server: Server,
    /// The organization that the workspaces belong to.
    #[member(required())]
    pub organization: Attr<String>,
    /// The workspaces that this configuration uses.
    #[member(block())]
    pub workspaces: Attr<RemoteWorkspaces>,
}

/// The workspaces of a `backend "remote"`.
#[derive(Clone, Default, Model)]
pub struct RemoteWorkspaces {
    /// The name of the only workspace, which is the workspace `default` of this configuration.
    #[member(optional())]
    pub name: Attr<String>,
    /// The prefix of the names of all workspaces. Commands show and take the names without it.
    #[member(optional())]
    pub prefix: Attr<String>,
}

/// The arguments of a `cloud` block.
#[derive(Clone, Default, Model)]
pub struct CloudConfig {
    /// The host of the organization.
    #[member(flatten)]
    pub server: Server,
    /// The organization that the workspaces belong to. The default is TF_CLOUD_ORGANIZATION.
    #[member(optional())]
    pub organization: Attr<String>,
    /// The workspaces that this configuration uses.
    #[member(block())]
    pub workspaces: Attr<CloudWorkspaces>,
}

/// The workspaces of a `cloud` block.
#[derive(Clone, Default, Model)]
pub struct CloudWorkspaces {
    /// The name of the only workspace. The default is TF_WORKSPACE.
    #[member(optional())]
    pub name: Attr<String>,
    /// The project in which workspaces are created, and to which the list of workspaces is limited. The default is
    /// TF_CLOUD_PROJECT.
    #[member(optional())]
    pub project: Attr<String>,
    /// The tags that all workspaces have: a list of names, or a map of names and values.
    #[member(optional())]
    pub tags: Any,
}

fn text(value: &Attr<String>) -> Option<String> {
    value.known().cloned()
}

fn diagnostics(problems: Vec<Problem>) -> Diagnostics {
    let mut all = Diagnostics::new();
    for problem in problems {
        all.push(diagnostic(problem));
    }
    all
}

/// Converts a problem to a diagnostic.
pub(crate) fn diagnostic(problem: Problem) -> Diagnostic {
    let diagnostic = Diagnostic::error(problem.summary, problem.detail);
    match problem.argument {
        Some(argument) => diagnostic.at_attribute(argument),
        None => diagnostic,
    }
}

impl RemoteConfig {
    /// Returns the effective settings from the block and the environment.
    pub(crate) fn settings(&self, environment: &Environment) -> Result<Settings> {
        let workspaces = self.workspaces.known();
        let arguments = Arguments {
            prefix: workspaces.and_then(|w| text(&w.prefix)),
            ..self.server.arguments(&self.organization, workspaces.map(|w| &w.name))
        };
        Settings::new(Kind::Remote, arguments, environment).map_err(diagnostics)
    }
}

impl CloudConfig {
    /// Returns the effective settings from the block and the environment.
    pub(crate) fn settings(&self, environment: &Environment) -> Result<Settings> {
        let workspaces = self.workspaces.known();
        let arguments = Arguments {
            project: workspaces.and_then(|w| text(&w.project)),
            tags: workspaces.map(|w| tags(&w.tags.0)).transpose()?.flatten(),
            ..self.server.arguments(&self.organization, workspaces.map(|w| &w.name))
        };
        Settings::new(Kind::Cloud, arguments, environment).map_err(diagnostics)
    }
}

/// Reads tags, which are a list of names, or a map of names and values.
fn tags(value: &Value) -> Result<Option<Tags>> {
    let wrong = |detail: &str| {
        let problem = Diagnostic::error("Invalid workspaces configuration", detail);
        Diagnostics::from(problem.at_attribute("workspaces"))
    };
    if value.is_null() || !value.is_known() {
        return Ok(None);
    }
    if let (Type::Object(_) | Type::Map(_), Some(entries)) = (value.ty(), value.entries()) {
        let pairs: Option<BTreeMap<String, String>> = entries
            .into_iter()
            .map(|(name, value)| Some((name.to_string(), value.as_str()?.to_owned())))
            .collect();
        let pairs = pairs.ok_or_else(|| wrong("tag object values must be strings"))?;
        return Ok(Some(Tags::Pairs(pairs)));
    }
    let Some(items) = value.as_seq() else {
        return Err(wrong("tags must be a list of names, or a map of names and values"));
    };
    let names: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    let names = names.ok_or_else(|| wrong("tag elements must be strings"))?;
    Ok(Some(Tags::Names(
        names.into_iter().filter(|name| !name.is_empty()).collect(),
    )))
}
