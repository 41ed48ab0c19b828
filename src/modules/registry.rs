//! Module registries: the versions of a module, and the address of a version's package.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use config::source_address::{RegistrySource, RemoteSource};
use config::version::{Constraint, Version};
use net::discovery::{DiscoveryError, MODULES};
use net::{Client, Host, Token, Url};
use tokio::sync::OnceCell;

use crate::available::Available;
use crate::mirror::Mirror;

/// Limit of the size of a list of versions. Such lists grow with every release.
const LIST_LIMIT: u64 = 64 << 20;

/// Problem with a registry, as the summary and detail of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub summary: &'static str,
    pub detail: String,
}

/// Client for module registries, or a mirror in their place. The list of a module's versions is requested only once.
#[derive(Debug)]
pub struct Registries {
    client: Client,
    mirror: Option<Mirror>,
    /// Modules that the executable carries, which have precedence over registries.
    carried: Option<Mirror>,
    versions: Mutex<HashMap<String, Arc<OnceCell<Vec<Available>>>>>,
}

impl Registries {
    /// Returns a client for the registries, or for the mirror in their place. The modules in `carried` take precedence.
    #[must_use]
    pub fn new(client: Client, mirror: Option<Mirror>, carried: Option<Mirror>) -> Registries {
        Registries {
            client,
            mirror,
            carried,
            versions: Mutex::default(),
        }
    }

    /// Chooses the newest version of a module that the constraint allows.
    pub async fn choose(&self, module: &RegistrySource, constraint: Option<&Constraint>) -> Result<Available, Problem> {
        // Without a constraint no pre-release is chosen. A constraint decides for itself which pre-releases it
        // allows.
        let allowed = |v: &&Available| constraint.map_or(!v.version.is_prerelease(), |c| c.allows(&v.version));
        let newest = |candidates: &mut dyn Iterator<Item = &Available>| {
            candidates.max_by(|a, b| a.version.cmp(&b.version)).cloned()
        };
        let carried = self.carried.as_ref().map(|carried| carried.versions(module));
        // Carried versions come first even if a registry has newer ones: installing them needs no network.
        if let Some(found) = newest(&mut carried.unwrap_or_default().iter().filter(allowed)) {
            return Ok(found);
        }
        let cell = {
            let mut all = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
            // One cell for each module, so that concurrent calls share the request, and a failed request can be
            // repeated.
            all.entry(module.package()).or_default().clone()
        };
        let versions = cell.get_or_try_init(|| self.list(module)).await?;
        if let Some(found) = newest(&mut versions.iter().filter(allowed)) {
            return Ok(found);
        }
        let name = module.package();
        let newest_release = newest(&mut versions.iter().filter(|v| !v.version.is_prerelease()));
        let Some(newest_release) = newest_release else {
            let prereleases = match newest(&mut versions.iter()) {
                Some(one) => format!(
                    " There are pre-releases, which must be asked for by their exact version; the newest is {}.",
                    one.text
                ),
                None => String::new(),
            };
            return Err(Problem {
                summary: "Module has no versions",
                detail: format!(
                    "The registry at {} has no released version of the module \"{name}\".{prereleases}",
                    module.host
                ),
            });
        };
        let wanted = constraint.map_or("", |c| c.text.as_str());
        Err(Problem {
            summary: "Unresolvable module version constraint",
            detail: format!(
                "No available version of the module \"{name}\" meets the constraint \"{wanted}\". The newest available version \
                 is {}{}. Change the \"version\" argument so that one of them will do.",
                newest_release.text,
                others(versions, &newest_release)
            ),
        })
    }

    /// Returns the address of a version's package.
    pub async fn location(&self, module: &RegistrySource, version: &str) -> Result<RemoteSource, Problem> {
        let mut local = self.mirror.iter().chain(&self.carried);
        if let Some(found) = local.find_map(|mirror| mirror.location(module, version)) {
            return Ok(found);
        }
        let (host, token) = self.credentials(module).await?;
        let url = self.url(&host, module, &[version, "download"]).await?;
        let request = self.client.get(url).token(token.as_ref()).to_registry().send().await;
        let response = request
            .and_then(net::Response::success)
            .map_err(|e| unreachable(module, &e))?;
        let invalid = |why: &str| Problem {
            summary: "Invalid package location from module registry",
            detail: format!(
                "The registry at {} does not give a usable address for version {version} of the module \"{}\": {why}.",
                module.host,
                module.package()
            ),
        };
        // The protocol answers 204 without a body. Some registries answer 200, and their body is ignored.
        let said = response.header("x-terraform-get").filter(|v| !v.is_empty());
        let said = said.ok_or_else(|| invalid("its answer has no header X-Terraform-Get"))?;
        crate::fetch::location(&response.url, said).map_err(|e| invalid(&format!("\"{said}\": {e}")))
    }

    async fn list(&self, module: &RegistrySource) -> Result<Vec<Available>, Problem> {
        if let Some(mirror) = &self.mirror {
            let found = mirror.versions(module);
            return match found.is_empty() {
                false => Ok(found),
                true if mirror.is_pack() => Err(Problem {
                    summary: "Module not found",
                    detail: format!("The module \"{}\" is not installed.", module.package()),
                }),
                true => Err(Problem {
                    summary: "Module not found",
                    detail: format!(
                        "The mirror has no version of the module \"{}\". Where its registry can be reached, \"modules mirror\" adds it.",
                        module.package()
                    ),
                }),
            };
        }
        let (host, token) = self.credentials(module).await?;
        let url = self.url(&host, module, &["versions"]).await?;
        let request = self
            .client
            .get(url)
            .token(token.as_ref())
            .header("accept", "application/json");
        let (_, body) = request.to_registry().read(LIST_LIMIT).await.map_err(|e| match e.status().map(|s| s.as_u16()) {
            Some(404) => Problem {
                summary: "Module not found",
                detail: format!(
                    "The registry at {} has no module \"{}\". Compare the address with the one the registry shows; a module that \
                     is not public may need a token for the host as well.",
                    module.host,
                    module.package()
                ),
            },
            _ => unreachable(module, &e),
        })?;
        let invalid = |why: String| Problem {
            summary: "Invalid response from remote module registry",
            detail: format!(
                "The list of versions that the registry at {} has for the module \"{}\" cannot be used: {why}.",
                module.host,
                module.package()
            ),
        };
        let answer: serde_json::Value = serde_json::from_slice(&body).map_err(|e| invalid(files::json_reason(e)))?;
        // The first entry is the module itself. Registries may add entries for the modules that it depends on.
        let versions = answer
            .pointer("/modules/0")
            .map(|m| m.get("versions").and_then(|v| v.as_array()));
        let Some(versions) = versions else {
            return Err(invalid("it lists no module".to_owned()));
        };
        let mut found = Vec::new();
        for entry in versions.into_iter().flatten() {
            let text = entry.get("version").and_then(|v| v.as_str()).unwrap_or_default();
            match Version::parse_lenient(text) {
                Ok(version) => found.push(Available {
                    text: version.to_string(),
                    version,
                }),
                // A single malformed version must not hide the others.
                Err(_) => tracing::warn!(
                    module = module.package(),
                    text,
                    "the registry lists a version that is not a semantic version"
                ),
            }
        }
        Ok(found)
    }

    async fn credentials(&self, module: &RegistrySource) -> Result<(Host, Option<Token>), Problem> {
        let host = Host::parse(&module.host).ok_or_else(|| Problem {
            summary: "Invalid registry host",
            detail: format!("\"{}\" is not the name of a host.", module.host),
        })?;
        let token = self.client.token(&host).await.map_err(|e| unreachable(module, &e))?;
        Ok((host, token))
    }

    async fn url(&self, host: &Host, module: &RegistrySource, more: &[&str]) -> Result<Url, Problem> {
        let mut url = self.client.service(host, MODULES).await.map_err(|e| Problem {
            summary: "Error accessing remote module registry",
            detail: match &e {
                DiscoveryError::NotOffered { .. } => format!(
                    "The module \"{}\" cannot be looked up: {e}. Check the host's name in the address; addresses without a host \
                     mean {}.",
                    module.package(),
                    addrs::provider::default_host()
                ),
                _ => format!(
                    "The module \"{}\" cannot be looked up: {e}.{}",
                    module.package(),
                    without_network(e.is_unreachable())
                ),
            },
        })?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .extend([&module.namespace, &module.name, &module.system])
                .extend(more);
        }
        Ok(url)
    }
}

/// Returns the versions other than the newest one, newest first, limited to a readable number.
fn others(versions: &[Available], newest: &Available) -> String {
    let mut rest: Vec<&Available> = versions.iter().filter(|v| *v != newest).collect();
    rest.sort_by(|a, b| b.version.cmp(&a.version));
    let shown: Vec<&str> = rest.iter().take(8).map(|v| v.text.as_str()).collect();
    match (shown.is_empty(), rest.len() > shown.len()) {
        (true, _) => String::new(),
        (false, true) => format!("; there are also {} and older ones", shown.join(", ")),
        (false, false) => format!("; there are also {}", shown.join(", ")),
    }
}

/// Returns advice for machines without a network, for the end of a message.
fn without_network(is_unreachable: bool) -> String {
    match is_unreachable {
        true => format!(" {}", net::WITHOUT_NETWORK),
        false => String::new(),
    }
}

fn unreachable(module: &RegistrySource, error: &net::Error) -> Problem {
    // Terraform encodes the host in the name of the variable in this way.
    let variable = module.host.replace('-', "__").replace('.', "_");
    let hint = match error.status().map(|s| s.as_u16()) {
        Some(401 | 403) => format!(
            " The registry wants to know who asks: give a token for {} in a \"credentials\" block of the CLI configuration, or \
             in the environment variable TF_TOKEN_{variable}.",
            module.host
        ),
        _ => without_network(error.is_unreachable()),
    };
    Problem {
        summary: "Error accessing remote module registry",
        detail: format!(
            "The module \"{}\" cannot be looked up: {error}.{hint}",
            module.package()
        ),
    }
}
