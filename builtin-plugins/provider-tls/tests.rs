//! Tests of the provider through the calls of a host. Other tests check its keys and certificates with other programs, using the whole
//! executable.

use monoform_sdk::Diagnostics;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk_testing::Harness;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::key::Key;
use crate::pem;

async fn harness() -> Harness<impl monoform_sdk::Provider> {
    let harness = Harness::new(crate::provider());
    harness.configure(&[]).await.unwrap();
    harness
}

fn texts(list: &[&str]) -> Value {
    Value::list(Type::String, list.iter().map(|t| Value::from(*t)).collect())
}

fn subject(parts: &[(&str, &str)]) -> Value {
    let mut object = crate::subject::Subject::default();
    for (name, value) in parts {
        match *name {
            "common_name" => object.common_name = (*value).into(),
            "organization" => object.organization = (*value).into(),
            other => panic!("{other}"),
        }
    }
    monoform_sdk::Cty::to_cty(&vec![object])
}

fn get<'v>(value: &'v Value, name: &str) -> &'v str {
    value
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{name} of {value:?}"))
}

/// Returns an object with one value changed.
fn with(object: &Value, name: &str, value: Value) -> Value {
    object.map_parts(|part, old| match part {
        monoform_sdk::cty::value::Part::Attribute(n) if &**n == name => value.clone(),
        _ => old.clone(),
    })
}

fn summaries(errors: Diagnostics) -> Vec<String> {
    errors.0.into_iter().map(|d| d.summary).collect()
}

fn key(algorithm: &str) -> Key {
    Key::generate(algorithm, 2048, "P256").unwrap()
}

fn pem_of(key: &Key) -> Value {
    Value::from(key.pem().unwrap())
}

fn certificate_of(key: &Key, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut config = vec![
        ("private_key_pem", pem_of(key)),
        ("validity_period_hours", Value::from(24)),
        ("allowed_uses", texts(&["cert_signing", "server_auth"])),
    ];
    for (name, value) in more {
        config.retain(|(n, _)| n != name);
        config.push((name, value.clone()));
    }
    config
}

fn authority_of(key: &Key, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut config = certificate_of(
        key,
        &[
            ("is_ca_certificate", Value::from(true)),
            ("subject", subject(&[("common_name", "Root")])),
        ],
    );
    config.extend(more.iter().cloned());
    config
}

#[tokio::test]
async fn every_form_of_a_key_is_the_same_key() {
    let harness = harness().await;
    for (algorithm, curve) in [
        ("RSA", "P224"),
        ("ECDSA", "P224"),
        ("ECDSA", "P256"),
        ("ECDSA", "P384"),
        ("ECDSA", "P521"),
        ("ED25519", "P224"),
    ] {
        let config = [("algorithm", Value::from(algorithm)), ("ecdsa_curve", curve.into())];
        let state = harness.create("tls_private_key", &config).await.unwrap();
        let known_to_ssh = algorithm != "ECDSA" || curve != "P224";
        for (argument, attribute) in [
            ("private_key_pem", "private_key_pem"),
            ("private_key_pem", "private_key_pem_pkcs8"),
            ("private_key_openssh", "private_key_openssh"),
        ] {
            let text = get(&state, attribute);
            assert_eq!(text.is_empty(), attribute == "private_key_openssh" && !known_to_ssh);
            if text.is_empty() {
                continue;
            }
            let public = harness
                .data("tls_public_key", &[(argument, Value::from(text))])
                .await
                .unwrap();
            for name in [
                "algorithm",
                "id",
                "public_key_pem",
                "public_key_openssh",
                "public_key_fingerprint_md5",
                "public_key_fingerprint_sha256",
            ] {
                assert_eq!(public.get(name), state.get(name), "{name} from {attribute}");
            }
        }
    }
}

#[tokio::test]
async fn an_ephemeral_key_has_the_defaults() {
    let harness = harness().await;
    let key = harness
        .open("tls_private_key", &[("algorithm", "ECDSA".into())])
        .await
        .unwrap();
    assert_eq!(
        (key.get("rsa_bits"), key.get("ecdsa_curve")),
        (Some(&2048.into()), Some(&"P224".into()))
    );
    let public = harness
        .open(
            "tls_public_key",
            &[("private_key_pem", key.get("private_key_pem").unwrap().clone())],
        )
        .await
        .unwrap();
    assert_eq!(public.get("public_key_pem"), key.get("public_key_pem"));
}

#[tokio::test]
async fn keys_of_old_states_get_the_forms_they_lack() {
    let harness = harness().await;
    let key = key("RSA");
    let old = format!(
        r#"{{"id":"x","algorithm":"RSA","rsa_bits":2048,"ecdsa_curve":"P224","private_key_pem":{:?},"public_key_pem":""}}"#,
        key.pem().unwrap()
    );
    let state = harness.upgrade("tls_private_key", 0, &old).unwrap();
    assert_eq!(get(&state, "private_key_pem"), key.pem().unwrap());
    assert_eq!(get(&state, "private_key_openssh"), key.openssh_pem().unwrap());
    assert_eq!(
        get(&state, "public_key_fingerprint_sha256"),
        key.public().fingerprint_sha256()
    );
    assert_eq!(get(&state, "id"), key.public().id());
    let broken = harness
        .upgrade("tls_private_key", 0, r#"{"private_key_pem":"x"}"#)
        .unwrap_err();
    assert_eq!(summaries(broken), ["Unable to parse key from PEM"]);
}

#[tokio::test]
async fn a_chain_of_certificates() {
    let harness = harness().await;
    let (root_key, leaf_key) = (key("ECDSA"), key("ED25519"));
    let root = harness
        .create(
            "tls_self_signed_cert",
            &authority_of(&root_key, &[("max_path_length", 0.into())]),
        )
        .await
        .unwrap();
    let request = harness
        .create(
            "tls_cert_request",
            &[
                ("private_key_pem", pem_of(&leaf_key)),
                ("dns_names", texts(&["example.com"])),
                ("ip_addresses", texts(&["::ffff:10.0.0.1"])),
                ("subject", subject(&[("common_name", "leaf"), ("organization", "Örg")])),
            ],
        )
        .await
        .unwrap();
    let leaf = harness
        .create(
            "tls_locally_signed_cert",
            &[
                ("ca_cert_pem", root.get("cert_pem").unwrap().clone()),
                ("ca_private_key_pem", pem_of(&root_key)),
                ("cert_request_pem", request.get("cert_request_pem").unwrap().clone()),
                ("validity_period_hours", Value::from(1)),
                ("allowed_uses", texts(&["server_auth", "digital_signature"])),
            ],
        )
        .await
        .unwrap();
    assert_eq!(
        (get(&request, "key_algorithm"), get(&leaf, "ca_key_algorithm")),
        ("ED25519", "ECDSA")
    );
    assert!(leaf.get("max_path_length").unwrap().is_null());

    let der = pem::first_with_label(get(&root, "cert_pem"), pem::CERTIFICATE).unwrap();
    let (_, root) = X509Certificate::from_der(&der).unwrap();
    let der = pem::first_with_label(get(&leaf, "cert_pem"), pem::CERTIFICATE).unwrap();
    let (_, leaf) = X509Certificate::from_der(&der).unwrap();
    assert_eq!(
        root.basic_constraints().unwrap().unwrap().value.path_len_constraint,
        Some(0)
    );
    assert_eq!(leaf.issuer().as_raw(), root.subject().as_raw());
    let extensions = |c: &X509Certificate<'_>| -> Vec<(String, bool)> {
        c.extensions()
            .iter()
            .map(|e| (e.oid.to_id_string(), e.critical))
            .collect()
    };
    let expected = [
        ("2.5.29.15", true),
        ("2.5.29.37", false),
        ("2.5.29.19", true),
        ("2.5.29.35", false),
        ("2.5.29.17", false),
    ];
    assert_eq!(
        extensions(&leaf),
        expected.map(|(oid, critical)| (oid.to_owned(), critical))
    );
    let expected = [
        ("2.5.29.15", true),
        ("2.5.29.37", false),
        ("2.5.29.19", true),
        ("2.5.29.14", false),
    ];
    assert_eq!(
        extensions(&root),
        expected.map(|(oid, critical)| (oid.to_owned(), critical))
    );
}

#[tokio::test]
async fn a_given_certificate_is_taken_apart() {
    let harness = harness().await;
    let config = authority_of(&key("RSA"), &[("validity_period_hours", 8_000_000.into())]);
    let root = harness.create("tls_self_signed_cert", &config[..]).await.unwrap();
    let content = root.get("cert_pem").unwrap().clone();
    let data = harness
        .data("tls_certificate", &[("content", content.clone())])
        .await
        .unwrap();
    assert_eq!(data.get("verify_chain"), Some(&true.into()));
    let certificate = data.get("certificates").unwrap().as_seq().unwrap()[0].clone();
    for (name, expected) in [
        ("signature_algorithm", Value::from("SHA256-RSA")),
        ("public_key_algorithm", "RSA".into()),
        ("serial_number", root.get("id").unwrap().clone()),
        ("is_ca", true.into()),
        ("max_path_length", (-1).into()),
        ("version", 3.into()),
        ("issuer", "CN=Root".into()),
        ("subject", "CN=Root".into()),
        ("cert_pem", content),
    ] {
        assert_eq!(certificate.get(name), Some(&expected), "{name}");
    }
    // The period is longer than 64-bit nanoseconds can represent.
    assert!(get(&certificate, "not_after") > "2900");
    assert!(get(&root, "validity_end_time") > "2900");
}

#[tokio::test]
async fn certificates_are_renewed_in_time() {
    let harness = harness().await;
    let key = key("ECDSA");
    let name = "tls_self_signed_cert";
    let config = certificate_of(&key, &[]);
    let state = harness.create(name, &config).await.unwrap();
    assert_eq!(state.get("ready_for_renewal"), Some(&false.into()));
    let plan = harness.plan(name, Some(&state), &config).await.unwrap();
    assert_eq!((plan.planned, plan.replace), (state.clone(), vec![]));

    // A change of the early renewal is an in-place update, unless it makes the certificate due for renewal.
    let early = |hours: i64| certificate_of(&key, &[("early_renewal_hours", hours.into())]);
    let plan = harness.plan(name, Some(&state), &early(3)).await.unwrap();
    assert_eq!(
        (plan.planned.get("cert_pem"), plan.replace),
        (state.get("cert_pem"), vec![])
    );
    let plan = harness.plan(name, Some(&state), &early(24)).await.unwrap();
    assert!(!plan.planned.get("ready_for_renewal").unwrap().is_known());
    assert_eq!(plan.replace, ["ready_for_renewal"]);

    // A refresh of a due certificate only sets `ready_for_renewal`.
    let over = with(&state, "validity_end_time", "2020-01-01T00:00:00.5+01:00".into());
    let read = harness.read(name, &over).await.unwrap();
    assert_eq!(read, with(&over, "ready_for_renewal", true.into()));
    let plan = harness.plan(name, Some(&read), &config).await.unwrap();
    assert_eq!(plan.replace, ["ready_for_renewal"]);

    // A certificate is due at once if the early renewal covers its whole validity.
    for (hours, early, ready) in [(0, 0, Some(true)), (24, 24, Some(true)), (24, 23, Some(false))] {
        let config = certificate_of(
            &key,
            &[
                ("validity_period_hours", hours.into()),
                ("early_renewal_hours", early.into()),
            ],
        );
        let plan = harness.plan(name, None, &config).await.unwrap();
        assert_eq!(plan.planned.get("ready_for_renewal").and_then(Value::as_bool), ready);
    }
    let unknown = certificate_of(&key, &[("validity_period_hours", Value::unknown(Type::Number))]);
    let plan = harness.plan(name, None, &unknown).await.unwrap();
    assert!(!plan.planned.get("ready_for_renewal").unwrap().is_known());
}

#[tokio::test]
async fn a_hash_in_an_old_state_gives_way_to_the_key() {
    let harness = harness().await;
    let key = key("ECDSA");
    let name = "tls_self_signed_cert";
    let config = certificate_of(&key, &[]);
    let state = harness.create(name, &config).await.unwrap();
    let hashed = with(
        &state,
        "private_key_pem",
        "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3".into(),
    );
    let plan = harness.plan(name, Some(&hashed), &config).await.unwrap();
    assert_eq!((plan.planned, plan.replace), (state.clone(), vec![]));
    let other = certificate_of(&Key::generate("ED25519", 0, "").unwrap(), &[]);
    let plan = harness.plan(name, Some(&state), &other).await.unwrap();
    assert_eq!(plan.replace, ["private_key_pem"]);
}

#[tokio::test]
async fn what_cannot_be_made_is_refused() {
    let harness = harness().await;
    let key = key("ECDSA");
    let openssh = Value::from(key.openssh_pem().unwrap());
    let no_ca = [("is_ca_certificate", Value::from(true))];
    for (more, expected) in [
        (
            vec![("private_key_pem", "garbage".into())],
            "Failed to parse private key PEM",
        ),
        (vec![("private_key_pem", openssh)], "Failed to parse private key PEM"),
        (vec![("validity_period_hours", (-1).into())], "Invalid Attribute Value"),
        (
            vec![("validity_period_hours", 100_000_000.into())],
            "Failed to create certificate",
        ),
        (
            vec![("allowed_uses", texts(&["nonsense"]))],
            "Invalid Attribute Value Match",
        ),
        (no_ca.to_vec(), "Invalid Certificate Subject"),
        (
            vec![("set_authority_key_id", true.into())],
            "Invalid Certificate Authority",
        ),
        (vec![("max_path_length", 1.into())], "Failed to create certificate"),
        (vec![("ip_addresses", texts(&["1.2.3"]))], "Invalid IP address"),
        (vec![("ip_addresses", texts(&[""]))], "Invalid Attribute Value Length"),
        (vec![("uris", texts(&["%zz"]))], "Invalid URI"),
        (vec![("dns_names", texts(&["ä"]))], "Invalid DNS name"),
    ] {
        let config = certificate_of(&key, &more);
        let errors = harness.create("tls_self_signed_cert", &config).await.unwrap_err();
        assert_eq!(summaries(errors), [expected], "{more:?}");
    }
    for (bits, expected) in [(512, "insecure"), (1_000_000, "would take hours")] {
        let config = [("algorithm", Value::from("RSA")), ("rsa_bits", bits.into())];
        let errors = harness.create("tls_private_key", &config).await.unwrap_err();
        assert!(errors.0[0].detail.contains(expected), "{errors:?}");
    }
    let other = Value::from(Key::generate("ED25519", 0, "").unwrap().pem().unwrap());
    let root = harness
        .create("tls_self_signed_cert", &authority_of(&key, &[]))
        .await
        .unwrap();
    let root = root.get("cert_pem").unwrap().clone();
    let request = harness
        .create("tls_cert_request", &[("private_key_pem", pem_of(&key))])
        .await
        .unwrap();
    let request = request.get("cert_request_pem").unwrap().clone();
    for (ca, ca_key, request, expected) in [
        (&root, &other, &request, "Failed to create certificate"),
        (&request, &other, &request, "Failed to parse CA certificate PEM"),
        (&root, &other, &root, "Failed to parse certificate request PEM"),
        (&root, &root, &request, "Failed to parse CA private key PEM"),
    ] {
        let config = [
            ("ca_cert_pem", ca.clone()),
            ("ca_private_key_pem", ca_key.clone()),
            ("cert_request_pem", request.clone()),
            ("validity_period_hours", 1.into()),
            ("allowed_uses", texts(&[])),
        ];
        let errors = harness.create("tls_locally_signed_cert", &config).await.unwrap_err();
        assert_eq!(summaries(errors), [expected]);
    }
}

#[tokio::test]
async fn the_provider_has_one_proxy_that_makes_sense() {
    use crate::proxying::Proxy;
    let check = async |proxies: Vec<Proxy>| {
        let harness = Harness::new(crate::provider());
        let config = [("proxy", monoform_sdk::Cty::to_cty(&proxies))];
        harness
            .configure(&config)
            .await
            .err()
            .map(summaries)
            .unwrap_or_default()
    };
    let proxy = Proxy {
        url: "https://proxy.example:3128".into(),
        ..Proxy::default()
    };
    assert!(check(vec![proxy.clone()]).await.is_empty());
    assert_eq!(
        check(vec![proxy.clone(), proxy.clone()]).await,
        ["Invalid Attribute Value"]
    );
    for (url, expected) in [("proxy", "Invalid URL"), ("ftp://proxy", "Invalid URL scheme")] {
        let proxy = Proxy {
            url: url.into(),
            ..Proxy::default()
        };
        assert_eq!(check(vec![proxy]).await, [expected]);
    }
    let combination = "Invalid Attribute Combination";
    let both = Proxy {
        from_env: true.into(),
        ..proxy.clone()
    };
    assert_eq!(check(vec![both]).await, [combination, combination]);
    let nameless = Proxy {
        password: "x".into(),
        ..proxy
    };
    assert_eq!(check(vec![nameless]).await, [combination]);
}

/// Reads certificates through a proxy. Returns the request that the proxy received, and the errors.
async fn asked_of_a_proxy(scheme: &str, user: Option<(&str, &str)>, url: &str) -> (String, Vec<String>) {
    use tokio::io::AsyncReadExt;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = crate::proxying::Proxy {
        url: format!("{scheme}://{}", listener.local_addr().unwrap()).into(),
        username: user.map(|(name, _)| name.to_owned()).into(),
        password: user.map(|(_, password)| password.to_owned()).into(),
        ..Default::default()
    };
    let harness = Harness::new(crate::provider());
    let config = [("proxy", monoform_sdk::Cty::to_cty(&vec![proxy]))];
    harness.configure(&config).await.unwrap();
    // The proxy accepts one connection and closes it; further ones are refused.
    let hear = async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; 4096];
        let length = socket.read(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let config = [("url", Value::from(url))];
    let ask = async {
        let result = harness.data("tls_certificate", &config).await;
        result.err().map(summaries).unwrap_or_default()
    };
    tokio::join!(hear, ask)
}

#[tokio::test]
async fn servers_are_asked_through_the_proxy() {
    let failed = vec!["Failed to identify fetch peer certificates".to_owned()];
    let (heard, errors) = asked_of_a_proxy("http", Some(("me", "p@ss")), "https://certificates.test").await;
    assert!(
        heard.starts_with("CONNECT certificates.test:443 HTTP/1.1\r\n"),
        "{heard}"
    );
    let heard = heard.to_lowercase();
    // Base64 of "me:p@ss", in lower case.
    assert!(heard.contains("proxy-authorization: basic bwu6cebzcw=="), "{heard}");
    assert_eq!(errors, failed);

    // A SOCKS request begins with the version and the authentication methods.
    let (heard, errors) = asked_of_a_proxy("socks5", None, "https://certificates.test").await;
    assert_eq!(heard, "\u{5}\u{1}\0");
    assert_eq!(errors, failed);
}
