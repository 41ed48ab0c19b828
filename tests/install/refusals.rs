//! Packages that are refused, and the errors.

use crate::{requiring, workspace};
use support::Workspace;
use support::registry::{Key, Registry, platform, sha256, zip};
use support::server::{Reply, Request, Server};

/// Returns the error of an `init` without its frame. The placeholders HOST, PLATFORM and KEY replace the registry, the
/// platform and the ID of the key.
#[track_caller]
fn error_of(w: &Workspace, server: &Server, key: &str) -> String {
    let ran = w.run(&["init", "-no-color"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert!(!w.exists(".terraform.lock.hcl"), "nothing is locked");
    let text: String = ran.stderr.chars().filter(|c| !"╷│╵".contains(*c)).collect();
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(&server.host(), "HOST")
        .replace(&platform(), "PLATFORM")
        .replace(key, "KEY")
}

/// Returns the error of `init` for a registry in which `change` replaces some answers.
#[track_caller]
fn refusal(
    registry: Registry,
    change: impl Fn(&Registry, &Request) -> Option<Reply> + Send + Sync + 'static,
) -> String {
    let key = registry.key.id();
    let server = Server::https(move |request| change(&registry, request).unwrap_or_else(|| registry.answer(request)));
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    let error = error_of(&w, &server, &key);
    let dir = w.dir().join(".terraform/providers");
    let left = std::fs::read_dir(dir).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left: {error}");
    error
}

fn one() -> Registry {
    Registry::new().with("acme/anvil", "1.0.0", "x")
}

const START: &str = "Error: Failed to install provider HOST/acme/anvil v1.0.0 cannot be installed: ";

#[test]
fn a_package_that_is_not_the_one_that_was_signed() {
    let other = zip(&[("terraform-provider-anvil", b"evil")]);
    let sum = sha256(&other);
    let registry = one();
    let good = sha256(&registry.releases["acme/anvil"]["1.0.0"].archives[&platform()]);
    let error = refusal(registry, move |_, request| {
        request.path().ends_with(".zip").then(|| Reply::ok(other.clone()))
    });
    assert_eq!(
        error,
        format!(
            "{START}the package from https://HOST/files/acme/anvil/1.0.0/terraform-provider-anvil_1.0.0_PLATFORM.zip has the \
             checksum zh:{sum}, and zh:{good} was expected: it was damaged on its way, or is not what its authors have published."
        )
    );
}

#[test]
fn signatures() {
    let untrusted = format!("{START}the list of checksums of the package is not to be relied on: ");
    let forger = Key::new();
    let forged = forger.id();
    let error = refusal(one(), move |registry, request| {
        let sums = registry.sums("acme/anvil", "1.0.0");
        request
            .path()
            .ends_with(".sig")
            .then(|| Reply::ok(forger.sign(sums.as_bytes())))
    });
    assert_eq!(
        error,
        format!("{untrusted}it is signed by the key {forged}, which is not among those that the registry names (KEY).")
    );
    let error = refusal(one(), |registry, request| {
        request
            .path()
            .ends_with(".sig")
            .then(|| Reply::ok(registry.key.sign(b"another list")))
    });
    assert_eq!(
        error,
        format!("{untrusted}its signature by the key KEY is wrong: it was changed after it was signed.")
    );
    let error = refusal(one(), |_, request| {
        request.path().ends_with(".sig").then(|| Reply::ok("no signature"))
    });
    assert!(
        error.starts_with(&format!("{untrusted}its signature cannot be read")),
        "{error}"
    );
    let error = refusal(one(), |_, request| {
        request.path().ends_with(".sig").then(|| Reply::status(404))
    });
    assert_eq!(
        error,
        format!(
            "{START}the signature of the package cannot be read: https://HOST/files/acme/anvil/1.0.0/SHA256SUMS.sig answered with \
             status 404 Not Found."
        )
    );
}

#[test]
fn lists_that_contradict() {
    let error = refusal(one(), |registry, request| {
        let sums = registry.sums("acme/anvil", "1.0.0");
        request.path().ends_with("SHA256SUMS").then(|| {
            let hashes = sums.lines().filter_map(|line| line.split_once(' '));
            Reply::ok(
                hashes
                    .map(|(_, file)| format!("{} {file}\n", "0".repeat(64)))
                    .collect::<String>(),
            )
        })
    });
    assert!(error.contains("contradicts itself"), "{error}");
    let error = refusal(one(), |_, request| {
        request.path().ends_with("SHA256SUMS").then(|| Reply::ok(""))
    });
    assert_eq!(
        error,
        format!(
            "{START}the list of checksums of the registry HOST has no line for terraform-provider-anvil_1.0.0_PLATFORM.zip."
        )
    );
}

#[test]
fn packages_that_are_none() {
    let with = |archive: Vec<u8>| {
        let mut registry = one();
        let release = registry.releases.get_mut("acme/anvil").and_then(|r| r.get_mut("1.0.0"));
        release.expect("a release").archives.insert(platform(), archive);
        registry
    };
    let error = refusal(
        with(zip(&[("../evil", b"x"), ("terraform-provider-anvil", b"x")])),
        |_, _| None,
    );
    assert_eq!(
        error,
        format!(
            "{START}the package cannot be unpacked: its entry \"../evil\" would be written outside of its directory."
        )
    );
    let error = refusal(with(zip(&[("README", b"x")])), |_, _| None);
    assert_eq!(
        error,
        format!("{START}the package has no file terraform-provider-anvil at its top.")
    );
    let error = refusal(with(b"text".to_vec()), |_, _| None);
    assert!(
        error.starts_with(&format!(
            "{START}the package cannot be unpacked: it is not a zip archive"
        )),
        "{error}"
    );
    let mut other = one();
    other
        .releases
        .get_mut("acme/anvil")
        .and_then(|r| r.get_mut("1.0.0"))
        .expect("a release")
        .archives
        .remove(&platform());
    let error = refusal(other, |_, _| None);
    assert_eq!(
        error,
        "Error: Incompatible provider version Provider HOST/acme/anvil v1.0.0 does not have a package available for your current \
         platform, PLATFORM. - required_providers of the root module (main.tf line 3) These were asked: - the registry HOST has no \
         package of it for PLATFORM Other versions of this provider may have packages for other platforms."
    );
    let mut future = one();
    future
        .releases
        .get_mut("acme/anvil")
        .and_then(|r| r.get_mut("1.0.0"))
        .expect("a release")
        .protocols = vec!["7.0"];
    let error = refusal(future, |_, _| None);
    assert!(
        error.starts_with(&format!("{START}it speaks the plugin protocol 7.0")),
        "{error}"
    );
}

#[test]
fn versions_and_providers_that_are_not_there() {
    let registry = Registry::new()
        .with("acme/anvil", "1.0.0", "x")
        .with("acme/anvil", "1.1.0", "x");
    let server = crate::serve(registry);
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "~> 2.0")]));
    w.write("child/main.tf", &requiring(&server, &[("acme/anvil", ">= 0.5")]));
    w.write("more.tf", "module \"child\" {\n  source = \"./child\"\n}\n");
    let query = "Error: Failed to query available provider packages ";
    assert_eq!(
        error_of(&w, &server, "none"),
        format!(
            "{query}There is no version of the provider HOST/acme/anvil that meets \">= 0.5.0, ~> 2.0\". - required_providers \
             of the root module: \"~> 2.0\" (main.tf line 3) - required_providers of module.child: \">= 0.5\" (child/main.tf line 3) \
             These versions are \
             offered by its registry: 1.1.0, 1.0.0."
        )
    );
    let w = workspace(&server, &requiring(&server, &[("acme/nothing", "")]));
    let error = error_of(&w, &server, "none");
    assert!(
        error.starts_with(query) && error.contains("HOST has no provider HOST/acme/nothing"),
        "{error}"
    );
    // The server's certificate is not trusted.
    let w = Workspace::with(&[("main.tf", &requiring(&server, &[("acme/anvil", "")]))]);
    w.run(&["init"]).fails_with(&["cannot be listed", "SSL_CERT_FILE"]);
    // The server requires authentication.
    let server = Server::https(|request| match request.path() {
        "/.well-known/terraform.json" => Reply::json(r#"{"providers.v1":"/v1/"}"#),
        _ => Reply::status(401),
    });
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    w.run(&["init"]).fails_with(&["401", "TF_TOKEN_127_0_0_1"]);
}
