//! Input variables of a workspace.

use serde_json::Value as Json;

use crate::api::truth;
use crate::api::{self, ApiError, part};
use crate::{Connection, Workspace};

/// An input variable with a value in a workspace.
#[derive(Clone, PartialEq, Eq)]
pub struct WorkspaceVariable {
    pub name: String,
    /// Text or an expression; `None` for a sensitive value, which the server does not disclose.
    pub value: Option<String>,
    /// Set if the value is an expression of Terraform's language, and not plain text.
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
    /// Reads the input variables that a workspace has values for, including those of its variable sets. The list is empty if the token may
    /// not see them.
    ///
    /// # Errors
    /// A request failed.
    pub async fn variables(&self, workspace: &Workspace) -> Result<Vec<WorkspaceVariable>, ApiError> {
        let (mut all, mut page) = (Vec::new(), 1_u64);
        loop {
            let path = format!("workspaces/{}/all-vars?page%5Bnumber%5D={page}", part(&workspace.id));
            let document = match self.api.get(&path).await {
                Ok(document) => document,
                Err(ApiError::NotFound) => return Ok(all),
                Err(e) => return Err(e),
            };
            // The other category is environment variables of the runs.
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
