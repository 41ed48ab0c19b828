//! Downloads from Google Cloud Storage, by its JSON API.
//!
//! The token comes from the environment, from the file of application default credentials, or from the machine's metadata
//! service. Without any, requests are anonymous.

#![expect(clippy::disallowed_methods, reason = "a signed request has the time in it")]

use files::Environment;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive::{Limits, entry_path};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use net::{Client, Response, Token, Url};
use rustls::SignatureScheme;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use super::{FetchError, GoogleError, file_error, http};

const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";
const ANSWER_LIMIT: u64 = 16 << 20;
/// Timeout of the metadata service, which answers quickly if it exists.
const NEARBY: Duration = Duration::from_secs(2);

struct ObjectLocation {
    base: Url,
    bucket: String,
    object: String,
    /// Generation of the object, if the address has one.
    generation: Option<String>,
    token: Option<Token>,
}

/// Splits `…/storage/VERSION/BUCKET/OBJECT`. An emulator replaces the host.
fn parse(url: &Url, emulator: Option<&str>) -> Result<(Url, String, String), FetchError> {
    let bad = || {
        FetchError::AddressForm(
            "an address in Google Cloud Storage has the form gcs::https://www.googleapis.com/storage/v1/BUCKET/OBJECT",
        )
    };
    let path = net::decoded_path(url).ok_or_else(bad)?;
    let parts: Vec<&str> = path.trim_start_matches('/').splitn(4, '/').collect();
    let ["storage", version, bucket, object] = parts.as_slice() else {
        return Err(bad());
    };
    if bucket.is_empty() || object.is_empty() {
        return Err(bad());
    }
    // As in Google's libraries, STORAGE_EMULATOR_HOST may or may not have a scheme.
    let base = match emulator {
        Some(host) if host.contains("://") => Url::parse(host),
        Some(host) => Url::parse(&format!("http://{host}")),
        None => Ok(url.clone()),
    };
    let mut base = base.map_err(|_| bad())?;
    base.set_query(None);
    base.set_fragment(None);
    base.set_path(&format!("/storage/{version}/"));
    Ok((base, (*bucket).to_owned(), (*object).to_owned()))
}

async fn place(client: &Client, url: &Url) -> Result<ObjectLocation, FetchError> {
    let environment = &client.settings().environment;
    let emulator = environment.get("STORAGE_EMULATOR_HOST");
    let (base, bucket, object) = parse(url, emulator)?;
    Ok(ObjectLocation {
        base,
        bucket,
        object,
        generation: url.fragment().map(str::to_owned),
        // A real token must not be sent to an emulator.
        token: if emulator.is_some() {
            None
        } else {
            token(client, environment).await?
        },
    })
}

impl ObjectLocation {
    fn url(&self, object: Option<&str>) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["b", &self.bucket, "o"]).extend(object);
        }
        url
    }

    fn explained(&self, error: net::Error) -> FetchError {
        let hint = match (error.status().map(|s| s.as_u16()), &self.token) {
            (Some(401 | 403), None) => {
                ". No credentials for it were found: neither in the environment (GOOGLE_OAUTH_ACCESS_TOKEN, \
                 GOOGLE_APPLICATION_CREDENTIALS) nor as application default credentials nor from the machine"
            }
            (Some(401 | 403), Some(_)) => ". The credentials that were found are not enough for it",
            _ => "",
        };
        FetchError::request(error, hint)
    }
}

/// Returns true if an object has exactly this name; otherwise the name is that of a directory.
pub(super) async fn is_file(client: &Client, url: &Url) -> Result<bool, FetchError> {
    let place = place(client, url).await?;
    let response = client
        .get(place.url(Some(&place.object)))
        .token(place.token.as_ref())
        .retries(2)
        .send()
        .await;
    let response = response.map_err(|e| place.explained(e))?;
    match response.status().as_u16() {
        404 => Ok(false),
        _ => response.success().map(|_| true).map_err(|e| place.explained(e)),
    }
}

/// Downloads one object.
pub(super) async fn file(client: &Client, url: &Url, to: &Path) -> Result<(), FetchError> {
    let place = place(client, url).await?;
    object(client, &place, &place.object, place.generation.as_deref(), to).await
}

/// Downloads all objects below a name.
pub(super) async fn directory(client: &Client, url: &Url, to: &Path) -> Result<(), FetchError> {
    let place = place(client, url).await?;
    let top = format!("{}/", place.object.trim_end_matches('/'));
    let mut more: Option<String> = None;
    let mut any = false;
    let mut budget = http::Budget::new(client)?;
    loop {
        let mut url = place.url(None);
        url.query_pairs_mut().append_pair("prefix", &top);
        if let Some(token) = &more {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        let request = client.get(url.clone()).token(place.token.as_ref()).retries(2);
        let (_, body) = request.read(ANSWER_LIMIT).await.map_err(|e| place.explained(e))?;
        let answer: serde_json::Value = serde_json::from_slice(&body).map_err(|e| FetchError::Response {
            address: net::shown(&url),
            reason: files::json_reason(e),
        })?;
        for item in answer.get("items").and_then(|i| i.as_array()).into_iter().flatten() {
            let name = item.get("name").and_then(|n| n.as_str()).unwrap_or_default();
            // A name that ends in a slash is a directory.
            let Some(inside) = name.strip_prefix(&top).filter(|n| !n.is_empty() && !n.ends_with('/')) else {
                continue;
            };
            // The owner of the bucket chooses the names of objects, and a name could lead out of the directory.
            let target = to.join(entry_path(inside).map_err(FetchError::Directory)?);
            any = true;
            let parent = target.parent().unwrap_or(to);
            std::fs::create_dir_all(parent).map_err(file_error("creating the directory", parent))?;
            object(client, &place, name, None, &target).await?;
            budget.spend(&target)?;
        }
        more = answer.get("nextPageToken").and_then(|t| t.as_str()).map(str::to_owned);
        match (&more, any) {
            (Some(_), _) => {}
            (None, true) => return Ok(()),
            (None, false) => {
                // A bucket has no directories, so an empty list is the only sign of a wrong name.
                return Err(FetchError::NoObject {
                    bucket: place.bucket,
                    object: place.object,
                });
            }
        }
    }
}

async fn object(
    client: &Client,
    place: &ObjectLocation,
    name: &str,
    generation: Option<&str>,
    to: &Path,
) -> Result<(), FetchError> {
    let mut url = place.url(Some(name));
    url.query_pairs_mut().append_pair("alt", "media");
    if let Some(generation) = generation {
        url.query_pairs_mut().append_pair("generation", generation);
    }
    let response = client.get(url).token(place.token.as_ref()).retries(2).send().await;
    let response = response.and_then(Response::success).map_err(|e| place.explained(e))?;
    http::save(
        response,
        to,
        &Limits::from_variables(client.settings().environment.all())?,
    )
    .await
}

/// Returns a token from the first source that has one; `None` if no source has one.
async fn token(client: &Client, environment: &Environment) -> Result<Option<Token>, FetchError> {
    let get = |name: &str| environment.get(name);
    if let Some(token) = get("GOOGLE_OAUTH_ACCESS_TOKEN") {
        return Ok(Some(Token::new(token)));
    }
    let named = get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let usual = get("CLOUDSDK_CONFIG")
        .map(PathBuf::from)
        .or_else(|| {
            client
                .settings()
                .environment
                .home()
                .map(|home| home.join(".config/gcloud"))
        })
        .map(|dir| dir.join("application_default_credentials.json"));
    // If a variable names the file, it must exist; the default file may be missing.
    let path = named.clone().or_else(|| usual.filter(|p| p.exists()));
    if let Some(path) = path {
        let failed = |reason: GoogleError| FetchError::GoogleCredentials {
            path: path.clone(),
            reason,
        };
        let text = std::fs::read(&path).map_err(|e| failed(GoogleError::Read(e)))?;
        let file: serde_json::Value = serde_json::from_slice(&text).map_err(|_| failed(GoogleError::Json))?;
        return from_file(client, &file).await.map(Some).map_err(failed);
    }
    let host = get("GCE_METADATA_HOST").unwrap_or("metadata.google.internal");
    let url = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
    let Ok(url) = Url::parse(&url) else { return Ok(None) };
    // The service exists only on Google's machines. Elsewhere a retry would only delay the installation.
    let request = client
        .get(url)
        .header("metadata-flavor", "Google")
        .retries(0)
        .redirects(0)
        .timeout(NEARBY);
    Ok(match request.read(ANSWER_LIMIT).await {
        Ok((_, body)) => access_token(&body).ok(),
        // Public buckets need no token.
        Err(_) => None,
    })
}

async fn from_file(client: &Client, file: &serde_json::Value) -> Result<Token, GoogleError> {
    let text = |name: &str| file.get(name).and_then(|v| v.as_str()).unwrap_or_default();
    let uri = Some(text("token_uri"))
        .filter(|u| !u.is_empty())
        .unwrap_or("https://oauth2.googleapis.com/token");
    let url = Url::parse(uri).map_err(|_| GoogleError::TokenUri)?;
    let assertion;
    let form: Vec<(&str, &str)> = match text("type") {
        "authorized_user" => vec![
            ("grant_type", "refresh_token"),
            ("client_id", text("client_id")),
            ("client_secret", text("client_secret")),
            ("refresh_token", text("refresh_token")),
        ],
        "service_account" => {
            assertion = signed(text("client_email"), text("private_key_id"), text("private_key"), uri)?;
            vec![
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", &assertion),
            ]
        }
        other => return Err(GoogleError::Type(other.to_owned())),
    };
    let body = net::form(form);
    let request = client
        .post(url, "application/x-www-form-urlencoded", body)
        .timeout(Duration::from_secs(30));
    let (_, body) = request.read(ANSWER_LIMIT).await?;
    access_token(&body)
}

fn access_token(body: &[u8]) -> Result<Token, GoogleError> {
    let answer: serde_json::Value = serde_json::from_slice(body).map_err(|_| GoogleError::ResponseJson)?;
    let token = answer.get("access_token").and_then(|t| t.as_str());
    token.map(Token::new).ok_or(GoogleError::NoToken)
}

/// Returns the assertion of a service account about itself (a JWT), signed by its key.
fn signed(account: &str, key_id: &str, key: &str, audience: &str) -> Result<String, GoogleError> {
    let now = jiff::Timestamp::now().as_second();
    let header = serde_json::json!({"alg": "RS256", "typ": "JWT", "kid": key_id});
    // An hour is the longest validity that the token endpoint accepts.
    let claims = serde_json::json!({"iss": account, "scope": SCOPE, "aud": audience, "iat": now, "exp": now + 3600});
    let text = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let unusable = || GoogleError::Key;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| unusable())?;
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|_| unusable())?;
    let signer = key
        .choose_scheme(&[SignatureScheme::RSA_PKCS1_SHA256])
        .ok_or_else(unusable)?;
    let signature = signer.sign(text.as_bytes()).map_err(|_| unusable())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let url = Url::parse("https://www.googleapis.com/storage/v1/b/dir/x%20y.zip").unwrap();
        let (base, bucket, object) = parse(&url, None).unwrap();
        assert_eq!(base.as_str(), "https://www.googleapis.com/storage/v1/");
        let place = ObjectLocation {
            base,
            bucket,
            object,
            generation: None,
            token: None,
        };
        assert_eq!(
            place.url(Some(&place.object)).as_str(),
            "https://www.googleapis.com/storage/v1/b/b/o/dir%2Fx%20y.zip"
        );
        let emulator = "localhost:1";
        assert_eq!(
            parse(&url, Some(emulator)).unwrap().0.as_str(),
            "http://localhost:1/storage/v1/"
        );
        assert!(parse(&Url::parse("https://www.googleapis.com/storage/v1/b").unwrap(), None).is_err());
    }
}
