//! Packages from web servers, straight to a file, with their checksum on the way.

use std::io::{Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::{Client, Url, shown};
use sha2::{Digest, Sha256};

/// How often a download is taken up again.
const RETRIES: u64 = 4;
/// The largest package that is accepted.
const LIMIT: u64 = 4 << 30;

/// How far a download is.
#[derive(Debug, Default)]
pub struct Progress {
    /// The bytes that are here.
    pub received: AtomicU64,
    /// The bytes there will be; zero if nobody knows.
    pub expected: AtomicU64,
}

/// Writes what is at an address to a file. Gives its SHA-256, in hexadecimal digits; the error is a sentence without its full
/// stop.
///
/// A download that breaks off goes on where it ended, if the server can do that, and begins again otherwise.
pub async fn download(
    client: &Client,
    url: &Url,
    to: &mut std::fs::File,
    progress: &Progress,
) -> Result<String, String> {
    let mut hash = Sha256::new();
    let mut received: u64 = 0;
    let mut tries = 0;
    loop {
        let mut request = client.get(url.clone()).retries(RETRIES);
        if received > 0 {
            request = request.header("range", format!("bytes={received}-"));
        }
        let mut response = request.send().await.map_err(|e| e.to_string())?;
        let goes_on = received > 0
            && response.status().as_u16() == 206
            && response
                .header("content-range")
                .is_some_and(|range| range.starts_with(&format!("bytes {received}-")));
        if received > 0 && !goes_on {
            if response.status().as_u16() == 416 || response.status().as_u16() == 206 {
                // The server has something else by now: from the beginning.
                response = client
                    .get(url.clone())
                    .retries(RETRIES)
                    .send()
                    .await
                    .map_err(|e| e.to_string())?;
            }
            hash = Sha256::new();
            received = 0;
            to.set_len(0).and_then(|()| to.rewind()).map_err(|e| unwritable(&e))?;
        }
        let mut response = response.success().map_err(|e| e.to_string())?;
        let size = response.announced_size().unwrap_or(0);
        progress
            .expected
            .store(if size == 0 { 0 } else { received + size }, Ordering::Relaxed);
        let broken = loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    let chunk = chunk.as_ref();
                    received += chunk.len() as u64;
                    if received > LIMIT {
                        return Err(format!("what {} sends is larger than {LIMIT} bytes", shown(url)));
                    }
                    hash.update(chunk);
                    // A write to the page cache; the network is what takes time.
                    to.write_all(chunk).map_err(|e| unwritable(&e))?;
                    progress.received.store(received, Ordering::Relaxed);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let Some(error) = broken else {
            to.flush().map_err(|e| unwritable(&e))?;
            return Ok(crate::hash::hex(&hash.finalize()));
        };
        if tries >= RETRIES {
            return Err(error.to_string());
        }
        tries += 1;
        tracing::debug!(%error, received, "the download goes on");
        tokio::time::sleep(Duration::from_millis(200 << tries)).await;
    }
}

fn unwritable(error: &std::io::Error) -> String {
    format!("the package cannot be written to the disk: {error}")
}
