//! The data source `http`, with its arguments and attributes.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{Attr, Context, DataSource, Diagnostic, Result, Schema, Validator, async_trait, model};

use crate::answer;
use crate::request::Request;
use crate::tries::Limits;
use crate::trust::Trust;

/// Default of the first pause between attempts.
const MIN_DELAY_MS: i64 = 1000;

/// Default of the longest pause between attempts.
const MAX_DELAY_MS: i64 = 30_000;

model! {
    /// Retries of a request.
    pub struct Retry {
        /// Number of retries after the first attempt. Defaults to 0.
        pub attempts: Attr<i64> = optional().validate(Validator::AtLeast(0)),
        /// Delay before the first retry, in milliseconds: 1000 unless it is set. It doubles with every retry.
        pub min_delay_ms: Attr<i64> = optional().validate(Validator::AtLeast(0)),
        /// Maximum delay between two attempts, in milliseconds: 30000 unless it is set.
        pub max_delay_ms: Attr<i64> = optional().validate(Validator::AtLeast(0)).validate(Validator::AtLeastSumOf(&["min_delay_ms"])),
    }
}

model! {
    /// A request and its response.
    pub struct Model {
        /// The address, which begins with `http://` or `https://`.
        pub url: Attr<String> = required(),
        /// HTTP method: `GET` (the default), `HEAD`, or `POST`. The request should change nothing on the server, since it is sent
        /// whenever the data source is read.
        pub method: Attr<String> = optional().validate(Validator::OneOf(&["GET", "POST", "HEAD"])),
        /// Headers of the request by name.
        pub request_headers: Attr<BTreeMap<String, Attr<String>>> = optional(),
        /// The body of the request.
        pub request_body: Attr<String> = optional(),
        /// Time limit of one attempt in milliseconds, from connecting to the last byte of the response.
        pub request_timeout_ms: Attr<i64> = optional().validate(Validator::AtLeast(1)),
        /// Certificates of authorities in PEM format, which are trusted in place of the machine's.
        pub ca_cert_pem: Attr<String> = optional().validate(Validator::ConflictsWith(&["insecure"])),
        /// True to accept any certificate of the server. Then anybody between this machine and the server can read and change
        /// everything.
        pub insecure: Attr<bool> = optional(),
        /// The certificate that this client presents, in PEM format, with those between it and an authority.
        pub client_cert_pem: Attr<String> = optional().validate(Validator::AlsoRequires(&["client_key_pem"])),
        /// The private key of the client's certificate, in PEM format.
        pub client_key_pem: Attr<String> = optional().validate(Validator::AlsoRequires(&["client_cert_pem"])),
        /// Retries of a request after a failed connection, after status 429, and after any status from 500 on except 501. Without
        /// this block nothing is retried.
        pub retry: Attr<Retry> = block(),
        /// The body of the response, as text.
        pub response_body: Attr<String> = computed(),
        /// The body of the response, as text.
        pub body: Attr<String> = computed().deprecated("Use response_body instead"),
        /// The exact bytes of the body, in base64.
        pub response_body_base64: Attr<String> = computed(),
        /// Headers of the response by name. The values of a header that came more than once are joined by commas.
        pub response_headers: Attr<BTreeMap<String, Attr<String>>> = computed(),
        /// The status of the response.
        pub status_code: Attr<i64> = computed(),
        /// The value of `url`.
        pub id: Attr<String> = computed(),
    }
}

pub(crate) struct Http;

#[async_trait]
impl DataSource for Http {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "Sends a request to a web server and returns its response. A response is a result whatever its status says, except \
             429 and those from 500 on without 501, which are errors once no try is left. What a server says that is not under \
             your control should not be trusted.",
        )
    }

    async fn read(&self, config: Model, cx: &mut Context<()>) -> Result<Model> {
        let mut stop = cx.stop();
        tokio::select! {
            result = ask(config, cx) => result,
            () = stop.requested() => Err(Diagnostic::error(
                "Error making request",
                "The request was given up, since a stop was asked for.",
            )
            .into()),
        }
    }
}

async fn ask(config: Model, cx: &mut Context<()>) -> Result<Model> {
    let milliseconds = |n: i64| Duration::from_millis(u64::try_from(n).unwrap_or_default());
    let retry = config.retry.clone().or(Retry::default());
    let limits = Limits {
        retries: retry.attempts.or(0),
        min_delay: milliseconds(retry.min_delay_ms.or(MIN_DELAY_MS)),
        max_delay: milliseconds(retry.max_delay_ms.or(MAX_DELAY_MS)),
        timeout: config.request_timeout_ms.known().copied().map(milliseconds),
    };
    let trust = Trust {
        authorities: config.ca_cert_pem.as_str(),
        insecure: config.insecure.clone().or(false),
        client: config.client_cert_pem.as_str().zip(config.client_key_pem.as_str()),
    };
    let request = Request::new(
        // As in Go's client, an empty method is GET.
        config.method.as_str().filter(|m| !m.is_empty()).unwrap_or("GET"),
        config.url.text(),
        config.request_headers.known(),
        config.request_body.as_str(),
        trust.configuration()?,
    )?;
    let answer = request.send(&limits).await?;

    let text = match std::str::from_utf8(&answer.body) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            cx.warn(
                "Response body is not recognized as UTF-8",
                "In response_body, every byte that is not part of UTF-8 text became a replacement character. The exact bytes \
                 are in response_body_base64.",
            );
            answer::replaced(&answer.body)
        }
    };
    Ok(Model {
        id: config.url.clone(),
        response_body: text.clone().into(),
        // `body` is the deprecated name of `response_body`.
        body: text.into(),
        response_body_base64: STANDARD.encode(&answer.body).into(),
        response_headers: answer
            .headers
            .into_iter()
            .map(|(n, v)| (n, v.into()))
            .collect::<BTreeMap<_, _>>()
            .into(),
        status_code: i64::from(answer.status).into(),
        ..config
    })
}
