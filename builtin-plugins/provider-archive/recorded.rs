//! Tests that compare checksums with those that version 2.8.0 of the official provider computes for the same files and texts.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::{Cty, Set};
use monoform_sdk_testing::Harness;

use crate::archive_file::Source;

fn files(dir: &Path) {
    let lines: String = (0..5000).map(|i| format!("line {i}\n")).collect();
    fs::create_dir_all(dir.join("b")).unwrap();
    for (name, mode, content) in [
        ("a.txt", 0o644, "hello\n"),
        ("b/run.sh", 0o755, "#!/bin/sh\n"),
        ("é.txt", 0o644, "é"),
        ("big.txt", 0o400, &lines),
    ] {
        fs::write(dir.join(name), content).unwrap();
        fs::set_permissions(dir.join(name), Permissions::from_mode(mode)).unwrap();
    }
}

#[tokio::test]
async fn archives_have_the_official_checksums() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("dir");
    files(&dir);
    let text = |path: &Path| Value::from(path.to_str().unwrap());
    let source = |filename: &str, content: &str| Source {
        filename: filename.into(),
        content: content.into(),
    };
    // A case has the arguments of the archive, and the SHA-256 checksums of the archive as zip and as tar.gz.
    type Case<'a> = (Vec<(&'a str, Value)>, &'a str, &'a str);
    let cases: [Case<'_>; 5] = [
        (
            vec![("source_dir", text(&dir))],
            "26189061c1d7f28a573d3ba1d116fcc6157daf7e5c3b9e2069d980c3f542883a",
            "adf61fa91fddbedee31defa1ce9997a873a2e418fb0643718d3607a94762f61d",
        ),
        (
            vec![
                ("source_dir", text(&dir)),
                ("output_file_mode", "0644".into()),
                ("excludes", Value::set(Type::String, vec!["b/**".into()])),
            ],
            "5b2592e656a01de9901b1e21e7868e46f08f2e72e8219729b12f325b6feb3c29",
            "2f9fb3c12769b3bae918b63117bbd6c38cec6d9f243933b7a8714f76a2f1864e",
        ),
        (
            vec![("source_file", text(&dir.join("big.txt")))],
            "869f2a9b5e6812d48e36bad66311ac05120793579b124fe6f7627b9e2c705201",
            "4b33930688e7b0be832f05d4c4d564cda6df8f148281a8aca64d2e2e11911afc",
        ),
        (
            vec![
                ("source_content", "hello".into()),
                ("source_content_filename", "a/b.txt".into()),
            ],
            "26d8f98fa707a599c6e9311566a43b49d8ae7326d49df890f8eaa8d7b300fe05",
            "ca990fc4575dea5ab559dfa5c46d6deb27ab8ec07a3e451065c471535a44bf55",
        ),
        (
            vec![("source", Set(vec![source("é", "2"), source("a", "1")]).to_cty())],
            "97af52554a2214e35e17b63ba8905fa75d1f84f8cde40c2e422dafaeb32ef221",
            "8127b4b187a81d6180cf3511e60a739e800a0ea6fd86a2353b9bd1746031d3f2",
        ),
    ];
    for (config, zip, tarball) in cases {
        for (kind, expected) in [("zip", zip), ("tar.gz", tarball)] {
            let out = home.path().join(format!("out.{kind}"));
            let all = [config.clone(), vec![("type", kind.into()), ("output_path", text(&out))]].concat();
            let state = Harness::new(crate::provider())
                .data("archive_file", &all)
                .await
                .unwrap();
            assert_eq!(state.get("output_sha256"), Some(&expected.into()), "{kind} {config:?}");
        }
    }
}

/// Python and common programs can read the archives. Programs that are not installed are skipped.
#[tokio::test]
#[allow(clippy::print_stderr, reason = "what is left out is told")]
async fn others_read_them() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("dir");
    files(&dir);
    let script = "import sys, tarfile, zipfile\n\
                  z = zipfile.ZipFile('out.zip'); assert z.testzip() is None\n\
                  for i in z.infolist(): print(i.filename, oct(i.external_attr >> 16 & 0o777), i.file_size, i.date_time[0])\n\
                  for i in tarfile.open('out.tar.gz'): print(i.name, oct(i.mode), i.size, i.mtime, i.uid, i.uname)\n";
    let expected = "a.txt 0o644 6 2049\nb/run.sh 0o755 10 2049\nbig.txt 0o400 48890 2049\né.txt 0o644 2 2049\n\
                    a.txt 0o644 6 0 0 \nb/run.sh 0o755 10 0 0 \nbig.txt 0o400 48890 0 0 \né.txt 0o644 2 0 0 \n";
    for kind in ["zip", "tar.gz"] {
        let out = home.path().join(format!("out.{kind}"));
        let config = [
            ("type", Value::from(kind)),
            ("source_dir", dir.to_str().unwrap().into()),
            ("output_path", out.to_str().unwrap().into()),
        ];
        Harness::new(crate::provider())
            .data("archive_file", &config)
            .await
            .unwrap();
    }
    for (program, arguments, expected) in [
        ("python3", &["-X", "utf8", "-c", script][..], expected),
        ("unzip", &["-tqq", "out.zip"], ""),
        ("tar", &["-tzf", "out.tar.gz", "b/run.sh"], "b/run.sh\n"),
    ] {
        let Some(path) = support::needs(program, "others_read_them") else {
            continue;
        };
        let mut command = std::process::Command::new(path);
        let ran = support::ran(command.args(arguments).current_dir(home.path()).output().unwrap());
        assert_eq!((ran.status, &*ran.stdout), (0, expected), "{program}: {}", ran.stderr);
    }
}
