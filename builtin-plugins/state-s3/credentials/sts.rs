//! Requests to STS: assuming roles, and finding the account of credentials.

use std::collections::BTreeMap;

use http::aws::Credential;
use monoform_sdk::{Diagnostic, Diagnostics, Result, env};
use store_client::xml::tag;
use store_client::{HttpClient, Method};

use super::credential::{credential, expiry, problem};
use crate::aws::{self, Request, ResourceNames};
use crate::endpoints::iam_region;
use crate::services::{Services, url};

#[derive(Clone, Debug, Default)]
pub(crate) struct Role {
    pub arn: String,
    pub duration: Option<String>,
    pub external_id: Option<String>,
    pub policy: Option<String>,
    pub policy_arns: Vec<String>,
    pub session: Option<String>,
    pub source_identity: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub transitive: Vec<String>,
}

/// Token of another identity provider.
#[derive(Clone, Debug)]
pub(crate) enum Token {
    Text(String),
    File(String),
}

impl Role {
    fn parameters(&self, action: &str) -> Vec<(String, String)> {
        // The session name is recorded in the audit log (CloudTrail), where it distinguishes runs, so it is unique.
        let session = self
            .session
            .clone()
            .unwrap_or_else(|| format!("monoform-{}", uuid::Uuid::new_v4().simple()));
        let mut out = vec![
            ("Action".to_owned(), action.to_owned()),
            ("Version".to_owned(), "2011-06-15".to_owned()),
            ("RoleArn".to_owned(), self.arn.clone()),
            ("RoleSessionName".to_owned(), session),
        ];
        let duration = self
            .duration
            .as_deref()
            .and_then(gotext::duration::parse)
            .map(|d| d.as_secs().to_string());
        for (name, value) in [
            ("DurationSeconds", &duration),
            ("ExternalId", &self.external_id),
            ("Policy", &self.policy),
            ("SourceIdentity", &self.source_identity),
        ] {
            out.extend(value.clone().map(|value| (name.to_owned(), value)));
        }
        for (i, arn) in self.policy_arns.iter().enumerate() {
            out.push((format!("PolicyArns.member.{}.arn", i + 1), arn.clone()));
        }
        for (i, (key, value)) in self.tags.iter().enumerate() {
            out.push((format!("Tags.member.{}.Key", i + 1), key.clone()));
            out.push((format!("Tags.member.{}.Value", i + 1), value.clone()));
        }
        for (i, key) in self.transitive.iter().enumerate() {
            out.push((format!("TransitiveTagKeys.member.{}", i + 1), key.clone()));
        }
        out
    }
}

/// Sends a request in the query protocol of STS and IAM.
async fn query(
    http: &HttpClient,
    (service, region, address): (&'static str, &str, &str),
    credential: Option<&Credential>,
    parameters: &[(String, String)],
    what: &str,
) -> Result<String> {
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(parameters)
        .finish();
    let request = Request {
        service,
        region,
        method: Method::POST,
        url: url(service, address)?,
        headers: vec![(
            "content-type",
            "application/x-www-form-urlencoded; charset=utf-8".to_owned(),
        )],
        body: body.into_bytes(),
    };
    let answer = aws::send(http, credential, request, what).await?;
    match answer.status.is_success() {
        true => Ok(answer.text()),
        false => Err(aws::problem(
            "Error asking AWS for credentials",
            what,
            &ResourceNames {
                region,
                ..ResourceNames::default()
            },
            &answer,
        )),
    }
}

fn of_answer(text: &str, arn: &str) -> Result<Credential> {
    let part = |name: &str| tag(text, name);
    match (part("AccessKeyId"), part("SecretAccessKey"), part("SessionToken")) {
        (Some(access), Some(secret), token) => {
            let expires = part("Expiration").as_deref().and_then(expiry);
            Ok(credential(&access, &secret, token.as_deref(), expires))
        }
        _ => Err(problem(format!(
            "The answer of STS for the role {arn} has no credentials in it."
        ))),
    }
}

pub(crate) async fn assume(
    http: &HttpClient,
    services: &Services,
    base: &Credential,
    role: &Role,
) -> Result<Credential> {
    let what = format!("Taking on the role {}", role.arn);
    let sts = ("sts", &*services.sts_region, &*services.sts);
    let mut role = role.clone();
    // The same default as in Terraform. Credentials are requested again when they expire.
    role.duration.get_or_insert_with(|| "15m".to_owned());
    let text = query(http, sts, Some(base), &role.parameters("AssumeRole"), &what).await?;
    of_answer(&text, &role.arn)
}

/// Assumes a role with a token of another identity provider.
pub(crate) async fn assume_with_token(
    http: &HttpClient,
    services: &Services,
    role: &Role,
    token: &Token,
) -> Result<Credential> {
    let token = match token {
        Token::Text(text) => text.clone(),
        // The file is read each time, because its token is replaced before it expires.
        Token::File(path) => std::fs::read_to_string(env::expand_home(path))
            .map_err(|e| {
                problem(format!(
                    "The file {path:?} with the token for the role {} cannot be read: {e}.",
                    role.arn
                ))
            })?
            .trim()
            .to_owned(),
    };
    let what = format!("Taking on the role {} with a token", role.arn);
    let mut parameters = role.parameters("AssumeRoleWithWebIdentity");
    parameters.push(("WebIdentityToken".to_owned(), token));
    let sts = ("sts", &*services.sts_region, &*services.sts);
    // The token itself proves the identity, so the request is not signed.
    let text = query(http, sts, None, &parameters, &what).await?;
    of_answer(&text, &role.arn)
}

fn call(parameters: &[(&str, &str)], version: &str) -> Vec<(String, String)> {
    let version = [("Version", version)];
    let all = parameters.iter().chain(&version);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Returns the account of credentials. With `check`, STS must confirm it. Without it, IAM is queried first, then STS, and then IAM for any
/// role, because the identity may lack the permission for some of these requests.
pub(crate) async fn account_id(
    http: &HttpClient,
    services: &Services,
    credential: &Credential,
    check: bool,
) -> Result<String> {
    if check {
        return identity(http, services, credential).await.map_err(|refusal| {
            Diagnostic::error(
                "Retrieving caller identity from STS",
                format!(
                    "{}\n\nFor services that have no STS, set skip_credentials_validation = true.",
                    details(&refusal)
                ),
            )
            .into()
        });
    }
    let of_iam = |action| account_by_iam(http, services, credential, action);
    if let Some(account) = of_iam(&[("Action", "GetUser")]).await {
        return Ok(account);
    }
    let refusal = match identity(http, services, credential).await {
        Ok(account) => return Ok(account),
        Err(refusal) => refusal,
    };
    if let Some(account) = of_iam(&[("Action", "ListRoles"), ("MaxItems", "1")]).await {
        return Ok(account);
    }
    let detail = format!(
        "Neither STS nor IAM says which account is used. {}\n\nWhere none is needed, set skip_requesting_account_id = true.",
        details(&refusal)
    );
    Err(Diagnostic::error("Retrieving AWS account details", detail).into())
}

fn details(refusal: &Diagnostics) -> String {
    refusal.0.iter().map(|d| d.detail.clone()).collect::<Vec<_>>().join(" ")
}

/// Returns the account from STS.
async fn identity(http: &HttpClient, services: &Services, credential: &Credential) -> Result<String> {
    let sts = ("sts", &*services.sts_region, &*services.sts);
    let parameters = call(&[("Action", "GetCallerIdentity")], "2011-06-15");
    let text = query(http, sts, Some(credential), &parameters, "Asking STS who is calling").await?;
    tag(&text, "Account").ok_or_else(|| problem("The answer of STS names no account."))
}

/// Returns the account from the first ARN in an answer of IAM.
async fn account_by_iam(
    http: &HttpClient,
    services: &Services,
    credential: &Credential,
    parameters: &[(&str, &str)],
) -> Option<String> {
    let iam = ("iam", iam_region(&services.region), &*services.iam);
    let parameters = call(parameters, "2010-05-08");
    let asked = query(http, iam, Some(credential), &parameters, "Asking IAM for an account").await;
    let arn = tag(&asked.ok()?, "Arn")?;
    // An ARN has the form arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE.
    arn.split(':')
        .nth(4)
        .filter(|account| !account.is_empty())
        .map(str::to_owned)
}
