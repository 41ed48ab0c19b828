//! Modules in buckets of S3 and of Google Cloud Storage, on fake servers.

use crate::{call, says, zip};
use support::Workspace;
use support::server::{Reply, Server};

#[test]
fn a_directory_of_a_bucket_is_bounded_like_an_archive() {
    let server = Server::http(|request| match request.path() {
        "/bucket/" | "/bucket" => Reply::ok(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>m/a.tf</Key><Size>1</Size></Contents><Contents><Key>m/b.tf</Key><Size>1</Size></Contents></ListBucketResult>",
        ),
        _ => Reply::ok(says("x")),
    });
    let source = format!(
        "s3::{}",
        server.url("/bucket/m?aws_access_key_id=key&aws_access_key_secret=hidden")
    );
    for (variable, value) in [
        ("MONOFORM_MAX_UNPACKED_FILES", "1"),
        ("MONOFORM_MAX_UNPACKED_SIZE", "30"),
    ] {
        let w = Workspace::with(&[("main.tf", &call(&source, ""))]).env(variable, value);
        w.run(&["get", "-no-color"])
            .fails_with(&["Failed to download module", variable]);
    }
}

#[test]
fn objects_and_directories_of_s3() {
    let server = Server::http(|request| {
        let signed = request.line.contains("X-Amz-Signature=") && request.line.contains("X-Amz-Credential=key%2F");
        let list = |keys: &[&str]| {
            let items: String = keys
                .iter()
                .map(|k| format!("<Contents><Key>{k}</Key><Size>1</Size></Contents>"))
                .collect();
            Reply::ok(format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult \
                 xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>bucket</Name><KeyCount>1</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{items}</ListBucketResult>"
            ))
        };
        match request.path() {
            _ if !signed => Reply::status(403),
            "/bucket/mods/m.zip" if request.line.contains("versionId=7") => {
                Reply::ok(zip(&[("main.tf", &says("seventh"))]))
            }
            "/bucket/mods/m.zip" => Reply::ok(zip(&[("main.tf", &says("zipped"))])),
            "/bucket/" | "/bucket" if request.line.contains("prefix=mods%2Fdir") => list(&[
                "mods/dir/main.tf",
                "mods/dir/",
                "mods/dir/sub/x.txt",
                "mods/directory/no.tf",
            ]),
            "/bucket/" | "/bucket" => list(&[]),
            "/bucket/mods/dir/main.tf" => Reply::ok(says("listed")),
            "/bucket/mods/dir/sub/x.txt" => Reply::ok("x"),
            _ => Reply::status(404),
        }
    });
    let w = Workspace::new().env("AWS_EC2_METADATA_DISABLED", "true");
    let get = |path: &str| {
        w.write("main.tf", &call(&format!("s3::{}", server.url(path)), ""));
        w.run(&["get", "-no-color"])
    };
    let said = |expected: &str| {
        let plan = w.run(&["plan", "-no-color"]).ok();
        assert!(
            plan.stdout.contains(&format!("+ said = \"{expected}\"")),
            "{}",
            plan.all()
        );
    };
    get("/bucket/mods/m.zip").fails_with(&["403", "AWS_ACCESS_KEY_ID", "main.tf line 2"]);
    let ran = get("/bucket/mods/m.zip?aws_access_key_id=key&aws_access_key_secret=hidden-one").ok();
    assert!(!ran.all().contains("hidden-one"), "{}", ran.all());
    said("zipped");
    w.write(
        "../home/.aws/credentials",
        "[default]\naws_access_key_id = key\naws_secret_access_key = s\n",
    );
    get("/bucket/mods/m.zip?version=7").ok();
    said("seventh");
    get("/bucket/mods/dir").ok();
    said("listed");
    assert!(w.exists(".terraform/modules/m/sub/x.txt") && !w.exists(".terraform/modules/m/no.tf"));
    get("/bucket/none").fails_with(&["neither an object nor a directory \"none\""]);
    get("/bucket/mods/m.zip?aws_profile=other").fails_with(&["the AWS profile \"other\" has no access key"]);
}

#[test]
fn objects_and_directories_of_google() {
    let server = Server::http(|request| match request.path() {
        "/storage/v1/b/bucket/o/m.zip" if request.line.contains("alt=media") => {
            Reply::ok(zip(&[("main.tf", &says("zipped"))]))
        }
        "/storage/v1/b/bucket/o" if request.line.contains("prefix=dir%2F") => {
            Reply::json(r#"{"items":[{"name":"dir/main.tf"},{"name":"dir/"}]}"#)
        }
        "/storage/v1/b/bucket/o" => Reply::json("{}"),
        "/storage/v1/b/bucket/o/dir%2Fmain.tf" => Reply::ok(says("listed")),
        _ => Reply::status(404),
    });
    let w = Workspace::new().env("STORAGE_EMULATOR_HOST", server.host());
    let get = |object: &str| {
        w.write(
            "main.tf",
            &call(&format!("www.googleapis.com/storage/v1/bucket/{object}"), ""),
        );
        w.run(&["get", "-no-color"])
    };
    for (object, expected) in [("m.zip", "zipped"), ("dir", "listed")] {
        let got = get(object).ok();
        let line = format!("Downloading gcs::https://www.googleapis.com/storage/v1/bucket/{object} for m...");
        assert!(got.stdout.starts_with(&line), "{}", got.all());
        let plan = w.run(&["plan", "-no-color"]).ok();
        assert!(plan.stdout.contains(expected), "{}", plan.all());
    }
    get("none").fails_with(&["neither an object nor a directory \"none\""]);
}
