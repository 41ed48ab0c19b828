//! Multipart uploads of large objects. Parts are uploaded one after the other, so that memory holds only one part in addition to the state.

use monoform_sdk::Result;
use serde_json::{Value as Json, json};
use store_client::Method;
use store_client::about::About;
use store_client::guard::Written;
use store_client::sum::md5_base64;

use crate::cloud::{Cloud, Condition};

/// Size of a part in bytes. A larger object is uploaded in parts.
pub(crate) const PART: usize = 128 * 1024 * 1024;

/// URL segment between a bucket and its uploads.
const UPLOADS: &str = "u";

/// Uploads an object in parts of `size` bytes. A failed upload is aborted.
pub(crate) async fn in_parts(
    (cloud, headers): (&Cloud, &[(&'static str, String)]),
    about: About<'_>,
    (object, condition): (&str, Condition),
    content: &[u8],
    size: usize,
) -> Result<Written> {
    let body = json!({"object": object, "contentType": "application/json"});
    let body = body.to_string().into_bytes();
    let answer = cloud
        .send(about, Method::POST, ((UPLOADS, ""), &[]), headers, Some(body))
        .await?;
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let id = match json["uploadId"].as_str() {
        Some(id) if answer.status.is_success() => id.to_owned(),
        _ => return Err(cloud.problem(about, &answer)),
    };
    let written = parts((cloud, headers), about, (object, &id, condition), content, size).await;
    if !matches!(written, Ok(Written::Done(_))) {
        let query = [("uploadId", id.as_str())];
        // Without the abort, the bucket would store the parts, and charge for them. An error of the abort is ignored, because the first
        // error is more important.
        let _ = cloud
            .send(about, Method::DELETE, ((UPLOADS, object), &query), &[], None)
            .await;
    }
    written
}

async fn parts(
    (cloud, headers): (&Cloud, &[(&'static str, String)]),
    about: About<'_>,
    (object, id, condition): (&str, &str, Condition),
    content: &[u8],
    size: usize,
) -> Result<Written> {
    let mut all = Vec::new();
    for (index, part) in content.chunks(size).enumerate() {
        let number = (index + 1).to_string();
        let query = [("uploadId", id), ("uploadPartNum", number.as_str())];
        let mut headers = headers.to_vec();
        headers.push(("content-md5", md5_base64(part)));
        let place = ((UPLOADS, object), query.as_slice());
        let answer = cloud
            .send(about, Method::PUT, place, &headers, Some(part.to_vec()))
            .await?;
        let tag = answer.header("etag").filter(|_| answer.status.is_success());
        let Some(tag) = tag else {
            return Err(cloud.problem(about, &answer));
        };
        all.push(json!({"partNum": index + 1, "etag": tag}));
    }
    let body = json!({"partsToCommit": all}).to_string().into_bytes();
    let query = [("uploadId", id)];
    // The object becomes visible with the commit, so only the commit has the condition.
    let condition: Vec<(&'static str, String)> = condition.into_iter().collect();
    let answer = cloud
        .send(about, Method::POST, ((UPLOADS, object), &query), &condition, Some(body))
        .await?;
    cloud.written(about, &answer)
}
