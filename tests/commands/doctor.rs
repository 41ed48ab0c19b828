//! `doctor` reports problems and their remedies, and changes nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value as Json;
use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("doctor::a_sound_directory_has_no_problems", sound),
    ("doctor::each_problem_has_its_mend", problems),
    ("doctor::the_way_to_each_host_is_told", proxies),
    ("doctor::wrong_setting_of_a_variable_names_the_variable", variable),
];

fn findings<'d>(document: &'d Json, subject: &str) -> Vec<&'d Json> {
    let all = document["findings"].as_array().expect("findings").iter();
    all.filter(|finding| finding["subject"] == subject).collect()
}

fn sound() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    w.run(&["apply", "-auto-approve"]).ok();
    let document = w.run(&["doctor", "-json"]).ok().json();
    assert_eq!(document["problems"], 0, "{document:#}");
    for subject in ["program", "CLI configuration", "configuration", "state", "lock"] {
        assert!(
            findings(&document, subject).iter().any(|f| f["level"] == "ok"),
            "{subject}: {document:#}"
        );
    }
    w.run(&["doctor"]).ok().shows(&["No problems"]);
    w.run(&["doctor", "extra"])
        .fails_with(&["Too many command line arguments"]);
}

fn variable() {
    let w = Workspace::new().env("TF_PLUGIN_CACHE_DIR", "/no/such/cache");
    let document = w.run(&["doctor", "-json"]);
    assert_eq!(document.status, 1);
    let document: Json = serde_json::from_str(&document.stdout).expect("a document");
    let found = findings(&document, "CLI configuration");
    let mends: Vec<&str> = found.iter().filter_map(|f| f["mend"].as_str()).collect();
    assert_eq!(
        mends,
        ["Correct or unset TF_PLUGIN_CACHE_DIR: until then the setting has its default."],
        "{document:#}"
    );
}

fn problems() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n")]);
    w.write("errored.tfstate", "{}");
    w.write("monoform-crash-1-1.txt", "");
    w.write("terraform.tfstate", "{\"version\": 4");
    w.write(
        ".terraform.tfstate.lock.info",
        "{\"ID\":\"an-id\",\"Operation\":\"OperationTypeApply\",\"Who\":\"me@there\"}",
    );
    let state = w.dir().join("terraform.tfstate");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o666)).expect("permissions");
    let package = w.dir().join(".terraform/providers/example.com/a/b/1.0.0");
    fs::create_dir_all(&package).expect("a directory");
    symlink("/nowhere/at/all", package.join("linux_amd64")).expect("a link");
    w.write(
        "cli.tfrc",
        "provider_installation {\n  filesystem_mirror {\n    path = \"/no/such/mirror\"\n  }\n}\n",
    );
    let before = fs::read_dir(w.dir()).expect("a directory").count();
    let line = format!(
        "TF_CLI_CONFIG_FILE=cli.tfrc HTTPS_PROXY=ftp://me:secret-9@p:1 '{}' doctor -json",
        support::monoform()
    );
    let ran = w.run_program("sh", &["-c", &line]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert!(!ran.all().contains("secret-9"), "{}", ran.all());
    let document = ran.json();
    let expected = [
        ("configuration", "problem", "has 1 errors", "validate"),
        ("mirror", "problem", "/no/such/mirror", "providers mirror"),
        ("proxy", "problem", "the scheme ftp", "Set HTTPS_PROXY to"),
        ("installed providers", "problem", "linux_amd64 leads to", "init"),
        ("lock", "note", "OperationTypeApply by me@there", "force-unlock an-id"),
        ("leftovers", "problem", "errored.tfstate", "state push errored.tfstate"),
        ("leftovers", "note", "monoform-crash-1-1.txt", "Report it"),
        ("state", "problem", "cannot be read", "terraform.tfstate.backup"),
        ("state", "problem", "Other users can write", "chmod go-w"),
    ];
    let text = |finding: &Json, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    for (subject, level, found, mend) in expected {
        let matches = |f: &&&Json| f["level"] == level && text(f, "found").contains(found);
        let of_subject = findings(&document, subject);
        let finding = of_subject.iter().find(matches);
        let finding = finding.unwrap_or_else(|| panic!("{subject} {found}: {document:#}"));
        assert!(text(finding, "mend").contains(mend), "{finding}");
    }
    // The output for people has the same problems.
    let ran = w.run(&["doctor"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert!(ran.stdout.contains("problems, "), "{}", ran.all());
    assert!(ran.stdout.contains("force-unlock an-id"), "{}", ran.all());
    // `doctor` changes nothing.
    assert_eq!(fs::read_dir(w.dir()).expect("a directory").count(), before);
}

/// Tests the reported proxy of a host, or the entry of `NO_PROXY` because of which none is used. The CLI configuration contains the
/// services of the host, so no request is sent to it.
fn proxies() {
    for (variables, told) in [
        (
            &[("HTTPS_PROXY", "http://me:secret@proxy.invalid:3128")][..],
            "registry.terraform.io is reached by http://***@proxy.invalid:3128, which HTTPS_PROXY names",
        ),
        (
            &[
                ("https_proxy", "proxy.invalid:3128"),
                ("NO_PROXY", "10.0.0.0/8, *.terraform.io"),
            ],
            "registry.terraform.io is reached directly, because of the entry \"*.terraform.io\" of NO_PROXY",
        ),
        (
            &[
                ("https_proxy", "proxy.invalid:3128"),
                ("NO_PROXY", "registry.terraform.io:444"),
            ],
            "registry.terraform.io is reached by http://proxy.invalid:3128, which https_proxy names",
        ),
        (&[("ALL_PROXY", "http://proxy.invalid:3128")], "ALL_PROXY has no effect"),
        (
            &[("ALL_PROXY", "http://proxy.invalid:3128")],
            "registry.terraform.io is reached directly: HTTPS_PROXY is not set",
        ),
        (
            &[("HTTPS_PROXY", "ftp://proxy.invalid")],
            "registry.terraform.io is reached directly, because HTTPS_PROXY is not the address of a proxy",
        ),
    ] {
        let mut w = Workspace::with(&[
            ("main.tf", ""),
            (
                "../home/.terraformrc",
                "host \"registry.terraform.io\" {\n  services = { \"providers.v1\" = \"https://nowhere.invalid/\" }\n}\n",
            ),
        ]);
        for (name, value) in variables {
            w = w.env(name, *value);
        }
        let document = w.run(&["doctor", "-network", "-json"]).json();
        let all = findings(&document, "proxy");
        let found = |finding: &&Json| finding["found"].as_str().is_some_and(|text| text.contains(told));
        assert!(all.iter().any(found), "{told}\n{document:#}");
        assert!(!document.to_string().contains("secret"), "{document:#}");
    }
}
