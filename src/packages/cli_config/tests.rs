//! Tests of reading the CLI configuration.

use super::*;

fn load(text: &str) -> (CliConfig, Diagnostics) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.tfrc");
    std::fs::write(&path, text).unwrap();
    let variables = [("TF_CLI_CONFIG_FILE", path.to_str().unwrap()), ("WHERE", "/w")];
    let environment = Environment::from(variables.map(|(n, v)| (n.to_owned(), v.to_owned())));
    CliConfig::load(&environment)
}

#[test]
fn credentials_are_not_carried() {
    let why = not_to_be_carried("disable_checkpoint = true\ncredentials \"a.example\" {\n  token = \"x\"\n}\n");
    assert!(why.is_some_and(|why| why.starts_with("line 2: the \"credentials\" block")));
    let login = "oci_credentials \"a.example\" {\n  access_token = \"x\"\n}\n";
    assert!(not_to_be_carried(login).is_some_and(|why| why.contains("the \"oci_credentials\" block")));
    assert!(not_to_be_carried("{\"credentials\": {\"a.example\": {\"token\": \"x\"}}}").is_some());
    assert!(not_to_be_carried("host \"a").is_some());
    assert_eq!(not_to_be_carried("host \"a.example\" {\n  services = {}\n}\n"), None);
}

#[test]
fn installation_methods_in_order() {
    let (config, diagnostics) = load(
        r#"
        provider_installation {
          dev_overrides { "hashicorp/null" = "$WHERE/null" }
          filesystem_mirror {
            path    = "/mirror"
            include = ["example.com/*/*"]
          }
          network_mirror { url = "https://m.example.com/p" }
          direct { exclude = ["example.com/*/*", "hashicorp/null"] }
        }
        "#,
    );
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(
        config.dev_overrides[&Provider::default_for("null")],
        PathBuf::from("/w/null")
    );
    let methods = config.provider_installation.unwrap();
    let example = Provider::parse("example.com/a/b").unwrap();
    let applying = |p: &Provider| methods.iter().map(|m| m.applies_to(p)).collect::<Vec<_>>();
    assert_eq!(applying(&example), [true, true, false]);
    assert_eq!(applying(&Provider::default_for("null")), [false, true, false]);
    assert_eq!(applying(&Provider::default_for("random")), [false, true, true]);
    assert_eq!(
        methods[1].source,
        Source::NetworkMirror("https://m.example.com/p/".into())
    );
}

#[test]
fn logins_to_oci_registries() {
    let (config, diagnostics) = load(
        r#"
        provider_installation {
          oci_mirror {
            repository_template = "r.example/${namespace}/${type}"
            include             = ["example.com/*/*"]
          }
        }
        oci_credentials "R.example" {
          username = "u"
          password = "p"
        }
        oci_credentials "r.example/team/x" { access_token = "t" }
        oci_credentials "h.example:5000" { docker_credentials_helper = "osxkeychain" }
        oci_default_credentials {
          docker_style_config_files = ["auth.json", "/abs.json"]
          docker_credentials_helper = "pass"
        }
        "#,
    );
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let method = &config.provider_installation.unwrap()[0];
    assert!(matches!(&method.source, Source::OciMirror(template) if template.to_string().ends_with("${type}")));
    let oci = config.hosts.oci;
    let keys: Vec<&str> = oci.logins.keys().map(String::as_str).collect();
    assert_eq!(keys, ["h.example:5000", "r.example", "r.example/team/x"]);
    assert!(oci.ambient && oci.helper.as_deref() == Some("pass"));
    let files = oci.files.unwrap();
    assert!(files[0].is_absolute() && files[0].ends_with("auth.json"));
    assert_eq!(files[1], PathBuf::from("/abs.json"));
}

#[test]
fn the_json_form_means_the_same() {
    let (config, diagnostics) = load(
        r#"{"provider_installation": [{"dev_overrides": {"a/b": "/x"}}, {"direct": {}}],
            "credentials": {"app.example.com": {"token": "secret"}},
            "host": {"h": {"services": {"providers.v1": "https://h/"}}}}"#,
    );
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(config.dev_overrides.len(), 1);
    assert_eq!(config.provider_installation.unwrap()[0].source, Source::Direct);
    let host = |name: &str| Host::parse(name).unwrap();
    assert_eq!(config.hosts.tokens[&host("app.example.com")].expose(), "secret");
    assert_eq!(config.hosts.services[&host("H")]["providers.v1"], "https://h/");
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, expected) in [
        (
            "plugin_cache_dir = \"/no/such\"",
            "line 1: the plugin cache directory /no/such does not exist",
        ),
        ("plugin_cache_dir = \"$NOT_SET/x\"", "NOT_SET is not set"),
        (
            "provider_installation {\n direct {}\n dev_overrides {}\n}",
            "dev_overrides must come before",
        ),
        (
            "provider_installation { mirror {} }",
            "\"mirror\" is not an installation method",
        ),
        (
            "provider_installation { direct { include = [\"*/a\"] } }",
            "must not be \"*\"",
        ),
        (
            "provider_installation { network_mirror { url = \"http://x\" } }",
            "https://",
        ),
        ("provider_installation { oci_mirror {} }", "\"repository_template\""),
        (
            "provider_installation {\n oci_mirror {\n repository_template = \"r.example/${type}\"\n }\n}",
            "line 1: the repository template must refer to ${hostname}",
        ),
        ("oci_credentials \"h\" {}", "needs either username and password"),
        (
            "oci_credentials \"h\" {\n username = \"u\"\n password = \"p\"\n access_token = \"t\"\n}",
            "needs either",
        ),
        (
            "oci_credentials \"h/x\" { docker_credentials_helper = \"x\" }",
            "is a part of one",
        ),
        ("oci_credentials \"h\" { token = \"x\" }", "no argument \"token\""),
        ("oci_credentials \"https://h\" {}", "not valid"),
        (
            "oci_default_credentials {\n docker_style_config_files = []\n discover_ambient_credentials = false\n}",
            "has no effect",
        ),
        ("provider_installation { filesystem_mirror {} }", "\"path\""),
        (
            "provider_installation {}\nprovider_installation {}",
            "line 2: there can be only one",
        ),
        ("x = ", "line 1: a value is expected"),
    ] {
        let (_, diagnostics) = load(text);
        assert!(diagnostics.has_errors(), "{text}");
        assert!(
            diagnostics.0[0].detail.contains(expected),
            "{text}: {}",
            diagnostics.0[0].detail
        );
    }
}

#[test]
fn a_missing_named_file_is_a_warning() {
    let environment = Environment::from([("TF_CLI_CONFIG_FILE".to_owned(), "/no/such".to_owned())]);
    let (_, diagnostics) = CliConfig::load(&environment);
    assert_eq!(diagnostics.len(), 1);
    assert!(!diagnostics.has_errors());
}
