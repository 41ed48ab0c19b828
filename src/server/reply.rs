//! Answers to requests, and their bodies.

use std::io;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{HeaderMap, Request, StatusCode};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::limits::{FIRST, LOWEST_RATE};

/// Time limit for a client to accept one chunk of a file.
const STALL: Duration = Duration::from_secs(60);
/// Size of the chunks of a file, in bytes.
const CHUNK: usize = 1 << 16;

pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Answer to a request. For a HEAD request, the body is not sent.
pub struct Reply {
    pub status: StatusCode,
    /// Media type of the body.
    pub media: Option<&'static str>,
    pub headers: HeaderMap,
    pub body: Body,
    /// Size of the body in bytes.
    pub bytes: u64,
    /// Error on the server's side, for the access log.
    pub error: Option<String>,
}

impl Reply {
    /// Returns an answer without a body.
    #[must_use]
    pub fn status(status: StatusCode) -> Reply {
        Reply {
            status,
            media: None,
            headers: HeaderMap::new(),
            body: Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync(),
            bytes: 0,
            error: None,
        }
    }

    /// Returns an answer with bytes of a media type.
    #[must_use]
    pub fn bytes(status: StatusCode, media: &'static str, bytes: Vec<u8>) -> Reply {
        Reply {
            media: Some(media),
            bytes: bytes.len() as u64,
            body: Full::new(Bytes::from(bytes))
                .map_err(|never| match never {})
                .boxed_unsync(),
            ..Reply::status(status)
        }
    }

    /// Keeps something until the body was sent, or the connection has ended.
    #[must_use]
    pub fn holding(self, kept: impl Send + 'static) -> Reply {
        let body = self.body.map_frame(move |frame| {
            let _kept = &kept;
            frame
        });
        Reply {
            body: body.boxed_unsync(),
            ..self
        }
    }

    /// Returns an answer with the content of a file of this size.
    #[must_use]
    pub fn file(media: &'static str, file: tokio::fs::File, size: u64) -> Reply {
        Reply {
            media: Some(media),
            bytes: size,
            body: content(file, size),
            ..Reply::status(StatusCode::OK)
        }
    }
}

/// Reads the body of a request, of at most this size in bytes. The callback gets the number of bytes of each part before the part is
/// kept.
///
/// # Errors
/// The reply to a request whose body is larger, or ends early; or that of the callback.
pub async fn read_body(
    request: Request<Incoming>,
    limit: usize,
    admit: &mut (dyn FnMut(usize) -> Result<(), Box<Reply>> + Send),
) -> Result<Vec<u8>, Reply> {
    let mut body = std::pin::pin!(Limited::new(request.into_body(), limit));
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => Reply::status(StatusCode::PAYLOAD_TOO_LARGE),
            false => Reply::status(StatusCode::BAD_REQUEST),
        })?;
        // Trailers are not read.
        if let Ok(part) = frame.into_data() {
            admit(part.len()).map_err(|reply| *reply)?;
            read.extend_from_slice(&part);
        }
    }
    Ok(read)
}

/// Returns a body with the content of a file, read as fast as the client takes it.
fn content(file: tokio::fs::File, size: u64) -> Body {
    // The channel holds two chunks, so that the disk is read while the network sends, with little memory for each client.
    let (sender, receiver) = mpsc::channel::<io::Result<Frame<Bytes>>>(2);
    tokio::spawn(async move {
        let mut file = file.take(size);
        let (began, mut sent) = (Instant::now(), 0);
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = file.read(&mut chunk).await.map(|count| {
                chunk.truncate(count);
                Frame::data(Bytes::from(chunk))
            });
            let last = match &read {
                Ok(frame) => frame.data_ref().is_none_or(Bytes::is_empty),
                Err(_) => false,
            };
            let failed = read.is_err();
            sent += read.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
            // A client that stalls or is slow would occupy a connection. Dropping the sender ends the body early, which closes the
            // connection.
            if last || sender.send_timeout(read, STALL).await.is_err() || failed {
                return;
            }
            let time = began.elapsed();
            if time > FIRST && sent / time.as_secs().max(1) < LOWEST_RATE {
                return;
            }
        }
    });
    let parts = futures::stream::unfold(receiver, async |mut receiver| {
        let part = receiver.recv().await?;
        Some((part, receiver))
    });
    StreamBody::new(parts).boxed_unsync()
}
