//! Modules from web servers: archives, and pages that refer to archives.

use crate::{call, says, tgz, zip};
use support::Workspace;
use support::server::{Reply, Server};

#[test]
fn archives_of_every_kind() {
    let server = Server::http(|request| match request.path() {
        "/m.zip" => Reply::ok(zip(&[("main.tf", &says("zip")), ("sub/main.tf", &says("sub"))])),
        "/m.tar.gz" | "/plain" => Reply::ok(tgz(&[("main.tf", &says("tgz"))])),
        "/sums" => Reply::ok(format!("{}  other\n{}  m.zip\n", "0".repeat(64), "1".repeat(64))),
        // `/page` names the address of the archive, and `/header` that of `/page`. `/circle` names itself.
        "/page" if request.line.ends_with("?terraform-get=1") => {
            Reply::ok("<html><head><meta name=\"terraform-get\" content=\"./m.zip//sub\"></head></html>")
        }
        "/header" => Reply::status(200).with("X-Terraform-Get", "/page"),
        "/circle" => Reply::status(200).with("X-Terraform-Get", "/circle"),
        "/empty" => Reply::ok("<html></html>"),
        _ => Reply::status(404),
    });
    let w = Workspace::new();
    let get = |path: &str| {
        w.write("main.tf", &call(&server.url(path), ""));
        w.run(&["get", "-no-color"])
    };
    let said = |path: &str| {
        get(path).ok();
        let plan = w.run(&["plan", "-no-color"]).ok().stdout;
        plan.lines()
            .find_map(|l| l.split("+ said = ").nth(1).map(str::to_owned))
            .unwrap_or(plan)
    };
    assert_eq!(said("/m.zip"), "\"zip\"");
    assert_eq!(said("/m.zip//sub"), "\"sub\"");
    assert_eq!(said("/m.zip//s*"), "\"sub\"");
    assert_eq!(said("/m.tar.gz"), "\"tgz\"");
    assert_eq!(said("/plain?archive=tgz"), "\"tgz\"");
    assert_eq!(said("/page"), "\"sub\"");
    assert_eq!(said("/header"), "\"sub\"");

    let kept = w.read(".terraform/modules/modules.json");
    get("/circle").fails_with(&["Failed to download module", "more than 10 times", "main.tf line 2"]);
    get("/empty").fails_with(&["terraform-get", "?archive=zip"]);
    get("/none.zip").fails_with(&["404", "/none.zip"]);
    get("/m.zip//none").fails_with(&[
        "Unreadable module subdirectory",
        "no directory \"none\"",
        "there are sub",
    ]);
    get("/m.rar?archive=rar").fails_with(&["\"rar\" is not a supported archive format"]);
    get(&format!("/m.tar.gz?checksum=sha256:{}", "0".repeat(64))).fails_with(&[
        "the checksum of",
        "does not match",
        &"0".repeat(64),
        "main.tf line 2",
    ]);
    let list = format!("/m.zip?checksum=file:{}", server.url("/sums"));
    get(&list).fails_with(&["does not match", &"1".repeat(64)]);
    get("/plain?archive=zip").fails_with(&["cannot be unpacked"]);
    assert!(kept.contains("\"m\""));
    let left: Vec<_> = std::fs::read_dir(w.dir().join(".terraform/modules"))
        .unwrap()
        .flatten()
        .collect();
    assert!(
        left.iter().all(|e| !e.file_name().to_string_lossy().starts_with('.')),
        "{left:?}"
    );
}

#[test]
fn an_archive_stays_inside() {
    let server = Server::http(|request| match request.path() {
        "/parent.zip" => Reply::ok(zip(&[("main.tf", ""), ("../../../escaped.txt", "x")])),
        "/absolute.zip" => Reply::ok(zip(&[("main.tf", ""), ("/escaped.txt", "x")])),
        _ => Reply::status(404),
    });
    let w = Workspace::new();
    for name in ["parent", "absolute"] {
        w.write("main.tf", &call(&server.url(&format!("/{name}.zip")), ""));
        w.run(&["get"])
            .fails_with(&["Failed to download module", "would be written outside of its directory"]);
        assert!(!w.exists("escaped.txt") && !w.exists("../escaped.txt"));
        assert!(!w.exists(".terraform/modules/m"));
    }
}

#[test]
fn names_and_passwords_from_netrc() {
    let server = Server::http(|request| match request.header("authorization") {
        "Basic dTpw" => Reply::ok(zip(&[("main.tf", &says("secret"))])),
        _ => Reply::status(401),
    });
    let w = Workspace::with(&[("main.tf", &call(&server.url("/m.zip"), ""))]);
    w.run(&["get"]).fails_with(&["401", ".netrc"]);
    w.write("../home/.netrc", "machine 127.0.0.1 login u password p\n");
    w.run(&["get"]).ok();
    let with_password = server.url("/m.zip").replace("http://", "http://u:wrong-secret@");
    w.write("main.tf", &call(&with_password, ""));
    let ran = w.run(&["get"]).fails_with(&["401"]);
    assert!(
        !ran.all()
            .replace(&call(&with_password, ""), "")
            .contains("Downloading http://u:wrong"),
        "{}",
        ran.all()
    );
}
