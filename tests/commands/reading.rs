//! Commands that only read. They work on unfinished configurations, write warnings to standard error, and run no program that came with the
//! configuration.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use support::{Ran, Workspace, monoform, words};

pub const TESTS: &[(&str, fn())] = &[
    ("reading::broken_configurations_are_answered_with_warnings", broken),
    ("reading::operations_still_refuse_them", operations),
    (
        "reading::a_module_with_expected_providers_is_described_as_such",
        expected_providers,
    ),
    ("reading::results_on_stdout_have_no_warnings_between_them", captured),
    ("reading::plugins_of_the_configuration_need_a_record", own_plugins),
    (
        "reading::errors_in_the_cli_configuration_stop_nothing",
        cli_configuration,
    ),
    ("reading::a_limit_that_is_no_number_is_an_error_of_its_own", no_number),
    ("reading::addresses_that_match_nothing", unmatched),
    ("reading::errors_in_json_have_the_path", json_paths),
    ("reading::texts_are_our_own", texts),
    ("reading::unknown_outputs_are_answered_with_those_there_are", outputs),
];

const MODULE: &str = "variable \"v\" {}\noutput \"o\" {\n  value = var.v\n}\n";

/// Configurations with errors that matter only during evaluation, each with a part of the warning.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "missing argument",
        "module \"m\" {\n  source = \"./sub\"\n}\n",
        "requires the argument \"v\"",
    ),
    (
        "further argument",
        "module \"m\" {\n  source = \"./sub\"\n  v = 1\n  zz = 2\n}\n",
        "Unsupported argument",
    ),
    (
        "expected configuration",
        "terraform {\n  required_providers {\n    null = {\n      source = \"hashicorp/null\"\n      configuration_aliases = [null.o]\n    }\n  }\n}\n\
         resource \"null_resource\" \"a\" {\n  provider = null.o\n}\n",
        "expects the provider configuration null.o from its caller",
    ),
    (
        "alias",
        "resource \"null_resource\" \"a\" {\n  provider = null.nope\n}\n",
        "no provider configuration null.nope",
    ),
    (
        "ephemeral output",
        "output \"x\" {\n  value = 1\n  ephemeral = true\n}\n",
        "Ephemeral output not allowed",
    ),
];

fn workspace(main: &str) -> Workspace {
    Workspace::with(&[("main.tf", main), ("sub/main.tf", MODULE)])
}

/// Runs `console` with this input.
fn console(w: &Workspace, input: &str) -> Ran {
    let mut child = w
        .command(monoform())
        .args(["console", "-no-color"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("standard input");
    // A console that has ended does not read its input.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    support::ran(child.wait_with_output().expect("it ends"))
}

fn broken() {
    for (name, main, told) in BROKEN {
        let w = workspace(main);
        for command in [
            &["providers"][..],
            &["providers", "-json"],
            &["providers", "schema", "-json"],
            &["providers", "lock"],
            &["modules", "-json"],
            &["graph"],
            &["get"],
            &["init"],
        ] {
            let ran = w.run(command);
            assert_eq!(ran.status, 0, "{name}: {command:?}\n{}", ran.all());
            let quiet = *name == "ephemeral output" && matches!(command, ["get" | "init"])
                || *name == "alias" && matches!(command, ["get" | "init"])
                || *name == "expected configuration" && matches!(command, ["get" | "init"]);
            let said = words(&ran.all());
            assert!(
                quiet || said.contains(&words(told)),
                "{name}: {command:?}\n{}",
                ran.all()
            );
            assert!(!said.contains("Error:"), "{name}: {command:?}\n{}", ran.all());
        }
    }
    // A graph leaves out references that cannot be followed.
    let w = workspace(
        "resource \"terraform_data\" \"a\" {\n  input = terraform_data.no.id\n}\nresource \"terraform_data\" \"b\" {\n  input = terraform_data.a.id\n}\n",
    );
    for command in [&["graph"][..], &["graph", "-type=plan"], &["graph", "-json"]] {
        let ran = w.run(command).ok();
        assert!(ran.stderr.contains("Reference to undeclared resource"), "{}", ran.all());
        assert!(!ran.stdout.contains("Warning"), "{}", ran.all());
        assert!(ran.stdout.contains("terraform_data.b"), "{}", ran.all());
    }
}

fn operations() {
    for (name, main, told) in BROKEN {
        let w = workspace(main);
        w.run(&["init"]).ok();
        for command in [&["validate"][..], &["plan"]] {
            let ran = w.run(command);
            assert!(
                ran.status == 1 && words(&ran.stderr).contains(&words(told)),
                "{name}: {}",
                ran.all()
            );
        }
    }
    // These commands fail for configurations that cannot be parsed, too.
    let w = workspace("resource \"terraform_data\" \"a\" {\n  input = \n}\n");
    for command in [&["providers"][..], &["graph"], &["get"], &["init"]] {
        w.run(command).fails_with(&["Invalid expression"]);
    }
}

fn expected_providers() {
    let w = workspace(BROKEN[2].1);
    let plan = w.run(&["plan"]);
    assert!(
        !plan.stderr.contains("nor an entry in configuration_aliases"),
        "{}",
        plan.all()
    );
    plan.fails_with(&["as the root module it has none", "add a provider block with that alias"]);
}

/// Standard output that scripts capture is the same with and without a warning.
fn captured() {
    const MAIN: &str = "terraform {\n  required_providers {\n    null = { source = \"hashicorp/null\" }\n\n  }\n}\n\
                        resource \"null_resource\" \"a\" {}\noutput \"o\" {\n  value = 1\n}\nmodule \"m\" {\n  source = \"./sub\"\n  v = 1\n}\n";
    // A second local name for a provider causes a warning whenever the configuration is loaded.
    let doubled = MAIN.replace(
        "    null = { source = \"hashicorp/null\" }\n\n",
        "    null = { source = \"hashicorp/null\" }\n    zero = { source = \"hashicorp/null\" }\n",
    );
    let w = workspace(MAIN);
    w.run(&["apply", "-auto-approve"]).ok();
    let commands = [
        &["output", "-json"][..],
        &["output", "-raw", "o"],
        &["output", "o"],
        &["graph"],
        &["graph", "-json"],
        &["graph", "-type=plan"],
        &["providers", "schema", "-json"],
        &["providers", "-json"],
        &["modules", "-json"],
        &["show", "-json"],
        &["state", "list"],
        &["state", "pull"],
        &["state", "show", "null_resource.a"],
        &["state", "identities", "-json"],
        &["workspace", "show"],
        &["workspace", "list"],
        &["metadata", "functions", "-json"],
        &["version", "-json"],
        &["explain", "-json", "null_resource.a"],
    ];
    let before: Vec<String> = commands.iter().map(|args| w.run(args).ok().stdout).collect();
    let value = console(&w, "1 + 1\n").stdout;
    assert_eq!(value, "2\n");
    w.write("main.tf", &doubled);
    let mut warned = 0;
    for (args, before) in commands.iter().zip(before) {
        let ran = w.run(args).ok();
        warned += usize::from(ran.stderr.contains("Duplicate required provider"));
        assert_eq!(ran.stdout, before, "{args:?}\n{}", ran.all());
    }
    assert!(warned >= 4, "{warned}");
    let ran = console(&w, "1 + 1\n");
    assert!(
        ran.stdout == value && ran.stderr.contains("Duplicate required provider"),
        "{}",
        ran.all()
    );
    let validated = w.run(&["validate", "-json"]).ok().json();
    assert_eq!(validated["warning_count"], 1);
}

fn program(w: &Workspace, path: &str) {
    // The program creates a file when it is run.
    w.write(
        path,
        &format!("#!/bin/sh\ntouch {}\n", w.dir().join("was-run").display()),
    );
    let path = w.dir().join(path);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
}

fn own_plugins() {
    let platform = support::registry::platform();
    let read = [
        &["validate"][..],
        &["graph"],
        &["explain", "strange_thing.a"],
        &["providers", "schema", "-json"],
        &["plan"],
    ];
    let main = "terraform {\n  required_providers {\n    strange = { source = \"example.com/a/strange\" }\n  }\n}\n\
                resource \"strange_thing\" \"a\" {}\n";
    let mirrored = format!("terraform.d/plugins/example.com/a/strange/1.0.0/{platform}/terraform-provider-strange");
    let w = workspace(main);
    program(&w, &mirrored);
    for command in read {
        let ran = w.run(command);
        assert_eq!(ran.status, 1, "{}", ran.all());
        let said = words(&ran.stderr);
        assert!(
            said.contains("They do not run, because init has not recorded them"),
            "{}",
            ran.all()
        );
        assert!(!w.exists("was-run"), "{command:?}");
    }
    assert_eq!(console(&w, "1\n").status, 1);
    assert!(!w.exists("was-run"));
    // The setting allows the program to run. It then fails, because it is not a provider.
    let set = workspace(main).env("MONOFORM_LOCAL_PLUGINS", "1");
    program(&set, &mirrored);
    assert_eq!(set.run(&["validate"]).status, 1);
    assert!(set.exists("was-run"));
    // `init` allows it, too, and records its checksum; a changed file is then refused.
    w.run(&["init"]).ok();
    assert!(!w.exists("was-run") && w.read(".terraform.lock.hcl").contains("h1:"));
    assert_eq!(w.run(&["validate"]).status, 1);
    assert!(w.exists("was-run"));
    fs::remove_file(w.dir().join("was-run")).expect("removed");
    w.write(&mirrored, "#!/bin/sh\nexit 3\n");
    w.run(&["validate"]).fails_with(&["Provider checksum mismatch"]);

    // Older layouts, a directory that `init -plugin-dir` would have recorded, and provisioners are refused as
    // well.
    for path in [
        "terraform.d/plugins/terraform-provider-null_v9.0.0".to_owned(),
        format!("terraform.d/plugins/{platform}/terraform-provider-null_v9.0.0"),
        format!(".terraform/plugins/{platform}/terraform-provider-null_v9.0.0"),
        "terraform-provider-null_v9.0.0".to_owned(),
        "theirs/terraform-provider-null_v9.0.0".to_owned(),
    ] {
        let w = workspace("resource \"null_resource\" \"a\" {}\n");
        program(&w, &path);
        if path.starts_with("theirs") {
            w.write(
                ".terraform/plugin_path",
                &format!("[\"{}\"]", w.dir().join("theirs").display()),
            );
        }
        w.run(&["validate"]).ok();
        w.run(&["plan"]).ok();
        assert!(!w.exists("was-run"), "{path}");
    }
    let w = workspace("resource \"terraform_data\" \"a\" {\n  provisioner \"strange\" {}\n}\n");
    program(&w, "terraform.d/plugins/terraform-provisioner-strange_v1.0.0");
    w.run(&["validate"])
        .fails_with(&["init has not recorded it, so that it is not run"]);
    assert!(!w.exists("was-run"));
    w.run(&["init"]).ok();
    assert_eq!(w.run(&["validate"]).status, 1);
    assert!(w.exists("was-run"));
}

fn cli_configuration() {
    for (text, told) in [
        (
            "plugin_cache_dir = \"/nonexistent/cache\"\n",
            "the plugin cache directory /nonexistent/cache does not exist",
        ),
        ("plugin_cache_dir = \n", "a value is expected"),
        (
            "disable_checkpoint = \"maybe\"\n",
            "\"disable_checkpoint\" must be true or false",
        ),
        ("host \"x\" {\n  services = 1\n}\n", "\"services\" must be a block"),
        (
            "provider_installation {\n  nosuch {}\n  direct {}\n}\n",
            "\"nosuch\" is not an installation method",
        ),
        (
            "credentials \"not a host!\" {\n  token = \"x\"\n}\n",
            "is not the name of a host",
        ),
        (
            "credentials \"a.example\" {\n  token = \"x\\ny\"\n}\n",
            "characters that cannot be sent",
        ),
    ] {
        let w = workspace("resource \"terraform_data\" \"a\" {}\n");
        w.write("rc", text);
        let file = w.dir().join("rc").display().to_string();
        let w = w.env("TF_CLI_CONFIG_FILE", file);
        for command in [&["version"][..], &["init"], &["plan"], &["version", "-json"]] {
            let ran = w.run(command).ok();
            let said = words(&ran.stderr);
            assert!(
                said.contains(told) && said.contains("may not behave as intended"),
                "{text}\n{}",
                ran.all()
            );
        }
        w.run(&["doctor"]).shows(&["CLI configuration"]);
    }
    let w = workspace("").env("TF_PLUGIN_CACHE_DIR", "/nonexistent/cache");
    let ran = w.run(&["version"]).ok();
    assert!(
        words(&ran.stderr).contains("TF_PLUGIN_CACHE_DIR: the plugin cache directory"),
        "{}",
        ran.all()
    );
    let w = workspace("").env("TF_TOKEN_a_example", "x\ny");
    let ran = w.run(&["version"]).ok();
    assert!(
        words(&ran.stderr).contains("TF_TOKEN_a_example: the token for a_example"),
        "{}",
        ran.all()
    );
    // A valid installation method still limits the sources of providers, even if another one is invalid.
    let w = workspace("resource \"strange_thing\" \"a\" {}\n");
    w.write(
        "rc",
        "provider_installation {\n  nosuch {}\n  filesystem_mirror {\n    path = \"/nonexistent\"\n  }\n}\n",
    );
    let file = w.dir().join("rc").display().to_string();
    w.env("TF_CLI_CONFIG_FILE", file)
        .run(&["init"])
        .fails_with(&["strange"]);
}

fn unmatched() {
    let w = workspace(
        "resource \"terraform_data\" \"one\" {\n  count = 1\n}\nmodule \"m\" {\n  source = \"./sub\"\n  v = 1\n  count = 0\n}\n",
    );
    w.run(&["apply", "-auto-approve"]).ok();
    for (address, near) in [
        ("terraform_data.one[5]", "Did you mean terraform_data.one[0]?"),
        ("terraform_data.oen", "Did you mean terraform_data.one?"),
        ("module.m[0]", ""),
        ("module.gone", ""),
    ] {
        let target = format!("-target={address}");
        for command in [
            &["plan", "-no-color"][..],
            &["destroy", "-auto-approve", "-no-color"],
            &["refresh", "-no-color"],
        ] {
            let ran = w.run(&[command, &[&target]].concat()).ok();
            let said = words(&ran.stdout);
            assert!(
                said.contains("Warning: No match for -target") && said.contains(near),
                "{address}\n{}",
                ran.all()
            );
        }
        w.run(&["plan", "-strict-addresses", &target])
            .fails_with(&["No match for -target", near]);
    }
    w.run(&["state", "list"]).ok().shows(&["terraform_data.one[0]"]);
    for address in ["terraform_data.gone", "terraform_data.one", "terraform_data.one[3]"] {
        let replace = format!("-replace={address}");
        let ran = w.run(&["plan", "-no-color", &replace]).ok();
        assert!(ran.stdout.contains("Warning: No match for -replace"), "{}", ran.all());
        assert!(ran.stdout.contains("No changes"), "{}", ran.all());
        w.run(&["plan", "-strict-addresses", &replace])
            .fails_with(&["No match for -replace"]);
    }
    // An exclusion that matches nothing is always an error.
    w.run(&["plan", "-exclude=terraform_data.oen"])
        .fails_with(&["No match for -exclude"]);
    let w = w.env("MONOFORM_STRICT_ADDRESSES", "1");
    w.run(&["plan", "-target=module.gone"])
        .fails_with(&["No match for -target"]);
}

fn json_paths() {
    let w = Workspace::with(&[(
        "bad.tf.json",
        "{\"resource\": {\"terraform_data\": {\"q\": {\"lifecycle\": {\"create_before_destroy\": \"yes\"},\n\
         \"provisioner\": {\"local-exec\": [{\"command\": \"x\", \"when\": \"never\"}]}}}},\n\"output\": {\"z\": {}}}\n",
    )]);
    let text = w.run(&["validate", "-no-color"]).stderr;
    for line in [
        "on bad.tf.json line 1, in resource.terraform_data.q.lifecycle:",
        "on bad.tf.json line 2, in resource.terraform_data.q.provisioner.local-exec[0]:",
        "on bad.tf.json line 3, in output.z:",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    d = {\n      foo     = 1\n      bar     = 2\n      version = \"x\"\n      source  = \"a/b/c/d\"\n    }\n    E_ = \"1\"\n  }\n}\n\
         moved {\n  from = module.c[1.5]\n  to   = module.d\n}\n",
    )]);
    let text = w.run(&["validate", "-no-color"]).stderr;
    for line in [4, 5, 6, 7, 9, 13] {
        assert!(text.contains(&format!("on main.tf line {line}, ")), "{line}\n{text}");
    }
    assert!(text.contains("Invalid index for module instance"), "{text}");
}

/// Messages contain no text of a library, and only one name of the program.
fn texts() {
    let w = workspace(
        "resource \"terraform_data\" \"a\" {}\nlocals {\n  a = file(\"x\\u0000y\")\n}\noutput \"a\" {\n  value = local.a\n}\n",
    );
    w.run(&["plan"])
        .fails_with(&["a path cannot have the character U+0000"]);
    w.write(
        ".terraform.lock.hcl",
        "<<<<<<< HEAD\nprovider \"registry.terraform.io/hashicorp/random\" {\n=======\n>>>>>>> b\n}\n",
    );
    w.run(&["plan"])
        .fails_with(&["A merge was not finished in it: the lines 1, 3, 4 have its marks"]);
    w.write(
        ".terraform.lock.hcl",
        "provider \"registry.terraform.io/hashicorp/random\" {\n  version = \n}\n",
    );
    w.run(&["plan"])
        .fails_with(&["Invalid dependency lock file", ".terraform.lock.hcl is not valid"]);
    for (text, told) in [
        (
            "{\"version\":4,\"serial\":\"x\"}",
            "a whole number that is not negative is expected here, and not the string \"x\"",
        ),
        (
            "{\"version\":4,\"serial\":1,\"lineage\":\"a\",\"resources\":{}}",
            "a list is expected here, and not an object",
        ),
        ("rubbish", "a state begins with an opening brace"),
        ("{\"version\":4,", "the text ends too early"),
    ] {
        let w = Workspace::with(&[("s", text)]);
        w.run(&["state", "push", "s"]).fails_with(&[told]);
    }
    // A name is not suggested if it is the one that the user wrote.
    let w = workspace(
        "variable \"o\" {\n  type    = object({ size = number })\n  default = null\n}\noutput \"x\" {\n  value = var.o.size\n}\n",
    );
    let ran = w.run(&["plan"]);
    assert!(ran.status == 1 && !ran.stderr.contains("Did you mean"), "{}", ran.all());
    // The message names `monoform init` first, and the searched directories after it.
    let w = workspace("resource \"strange_thing\" \"a\" {}\n");
    let ran = w.run(&["plan"]);
    let (init, dirs) = (
        ran.stderr.find("monoform init"),
        ran.stderr.find("directories were searched"),
    );
    assert!(init.is_some() && init < dirs, "{}", ran.all());
    let link = w.home().join("terraform");
    std::os::unix::fs::symlink(monoform(), &link).expect("a link");
    let ran = w.run_program(&link, &["plan"]);
    assert!(
        ran.stderr.contains("terraform init") && !ran.stderr.contains("monoform "),
        "{}",
        ran.all()
    );
}

fn outputs() {
    let w = workspace(
        "module \"m\" {\n  source = \"./sub\"\n  v      = 1\n}\noutput \"x\" {\n  value = module.m.nope\n}\noutput \"y\" {\n  value = try(module.m.nope, 1)\n}\n",
    );
    for command in [&["validate"][..], &["plan"]] {
        let ran = w.run(command);
        assert_eq!(ran.stderr.matches("Unsupported attribute").count(), 1, "{}", ran.all());
        ran.fails_with(&["The module \"m\" has no output value \"nope\". Its only output value is \"o\"."]);
    }
}

fn no_number() {
    let w = workspace("output \"x\" {\n  value = [for i in range(3) : i]\n}\n").env("MONOFORM_MAX_ELEMENTS", "many");
    let ran = w.run(&["plan", "-no-color"]).ok();
    let said = words(&ran.stderr);
    assert!(
        said.contains(
            "The value of MONOFORM_MAX_ELEMENTS, \"many\", is not a whole number. The default limits are used."
        ),
        "{said}"
    );
}
