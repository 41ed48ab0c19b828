//! Requests to KMS, with the same arguments for credentials, endpoints and connections as the backend.

use monoform_sdk::{Diagnostics, Result, Severity};
use serde_json::Value as Json;
use store_client::{HttpClient, Method};

use crate::aws::{self, Request, ResourceNames};
use crate::config::Config;
use crate::credentials::Credentials;
use crate::services::{Services, url};
use crate::settings::Settings;

/// Client for KMS.
pub struct Kms {
    http: HttpClient,
    services: Services,
    credentials: Credentials,
}

impl Kms {
    /// Creates a client. Like the backend, it first checks the arguments, the credentials and their account. Arguments about the bucket are
    /// ignored.
    ///
    /// # Errors
    /// An argument is invalid, there are no credentials, or their account may not be used.
    pub async fn connect(config: &Config) -> Result<Kms> {
        let errors: Vec<_> = config
            .problems()
            .0
            .into_iter()
            .filter(|d| d.severity == Severity::Error)
            .collect();
        if !errors.is_empty() {
            return Err(Diagnostics(errors));
        }
        let settings = Settings::new(config)?;
        let credentials = settings.account().await?;
        Ok(Kms {
            http: settings.http,
            services: settings.services,
            credentials,
        })
    }

    /// Sends a request and returns its result.
    ///
    /// # Errors
    /// There are no credentials, there was no answer, or the answer is an error.
    pub async fn call(&self, operation: &str, body: &Json, what: &str) -> Result<Json> {
        let credential = self.credentials.get(&self.http, &self.services).await?;
        let request = Request {
            service: "kms",
            region: &self.services.region,
            method: Method::POST,
            url: url("KMS", &self.services.kms)?,
            headers: vec![
                ("content-type", "application/x-amz-json-1.1".to_owned()),
                ("x-amz-target", format!("TrentService.{operation}")),
            ],
            body: body.to_string().into_bytes(),
        };
        let answer = aws::send(&self.http, Some(&credential), request, what).await?;
        let place = ResourceNames {
            region: &self.services.region,
            ..ResourceNames::default()
        };
        match answer.status.is_success() {
            true => Ok(serde_json::from_slice(&answer.body).unwrap_or_default()),
            false => Err(aws::problem("Error making a request to KMS", what, &place, &answer)),
        }
    }
}
