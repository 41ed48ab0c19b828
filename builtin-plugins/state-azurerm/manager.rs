//! URL and keys of a storage account, requested from the Resource Manager.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::{Answer, HeaderMap, Method, Url};

use crate::login::For;
use crate::settings::Settings;

const VERSION: &str = "2023-01-01";
const SUMMARY: &str = "Cannot look up the storage account";

/// Client for one storage account in the Resource Manager.
pub(crate) struct Manager<'a> {
    settings: &'a Settings,
    path: String,
}

impl<'a> Manager<'a> {
    /// Creates a client for the account of the settings.
    pub async fn new(settings: &'a Settings) -> Result<Manager<'a>> {
        let subscription = match &settings.subscription {
            Some(subscription) => subscription.clone(),
            None => settings.login.usual_subscription().await?.ok_or_else(|| {
                let detail = "subscription id not specified: set subscription_id or ARM_SUBSCRIPTION_ID. With \"az account show\" \
                              the command line of Azure shows it.";
                Diagnostic::error(SUMMARY, detail)
            })?,
        };
        let group = settings.group.as_deref().unwrap_or_default();
        Ok(Manager {
            settings,
            path: format!(
                "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Storage/storageAccounts/{}",
                settings.account
            ),
        })
    }

    async fn ask(&self, method: Method, tail: &str) -> Result<Json> {
        let Settings { http, login, cloud, .. } = self.settings;
        let what = format!(
            "Asking {} about the storage account {:?}",
            cloud.manager, self.settings.account
        );
        let address = format!("{}{}{tail}", cloud.manager, self.path);
        let url = Url::parse(&address)
            .map_err(|e| Diagnostic::error(SUMMARY, format!("{address:?} is not an address: {e}.")))?;
        let token = login.token(http, For::Manager(&cloud.manager)).await?;
        let mut headers = HeaderMap::new();
        if let Some(value) = token.bearer() {
            headers.insert("authorization", value);
        }
        let body = (method == Method::POST).then(Vec::new);
        let answer = http
            .send(method, &url, headers, body)
            .await
            .map_err(|failure| failure.diagnostic(SUMMARY, &what))?;
        match answer.status.is_success() {
            true => Ok(serde_json::from_slice(&answer.body).unwrap_or_default()),
            false => Err(self.problem(&what, &answer)),
        }
    }

    fn problem(&self, what: &str, answer: &Answer) -> Diagnostics {
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let part = |name: &str| json["error"][name].as_str().unwrap_or_default().to_owned();
        let (code, message) = (part("code"), part("message"));
        let group = self.settings.group.as_deref().unwrap_or_default();
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("ResourceGroupNotFound", _) => {
                format!(" Create the group: az group create --name {group} --location LOCATION")
            }
            (_, 404) => format!(
                " Create the account: az storage account create --name {} --resource-group {group}\nOr correct \
                 storage_account_name, resource_group_name or subscription_id.",
                self.settings.account
            ),
            (_, 403) => format!(
                " The identity ({}) needs the role Storage Account Key Operator or Contributor on the account; or let requests \
                 have tokens in place of keys: use_azuread_auth = true, with the role Storage Blob Data Contributor.",
                self.settings.login.origin()
            ),
            (_, 401) => format!(
                " The token is not accepted. It is from {}.",
                self.settings.login.origin()
            ),
            _ => String::new(),
        };
        let said: Vec<&str> = [code.as_str(), message.as_str()]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect();
        let said = match said.join(": ") {
            text if text.is_empty() => text,
            text => format!(" ({})", text.trim_end_matches('.')),
        };
        Diagnostic::error(
            SUMMARY,
            format!("{what} was answered with the status {}{said}.{advice}", answer.status),
        )
        .into()
    }

    /// Returns the URL of the account's blob service.
    pub async fn blobs(&self) -> Result<String> {
        let json = self.ask(Method::GET, &format!("?api-version={VERSION}")).await?;
        let address = json["properties"]["primaryEndpoints"]["blob"].as_str();
        address
            .map(|text| text.trim_end_matches('/').to_owned())
            .ok_or_else(|| {
                let detail = format!(
                    "The storage account {:?} has no blobs: it is of a kind without them.",
                    self.settings.account
                );
                Diagnostic::error(SUMMARY, detail).into()
            })
    }

    /// Returns a key of the account with all permissions.
    pub async fn key(&self) -> Result<String> {
        let json = self
            .ask(Method::POST, &format!("/listKeys?$expand=kerb&api-version={VERSION}"))
            .await?;
        let keys = json["keys"].as_array().into_iter().flatten();
        // Keys without this permission can only read.
        let full = |key: &&Json| {
            key["permissions"]
                .as_str()
                .is_some_and(|p| p.eq_ignore_ascii_case("full"))
        };
        let key = keys.filter(full).find_map(|key| key["value"].as_str());
        key.map(str::to_owned).ok_or_else(|| {
            let detail = format!(
                "unable to determine the Write Key for the storage account {:?}: access by keys may be disabled. Let requests have \
                 tokens in place of keys: use_azuread_auth = true.",
                self.settings.account
            );
            Diagnostic::error(SUMMARY, detail).into()
        })
    }
}
