//! Configuration versions: what a run works with, uploaded from a directory.

use std::time::Duration;

use serde_json::json;

use crate::api::{self, ApiError, part};
use crate::{Connection, Workspace};

/// How often, and after how long a pause each time, it is asked whether an upload has arrived: 30 seconds in all.
const POLLS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(500);

/// What a configuration is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Plans that are never applied.
    Speculative,
    /// Plans that may be applied at once.
    Apply,
    /// A plan that is kept: the workspace stays with the configuration that it has until the plan is applied.
    SavedPlan,
}

/// A configuration version that is to be uploaded.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What requests name it by.
    pub id: String,
    upload: String,
}

impl Connection {
    /// Creates a configuration version.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn create_configuration(
        &self,
        workspace: &Workspace,
        purpose: Purpose,
    ) -> Result<Configuration, ApiError> {
        let mut attributes = json!({
            "auto-queue-runs": false,
            "speculative": purpose == Purpose::Speculative,
        });
        if self.settings.kind == crate::Kind::Cloud {
            attributes["provisional"] = (purpose == Purpose::SavedPlan).into();
        }
        let path = format!("workspaces/{}/configuration-versions", part(&workspace.id));
        let document = self
            .api
            .post(&path, &api::object("configuration-versions", attributes))
            .await?;
        let data = api::data(&document);
        let upload = api::text(data, "upload-url").map(str::to_owned);
        Ok(Configuration {
            id: api::id(data)?,
            upload: upload.ok_or_else(|| {
                ApiError::Failed("the server gives no address for the configuration to be sent to".to_owned())
            })?,
        })
    }

    /// Uploads an archive as the content of a configuration version, and waits until the server has it.
    ///
    /// # Errors
    /// The server refuses it, cannot be reached, or does not get it.
    pub async fn upload_configuration(&self, configuration: &Configuration, archive: Vec<u8>) -> Result<(), ApiError> {
        self.api.upload(&configuration.upload, archive).await?;
        for _ in 0..POLLS {
            tokio::time::sleep(PAUSE).await;
            let path = format!("configuration-versions/{}", part(&configuration.id));
            let document = self.api.get(&path).await?;
            let data = api::data(&document);
            match api::text(data, "status") {
                Some("uploaded") => return Ok(()),
                Some("errored") => {
                    let why = api::text(data, "error-message").unwrap_or("the archive is not accepted");
                    return Err(ApiError::Failed(why.to_owned()));
                }
                _ => {}
            }
        }
        Err(ApiError::Failed("operation timed out".to_owned()))
    }
}
