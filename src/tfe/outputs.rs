//! Outputs of the newest state of a workspace. Users who may not read the state may be allowed to read them.

use serde_json::Value as Json;

use crate::api::truth;
use crate::api::{self, ApiError, part};
use crate::{Connection, Workspace};

/// An output value of a state.
#[derive(Clone, PartialEq)]
pub struct StateOutput {
    pub name: String,
    /// Type, in Terraform's JSON notation.
    pub ty: Json,
    pub value: Json,
    pub sensitive: bool,
}

/// Prints no value: it may be a secret.
impl std::fmt::Debug for StateOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateOutput")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Reads the outputs of the newest state of a workspace. Returns `None` if there is no state, or if the release
    /// that wrote the state did not record the types of outputs. In the second case, the caller has to read the state
    /// itself.
    ///
    /// # Errors
    /// A request failed.
    pub async fn outputs(&self, workspace: &Workspace) -> Result<Option<Vec<StateOutput>>, ApiError> {
        let path = format!("workspaces/{}/current-state-version-outputs", part(&workspace.id));
        let document = match self.api.get(&path).await {
            Ok(document) => document,
            Err(ApiError::NotFound) => return Ok(None),
            Err(e) => return Err(e),
        };
        let mut outputs = Vec::new();
        for data in api::items(&document) {
            let attribute = |data: &Json, name: &str| data.pointer(&format!("/attributes/{name}")).cloned();
            let Some(ty) = attribute(data, "detailed-type").filter(|ty| !ty.is_null()) else {
                return Ok(None);
            };
            let sensitive = truth(data, "/attributes/sensitive");
            let value = match sensitive {
                false => attribute(data, "value"),
                // Lists never contain the values of sensitive outputs, so each of these needs its own request.
                true => {
                    let path = format!("state-version-outputs/{}", part(&api::id(data)?));
                    attribute(api::data(&self.api.get(&path).await?), "value")
                }
            };
            outputs.push(StateOutput {
                name: api::text(data, "name").unwrap_or_default().to_owned(),
                ty,
                value: value.unwrap_or_default(),
                sensitive,
            });
        }
        Ok(Some(outputs))
    }
}
