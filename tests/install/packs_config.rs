//! Packs that carry configurations and a CLI configuration, and packs that are used only if they are trusted.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use support::Workspace;
use support::registry::Registry;

use crate::packs_keys::{PRIVATE, PUBLIC, PUBLIC_OF_ANOTHER};

/// Returns a directory with a configuration in `envs/prod`, which calls local modules inside and outside of it.
fn repository() -> Workspace {
    let w = Workspace::with(&[
        (
            "envs/prod/main.tf",
            "module \"in\" {\n  source = \"./modules/in\"\n}\nmodule \"out\" {\n  source = \"../../modules/out\"\n}\noutput \"said\" {\n  \
             value = \"${module.in.said}, ${module.out.said}, ${var.name}\"\n}\nvariable \"name\" {}\n",
        ),
        ("envs/prod/terraform.tfvars", "name = \"prod\"\n"),
        ("envs/prod/.terraform.lock.hcl", "# locked\n"),
        ("envs/prod/tests/a.tftest.hcl", "run \"a\" {\n}\n"),
        (
            "envs/prod/modules/in/main.tf",
            "output \"said\" {\n  value = file(\"${path.module}/text.txt\")\n}\n",
        ),
        ("envs/prod/modules/in/text.txt", "inside"),
        ("modules/out/main.tf", "output \"said\" {\n  value = \"outside\"\n}\n"),
        ("modules/other/main.tf", "# called by another configuration\n"),
        ("envs/prod/.terraformignore", "*.big\nnotes/\n"),
        ("envs/prod/image.big", "large"),
        ("envs/prod/notes/todo.txt", "ignored"),
        ("envs/prod/terraform.tfstate", "{}"),
        ("envs/prod/terraform.tfstate.d/a/terraform.tfstate", "{}"),
        (
            "envs/prod/backup.json",
            "{\"version\": 4, \"terraform_version\": \"1.11.4\", \"serial\": 1, \"lineage\": \"x\"}",
        ),
        ("envs/prod/.terraform/environment", "default"),
        ("envs/prod/crash.log", "crash"),
        ("private.pem", PRIVATE),
        ("envs/prod/key.pem", PRIVATE),
        ("public.pem", PUBLIC),
        ("other.pem", PUBLIC_OF_ANOTHER),
    ]);
    for (name, target) in [
        ("envs/prod/link.txt", "modules/in/text.txt"),
        ("envs/prod/hosts", "/etc/hosts"),
    ] {
        std::os::unix::fs::symlink(target, w.dir().join(name)).expect("a link");
    }
    w
}

fn pack(w: &Workspace, args: &[&str]) -> support::Ran {
    w.run_program(support::lean(), &[&["pack", "-no-color"], args].concat())
}

/// Returns the paths of all files and links below a directory.
fn files(dir: &Path) -> Vec<String> {
    fn below(dir: &Path, prefix: &str, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.file_type().expect("a type").is_dir() {
                true => below(&entry.path(), &format!("{name}/"), out),
                false => out.push(name),
            }
        }
    }
    let mut out = Vec::new();
    below(dir, "", &mut out);
    out.sort();
    out
}

#[test]
fn a_configuration_is_carried_without_states_and_secrets() {
    let a = repository();
    let made = pack(&a, &["-include-config", "-config=envs/prod", "-out=envs/prod/site"]);
    let made = made.ok().shows(&["carries 0 packages and 1 configuration"]);
    for left in [
        "terraform.tfstate:",
        "terraform.tfstate.d:",
        "backup.json:",
        "key.pem:",
        "hosts:",
    ] {
        assert!(made.all().contains(left), "{left} {}", made.all());
    }
    // The pack itself, which is in the directory, is not packed.
    pack(&a, &["-include-config", "-config=envs/prod", "-out=again"]).ok();
    pack(&a, &["-from=again", "-out=over"]).ok();
    let bytes = |name: &str| std::fs::read(a.dir().join(name)).expect("read");
    assert!(bytes("envs/prod/site") == bytes("again"), "packed again");
    assert!(bytes("over") == bytes("again"), "taken over");
    pack(&a, &["-list", "again"])
        .ok()
        .shows(&["Configurations:", "envs/prod ("]);
    let listed = pack(&a, &["-list", "-json", "again"]).ok().json();
    assert_eq!(listed["configurations"][0]["name"], "envs/prod");

    let site = a.dir().join("again");
    let b = Workspace::new();
    b.run_program(&site, &["unpack", "-config=envs/prod", "here"])
        .ok()
        .shows(&["here/envs/prod is complete"]);
    let here = b.dir().join("here");
    assert_eq!(
        files(&here),
        [
            "envs/prod/.terraform.lock.hcl",
            "envs/prod/.terraformignore",
            "envs/prod/link.txt",
            "envs/prod/main.tf",
            "envs/prod/modules/in/main.tf",
            "envs/prod/modules/in/text.txt",
            "envs/prod/terraform.tfvars",
            "envs/prod/tests/a.tftest.hcl",
            "modules/out/main.tf",
        ]
    );
    b.run_program(&site, &["-chdir=here/envs/prod", "apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["said = \"inside, outside, prod\""]);
    // Equal files stay; files that differ are replaced only on request.
    b.run_program(&site, &["unpack", "-config=envs/prod", "here"])
        .ok()
        .shows(&["is there already"]);
    b.write("here/envs/prod/terraform.tfvars", "name = \"changed\"\n");
    b.write("here/envs/prod/more.tf", "# mine\n");
    b.write("here/envs/prod/terraform.tfvars.json", "{}");
    b.write("here/envs/prod/x.auto.tfvars.old", "");
    b.run_program(&site, &["unpack", "-config=envs/prod", "here"])
        .fails_with(&[
            "differ from those of the pack",
            "envs/prod/terraform.tfvars",
            "-replace",
        ]);
    let replaced = b
        .run_program(&site, &["unpack", "-config=envs/prod", "-replace", "here"])
        .ok()
        .shows(&["1 file was written", "more.tf", "terraform.tfvars.json"]);
    assert!(!replaced.stdout.contains("x.auto.tfvars.old"), "{}", replaced.all());
    assert_eq!(b.read("here/envs/prod/terraform.tfvars"), "name = \"prod\"\n");
    assert!(
        b.exists("here/envs/prod/terraform.tfstate"),
        "the state of the site stays"
    );
    b.run_program(&site, &["unpack", "-config=other", "here"])
        .fails_with(&["has no configuration \"other\"", "\"envs/prod\""]);
}

#[test]
fn a_carried_cli_configuration_counts_where_a_machine_has_none() {
    let server = crate::serve(Registry::new().with("acme/anvil", "1.0.0", "one"));
    let configuration = crate::requiring(&server, &[("acme/anvil", "1.0.0")]);
    let a = crate::workspace(&server, &configuration);
    let excluding = format!(
        "provider_installation {{\n  direct {{\n    exclude = [\"{}/*/*\"]\n  }}\n}}\n",
        server.host()
    );
    a.write("site.tfrc", &excluding);
    a.write(
        "secret.tfrc",
        "# a token\ncredentials \"example.com\" {\n  token = \"x\"\n}\n",
    );
    a.write("wrong.tfrc", "host \"");
    let null = ["-provider=hashicorp/null@>= 99"];
    pack(&a, &["-cli-config=secret.tfrc", "-out=x", null[0]]).fails_with(&["line 2", "credentials"]);
    pack(&a, &["-cli-config=wrong.tfrc", "-out=x", null[0]]).fails_with(&["wrong.tfrc cannot be carried", "line 1"]);
    assert!(!a.exists("x"));
    pack(&a, &["-cli-config=site.tfrc", "-config=.", "-out=site"]).ok();
    pack(&a, &["-list", "site"])
        .ok()
        .shows(&["It carries a CLI configuration."]);
    let site = a.dir().join("site");
    let other = configuration.replace("acme/anvil", "acme/rocket");
    let b = crate::workspace(&server, &other);
    b.run_program(&site, &["init", "-no-color"])
        .fails_with(&["names no source that it may be installed from"]);
    // The machine's own file takes precedence.
    b.write("../home/.terraformrc", "disable_checkpoint = true\n");
    let asked = b.run_program(&site, &["init", "-no-color"]);
    assert_eq!(asked.status, 1, "{}", asked.all());
    assert!(!asked.all().contains("names no source"), "{}", asked.all());
}

#[test]
fn a_carried_cli_configuration_is_written_out() {
    const TEXT: &str = "# of the site\ndisable_checkpoint = true\n";
    let a = Workspace::with(&[("main.tf", ""), ("site.tfrc", TEXT)]);
    pack(&a, &["-cli-config=site.tfrc", "-out=site"]).ok();
    pack(&a, &["-out=without"]).ok();
    let site = a.dir().join("site");
    let b = Workspace::new();
    let unpack = |args: &[&str]| b.run_program(&site, &[&["unpack", "-no-color"], args].concat());
    let mode = |name: &str| {
        std::fs::metadata(b.dir().join(name))
            .expect("a file")
            .permissions()
            .mode()
            & 0o777
    };
    unpack(&["-cli-config=here.tfrc"])
        .ok()
        .shows(&["The CLI configuration of the pack is in here.tfrc."]);
    assert_eq!((b.read("here.tfrc").as_str(), mode("here.tfrc")), (TEXT, 0o600));
    unpack(&["-cli-config=here.tfrc"]).ok().shows(&["is there already"]);
    b.write("here.tfrc", "# mine\n");
    unpack(&["-cli-config=here.tfrc"]).fails_with(&["here.tfrc differs", "-replace"]);
    assert_eq!(b.read("here.tfrc"), "# mine\n");
    std::fs::set_permissions(b.dir().join("here.tfrc"), Permissions::from_mode(0o644)).expect("its mode");
    unpack(&["-cli-config=here.tfrc", "-replace"]).ok();
    assert_eq!((b.read("here.tfrc").as_str(), mode("here.tfrc")), (TEXT, 0o600));
    std::fs::create_dir(b.dir().join("dir")).expect("a directory");
    unpack(&["-cli-config=dir"]).fails_with(&["dir cannot be written"]);
    unpack(&["-cli-config=none/here.tfrc"]).fails_with(&["none/here.tfrc cannot be written"]);
    unpack(&["-cli-config=more.tfrc", "dir"])
        .fails_with(&["Too many command line arguments", "Leave the directory out"]);
    unpack(&["-cli-config=more.tfrc", "-config=x"]).fails_with(&["only one of -config and -cli-config"]);
    unpack(&["-replace", "dir"]).fails_with(&["-replace needs -config or -cli-config"]);
    let without = a.dir().join("without");
    b.run_program(
        &site,
        &[
            "unpack",
            "-cli-config=more.tfrc",
            &format!("-from={}", without.display()),
        ],
    )
    .fails_with(&["without has no CLI configuration", "pack -cli-config=FILE"]);
    assert!(!b.exists("more.tfrc"));
}

/// Returns a workspace with a pack that is signed with the key in `../public.pem`, and one that is not signed.
fn signed_and_unsigned() -> Workspace {
    let server = crate::serve(Registry::new().with("acme/anvil", "1.0.0", "one"));
    let a = crate::workspace(&server, &crate::requiring(&server, &[("acme/anvil", "1.0.0")]));
    for (name, text) in [
        ("../private.pem", PRIVATE),
        ("../public.pem", PUBLIC),
        ("../other.pem", PUBLIC_OF_ANOTHER),
    ] {
        a.write(name, text);
    }
    pack(&a, &["-sign=../private.pem", "-out=signed"]).ok();
    pack(&a, &["-out=unsigned"]).ok();
    a
}

#[test]
fn a_pack_that_is_not_trusted_is_not_used() {
    let a = signed_and_unsigned();
    let run = |program: &str, key: &str, args: &[&str]| {
        let b = Workspace::with(&[("main.tf", &a.read("main.tf"))]);
        let b = b.env("MONOFORM_PACK_TRUST", a.dir().join(key).to_string_lossy());
        b.run_program(a.dir().join(program), args)
    };
    let init = ["init", "-no-color"];
    run("signed", "../public.pem", &init)
        .ok()
        .shows(&["is carried by this executable"]);
    for (program, key, why) in [
        ("signed", "../other.pem", "is signed with the key"),
        ("unsigned", "../public.pem", "it is not signed"),
        ("signed", "../missing.pem", "missing.pem cannot be used"),
    ] {
        let failed = run(program, key, &["plan", "-no-color"]);
        failed.fails_with(&[
            "Nothing that this executable carries can be used",
            why,
            "MONOFORM_PACK_TRUST",
        ]);
    }
    // An untrusted pack can still be listed.
    run("unsigned", "../public.pem", &["pack", "-list", "-no-color"])
        .ok()
        .shows(&["acme/anvil v1.0.0", "Pack not trusted", "it is not signed"]);
}

/// Every command that uses the content of a pack refuses an untrusted pack.
#[test]
fn every_door_checks_trust() {
    let a = signed_and_unsigned();
    let lean = support::lean();
    pack(&a, &["-out=update", "-from=unsigned", "-since=signed"]).ok();
    pack(
        &a,
        &[
            "-out=update-of-unsigned",
            "-from=signed",
            "-since=unsigned",
            "-sign=../private.pem",
        ],
    )
    .ok();
    let doors: &[&[&str]] = &[
        &["unpack", "-from=unsigned", "mirror"],
        &["unpack", "-from=unsigned", "-config=x", "mirror"],
        &["unpack", "-from=unsigned", "-cli-config=x.tfrc"],
        &["providers", "serve", "-listen=127.0.0.1:0", "unsigned"],
        &["pack", "-out=x", "-from=unsigned"],
        &["pack", "-out=x", "-from=signed", "-since=unsigned"],
        &["pack", "-out=x", "-update=update", "signed"],
        &["pack", "-out=x", "-update=update-of-unsigned", "unsigned"],
        &["pack", "-verify", "unsigned"],
    ];
    let run = |key: &str, program: &Path, args: &[&str]| {
        let mut command = a.command(program);
        command.args(args).env("MONOFORM_PACK_TRUST", a.dir().join(key));
        support::ran(command.output().expect("a run"))
    };
    let trusting = |args: &[&str]| run("../public.pem", lean, args);
    for door in doors {
        trusting(door).fails_with(&["is not trusted: it is not signed", "MONOFORM_PACK_TRUST"]);
        // A key file that cannot be read is an error, and trusts no pack.
        run("../missing.pem", lean, door).fails_with(&["missing.pem cannot be used", "MONOFORM_PACK_TRUST"]);
        for made in ["mirror", "x", "x.tfrc"] {
            assert!(!a.exists(made), "{door:?} has made {made}");
        }
    }
    // The executable itself is an untrusted pack.
    let of_pack = |program: &str, args: &[&str]| run("../public.pem", &a.dir().join(program), args);
    for door in [
        &["unpack", "mirror"][..],
        &["providers", "serve"],
        &["pack", "-out=x", "-from=signed"],
        &["self-check", "-no-color"],
    ] {
        of_pack("unsigned", door).fails_with(&["it is not signed"]);
    }
    of_pack("signed", &["self-check", "-no-color"])
        .ok()
        .shows(&["signed with the key", "Nothing is damaged."]);
    // A trusted pack passes all of these commands, and an option takes precedence over the environment.
    trusting(&["unpack", "-from=signed", "mirror"]).ok();
    trusting(&["pack", "-verify", "signed"]).ok();
    trusting(&["pack", "-verify", "-trust=../other.pem", "signed"]).fails_with(&["it is signed with the key"]);
    trusting(&["pack", "-out=x", "-from=signed"]).ok();
    // A variable that is not UTF-8 does not count as unset.
    use std::os::unix::ffi::OsStrExt as _;
    let mut command = a.command(lean);
    command.args(["unpack", "-from=unsigned", "other"]);
    command.env("MONOFORM_PACK_TRUST", std::ffi::OsStr::from_bytes(b"\xff.pem"));
    support::ran(command.output().expect("a run")).fails_with(&["cannot be used"]);
}
