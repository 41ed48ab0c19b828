//! Sending the recorded spans to the collector.

use std::sync::{Arc, PoisonError};

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Redirects, Request, Transport};
use proxies::Proxies;
use trust::Verifier;

use crate::{Span, Tracer, otlp};

/// Maximum number of spans in a request, because collectors limit requests to a few megabytes.
const BATCH: usize = 4096;

/// Reason why the spans could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the collector at {address} did not accept the spans: {error}")]
    Http { address: String, error: http::Error },
    #[error("the collector at {0} did not answer in time")]
    Timeout(String),
    #[error("the certificates for the collector cannot be used: {0}")]
    Certificate(String),
    #[error("the header \"{0}\" for the collector is not valid")]
    Header(String),
    #[error("the system does not allow the request: {0}")]
    Runtime(std::io::Error),
}

impl Tracer {
    /// Sends all ended spans, and waits for the answer until the time limit of the settings.
    ///
    /// # Errors
    /// The spans could not be sent, and are lost.
    pub fn export(&self) -> Result<(), ExportError> {
        let spans = std::mem::take(&mut *self.spans.lock().unwrap_or_else(PoisonError::into_inner));
        if spans.is_empty() {
            return Ok(());
        }
        // A new runtime is created, because that of the command has ended.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ExportError::Runtime)?;
        let (address, limit) = (http::shown(&self.settings.endpoint), self.settings.timeout);
        runtime.block_on(async {
            let sent = tokio::time::timeout(limit, self.send(&spans));
            sent.await.unwrap_or(Err(ExportError::Timeout(address.to_string())))
        })
    }

    async fn send(&self, spans: &[Span]) -> Result<(), ExportError> {
        let settings = &self.settings;
        let transport = self.transport()?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        for (name, value) in &settings.headers {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, mut value) = parsed.ok_or_else(|| ExportError::Header(name.clone()))?;
            // These headers often contain credentials, so they must not be logged.
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        for batch in spans.chunks(BATCH) {
            let request = Request {
                method: Method::POST,
                url: &settings.endpoint,
                headers: headers.clone(),
                body: Some(otlp::encode(settings, self.trace, batch).into()),
                redirects: Redirects::within(0),
                login: None,
                waiting: &|_| {},
            };
            let failed = |error| ExportError::Http {
                address: http::shown(&settings.endpoint).to_string(),
                error,
            };
            let answer = transport.send(request).await.map_err(failed)?;
            answer.success().map_err(failed)?;
        }
        Ok(())
    }

    fn transport(&self) -> Result<Transport, ExportError> {
        let environment = &self.settings.environment;
        let proxies = Proxies::from_variables(|name| environment.get(name).map(str::to_owned));
        let settings = http::Settings {
            proxy: http::Proxy::Rules(Box::new(proxies)),
            ..http::Settings::default()
        };
        let Some(path) = &self.settings.certificate else {
            return Ok(Transport::new(settings));
        };
        let invalid =
            |reason: &dyn std::fmt::Display| ExportError::Certificate(format!("{} ({reason})", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| invalid(&files::io_reason(&error)))?;
        let verifier = Verifier::of_pem(&text).map_err(|error| invalid(&error))?;
        let verifier = verifier.ok_or_else(|| invalid(&"it has no certificate"))?;
        let tls = trust::configuration(Arc::new(verifier)).map_err(|error| invalid(&error))?;
        Ok(Transport::new(http::Settings {
            tls: Some(tls.with_no_client_auth()),
            ..settings
        }))
    }
}
