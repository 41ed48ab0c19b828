//! The variables of a workspace.

use serde_json::Value as Json;

use crate::api::{self, ApiError, part};
use crate::runs::truth;
use crate::{Connection, Workspace};

/// An input variable that a workspace has a value for.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkspaceVariable {
    pub name: String,
    /// Its value: text, or an expression. A secret one is not told.
    pub value: Option<String>,
    /// Whether the value is an expression of the language, and not plain text.
    pub is_expression: bool,
}

/// Prints no value: it may be a secret.
impl std::fmt::Debug for WorkspaceVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkspaceVariable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// The input variables that a workspace has values for, its variable sets' among them. Where they may not be seen there are none.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn variables(&self, workspace: &Workspace) -> Result<Vec<WorkspaceVariable>, ApiError> {
        let (mut all, mut page) = (Vec::new(), 1_u64);
        loop {
            let path = format!("workspaces/{}/all-vars?page%5Bnumber%5D={page}", part(&workspace.id));
            let document = match self.api.get(&path).await {
                Ok(document) => document,
                Err(ApiError::NotFound) => return Ok(all),
                Err(e) => return Err(e),
            };
            let inputs = api::items(&document).filter(|data| api::text(data, "category") == Some("terraform"));
            all.extend(inputs.filter_map(variable));
            match api::next_page(&document, page) {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }
}

fn variable(data: &Json) -> Option<WorkspaceVariable> {
    let secret = truth(data, "/attributes/sensitive");
    Some(WorkspaceVariable {
        name: api::text(data, "key")?.to_owned(),
        value: (!secret).then(|| api::text(data, "value").unwrap_or_default().to_owned()),
        is_expression: truth(data, "/attributes/hcl"),
    })
}
