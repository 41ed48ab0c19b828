//! Tests of archives, which are read with other implementations of the formats.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::{Cty, Diagnostics, Set};
use monoform_sdk_testing::Harness;

use crate::archive_file::Source;

type Config<'a> = Vec<(&'a str, Value)>;

fn path(path: &Path) -> Value {
    path.to_str().unwrap().into()
}

fn strings(list: &[&str]) -> Value {
    Value::set(Type::String, list.iter().map(Value::string).collect())
}

fn sources(list: &[(&str, &str)]) -> Value {
    let source = |(filename, content): &(&str, &str)| Source {
        content: (*content).into(),
        filename: (*filename).into(),
    };
    Set(list.iter().map(source).collect()).to_cty()
}

/// Creates a directory with files, some of them behind links.
fn tree() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir_all(at("in/d/e")).unwrap();
    fs::create_dir_all(at("in/empty")).unwrap();
    fs::create_dir_all(at("other")).unwrap();
    for (name, mode) in [
        ("in/a.txt", 0o644),
        ("in/d/e/x", 0o755),
        ("in/d.txt", 0o444),
        ("other/o", 0o600),
    ] {
        fs::write(at(name), name).unwrap();
        fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
    }
    symlink("../other", at("in/link")).unwrap();
    symlink("../other/o", at("in/zfile")).unwrap();
    dir
}

async fn make(config: &[(&str, Value)]) -> Result<Value, Diagnostics> {
    Harness::new(crate::provider()).data("archive_file", config).await
}

async fn error(config: &[(&str, Value)]) -> String {
    let errors = make(config).await.unwrap_err();
    errors
        .0
        .iter()
        .map(|e| format!("{}: {}\n", e.summary, e.detail))
        .collect()
}

/// Returns the names, modes and contents of an archive, in the order of its entries.
fn read(path: &Path) -> Vec<(String, u32, String)> {
    let mut out = Vec::new();
    let file = fs::File::open(path).unwrap();
    if path.extension().is_some_and(|e| e == "zip") {
        let mut archive = zip::ZipArchive::new(file).unwrap();
        for i in 0..archive.len() {
            let mut entry = archive.by_index(i).unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            out.push((entry.name().unwrap().into_owned(), entry.unix_mode().unwrap_or(0), text));
        }
    } else {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert_eq!(entry.header().mtime().unwrap(), 0);
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
            out.push((name, entry.header().mode().unwrap(), text));
        }
    }
    out
}

fn names(path: &Path) -> Vec<String> {
    read(path).into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn the_schema_is_the_official_one() {
    let attributes = "  exclude_symlink_directories bool optional\n  excludes set(string) optional\n  id string computed\n  \
         output_base64sha256 string computed\n  output_base64sha512 string computed\n  output_file_mode string optional\n  \
         output_md5 string computed\n  output_path string required\n  output_sha string computed\n  \
         output_sha256 string computed\n  output_sha512 string computed\n  output_size number computed\n  \
         source_content string optional\n  source_content_filename string optional\n  source_dir string optional\n  \
         source_file string optional\n  type string required\n";
    assert_eq!(
        Harness::new(crate::provider()).schema_text(),
        format!("resource archive_file v0\n{attributes}data archive_file v0\n{attributes}")
    );
}

#[tokio::test]
async fn a_directory_in_both_formats() {
    let dir = tree();
    for kind in ["zip", "tar.gz"] {
        let out = dir.path().join("made/here").join(format!("out.{kind}"));
        let config: Config = vec![
            ("type", kind.into()),
            ("source_dir", path(&dir.path().join("in"))),
            ("output_path", path(&out)),
        ];
        let state = make(&config).await.unwrap();
        let file_type = if kind == "zip" { 0o100_000 } else { 0 };
        let expected = [
            ("a.txt", 0o644, "in/a.txt"),
            ("d/e/x", 0o755, "in/d/e/x"),
            ("d.txt", 0o444, "in/d.txt"),
            ("link/o", 0o600, "other/o"),
            ("zfile", 0o600, "other/o"),
        ]
        .map(|(name, mode, text)| (name.to_owned(), file_type | mode, text.to_owned()));
        assert_eq!(read(&out), expected);
        let bytes = fs::read(&out).unwrap();
        assert_eq!(state.get("output_size"), Some(&Value::number(bytes.len() as i64)));
        assert_eq!(state.get("id"), state.get("output_sha"));

        // The result does not depend on modification times, or on an archive from an earlier run.
        let touched = fs::File::options()
            .append(true)
            .open(dir.path().join("in/a.txt"))
            .unwrap();
        touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(make(&config).await.unwrap(), state);
        assert_eq!(fs::read(&out).unwrap(), bytes);
        let inside = dir.path().join("in").join(format!("self.{kind}"));
        for _ in 0..2 {
            let mut config = config.clone();
            config.push(("output_path", path(&inside)));
            assert_eq!(make(&config).await.unwrap().get("id"), state.get("id"));
        }
        fs::remove_file(inside).unwrap();
    }
}

#[tokio::test]
async fn what_is_left_out() {
    let dir = tree();
    let out = dir.path().join("out.zip");
    for (excludes, follow, expected) in [
        (&["d"][..], true, vec!["a.txt", "d.txt", "link/o", "zfile"]),
        (&["link", "", "**/x"], true, vec!["a.txt", "d.txt", "zfile"]),
        (&["x", "o"], true, vec!["a.txt", "d/e/x", "d.txt", "link/o", "zfile"]),
        (&[], false, vec!["a.txt", "d/e/x", "d.txt", "zfile"]),
        (&["*.txt"], false, vec!["d/e/x", "zfile"]),
    ] {
        let config = [
            ("type", "zip".into()),
            ("source_dir", path(&dir.path().join("in"))),
            ("excludes", strings(excludes)),
            ("exclude_symlink_directories", (!follow).into()),
            ("output_path", path(&out)),
        ];
        make(&config).await.unwrap();
        assert_eq!(names(&out), expected, "{excludes:?} {follow}");
    }
}

#[tokio::test]
async fn texts_and_single_files() {
    let dir = tree();
    for kind in ["zip", "tar.gz"] {
        let out = dir.path().join(format!("out.{kind}"));
        let common = |more: Config<'static>| {
            let mut config = vec![("type", kind.into()), ("output_path", path(&out))];
            config.extend(more);
            config
        };
        let text = |name: &str, text: &str| (name.to_owned(), 0, text.to_owned());
        make(&common(vec![("source", sources(&[("z", "1"), ("a/é", "2")]))]))
            .await
            .unwrap();
        assert_eq!(read(&out), [text("a/é", "2"), text("z", "1")]);
        make(&common(vec![("source_content_filename", "n".into())]))
            .await
            .unwrap();
        assert_eq!(read(&out), [text("n", "")]);
        let content = vec![("source_content_filename", "n".into()), ("source_content", "t".into())];
        make(&common(content)).await.unwrap();
        assert_eq!(read(&out), [text("n", "t")]);

        let file = dir.path().join("in/d/e/x");
        for (mode, expected) in [("0640", 0o640), ("0o600", 0o600), ("0x1a4", 0o644), ("420", 0o644)] {
            make(&common(vec![
                ("source_file", path(&file)),
                ("output_file_mode", mode.into()),
            ]))
            .await
            .unwrap();
            let found = read(&out);
            assert_eq!((&*found[0].0, found[0].1 & 0o7777), ("x", expected), "{kind} {mode}");
        }
        let wrong = common(vec![("source_file", path(&file)), ("output_file_mode", "rw".into())]);
        assert!(error(&wrong).await.contains("error parsing output_file_mode value: rw"));
    }
    // In a zip file, the configured mode is not used for texts, so an invalid one is no error.
    let zip = [
        ("type", "zip".into()),
        ("output_path", path(&dir.path().join("out.zip"))),
        ("source_content_filename", "n".into()),
        ("output_file_mode", "rw".into()),
    ];
    make(&zip).await.unwrap();
}

/// Checks the fields of a zip file, because the checksums that users compare depend on them.
#[tokio::test]
async fn headers_of_a_zip_file() {
    let dir = tree();
    let out = dir.path().join("out.zip");
    let file = [
        ("type", "zip".into()),
        ("source_file", path(&dir.path().join("in/d.txt"))),
        ("output_path", path(&out)),
    ];
    make(&file).await.unwrap();
    let bytes = fs::read(&out).unwrap();
    assert_eq!(bytes[..14], [0x50, 0x4b, 3, 4, 20, 0, 8, 0, 8, 0, 0, 0, 0x21, 0x8a]);
    let at = bytes.windows(4).position(|w| w == [0x50, 0x4b, 1, 2]).unwrap();
    assert_eq!(bytes[at + 4..at + 16], [20, 3, 20, 0, 8, 0, 8, 0, 0, 0, 0x21, 0x8a]);
    let mode = (0o100_444u32 << 16 | 1).to_le_bytes();
    assert_eq!(bytes[at + 38..at + 42], mode);

    let text = [
        ("type", "zip".into()),
        ("source", sources(&[("é", "")])),
        ("output_path", path(&out)),
    ];
    make(&text).await.unwrap();
    let bytes = fs::read(&out).unwrap();
    assert_eq!(bytes[..14], [0x50, 0x4b, 3, 4, 20, 0, 8, 8, 8, 0, 0, 0, 0, 0]);
    let at = bytes.windows(4).position(|w| w == [0x50, 0x4b, 1, 2]).unwrap();
    assert_eq!(bytes[at + 4..at + 6], [20, 0]);
    assert_eq!(bytes[at + 38..at + 42], [0; 4]);
}

#[tokio::test]
async fn what_cannot_be_archived() {
    let dir = tree();
    let at = |name: &str| path(&dir.path().join(name));
    symlink("..", dir.path().join("in/d/up")).unwrap();
    symlink("nowhere", dir.path().join("other/broken")).unwrap();
    for (key, value, more, expected) in [
        (
            "source_file",
            at("no"),
            None,
            "Archive creation error: error creating archive: could not archive missing file",
        ),
        ("source_dir", at("no"), None, "could not archive missing directory"),
        (
            "source_dir",
            at("in/a.txt"),
            None,
            "could not archive directory that is a file",
        ),
        (
            "source_dir",
            at("in/empty"),
            None,
            "archive has not been created as it would be empty",
        ),
        (
            "source_dir",
            at("in"),
            Some(("excludes", strings(&["*"]))),
            "archive has not been created as it would be empty",
        ),
        (
            "source_dir",
            at("in"),
            Some(("excludes", strings(&["["]))),
            "bad pattern",
        ),
        ("source_dir", at("in/d"), None, "never end"),
        ("source_dir", at("other"), None, "error encountered during file walk"),
        (
            "source_dir",
            at("in/link"),
            Some(("exclude_symlink_directories", true.into())),
            "archive has not been created as it would be empty",
        ),
        (
            "source_file",
            at("in/a.txt"),
            Some(("type", "rar".into())),
            "archive type not supported: rar",
        ),
        (
            "source_file",
            at("in/a.txt"),
            Some(("source_dir", at("in"))),
            "Invalid Attribute Combination",
        ),
        ("source_content", "x".into(), None, "Missing Attribute Configuration"),
        (
            "source_file",
            at("in/a.txt"),
            Some(("output_path", at("in"))),
            "Archive creation error",
        ),
        (
            "source_file",
            at("in/a.txt"),
            Some(("output_path", at("in/a.txt/d/x"))),
            "Output path error",
        ),
    ] {
        let out = dir.path().join("out.zip");
        let mut config: BTreeMap<&str, Value> =
            [("type", "zip".into()), ("output_path", path(&out)), (key, value)].into();
        config.extend(more);
        let config: Config = config.into_iter().collect();
        let found = error(&config).await;
        assert!(found.contains(expected), "{expected}: {found}");
        assert!(!out.exists());
    }
}

#[tokio::test]
async fn the_life_of_a_managed_archive() {
    let dir = tree();
    let out = dir.path().join("out.tar.gz");
    let harness = Harness::new(crate::provider());
    let config = |more: Config<'static>| {
        let mut config: Config = vec![
            ("type", "tar.gz".into()),
            ("source_dir", path(&dir.path().join("in"))),
            ("output_path", path(&out)),
        ];
        config.extend(more);
        config
    };
    let state = harness.create("archive_file", &config(vec![])).await.unwrap();
    let same = harness
        .plan("archive_file", Some(&state), &config(vec![]))
        .await
        .unwrap();
    assert_eq!((same.planned, same.replace), (state.clone(), vec![]));
    let plan = config(vec![("exclude_symlink_directories", true.into())]);
    let plan = harness.plan("archive_file", Some(&state), &plan).await.unwrap();
    assert_eq!(plan.replace, ["exclude_symlink_directories"]);
    assert_eq!(plan.planned.get("id"), Some(&Value::unknown(Type::String)));

    // A refresh creates the archive again.
    assert_eq!(harness.read("archive_file", &state).await.unwrap(), state);
    fs::write(dir.path().join("in/new"), "").unwrap();
    fs::remove_file(&out).unwrap();
    let refreshed = harness.read("archive_file", &state).await.unwrap();
    assert_ne!(refreshed.get("id"), state.get("id"));
    assert!(names(&out).contains(&"new".to_owned()));

    let destroyed = harness
        .apply("archive_file", Some(&refreshed), None, &[])
        .await
        .unwrap();
    assert!(destroyed.is_null() && out.exists());
    fs::remove_dir_all(dir.path().join("in")).unwrap();
    let errors = harness.read("archive_file", &refreshed).await.unwrap_err();
    assert!(errors.0[0].detail.contains("could not archive missing directory"));

    let sources = |list| {
        vec![
            ("type", "zip".into()),
            ("output_path", path(&out)),
            ("source", sources(list)),
        ]
    };
    let state = harness
        .create("archive_file", &sources(&[("a", "1"), ("b", "2")]))
        .await
        .unwrap();
    let fewer = harness
        .plan("archive_file", Some(&state), &sources(&[("a", "1")]))
        .await
        .unwrap();
    assert!(fewer.replace.contains(&"source".to_owned()), "{:?}", fewer.replace);
}

#[tokio::test]
async fn an_archive_is_replaced_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (out, link) = (dir.path().join("a.zip"), dir.path().join("reader"));
    let config = |content: &str| {
        vec![
            ("type", "zip".into()),
            ("output_path", path(&out)),
            ("source", sources(&[(content, "a")])),
        ]
    };
    make(&config("old")).await.unwrap();
    let old = fs::read(&out).unwrap();
    // The archive is replaced by a rename, so a reader that has the old archive open can continue to read it.
    fs::hard_link(&out, &link).unwrap();
    make(&config("new content")).await.unwrap();
    assert_ne!(fs::read(&out).unwrap(), old);
    assert_eq!(fs::read(&link).unwrap(), old);
    fs::remove_file(&link).unwrap();
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no temporary file is left"
    );
}
