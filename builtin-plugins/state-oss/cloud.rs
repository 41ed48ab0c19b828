//! Requests to the bucket and to other services of Alibaba Cloud, and the errors that they return.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use store_client::about::About;
use store_client::credential::{Credential, CredentialCache};
use store_client::name::{encoded, query as query_text};
use store_client::sum::md5_base64;
use store_client::{Answer, Bytes, HeaderMap, HeaderName, HttpClient, Method, Url, header_value, xml};
use tokio::sync::OnceCell;

use crate::credentials::Source;
use crate::services::{Service, Services, now};
use crate::sign;

/// URLs, HTTP clients and credentials of the services.
pub(crate) struct Cloud {
    /// Configured URL of the object storage. `None` if it is looked up.
    pub endpoint: Option<Url>,
    pub looked_up: OnceCell<Url>,
    pub services: Services,
    pub http: HttpClient,
    /// HTTP client for requests that may fail: it makes one attempt of ten seconds.
    pub once: HttpClient,
    pub source: Source,
    pub current: CredentialCache,
}

fn no_address(text: &str) -> Diagnostics {
    let detail = format!("{text:?} is not where a bucket can be: correct \"region\" or \"endpoint\".");
    Diagnostic::error(crate::config::SUMMARY, detail).into()
}

impl Cloud {
    /// Returns the cached credentials, or new ones if those expire within five minutes.
    pub async fn credential(&self) -> Result<Credential> {
        self.current.get(self.source.find(&self.services)).await
    }

    /// Returns the URL of a bucket, to which object names are appended.
    async fn address(&self, bucket: &str) -> Result<Url> {
        let mut url = match &self.endpoint {
            Some(url) => url.clone(),
            None => self.looked_up.get_or_try_init(|| self.look_up()).await?.clone(),
        };
        // The bucket is a subdomain of the host. An IP address has no subdomains, so there it is a part of the path.
        match url.domain().map(|host| format!("{bucket}.{host}")) {
            Some(host) => {
                url.set_host(Some(&host)).map_err(|_| no_address(&host))?;
                url.set_path("/");
            }
            None => url.set_path(&format!("/{}/", encoded(bucket))),
        }
        Ok(url)
    }

    /// Like Terraform, requests the URL of the region's object storage from the location service. If that fails, returns the default URL.
    async fn look_up(&self) -> Result<Url> {
        let parsed = |text: &str| Url::parse(&format!("https://{text}")).ok().filter(Url::has_host);
        let found = async {
            let url = parsed("location-readonly.aliyuncs.com")?;
            let service = Service {
                url: &url,
                version: "2015-06-12",
                action: "DescribeEndpoints",
            };
            // The later request to the bucket reports missing credentials.
            let credential = self.credential().await.ok()?;
            let parts = [
                ("ServiceCode", "oss"),
                ("Id", &self.services.region),
                ("Type", "openAPI"),
            ];
            let json = self.services.call(&self.once, Some(&credential), service, &parts).await;
            let json = json
                .inspect_err(|why| tracing::info!("the endpoint of OSS cannot be looked up: {why}"))
                .ok()?;
            let all = json["Endpoints"]["Endpoint"].as_array()?;
            let one = all.iter().find(|one| one["Type"] == "openAPI")?;
            parsed(one["Endpoint"].as_str()?)
        };
        let usual = format!("oss-{}.aliyuncs.com", self.services.region);
        found.await.or_else(|| parsed(&usual)).ok_or_else(|| no_address(&usual))
    }

    /// Sends a signed request for an object of a bucket, or for the bucket if the name is empty.
    pub async fn send(
        &self,
        about: About<'_>,
        method: Method,
        (bucket, object, query): (&str, &str, &[(&str, &str)]),
        headers: &[(&'static str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let credential = self.credential().await?;
        let mut url = self.address(bucket).await?;
        let path = format!("{}{}", url.path(), encoded(object));
        url.set_path(&path);
        if !query.is_empty() {
            url.set_query(Some(&query_text(query.iter().copied())));
        }
        let sum = body.as_deref().map(md5_base64).unwrap_or_default();
        let kind = if body.is_some() { "application/json" } else { "" };
        let body = body.map(Bytes::from);
        let mut make = || {
            // Each attempt is signed again with the current time, because the service refuses times that differ by more than 15 minutes.
            let date = now("%a, %d %b %Y %H:%M:%S GMT");
            let mut own: Vec<(&'static str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            own.extend(credential.token.as_deref().map(|token| ("x-oss-security-token", token)));
            let resource = format!("/{bucket}/{object}");
            let signature = sign::of_bucket(&credential.key, [method.as_str(), &sum, kind, &date], &own, &resource);
            let authorization = format!("OSS {}:{signature}", credential.id);
            let mut all = HeaderMap::new();
            let plain = [("date", date.as_str()), ("content-md5", &sum), ("content-type", kind)];
            let plain = plain.into_iter().chain([("authorization", authorization.as_str())]);
            for (name, value) in plain.chain(own).filter(|(_, value)| !value.is_empty()) {
                all.insert(HeaderName::from_static(name), header_value(value)?);
            }
            Ok((method.clone(), url.clone(), all, body.clone()))
        };
        let sent = self.http.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Builds the diagnostic for an error of the bucket, with advice for its code.
    pub fn problem(&self, about: About<'_>, bucket: &str, answer: &Answer) -> Diagnostics {
        let text = answer.text();
        let part = |name: &str| xml::tag(&text, name).unwrap_or_default();
        let (code, message) = (part("Code"), part("Message"));
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("NoSuchBucket", _) => {
                let region = match self.services.region.as_str() {
                    "" => String::new(),
                    region => format!(" --region {region}"),
                };
                format!("Create the bucket: aliyun oss mb oss://{bucket}{region}\nOr, if it is there, correct \"bucket\" or \"region\".")
            }
            ("AccessDenied", _) if message.contains("endpoint") => {
                "The bucket is in another region: correct \"region\" or \"endpoint\".".to_owned()
            }
            ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidSecurityToken" | "SecurityTokenExpired", _) => {
                "The credentials are wrong: check access_key and secret_key, or ALICLOUD_ACCESS_KEY and ALICLOUD_SECRET_KEY.".to_owned()
            }
            ("RequestTimeTooSkewed", _) => "The clock of this machine is wrong.".to_owned(),
            (_, 403) => "The account needs a policy that permits this, on the bucket and on its objects.".to_owned(),
            _ => String::new(),
        };
        Diagnostic::error(about.summary, answer.describe(about.what, &code, &message, &advice)).into()
    }
}
