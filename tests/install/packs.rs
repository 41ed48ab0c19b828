//! Packs: an executable that carries a provider, on a machine that has nothing else.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::registry::Registry;
use support::{Ran, Workspace};

use crate::packs_keys::{PRIVATE, PUBLIC, PUBLIC_OF_ANOTHER};

/// Address of a third-party provider. Its executable is a copy of this program, which serves the plugin that its file
/// name selects.
const PROVIDER: &str = "example.com/acme/null";

const MAIN: &str = "terraform {
  required_providers {
    null = {
      source  = \"example.com/acme/null\"
      version = \"~> 3.0\"
    }
  }
}

resource \"null_resource\" \"a\" {
  triggers = { a = \"b\" }
}
";

fn executable_name() -> String {
    "terraform-provider-null_v3.2.3".to_owned()
}

/// Returns a machine on which the provider is installed.
fn with_provider() -> Workspace {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    let dir = (w.home().join(".terraform.d/plugins").join(PROVIDER).join("3.2.3")).join(support::registry::platform());
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::copy(support::lean(), dir.join(executable_name())).expect("a copy");
    w
}

/// Makes a pack on a machine from [`with_provider`]. Returns the machine and the pack.
fn packed(args: &[&str]) -> (Workspace, PathBuf) {
    let w = with_provider();
    let out = w.dir().join("site");
    let flag = format!("-out={}", out.display());
    let args = [&["pack", flag.as_str()], args].concat();
    w.run_program(support::lean(), &args).ok().shows(&["carries 1 package"]);
    (w, out)
}

fn unpacked(w: &Workspace) -> Vec<String> {
    let dir = w.home().join(".cache/monoform/packed");
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut names: Vec<String> = entries
        .map(|e| e.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

fn apply(w: &Workspace, pack: &Path) -> Ran {
    w.run_program(pack, &["apply", "-no-color", "-auto-approve"])
}

#[test]
fn a_packed_provider_needs_no_installation() {
    let (_a, site) = packed(&[]);
    let b = Workspace::with(&[("main.tf", MAIN)]);
    apply(&b, &site).ok().shows(&["1 added"]);
    assert_eq!(unpacked(&b).len(), 1, "{:?}", unpacked(&b));
    assert!(!b.exists(".terraform.lock.hcl"), "without init, nothing is locked");
    b.run_program(&site, &["init", "-no-color"])
        .ok()
        .shows(&["example.com/acme/null v3.2.3 is carried by this executable"]);
    let lock = b.read(".terraform.lock.hcl");
    assert!(
        lock.contains("provider \"example.com/acme/null\"") && lock.contains("h1:"),
        "{lock}"
    );
    apply(&b, &site).ok().shows(&["No changes."]);
    // If no directory can be used for unpacking, the provider runs from memory.
    let c = Workspace::with(&[("main.tf", MAIN), (".terraform.lock.hcl", &lock)]).env("MONOFORM_UNPACK_DIR", "none");
    apply(&c, &site).ok().shows(&["1 added"]);
    assert!(unpacked(&c).is_empty());
    let version = c.run_program(&site, &["version", "-json"]).ok().json();
    assert_eq!(version["carried_providers"][0]["address"], PROVIDER);
    assert_eq!(version["carried_providers"][0]["version"], "3.2.3");
    for command in [&["version"][..], &["internal-plugin", "list"]] {
        let listed = c.run_program(&site, command).ok().all();
        assert!(
            listed.contains("carries") && listed.contains("example.com/acme/null"),
            "{listed}"
        );
        assert!(!c.run(command).ok().all().contains("carries"));
    }
    // The lock file comes from a machine on which the package is installed. On that machine it stays unchanged.
    let d = with_provider();
    d.write(".terraform.lock.hcl", &lock);
    d.run_program(support::lean(), &["init", "-no-color", "-lockfile=readonly"])
        .ok();
    assert_eq!(d.read(".terraform.lock.hcl"), lock);
}

#[test]
fn an_installed_provider_has_precedence_over_a_packed_one() {
    let (a, site) = packed(&[]);
    apply(&a, &site).ok().shows(&["1 added"]);
    assert!(unpacked(&a).is_empty(), "{:?}", unpacked(&a));
}

#[test]
fn a_provider_runs_from_memory_where_programs_cannot_be_run() {
    let (_a, site) = packed(&[]);
    let b = Workspace::with(&[("main.tf", MAIN)]);
    let cache = b.dir().join("cache");
    std::fs::create_dir(&cache).expect("a directory");
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=400m,noexec", "none"])
        .arg(&cache)
        .output();
    if !mount.is_ok_and(|output| output.status.success()) {
        let test = "a_provider_runs_from_memory_where_programs_cannot_be_run";
        return support::skip(test, "mount", "a file system cannot be mounted");
    }
    let mut command = b.command(&site);
    command
        .args(["apply", "-no-color", "-auto-approve"])
        .env("MONOFORM_UNPACK_DIR", cache.join("packed"));
    let output = command.output();
    let unmounted = std::process::Command::new("umount").arg(&cache).output();
    assert!(unmounted.is_ok_and(|output| output.status.success()));
    support::ran(output.expect("started")).ok().shows(&["1 added"]);
}

#[test]
fn packages_are_fetched_from_the_registry_in_the_locked_version() {
    let registry = Registry::new()
        .with("acme/anvil", "1.0.0", "one")
        .with("acme/anvil", "1.2.0", "one-two")
        .with("acme/rocket", "0.1.0", "rocket");
    let server = crate::serve(registry);
    let host = server.host();
    let anvil = crate::requiring(&server, &[("acme/anvil", "~> 1.0")]);
    let w = crate::workspace(&server, &anvil.replace("~> 1.0", "1.0.0"));
    w.run(&["init", "-no-color"]).ok();
    let lock = w.read(".terraform.lock.hcl").replace("  constraints = \"1.0.0\"\n", "");
    // In another directory with that lock file, nothing is installed.
    let other = crate::workspace(&server, &anvil);
    other.write(".terraform.lock.hcl", &lock);
    let rocket = format!("-provider={host}/acme/rocket@>=0.1");
    other
        .run(&["pack", "-no-color", "-out=site", "-config=.", &rocket])
        .ok();
    let listed = other.run(&["pack", "-list", "-json", "site"]).ok().json();
    let providers = listed["providers"].as_array().expect("providers");
    let versions: Vec<_> = providers
        .iter()
        .map(|p| (p["address"].clone(), p["version"].clone()))
        .collect();
    let expected = [("anvil", "1.0.0"), ("rocket", "0.1.0")];
    assert_eq!(
        versions,
        expected.map(|(ty, version)| (format!("{host}/acme/{ty}").into(), version.into()))
    );
    for hash in providers[0]["hashes"].as_array().expect("hashes") {
        assert!(lock.contains(hash.as_str().expect("text")), "{hash} is not in {lock}");
    }
    let init = other.run_program(other.dir().join("site"), &["init", "-no-color"]).ok();
    init.shows(&["acme/anvil v1.0.0 is carried by this executable"]);
    // The pack contains the same provider in two versions.
    let two = ["1.0.0", "~> 1.1"].map(|constraint| format!("-provider={host}/acme/anvil@{constraint}"));
    other
        .run(&["pack", "-no-color", "-out=two", &two[0], &two[1]])
        .ok()
        .shows(&["2 packages"]);
    other
        .run(&["pack", "-no-color", "-list", "two"])
        .ok()
        .shows(&["anvil v1.0.0", "anvil v1.2.0"]);
    // A package without the locked checksum is not packed.
    let wrong: String = lock
        .lines()
        .filter(|line| !line.contains("zh:"))
        .collect::<Vec<_>>()
        .join("\n");
    let (before, rest) = wrong.split_once("h1:").expect("a checksum");
    let wrong = format!("{before}h1:A{}\n", &rest[1..]);
    let third = crate::workspace(&server, &anvil);
    third.write(".terraform.lock.hcl", &wrong);
    let refused = third.run(&["pack", "-no-color", "-out=site"]);
    refused.fails_with(&["Could not retrieve providers", "none of the checksums", "1.0.0"]);
    assert!(!third.exists("site"));
    // The configuration excludes the locked version.
    third.write("main.tf", &anvil.replace("~> 1.0", "~> 1.1"));
    third
        .run(&["pack", "-no-color", "-out=site"])
        .fails_with(&["chose the version 1.0.0", "init -upgrade"]);
}

#[test]
fn a_locked_package_must_be_the_packed_one() {
    let (_a, site) = packed(&[]);
    let lock = "provider \"example.com/acme/null\" {\n  version = \"3.2.3\"\n  hashes = [\n    \
                \"h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\n  ]\n}\n";
    let b = Workspace::with(&[("main.tf", MAIN), (".terraform.lock.hcl", lock)]);
    for command in [&["plan", "-no-color"][..], &["init", "-no-color"]] {
        b.run_program(&site, command)
            .fails_with(&["Provider checksum mismatch", "the pack"]);
    }
    assert_eq!(b.read(".terraform.lock.hcl"), lock);
    // The pack lacks the required version.
    let b = Workspace::with(&[("main.tf", &MAIN.replace("~> 3.0", ">= 4.0"))]);
    b.run_program(&site, &["plan", "-no-color"]).fails_with(&[
        "Provider not available",
        "This executable carries packages of it that cannot be used",
        "3.2.3 for",
    ]);
}

#[test]
fn what_was_unpacked_is_whole_whatever_happened() {
    let (_a, site) = packed(&[]);
    let b = Workspace::with(&[("main.tf", MAIN)]);
    b.run_program(&site, &["init", "-no-color"]).ok();
    // Many processes unpack at the same time.
    let plans: Vec<_> = (0..20)
        .map(|_| {
            let mut command = b.command(&site);
            command
                .args(["plan", "-no-color", "-lock=false"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().expect("started")
        })
        .collect();
    for plan in plans {
        support::ran(plan.wait_with_output().expect("ended"))
            .ok()
            .shows(&["1 to add"]);
    }
    let [name] = &unpacked(&b)[..] else {
        panic!("{:?}", unpacked(&b))
    };
    let dir = b.home().join(".cache/monoform/packed");
    let file = dir.join(name).join(executable_name());
    // Two faults: the file is cut off, as after a crash of the machine; and it is changed without a change of its size,
    // with and without a lock file.
    std::fs::write(&file, "").expect("written");
    apply(&b, &site).ok().shows(&["1 added"]);
    let mut bytes = std::fs::read(&file).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).expect("written");
    b.run_program(&site, &["plan", "-no-color"])
        .ok()
        .shows(&["No changes."]);
    assert_ne!(std::fs::read(&file).expect("read"), bytes, "unpacked again");
    std::fs::write(&file, &bytes).expect("written");
    std::fs::remove_file(b.dir().join(".terraform.lock.hcl")).expect("removed");
    b.run_program(&site, &["plan", "-no-color"])
        .ok()
        .shows(&["No changes."]);
    assert_ne!(
        std::fs::read(&file).expect("read"),
        bytes,
        "unpacked again without a lock file"
    );
    // The process was killed while it was unpacking.
    std::fs::remove_dir_all(dir.join(name)).expect("removed");
    let staging = dir.join(format!(".{name}.new"));
    std::fs::create_dir(&staging).expect("a directory");
    std::fs::write(staging.join(executable_name()), "half").expect("written");
    b.run_program(&site, &["plan", "-no-color"])
        .ok()
        .shows(&["No changes."]);
    assert_eq!(unpacked(&b).len(), 1, "{:?}", unpacked(&b));
}

#[test]
fn a_damaged_pack_is_refused() {
    let (a, site) = packed(&[]);
    a.run_program(&site, &["pack", "-verify", "-no-color"])
        .ok()
        .shows(&["is whole", "not signed"]);
    let whole = std::fs::read(&site).expect("read");
    let listed = a.run_program(&site, &["pack", "-list", "-json"]).ok().json();
    let executable = usize::try_from(listed["executable"]["size"].as_u64().expect("a size")).expect("a size");
    let content = executable + (whole.len() - executable) / 2;
    for (what, bytes) in [
        ("content", changed(&whole, content)),
        ("index", changed(&whole, whole.len() - 100)),
        ("cut off", whole[..whole.len() - 1000].to_vec()),
    ] {
        let damaged = a.dir().join("damaged");
        std::fs::write(&damaged, bytes).expect("written");
        let flag = damaged.display().to_string();
        let verified = a.run(&["pack", "-verify", "-no-color", &flag]);
        verified.fails_with(&["Cannot verify the pack", "damaged", "copy it again"]);
        // The executable still runs, and reports why the pack in it cannot be used.
        make_executable(&damaged);
        let checked = a.run_program(&damaged, &["self-check", "-json"]);
        assert_eq!(checked.status, 1, "{what}: {}", checked.all());
        let checked = checked.json();
        assert_eq!(checked["whole"], false, "{what}: {checked:#}");
        assert!(
            checked["problems"].to_string().contains("damaged"),
            "{what}: {checked:#}"
        );
        a.run_program(&damaged, &["self-check", "-no-color"])
            .fails_with(&["damaged", "copy it again"]);
        let b = Workspace::with(&[("main.tf", MAIN)]);
        let planned = b.run_program(&damaged, &["plan", "-no-color"]);
        assert_eq!(planned.status, 1, "{what}: {}", planned.all());
        assert!(planned.all().contains("damaged"), "{what}: {}", planned.all());
    }
    a.run(&["pack", "-verify"]).fails_with(&["carries no pack"]);
}

fn changed(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

#[test]
fn packs_are_signed_listed_taken_over_and_unpacked() {
    let a = with_provider();
    for (name, text) in [
        ("private.pem", PRIVATE),
        ("public.pem", PUBLIC),
        ("other.pem", PUBLIC_OF_ANOTHER),
    ] {
        a.write(name, text);
    }
    let lean = support::lean();
    let pack = |args: &[&str]| a.run_program(lean, &[&["pack", "-no-color"], args].concat());
    pack(&[
        "-out=site",
        "-provider=example.com/acme/null@~>3.1",
        "-sign=private.pem",
    ])
    .ok();
    pack(&["-verify", "-trust=public.pem", "site"])
        .ok()
        .shows(&["signed with the key"]);
    pack(&["-verify", "-trust=other.pem", "site"]).fails_with(&["not trusted", "not with"]);
    pack(&["-list", "site"])
        .ok()
        .shows(&["example.com/acme/null v3.2.3", "Signed with the key"]);
    let site = a.dir().join("site");
    let check = |args: &[&str]| a.run_program(&site, &[&["self-check", "-no-color"], args].concat());
    check(&["-trust=public.pem"]).ok().shows(&[
        "example.com/acme/null v3.2.3",
        "signed with the key",
        "Nothing is damaged.",
    ]);
    check(&["-trust=other.pem"]).fails_with(&["The contents cannot be verified", "not trusted"]);
    let checked = check(&["-json", "-trust=public.pem"]).ok().json();
    assert_eq!(checked["whole"], true, "{checked:#}");
    assert_eq!(
        checked["pack"]["providers"][0]["address"], "example.com/acme/null",
        "{checked:#}"
    );
    assert!(checked["pack"]["verified_bytes"].as_u64() > Some(0), "{checked:#}");
    // The same inputs give the same bytes, even if the providers are copied from a pack.
    pack(&["-out=again", "-sign=private.pem"]).ok();
    pack(&["-out=over", "-from=site", "-sign=private.pem"]).ok();
    let bytes = |name: &str| std::fs::read(a.dir().join(name)).expect("read");
    assert!(bytes("site") == bytes("again"), "from the configuration");
    assert!(bytes("site") == bytes("over"), "taken over");
    pack(&["-out=x", "-executable=site"]).fails_with(&["is a pack already", "-from"]);
    pack(&["-out=x", "-executable=main.tf"]).fails_with(&["not an executable of Monoform"]);
    pack(&["-out=x", "-provider=example.com/acme/null@>=9"]).fails_with(&["example.com/acme/null"]);
    assert!(!a.exists("x"));
    // Other programs can use the mirror.
    a.run_program(lean, &["unpack", "-from=site", "mirror"]).ok();
    let file = (a.dir().join("mirror").join(PROVIDER).join("3.2.3")).join(support::registry::platform());
    assert!(file.join(executable_name()).is_file());
    let b = Workspace::with(&[("main.tf", MAIN)]);
    let mirror = format!("-plugin-dir={}", a.dir().join("mirror").display());
    b.run(&["init", "-no-color", &mirror]).ok();
    b.run(&["plan", "-no-color"]).ok().shows(&["1 to add"]);
}

#[test]
fn an_update_is_carried_as_a_difference() {
    let (a, _) = packed(&[]);
    a.write("private.pem", PRIVATE);
    a.write("public.pem", PUBLIC);
    a.write("other.pem", PUBLIC_OF_ANOTHER);
    let newer =
        (a.home().join(".terraform.d/plugins").join(PROVIDER).join("3.2.4")).join(support::registry::platform());
    std::fs::create_dir_all(&newer).expect("a directory");
    std::fs::write(newer.join("terraform-provider-null_v3.2.4"), "#!/bin/sh\nexit 1\n").expect("written");
    let lean = support::lean();
    let pack = |args: &[&str]| a.run_program(lean, &[&["pack", "-no-color"], args].concat());
    pack(&["-out=new", "-from=site", "-config=.", "-sign=private.pem"])
        .ok()
        .shows(&["2 packages"]);
    pack(&[
        "-out=update",
        "-since=site",
        "-from=site",
        "-config=.",
        "-sign=private.pem",
    ])
    .ok();
    let size = |name: &str| std::fs::metadata(a.dir().join(name)).expect("a file").len();
    assert!(size("update") < 10_000, "{} bytes", size("update"));
    pack(&["-update=update", "-out=refused", "-trust=other.pem", "site"]).fails_with(&["not trusted"]);
    assert!(!a.exists("refused"));
    // The old pack applies the update to itself.
    a.run_program(
        a.dir().join("site"),
        &["pack", "-update=update", "-out=made", "-trust=public.pem"],
    )
    .ok();
    let bytes = |name: &str| std::fs::read(a.dir().join(name)).expect("read");
    assert!(bytes("made") == bytes("new"));
    a.run_program(a.dir().join("made"), &["version"]).ok();
    pack(&["-update=update", "-out=made", "new"]).fails_with(&["was made for another pack"]);
}

#[test]
fn options_that_mean_nothing_together_are_refused() {
    let w = Workspace::new();
    for (args, text) in [
        (&["pack"][..], "-out=FILE is needed"),
        (&["pack", "-list", "-verify"], "only one of"),
        (&["pack", "-list", "-out=x"], "write no file"),
        (&["pack", "-verify", "-sign=x"], "no option that makes one"),
        (&["pack", "-out=x", "-trust=y"], "-trust needs"),
        (&["pack", "-out=x", "-json"], "-json needs"),
        (&["pack", "-out=x", "-compress=23"], "from 1 to 22"),
        (&["pack", "-out=x", "y"], "Too many command line arguments"),
        (&["pack", "-out=x", "-platform=here", "-provider=a/b"], "no platform"),
        (&["pack", "-out=x", "-provider=a/b/c/d"], "Invalid provider argument"),
        (&["pack", "-out=x", "-provider=a/b@~"], "Invalid provider argument"),
        (
            &["pack", "-out=x", "-provider=terraform.io/builtin/terraform"],
            "part of the language",
        ),
        (&["pack", "-out=x", "-sign=none.pem"], "none.pem cannot be used"),
        (&["pack", "-out=x"], "No configuration files"),
        (&["unpack"], "No output directory specified"),
        (&["unpack", "x"], "carries no pack"),
    ] {
        w.run(&[args, &["-no-color"]].concat()[..]).fails_with(&[text]);
    }
    assert!(!w.exists("x"));
}
