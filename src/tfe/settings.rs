//! Settings of the two kinds of blocks, completed from the environment.

use std::collections::BTreeMap;

use files::Environment;
use serde_json::{Map, Value as Json};

use crate::Problem;

/// Host of a block that names none.
pub(crate) const DEFAULT_HOST: &str = "app.terraform.io";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `backend "remote"`.
    Remote,
    /// `cloud`.
    Cloud,
}

/// Arguments of a block. Arguments that are not set are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    pub hostname: Option<String>,
    pub organization: Option<String>,
    pub token: Option<String>,
    /// Name of the only workspace.
    pub name: Option<String>,
    /// Prefix of the names of all workspaces. Of `backend "remote"` only.
    pub prefix: Option<String>,
    /// Tags of all workspaces. Of `cloud` only, as is the project.
    pub tags: Option<Tags>,
    pub project: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tags {
    Names(Vec<String>),
    Pairs(BTreeMap<String, String>),
}

impl Tags {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Tags::Names(names) => names.is_empty(),
            Tags::Pairs(pairs) => pairs.is_empty(),
        }
    }

    /// Returns all names with their values; tags without values have empty ones.
    #[must_use]
    pub fn pairs(&self) -> Vec<(&str, &str)> {
        match self {
            Tags::Names(names) => names.iter().map(|name| (&**name, "")).collect(),
            Tags::Pairs(pairs) => pairs.iter().map(|(name, value)| (&**name, &**value)).collect(),
        }
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.pairs().into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the tags as text for messages: `a, b` or `a=1, b=2`.
    #[must_use]
    pub fn describe(&self) -> String {
        let text = |(name, value): &(&str, &str)| match self {
            Tags::Names(_) => (*name).to_owned(),
            Tags::Pairs(_) => format!("{name}={value}"),
        };
        self.pairs().iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

impl Arguments {
    /// Reads the arguments of a block from the JSON object in the record of the last `init`.
    #[must_use]
    pub fn of_json(block: &Map<String, Json>) -> Arguments {
        let workspaces = block.get("workspaces").and_then(Json::as_object);
        let text = |name: &str| block.get(name).and_then(Json::as_str).map(str::to_owned);
        let inner = |name: &str| workspaces?.get(name)?.as_str().map(str::to_owned);
        // The schema does not fix the type of "tags", so the record contains an object with type and value.
        let tags = workspaces.and_then(|w| w.get("tags"));
        let tags = tags.map(|tags| match (tags.get("type"), tags.get("value")) {
            (Some(Json::Array(_)), Some(value)) => value,
            _ => tags,
        });
        Arguments {
            hostname: text("hostname"),
            organization: text("organization"),
            token: text("token"),
            name: inner("name"),
            prefix: inner("prefix"),
            project: inner("project"),
            tags: match tags {
                Some(Json::Array(names)) => Some(Tags::Names(
                    names.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
                )),
                Some(Json::Object(pairs)) => Some(Tags::Pairs(
                    pairs
                        .iter()
                        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                        .collect(),
                )),
                _ => None,
            },
        }
    }
}

/// Mapping from local workspace names to workspaces of the organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    Name(String),
    /// Workspaces whose names begin with the prefix; the rest is the local name.
    Prefix(String),
    Tags(Tags),
}

/// Complete settings of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub kind: Kind,
    /// Host, as the user wrote it.
    pub hostname: String,
    pub organization: String,
    /// Token in the block. Without one, the token of the CLI configuration or the environment is used.
    pub(crate) token: Option<net::Token>,
    pub mapping: Mapping,
    pub project: Option<String>,
    /// Set if operations run locally even if the workspace's execution mode is remote.
    pub forced_local: bool,
    /// Workspace that `TF_WORKSPACE` names.
    pub(crate) selected: Option<String>,
    /// Identifier of the run in which the server has started this program (`TFE_RUN_ID`).
    pub(crate) run: Option<String>,
}

const WORKSPACES: &str = "Invalid workspaces configuration";

impl Settings {
    /// Combines the arguments of a block with the environment. No request is made.
    ///
    /// # Errors
    /// A setting is missing, or contradicts another one.
    pub fn new(kind: Kind, arguments: Arguments, environment: &Environment) -> Result<Settings, Vec<Problem>> {
        let given = |value: Option<String>| value.filter(|text| !text.is_empty());
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        // Scripts often pass an empty string for a missing token, which would be refused as a token.
        let token = given(arguments.token).map(net::Token::new);
        let (hostname, organization, mapping, project);
        let mut problems = Vec::new();
        match kind {
            Kind::Remote => {
                hostname = given(arguments.hostname);
                organization = given(arguments.organization);
                project = None;
                if organization.is_none() {
                    let detail = "The argument \"organization\" is empty: it names the organization that the workspaces belong to.";
                    problems.push(Problem::new("Invalid organization value", detail).about("organization"));
                }
                mapping = remote_mapping(given(arguments.name), given(arguments.prefix));
            }
            Kind::Cloud => {
                // As in Terraform, only `cloud` blocks use these environment variables.
                hostname = given(arguments.hostname).or_else(|| variable("TF_CLOUD_HOSTNAME"));
                organization = given(arguments.organization).or_else(|| variable("TF_CLOUD_ORGANIZATION"));
                project = given(arguments.project).or_else(|| variable("TF_CLOUD_PROJECT"));
                if organization.is_none() {
                    problems.push(
                        Problem::new(
                            "Invalid or missing required argument",
                            "The organization is not known. Name it with \"organization\" in the block \"cloud\", or with the \
                             environment variable TF_CLOUD_ORGANIZATION.",
                        )
                        .about("organization"),
                    );
                }
                mapping = cloud_mapping(given(arguments.name), arguments.tags, variable("TF_WORKSPACE"));
            }
        }
        let mapping = match mapping {
            Ok(mapping) if problems.is_empty() => mapping,
            Ok(_) => return Err(problems),
            Err(detail) => {
                problems.push(Problem::new(WORKSPACES, detail).about("workspaces"));
                return Err(problems);
            }
        };
        Ok(Settings {
            kind,
            hostname: hostname.unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            organization: organization.unwrap_or_default(),
            token,
            mapping,
            project,
            // Terraform checks only that the variable is set; its value does not matter.
            forced_local: environment.get("TF_FORCE_LOCAL_BACKEND").is_some(),
            selected: variable("TF_WORKSPACE"),
            run: variable("TFE_RUN_ID"),
        })
    }

    /// Returns the name of a workspace in the organization; `None` if there can be no workspace of this local name.
    #[must_use]
    pub fn remote_name(&self, workspace: &str) -> Option<String> {
        match (&self.mapping, self.kind) {
            (Mapping::Name(name), Kind::Remote) => (workspace == "default").then(|| name.clone()),
            (Mapping::Name(name), Kind::Cloud) => (workspace == name).then(|| name.clone()),
            _ if workspace == "default" => None,
            // A user may also write the full name, which gets no second prefix.
            (Mapping::Prefix(prefix), _) if !workspace.starts_with(prefix) => Some(format!("{prefix}{workspace}")),
            (Mapping::Prefix(_) | Mapping::Tags(_), _) => Some(workspace.to_owned()),
        }
    }
}

fn remote_mapping(name: Option<String>, prefix: Option<String>) -> Result<Mapping, &'static str> {
    match (name, prefix) {
        (Some(name), None) => Ok(Mapping::Name(name)),
        (None, Some(prefix)) => Ok(Mapping::Prefix(prefix)),
        (None, None) => Err(
            "The block \"workspaces\" says nothing. Its \"name\" names the one workspace, or its \"prefix\" is what the names of \
             all workspaces begin with.",
        ),
        (Some(_), Some(_)) => Err(
            "The block \"workspaces\" has a \"name\", which means one workspace, and a \"prefix\", which means several. Keep one \
             of them.",
        ),
    }
}

fn cloud_mapping(name: Option<String>, tags: Option<Tags>, selected: Option<String>) -> Result<Mapping, &'static str> {
    match (name, tags.filter(|tags| !tags.is_empty())) {
        (Some(_), Some(_)) => Err(
            "The block \"workspaces\" has a \"name\", which means one workspace, and \"tags\", which mean all workspaces that have \
             them. Keep one of them.",
        ),
        (Some(name), None) => match selected {
            Some(selected) if selected != name => Err(
                "The environment variable TF_WORKSPACE selects another workspace than the one that \"name\" means. Unset the \
                 variable, or leave the name out to have the variable say it.",
            ),
            _ => Ok(Mapping::Name(name)),
        },
        (None, Some(tags)) => Ok(Mapping::Tags(tags)),
        (None, None) => match selected {
            Some(name) => Ok(Mapping::Name(name)),
            None => Err(
                "Nothing says which workspaces are meant. Write the \"name\" of one or the \"tags\" of several into the block \
                 \"workspaces\", or set the environment variable TF_WORKSPACE to the name of one.",
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(kind: Kind, arguments: Arguments, variables: &[(&str, &str)]) -> Result<Settings, Vec<Problem>> {
        let variables = variables.iter().map(|(n, v)| ((*n).into(), (*v).into()));
        Settings::new(kind, arguments, &Environment::read(variables))
    }

    fn details(problems: Vec<Problem>) -> String {
        problems.into_iter().map(|p| p.detail).collect::<Vec<_>>().join(" ")
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_cloud_block_is_completed_by_the_environment() {
        let variables = [
            ("TF_CLOUD_HOSTNAME", "h.example"),
            ("TF_CLOUD_ORGANIZATION", "o"),
            ("TF_CLOUD_PROJECT", "p"),
            ("TF_WORKSPACE", "w"),
        ];
        let all = settings(Kind::Cloud, Arguments::default(), &variables).unwrap();
        assert_eq!((&*all.hostname, &*all.organization), ("h.example", "o"));
        assert_eq!(all.mapping, Mapping::Name("w".into()));
        assert_eq!(all.project.as_deref(), Some("p"));
        let named = Arguments {
            name: text("w"),
            organization: text("mine"),
            ..Arguments::default()
        };
        assert_eq!(
            settings(Kind::Cloud, named.clone(), &variables).unwrap().organization,
            "mine"
        );
        let other = details(settings(Kind::Cloud, named.clone(), &[("TF_WORKSPACE", "x")]).unwrap_err());
        assert!(other.contains("TF_WORKSPACE selects another"), "{other}");
        let both = Arguments {
            tags: Some(Tags::Names(vec!["t".into()])),
            ..named
        };
        assert!(details(settings(Kind::Cloud, both, &[]).unwrap_err()).contains("Keep one"));
        let nothing = details(settings(Kind::Cloud, Arguments::default(), &[]).unwrap_err());
        assert!(
            nothing.contains("TF_CLOUD_ORGANIZATION") && nothing.contains("which workspaces are meant"),
            "{nothing}"
        );
    }

    #[test]
    fn the_environment_says_nothing_to_a_backend() {
        let variables = [("TF_CLOUD_ORGANIZATION", "o"), ("TF_WORKSPACE", "w")];
        let error = details(settings(Kind::Remote, Arguments::default(), &variables).unwrap_err());
        assert!(
            error.contains("organization") && error.contains("\"prefix\""),
            "{error}"
        );
    }

    #[test]
    fn names_here_and_there() {
        let of = |kind, name: Option<&str>, prefix: Option<&str>, workspace: &str| {
            let arguments = Arguments {
                organization: text("o"),
                name: name.map(str::to_owned),
                prefix: prefix.map(str::to_owned),
                ..Arguments::default()
            };
            settings(kind, arguments, &[]).unwrap().remote_name(workspace)
        };
        assert_eq!(of(Kind::Remote, Some("w"), None, "default"), text("w"));
        assert_eq!(of(Kind::Remote, Some("w"), None, "w"), None);
        assert_eq!(of(Kind::Remote, None, Some("p-"), "dev"), text("p-dev"));
        assert_eq!(of(Kind::Remote, None, Some("p-"), "p-dev"), text("p-dev"));
        assert_eq!(of(Kind::Remote, None, Some("p-"), "default"), None);
        assert_eq!(of(Kind::Cloud, Some("w"), None, "w"), text("w"));
        assert_eq!(of(Kind::Cloud, Some("w"), None, "default"), None);
    }
}
