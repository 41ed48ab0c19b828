//! Amazon S3, and services with the same interface.
//!
//! Credentials come from the sources that the tools of AWS use: the address, the environment, the profiles of the shared files,
//! the container's service, the machine's metadata service. Without any, requests are anonymous.

use files::Environment;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::http::aws::{self, Credential, Scope};
use archive::{Limits, entry_path};
use net::{Client, Response, Url};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{FetchError, file_error, http};

/// Validity of a presigned URL.
const VALID: Duration = Duration::from_secs(3600);
/// Timeout of the local credential services, which answer quickly if they exist.
const NEARBY: Duration = Duration::from_secs(2);
const ANSWER_LIMIT: u64 = 16 << 20;

/// Characters to percent-encode in the query of a signed URL: all except the unreserved characters of RFC 3986.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Characters to percent-encode in the path of a signed URL: those of [`PART`], but not the slash.
const PATH: &AsciiSet = &PART.remove(b'/');

/// Location of an object or of a directory of objects, with the credentials for it; `None` for anonymous requests.
struct S3Location {
    parsed: Parsed,
    credentials: Option<Credential>,
}

struct Parsed {
    /// URL of the bucket, with a slash at its end.
    base: Url,
    bucket: String,
    region: String,
    key: String,
    version: Option<String>,
}

impl S3Location {
    /// Returns the URL of an object, or of the bucket if the key is empty, with this query. The URL is presigned if there are
    /// credentials.
    fn address(&self, key: &str, query: &[(&str, &str)]) -> Result<Url, FetchError> {
        let mut url = self.parsed.base.clone();
        let path = format!("{}{}", url.path(), utf8_percent_encode(key, PATH));
        url.set_path(&path);
        // The parameters are encoded here instead of by `Url`, because the signature covers exactly these
        // escapes.
        let encoded = |text: &str| utf8_percent_encode(text, PART).to_string();
        let query: Vec<String> = query
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
        let Some(credentials) = &self.credentials else {
            return Ok(url);
        };
        let scope = Scope {
            service: "s3",
            region: &self.parsed.region,
        };
        aws::presigned(scope, credentials, &url, VALID).map_err(FetchError::Signature)
    }
}

fn parse(url: &Url) -> Result<Parsed, FetchError> {
    let bad = || {
        FetchError::AddressForm(
            "an address in S3 has the form s3::https://s3.amazonaws.com/BUCKET/OBJECT, or the like with another host",
        )
    };
    let query = |wanted: &str| {
        let found = url.query_pairs().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.into_owned()).filter(|v| !v.is_empty())
    };
    let path = net::decoded_path(url).ok_or_else(bad)?;
    let path = path.trim_start_matches('/');
    let host = url.host_str().ok_or_else(bad)?;
    let first_of_path = || {
        path.split_once('/')
            .filter(|(b, k)| !b.is_empty() && !k.is_empty())
            .ok_or_else(bad)
    };
    let (mut base, bucket, region, key) = match host.strip_suffix(".amazonaws.com") {
        Some(rest) => {
            let labels: Vec<&str> = rest.split('.').collect();
            let dashed = |label: &str| {
                // Old host names have the region behind "s3-"; the plain "s3" is us-east-1.
                let region = label.trim_start_matches("s3-").trim_start_matches("s3");
                if region.is_empty() {
                    "us-east-1".to_owned()
                } else {
                    region.to_owned()
                }
            };
            let (bucket, region, key) = match labels.as_slice() {
                [service] => {
                    let (bucket, key) = first_of_path()?;
                    (bucket, dashed(service), key)
                }
                ["s3", region] => {
                    let (bucket, key) = first_of_path()?;
                    (bucket, (*region).to_owned(), key)
                }
                [bucket, service] => (*bucket, dashed(service), path),
                [bucket, "s3", region] => (*bucket, (*region).to_owned(), path),
                _ => return Err(bad()),
            };
            let endpoint = Url::parse(&format!("https://s3.{region}.amazonaws.com")).map_err(|_| bad())?;
            (endpoint, bucket, region, key)
        }
        None => {
            let (bucket, key) = first_of_path()?;
            let mut endpoint = url.clone();
            endpoint.set_path("/");
            endpoint.set_query(None);
            endpoint.set_fragment(None);
            let region = query("region").unwrap_or_else(|| "us-east-1".to_owned());
            (endpoint, bucket, region, key)
        }
    };
    if key.is_empty() || !matches!(base.scheme(), "http" | "https") {
        return Err(bad());
    }
    // The wildcard certificate of AWS covers one label, so bucket names with dots go into the path.
    let in_host = host.ends_with(".amazonaws.com") && !bucket.contains('.');
    if in_host {
        let named = format!("{bucket}.{}", base.host_str().ok_or_else(bad)?);
        base.set_host(Some(&named)).map_err(FetchError::Url)?;
    } else {
        base.set_path(&format!("/{}/", utf8_percent_encode(bucket, PART)));
    }
    Ok(Parsed {
        base,
        bucket: bucket.to_owned(),
        region,
        key: key.to_owned(),
        version: query("version"),
    })
}

async fn place(client: &Client, url: &Url) -> Result<S3Location, FetchError> {
    Ok(S3Location {
        parsed: parse(url)?,
        credentials: credentials(client, url).await?,
    })
}

/// Returns true if an object has exactly this name; otherwise the name is that of a directory.
pub(super) async fn is_file(client: &Client, url: &Url) -> Result<bool, FetchError> {
    let place = place(client, url).await?;
    // Keys are listed in their order, so an object of exactly this name comes before those that begin with it.
    let (keys, _) = list(client, &place, None, Some(2)).await?;
    Ok(keys.contains(&place.parsed.key))
}

/// Downloads one object.
pub(super) async fn file(client: &Client, url: &Url, to: &Path) -> Result<(), FetchError> {
    let place = place(client, url).await?;
    let parsed = &place.parsed;
    object(client, &place, &parsed.key, parsed.version.as_deref(), to).await
}

/// Downloads all objects below a name.
pub(super) async fn directory(client: &Client, url: &Url, to: &Path) -> Result<(), FetchError> {
    let place = place(client, url).await?;
    let top = format!("{}/", place.parsed.key.trim_end_matches('/'));
    let mut more = None;
    let mut any = false;
    let mut budget = http::Budget::new(client)?;
    loop {
        let (keys, next) = list(client, &place, more.as_deref(), None).await?;
        for key in keys {
            // The list has all names with this prefix, even those beside the directory. A name that ends in a slash is a
            // directory.
            let Some(inside) = key.strip_prefix(&top).filter(|k| !k.is_empty() && !k.ends_with('/')) else {
                continue;
            };
            // The owner of the bucket chooses the keys of objects, and a key could lead out of the directory.
            let path = entry_path(inside).map_err(FetchError::Directory)?;
            any = true;
            let target = to.join(path);
            let parent = target.parent().unwrap_or(to);
            std::fs::create_dir_all(parent).map_err(file_error("creating the directory", parent))?;
            object(client, &place, &key, None, &target).await?;
            budget.spend(&target)?;
        }
        match next {
            Some(token) => more = Some(token),
            None if any => return Ok(()),
            None => {
                return Err(FetchError::NoObject {
                    bucket: place.parsed.bucket,
                    object: place.parsed.key,
                });
            }
        }
    }
}

async fn object(
    client: &Client,
    place: &S3Location,
    key: &str,
    version: Option<&str>,
    to: &Path,
) -> Result<(), FetchError> {
    let query: Vec<_> = version.map(|version| ("versionId", version)).into_iter().collect();
    let response = client.get(place.address(key, &query)?).retries(2).send().await;
    let response = response.and_then(Response::success).map_err(|e| explained(place, e))?;
    http::save(
        response,
        to,
        &Limits::from_variables(client.settings().environment.all())?,
    )
    .await
}

async fn list(
    client: &Client,
    place: &S3Location,
    more: Option<&str>,
    limit: Option<usize>,
) -> Result<(Vec<String>, Option<String>), FetchError> {
    let limit = limit.map(|limit| limit.to_string());
    let query = [
        more.map(|token| ("continuation-token", token)),
        // Keys may have characters that XML cannot represent.
        Some(("encoding-type", "url")),
        Some(("list-type", "2")),
        limit.as_deref().map(|limit| ("max-keys", limit)),
        Some(("prefix", &*place.parsed.key)),
    ];
    let query: Vec<_> = query.into_iter().flatten().collect();
    let request = client.get(place.address("", &query)?).retries(2);
    let (_, body) = request.read(ANSWER_LIMIT).await.map_err(|e| explained(place, e))?;
    read_list(&String::from_utf8_lossy(&body)).map_err(|error| FetchError::Response {
        address: net::shown(&place.parsed.base),
        reason: error.to_string(),
    })
}

#[derive(Debug, PartialEq, thiserror::Error)]
enum ListError {
    #[error(transparent)]
    Xml(#[from] roxmltree::Error),
    #[error("it is a document of type {0}")]
    OtherDocument(String),
    #[error("an object in it has no key")]
    NoKey,
    #[error("it is cut off, and does not say where it goes on")]
    NoContinuation,
}

/// Reads the keys in a list of objects, and the token for the rest of it.
fn read_list(text: &str) -> Result<(Vec<String>, Option<String>), ListError> {
    let document = roxmltree::Document::parse(text)?;
    let root = document.root_element();
    if root.tag_name().name() != "ListBucketResult" {
        return Err(ListError::OtherDocument(root.tag_name().name().to_owned()));
    }
    let child = |node: roxmltree::Node<'_, '_>, name: &str| {
        let found = node.children().find(|child| child.tag_name().name() == name)?;
        Some(found.text().unwrap_or_default().to_owned())
    };
    let is_encoded = child(root, "EncodingType").as_deref() == Some("url");
    let mut keys = Vec::new();
    for object in root.children().filter(|node| node.tag_name().name() == "Contents") {
        let key = child(object, "Key").ok_or(ListError::NoKey)?;
        keys.push(if is_encoded { decoded(key) } else { key });
    }
    let token = child(root, "NextContinuationToken").filter(|token| !token.is_empty());
    match (child(root, "IsTruncated").as_deref(), token) {
        // If a part of the list were used as the whole, an incomplete module would be installed.
        (Some("true"), None) => Err(ListError::NoContinuation),
        (Some("false"), _) => Ok((keys, None)),
        (_, token) => Ok((keys, token)),
    }
}

/// Returns a key without its escapes. Some services write a space as `+`; such services escape a plus.
fn decoded(key: String) -> String {
    let spaced = key.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(text) => text.into_owned(),
        Err(_) => key,
    }
}

fn explained(place: &S3Location, error: net::Error) -> FetchError {
    let hint = match (error.status().map(|s| s.as_u16()), &place.credentials) {
        (Some(401 | 403), None) => {
            ". No credentials for it were found: neither in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, \
             AWS_PROFILE) nor in the shared files nor from the machine"
        }
        (Some(401 | 403), Some(_)) => ". The credentials that were found are not enough for it",
        (Some(301), _) => ". The bucket is in another region than the address says",
        _ => "",
    };
    FetchError::request(error, hint)
}

/// Returns credentials from the first source that has some; `None` if no source has any. A profile that the user names and that has
/// none is an error.
async fn credentials(client: &Client, url: &Url) -> Result<Option<Credential>, FetchError> {
    let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let environment = &client.settings().environment;
    let given = |map: &BTreeMap<String, String>, name: &str| map.get(name).filter(|v| !v.is_empty()).cloned();
    let set = |name: &str| environment.get(name).map(str::to_owned);
    // Keys in the address are used without a token from elsewhere, which would belong to other credentials.
    if ["aws_access_key_id", "aws_access_key_secret", "aws_access_token"]
        .iter()
        .any(|n| query.contains_key(*n))
    {
        return Ok(made(
            given(&query, "aws_access_key_id"),
            given(&query, "aws_access_key_secret"),
            given(&query, "aws_access_token"),
        ));
    }
    let profile = given(&query, "aws_profile");
    // A profile in the address takes precedence over keys in the environment.
    if profile.is_none() {
        let found = made(
            set("AWS_ACCESS_KEY_ID").or_else(|| set("AWS_ACCESS_KEY")),
            set("AWS_SECRET_ACCESS_KEY").or_else(|| set("AWS_SECRET_KEY")),
            set("AWS_SESSION_TOKEN"),
        );
        if found.is_some() {
            return Ok(found);
        }
    }
    let home = environment.home().map(|home| home.join(".aws"));
    let shared = |variable: &str, name: &str| {
        let path = set(variable)
            .map(PathBuf::from)
            .or_else(|| Some(home.as_ref()?.join(name)));
        path.and_then(|p| std::fs::read_to_string(p).ok()).unwrap_or_default()
    };
    let asked = profile.or_else(|| set("AWS_PROFILE"));
    let name = asked.clone().unwrap_or_else(|| "default".to_owned());
    // The credentials file takes precedence over the configuration file.
    let mut section = profile_of(&shared("AWS_CONFIG_FILE", "config"), &name, true);
    section.extend(profile_of(
        &shared("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        &name,
        false,
    ));
    let found = made(
        given(&section, "aws_access_key_id"),
        given(&section, "aws_secret_access_key"),
        given(&section, "aws_session_token"),
    );
    if found.is_some() {
        return Ok(found);
    }
    // A profile that the user names must not be replaced by the role of the machine.
    if let Some(asked) = asked {
        return Err(FetchError::AwsProfile(asked));
    }
    Ok(nearby(client, environment).await)
}

fn made(key: Option<String>, secret: Option<String>, token: Option<String>) -> Option<Credential> {
    Some(Credential {
        access_key_id: key?,
        secret_access_key: secret?,
        session_token: token,
        ..Credential::default()
    })
}

fn profile_of(text: &str, name: &str, config: bool) -> BTreeMap<String, String> {
    let mut inside = false;
    let mut out = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
            let words: Vec<&str> = section.split_whitespace().collect();
            inside = match words.as_slice() {
                // `config` names its sections "profile NAME", except for "default"; the file of credentials has the bare name.
                [one] => *one == name && (!config || name == "default"),
                ["profile", one] => config && *one == name,
                _ => false,
            };
        } else if let Some((key, value)) = line.split_once('=').filter(|_| inside && !line.starts_with(['#', ';'])) {
            out.insert(key.trim().to_owned(), value.trim().to_owned());
        }
    }
    out
}

/// Returns credentials from the container's service or, without one, from the machine's metadata service; `None` if neither has
/// any.
async fn nearby(client: &Client, environment: &Environment) -> Option<Credential> {
    let get = |name: &str| environment.get(name);
    let keys = |body: &[u8]| {
        let answer: serde_json::Value = serde_json::from_slice(body).ok()?;
        let text = |name: &str| answer.get(name).and_then(|v| v.as_str()).map(str::to_owned);
        made(text("AccessKeyId"), text("SecretAccessKey"), text("Token"))
    };
    let container = get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        .map(str::to_owned)
        .or_else(|| {
            let path = get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")?;
            Some(format!("http://169.254.170.2{path}"))
        });
    if let Some(url) = container.and_then(|u| Url::parse(&u).ok()) {
        // Redirects are not followed, because the credentials must come from this endpoint itself.
        let mut request = client.get(url).retries(1).timeout(NEARBY).redirects(0);
        let from_file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").and_then(|p| std::fs::read_to_string(p).ok());
        if let Some(token) = from_file.or_else(|| get("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(str::to_owned)) {
            request = request.secret("authorization", token.trim());
        }
        return keys(&request.read(ANSWER_LIMIT).await.ok()?.1);
    }
    if get("AWS_EC2_METADATA_DISABLED").is_some_and(|v| v.eq_ignore_ascii_case("true")) {
        return None;
    }
    let base = get("AWS_METADATA_URL")
        .or_else(|| get("AWS_EC2_METADATA_SERVICE_ENDPOINT"))
        .map_or("http://169.254.169.254", |u| {
            u.trim_end_matches('/').trim_end_matches("/latest")
        });
    let at = |path: &str| Url::parse(&format!("{base}/latest/{path}")).ok();
    // This is IMDSv2: every request needs the token of a session. Version 1 is not used.
    let session = client
        .put(at("api/token")?)
        .header("x-aws-ec2-metadata-token-ttl-seconds", "300")
        .retries(0)
        .timeout(NEARBY)
        .read(ANSWER_LIMIT)
        .await
        .ok()?
        .1;
    let session = String::from_utf8(session).ok()?;
    let ask = async |url: Url| {
        let request = client
            .get(url)
            .secret("x-aws-ec2-metadata-token", &session)
            .retries(1)
            .timeout(NEARBY);
        request.read(ANSWER_LIMIT).await.ok().map(|(_, body)| body)
    };
    let role = ask(at("meta-data/iam/security-credentials/")?).await?;
    let role = String::from_utf8(role).ok()?;
    let role = role.lines().next()?.trim().to_owned();
    keys(&ask(at(&format!("meta-data/iam/security-credentials/{role}"))?).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_styles() {
        for (text, expected) in [
            (
                "https://s3.amazonaws.com/b/k/x.zip",
                "https://b.s3.us-east-1.amazonaws.com/ b us-east-1 k/x.zip",
            ),
            (
                "https://s3-eu-west-1.amazonaws.com/b/k",
                "https://b.s3.eu-west-1.amazonaws.com/ b eu-west-1 k",
            ),
            (
                "https://s3.eu-west-1.amazonaws.com/b/k",
                "https://b.s3.eu-west-1.amazonaws.com/ b eu-west-1 k",
            ),
            (
                "https://b.s3-eu-west-1.amazonaws.com/k",
                "https://b.s3.eu-west-1.amazonaws.com/ b eu-west-1 k",
            ),
            (
                "https://b.s3.eu-west-1.amazonaws.com/k",
                "https://b.s3.eu-west-1.amazonaws.com/ b eu-west-1 k",
            ),
            (
                "https://s3.eu-west-1.amazonaws.com/b.c/k",
                "https://s3.eu-west-1.amazonaws.com/b.c/ b.c eu-west-1 k",
            ),
            (
                "http://localhost:9000/b/k%20l?region=r",
                "http://localhost:9000/b/ b r k l",
            ),
        ] {
            let p = parse(&Url::parse(text).unwrap()).unwrap();
            assert_eq!(
                format!("{} {} {} {}", p.base, p.bucket, p.region, p.key),
                expected,
                "{text}"
            );
        }
        for bad in [
            "https://s3.amazonaws.com/b",
            "https://localhost/b/",
            "https://a.b.c.d.amazonaws.com/k",
        ] {
            assert!(parse(&Url::parse(bad).unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn lists_are_read_whole_or_refused() {
        let list = |inner: &str| read_list(&format!("<ListBucketResult xmlns=\"urn:x\">{inner}</ListBucketResult>"));
        let plain = list("<IsTruncated>false</IsTruncated><Contents><Key>a+b &amp; c</Key></Contents>");
        assert_eq!(plain, Ok((vec!["a+b & c".to_owned()], None)));
        let encoded = list(
            "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>\
             <Contents><Key>a%2Bb+c%20d</Key></Contents>",
        );
        assert_eq!(encoded, Ok((vec!["a+b c d".to_owned()], Some("t".to_owned()))));
        assert_eq!(list("<IsTruncated>true</IsTruncated>"), Err(ListError::NoContinuation));
        assert_eq!(list("<Contents></Contents>"), Err(ListError::NoKey));
        let other = read_list("<Error><Code>x</Code></Error>");
        assert_eq!(other, Err(ListError::OtherDocument("Error".to_owned())));
        assert!(matches!(read_list("<ListBucketResult>"), Err(ListError::Xml(_))));
    }

    #[test]
    fn keys_and_queries_are_encoded_as_signatures_need_it() {
        let place = S3Location {
            parsed: parse(&Url::parse("http://localhost:9000/b/k").unwrap()).unwrap(),
            credentials: None,
        };
        let address = place.address("/a b/ü+=.zip", &[("versionId", "1/2 3")]).unwrap();
        assert_eq!(
            address.as_str(),
            "http://localhost:9000/b//a%20b/%C3%BC%2B%3D.zip?versionId=1%2F2%203"
        );
    }

    #[test]
    fn profiles_of_shared_files() {
        let text =
            "[default]\naws_access_key_id = a\n[profile p]\naws_access_key_id=b\n# x=y\n[q]\naws_access_key_id=c\n";
        let key = |name: &str, config: bool| profile_of(text, name, config).remove("aws_access_key_id");
        assert_eq!(key("default", true).as_deref(), Some("a"));
        assert_eq!(key("p", true).as_deref(), Some("b"));
        assert_eq!(key("q", false).as_deref(), Some("c"));
        assert_eq!((key("q", true), key("p", false)), (None, None));
    }
}
