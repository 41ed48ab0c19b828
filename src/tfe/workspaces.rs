//! Workspaces: finding, creating, listing, deleting and locking them.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::api::{self, ApiError, data, items, object, part, related, truth};
use crate::{Connection, Kind, Mapping, Tags};

/// First pause before the release of a lock is attempted again, while the server is still processing a state.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before the release of a lock is attempted again.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Maximum number of attempts to release a lock.
const UNLOCKINGS: u32 = 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Identifier of the workspace in requests.
    pub id: String,
    /// Name in the organization.
    pub name: String,
    /// `local`, `remote` or `agent`.
    pub execution_mode: String,
    /// Version of Terraform that the workspace is for, or a constraint.
    pub terraform_version: String,
    pub tags: Vec<String>,
    /// Set if the server can delete the workspace only if it has no objects.
    pub can_be_deleted_safely: bool,
    pub locked: bool,
    /// Set if plans are applied without confirmation.
    pub auto_apply: bool,
    /// Directory of the configuration below the root of the upload.
    pub working_directory: String,
    /// Set if the configuration comes from a repository.
    pub has_repository: bool,
    /// Set if logs are events in JSON, and plans are shown from JSON.
    pub structured_output: bool,
    /// Identifier of the current run of the workspace.
    pub current_run: Option<String>,
    /// Set if the token may start plans.
    pub can_queue_run: bool,
    /// Set if the token may start applies.
    pub can_queue_apply: bool,
    /// Set if the token may change the workspace.
    pub can_update: bool,
}

impl Workspace {
    /// Returns true if the workspace's operations run locally.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.execution_mode == "local"
    }

    pub(crate) fn read(data: &Json) -> Result<Workspace, ApiError> {
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        let tags = data.pointer("/attributes/tag-names").and_then(Json::as_array);
        let tags = tags.into_iter().flatten().filter_map(Json::as_str);
        // Releases of Terraform Enterprise that cannot delete safely do not send this permission at all.
        let force_delete = data.pointer("/attributes/permissions/can-force-delete");
        Ok(Workspace {
            id: api::id(data)?,
            name: text("name"),
            execution_mode: text("execution-mode"),
            terraform_version: text("terraform-version"),
            tags: tags.map(str::to_owned).collect(),
            can_be_deleted_safely: force_delete.is_some_and(|can| !can.is_null()),
            locked: truth(data, "/attributes/locked"),
            auto_apply: truth(data, "/attributes/auto-apply"),
            working_directory: text("working-directory"),
            has_repository: data
                .pointer("/attributes/vcs-repo")
                .is_some_and(|repository| !repository.is_null()),
            structured_output: truth(data, "/attributes/structured-run-output-enabled"),
            current_run: related(data, "current-run"),
            can_queue_run: truth(data, "/attributes/permissions/can-queue-run"),
            can_queue_apply: truth(data, "/attributes/permissions/can-queue-apply"),
            can_update: truth(data, "/attributes/permissions/can-update"),
        })
    }
}

/// Error of acquiring or releasing a lock.
#[derive(Clone, Debug)]
pub enum LockProblem {
    /// Another user or run holds the lock. Contains the server's message.
    Held(String),
    Failed(ApiError),
}

fn tag_bindings(tags: &Tags) -> Json {
    let binding = |(key, value): (&str, &str)| {
        let mut attributes = json!({ "key": key });
        if !value.is_empty() {
            attributes["value"] = value.into();
        }
        json!({"type": "tag-bindings", "attributes": attributes})
    };
    tags.pairs().into_iter().map(binding).collect()
}

fn tag_names(tags: &Tags) -> Json {
    let tag = |name: &str| json!({"type": "tags", "attributes": {"name": name}});
    tags.names().into_iter().map(tag).collect()
}

/// Reason why a workspace cannot be created or changed as configured. The text is a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnsureError {
    /// The workspace of this name cannot be read.
    #[error("the workspace \"{0}\" cannot be read: {1}")]
    Read(String, ApiError),
    /// The workspace of this name cannot be created.
    #[error("the workspace \"{0}\" cannot be created: {1}")]
    Create(String, ApiError),
    /// The project of this name cannot be created.
    #[error("the project \"{0}\" cannot be created: {1}")]
    CreateProject(String, ApiError),
    /// The tags of the workspace of this name cannot be set.
    #[error("the tags of the workspace \"{0}\" cannot be set: {1}")]
    SetTags(String, ApiError),
    /// The host supports only tags without values.
    #[error("this host does not support tags with values: use a list of names for \"tags\"")]
    TagValues,
}

impl Connection {
    /// Reads a workspace by its name in the organization; `None` if there is none, or if the token may not see it.
    ///
    /// # Errors
    /// The request failed.
    pub async fn workspace(&self, name: &str) -> Result<Option<Workspace>, ApiError> {
        match self.api.get(&self.path(&format!("workspaces/{}", part(name)))).await {
            Ok(document) => Workspace::read(data(&document)).map(Some),
            Err(ApiError::NotFound) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Reads the workspace of this name and adds missing tags; creates it if there is none.
    ///
    /// # Errors
    /// The workspace cannot be read or created.
    pub async fn ensure(&self, name: &str) -> Result<Workspace, EnsureError> {
        let found = self.workspace(name).await;
        let found = found.map_err(|error| EnsureError::Read(name.to_owned(), error))?;
        let workspace = match found {
            Some(workspace) => workspace,
            None => self.create(name).await?,
        };
        if let Mapping::Tags(tags) = &self.settings.mapping {
            self.ensure_tags(&workspace, tags).await?;
        }
        Ok(workspace)
    }

    async fn create(&self, name: &str) -> Result<Workspace, EnsureError> {
        let failed = |error| EnsureError::Create(name.to_owned(), error);
        let version = self.api.net.settings().terraform_version.clone();
        let mut body = object("workspaces", json!({ "name": name }));
        match (self.settings.kind, &self.settings.mapping) {
            // As in Terraform, `backend "remote"` creates the workspace with the version, while for `cloud` it
            // is set afterwards (see below).
            (Kind::Remote, _) => body["data"]["attributes"]["terraform-version"] = version.as_str().into(),
            (_, Mapping::Tags(tags @ Tags::Names(_))) => {
                body["data"]["relationships"]["tags"] = json!({ "data": tag_names(tags) });
            }
            (_, Mapping::Tags(tags)) => {
                body["data"]["relationships"]["tag-bindings"] = json!({ "data": tag_bindings(tags) });
            }
            _ => {}
        }
        if let Some(project) = &self.settings.project {
            let id = match self.project(project).await.map_err(failed)? {
                Some(id) => id,
                None => self.create_project(project).await?,
            };
            body["data"]["relationships"]["project"] = json!({"data": {"type": "projects", "id": id}});
        }
        let document = self.api.post(&self.path("workspaces"), &body).await.map_err(failed)?;
        let mut workspace = Workspace::read(data(&document)).map_err(failed)?;
        if self.settings.kind == Kind::Cloud {
            // The server may not have this version. In a separate request, its refusal does not prevent the
            // creation.
            let body = object("workspaces", json!({ "terraform-version": version }));
            let set = self
                .api
                .patch(&format!("workspaces/{}", part(&workspace.id)), &body)
                .await;
            match set {
                Ok(_) => workspace.terraform_version = version,
                Err(e) => tracing::warn!("the version {version} cannot be set for the workspace {name}: {e}"),
            }
        }
        Ok(workspace)
    }

    /// Finds the ID of a project; `None` if there is no such project or the server has no projects.
    async fn project(&self, name: &str) -> Result<Option<String>, ApiError> {
        let path = self.path(&format!("projects?filter%5Bnames%5D={}", part(name)));
        let document = match self.api.get(&path).await {
            Ok(document) => document,
            Err(ApiError::NotFound) => return Ok(None),
            Err(e) => return Err(e),
        };
        // The filter of the server may match more than the exact name.
        let found = items(&document).find(|data| api::text(data, "name") == Some(name));
        found.map(api::id).transpose()
    }

    async fn create_project(&self, name: &str) -> Result<String, EnsureError> {
        let failed = |error| EnsureError::CreateProject(name.to_owned(), error);
        let body = object("projects", json!({ "name": name }));
        let document = self.api.post(&self.path("projects"), &body).await.map_err(failed)?;
        api::id(data(&document)).map_err(failed)
    }

    /// Adds the tags that a workspace lacks.
    async fn ensure_tags(&self, workspace: &Workspace, tags: &Tags) -> Result<(), EnsureError> {
        let failed = |error| EnsureError::SetTags(workspace.name.clone(), error);
        let path = format!("workspaces/{}/tag-bindings", part(&workspace.id));
        let bindings = match self.api.get(&path).await {
            Ok(document) => Some(document),
            // This server does not support tags with values.
            Err(ApiError::NotFound) => None,
            Err(e) => return Err(failed(e)),
        };
        let bound = |key: &str, value: Option<&str>| match &bindings {
            None => value.is_none(),
            Some(document) => items(document).any(|data| {
                let same = value.is_none_or(|value| api::text(data, "value") == Some(value));
                same && api::text(data, "key") == Some(key)
            }),
        };
        let has = |(key, value): &(&str, &str)| match *value {
            "" => workspace.tags.iter().any(|tag| tag == key) && bound(key, None),
            value => bound(key, Some(value)),
        };
        if tags.pairs().iter().all(has) {
            return Ok(());
        }
        let written = match &bindings {
            Some(_) => self.api.patch(&path, &json!({ "data": tag_bindings(tags) })).await,
            None if tags.pairs().iter().any(|(_, value)| !value.is_empty()) => {
                return Err(EnsureError::TagValues);
            }
            None => {
                let path = format!("workspaces/{}/relationships/tags", part(&workspace.id));
                self.api.post(&path, &json!({ "data": tag_names(tags) })).await
            }
        };
        written.map(drop).map_err(failed)
    }

    /// Lists the local names of the workspaces, in alphabetical order.
    ///
    /// # Errors
    /// The request failed.
    pub async fn workspaces(&self) -> Result<Vec<String>, ApiError> {
        let mut query = match &self.settings.mapping {
            // The only workspace is created at its first use, and can be selected before that.
            Mapping::Name(name) if self.settings.kind == Kind::Cloud => return Ok(vec![name.clone()]),
            Mapping::Name(name) => format!("search%5Bname%5D={}", part(name)),
            Mapping::Prefix(prefix) => format!("search%5Bname%5D={}", part(prefix)),
            Mapping::Tags(tags) => {
                let mut query = format!("search%5Btags%5D={}", part(&tags.names().join(",")));
                if let Tags::Pairs(pairs) = tags {
                    for (i, (key, value)) in pairs.iter().enumerate() {
                        query.push_str(&format!("&filter%5Btagged%5D%5B{i}%5D%5Bkey%5D={}", part(key)));
                        query.push_str(&format!("&filter%5Btagged%5D%5B{i}%5D%5Bvalue%5D={}", part(value)));
                    }
                }
                query
            }
        };
        // As in Terraform, a project that is not found does not restrict the list: the server may not support projects, or
        // not show them to this user.
        if let Some(project) = &self.settings.project
            && let Some(id) = self.project(project).await?
        {
            query.push_str(&format!("&filter%5Bproject%5D%5Bid%5D={}", part(&id)));
        }
        let mut names = Vec::new();
        let mut page = 1_u64;
        loop {
            let path = self.path(&format!(
                "workspaces?{query}&page%5Bnumber%5D={page}&page%5Bsize%5D=100"
            ));
            let document = self.api.get(&path).await?;
            // The search of the server finds parts of names, too.
            names.extend(items(&document).filter_map(|data| self.name_here(api::text(data, "name")?)));
            match api::next_page(&document, page) {
                Some(next) => page = next,
                None => break,
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn name_here(&self, name: &str) -> Option<String> {
        match &self.settings.mapping {
            Mapping::Name(wanted) => (name == wanted).then(|| "default".to_owned()),
            Mapping::Prefix(prefix) => name.strip_prefix(&**prefix).map(str::to_owned),
            Mapping::Tags(_) => Some(name.to_owned()),
        }
    }

    /// Deletes a workspace with its state. Succeeds if the workspace no longer exists.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn delete(&self, name: &str) -> Result<(), ApiError> {
        match self.api.delete(&self.path(&format!("workspaces/{}", part(name)))).await {
            Err(ApiError::NotFound) => Ok(()),
            result => result,
        }
    }

    /// Locks a workspace.
    ///
    /// # Errors
    /// The workspace is already locked, or the request failed.
    pub async fn lock(&self, workspace: &Workspace) -> Result<(), LockProblem> {
        let path = format!("workspaces/{}/actions/lock", part(&workspace.id));
        // The body is not a JSON:API document, although its media type says so.
        match self.api.post(&path, &json!({"reason": "Locked by Terraform"})).await {
            Ok(_) => Ok(()),
            Err(ApiError::Conflict(_)) => Err(LockProblem::Held("workspace already locked".to_owned())),
            Err(e) => Err(LockProblem::Failed(e)),
        }
    }

    /// Unlocks a workspace that this program has locked. Repeats the request while the server is still processing the newest state.
    ///
    /// # Errors
    /// The workspace is not locked, somebody else has locked it, or the request failed.
    pub async fn unlock(&self, workspace: &Workspace) -> Result<(), ApiError> {
        let path = format!("workspaces/{}/actions/unlock", part(&workspace.id));
        let mut pause = FIRST_PAUSE;
        for _ in 0..UNLOCKINGS {
            match self.api.send(net::Method::POST, &path, None).await {
                Ok(_) => return Ok(()),
                // The server refuses to unlock a workspace until it has processed the state that was just written.
                Err(ApiError::Conflict(said)) if said.contains("pending") => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 3).min(LONGEST_PAUSE);
                }
                Err(e) => return Err(e),
            }
        }
        Err(ApiError::Conflict(
            "the newest version of the state is still being processed".to_owned(),
        ))
    }

    /// Unlocks a workspace, whoever has locked it.
    ///
    /// # Errors
    /// The workspace is not locked, or the token may not unlock it.
    pub async fn force_unlock(&self, workspace: &Workspace) -> Result<(), ApiError> {
        let path = format!("workspaces/{}/actions/force-unlock", part(&workspace.id));
        self.api.send(net::Method::POST, &path, None).await.map(drop)
    }
}
