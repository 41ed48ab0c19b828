//! Tests of a provider and a provisioner that are called through real sockets, in both versions of the protocol,
//! with and without TLS.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use proto::go_plugin::grpc_controller_client::GrpcControllerClient;
use proto::go_plugin::grpc_stdio_client::GrpcStdioClient;
use proto::health::health_client::HealthClient;
use proto::{calls, go_plugin, health, tfplugin5, tfplugin6};
use rcgen::KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};

use super::*;
use monoform_sdk::cty::{self, Type, Value};
use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{
    Arguments, Attr, Context, Diagnostic, Empty, Function, FunctionError, Members, Output, Parameter, Resource, Result,
    Stop, async_trait, model,
};

model! {
    pub struct Part {
        pub name: Attr<String> = required(),
        pub number: Attr<i64> = computed(),
    }
}

model! {
    pub struct Thing {
        /// The name of the thing.
        pub name: Attr<String> = required().requires_replace(),
        /// Something secret.
        pub secret: Attr<String> = optional().sensitive(),
        /// Never kept.
        pub token: Attr<String> = optional().write_only(),
        /// Its size.
        pub size: Attr<i64> = optional().computed().default(3i64),
        /// Its id.
        pub id: Attr<String> = computed().keep(),
        pub part: Vec<Part> = block(),
    }
}

struct Things;

#[async_trait]
impl Resource for Things {
    type Model = Thing;
    type Client = ();

    async fn create(&self, mut plan: Thing, cx: &mut Context<()>) -> Result<Thing> {
        cx.client()?;
        match plan.name.text() {
            "panic" => panic!("as asked"),
            "panic half way" => {
                cx.set_private(b"noted".to_vec());
                cx.save(&Thing {
                    id: "half".into(),
                    ..plan
                });
                panic!("as asked");
            }
            "half" => {
                cx.save(&Thing {
                    id: "half".into(),
                    ..plan
                });
                return Err(Diagnostic::error("Half Done", "as asked").at_attribute("name").into());
            }
            _ => {}
        }
        for (i, part) in plan.part.iter_mut().enumerate() {
            part.number = (i as i64).into();
        }
        Ok(Thing {
            id: format!("new{}", cx.config::<Thing>()?.token.text()).into(),
            ..plan
        })
    }
}

struct Shop;

#[async_trait]
impl Provider for Shop {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        members.resource("shop_thing", Things);
        let parameter = Parameter::new::<String>("text", "Any text.");
        let body = |arguments: Arguments<'_>| -> std::result::Result<i64, FunctionError> {
            Ok(arguments.get::<String>(0)?.len() as i64)
        };
        members.function(
            "length",
            Function::new("Length.", "Length of a text.", vec![parameter], body),
        );
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

struct Echo;

model! {
    pub struct EchoConfig {
        pub words: Attr<Vec<String>> = required(),
    }
}

#[async_trait]
impl Provisioner for Echo {
    type Config = EchoConfig;

    async fn run(&self, config: EchoConfig, _connection: Value, output: Output, _stop: Stop) -> Result<()> {
        for word in config.words.or(Vec::new()) {
            output.show(word).await;
        }
        Err(Diagnostic::error("No More Words", "as asked").into())
    }
}

struct Served {
    path: PathBuf,
    certificate: Option<Vec<u8>>,
    shutdown: Shutdown,
    server: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

fn serve(services: impl FnOnce(Shutdown) -> Services, client_certificate: Option<&str>) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let tls = client_certificate.map(|pem| Tls::new(pem).unwrap());
    let certificate = tls.as_ref().map(|tls| tls.certificate.clone());
    let shutdown = Shutdown::new();
    let server = tokio::spawn(run(
        listener,
        tls,
        services(shutdown.clone()),
        Auxiliary(shutdown.clone()),
        shutdown.clone(),
    ));
    Served {
        path,
        certificate,
        shutdown,
        server,
        _dir: dir,
    }
}

impl Served {
    async fn end(self) {
        self.shutdown.begin();
        tokio::time::timeout(Duration::from_secs(5), self.server)
            .await
            .unwrap()
            .unwrap();
    }
}

async fn plain(path: &Path) -> Channel {
    let path = path.to_owned();
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { Ok::<_, io::Error>(TokioIo::new(UnixStream::connect(path).await?)) }
    });
    Endpoint::from_static("http://localhost")
        .connect_with_connector(connector)
        .await
        .unwrap()
}

/// A client certificate as go-plugin creates it: a CA certificate with a P-521 key.
fn client_identity() -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P521_SHA512).unwrap();
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (parameters.self_signed(&key).unwrap(), key)
}

#[derive(Debug)]
struct ExactServer(Vec<u8>);

impl ServerCertVerifier for ExactServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        assert_eq!(end_entity.as_ref(), self.0, "the server shows what it announced");
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            signature,
            &aws_lc_rs::default_provider().signature_verification_algorithms,
        )
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            signature,
            &aws_lc_rs::default_provider().signature_verification_algorithms,
        )
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

async fn encrypted(
    path: &Path,
    server: Vec<u8>,
    identity: Option<&(rcgen::Certificate, KeyPair)>,
) -> std::result::Result<Channel, tonic::transport::Error> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ExactServer(server)));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
            builder
                .with_client_auth_cert(vec![certificate.der().clone()], key)
                .unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let path = path.to_owned();
    let connect = tower::service_fn(move |_| {
        let (path, connector) = (path.clone(), connector.clone());
        async move {
            let stream = UnixStream::connect(path).await?;
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            Ok::<_, io::Error>(TokioIo::new(connector.connect(name, stream).await?))
        }
    });
    Endpoint::from_static("http://localhost")
        .connect_with_connector(connect)
        .await
}

fn thing_type() -> Type {
    use monoform_sdk::Cty;
    Thing::ty()
}

fn thing(name: &str, parts: &[&str]) -> Value {
    use monoform_sdk::Cty;
    let part = |name: &&str| Part {
        name: (*name).into(),
        ..Part::default()
    };
    Thing {
        name: name.into(),
        part: parts.iter().map(part).collect(),
        ..Thing::default()
    }
    .to_cty()
}

fn bytes(value: &Value) -> Vec<u8> {
    cty::msgpack::encode(value, &thing_type()).unwrap()
}

fn value(msgpack: &[u8]) -> Value {
    cty::msgpack::decode(msgpack, &thing_type()).unwrap()
}

/// The life of one object, in one version of the protocol.
macro_rules! life {
    ($pb:ident, $channel:expr, $schema:ident, $configure:ident($configure_module:ident)) => {{
        use $pb::provider_client::ProviderClient;
        let dynamic = |v: &Value| {
            Some($pb::DynamicValue {
                msgpack: bytes(v),
                json: vec![],
            })
        };
        let mut client = ProviderClient::new($channel);

        let schema = client
            .$schema($pb::get_provider_schema::Request {})
            .await
            .unwrap()
            .into_inner();
        let block = schema.resource_schemas["shop_thing"].block.clone().unwrap();
        let described: Vec<_> = block
            .attributes
            .iter()
            .map(|a| (a.name.as_str(), a.description.as_str()))
            .collect();
        assert_eq!(
            described,
            [
                ("name", "The name of the thing."),
                ("secret", "Something secret."),
                ("token", "Never kept."),
                ("size", "Its size."),
                ("id", "Its id.")
            ]
        );
        assert_eq!(block.attributes[0].r#type, b"\"string\"");
        assert!(block.attributes[1].sensitive && block.block_types[0].type_name == "part");
        assert!(schema.functions.contains_key("length"));

        let null = Value::null(thing_type());
        let plan = |prior: Value, config: Value| $pb::plan_resource_change::Request {
            type_name: "shop_thing".into(),
            prior_state: dynamic(&prior),
            proposed_new_state: dynamic(&config),
            config: dynamic(&config),
            prior_private: b"p".to_vec(),
            ..Default::default()
        };
        let config = thing("a", &["x", "y"]);
        let planned = client
            .plan_resource_change(plan(null.clone(), config.clone()))
            .await
            .unwrap()
            .into_inner();
        assert!(planned.diagnostics.is_empty() && planned.requires_replace.is_empty());
        let planned = planned.planned_state.unwrap();
        let object = value(&planned.msgpack);
        assert_eq!(object.get("id"), Some(&Value::unknown(Type::String)));
        assert_eq!(object.get("size"), Some(&3.into()));
        let parts = object.get("part").and_then(Value::as_seq).unwrap();
        assert_eq!(parts[1].get("number"), Some(&Value::unknown(Type::Number)));

        let apply = |planned: $pb::DynamicValue| $pb::apply_resource_change::Request {
            type_name: "shop_thing".into(),
            prior_state: dynamic(&null),
            planned_state: Some(planned),
            config: dynamic(&config),
            ..Default::default()
        };
        let early = client
            .apply_resource_change(apply(planned.clone()))
            .await
            .unwrap()
            .into_inner();
        assert_eq!(early.diagnostics[0].summary, "Provider not configured");
        let empty = $pb::DynamicValue {
            msgpack: vec![0x80],
            json: vec![],
        };
        let request = $pb::$configure_module::Request {
            config: Some(empty),
            ..Default::default()
        };
        assert!(
            client
                .$configure(request)
                .await
                .unwrap()
                .into_inner()
                .diagnostics
                .is_empty()
        );
        let created = client.apply_resource_change(apply(planned)).await.unwrap().into_inner();
        let state = value(&created.new_state.unwrap().msgpack);
        assert_eq!(state.get("id"), Some(&"new".into()));

        let replaced = client
            .plan_resource_change(plan(state, thing("b", &[])))
            .await
            .unwrap()
            .into_inner();
        let step = replaced.requires_replace[0].steps[0].selector.clone();
        assert_eq!(
            step,
            Some($pb::attribute_path::step::Selector::AttributeName("name".into()))
        );

        let panicked = apply($pb::DynamicValue {
            msgpack: bytes(&thing("panic", &[])),
            json: vec![],
        });
        let panicked = client.apply_resource_change(panicked).await.unwrap().into_inner();
        assert!(panicked.diagnostics[0].detail.contains("as asked"));
        assert!(value(&panicked.new_state.unwrap().msgpack).is_null());
        let saved = apply($pb::DynamicValue {
            msgpack: bytes(&thing("panic half way", &["x"])),
            json: vec![],
        });
        let saved = client.apply_resource_change(saved).await.unwrap().into_inner();
        assert!(saved.diagnostics[0].detail.contains("as asked"));
        let (object, private) = (value(&saved.new_state.unwrap().msgpack), saved.private);
        assert_eq!(
            (object.get("id"), private.as_slice()),
            (Some(&"half".into()), &b"noted"[..])
        );
        let half = apply($pb::DynamicValue {
            msgpack: bytes(&thing("half", &[])),
            json: vec![],
        });
        let half = client.apply_resource_change(half).await.unwrap().into_inner();
        assert_eq!(value(&half.new_state.unwrap().msgpack).get("id"), Some(&"half".into()));
        assert_eq!(half.diagnostics[0].attribute.as_ref().map(|a| a.steps.len()), Some(1));

        let mut bad = apply($pb::DynamicValue {
            msgpack: vec![0xc1],
            json: vec![],
        });
        let garbage = client.apply_resource_change(bad.clone()).await.unwrap().into_inner();
        assert_eq!(garbage.diagnostics[0].summary, "Unreadable value");
        bad.type_name = "shop_none".into();
        let unknown = client.apply_resource_change(bad).await.unwrap().into_inner();
        assert_eq!(unknown.diagnostics[0].summary, "Unknown type");

        let upgraded = client
            .upgrade_resource_state($pb::upgrade_resource_state::Request {
                type_name: "shop_thing".into(),
                version: 0,
                raw_state: Some($pb::RawState {
                    json: br#"{"name":"a","gone":1}"#.to_vec(),
                    ..Default::default()
                }),
            })
            .await
            .unwrap()
            .into_inner();
        let upgraded = value(&upgraded.upgraded_state.unwrap().msgpack);
        assert_eq!(upgraded.get("name"), Some(&"a".into()));
        assert_eq!(upgraded.get("part").and_then(Value::as_seq), Some(&[][..]), "no blocks");

        let argument = cty::msgpack::encode(&"four".into(), &Type::String).unwrap();
        let call = $pb::call_function::Request {
            name: "length".into(),
            arguments: vec![$pb::DynamicValue {
                msgpack: argument,
                json: vec![],
            }],
        };
        assert_eq!(
            client
                .call_function(call)
                .await
                .unwrap()
                .into_inner()
                .result
                .unwrap()
                .msgpack,
            [4]
        );
        let missing = $pb::call_function::Request {
            name: "length".into(),
            arguments: vec![],
        };
        assert!(
            client
                .call_function(missing)
                .await
                .unwrap()
                .into_inner()
                .error
                .is_some()
        );
    }};
}

#[tokio::test]
async fn protocol_5_in_plain_text() {
    let served = serve(|shutdown| provider_routes(ServedProvider::new(Shop), 5, shutdown), None);
    life!(tfplugin5, plain(&served.path).await, get_schema, configure(configure));
    served.end().await;
}

#[tokio::test]
async fn protocol_6_in_plain_text() {
    let served = serve(|shutdown| provider_routes(ServedProvider::new(Shop), 6, shutdown), None);
    life!(
        tfplugin6,
        plain(&served.path).await,
        get_provider_schema,
        configure_provider(configure_provider)
    );
    served.end().await;
}

#[tokio::test]
async fn both_protocols_with_mutual_tls() {
    let identity = client_identity();
    for version in [5, 6] {
        let served = serve(
            |shutdown| provider_routes(ServedProvider::new(Shop), version, shutdown),
            Some(&identity.0.pem()),
        );
        let channel = encrypted(&served.path, served.certificate.clone().unwrap(), Some(&identity))
            .await
            .unwrap();
        if version == 5 {
            life!(tfplugin5, channel, get_schema, configure(configure));
        } else {
            life!(
                tfplugin6,
                channel,
                get_provider_schema,
                configure_provider(configure_provider)
            );
        }
        served.end().await;
    }
}

#[tokio::test]
async fn other_clients_are_not_let_in() {
    let identity = client_identity();
    let served = serve(
        |shutdown| provider_routes(ServedProvider::new(Shop), 5, shutdown),
        Some(&identity.0.pem()),
    );
    let certificate = served.certificate.clone().unwrap();
    let other = client_identity();
    for identity in [None, Some(&other)] {
        if let Ok(channel) = encrypted(&served.path, certificate.clone(), identity).await {
            // In TLS 1.3, the client learns of the refusal only with the first answer.
            let mut client = tfplugin5::provider_client::ProviderClient::new(channel);
            assert!(
                client
                    .get_schema(tfplugin5::get_provider_schema::Request {})
                    .await
                    .is_err()
            );
        }
    }
    served.end().await;
}

#[tokio::test]
async fn auxiliary_services_answer_and_the_controller_ends_it() {
    let served = serve(|shutdown| provider_routes(ServedProvider::new(Shop), 5, shutdown), None);
    let channel = plain(&served.path).await;
    let mut client = HealthClient::new(channel.clone());
    let request = health::HealthCheckRequest {
        service: "plugin".into(),
    };
    assert_eq!(client.check(request).await.unwrap().into_inner().status, 1);
    let mut stdio = GrpcStdioClient::new(channel.clone())
        .stream_stdio(())
        .await
        .unwrap()
        .into_inner();
    GrpcControllerClient::new(channel)
        .shutdown(go_plugin::Empty {})
        .await
        .unwrap();
    assert!(stdio.next().await.is_none(), "the stream ends with the plugin");
    drop(client);
    tokio::time::timeout(Duration::from_secs(5), served.server)
        .await
        .unwrap()
        .unwrap();
}

/// A provider with one data source, which waits until it is requested to stop.
fn waiting() -> ServedProvider {
    ServedProvider::new(monoform_sdk::Plain(|members| members.data_source("shop_wait", Wait)))
}

struct Wait;

#[async_trait]
impl monoform_sdk::DataSource for Wait {
    type Model = Empty;
    type Client = ();

    async fn read(&self, _config: Empty, cx: &mut Context<()>) -> Result<Empty> {
        cx.stop().requested().await;
        Err(Diagnostic::error("Stopped", "as asked").into())
    }
}

/// Opens a stream of batched calls. Returns the sender of calls and the receiver of answers.
async fn exchange(served: &Served) -> (mpsc::Sender<calls::Requests>, tonic::Streaming<calls::Answers>) {
    let (sender, requests) = mpsc::channel(8);
    let mut client = calls::provider_calls_client::ProviderCallsClient::new(plain(&served.path).await);
    let answers = client
        .exchange(ReceiverStream::new(requests))
        .await
        .unwrap()
        .into_inner();
    (sender, answers)
}

fn call(number: u64, method: calls::request::Method, message: &impl prost::Message) -> calls::Request {
    calls::Request {
        number,
        method: method.into(),
        message: message.encode_to_vec().into(),
    }
}

/// Receives this number of answers. Returns them by call number.
async fn answered(answers: &mut tonic::Streaming<calls::Answers>, count: usize) -> BTreeMap<u64, calls::Answer> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let batch = answers.message().await.unwrap().unwrap();
        all.extend(batch.answers.into_iter().map(|answer| (answer.number, answer)));
    }
    all
}

#[tokio::test]
async fn calls_in_one_message_are_answered_each_by_itself() {
    use calls::request::Method;
    let served = serve(|shutdown| provider_routes(ServedProvider::new(Shop), 6, shutdown), None);
    let (requests, mut answers) = exchange(&served).await;
    let config = thing("a", &[]);
    let validate = tfplugin6::validate_resource_config::Request {
        type_name: "shop_thing".into(),
        config: Some(tfplugin6::DynamicValue {
            msgpack: bytes(&config),
            json: Vec::new(),
        }),
        client_capabilities: None,
    };
    let mut broken = call(3, Method::ReadResource, &validate);
    broken.message = vec![0xff].into();
    let batch = vec![
        call(1, Method::ValidateResourceConfig, &validate),
        call(2, Method::ReadResource, &tfplugin6::read_resource::Request::default()),
        broken,
        call(4, Method::ValidateResourceConfig, &validate),
    ];
    requests.send(calls::Requests { requests: batch }).await.unwrap();
    let all = answered(&mut answers, 4).await;
    for number in [1, 4] {
        let valid = tfplugin6::validate_resource_config::Response::decode(all[&number].message.clone()).unwrap();
        assert_eq!(valid.diagnostics, [], "{number}");
    }
    let unknown = tfplugin6::read_resource::Response::decode(all[&2].message.clone()).unwrap();
    assert_eq!(unknown.diagnostics[0].summary, "Unknown type");
    let failure = all[&3].failure.as_ref().unwrap();
    assert!(failure.text.contains("cannot be read"), "{}", failure.text);
    // The plugin ends although the stream is still open.
    served.end().await;
}

#[tokio::test]
async fn call_in_a_batch_whose_caller_is_gone_is_asked_to_stop() {
    use calls::request::Method;
    let served = serve(|shutdown| provider_routes(waiting(), 6, shutdown), None);
    let (requests, mut answers) = exchange(&served).await;
    let read = tfplugin6::read_data_source::Request {
        type_name: "shop_wait".into(),
        // An empty object in msgpack.
        config: Some(tfplugin6::DynamicValue {
            msgpack: vec![0x80],
            json: Vec::new(),
        }),
        ..Default::default()
    };
    let batch = |requests| calls::Requests { requests };
    let both = vec![
        call(1, Method::ReadDataSource, &read),
        call(2, Method::ReadDataSource, &read),
    ];
    requests.send(batch(both)).await.unwrap();
    let cancel = call(2, Method::Cancel, &());
    requests.send(batch(vec![cancel])).await.unwrap();
    let stopped = answered(&mut answers, 1).await;
    let answer = tfplugin6::read_data_source::Response::decode(stopped[&2].message.clone()).unwrap();
    assert_eq!(answer.diagnostics[0].summary, "Stopped");
    // The client disconnects while the other call is running.
    drop((requests, answers));
    served.end().await;
}

#[tokio::test]
async fn provisioners_stream_their_output() {
    let served = serve(|_| provisioner_routes(ServedProvisioner::new(Echo)), None);
    let mut client = tfplugin5::provisioner_client::ProvisionerClient::new(plain(&served.path).await);
    let schema = client
        .get_schema(tfplugin5::get_provisioner_schema::Request {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(schema.provisioner.unwrap().block.unwrap().attributes[0].name, "words");

    let ty = Type::object([("words", Type::list(Type::String))]);
    let config = Value::object([("words", Value::list(Type::String, vec!["a".into(), "b".into()]))]);
    let config = tfplugin5::DynamicValue {
        msgpack: cty::msgpack::encode(&config, &ty).unwrap(),
        json: vec![],
    };
    let request = tfplugin5::provision_resource::Request {
        config: Some(config),
        connection: None,
    };
    let answers = client.provision_resource(request).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(|a| a.unwrap()).collect().await;
    let output: Vec<&str> = answers.iter().map(|a| a.output.as_str()).collect();
    assert_eq!(output, ["a", "b", ""]);
    assert_eq!(answers[2].diagnostics[0].summary, "No More Words");
    served.end().await;
}

#[tokio::test]
async fn write_only_attributes_are_read_from_the_configuration() {
    let harness = monoform_sdk_testing::Harness::new(Shop);
    let config = [("name", "a".into()), ("token", "7".into())];
    assert!(
        harness.create("shop_thing", &config).await.is_err(),
        "not configured yet"
    );
    harness.configure(&[]).await.unwrap();
    let state = harness.create("shop_thing", &config).await.unwrap();
    assert_eq!(state.get("id"), Some(&"new7".into()));
    assert!(state.get("token").unwrap().is_null());
}

#[test]
fn secrets_are_not_printed() {
    let thing = Thing {
        name: "a".into(),
        secret: "hidden".into(),
        ..Thing::default()
    };
    let text = format!("{thing:?}");
    assert!(text.contains("(sensitive)") && !text.contains("hidden"), "{text}");
}
