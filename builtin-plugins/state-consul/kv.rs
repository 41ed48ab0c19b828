//! Requests to a Consul agent, for keys, transactions and sessions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::{Diagnostic, Diagnostics, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};
use store_client::about::About;
use store_client::{Answer, HeaderMap, HttpClient, Method, Url};

/// Characters to encode in a key.
const KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/')
    .remove(b':');

/// Flags of lock keys, by which the Consul CLI recognizes them.
const LOCK_FLAGS: u64 = 0x2ddc_cbc0_58a5_0c18;

/// Value of a key, with its index, its flags, and the session that has locked the key.
pub(crate) struct Pair {
    pub value: Vec<u8>,
    pub index: u64,
    pub session: Option<String>,
    pub flags: u64,
}

pub(crate) enum Stored {
    /// The value was written. The number is the new index of the key.
    Done(u64),
    /// The value is larger than the cluster allows.
    TooLarge,
    /// The key has changed since it was read.
    Changed,
}

/// Client for an agent.
pub(crate) struct Kv {
    http: HttpClient,
    base: Url,
    headers: HeaderMap,
    query: Vec<(&'static str, String)>,
}

impl Kv {
    pub fn new(http: HttpClient, base: Url, headers: HeaderMap, query: Vec<(&'static str, String)>) -> Kv {
        Kv {
            http,
            base,
            headers,
            query,
        }
    }

    async fn send(
        &self,
        about: About<'_>,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/v1/{path}"));
        if !query.is_empty() || !self.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.query).extend_pairs(query);
        }
        let sent = self.http.send(method, &url, self.headers.clone(), body).await;
        sent.map_err(|failure| {
            let mut problem = failure.diagnostic(about.summary, about.what);
            problem.detail.push_str(&format!(
                " The agent of Consul is asked at {}: see \"address\" of the backend, and CONSUL_HTTP_ADDR.",
                self.base.origin().ascii_serialization()
            ));
            problem.into()
        })
    }

    /// Builds the diagnostic for an error, with advice for its text or status.
    fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
        let said = answer.text();
        let said: String = said.trim().chars().take(500).collect();
        let lower = said.to_ascii_lowercase();
        let advice = match answer.status.as_u16() {
            _ if lower.contains("acl not found") => {
                " The token is not known: check \"access_token\" of the backend, or CONSUL_HTTP_TOKEN."
            }
            403 => {
                " The token (access_token, or CONSUL_HTTP_TOKEN) must permit this. Its policy needs key_prefix \"PATH\" { policy = \
                 \"write\" } with the path of the backend, and session_prefix \"\" { policy = \"write\" } for locks."
            }
            401 => " It requires authentication: set \"http_auth\" of the backend, or CONSUL_HTTP_AUTH.",
            400 if lower.contains("http request to an https") => " Set scheme = \"https\".",
            500 if lower.contains("no path to datacenter") => " Correct \"datacenter\" of the backend.",
            500..=599 => " This is a problem of the cluster: its log may say more.",
            _ => "",
        };
        let said = if said.is_empty() { said } else { format!(": {said}") };
        let detail = format!(
            "{} was answered with the status {}{said}.{advice}",
            about.what, answer.status
        );
        Diagnostic::error(about.summary, detail).into()
    }

    /// Builds the error for a successful answer that does not have the form of an agent's answer, for example from a proxy.
    fn no_answer_of_consul(&self, about: About<'_>, expected: &str) -> Diagnostics {
        let detail = format!(
            "{} was answered at {} with something that is not {expected}, as an agent of Consul answers. A proxy may have answered \
             instead.",
            about.what,
            self.base.origin().ascii_serialization()
        );
        Diagnostic::error(about.summary, detail).into()
    }

    fn key(key: &str) -> String {
        format!("kv/{}", utf8_percent_encode(key, KEY))
    }

    /// Reads a key; `None` if it does not exist.
    pub async fn get(&self, about: About<'_>, key: &str) -> Result<Option<Pair>> {
        let answer = self.send(about, Method::GET, &Kv::key(key), &[], None).await?;
        match answer.status.as_u16() {
            200 => {}
            404 => return Ok(None),
            _ => return Err(self.problem(about, &answer)),
        }
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let pair = &json[0];
        let value = match &pair["Value"] {
            // A key without a value, such as a lock key.
            Json::Null => Some(Vec::new()),
            text => text.as_str().and_then(|text| BASE64.decode(text).ok()),
        };
        match (value, pair["ModifyIndex"].as_u64()) {
            (Some(value), Some(index)) => Ok(Some(Pair {
                value,
                index,
                session: pair["Session"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
                flags: pair["Flags"].as_u64().unwrap_or_default(),
            })),
            _ => {
                let detail = format!("{} was answered with something that is no key of Consul.", about.what);
                Err(Diagnostic::error(about.summary, detail).into())
            }
        }
    }

    /// Lists the keys with a prefix, up to the next slash.
    pub async fn keys(&self, about: About<'_>, prefix: &str) -> Result<Vec<String>> {
        let query = [("keys", ""), ("separator", "/")];
        let answer = self.send(about, Method::GET, &Kv::key(prefix), &query, None).await?;
        match answer.status.as_u16() {
            // An invalid answer must not count as an empty list, which would mean that there are no workspaces.
            200 => serde_json::from_slice(&answer.body).map_err(|_| self.no_answer_of_consul(about, "a list of keys")),
            404 => Ok(Vec::new()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Parses the answer `true` or `false` to a write, to a deletion, or to the end of a session.
    fn yes(&self, about: About<'_>, answer: &Answer) -> Result<bool> {
        match answer.status.as_u16() {
            200 => match answer.body.trim_ascii() {
                b"true" => Ok(true),
                b"false" => Ok(false),
                // An invalid answer must not count as `false`, because unconditional writes ignore that value, and would count as done.
                _ => Err(self.no_answer_of_consul(about, "true or false")),
            },
            _ => Err(self.problem(about, answer)),
        }
    }

    pub async fn put(&self, about: About<'_>, key: &str, value: Vec<u8>) -> Result<()> {
        let answer = self.send(about, Method::PUT, &Kv::key(key), &[], Some(value)).await?;
        self.yes(about, &answer).map(drop)
    }

    /// Deletes a key, or all keys with this prefix.
    pub async fn delete(&self, about: About<'_>, key: &str, all_below: bool) -> Result<()> {
        let query: &[(&str, &str)] = if all_below { &[("recurse", "")] } else { &[] };
        let answer = self.send(about, Method::DELETE, &Kv::key(key), query, None).await?;
        self.yes(about, &answer).map(drop)
    }

    /// Deletes a key if it has this index. Returns false if it has changed.
    pub async fn delete_unchanged(&self, about: About<'_>, key: &str, index: u64) -> Result<bool> {
        let index = index.to_string();
        let answer = self
            .send(about, Method::DELETE, &Kv::key(key), &[("cas", &index)], None)
            .await?;
        self.yes(about, &answer)
    }

    /// Locks a key for a session. Returns false if the key cannot be locked now.
    pub async fn acquire(&self, about: About<'_>, key: &str, session: &str) -> Result<bool> {
        self.lock(about, key, ("acquire", session)).await
    }

    /// Releases a key. Returns false if the session does not hold it.
    pub async fn release(&self, about: About<'_>, key: &str, session: &str) -> Result<bool> {
        self.lock(about, key, ("release", session)).await
    }

    async fn lock(&self, about: About<'_>, key: &str, what: (&str, &str)) -> Result<bool> {
        let flags = LOCK_FLAGS.to_string();
        let query = [("flags", flags.as_str()), what];
        let answer = self
            .send(about, Method::PUT, &Kv::key(key), &query, Some(Vec::new()))
            .await?;
        self.yes(about, &answer)
    }

    /// Writes a value in a transaction, because only its answer contains the new index. With `index`, the value is written only if the key
    /// still has that index.
    pub async fn store(&self, about: About<'_>, key: &str, value: &[u8], index: Option<u64>) -> Result<Stored> {
        let verb = if index.is_some() { "cas" } else { "set" };
        let body = json!([{"KV": {
            "Verb": verb,
            "Key": key,
            "Value": BASE64.encode(value),
            "Index": index.unwrap_or_default(),
        }}]);
        let body = body.to_string().into_bytes();
        let answer = self.send(about, Method::PUT, "txn", &[], Some(body)).await?;
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        match answer.status.as_u16() {
            200 => match json["Results"][0]["KV"]["ModifyIndex"].as_u64() {
                Some(index) => Ok(Stored::Done(index)),
                None => {
                    let detail = format!("{} was answered without the index of the key.", about.what);
                    Err(Diagnostic::error(about.summary, detail).into())
                }
            },
            _ if answer.text().contains("too large") => Ok(Stored::TooLarge),
            409 => Ok(Stored::Changed),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Creates a session that expires after 15 seconds unless it is renewed.
    pub async fn make_session(&self, about: About<'_>) -> Result<String> {
        // After the session is lost, the delay keeps the key locked for 5 seconds, because the old holder may still be writing.
        let body = json!({"Name": "Consul API Lock", "TTL": "15s", "LockDelay": "5s"}).to_string();
        let answer = self
            .send(about, Method::PUT, "session/create", &[], Some(body.into_bytes()))
            .await?;
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        match json["ID"].as_str().filter(|_| answer.status.as_u16() == 200) {
            Some(id) => Ok(id.to_owned()),
            None => Err(self.problem(about, &answer)),
        }
    }

    /// Renews a session. Returns false if it has expired.
    pub async fn renew_session(&self, about: About<'_>, id: &str) -> Result<bool> {
        let path = format!("session/renew/{}", utf8_percent_encode(id, KEY));
        let answer = self.send(about, Method::PUT, &path, &[], Some(Vec::new())).await?;
        match answer.status.as_u16() {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Ends a session. It is not an error if the session has expired.
    pub async fn end_session(&self, about: About<'_>, id: &str) -> Result<()> {
        let path = format!("session/destroy/{}", utf8_percent_encode(id, KEY));
        let answer = self.send(about, Method::PUT, &path, &[], Some(Vec::new())).await?;
        self.yes(about, &answer).map(drop)
    }
}

impl Pair {
    /// Returns true if the key is a lock key.
    pub fn is_lock(&self) -> bool {
        self.flags == LOCK_FLAGS
    }
}
