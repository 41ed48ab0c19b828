//! Connections to the organization of a host.

use net::discovery::{DiscoveryError, TFE};
use net::{Client, Host, Method};
use serde_json::Value as Json;

use crate::api::{Api, ApiError, Server, part};
use crate::settings::DEFAULT_HOST;
use crate::{Kind, Problem, Settings};

/// Service identifier of the full API, for `backend "remote"`.
const REMOTE_SERVICE: &str = "tfe.v2.1";
/// Service identifier for state storage only, used if operations are forced to run locally.
const STATE_SERVICE: &str = "state.v2";

/// Lowest version of the API that `cloud` blocks work with.
const API_VERSION: (u64, u64) = (2, 5);

/// A connection to an organization whose existence has been checked.
#[derive(Clone)]
pub struct Connection {
    pub(crate) api: Api,
    pub settings: Settings,
    /// Set if operations run locally, whatever the execution modes of workspaces are.
    pub forced_local: bool,
}

impl Connection {
    /// Discovers the host's API and checks the organization.
    ///
    /// # Errors
    /// The host cannot be reached or does not offer the API, there is no token, or no such organization.
    pub async fn open(net: Client, settings: Settings, login: &str) -> Result<Connection, Problem> {
        let host = Host::parse(&settings.hostname).ok_or_else(|| {
            let detail = format!("\"{}\" is not the name of a host.", settings.hostname);
            Problem::new("Invalid hostname", detail).about("hostname")
        })?;
        let service = match settings.kind {
            Kind::Cloud => TFE,
            Kind::Remote if settings.forced_local => STATE_SERVICE,
            Kind::Remote => REMOTE_SERVICE,
        };
        let base = net.service(&host, service).await.map_err(|e| undiscovered(&host, &e))?;
        let token = match &settings.token {
            // A token in the block takes precedence over the CLI configuration and the environment.
            Some(token) => Some(token.clone()),
            None => (net.token(&host).await)
                .map_err(|e| Problem::new("Invalid token", format!("The token is not usable: {e}.")))?,
        };
        let Some(token) = token else {
            let more = match host.as_str() {
                DEFAULT_HOST => String::new(),
                _ => format!(" {}", host.display()),
            };
            return Err(Problem::new(
                "Required token could not be found",
                format!(
                    "Run the following command to generate a token for {}:\n    {login} login{more}",
                    host.display()
                ),
            ));
        };
        let api = Api {
            net,
            base,
            token,
            integration: settings.kind == Kind::Cloud,
        };
        // `backend "remote"` works with earlier releases of Terraform Enterprise.
        if settings.kind == Kind::Cloud {
            check_api(&api).await?;
        }
        // This request shows early whether the organization exists, and whether the token is valid for it.
        let organization = &settings.organization;
        let entitlements = api
            .get(&format!("organizations/{}/entitlement-set", part(organization)))
            .await
            .map_err(|e| no_organization(&settings, &host, &e))?;
        let operations = entitlements.pointer("/data/attributes/operations");
        let connection = Connection {
            // An organization without the entitlement to remote operations runs them locally, as in Terraform.
            forced_local: settings.forced_local || operations.and_then(Json::as_bool) == Some(false),
            api,
            settings,
        };
        connection.check_selected().await?;
        Ok(connection)
    }

    /// Requests the server's description.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn server(&self) -> Result<Server, ApiError> {
        Ok(self.api.send(Method::GET, "ping", None).await?.server)
    }

    /// Returns a path below the organization.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("organizations/{}/{rest}", part(&self.settings.organization))
    }

    /// If `TF_WORKSPACE` names a workspace and the block selects by tags, checks that the workspace exists and has all of the tags.
    async fn check_selected(&self) -> Result<(), Problem> {
        let (Some(name), crate::Mapping::Tags(tags)) = (&self.settings.selected, &self.settings.mapping) else {
            return Ok(());
        };
        const SUMMARY: &str = "Invalid workspace selection";
        match self.workspace(name).await {
            Ok(Some(workspace))
                if tags
                    .pairs()
                    .iter()
                    .all(|(tag, _)| workspace.tags.iter().any(|t| t == tag)) =>
            {
                Ok(())
            }
            Ok(Some(_)) => Err(Problem::new(
                SUMMARY,
                format!(
                    "The workspace \"{name}\", which TF_WORKSPACE selects, does not have all tags that the configuration asks \
                     for: {}.",
                    tags.describe()
                ),
            )),
            Ok(None) => Err(Problem::new(
                SUMMARY,
                format!(
                    "The workspace \"{name}\", which TF_WORKSPACE selects, is not in the organization \"{}\". Unset the variable \
                     to choose another one, or create the workspace with \"workspace new\" without it.",
                    self.settings.organization
                ),
            )),
            Err(e) => Err(Problem::new(
                SUMMARY,
                format!("The workspace \"{name}\", which TF_WORKSPACE selects, cannot be read: {e}."),
            )),
        }
    }
}

async fn check_api(api: &Api) -> Result<(), Problem> {
    let failed = |e: ApiError| {
        Problem::new(
            "Failed to create the HCP Terraform or Terraform Enterprise client",
            format!(
                "The API of {} cannot be used: {e}.",
                api.base.host_str().unwrap_or_default()
            ),
        )
    };
    let server = api.send(Method::GET, "ping", None).await.map_err(failed)?.server;
    if !server.is_at_least(API_VERSION.0, API_VERSION.1) {
        return Err(Problem::new(
            "Unsupported Terraform Enterprise version",
            "The 'cloud' option is not supported with this version of Terraform Enterprise. Use a backend \"remote\", which works \
             with earlier ones.",
        ));
    }
    Ok(())
}

fn undiscovered(host: &Host, error: &DiscoveryError) -> Problem {
    let summary = match error {
        DiscoveryError::NotOffered { .. } => format!("Host {host} does not provide this service"),
        _ => format!("Failed to discover the services of {host}"),
    };
    let mut detail = error.to_string();
    // The text of the error is a clause; a diagnostic begins with a capital letter.
    if let Some(first) = detail.get(..1).map(str::to_uppercase) {
        detail.replace_range(..1, &first);
    }
    Problem::new(summary, format!("{detail}.")).about("hostname")
}

fn no_organization(settings: &Settings, host: &Host, error: &ApiError) -> Problem {
    let (organization, host) = (&settings.organization, host.display());
    let why = match error {
        ApiError::NotFound => format!(
            "organization \"{organization}\" at host {host} not found. Check the names of the organization and of the host, and \
             that the token for {host} is valid for it"
        ),
        ApiError::Unauthorized => format!("the token for {host} is not accepted: log in again"),
        other => other.to_string(),
    };
    Problem::new(
        format!("Failed to read organization \"{organization}\" at host {host}"),
        format!("The settings of the organization cannot be read: {why}."),
    )
    .about("organization")
}
