//! Configuration versions: the archives that runs work with.

use std::time::Duration;

use serde_json::json;

use crate::api::{self, ApiError, part};
use crate::{Connection, Workspace};

/// Maximum number of requests for the status of an upload.
const POLLS: u32 = 60;
/// Pause before each request for the status: with [`POLLS`], 30 seconds in all.
const PAUSE: Duration = Duration::from_millis(500);

/// Use of a configuration version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Configuration of plans that are never applied.
    Speculative,
    /// Configuration of plans that may be applied at once.
    Apply,
    /// Configuration of a saved plan: the workspace keeps its current configuration until the plan is applied.
    SavedPlan,
}

/// A configuration version that is to be uploaded.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Identifier of the configuration version in requests.
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
            // Otherwise the server would start a run of its own as soon as the upload is complete.
            "auto-queue-runs": false,
            "speculative": purpose == Purpose::Speculative,
        });
        // Servers that `backend "remote"` still supports may not know the attribute.
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
    /// The server refuses the archive, cannot be reached, or does not report within the time limit that it has the archive.
    pub async fn upload_configuration(&self, configuration: &Configuration, archive: Vec<u8>) -> Result<(), ApiError> {
        self.api.upload(&configuration.upload, archive).await?;
        // The archive is uploaded to a storage host. A run that is created before the server has processed it
        // would fail.
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
