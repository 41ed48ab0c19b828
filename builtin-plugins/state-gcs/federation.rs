//! Workload identity federation: the token of another identity provider is exchanged for one of Google.
//!
//! The token comes from a file, a URL or a program. On AWS, the "token" is a signed request, which Google sends to AWS to verify the
//! identity.

use std::process::Stdio;
use std::time::Duration;

use http::aws::{self, Credential, Scope};
use monoform_sdk::{Diagnostics, Result, env};
use serde_json::{Value as Json, json};
use store_client::oauth::{Token, TokenError, send_form, token_in};
use store_client::{HeaderMap, HeaderName, HeaderValue, HttpClient, Method, Url, json_reason};

use crate::impersonation::{EVERYTHING, address, impersonated, problem};

/// Default time limit for a program.
const USUAL_TIME: Duration = Duration::from_secs(30);

fn failed(what: &str, why: impl std::fmt::Display) -> Diagnostics {
    problem(format!("The external account has no token: {what}: {why}."))
}

/// Requests a token for an external account.
pub(crate) async fn token(http: &HttpClient, json: &Json, scope: &str) -> Result<Token> {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let subject = subject(http, json).await?;
    let impersonation = text("service_account_impersonation_url");
    // For impersonation, the first token is only used to request another token, which requires a larger scope than the requested one.
    let first_scope = if impersonation.is_empty() { scope } else { EVERYTHING };
    let mut form = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("audience", text("audience")),
        ("scope", first_scope),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("subject_token", subject.as_str()),
        ("subject_token_type", text("subject_token_type")),
    ];
    let options = match text("workforce_pool_user_project") {
        "" => None,
        project => Some(json!({"userProject": project}).to_string()),
    };
    if let Some(options) = &options {
        form.push(("options", options));
    }
    let to = match text("token_url") {
        "" => "https://sts.googleapis.com/v1/token",
        url => url,
    };
    let answer = send_form(http, &address(to)?, &form)
        .await
        .map_err(|failure| failed(to, failure.message))?;
    let token = token_in(&answer).map_err(|why| failed(to, why))?;
    match impersonation {
        "" => Ok(token),
        url => impersonated(http, &token, url, &[], scope).await,
    }
}

/// Returns the token of the other identity provider.
async fn subject(http: &HttpClient, json: &Json) -> Result<String> {
    let source = &json["credential_source"];
    let text = |name: &str| source[name].as_str().unwrap_or_default();
    if text("environment_id").starts_with("aws") {
        return amazon(http, source, json["audience"].as_str().unwrap_or_default()).await;
    }
    if let Some(path) = source["file"].as_str() {
        let content = std::fs::read(path).map_err(|e| failed(path, e))?;
        return formatted(&content, &source["format"], path);
    }
    if let Some(url) = source["url"].as_str() {
        let mut headers = HeaderMap::new();
        for (name, value) in source["headers"].as_object().into_iter().flatten() {
            let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
            if let (Ok(name), Some(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
                headers.insert(name, value);
            }
        }
        let answer = http.send(Method::GET, &address(url)?, headers, None).await;
        let answer = answer.map_err(|failure| failed(url, failure.message))?;
        if !answer.status.is_success() {
            return Err(failed(url, TokenError::from_answer(&answer)));
        }
        return formatted(&answer.body, &source["format"], url);
    }
    if source["executable"].is_object() {
        return program(json, &source["executable"]).await;
    }
    Err(failed(
        "credential_source",
        "it names neither a file, nor a url, nor an executable, nor an environment of AWS",
    ))
}

/// Reads a token from content that is the token itself, or JSON with the token in a field.
fn formatted(content: &[u8], format: &Json, place: &str) -> Result<String> {
    let token = match format["type"].as_str() {
        Some("json") => {
            let field = format["subject_token_field_name"].as_str().unwrap_or_default();
            let json: Json = serde_json::from_slice(content).map_err(|e| failed(place, json_reason(e)))?;
            json[field].as_str().map(str::to_owned)
        }
        _ => String::from_utf8(content.to_vec()).ok(),
    };
    let token = token
        .map(|token| token.trim().to_owned())
        .filter(|token| !token.is_empty());
    token.ok_or_else(|| failed(place, "there is no token in it"))
}

/// Runs a program and returns the token that it prints.
async fn program(json: &Json, executable: &Json) -> Result<String> {
    let command = executable["command"].as_str().unwrap_or_default();
    // As in Google's libraries, a credentials file must not run programs unless the user allows it, because the file may come from
    // elsewhere.
    if env::var("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES").as_deref() != Some("1") {
        let why = "programs are run only if the environment variable GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1";
        return Err(failed(command, why));
    }
    let output = executable["output_file"].as_str();
    // The program caches its output in this file, so it is run only if the file has no valid token.
    if let Some(token) = output
        .and_then(|path| std::fs::read(path).ok())
        .and_then(|text| parse_answer(&text).ok())
    {
        return Ok(token);
    }
    let mut words = command.split_whitespace();
    let time = executable["timeout_millis"]
        .as_u64()
        .map_or(USUAL_TIME, Duration::from_millis);
    let mut process = tokio::process::Command::new(words.next().unwrap_or_default());
    process
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .env(
            "GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE",
            json["audience"].as_str().unwrap_or_default(),
        )
        .env(
            "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE",
            json["subject_token_type"].as_str().unwrap_or_default(),
        )
        .env("GOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE", "0");
    if let Some(path) = output {
        process.env("GOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE", path);
    }
    let ran = tokio::time::timeout(time, process.output()).await;
    let ran = ran.map_err(|_| failed(command, format!("it has not ended after {time:?}")))?;
    let ran = ran.map_err(|e| failed(command, e))?;
    if !ran.status.success() {
        return Err(failed(command, ran.status));
    }
    parse_answer(&ran.stdout).map_err(|why| failed(command, why))
}

/// Reason why a program has provided no token.
#[derive(Debug, thiserror::Error)]
enum ProgramError {
    #[error("what it says is no JSON: {}", json_reason(.0))]
    NotJson(#[from] serde_json::Error),
    #[error("{}", format!("{code} {message}").trim())]
    Refused { code: String, message: String },
    #[error("its token has ended")]
    Expired,
    #[error("it gives no token")]
    NoToken,
}

/// Reads the token in a program's output.
fn parse_answer(text: &[u8]) -> std::result::Result<String, ProgramError> {
    let json: Json = serde_json::from_slice(text)?;
    if json["success"].as_bool() != Some(true) {
        let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        return Err(ProgramError::Refused {
            code: part("code"),
            message: part("message"),
        });
    }
    if json["expiration_time"]
        .as_i64()
        .is_some_and(|end| end < store_client::oauth::now())
    {
        return Err(ProgramError::Expired);
    }
    let token = json["id_token"].as_str().or_else(|| json["saml_response"].as_str());
    token.map(str::to_owned).ok_or(ProgramError::NoToken)
}

/// Reads a value from the EC2 metadata service.
async fn metadata(http: &HttpClient, url: &str, session: Option<&HeaderValue>) -> Result<String> {
    let mut headers = HeaderMap::new();
    if let Some(session) = session {
        headers.insert("x-aws-ec2-metadata-token", session.clone());
    }
    let answer = http.send(Method::GET, &address(url)?, headers, None).await;
    let answer = answer.map_err(|failure| failed(url, failure.message))?;
    match answer.status.is_success() {
        true => Ok(answer.text().trim().to_owned()),
        false => Err(failed(url, format!("the status is {}", answer.status))),
    }
}

/// Builds a signed request to AWS, without sending it: the signature proves the identity.
async fn amazon(http: &HttpClient, source: &Json, audience: &str) -> Result<String> {
    let text = |name: &str| source[name].as_str().unwrap_or_default();
    let session = match text("imdsv2_session_token_url") {
        "" => None,
        url => {
            let mut headers = HeaderMap::new();
            headers.insert("x-aws-ec2-metadata-token-ttl-seconds", HeaderValue::from_static("300"));
            let answer = http.send(Method::PUT, &address(url)?, headers, Some(Vec::new())).await;
            let answer = answer.map_err(|failure| failed(url, failure.message))?;
            HeaderValue::from_bytes(answer.body.trim_ascii())
                .ok()
                .filter(|_| answer.status.is_success())
        }
    };
    let session = session.as_ref();
    let region = match env::first(&["AWS_REGION", "AWS_DEFAULT_REGION"]) {
        Some(region) => region,
        // The service returns the availability zone, which is the region followed by a letter.
        None => {
            let mut zone = metadata(http, text("region_url"), session).await?;
            zone.pop();
            zone
        }
    };
    let given = (env::var("AWS_ACCESS_KEY_ID"), env::var("AWS_SECRET_ACCESS_KEY"));
    let credential = if let (Some(access_key_id), Some(secret_access_key)) = given {
        Credential {
            access_key_id,
            secret_access_key,
            session_token: env::var("AWS_SESSION_TOKEN"),
            ..Credential::default()
        }
    } else {
        let role = metadata(http, text("url"), session).await?;
        let found = metadata(http, &format!("{}/{role}", text("url")), session).await?;
        let json: Json = serde_json::from_str(&found).map_err(|e| failed(text("url"), json_reason(e)))?;
        let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        Credential {
            access_key_id: part("AccessKeyId"),
            secret_access_key: part("SecretAccessKey"),
            session_token: Some(part("Token")).filter(|token| !token.is_empty()),
            ..Credential::default()
        }
    };
    let url = text("regional_cred_verification_url").replace("{region}", &region);
    serialized(&url, &region, &credential, audience).map_err(|why| failed(&url, why))
}

/// Reason why a request to AWS cannot be signed.
#[derive(Debug, thiserror::Error)]
enum SerializeError {
    #[error(transparent)]
    Address(#[from] url::ParseError),
    #[error("the audience {0:?} cannot be sent in a header")]
    Audience(String),
    #[error(transparent)]
    Sign(#[from] aws::SignError),
}

/// Encodes a signed request as JSON for a form field.
fn serialized(
    url: &str,
    region: &str,
    credential: &Credential,
    audience: &str,
) -> std::result::Result<String, SerializeError> {
    let parsed = Url::parse(url)?;
    let mut headers = HeaderMap::new();
    let audience = HeaderValue::from_str(audience).map_err(|_| SerializeError::Audience(audience.to_owned()))?;
    headers.insert("x-goog-cloud-target-resource", audience);
    let scope = Scope { service: "sts", region };
    let mut headers = aws::signed(scope, credential, &Method::POST, &parsed, headers)?;
    if let Ok(host) = HeaderValue::from_str(parsed.authority()) {
        headers.insert("host", host);
    }
    let headers: Vec<Json> = headers
        .iter()
        .filter_map(|(name, value)| Some(json!({"key": name.as_str(), "value": value.to_str().ok()?})))
        .collect();
    let request = json!({"url": url, "method": "POST", "headers": headers}).to_string();
    // As in Google's libraries, the text is percent-encoded here, and again as a form field.
    Ok(percent_encoding::utf8_percent_encode(&request, percent_encoding::NON_ALPHANUMERIC).to_string())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn tokens_are_text_or_a_field() {
        let json = json!({"type": "json", "subject_token_field_name": "t"});
        assert_eq!(formatted(b"{\"t\":\"x\"}", &json, "p").unwrap(), "x");
        assert_eq!(formatted(b"x\n", &Json::Null, "p").unwrap(), "x");
        assert!(formatted(b"{}", &json, "p").is_err());
        assert!(formatted(b" \n", &Json::Null, "p").is_err());
    }

    #[test]
    fn what_programs_say_is_believed_only_with_success() {
        assert_eq!(
            parse_answer(br#"{"version":1,"success":true,"id_token":"t"}"#).unwrap(),
            "t"
        );
        assert!(parse_answer(br#"{"success":true,"id_token":"t","expiration_time":1}"#).is_err());
        let why = parse_answer(br#"{"success":false,"code":"401","message":"no"}"#).unwrap_err();
        assert_eq!(why.to_string(), "401 no");
    }

    #[test]
    fn a_request_for_amazon_is_signed_for_the_audience() {
        let credential = Credential {
            access_key_id: "A".into(),
            secret_access_key: "B".into(),
            ..Credential::default()
        };
        let url = "https://sts.eu-west-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15";
        let text = serialized(url, "eu-west-1", &credential, "//iam/x").unwrap();
        let text = percent_encoding::percent_decode_str(&text)
            .decode_utf8()
            .unwrap()
            .into_owned();
        let json: Json = serde_json::from_str(&text).unwrap();
        let header = |name: &str| {
            let found = json["headers"].as_array().unwrap().iter().find(|h| h["key"] == name);
            found.unwrap()["value"].as_str().unwrap().to_owned()
        };
        assert_eq!(header("x-goog-cloud-target-resource"), "//iam/x");
        assert_eq!(header("host"), "sts.eu-west-1.amazonaws.com");
        let signature = header("authorization");
        assert!(signature.contains("eu-west-1/sts/aws4_request") && signature.contains("x-goog-cloud-target-resource"));
    }
}
