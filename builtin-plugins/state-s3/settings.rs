//! Effective settings from the arguments and the environment.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::{Attr, Diagnostic, Result, env};
use store_client::sum::md5_base64;
use store_client::{Answer, HttpClient, Proxy, Retries, Settings as HttpSettings, Tls};

use crate::config::{Config, Endpoints, invalid, list, text};
use crate::credentials::{Credentials, Files, Sources, account_id};
use crate::endpoints;
use crate::services::Services;

/// Server-side encryption of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// The default encryption of the bucket.
    None,
    /// Encryption with a key that S3 manages (SSE-S3).
    S3,
    /// Encryption with this KMS key (SSE-KMS).
    Kms(String),
    /// Encryption with a customer-provided key (SSE-C): the key and its MD5, both in Base64.
    Customer(String, String),
}

/// Rules about the account of the credentials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    pub allowed: Option<Vec<String>>,
    pub forbidden: Option<Vec<String>>,
    pub validate: bool,
    pub request: bool,
}

pub(crate) struct Settings {
    pub bucket: String,
    pub key: String,
    pub prefix: String,
    pub encryption: Encryption,
    pub acl: Option<String>,
    pub checksum: bool,
    pub lock_file: bool,
    pub table: Option<String>,
    pub services: Services,
    pub accounts: Accounts,
    pub sources: Sources,
    pub http: HttpClient,
}

fn is_true(value: &Attr<bool>) -> bool {
    value.known() == Some(&true)
}

/// Returns true if a request with this answer is sent again.
fn again(answer: &Answer) -> bool {
    // DynamoDB reports throttling with status 400, so the error code is checked.
    const CODES: &[&str] = &[
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "SlowDown",
        "RequestTimeout",
        "RequestTimeoutException",
    ];
    let status = answer.status.as_u16();
    matches!(status, 429 | 500 | 502 | 503 | 504) || status == 400 && CODES.contains(&&*crate::aws::code(answer))
}

fn encryption(config: &Config) -> Result<Encryption> {
    let kms = text(&config.kms_key_id);
    let from_environment = env::var("AWS_SSE_CUSTOMER_KEY");
    if config.kms_key_id.known().is_some() && from_environment.is_some() {
        let detail = "kms_key_id and the environment variable AWS_SSE_CUSTOMER_KEY cannot both be set: the one is a key of KMS, \
                      the other a key of your own.";
        return Err(Diagnostic::error("Invalid encryption configuration", detail).into());
    }
    let customer = text(&config.sse_customer_key).or(from_environment);
    let customer = customer
        .map(|key| match BASE64.decode(&key) {
            Ok(bytes) if key.len() == 44 => Ok((key, md5_base64(&bytes))),
            _ => Err(invalid(
                "sse_customer_key",
                "sse_customer_key (or AWS_SSE_CUSTOMER_KEY) must be a key of 32 bytes in Base64, which are 44 characters.",
            )),
        })
        .transpose()?;
    // As in Terraform, the arguments for keys have no effect unless `encrypt` is true.
    Ok(match (is_true(&config.encrypt), kms, customer) {
        (false, ..) => Encryption::None,
        (true, Some(key), _) => Encryption::Kms(key),
        (true, None, Some((key, sum))) => Encryption::Customer(key, sum),
        (true, None, None) => Encryption::S3,
    })
}

impl Settings {
    pub fn new(config: &Config) -> Result<Settings> {
        let region = region(config)?;
        Ok(Settings {
            bucket: config.bucket.text().to_owned(),
            key: config.key.text().to_owned(),
            prefix: config
                .workspace_key_prefix
                .known()
                .cloned()
                .unwrap_or_else(|| "env:".to_owned()),
            encryption: encryption(config)?,
            acl: text(&config.acl),
            checksum: !is_true(&config.skip_s3_checksum),
            lock_file: is_true(&config.use_lockfile),
            table: text(&config.dynamodb_table),
            accounts: Accounts {
                allowed: list(&config.allowed_account_ids),
                forbidden: list(&config.forbidden_account_ids),
                validate: !is_true(&config.skip_credentials_validation),
                request: !is_true(&config.skip_requesting_account_id),
            },
            sources: Sources::new(config)?,
            services: services(config, region),
            http: client(config)?,
        })
    }

    /// Finds credentials, and checks their account.
    pub async fn account(&self) -> Result<Credentials> {
        let Settings {
            http,
            services,
            accounts,
            ..
        } = self;
        let credentials = Credentials::new(self.sources.clone());
        let credential = credentials.get(http, services).await?;
        // By default, the account is requested even if there is no list of accounts, because that checks the credentials before anything is
        // planned.
        if accounts.validate || accounts.request {
            let account = account_id(http, services, &credential, accounts.validate).await?;
            let refused = match (&accounts.allowed, &accounts.forbidden) {
                (Some(allowed), _) if !allowed.contains(&account) => "is not one of allowed_account_ids",
                (_, Some(forbidden)) if forbidden.contains(&account) => "is one of forbidden_account_ids",
                _ => return Ok(credentials),
            };
            let detail = format!(
                "AWS account ID not allowed: {account}. The credentials belong to this account, which {refused}."
            );
            return Err(Diagnostic::error("Invalid account ID", detail).into());
        }
        Ok(credentials)
    }
}

/// Returns the region of the bucket. It must be a known region, unless the configuration skips the check.
fn region(config: &Config) -> Result<String> {
    let variables = env::first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    if let Some(region) = text(&config.region)
        && !is_true(&config.skip_region_validation)
        && !endpoints::is_region(&region)
    {
        let detail = format!(
            "There is no region {region:?} that is known here. Correct it; or, if it is new or of another service than AWS, \
             set skip_region_validation = true."
        );
        return Err(invalid("region", detail).into());
    }
    Ok(text(&config.region).or(variables).unwrap_or_default())
}

/// Returns the URLs of the services.
fn services(config: &Config, region: String) -> Services {
    let flag = |value: &Attr<bool>, variable: &str| {
        let from_environment = || env::var(variable).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        value.known().copied().unwrap_or_else(from_environment)
    };
    let fips = flag(&config.use_fips_endpoint, "AWS_USE_FIPS_ENDPOINT");
    let dualstack = flag(&config.use_dualstack_endpoint, "AWS_USE_DUALSTACK_ENDPOINT");
    let none = Endpoints::default();
    let nested = config.endpoints.known().unwrap_or(&none);
    let profile = text(&config.profile).or_else(|| env::first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
    let told = Files::from_config(config).endpoints(profile.as_deref().unwrap_or("default"));
    // An endpoint for one service takes precedence over the endpoint for all services.
    let configured = |service: &str| told.for_service(service).or_else(|| told.all.clone());
    let address = |service: &str, region: &str, given: [&Attr<String>; 2], variables: [&str; 2]| {
        let given = given.into_iter().find_map(text).or_else(|| env::first(&variables));
        let given = given.or_else(|| configured(service));
        given.unwrap_or_else(|| endpoints::service_address(service, region, fips, dualstack))
    };
    let sts_region = text(&config.sts_region).unwrap_or_else(|| region.clone());
    Services {
        s3: address(
            "s3",
            &region,
            [&nested.s3, &config.endpoint],
            ["AWS_ENDPOINT_URL_S3", "AWS_S3_ENDPOINT"],
        ),
        dynamodb: address(
            "dynamodb",
            &region,
            [&nested.dynamodb, &config.dynamodb_endpoint],
            ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_DYNAMODB_ENDPOINT"],
        ),
        iam: address(
            "iam",
            &region,
            [&nested.iam, &config.iam_endpoint],
            ["AWS_ENDPOINT_URL_IAM", "AWS_IAM_ENDPOINT"],
        ),
        sts: address(
            "sts",
            &sts_region,
            [&nested.sts, &config.sts_endpoint],
            ["AWS_ENDPOINT_URL_STS", "AWS_STS_ENDPOINT"],
        ),
        // There is no argument for the endpoint of KMS, so only the settings of the SDKs apply.
        kms: address(
            "kms",
            &region,
            [&Attr::Null, &Attr::Null],
            ["AWS_ENDPOINT_URL_KMS", "AWS_KMS_ENDPOINT"],
        ),
        sso: text(&nested.sso)
            .or_else(|| env::var("AWS_ENDPOINT_URL_SSO"))
            .or_else(|| configured("sso")),
        sso_login: env::var("AWS_ENDPOINT_URL_SSO_OIDC").or_else(|| configured("sso_oidc")),
        sts_region,
        path_style: is_true(&config.use_path_style) || is_true(&config.force_path_style),
        region,
    }
}

fn client(config: &Config) -> Result<HttpClient> {
    // The argument is the number of attempts, not of retries.
    let attempts = config.max_retries.known().copied().unwrap_or(5).max(1);
    let bundle = text(&config.custom_ca_bundle).or_else(|| env::var("AWS_CA_BUNDLE"));
    let authorities = match bundle {
        Some(path) => Some(std::fs::read_to_string(env::expand_home(&path)).map_err(|e| {
            invalid(
                "custom_ca_bundle",
                format!("The file {path:?} with certificates cannot be read: {e}."),
            )
        })?),
        None => None,
    };
    let (http, https) = (text(&config.http_proxy), text(&config.https_proxy));
    let proxy = if http.is_some() || https.is_some() || config.no_proxy.known().is_some() {
        Proxy::Custom {
            // As in Terraform, a proxy that is set for http only is also used for https.
            https: https.or_else(|| http.clone()),
            http,
            except: config.no_proxy.known().cloned(),
        }
    } else {
        Proxy::Environment
    };
    HttpClient::new(HttpSettings {
        tls: Tls {
            authorities,
            insecure: is_true(&config.insecure),
            ..Tls::default()
        },
        retries: Retries {
            max: u32::try_from(attempts - 1).unwrap_or(u32::MAX),
            wait_min: Duration::from_millis(300),
            wait_max: Duration::from_secs(20),
            again,
        },
        proxy,
        // S3 redirects requests for a bucket in another region, where the signature would be invalid. The redirect is not followed, and the
        // error names the region.
        follow_redirects: false,
        ..HttpSettings::default()
    })
    .map_err(|e| invalid("custom_ca_bundle", format!("The certificates cannot be used: {e}.")).into())
}
