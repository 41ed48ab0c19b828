//! Signed requests to AWS services, and the errors that they return.

use http::aws::{self, Credential, Scope};
use monoform_sdk::{Diagnostic, Diagnostics, Result};
use store_client::sum::sha256_hex;
use store_client::xml::tag;
use store_client::{Answer, HeaderMap, HeaderName, HeaderValue, HttpClient, Method, Url};

pub(crate) struct Request<'a> {
    /// Name of the service in the signature.
    pub service: &'static str,
    pub region: &'a str,
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// Signs and sends a request. Without credentials, it is sent unsigned.
pub(crate) async fn send(
    client: &HttpClient,
    credential: Option<&Credential>,
    request: Request<'_>,
    what: &str,
) -> Result<Answer> {
    let broken = |why: String| -> Diagnostics {
        Diagnostic::error(
            "Invalid request",
            format!("{what} failed: the request cannot be made: {why}."),
        )
        .into()
    };
    // S3 requires the hash of the body as a header, which the signature covers.
    let mut headers = HeaderMap::new();
    headers.insert(
        "x-amz-content-sha256",
        HeaderValue::from_str(&sha256_hex(&request.body)).map_err(|e| broken(e.to_string()))?,
    );
    for (name, value) in &request.headers {
        let value = HeaderValue::from_str(value)
            .map_err(|_| broken(format!("the value of {name} has characters that are not allowed")))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    if let Some(credential) = credential {
        let scope = Scope {
            service: request.service,
            region: request.region,
        };
        headers = aws::signed(scope, credential, &request.method, &request.url, headers)
            .map_err(|e| broken(e.to_string()))?;
    }
    // S3 requires the header Content-Length even for a PUT without a body.
    let body = (!request.body.is_empty() || request.method == Method::PUT).then_some(request.body);
    let sent = client.send(request.method, &request.url, headers, body).await;
    sent.map_err(|failure| failure.diagnostic("Error making a request to AWS", what).into())
}

/// Returns the code of an error, which is XML or JSON.
pub(crate) fn code(answer: &Answer) -> String {
    let text = answer.text();
    if let Some(code) = tag(&text, "Code") {
        return code;
    }
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let code = json["__type"]
        .as_str()
        .or_else(|| json["code"].as_str())
        .unwrap_or_default();
    // DynamoDB prefixes the code with a namespace: "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException".
    let code = code.rsplit('#').next().unwrap_or_default();
    match (code, answer.status.as_u16()) {
        // The answer to a HEAD request has no body, so only the status is known.
        ("", 404) => "NotFound".to_owned(),
        ("", 412) => "PreconditionFailed".to_owned(),
        ("", 403) => "AccessDenied".to_owned(),
        ("", 301) => "PermanentRedirect".to_owned(),
        _ => code.to_owned(),
    }
}

fn message(answer: &Answer) -> String {
    let text = answer.text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let of_json = json["message"].as_str().or_else(|| json["Message"].as_str());
    tag(&text, "Message")
        .or_else(|| of_json.map(str::to_owned))
        .unwrap_or_default()
}

/// Builds the diagnostic for an error, with advice for its code.
pub(crate) fn problem(summary: &str, what: &str, place: &ResourceNames<'_>, answer: &Answer) -> Diagnostics {
    let (code, message) = (code(answer), message(answer));
    let advice = match code.as_str() {
        "NoSuchBucket" => format!(
            "Create the bucket: aws s3api create-bucket --bucket {bucket} --region {region}{location}\nOr, if it is there, correct \
             \"bucket\" or the account that is used.",
            bucket = place.bucket,
            region = place.region,
            location = match place.region {
                // S3 does not accept the default region as a LocationConstraint, so it is left out of the advice.
                "us-east-1" => String::new(),
                region => format!(" --create-bucket-configuration LocationConstraint={region}"),
            }
        ),
        "ResourceNotFoundException" => format!(
            "Create the table: aws dynamodb create-table --table-name {table} --attribute-definitions \
             AttributeName=LockID,AttributeType=S --key-schema AttributeName=LockID,KeyType=HASH --billing-mode PAY_PER_REQUEST \
             --region {region}",
            table = place.table,
            region = place.region
        ),
        "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException" => {
            // For PermanentRedirect the region is in this header, for AuthorizationHeaderMalformed it is in the body.
            let actual = answer.header("x-amz-bucket-region").map(str::to_owned).or_else(|| tag(&answer.text(), "Region"));
            let actual = actual.unwrap_or_else(|| "another region".to_owned());
            format!("requested bucket from \"{}\", actual location \"{actual}\". Set region = \"{actual}\".", place.region)
        }
        "InvalidAccessKeyId" | "UnrecognizedClientException" | "InvalidClientTokenId" => {
            "The access key is not known: check the credentials (access_key, AWS_ACCESS_KEY_ID, or the profile).".to_owned()
        }
        "SignatureDoesNotMatch" | "InvalidSignatureException" => {
            "The secret key does not belong to the access key, or a proxy changes requests.".to_owned()
        }
        "ExpiredToken" | "ExpiredTokenException" => "The credentials have expired: get new ones.".to_owned(),
        "RequestTimeTooSkewed" | "RequestExpired" => {
            "The clock of this machine differs too much from that of AWS: set it right.".to_owned()
        }
        "AccessDenied" | "AccessDeniedException" | "AllAccessDisabled" | "Forbidden" => {
            "The identity that is used has no permission for this: its policies must allow it, and those of the bucket must not \
             forbid it."
                .to_owned()
        }
        "KMS.NotFoundException" => "Correct kms_key_id, or create the key in the region of the bucket.".to_owned(),
        "NotFoundException" => format!("Correct kms_key_id, or create the key in the region {}.", place.region),
        "IncorrectKeyException" => "It was encrypted with another key than that of kms_key_id.".to_owned(),
        "InvalidCiphertextException" => {
            "It was encrypted with another key or another encryption_context, or it was damaged.".to_owned()
        }
        _ => String::new(),
    };
    Diagnostic::error(summary, answer.describe(what, &code, &message, &advice)).into()
}

/// Names of resources that advice refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceNames<'a> {
    pub bucket: &'a str,
    pub table: &'a str,
    pub region: &'a str,
}
