//! State versions of a workspace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use data_encoding::HEXLOWER;
use md5::{Digest as _, Md5};
use serde_json::{Map, Value as Json, json};

use crate::api::{self, ApiError, part};
use crate::{Connection, Workspace};

/// Part of the error message of a server that does not provide upload URLs.
const NO_UPLOADS: &str = "param is missing or the value is empty: state";

/// Serial and lineage of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub serial: u64,
    pub lineage: String,
}

impl Snapshot {
    /// Reads serial and lineage from the text of a state; `None` if the text is not a state.
    #[must_use]
    pub fn read(state: &[u8]) -> Option<Snapshot> {
        Snapshot::from_document(&serde_json::from_slice(state).ok()?)
    }

    fn from_document(document: &Json) -> Option<Snapshot> {
        Some(Snapshot {
            serial: document.get("serial")?.as_u64()?,
            lineage: document.get("lineage")?.as_str()?.to_owned(),
        })
    }
}

#[derive(Clone, Debug)]
pub struct Upload {
    pub state: Vec<u8>,
    /// Replace the stored state even if that is newer, or has another lineage.
    pub force: bool,
}

/// Returns the outputs of a state in the form of the API: `{NAME: {sensitive, type, value}}`.
fn outputs(document: &Json) -> Json {
    let outputs = document.get("outputs").and_then(Json::as_object);
    let output = |(name, output): (&String, &Json)| {
        let field = |name: &str| output.get(name).cloned().unwrap_or_default();
        let sensitive = output.get("sensitive").and_then(Json::as_bool).unwrap_or_default();
        let entry = json!({"sensitive": sensitive, "type": field("type"), "value": field("value")});
        (name.clone(), entry)
    };
    Json::Object(outputs.into_iter().flatten().map(output).collect::<Map<_, _>>())
}

impl Connection {
    /// Reads the newest state of a workspace; `None` if there is none.
    ///
    /// # Errors
    /// A request failed.
    pub async fn read_state(&self, workspace: &Workspace) -> Result<Option<Vec<u8>>, ApiError> {
        let path = format!("workspaces/{}/current-state-version", part(&workspace.id));
        let document = match self.api.get(&path).await {
            Ok(document) => document,
            // This status means that the workspace has never had a state.
            Err(ApiError::NotFound) => return Ok(None),
            Err(e) => return Err(e),
        };
        let address = document.pointer("/data/attributes/hosted-state-download-url");
        let address = address.and_then(Json::as_str).ok_or_else(|| {
            ApiError::Failed("the newest version of the state has no address to be had from".to_owned())
        })?;
        let state = self.api.download(address).await?;
        Ok((!state.is_empty()).then_some(state))
    }

    /// Writes a new version of the state of a workspace.
    ///
    /// # Errors
    /// The server refuses the state, or it could not be uploaded completely: then the workspace keeps the state that it
    /// had.
    pub async fn write_state(&self, workspace: &Workspace, upload: Upload) -> Result<(), ApiError> {
        let invalid = || ApiError::Failed("what is to be written is not a state".to_owned());
        let document: Json = serde_json::from_slice(&upload.state).map_err(|_| invalid())?;
        let snapshot = Snapshot::from_document(&document).ok_or_else(invalid)?;
        let sum = HEXLOWER.encode(&Md5::digest(&upload.state));
        let outputs = BASE64.encode(outputs(&document).to_string());
        let mut body = api::object(
            "state-versions",
            json!({
                "serial": snapshot.serial,
                "lineage": snapshot.lineage,
                "md5": sum,
                "force": upload.force,
                "json-state-outputs": outputs,
            }),
        );
        // The server lists this version among the results of the run that started this program.
        if let Some(run) = &self.settings.run {
            body["data"]["relationships"]["run"] = json!({"data": {"type": "runs", "id": run}});
        }
        let path = format!("workspaces/{}/state-versions", part(&workspace.id));
        let created = match self.api.post(&path, &body).await {
            // An older release of Terraform Enterprise expects the state in the document itself.
            Err(ApiError::Refused(_, said)) if said.contains(NO_UPLOADS) => {
                body["data"]["attributes"]["state"] = BASE64.encode(&upload.state).into();
                return self.api.post(&path, &body).await.map(drop);
            }
            result => result?,
        };
        let address = created
            .pointer("/data/attributes/hosted-state-upload-url")
            .and_then(Json::as_str);
        let address = address
            .ok_or_else(|| ApiError::Failed("the server gives no address for the state to be sent to".to_owned()))?;
        self.api.upload(address, upload.state).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_those_of_the_state() {
        let state = json!({
            "version": 4, "serial": 7, "lineage": "l",
            "outputs": {"a": {"value": 1, "type": "number"}, "b": {"value": "x", "type": "string", "sensitive": true}},
        });
        let expected = json!({
            "a": {"sensitive": false, "type": "number", "value": 1},
            "b": {"sensitive": true, "type": "string", "value": "x"},
        });
        assert_eq!(outputs(&state), expected);
        let snapshot = Snapshot::read(state.to_string().as_bytes()).unwrap();
        assert_eq!((snapshot.serial, &*snapshot.lineage), (7, "l"));
        assert_eq!(Snapshot::read(b"{}"), None);
    }
}
