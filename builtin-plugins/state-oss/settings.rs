//! Effective settings from the arguments, the environment and a profile.

use std::time::Duration;

use monoform_sdk::{Attr, Diagnostic, Result, env};
use store_client::arguments::text;
use store_client::credential::{Credential, CredentialCache};
use store_client::{HttpClient, Retries, Settings as HttpSettings, Url};

use crate::cloud::Cloud;
use crate::config::{Config, SUMMARY, problem};
use crate::credentials::{Oidc, Profile, Role, Source};
use crate::services::Services;
use crate::table::Table;

/// Effective settings of the client.
pub(crate) struct Settings {
    pub bucket: String,
    pub prefix: String,
    pub key: String,
    pub encrypt: bool,
    pub acl: String,
    pub table: Option<Table>,
    pub cloud: Cloud,
}

/// Parses a URL. The default scheme is https.
fn address(attribute: &str, text: &str) -> Result<Url> {
    let full = match text.contains("://") {
        true => text.to_owned(),
        false => format!("https://{text}"),
    };
    let is_usable = |url: &Url| url.has_host() && matches!(url.scheme(), "http" | "https");
    let url = Url::parse(&full).ok().filter(is_usable);
    url.ok_or_else(|| problem(attribute, format!("{text:?} is not the address of a server.")).into())
}

fn profile(config: &Config) -> Result<Profile> {
    let Some(name) = text(&config.profile, &["ALICLOUD_PROFILE", "ALIBABA_CLOUD_PROFILE"]) else {
        return Ok(Profile::default());
    };
    let variables = ["ALICLOUD_SHARED_CREDENTIALS_FILE", "ALIBABA_CLOUD_CREDENTIALS_FILE"];
    let file = text(&config.shared_credentials_file, &variables);
    let path = env::expand_home(file.as_deref().unwrap_or("~/.aliyun/config.json"));
    Profile::read(&path, &name)
        .map_err(|why| problem("profile", format!("The profile {name:?} cannot be used: {why}.")).into())
}

/// Merges the configuration with the environment, the profile and the defaults.
pub(crate) fn effective(config: &Config) -> Result<Settings> {
    let profile = profile(config)?;
    let variables = ["ALICLOUD_REGION", "ALIBABA_CLOUD_REGION", "ALICLOUD_DEFAULT_REGION"];
    let region = text(&config.region, &variables).or_else(|| profile.get("region_id"));
    let variables = ["ALICLOUD_OSS_ENDPOINT", "ALIBABA_CLOUD_OSS_ENDPOINT", "OSS_ENDPOINT"];
    let endpoint = text(&config.endpoint, &variables);
    if region.is_none() && endpoint.is_none() {
        let detail = "The region of the bucket is missing: set the argument \"region\", or the environment variable ALICLOUD_REGION \
                      (or, for another address than the usual one, \"endpoint\").";
        return Err(problem("region", detail).into());
    }
    let http = |max, timeout| {
        HttpClient::new(HttpSettings {
            timeout,
            retries: Retries {
                max,
                ..Retries::default()
            },
            ..HttpSettings::default()
        })
        .map_err(|e| Diagnostic::error(SUMMARY, format!("Requests cannot be made: {e}.")))
    };
    let sts = text(
        &config.sts_endpoint,
        &["ALICLOUD_STS_ENDPOINT", "ALIBABA_CLOUD_STS_ENDPOINT"],
    );
    let cloud = Cloud {
        endpoint: endpoint.map(|text| address("endpoint", &text)).transpose()?,
        looked_up: tokio::sync::OnceCell::new(),
        services: Services {
            region: region.unwrap_or_default(),
            sts: address("sts_endpoint", sts.as_deref().unwrap_or("sts.aliyuncs.com"))?,
            calls: http(2, Some(Duration::from_secs(30)))?,
        },
        http: http(3, None)?,
        once: http(0, Some(Duration::from_secs(10)))?,
        source: source(config, &profile)?,
        current: CredentialCache::default(),
    };
    let or = |value: &Attr<String>, usual: &str| value.known().cloned().unwrap_or_else(|| usual.to_owned());
    let prefix = or(&config.prefix, "env:");
    // Slashes are added when the parts of an object name are joined.
    let prefix = prefix.trim_matches('/');
    Ok(Settings {
        bucket: config.bucket.text().to_owned(),
        prefix: prefix.strip_prefix("./").unwrap_or(prefix).to_owned(),
        key: or(&config.key, "terraform.tfstate"),
        encrypt: config.encrypt.known() == Some(&true),
        acl: config.acl.text().to_owned(),
        table: table(config)?,
        cloud,
    })
}

fn table(config: &Config) -> Result<Option<Table>> {
    let Some(name) = text(&config.tablestore_table, &[]) else {
        return Ok(None);
    };
    let variables = ["ALICLOUD_TABLESTORE_ENDPOINT", "ALIBABA_CLOUD_TABLESTORE_ENDPOINT"];
    let endpoint = text(&config.tablestore_endpoint, &variables).ok_or_else(|| {
        let detail = "With tablestore_table, tablestore_endpoint must say where the instance of Tablestore is: \
                      https://INSTANCE.REGION.ots.aliyuncs.com (or the environment variable ALICLOUD_TABLESTORE_ENDPOINT).";
        problem("tablestore_endpoint", detail)
    })?;
    let url = address("tablestore_endpoint", &endpoint)?;
    // The endpoint of an instance begins with the name of the instance.
    let first = url
        .host_str()
        .and_then(|host| host.split('.').next())
        .unwrap_or_default();
    let instance = text(&config.tablestore_instance_name, &[]).unwrap_or_else(|| first.to_owned());
    Ok(Some(Table { url, instance, name }))
}

fn source(config: &Config, profile: &Profile) -> Result<Source> {
    const KEY: [&str; 3] = [
        "ALICLOUD_ACCESS_KEY",
        "ALIBABA_CLOUD_ACCESS_KEY_ID",
        "ALICLOUD_ACCESS_KEY_ID",
    ];
    const SECRET: [&str; 3] = [
        "ALICLOUD_SECRET_KEY",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        "ALICLOUD_ACCESS_KEY_SECRET",
    ];
    const TOKEN: [&str; 2] = ["ALICLOUD_SECURITY_TOKEN", "ALIBABA_CLOUD_SECURITY_TOKEN"];
    const MACHINE: [&str; 2] = ["ALICLOUD_ECS_ROLE_NAME", "ALIBABA_CLOUD_ECS_METADATA"];
    let or = |value: Option<String>, name: &str| value.or_else(|| profile.get(name));
    let id = or(text(&config.access_key, &KEY), "access_key_id");
    let key = or(text(&config.secret_key, &SECRET), "access_key_secret");
    let given = id.map(|id| Credential {
        id,
        key: key.unwrap_or_default(),
        token: or(text(&config.security_token, &TOKEN), "sts_token"),
    });
    let source = Source {
        machine: or(text(&config.ecs_role_name, &MACHINE), "ram_role_name"),
        role: role(config, profile)?,
        oidc: Oidc::of_environment(),
        given,
    };
    // An OIDC token is useful only for assuming a role.
    if source.given.is_none() && source.machine.is_none() && (source.oidc.is_none() || source.role.is_none()) {
        let detail = "There are no credentials for Alibaba Cloud: set access_key and secret_key, or ALICLOUD_ACCESS_KEY and \
                      ALICLOUD_SECRET_KEY, or name a profile of the command line aliyun in \"profile\", or the role of the machine in \
                      ecs_role_name.";
        return Err(Diagnostic::error("No valid credentials found", detail).into());
    }
    Ok(source)
}

/// Returns the role to assume: from the arguments, the block, or the profile.
fn role(config: &Config, profile: &Profile) -> Result<Option<Role>> {
    const ARN: [&str; 2] = ["ALICLOUD_ASSUME_ROLE_ARN", "ALIBABA_CLOUD_ROLE_ARN"];
    const SESSION: [&str; 2] = ["ALICLOUD_ASSUME_ROLE_SESSION_NAME", "ALIBABA_CLOUD_ROLE_SESSION_NAME"];
    let seconds = |value: &Attr<i64>| value.known().and_then(|s| u32::try_from(*s).ok());
    let (arn, session, policy, duration) =
        match (text(&config.assume_role_role_arn, &ARN), config.assume_role.0.first()) {
            (Some(arn), _) => (
                Some(arn),
                text(&config.assume_role_session_name, &SESSION),
                text(&config.assume_role_policy, &[]),
                seconds(&config.assume_role_session_expiration),
            ),
            (None, Some(block)) => (
                text(&block.role_arn, &ARN),
                text(&block.session_name, &SESSION),
                text(&block.policy, &[]),
                seconds(&block.session_expiration),
            ),
            (None, None) => (None, None, None, None),
        };
    let Some(arn) = arn.or_else(|| profile.get("ram_role_arn")) else {
        return Ok(None);
    };
    let duration = match duration.or_else(|| profile.seconds()) {
        Some(seconds) if seconds > 0 => seconds,
        _ => of_environment()?,
    };
    Ok(Some(Role {
        arn,
        // The same default as in Terraform.
        session: session
            .or_else(|| profile.get("ram_session_name"))
            .unwrap_or_else(|| "terraform".to_owned()),
        policy,
        duration,
    }))
}

/// Returns the duration of role sessions from the environment, or the default.
fn of_environment() -> Result<u32> {
    let variable = "ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION";
    match env::var(variable) {
        None => Ok(Role::USUAL_DURATION),
        Some(text) => text.trim().parse().map_err(|_| {
            let detail = format!("The environment variable {variable} must be a number of seconds, and is {text:?}.");
            problem("assume_role_session_expiration", detail).into()
        }),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn addresses_without_a_scheme_have_https() {
        let of = |text: &str| address("endpoint", text).map(|url| url.to_string());
        for (text, url) in [
            ("oss-cn-beijing.aliyuncs.com", "https://oss-cn-beijing.aliyuncs.com/"),
            ("httpd.example.com", "https://httpd.example.com/"),
            ("https.example.com:8443", "https://https.example.com:8443/"),
            ("http://127.0.0.1:9000", "http://127.0.0.1:9000/"),
            ("HTTPS://oss.example.com", "https://oss.example.com/"),
        ] {
            assert_eq!(of(text).unwrap(), url);
        }
        for text in ["", "ftp://oss.example.com", "https://"] {
            let told = of(text).unwrap_err();
            assert!(told.0[0].detail.contains("not the address of a server"), "{told:?}");
        }
    }
}
