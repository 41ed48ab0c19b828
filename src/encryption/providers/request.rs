//! Requests from key providers to servers.

use std::future::Future;
use std::sync::Arc;

use ::files::{Environment, io_reason};
use http::{Bytes, HeaderMap, Method, Proxy, Redirects, Request, Settings, Transport, Url};
use proxies::Proxies;
use serde_json::Value as Json;
use trust::Verifier;

/// Maximum size of an answer in bytes, far above the size of a key.
const MAX_ANSWER: u64 = 1 << 20;

/// Reason why a future could not be awaited, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WaitError {
    #[error("{}", io_reason(.0))]
    Runtime(#[source] std::io::Error),
    #[error("no thread can be started: {}", io_reason(.0))]
    Thread(#[source] std::io::Error),
    #[error("a thread has failed")]
    Panicked,
}

/// Runs a future to completion, from inside or outside of a runtime.
pub(super) fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, WaitError> {
    // A separate thread is used, because states are also written from threads of a runtime, and these must not block.
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(WaitError::Runtime)?;
            Ok(runtime.block_on(work))
        };
        let thread = std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn_scoped(scope, run)
            .map_err(WaitError::Thread)?;
        thread.join().map_err(|_| WaitError::Panicked)?
    })
}

/// Trust anchors for a server's certificate.
pub(super) enum Trust {
    System,
    /// The certificates in this PEM text.
    Pem(String),
    /// Any certificate: none is verified.
    Any,
}

/// Reason why the trust anchors cannot be used, as a clause.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    #[error("there is no usable certificate in the file of certificates")]
    NoCertificate,
    #[error(transparent)]
    Verifier(#[from] trust::VerifierBuilderError),
    #[error(transparent)]
    Tls(#[from] trust::Error),
}

/// Creates a transport that uses the proxies of the environment.
pub(super) fn transport(environment: &Environment, trust: &Trust) -> Result<Transport, TrustError> {
    let verifier = match trust {
        Trust::System => None,
        Trust::Any => Some(Verifier::insecure()),
        Trust::Pem(text) => Some(Verifier::of_pem(text)?.ok_or(TrustError::NoCertificate)?),
    };
    let tls = verifier
        .map(|verifier| trust::configuration(Arc::new(verifier)).map(|builder| builder.with_no_client_auth()))
        .transpose()?;
    let proxies = Proxies::from_variables(|name| environment.get(name).map(str::to_owned));
    Ok(Transport::new(Settings {
        tls,
        proxy: Proxy::Rules(Box::new(proxies)),
        ..Settings::default()
    }))
}

/// Answer of a server: its status and its JSON document.
pub(super) struct Answer {
    pub status: u16,
    pub body: Json,
}

/// Reason why a server has not answered, as a clause.
#[derive(Debug, thiserror::Error)]
pub(super) enum PostError {
    #[error(transparent)]
    Wait(#[from] WaitError),
    #[error("{}", .0.reason())]
    Transport(#[from] http::Error),
}

/// Sends a document by POST.
pub(super) fn post(transport: &Transport, url: &Url, headers: &HeaderMap, body: &Bytes) -> Result<Answer, PostError> {
    block_on(async {
        let request = Request {
            method: Method::POST,
            url,
            headers: headers.clone(),
            body: Some(body.clone()),
            redirects: Redirects::within(5),
            login: None,
            waiting: &|_| {},
        };
        let mut response = transport.send(request).await?;
        let status = response.status().as_u16();
        let text = response.bytes(MAX_ANSWER).await?;
        Ok(Answer {
            status,
            // A proxy may answer with HTML. The message then has only the status.
            body: serde_json::from_slice(&text).unwrap_or(Json::Null),
        })
    })?
}
