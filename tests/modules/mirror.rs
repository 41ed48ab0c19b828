//! Mirrors of modules, for machines without a network.

use crate::registry::{registry, workspace};
use crate::{call, says, tgz};
use support::Workspace;
use support::server::{Reply, Server};

#[test]
fn mirror_serves_all_remote_modules() {
    let server = registry();
    let archive = Server::https(|request| match request.path() {
        "/net.tgz" => Reply::ok(tgz(&[("deep/main.tf", &says("archived"))])),
        _ => Reply::status(404),
    });
    let source = format!("{}/team/net/any", server.host());
    let packed = archive.url("/net.tgz");
    let secret = packed.replace("https://", "https://user:pass@");
    let configuration = format!(
        "{}module \"inner\" {{\n  source  = \"{source}//modules/inner\"\n  version = \"1.0.0\"\n}}\nmodule \"a\" {{\n  source = \
         \"{secret}//deep\"\n}}\noutput \"inner\" {{\n  value = module.inner.said\n}}\noutput \"a\" {{\n  value = module.a.said\n}}\n",
        call(&source, "version = \"~> 1.0\""),
    );
    let w = workspace(&server, &configuration);
    w.write(
        "../roots.pem",
        &format!("{}{}", server.certificate, archive.certificate),
    );
    let filled = w.run(&["modules", "mirror", "-no-color", "../mirror"]).ok();
    for line in [
        format!("- Fetching {source} 1.2.0 for m..."),
        "\n3 packages are in ../mirror.\n".to_owned(),
    ] {
        assert!(filled.stdout.contains(&line), "{}", filled.all());
    }
    assert!(!w.exists(".terraform"), "the working directory is as it was");
    let index = w.read("../mirror/modules/index.json");
    assert!(!index.contains("pass"), "{index}");
    let again = w.run(&["modules", "mirror", "-no-color", "../mirror"]).ok();
    assert!(again.stdout.contains("3 packages"), "{}", again.all());
    assert_eq!(w.read("../mirror/modules/index.json"), index);
    let left = std::fs::read_dir(w.dir().join("../mirror")).unwrap().count();
    assert_eq!(left, 1, "nothing is left beside the modules");

    // The servers have ended.
    drop((server, archive));
    w.run(&["init"]).fails_with(&["registry"]);
    let init = w.run(&["init", "-mirror=../mirror", "-no-color"]).ok();
    assert!(
        init.stdout.contains("- m in .terraform/modules/m/net-x\n"),
        "{}",
        init.all()
    );
    let plan = w.run(&["plan", "-no-color"]).ok();
    for line in ["+ said  = \"1.2.0\"", "+ inner = \"inner\"", "+ a     = \"archived\""] {
        assert!(plan.stdout.contains(line), "{}", plan.all());
    }
    let shown = w.run(&["modules", "-no-color"]).ok();
    let line = format!("\"m\"[{source}] 1.2.0 (~> 1.0)\n");
    assert!(shown.stdout.contains(&line), "{}", shown.all());

    // The environment selects the mirror, and one module is not in it.
    let w = w.env("MONOFORM_MIRROR", "../mirror");
    std::fs::remove_dir_all(w.dir().join(".terraform")).unwrap();
    w.run(&["get"]).ok();
    w.write("main.tf", &call("https://example.com/other.zip", ""));
    w.run(&["get"])
        .fails_with(&["Failed to download module", "\"modules mirror\" adds it"]);
    w.write("main.tf", &call(&source, "version = \"2.0.0\""));
    w.run(&["get"])
        .fails_with(&["Unresolvable module version constraint", "1.2.0"]);
}

#[test]
fn what_is_no_mirror() {
    let w = Workspace::with(&[("main.tf", &call("https://example.com/a.zip", ""))]);
    w.run(&["modules", "mirror", "main.tf/m"])
        .fails_with(&["Cannot use the output directory", "not a directory"]);
    w.run(&["modules", "mirror"])
        .fails_with(&["No output directory specified"]);
    w.run(&["get", "-mirror=nowhere"])
        .fails_with(&["Cannot install from the mirror"]);
    w.write(
        "m/modules/index.json",
        r#"{"format_version":"1.0","modules":{"https://example.com/a.zip":{"dir":"../../main.tf"}}}"#,
    );
    w.run(&["get", "-mirror=m"]).fails_with(&["leads out of the mirror"]);
    w.write("m/modules/index.json", r#"{"format_version":"2.0","modules":{}}"#);
    w.run(&["get", "-mirror=m"]).fails_with(&["format 2.0 is not known"]);
    w.run(&["init", "-mirror=m", "-plugin-dir=m"])
        .fails_with(&["mutually-exclusive"]);
    let local = Workspace::with(&[("main.tf", &call("./a", "")), ("a/main.tf", &says("here"))]);
    std::fs::create_dir(local.dir().join("m")).unwrap();
    let nothing = local.run(&["modules", "mirror", "m"]).ok();
    assert!(nothing.stdout.contains("nothing to mirror"), "{}", nothing.all());
    local.run(&["init", "-mirror=m"]).ok();
}
