//! The README's quickstart: planned, applied, changed, planned again, destroyed, without `init`.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use support::Workspace;

#[test]
fn the_whole_story() {
    let w = Workspace::copy_of("tests/quickstart/config");

    // Nothing has to be installed, so `init` is not needed.
    let plan = w.run(&["plan", "-no-color", "-out=first.plan"]).ok();
    assert!(
        plan.stdout.contains("Plan: 11 to add, 0 to change, 0 to destroy."),
        "{}",
        plan.all()
    );
    assert!(
        plan.stdout
            .contains("# module.service[\"api\"].terraform_data.replica[2] will be created"),
        "{}",
        plan.all()
    );
    assert!(!w.exists("out"), "a plan changes nothing");

    let apply = w.run(&["apply", "-no-color", "first.plan"]).ok();
    assert!(
        apply
            .stdout
            .contains("Apply complete! Resources: 11 added, 0 changed, 0 destroyed."),
        "{}",
        apply.all()
    );
    assert!(
        apply.stdout.contains("the fleet demo-"),
        "the provisioner's output is shown: {}",
        apply.all()
    );
    let fleet = w.run(&["output", "-raw", "fleet"]).ok().stdout;
    assert!(fleet.starts_with("demo-"), "{fleet}");
    let settings = w.read("out/api.conf");
    assert_eq!(
        settings,
        format!(
            "# api of {fleet}\nlisten {fleet}-api-01 8080\nlisten {fleet}-api-02 8081\nlisten {fleet}-api-03 8082\ntags \
             http,public\n"
        )
    );
    let inventory: serde_json::Value = serde_json::from_str(&w.read("out/inventory.json")).expect("JSON");
    assert_eq!(inventory["services"]["worker"], format!("{fleet}-worker:9090"));

    // Secrets are hidden until a command requests them by name.
    let outputs = w.run(&["output", "-no-color"]).ok();
    assert!(outputs.stdout.contains("tokens = <sensitive>"), "{}", outputs.all());
    let tokens = w.run(&["output", "-json", "tokens"]).ok().json();
    assert_eq!(tokens["api"].as_str().map(str::len), Some(24));
    assert!(!plan.stdout.contains(tokens["api"].as_str().expect("a token")));

    // A second plan contains no changes.
    let again = w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    assert!(
        again
            .stdout
            .contains("No changes. Your infrastructure matches the configuration."),
        "{}",
        again.all()
    );

    // A change affects only the objects that depend on it.
    w.write(
        "terraform.tfvars",
        "services = {\n  api = { port = 8000, replicas = 2 }\n  worker = { port = 9090 }\n}\n",
    );
    let change = w.run(&["plan", "-no-color", "-detailed-exitcode"]);
    assert_eq!(change.status, 2, "{}", change.all());
    assert!(
        change
            .stdout
            .contains("# module.service[\"api\"].terraform_data.replica[2] will be destroyed")
    );
    assert!(
        change
            .stdout
            .contains("# module.service[\"api\"].local_file.settings must be replaced"),
        "{}",
        change.all()
    );
    assert!(
        !change.stdout.contains("# module.service[\"worker\"]"),
        "{}",
        change.all()
    );
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    assert_eq!(w.run(&["output", "-raw", "fleet"]).ok().stdout, fleet, "the name stays");
    assert!(w.read("out/api.conf").contains("-api-02 8001\n"));

    let destroy = w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    assert!(
        destroy.stdout.contains("Destroy complete! Resources: 10 destroyed."),
        "{}",
        destroy.all()
    );
    assert!(!w.exists("out/api.conf"));
    assert_eq!(w.state()["resources"], serde_json::json!([]));
}
