//! Requests of key providers to servers.

use std::future::Future;
use std::sync::Arc;

use ::files::Environment;
use http::{Bytes, HeaderMap, Method, Proxy, Redirects, Request, Settings, Transport, Url};
use proxies::Proxies;
use serde_json::Value as Json;
use trust::Verifier;

/// Limit of the size of an answer: they have a key and little else.
const MAX_ANSWER: u64 = 1 << 20;

/// Runs a future to its end, whether or not this thread belongs to a runtime.
pub(super) fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, String> {
    // A thread of its own: states are written from threads of a runtime, too, where nothing may be blocked on.
    std::thread::scope(|scope| {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(|e| ::files::io_reason(&e))?;
            Ok(runtime.block_on(work))
        };
        let thread = std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn_scoped(scope, run)
            .map_err(|e| format!("no thread can be started: {}", ::files::io_reason(&e)))?;
        thread.join().map_err(|_| "a thread has failed".to_owned())?
    })
}

/// Trust in a server's certificate.
pub(super) enum Trust {
    System,
    /// The certificates in this PEM text.
    Pem(String),
    /// Any certificate.
    Any,
}

/// Creates a transport with the proxies of the environment.
pub(super) fn transport(environment: &Environment, trust: &Trust) -> Result<Transport, String> {
    let verifier = match trust {
        Trust::System => None,
        Trust::Any => Some(Verifier::insecure()),
        Trust::Pem(text) => Some(
            Verifier::of_pem(text)
                .map_err(|e| e.to_string())?
                .ok_or("there is no usable certificate in the file of certificates")?,
        ),
    };
    let tls = verifier
        .map(|verifier| trust::configuration(Arc::new(verifier)).map(|builder| builder.with_no_client_auth()))
        .transpose()
        .map_err(|e| e.to_string())?;
    let proxies = Proxies::from_variables(|name| environment.get(name).map(str::to_owned));
    Ok(Transport::new(Settings {
        tls,
        proxy: Proxy::Rules(Box::new(proxies)),
        ..Settings::default()
    }))
}

/// Answer of a server: the status, and its document.
pub(super) struct Answer {
    pub status: u16,
    pub body: Json,
}

/// Sends a document by POST.
pub(super) fn post(transport: &Transport, url: &Url, headers: &HeaderMap, body: &Bytes) -> Result<Answer, String> {
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
        let mut response = transport.send(request).await.map_err(|e| e.reason())?;
        let status = response.status().as_u16();
        let text = response.bytes(MAX_ANSWER).await.map_err(|e| e.reason())?;
        Ok(Answer {
            status,
            body: serde_json::from_slice(&text).unwrap_or(Json::Null),
        })
    })?
}
