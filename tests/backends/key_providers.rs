//! Encryption with keys from cloud services: AWS KMS, emulated by `moto_server`; Google Cloud KMS and Azure Key Vault, by fakes that check
//! signatures and tokens.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use libtest_mimic::Trial;
use serde_json::{Value as Json, json};
use support::server::{Reply, Request, Server, decoded};
use support::{Ran, Workspace, needing};

use crate::credentials::{form, key, statement};
use crate::s3;
use crate::server::proxy;

const SECRET: &str = "planted-secret-9d0e";

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn(), programs: &[&str]| {
        let run = move || {
            test();
            Ok(())
        };
        needing(Trial::test(format!("key_providers::{name}"), run), programs)
    };
    vec![
        trial(
            "aws_kms_keys_are_found_again_by_their_context",
            aws_contexts,
            s3::PROGRAMS,
        ),
        trial(
            "aws_kms_states_are_read_by_opentofu_and_the_other_way",
            aws_both_ways,
            &["moto_server", "tofu"],
        ),
        trial("gcp_kms_encrypts_keys_with_a_token_of_the_account", gcp, &[]),
        trial("azure_vault_encrypts_keys_with_a_token_for_the_vault", azure, &[]),
        trial(
            "azure_vault_states_are_read_by_opentofu_and_the_other_way",
            azure_both_ways,
            &["tofu"],
        ),
    ]
}

/// Returns a working directory whose states are encrypted with the keys of a key provider.
fn encrypted(provider: &str, arguments: &str) -> Workspace {
    let config = "variable \"word\" {\n  default = \"x\"\n}\nresource \"terraform_data\" \"a\" {\n  input = var.word\n}\n\
                  output \"word\" {\n  value = terraform_data.a.output\n}\n";
    Workspace::with(&[("main.tf", config)]).env("TF_ENCRYPTION", settings(provider, arguments))
}

fn settings(provider: &str, arguments: &str) -> String {
    format!(
        "key_provider \"{provider}\" \"k\" {{\n{arguments}\n}}\nmethod \"aes_gcm\" \"m\" {{\n  keys = key_provider.{provider}.k\n}}\n\
         state {{\n  method = method.aes_gcm.m\n}}\nplan {{\n  method = method.aes_gcm.m\n}}\n"
    )
}

fn apply(w: &Workspace, word: &str) -> Ran {
    w.run(&["apply", "-no-color", "-auto-approve", &format!("-var=word={word}")])
}

/// Applies, reads the state and a saved plan, and checks that the state file does not contain the secret in clear
/// text.
fn is_encrypted(w: &Workspace) {
    apply(w, SECRET).ok();
    assert!(!w.read("terraform.tfstate").contains(SECRET));
    w.run(&["output", "-raw", "word"]).ok().shows(&[SECRET]);
    let more = format!("-var=word={SECRET}-more");
    w.run(&["plan", "-no-color", "-out=plan", &more]).ok();
    w.run(&["show", "-no-color", "plan"]).ok().shows(&["-more"]);
    w.run(&["apply", "-no-color", "plan"]).ok();
    w.run(&["plan", "-detailed-exitcode", &more]).ok();
}

/// Returns the metadata of the key in a state.
fn metadata(w: &Workspace, provider: &str) -> Json {
    let state: Json = serde_json::from_str(&w.read("terraform.tfstate")).expect("a document");
    let text = state["meta"][format!("key_provider.{provider}.k")]
        .as_str()
        .expect("metadata")
        .to_owned();
    serde_json::from_slice(&BASE64.decode(text).expect("base64")).expect("a document")
}

/// Changes the state with Monoform and OpenTofu in turn.
fn both_ways(w: &Workspace) {
    let tofu = support::which("tofu").expect("it is installed");
    apply(w, "ours").ok();
    w.run_program(&tofu, &["init"]).ok();
    w.run_program(&tofu, &["output", "-raw", "word"]).ok().shows(&["ours"]);
    w.run_program(&tofu, &["apply", "-auto-approve", "-var=word=theirs"])
        .ok()
        .shows(&["1 changed"]);
    w.run(&["output", "-raw", "word"]).ok().shows(&["theirs"]);
}

fn of_aws(more: &str) -> (Workspace, Arc<s3::Server>) {
    let server = s3::server();
    let id = server.new_kms_key();
    let arguments = format!("  kms_key_id = \"{id}\"\n  key_spec = \"AES_256\"\n  region = \"us-east-1\"\n{more}");
    let mut w = encrypted("aws_kms", &arguments);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", server.url()),
        ("AWS_ACCESS_KEY_ID", "test".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
    ] {
        w = w.env(name, value);
    }
    (w, server)
}

fn aws_contexts() {
    let (w, _server) = of_aws("  encryption_context = {\n    project = \"one\"\n  }");
    is_encrypted(&w);
    let stored = metadata(&w, "aws_kms");
    assert_eq!(stored["encryption_context"], json!({"project": "one"}));
    assert!(
        BASE64
            .decode(stored["ciphertext_blob"].as_str().expect("a blob"))
            .is_ok()
    );
    // Reading uses the encryption context that the state stores, not the one in the settings.
    let text = settings(
        "aws_kms",
        "  kms_key_id = \"alias/none\"\n  key_spec = \"AES_256\"\n  region = \"us-east-1\"",
    );
    let w = w.env("TF_ENCRYPTION", text);
    w.run(&["plan", "-no-color"]).fails_with(&[
        "Unable to fetch encryption key data",
        "Correct kms_key_id, or create the key in the region us-east-1",
    ]);
    let forbidden = "  kms_key_id = \"k\"\n  key_spec = \"AES_256\"\n  region = \"us-east-1\"\n  forbidden_account_ids = [\"123456789012\"]";
    let w = w.env("TF_ENCRYPTION", settings("aws_kms", forbidden));
    w.run(&["plan", "-no-color"])
        .fails_with(&["Unable to build encryption key data", "is one of forbidden_account_ids"]);
}

fn aws_both_ways() {
    let (w, _server) = of_aws("");
    both_ways(&w);
}

/// Texts that a fake service has encrypted: the name of the key, the additional data, and the text.
type Encrypted = Arc<Mutex<Vec<(String, String, String)>>>;

/// Lets a workspace reach a fake cloud by the names of the real servers.
fn in_cloud(
    w: Workspace,
    names: &[&str],
    answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
) -> (Workspace, Server) {
    let server = Server::https_as(names, answer);
    let port = server.host().rsplit(':').next().and_then(|port| port.parse().ok());
    let proxy = proxy(port.expect("a port"));
    w.write("cloud.pem", &server.certificate);
    let certificate = w.dir().join("cloud.pem").display().to_string();
    let w = w.env("HTTPS_PROXY", format!("http://127.0.0.1:{proxy}"));
    (w.env("SSL_CERT_FILE", certificate), server)
}

/// Cloud KMS, and the token service of an account that signs with [`key`].
fn google(encrypted: &Encrypted, request: &Request) -> Reply {
    let refused = |status: u16, text: &str| Reply::new(status, json!({"error": {"message": text}}).to_string());
    if request.path() == "/token" {
        let assertion = form(&request.body).into_iter().find(|(name, _)| name == "assertion");
        let Some((_, claims)) = assertion.and_then(|(_, text)| statement(&text)) else {
            return refused(400, "a wrong signature");
        };
        let text = |name: &str| claims[name].as_str().unwrap_or_default().to_owned();
        let token = format!("{} for {}", text("iss"), text("scope"));
        return Reply::json(&json!({"access_token": token, "expires_in": 3600, "token_type": "Bearer"}).to_string());
    }
    let expected = "Bearer robot@p for https://www.googleapis.com/auth/cloudkms";
    if request.header("authorization") != expected {
        return refused(401, "a wrong token");
    }
    let body: Json = serde_json::from_slice(&request.body).unwrap_or_default();
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let path = decoded(request.path());
    let (name, operation) = path.trim_start_matches("/v1/").rsplit_once(':').unwrap_or_default();
    let mut encrypted = encrypted.lock().expect("no panic");
    let data = field("additionalAuthenticatedData");
    match operation {
        "encrypt" => {
            encrypted.push((name.to_owned(), data, field("plaintext")));
            let ciphertext = BASE64.encode(format!("number {}", encrypted.len() - 1));
            Reply::json(&json!({"name": format!("{name}/cryptoKeyVersions/1"), "ciphertext": ciphertext}).to_string())
        }
        "decrypt" => {
            let text = BASE64.decode(field("ciphertext")).unwrap_or_default();
            let number = String::from_utf8_lossy(&text)
                .trim_start_matches("number ")
                .parse::<usize>();
            let found = number.ok().and_then(|number| encrypted.get(number));
            match found.filter(|(of, with, _)| of == name && *with == data) {
                Some((_, _, text)) => Reply::json(&json!({"plaintext": text}).to_string()),
                None => refused(400, "Decryption failed: the ciphertext is invalid."),
            }
        }
        _ => refused(404, "no such operation"),
    }
}

fn gcp() {
    let name = "projects/p/locations/global/keyRings/r/cryptoKeys/k";
    let account = json!({
        "type": "service_account",
        "client_email": "robot@p",
        "private_key": key().0,
        "private_key_id": "1",
        "token_uri": "https://oauth2.googleapis.com/token",
    });
    let arguments = |more: &str| {
        format!("  kms_encryption_key = \"{name}\"\n  key_length = 32\n  credentials = \"account.json\"\n{more}")
    };
    let data = "  additional_authenticated_data = \"cHJvamVjdA==\"";
    let w = encrypted("gcp_kms", &arguments(data));
    w.write("account.json", &account.to_string());
    let kept = Encrypted::default();
    let seen = kept.clone();
    let names = ["oauth2.googleapis.com", "cloudkms.googleapis.com"];
    let (w, _server) = in_cloud(w, &names, move |request| google(&kept, request));
    is_encrypted(&w);
    let stored = metadata(&w, "gcp_kms");
    assert_eq!(stored.as_object().map(|members| members.len()), Some(1), "{stored}");
    assert!(BASE64.decode(stored["ciphertext"].as_str().expect("a key")).is_ok());
    for (key, data, text) in seen.lock().expect("no panic").iter() {
        assert_eq!((key.as_str(), data.as_str()), (name, "cHJvamVjdA=="));
        assert_eq!(BASE64.decode(text).expect("base64").len(), 32);
    }
    let w = w.env("TF_ENCRYPTION", settings("gcp_kms", &arguments("")));
    w.run(&["output"])
        .fails_with(&["Unable to fetch encryption key data", "the ciphertext is invalid"]);
    let w = w.env(
        "TF_ENCRYPTION",
        settings("gcp_kms", &arguments("  access_token = \"stolen\"")),
    );
    w.run(&["output"])
        .fails_with(&["a wrong token", "The credentials are not accepted"]);
}

/// Entra ID, and a vault whose key has two versions: the newest encrypts.
fn azure_cloud(encrypted: &Encrypted, request: &Request) -> Reply {
    let host = request.header("host").to_owned();
    let refused = |status: u16, text: &str| {
        Reply::new(
            status,
            json!({"error": {"code": "Refused", "message": text}}).to_string(),
        )
    };
    if host.starts_with("login.") {
        // OpenTofu first requests the address of the token endpoint.
        let base = "https://login.microsoftonline.com/tenant";
        if request.path().ends_with("/openid-configuration") {
            let about = json!({
                "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"),
                "token_endpoint": format!("{base}/oauth2/v2.0/token"),
                "issuer": format!("{base}/v2.0"),
            });
            return Reply::json(&about.to_string());
        }
        if request.path().ends_with("/discovery/instance") {
            let hosts = json!(["login.microsoftonline.com"]);
            let metadata = json!([{"preferred_network": hosts[0], "preferred_cache": hosts[0], "aliases": hosts}]);
            let endpoint = format!("{base}/v2.0/.well-known/openid-configuration");
            return Reply::json(&json!({"tenant_discovery_endpoint": endpoint, "metadata": metadata}).to_string());
        }
        let fields = form(&request.body);
        let field = |name: &str| {
            let found = fields.iter().find(|(n, _)| n == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        if field("client_id") != "robot" || field("client_secret") != "sesame" {
            return Reply::new(
                401,
                json!({"error": "invalid_client", "error_description": "no"}).to_string(),
            );
        }
        let token = format!("for {}", field("scope").split(' ').next().unwrap_or_default());
        return Reply::json(&json!({"access_token": token, "expires_in": 3600, "token_type": "Bearer"}).to_string());
    }
    if request.header("authorization") != "Bearer for https://vault.azure.net/.default" {
        assert!(request.body.is_empty(), "a request without a token has a key in it");
        let challenge =
            "Bearer authorization=\"https://login.microsoftonline.com/tenant\", resource=\"https://vault.azure.net\"";
        return refused(401, "no token").with("www-authenticate", challenge);
    }
    let body: Json = serde_json::from_slice(&request.body).unwrap_or_default();
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let version = "00112233445566778899aabbccddeeff";
    let id = format!("https://{host}/keys/a-key/{version}");
    let answer = |value: String| Reply::json(&json!({"kid": id, "value": value}).to_string());
    let mut encrypted = encrypted.lock().expect("no panic");
    match request.path() {
        "/keys/a-key/encrypt" if field("alg") == "RSA-OAEP-256" => {
            encrypted.push((version.to_owned(), String::new(), field("value")));
            answer(URL_SAFE_NO_PAD.encode(format!("number {}", encrypted.len() - 1)))
        }
        path if path == format!("/keys/a-key/{version}/decrypt") && field("alg") == "RSA-OAEP-256" => {
            let text = URL_SAFE_NO_PAD.decode(field("value")).unwrap_or_default();
            let number = String::from_utf8_lossy(&text)
                .trim_start_matches("number ")
                .parse::<usize>();
            match number.ok().and_then(|number| encrypted.get(number)) {
                Some((_, _, text)) => answer(text.clone()),
                None => refused(400, "The parameter is incorrect."),
            }
        }
        _ => refused(404, "A key with this name was not found in this key vault."),
    }
}

fn of_azure(more: &str) -> (Workspace, Server) {
    let arguments = format!("  vault_uri = \"https://test-vault.vault.azure.net\"\n  key_length = 32\n{more}");
    let mut w = encrypted("azure_vault", &arguments);
    for (name, value) in [
        ("ARM_TENANT_ID", "tenant"),
        ("ARM_CLIENT_ID", "robot"),
        ("ARM_CLIENT_SECRET", "sesame"),
    ] {
        w = w.env(name, value);
    }
    let kept = Encrypted::default();
    let names = ["login.microsoftonline.com", "test-vault.vault.azure.net"];
    in_cloud(w, &names, move |request| azure_cloud(&kept, request))
}

fn azure() {
    let (w, _server) = of_azure("  vault_key_name = \"a-key\"");
    is_encrypted(&w);
    let stored = metadata(&w, "azure_vault");
    assert_eq!(stored["key_version"], "00112233445566778899aabbccddeeff");
    assert_eq!((&stored["algo"], &stored["iv"]), (&json!("RSA-OAEP-256"), &Json::Null));
    let w = w.env("ARM_CLIENT_SECRET", "wrong");
    w.run(&["output"])
        .fails_with(&["Unable to fetch encryption key data", "invalid_client"]);
    let (w, _server) = of_azure("  vault_key_name = \"other\"");
    apply(&w, "x").fails_with(&["was not found in this key vault", "Correct vault_key_name or vault_uri"]);
    assert!(!w.exists("terraform.tfstate"));
}

fn azure_both_ways() {
    let (w, _server) = of_azure("  vault_key_name = \"a-key\"");
    both_ways(&w);
}
