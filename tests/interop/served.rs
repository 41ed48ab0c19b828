//! A Go provider from `providers serve`, installed and run by Terraform and by Monoform.

use support::Workspace;
use support::serving::{Serving, certificate};

use crate::{framework, install_in_mirror, shelf};

pub fn terraform_and_monoform_run_a_served_provider() {
    let (cert, key) = certificate();
    let server = Workspace::with(&[("cert.pem", &cert), ("key.pem", &key)]);
    install_in_mirror(&server, shelf(), "example.com/test/shelf");
    let mirror = server.home().join(".terraform.d/plugins").display().to_string();
    let serving = Serving::start(&server, &["-tls-cert=cert.pem", "-tls-key=key.pem", &mirror]);
    let client = || {
        let w = Workspace::with(&[
            ("main.tf", &framework::configuration()),
            ("../home/.terraformrc", &serving.network_mirror()),
            ("books/.keep", ""),
        ]);
        let roots = server.dir().join("cert.pem");
        w.env("SSL_CERT_FILE", roots.to_string_lossy())
    };
    let (init, apply) = (["init", "-no-color"], ["apply", "-no-color", "-auto-approve"]);
    let ours = client();
    ours.run(&init)
        .ok()
        .shows(&["Installed example.com/test/shelf v1.0.0 (verified checksum)"]);
    ours.run(&apply).ok().shows(&["1 added"]);
    let theirs = client();
    theirs
        .terraform(&init)
        .ok()
        .shows(&["Installed example.com/test/shelf v1.0.0 (verified checksum)"]);
    theirs.terraform(&apply).ok().shows(&["1 added"]);
    // Both programs lock the same package.
    let hashes = |w: &Workspace| -> Vec<String> {
        let text = w.read(".terraform.lock.hcl");
        text.lines()
            .filter(|line| line.contains("h1:"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(hashes(&ours), hashes(&theirs));
    let log = serving.end();
    let downloads = log
        .lines()
        .filter(|line| line.contains(" GET ") && line.contains(".zip 200 "));
    assert_eq!(downloads.count(), 2, "{log}");
}
