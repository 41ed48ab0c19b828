//! Requests to the API server, and the errors that it returns.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};
use store_client::about::About;
use store_client::guard::Revision;
use store_client::{Answer, HeaderValue, Method, Url, json_reason};

use crate::session::Sessions;

/// Characters to encode in a part of a path or query.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Secret,
    Lease,
}

impl Kind {
    fn path(self) -> (&'static str, &'static str) {
        match self {
            Kind::Secret => ("api/v1", "secrets"),
            Kind::Lease => ("apis/coordination.k8s.io/v1", "leases"),
        }
    }

    /// Returns an empty object of this kind.
    pub fn object(self, metadata: Json) -> Json {
        let (version, kind) = match self {
            Kind::Secret => ("v1", "Secret"),
            Kind::Lease => ("coordination.k8s.io/v1", "Lease"),
        };
        json!({"apiVersion": version, "kind": kind, "metadata": metadata})
    }
}

pub(crate) enum Written {
    /// The object was written. The value is its new version.
    Done(Option<Revision>),
    /// Another client has created or changed the object meanwhile.
    Conflict,
}

/// Client for the objects of a namespace.
pub(crate) struct Api {
    pub sessions: Sessions,
    pub namespace: String,
}

impl Api {
    fn url(&self, kind: Kind, name: Option<&str>, query: &str) -> Result<Url> {
        let (group, plural) = kind.path();
        let namespace = utf8_percent_encode(&self.namespace, PART);
        let server = self.sessions.server().trim_end_matches('/');
        let mut address = format!("{server}/{group}/namespaces/{namespace}/{plural}");
        if let Some(name) = name {
            address.push_str(&format!("/{}", utf8_percent_encode(name, PART)));
        }
        if !query.is_empty() {
            address.push_str(&format!("?{query}"));
        }
        Url::parse(&address).map_err(|e| {
            let detail = format!("{address:?} is not where a cluster can be: {e}.");
            Diagnostic::error("Invalid kubernetes backend configuration", detail).into()
        })
    }

    async fn send(
        &self,
        about: About<'_>,
        method: Method,
        url: &Url,
        body: Option<&Json>,
        accept: Option<&'static str>,
    ) -> Result<Answer> {
        let mut again = true;
        loop {
            let session = self.sessions.get().await?;
            let mut headers = session.headers.clone();
            if let Some(accept) = accept {
                headers.insert("accept", HeaderValue::from_static(accept));
            }
            let body = body.map(|json| json.to_string().into_bytes());
            if body.is_some() {
                headers.insert("content-type", HeaderValue::from_static("application/json"));
            }
            let sent = session.http.send(method.clone(), url, headers, body).await;
            let answer = sent.map_err(|failure| {
                let mut problem = failure.diagnostic(about.summary, about.what);
                problem
                    .detail
                    .push_str(&format!(" The cluster is asked at {}.", self.sessions.server()));
                problem
            })?;
            // The token of a credential plugin or of a token file may have been revoked early, so after a 401 the plugin is run or the file
            // is read once more.
            if answer.status.as_u16() != 401 || !again || !self.sessions.refused().await {
                return Ok(answer);
            }
            again = false;
        }
    }

    /// Builds the diagnostic for an error, with advice for its status.
    pub fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
        // The API reports errors as objects of the kind Status. A proxy in front of it may send anything else.
        let status: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let message = status["message"].as_str().unwrap_or_default();
        let namespace = &self.namespace;
        let advice = match answer.status.as_u16() {
            401 => {
                " The credentials are not accepted: they may have expired. Log in to the cluster again, or check the user in the \
                 file of config_path, or \"token\" of the backend."
                    .to_owned()
            }
            403 => format!(
                " The user or service account needs a role for secrets and leases: kubectl create role terraform-state --namespace \
                 {namespace} --verb=get,list,create,update,delete --resource=secrets,leases.coordination.k8s.io; then kubectl \
                 create rolebinding terraform-state --namespace {namespace} --role=terraform-state --user=USER"
            ),
            404 if message.contains("namespaces") => format!(
                " Create the namespace: kubectl create namespace {namespace}\nOr correct \"namespace\" of the backend."
            ),
            413 => " The state is too large for a secret.".to_owned(),
            _ if message.contains("Too long") || message.contains("too large") => {
                " The state is too large for a secret of this cluster.".to_owned()
            }
            500..=599 => " This is a problem of the cluster: its log may say more.".to_owned(),
            _ => String::new(),
        };
        let said = match message.trim_end_matches('.') {
            "" => String::new(),
            text => format!(": {text}"),
        };
        let detail = format!(
            "{} was answered with the status {}{said}.{advice}",
            about.what, answer.status
        );
        Diagnostic::error(about.summary, detail).into()
    }

    fn json(about: About<'_>, answer: &Answer) -> Result<Json> {
        serde_json::from_slice(&answer.body).map_err(|e| {
            let detail = format!(
                "{} was answered with something that is no JSON: {}. Is this a cluster?",
                about.what,
                json_reason(e)
            );
            Diagnostic::error(about.summary, detail).into()
        })
    }

    /// Reads an object; `None` if it does not exist.
    pub async fn get(&self, about: About<'_>, kind: Kind, name: &str) -> Result<Option<Json>> {
        let url = self.url(kind, Some(name), "")?;
        let answer = self.send(about, Method::GET, &url, None, None).await?;
        match answer.status.as_u16() {
            200 => Api::json(about, &answer).map(Some),
            404 => Ok(None),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Lists the secrets with these labels, optionally without their data.
    pub async fn secrets(&self, about: About<'_>, labels: &str, with_data: bool) -> Result<Vec<Json>> {
        // Only metadata is requested, so that the answer is short even for large states. Servers that do not support this return whole
        // objects.
        const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        let labels = utf8_percent_encode(labels, PART);
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let url = self.url(Kind::Secret, None, &format!("labelSelector={labels}&limit=500{next}"))?;
            let accept = (!with_data).then_some(METADATA);
            let answer = self.send(about, Method::GET, &url, None, accept).await?;
            if answer.status.as_u16() != 200 {
                return Err(self.problem(about, &answer));
            }
            let mut json = Api::json(about, &answer)?;
            if let Json::Array(items) = json["items"].take() {
                found.extend(items);
            }
            match json["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => next = format!("&continue={}", utf8_percent_encode(token, PART)),
                _ => return Ok(found),
            }
        }
    }

    pub async fn create(&self, about: About<'_>, kind: Kind, object: &Json) -> Result<Written> {
        let url = self.url(kind, None, "")?;
        let answer = self.send(about, Method::POST, &url, Some(object), None).await?;
        self.written(about, &answer)
    }

    /// Replaces an object, on the condition that its `resourceVersion` has not changed.
    pub async fn update(&self, about: About<'_>, kind: Kind, name: &str, object: &Json) -> Result<Written> {
        let url = self.url(kind, Some(name), "")?;
        let answer = self.send(about, Method::PUT, &url, Some(object), None).await?;
        self.written(about, &answer)
    }

    fn written(&self, about: About<'_>, answer: &Answer) -> Result<Written> {
        match answer.status.as_u16() {
            200..=299 => {
                // If the answer cannot be read, the object was written nevertheless, but its new version is unknown.
                let object: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
                Ok(Written::Done(Revision::named(
                    object["metadata"]["resourceVersion"].as_str(),
                )))
            }
            409 => Ok(Written::Conflict),
            _ => Err(self.problem(about, answer)),
        }
    }

    /// Deletes an object. It is not an error if the object does not exist.
    pub async fn delete(&self, about: About<'_>, kind: Kind, name: &str) -> Result<()> {
        let url = self.url(kind, Some(name), "")?;
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        let answer = self.send(about, Method::DELETE, &url, Some(&options), None).await?;
        match answer.status.as_u16() {
            200..=299 | 404 => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }
}
