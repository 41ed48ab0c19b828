//! Downloads of packages to files, hashed while they are received.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use archive::Limits;
use data_encoding::HEXLOWER;
use net::{Client, Response, Retry, Url, shown};
use oci::Authorization;

use crate::error::PackageError;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

/// Limit of resumptions of an interrupted download.
const RETRIES: u64 = 4;
/// Limit of received chunks that wait to be written.
const WAITING: usize = 16;
/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(100);

/// Progress of a download.
#[derive(Debug, Default)]
pub struct Progress {
    /// Name of the package, for the user.
    pub name: String,
    /// Bytes received.
    pub received: AtomicU64,
    /// Size in bytes; zero if unknown.
    pub expected: AtomicU64,
}

impl Progress {
    pub(crate) fn named(name: String) -> Progress {
        Progress {
            name,
            ..Progress::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running<'p> {
    /// Name of the package, for the user.
    pub name: &'p str,
    /// Bytes received.
    pub received: u64,
    /// Size in bytes, if it is known.
    pub expected: Option<u64>,
}

/// Progress of all downloads together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overall<'p> {
    /// Running downloads, in the order in which their packages are reported.
    pub running: Vec<Running<'p>>,
    /// Bytes received by the running downloads.
    pub received: u64,
    /// Size of the running downloads in bytes; `None` if the size of one of them is unknown.
    pub expected: Option<u64>,
}

impl<'p> Overall<'p> {
    /// Sums up the downloads that have begun and have not ended.
    pub(crate) fn sum(all: impl IntoIterator<Item = &'p Progress>) -> Overall<'p> {
        let mut out = Overall {
            expected: Some(0),
            ..Overall::default()
        };
        for one in all {
            let (received, expected) = (
                one.received.load(Ordering::Relaxed),
                one.expected.load(Ordering::Relaxed),
            );
            // If waiting and finished downloads were counted, the total would jump when others begin.
            if received == 0 || received == expected {
                continue;
            }
            let expected = (expected > 0).then_some(expected);
            out.running.push(Running {
                name: &one.name,
                received,
                expected,
            });
            out.received += received;
            out.expected = out.expected.zip(expected).map(|(sum, one)| sum.saturating_add(one));
        }
        out
    }
}

/// Awaits a future, and calls `tick` at intervals until it is complete.
pub(crate) async fn watching<T>(work: impl Future<Output = T>, mut tick: impl FnMut()) -> T {
    let mut work = std::pin::pin!(work);
    let mut clock = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            // A finished download is handled before another progress report.
            biased;
            done = &mut work => return done,
            _ = clock.tick() => tick(),
        }
    }
}

/// Target file with the running checksum of its content.
struct Sink {
    file: File,
    hash: Sha256,
}

impl Sink {
    fn take(&mut self, part: &[u8]) -> io::Result<()> {
        self.hash.update(part);
        self.file.write_all(part)
    }

    /// Empties the file and resets the checksum.
    fn restart(&mut self) -> io::Result<()> {
        self.hash = Sha256::new();
        self.file.set_len(0)?;
        self.file.rewind()
    }
}

/// Downloads a file from a URL into `to`. Returns its SHA-256 in hexadecimal digits.
///
/// `authorization` is sent to the host of the URL only, not to hosts that it redirects to. An interrupted download resumes
/// where it ended if the server supports ranges, and starts again otherwise.
pub(crate) async fn download(
    client: &Client,
    url: &Url,
    authorization: Option<&Authorization>,
    to: File,
    progress: &Progress,
) -> Result<String, PackageError> {
    let limits = Limits::from_variables(client.settings().environment.all())?;
    let mut sink = Sink {
        file: to,
        hash: Sha256::new(),
    };
    let mut received: u64 = 0;
    let mut tries = 0;
    loop {
        let whole = || {
            let request = client.get(url.clone()).retries(RETRIES);
            match authorization {
                Some(authorization) => request.secret("authorization", authorization.expose()),
                None => request,
            }
        };
        let mut request = whole();
        if received > 0 {
            request = request.header("range", format!("bytes={received}-"));
        }
        let mut response = request.send().await?;
        // A server may ignore the range or answer with another one, so only the exact continuation is appended.
        let goes_on = received > 0
            && response.status().as_u16() == 206
            && response
                .header("content-range")
                .is_some_and(|range| range.starts_with(&format!("bytes {received}-")));
        if received > 0 && !goes_on {
            if response.status().as_u16() == 416 || response.status().as_u16() == 206 {
                // With status 416 or another range, the file on the server has changed, so the download starts
                // again.
                response = whole().send().await?;
            }
            received = 0;
            sink.restart().map_err(PackageError::Store)?;
        }
        let response = response.success()?;
        let size = response.announced_size().unwrap_or(0);
        // The size is checked before the body is read, so that a huge file is refused at once. Servers may announce no
        // size; `pour` counts anyway.
        if received.saturating_add(size) > limits.download {
            return Err(PackageError::TooLarge {
                address: shown(url),
                limits,
            });
        }
        progress
            .expected
            .store(if size == 0 { 0 } else { received + size }, Ordering::Relaxed);
        let broken;
        (sink, broken) = pour(response, sink, &mut received, limits.download, progress).await?;
        // The size is known now. Setting it also marks the download as finished in the totals.
        let Some(error) = broken else {
            progress.expected.store(received, Ordering::Relaxed);
            return Ok(HEXLOWER.encode(&sink.hash.finalize()));
        };
        if received > limits.download {
            return Err(PackageError::TooLarge {
                address: shown(url),
                limits,
            });
        }
        if tries >= RETRIES {
            return Err(PackageError::Interrupted(error));
        }
        tries += 1;
        let retry = Retry {
            why: error,
            // The pause is 400 ms at first, and doubles each time up to 3.2 s.
            pause: Duration::from_millis(200 << tries),
            attempt: tries,
            of: RETRIES,
        };
        client.before_another_try(retry).await;
    }
}

/// Writes the body of a response to the sink, as far as it is received. Returns the sink, and the reason if the body is
/// incomplete.
async fn pour(
    mut response: Response,
    mut sink: Sink,
    received: &mut u64,
    limit: u64,
    progress: &Progress,
) -> Result<(Sink, Option<String>), PackageError> {
    // Hashing and writing block, so they run on a thread. The channel bounds the memory if the disk is slower than the network.
    let (sender, mut parts) = mpsc::channel::<Vec<u8>>(WAITING);
    let writing = tokio::task::spawn_blocking(move || {
        while let Some(part) = parts.blocking_recv() {
            sink.take(&part)?;
        }
        sink.file.flush().map(|()| sink)
    });
    let broken = loop {
        match response.chunk().await {
            Ok(Some(part)) => {
                let part = part.as_ref().to_vec();
                *received += part.len() as u64;
                if *received > limit {
                    break Some("it is too large".to_owned());
                }
                progress.received.store(*received, Ordering::Relaxed);
                // The receiver is dropped if writing failed, which is reported below.
                if sender.send(part).await.is_err() {
                    break None;
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    drop(sender);
    match writing.await {
        Ok(Ok(sink)) => Ok((sink, broken)),
        Ok(Err(error)) => Err(PackageError::Store(error)),
        Err(_) => Err(PackageError::Task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_all() {
        let one = |received, expected| Progress {
            name: format!("of {expected}"),
            received: AtomicU64::new(received),
            expected: AtomicU64::new(expected),
        };
        let (waiting, going, done, unknown) = (one(0, 0), one(5, 10), one(7, 7), one(3, 0));
        let known = Overall::sum([&waiting, &going, &done]);
        let running = Running {
            name: "of 10",
            received: 5,
            expected: Some(10),
        };
        assert_eq!(
            (&*known.running, known.received, known.expected),
            (&[running][..], 5, Some(10))
        );
        let all = Overall::sum([&going, &unknown]);
        assert_eq!((all.running.len(), all.received, all.expected), (2, 8, None));
        assert_eq!(Overall::sum([&done]).running, []);
    }
}
