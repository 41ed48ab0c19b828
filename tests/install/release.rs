//! Files that `scripts/release` publishes. A script stands for the executable, so that the test does not build and
//! compress it, which takes minutes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use support::{Ran, Workspace};

const STAND_IN: &str = "#!/bin/sh\necho \"standing in for $*\"\n";

fn release(w: &Workspace, dir: &str, variables: &[(&str, &str)]) -> Ran {
    let mut command = w.command(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/release"));
    command
        .args([env!("CARGO_PKG_VERSION"), dir])
        .env("RELEASE_EXECUTABLES", w.dir().join("built"))
        .env("RELEASE_CERTIFICATES", w.dir().join("certificates.pem"))
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .envs(variables.iter().copied());
    support::ran(command.output().expect("the script starts"))
}

/// Runs a shell command in a directory.
fn shell(dir: &Path, command: &str) -> Ran {
    let ran = Command::new("sh").args(["-ec", command]).current_dir(dir).output();
    support::ran(ran.expect("sh starts"))
}

fn workspace() -> Workspace {
    let w = Workspace::with(&[("certificates.pem", "certificates\n")]);
    for name in [
        "linux_amd64/monoform",
        "linux_386/monoform",
        "linux_arm64/monoform",
        "linux_arm/monoform",
        "windows_amd64/monoform.exe",
    ] {
        let name = format!("built/{name}");
        w.write(&name, STAND_IN);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(w.dir().join(name), mode).expect("a mode");
    }
    w.write("built/linux_amd64/monoform.cdx.json", "{}");
    w
}

#[test]
fn release_has_the_executable_in_every_form_and_equal_bytes_each_time() {
    let test = "release_has_the_executable_in_every_form_and_equal_bytes_each_time";
    for program in ["python3", "dpkg-deb", "rpmbuild", "rpm2cpio", "cpio", "unzip", "tar"] {
        if support::needs(program, test).is_none() {
            return;
        }
    }
    let w = workspace();
    let url = [("RELEASE_URL", "https://example.com/v1")];
    for dir in ["one", "two"] {
        let dir = w.dir().join(dir).display().to_string();
        release(&w, &dir, &url).ok().shows(&["not signed"]);
    }
    shell(&w.dir(), "diff -r one two").ok();
    let version = env!("CARGO_PKG_VERSION");
    let one = w.dir().join("one");
    shell(&one, &format!("sha256sum --quiet -c monoform_{version}_SHA256SUMS")).ok();
    for (unpack, executable) in [
        (
            format!("unzip -q monoform_{version}_linux_amd64.zip -d zip"),
            "zip/monoform",
        ),
        (
            format!("mkdir tar && tar xf monoform_{version}_linux_386.tar.gz -C tar"),
            "tar/monoform",
        ),
        (
            format!("unzip -q monoform_{version}_windows_amd64.zip -d exe"),
            "exe/monoform.exe",
        ),
        (
            format!("dpkg-deb -x monoform_{version}-1_armhf.deb deb"),
            "deb/usr/bin/monoform",
        ),
        (
            format!("mkdir rpm && cd rpm && rpm2cpio ../monoform-{version}-1.x86_64.rpm | cpio -id --quiet"),
            "rpm/usr/bin/monoform",
        ),
    ] {
        shell(&one, &unpack).ok();
        let found = std::fs::metadata(one.join(executable)).expect(executable);
        assert_eq!(found.permissions().mode() & 0o777, 0o755, "{executable}");
        assert_eq!(w.read(&format!("one/{executable}")), STAND_IN, "{executable}");
    }
    for page in [
        "deb/usr/share/man/man1/monoform.1.gz",
        "rpm/usr/share/man/man1/monoform.1.gz",
    ] {
        shell(&one, &format!("gzip -dc {page}"))
            .ok()
            .shows(&["standing in for help man"]);
    }
    let zip = shell(&one, &format!("sha256sum < monoform_{version}_windows_amd64.zip"))
        .ok()
        .stdout;
    let scoop: serde_json::Value = serde_json::from_str(&w.read("one/monoform.scoop.json")).expect("JSON");
    assert_eq!(
        scoop["architecture"]["64bit"]["hash"],
        zip.split(' ').next().expect("a sum")
    );
}

#[test]
fn image_has_the_executable_and_certificates_for_both_architectures() {
    let test = "image_has_the_executable_and_certificates_for_both_architectures";
    for program in ["python3", "dpkg-deb", "rpmbuild", "tar"] {
        if support::needs(program, test).is_none() {
            return;
        }
    }
    let w = workspace();
    let dir = w.dir().join("out");
    release(&w, &dir.display().to_string(), &[])
        .ok()
        .shows(&["no manifests"]);
    shell(
        &dir,
        &format!(
            "mkdir image && tar xf monoform_{}_oci.tar -C image",
            env!("CARGO_PKG_VERSION")
        ),
    )
    .ok();
    let blob = |digest: &serde_json::Value| {
        let digest = digest
            .as_str()
            .expect("a digest")
            .strip_prefix("sha256:")
            .expect("SHA-256");
        shell(
            &dir,
            &format!("echo '{digest}  image/blobs/sha256/{digest}' | sha256sum --quiet -c"),
        )
        .ok();
        format!("out/image/blobs/sha256/{digest}")
    };
    let json = |path: &str| -> serde_json::Value { serde_json::from_str(&w.read(path)).expect("JSON") };
    let index = json(&blob(&json("out/image/index.json")["manifests"][0]["digest"]));
    let manifests = index["manifests"].as_array().expect("manifests");
    let architectures: Vec<_> = manifests
        .iter()
        .map(|m| m["platform"]["architecture"].clone())
        .collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
    for manifest in manifests {
        let manifest = json(&blob(&manifest["digest"]));
        let config = json(&blob(&manifest["config"]["digest"]));
        assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/monoform"]));
        let layer = blob(&manifest["layers"][0]["digest"]);
        let listing = shell(&w.dir(), &format!("tar tvzf {layer}")).ok();
        listing.shows(&[
            "-rwxr-xr-x 0/0",
            " monoform\n",
            "etc/ssl/certs/ca-certificates.crt",
            "drwxrwxrwt 0/0",
        ]);
        let sum = shell(&w.dir(), &format!("gzip -dc {layer} | sha256sum | cut -c 1-64"))
            .ok()
            .stdout;
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sum.trim()));
    }
}

#[test]
fn checksums_are_signed_with_the_key_that_is_named() {
    let test = "checksums_are_signed_with_the_key_that_is_named";
    for program in ["python3", "dpkg-deb", "rpmbuild", "gpg"] {
        if support::needs(program, test).is_none() {
            return;
        }
    }
    let w = workspace();
    // The path of the agent's socket is limited, and the usual test directories may be too long.
    let keys = tempfile::Builder::new()
        .prefix("k")
        .tempdir_in("/tmp")
        .expect("a directory");
    let home = keys.path().display().to_string();
    let gpg = format!("GNUPGHOME={home} gpg --batch --quiet");
    shell(
        &w.dir(),
        &format!("{gpg} --passphrase '' --quick-generate-key release@example.com ed25519 sign never"),
    )
    .ok();
    let dir = w.dir().join("out");
    let signing = [("RELEASE_KEY", "release@example.com"), ("GNUPGHOME", &*home)];
    release(&w, &dir.display().to_string(), &signing).ok();
    let sums = format!("monoform_{}_SHA256SUMS", env!("CARGO_PKG_VERSION"));
    shell(&dir, &format!("{gpg} --verify {sums}.sig {sums}")).ok();
    shell(&dir, &format!("echo x >> {sums} && ! {gpg} --verify {sums}.sig {sums}")).ok();
    shell(&w.dir(), &format!("GNUPGHOME={home} gpgconf --kill all")).ok();
}

#[test]
fn version_that_is_not_that_of_the_sources_is_refused() {
    let w = workspace();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/release");
    let ran = support::ran(
        w.command(script)
            .args(["0.0.7", "out"])
            .output()
            .expect("the script starts"),
    );
    assert_eq!(ran.status, 1, "{}", ran.all());
    let expected = format!("Cargo.toml has version {}, not 0.0.7", env!("CARGO_PKG_VERSION"));
    assert!(ran.stderr.contains(&expected), "{}", ran.all());
}

#[test]
fn action_installs_a_release_that_matches_its_checksum() {
    let test = "action_installs_a_release_that_matches_its_checksum";
    for program in ["python3", "dpkg-deb", "rpmbuild", "curl", "bash", "tar"] {
        if support::needs(program, test).is_none() {
            return;
        }
    }
    let w = workspace();
    let version = env!("CARGO_PKG_VERSION");
    let dir = format!("releases/download/v{version}");
    release(&w, &w.dir().join(&dir).display().to_string(), &[]).ok();
    std::fs::create_dir_all(w.dir().join("temporary")).expect("a directory");
    let install = |version: &str, names: &str, processor: &str| {
        let mut command = w.command(Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/actions/setup/install"));
        command
            .env("SETUP_VERSION", version)
            .env("SETUP_NAMES", names)
            .env("SETUP_RELEASES", format!("file://{}/releases", w.dir().display()))
            .env("RUNNER_OS", "Linux")
            .env("RUNNER_ARCH", processor)
            .env("RUNNER_TEMP", w.dir().join("temporary"))
            .env("GITHUB_PATH", w.dir().join("path"))
            .env("GITHUB_OUTPUT", w.dir().join("output"));
        support::ran(command.output().expect("the script starts"))
    };
    install(&format!("v{version}"), "terraform tofu", "ARM64").ok();
    assert_eq!(w.read("output"), format!("version={version}\n"));
    let bin = w.read("path").trim_end().to_owned();
    for name in ["monoform", "terraform", "tofu"] {
        w.run_program(Path::new(&bin).join(name), &["here"])
            .ok()
            .shows(&["standing in for here"]);
    }
    let fails = |ran: Ran, text: &str| {
        assert_ne!(ran.status, 0, "{}", ran.all());
        assert!(ran.stdout.contains(&format!("::error::{text}")), "{}", ran.all());
    };
    fails(install("1", "", "X64"), "\"1\" is no version");
    fails(
        install(version, "", "S390X"),
        "no executable is released for Linux on S390X",
    );
    fails(install(version, "podman", "X64"), "names can be terraform and tofu");
    fails(install("9.9.9", "", "X64"), "file://");
    shell(
        &w.dir().join(&dir),
        &format!("echo x >> monoform_{version}_linux_amd64.tar.gz"),
    )
    .ok();
    fails(
        install(version, "", "X64"),
        &format!("monoform_{version}_linux_amd64.tar.gz is not the file that"),
    );
}
