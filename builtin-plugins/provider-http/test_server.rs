//! A web server for tests, in HTTP/1.1 and HTTP/2, with and without TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Received request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub method: String,
    pub path: String,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: String,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

/// Response of the test server.
pub(crate) struct Reply {
    response: Response<Full<Bytes>>,
    delay: Duration,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        let mut response = Response::new(Full::new(Bytes::from(body.into())));
        *response.status_mut() = status.try_into().unwrap();
        Reply {
            response,
            delay: Duration::ZERO,
        }
    }

    pub fn ok(body: impl Into<Vec<u8>>) -> Reply {
        Reply::new(200, body)
    }

    pub fn redirect(status: u16, to: &str) -> Reply {
        Reply::new(status, "").with("location", to)
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Reply {
        self.response.headers_mut().append(name, value.parse().unwrap());
        self
    }

    pub fn late(mut self, delay: Duration) -> Reply {
        self.delay = delay;
        self
    }
}

/// A server that runs until the runtime of the test ends.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Answer = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

impl Server {
    pub async fn http(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        Server::start(None, Arc::new(answer)).await
    }

    /// Starts a server with this certificate and key. If there is an authority, clients must present a certificate that it has signed.
    pub async fn https(
        (certificate, key): &(String, String),
        clients: Option<&Authority>,
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Server {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = rustls::RootCertStore::empty();
                roots
                    .add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap())
                    .unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let mut config = builder.with_single_cert(vec![certificate], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Server::start(Some(TlsAcceptor::from(Arc::new(config))), Arc::new(answer)).await
    }

    async fn start(tls: Option<TlsAcceptor>, answer: Answer) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            asked: Arc::default(),
        };
        let asked = server.asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, answer, asked) = (tls.clone(), answer.clone(), asked.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, asked).await,
                        Some(tls) => {
                            // A failed handshake is ignored: some tests expect that the client rejects the certificate.
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answer, asked).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, answer: Answer, asked: Arc<Mutex<Vec<Asked>>>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (answer, asked) = (answer.clone(), asked.clone());
        async move {
            let (head, body) = request.into_parts();
            let this = Asked {
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                version: head.version,
                headers: head.headers,
                body: String::from_utf8(body.collect().await?.to_bytes().to_vec()).unwrap(),
            };
            let reply = answer(&this);
            asked.lock().unwrap().push(this);
            tokio::time::sleep(reply.delay).await;
            Ok::<_, hyper::Error>(reply.response)
        }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    drop(builder.serve_connection(TokioIo::new(stream), service).await);
}

/// Certificate authority of the tests.
pub(crate) struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            pem,
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate. Returns it with its key.
    pub fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// Returns a self-signed CA certificate with its key, as `openssl req -x509` creates it.
pub(crate) fn home_made(name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}
