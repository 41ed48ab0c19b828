//! Schemas of providers: requested once for each package, and carried by saved plans.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use support::Workspace;
use support::registry::platform;

const CONFIGURATION: &str = "terraform {
  required_providers {
    null = {
      source = \"example.com/acme/null\"
    }
  }
}

resource \"null_resource\" \"a\" {
  triggers = {
    a = \"b\"
  }
}
";

/// A working directory with an installed provider that counts its processes and requests.
struct Counted {
    w: Workspace,
}

impl Counted {
    fn new() -> Counted {
        let w = Workspace::with(&[("main.tf", CONFIGURATION)]);
        let counted = Counted {
            w: w.env("TF_LOG", "trace").env("TF_LOG_PATH", "log"),
        };
        counted.install("");
        counted.w.run(&["init", "-no-color"]).ok();
        counted.took();
        counted
    }

    fn env(self, name: &str, value: impl Into<String>) -> Counted {
        Counted {
            w: self.w.env(name, value),
        }
    }

    fn package(&self) -> PathBuf {
        let plugins = self.w.home().join(".terraform.d/plugins");
        plugins.join("example.com/acme/null/1.0.0").join(platform())
    }

    /// Installs the provider: a script that starts this executable. A different comment makes a different program, with
    /// another checksum.
    fn install(&self, comment: &str) {
        self.install_program(&format!("# {comment}"));
    }

    /// Installs a script that counts its starts, runs these lines, and becomes the provider.
    fn install_program(&self, before: &str) {
        let lean = support::lean().display();
        let starts = self.w.home().join("starts").display().to_string();
        let script = format!("#!/bin/sh\necho >> '{starts}'\n{before}\nexec '{lean}' internal-plugin provider null\n");
        let package = self.package();
        std::fs::create_dir_all(&package).expect("a directory");
        let path = package.join("terraform-provider-null_v1.0.0");
        std::fs::write(&path, script).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    /// Returns the numbers of started processes and of requests for schemas since the last call.
    fn took(&self) -> (usize, usize) {
        let lines = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let _ = std::fs::remove_file(path);
            text
        };
        let starts = lines(self.w.home().join("starts"));
        let log = lines(self.w.dir().join("log"));
        (
            starts.lines().count(),
            log.matches("request=GetProviderSchema ").count(),
        )
    }

    /// Returns the paths of the stored files with schemas.
    fn stored(&self) -> Vec<PathBuf> {
        let dir = std::fs::read_dir(self.w.home().join(".cache/monoform/schemas"));
        dir.into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> ((usize, usize), String) {
        let ran = self.w.run(&[args, &["-no-color"]].concat()).ok();
        (self.took(), ran.stdout)
    }
}

#[test]
fn schemas_are_requested_once_and_processes_start_when_they_are_needed() {
    let counted = Counted::new();
    assert_eq!(counted.run(&["validate"]).0, (1, 1));
    assert_eq!(counted.stored().len(), 1);
    assert_eq!(counted.run(&["validate"]).0, (1, 0), "to validate the resource");
    assert_eq!(counted.run(&["plan"]).0, (1, 0));
    assert_eq!(
        counted.run(&["apply", "-auto-approve"]).0,
        (2, 0),
        "to plan, and to apply"
    );
    // Information that only the provider had is left out.
    let (took, shown) = counted.run(&["state", "show", "null_resource.a"]);
    assert_eq!(took, (0, 0));
    assert!(shown.contains("triggers = {"), "{shown}");
    let (took, first) = counted.run(&["providers", "schema", "-json"]);
    assert_eq!(took, (0, 0));
    let asked = counted.env("MONOFORM_SCHEMA_DIR", "none");
    let (took, second) = asked.run(&["providers", "schema", "-json"]);
    assert_eq!((took, second), ((1, 1), first), "without a place for them");
}

#[test]
fn provider_that_was_replaced_is_asked_again() {
    let counted = Counted::new();
    counted.run(&["validate"]);
    counted.install("another build of the same version");
    std::fs::remove_file(counted.w.dir().join(".terraform.lock.hcl")).expect("a lock file");
    assert_eq!(counted.run(&["validate"]).0, (1, 1));
    assert_eq!(counted.run(&["validate"]).0, (1, 0));
    // Each provider has its own schemas.
    assert_eq!(counted.stored().len(), 2);
}

#[test]
fn damaged_schemas_are_requested_again_without_a_message() {
    let counted = Counted::new();
    let (_, expected) = counted.run(&["validate"]);
    let [file] = counted.stored().try_into().expect("one file");
    let content = std::fs::read(&file).expect("a file");
    // The file is damaged in the header, in the index and in the schemas, and cut off.
    let flipped = |at: usize| {
        let mut content = content.clone();
        content[at] ^= 1;
        content
    };
    let schema = content.len() - 5;
    let cut = content[..content.len() / 2].to_vec();
    for damaged in [flipped(2), flipped(9), flipped(60), flipped(schema), cut, Vec::new()] {
        std::fs::write(&file, damaged).expect("a file");
        let (_, said) = counted.run(&["validate"]);
        assert_eq!(said, expected);
        counted.run(&["providers", "schema", "-json"]);
        assert_eq!(counted.run(&["validate"]).0, (1, 0), "written again");
        assert_eq!(std::fs::read(&file).expect("a file").len(), content.len());
    }
}

#[test]
fn provider_is_asked_each_time_if_its_schemas_cannot_be_stored() {
    let counted = Counted::new();
    let place = counted.w.home().join(".cache");
    std::fs::write(&place, "no directory").expect("a file");
    for _ in 0..2 {
        assert_eq!(counted.run(&["validate"]).0, (1, 1));
    }
}

#[test]
fn schemas_of_provider_under_development_are_not_stored() {
    let counted = Counted::new();
    let overrides = format!(
        "provider_installation {{\n  dev_overrides {{\n    \"example.com/acme/null\" = \"{}\"\n  }}\n}}\n",
        counted.package().display()
    );
    counted.w.write("dev.tfrc", &overrides);
    let counted = counted.env("TF_CLI_CONFIG_FILE", "dev.tfrc");
    for _ in 0..2 {
        assert_eq!(counted.run(&["validate"]).0, (1, 1));
    }
    assert!(counted.stored().is_empty());
}

#[test]
fn saved_plan_is_shown_after_its_provider_was_removed() {
    let counted = Counted::new();
    counted.run(&["plan", "-out=saved"]);
    let forms: [&[&str]; 3] = [
        &["show", "saved"],
        &["show", "-json", "saved"],
        &["graph", "-plan=saved"],
    ];
    let shown = |args: &&[&str]| counted.run(args);
    let before: Vec<_> = forms.iter().map(shown).collect();
    assert!(before.iter().all(|(took, _)| *took == (0, 0)), "{before:?}");
    assert!(before[0].1.contains("+ triggers = {"), "{}", before[0].1);
    assert!(before[1].1.contains("\"expressions\":{\"triggers\""), "{}", before[1].1);
    std::fs::remove_dir_all(counted.w.home().join(".terraform.d")).expect("a directory");
    std::fs::remove_dir_all(counted.w.home().join(".cache")).expect("a directory");
    let after: Vec<_> = forms.iter().map(shown).collect();
    assert_eq!(after, before);
}

#[test]
fn provider_that_does_not_start_any_more_is_one_error() {
    let counted = Counted::new();
    let broken = counted.w.home().join("broken");
    counted.install_program(&format!(
        "[ -e '{}' ] && {{ echo 'no licence' >&2; exit 3; }}",
        broken.display()
    ));
    std::fs::remove_file(counted.w.dir().join(".terraform.lock.hcl")).expect("a lock file");
    let more = "resource \"null_resource\" \"b\" {\n  count = 3\n}\nresource \"null_resource\" \"c\" {\n}\n";
    counted.w.write("more.tf", more);
    counted.run(&["validate"]);
    std::fs::write(&broken, "").expect("a file");
    for command in ["validate", "plan"] {
        let ran = counted
            .w
            .run(&[command, "-no-color"])
            .fails_with(&["Failed to start plugin", "no licence"]);
        assert_eq!(ran.all().matches("Error: ").count(), 1, "{}", ran.all());
        assert_eq!(counted.took().0, 1, "it is not tried again");
    }
}
