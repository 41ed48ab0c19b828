//! Responses: the head has been read, the body is read with limits.

use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use url::Url;

use crate::error::{Error, Phase, connection, shown};
use crate::retry;
use crate::rules::SILENCE;
use crate::transport::Silence;

#[derive(Debug)]
pub struct Response {
    /// The address that answered, after redirects.
    pub url: Url,
    /// The proxy on the way to it.
    pub(crate) proxy: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) silence: Silence,
    pub(crate) inner: reqwest::Response,
}

impl Response {
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The text of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name).and_then(|v| v.to_str().ok())
    }

    /// The texts of a header that may occur more than once.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.inner.headers().get_all(name).into_iter();
        values.filter_map(|value| value.to_str().ok())
    }

    #[must_use]
    pub fn header_map(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The size of the body, as far as it was announced.
    #[must_use]
    pub fn announced_size(&self) -> Option<u64> {
        self.inner.content_length()
    }

    /// The error of a response that is no success.
    #[must_use]
    pub fn failure(&self) -> Error {
        Error::Status {
            url: shown(&self.url),
            status: self.status(),
        }
    }

    /// # Errors
    /// The status is no success.
    pub fn success(self) -> Result<Response, Error> {
        if self.status().is_success() {
            Ok(self)
        } else {
            Err(self.failure())
        }
    }

    /// The pause that the server asks for before another try.
    #[must_use]
    pub fn asked_pause(&self) -> Option<Duration> {
        retry::asked_pause(self.inner.headers())
    }

    /// The next part of the body; `None` at its end. The limit of silence is not left to the library, where it would count from the
    /// request on and end the sending of a large body.
    ///
    /// # Errors
    /// The connection broke, or the server is silent for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match self.silence.within(SILENCE, self.inner.chunk()).await {
            Some(part) => part.map_err(|e| connection(&self.url, &e, self.proxy.as_deref(), self.connect_timeout)),
            None => Err(Error::Timeout {
                url: shown(&self.url),
                seconds: SILENCE.as_secs(),
                phase: Phase::Body,
            }),
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// The body is larger than the limit, or did not arrive whole.
    pub async fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let url = shown(&self.url);
        let too_large = || Error::TooLarge {
            url: url.clone(),
            limit,
        };
        if self.announced_size().is_some_and(|size| size > limit) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
