//! Tests of the store with a fake API server.

use std::sync::Arc;

use monoform_sdk::StateClient;
use monoform_sdk::cty::Value;
use monoform_sdk::state_store::LockInfo;
use monoform_sdk_testing::state_store::{Abilities, client, conformance};
use support::kubernetes::{Cluster, NAMESPACE, TOKEN};

async fn connect(cluster: &Cluster, more: &[(&str, Value)]) -> monoform_sdk::Result<Arc<dyn StateClient>> {
    let mut config = vec![
        ("secret_suffix", "a.b".into()),
        ("namespace", NAMESPACE.into()),
        ("host", cluster.server.url("").as_str().into()),
        ("token", TOKEN.into()),
        ("cluster_ca_certificate", cluster.server.certificate.as_str().into()),
    ];
    config.extend(more.iter().cloned());
    client(crate::store(), &config).await
}

#[tokio::test]
async fn it_is_a_state_store() {
    let cluster = Cluster::start();
    let (one, other) = (
        connect(&cluster, &[]).await.unwrap(),
        connect(&cluster, &[]).await.unwrap(),
    );
    conformance(&*one, &*other, Abilities::default()).await;
    assert_eq!(
        cluster.names("secrets"),
        ["tfstate-default-a.b"],
        "parts that are not needed any more are gone"
    );
    assert_eq!(
        cluster.names("leases"),
        ["lock-tfstate-default-a.b"],
        "the lease stays, without a holder"
    );
    let lease = cluster.object("leases", "lock-tfstate-default-a.b");
    assert!(lease["spec"].get("holderIdentity").is_none(), "{lease}");
    assert!(
        lease["metadata"]["annotations"]
            .get("app.terraform.io/lock-info")
            .is_none(),
        "{lease}"
    );
}

#[tokio::test]
async fn objects_are_those_of_terraform() {
    let cluster = Cluster::start();
    let labels = Value::object([("team", Value::from("x"))]);
    let store = connect(&cluster, &[("labels", labels)]).await.unwrap();
    let info = LockInfo::of_this_process("OperationTypeApply");
    let id = store.lock("dev", info).await.unwrap();
    store.write("dev", b"{}".to_vec()).await.unwrap();
    let secret = cluster.object("secrets", "tfstate-dev-a.b");
    let expected = serde_json::json!({
        "tfstate": "true", "tfstateSecretSuffix": "a.b", "tfstateWorkspace": "dev",
        "app.kubernetes.io/managed-by": "terraform", "team": "x",
    });
    assert_eq!(secret["metadata"]["labels"], expected);
    assert_eq!(
        secret["metadata"]["annotations"],
        serde_json::json!({"encoding": "gzip"})
    );
    assert!(
        secret["data"]["tfstate"].as_str().unwrap().starts_with("H4sI"),
        "{secret}"
    );
    let lease = cluster.object("leases", "lock-tfstate-dev-a.b");
    assert_eq!(lease["spec"], serde_json::json!({"holderIdentity": id}));
    assert_eq!(lease["metadata"]["labels"], expected);
    let held = lease["metadata"]["annotations"]["app.terraform.io/lock-info"]
        .as_str()
        .unwrap();
    assert_eq!(LockInfo::from_json(held.as_bytes()).unwrap().id, id);
    // Another suffix means other workspaces.
    let other = connect(&cluster, &[("secret_suffix", "c".into())]).await.unwrap();
    assert_eq!(other.workspaces().await.unwrap(), ["default"]);
    assert_eq!(store.workspaces().await.unwrap(), ["default", "dev"]);
    store.unlock("dev", &id).await.unwrap();
    store.delete("dev").await.unwrap();
    assert_eq!((cluster.names("secrets").len(), cluster.names("leases").len()), (0, 0));
}

#[tokio::test]
async fn errors_are_reported_with_a_remedy() {
    let cluster = Cluster::start();
    for (more, text) in [
        (("token", Value::from("bad")), "have expired"),
        (("namespace", "none".into()), "kubectl create namespace none"),
        (
            ("secret_suffix", "A".into()),
            "the secret name tfstate-default-A is invalid",
        ),
        (("cluster_ca_certificate", "x".into()), "BEGIN CERTIFICATE"),
        (("client_certificate", "x".into()), "client_key"),
    ] {
        let store = connect(&cluster, &[more]).await.unwrap();
        let problems = store.write("default", b"{}".to_vec()).await.unwrap_err();
        assert!(problems.0[0].detail.contains(text), "{problems:?}");
    }
    for (more, text) in [
        (("secret_suffix", Value::from("a-1")), "must not end with '-<number>'"),
        (("host", "".into()), "KUBE_CONFIG_PATH"),
    ] {
        let problems = connect(&cluster, &[more]).await.err().unwrap();
        assert!(problems.0[0].detail.contains(text), "{problems:?}");
    }
}

#[tokio::test]
async fn a_program_says_who_we_are_and_is_asked_again() {
    let cluster = Cluster::start();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = format!(
        "echo x >> {}; echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{{\"token\":\"{TOKEN}\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}}}}'",
        log.display()
    );
    let text = |text: &str| Value::from(text);
    let exec = Value::object([
        ("api_version", text("client.authentication.k8s.io/v1")),
        ("command", text("sh")),
        ("args", Value::tuple(vec![text("-c"), text(&script)])),
        (
            "env",
            Value::null(monoform_sdk::cty::Type::map(monoform_sdk::cty::Type::String)),
        ),
    ]);
    let more = [("token", Value::null(monoform_sdk::cty::Type::String)), ("exec", exec)];
    let store = connect(&cluster, &more).await.unwrap();
    store.write("default", b"{}".to_vec()).await.unwrap();
    store.read("default").await.unwrap();
    let runs = std::fs::read_to_string(&log).unwrap().lines().count();
    assert!(runs > 1, "what has expired is asked for again: {runs}");
}

#[tokio::test]
async fn a_file_of_kubectl_is_enough() {
    let cluster = Cluster::start();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config");
    std::fs::write(&path, cluster.kubeconfig()).unwrap();
    let config = |more: &[(&'static str, Value)]| {
        let mut all = vec![
            ("secret_suffix", Value::from("s")),
            ("namespace", NAMESPACE.into()),
            ("config_path", path.to_str().unwrap().into()),
        ];
        all.extend(more.iter().cloned());
        all
    };
    let store = client(crate::store(), &config(&[])).await.unwrap();
    assert_eq!(store.read("default").await.unwrap(), None);
    let problems = client(crate::store(), &config(&[("config_context", "x".into())]))
        .await
        .err()
        .unwrap();
    assert!(
        problems.0[0].detail.contains("context \"x\" does not exist"),
        "{problems:?}"
    );
}
