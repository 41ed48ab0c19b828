//! Responses with limits on the body, after the head was read.

use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use url::Url;

use crate::error::{Error, Phase, connection, shown};
use crate::retry;
use crate::rules::{SILENCE, Silence};

#[derive(Debug)]
pub struct Response {
    /// The URL that answered, after redirects.
    pub url: Url,
    /// The proxy that was used for the URL.
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

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name).and_then(|v| v.to_str().ok())
    }

    /// Returns the values of a header that may occur more than once.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.inner.headers().get_all(name).into_iter();
        values.filter_map(|value| value.to_str().ok())
    }

    #[must_use]
    pub fn header_map(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns the size of the body, if the server announced it.
    #[must_use]
    pub fn announced_size(&self) -> Option<u64> {
        self.inner.content_length()
    }

    /// Returns the error for a response without a success status.
    #[must_use]
    pub fn failure(&self) -> Error {
        Error::Status {
            url: shown(&self.url),
            status: self.status(),
        }
    }

    /// Returns the response if it is a success.
    ///
    /// # Errors
    /// Returns an error for any other status.
    pub fn success(self) -> Result<Response, Error> {
        if self.status().is_success() {
            Ok(self)
        } else {
            Err(self.failure())
        }
    }

    /// Returns the pause that the server requests before another try, up to the limit of [`retry::asked_pause`]; `None` if it requests
    /// none.
    #[must_use]
    pub fn asked_pause(&self) -> Option<Duration> {
        retry::asked_pause(self.inner.headers())
    }

    /// Returns the next part of the body; `None` at its end.
    ///
    /// # Errors
    /// Returns an error if the connection broke, or if the server is silent for too long.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        // The library's own limit would start with the request, and interrupt the sending of a large body.
        match self.silence.within(SILENCE, self.inner.chunk()).await {
            Some(part) => part.map_err(|e| connection(&self.url, &e, self.proxy.as_deref(), self.connect_timeout)),
            None => Err(Error::Timeout {
                url: shown(&self.url),
                seconds: SILENCE.as_secs(),
                phase: Phase::Body,
            }),
        }
    }

    /// Returns the whole body.
    ///
    /// # Errors
    /// Returns an error if the body is larger than the limit or incomplete.
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
            // The announced size is not trusted, and may be absent.
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
