//! Authentication, and verification of host keys.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sshd::{self, PASSWORD, Sshd, key, public, user, user_key};
use crate::{apply, object};
use support::Workspace;

const HELLO: &str = "provisioner \"remote-exec\" {\n  inline = [\"echo hello from $((40 + 2))\"]\n}\n";

const SAID: &str = "terraform_data.a (remote-exec): hello from 42";

/// Returns a workspace in which a command runs over this connection.
fn saying(connection: &str) -> Workspace {
    Workspace::with(&[("main.tf", &object(&format!("{connection}{HELLO}")))])
}

pub fn passwords() {
    let password = format!("password = \"{PASSWORD}\"");
    for (rules, way) in [
        ("PasswordAuthentication yes", "Accepted password"),
        (
            "KbdInteractiveAuthentication yes\nUsePAM yes",
            "Accepted keyboard-interactive/pam",
        ),
    ] {
        let server = Sshd::start(rules);
        apply(&saying(&server.connection(&password))).ok().shows(&[
            SAID,
            "Password: true",
            "Private key: false",
            "Connected!",
        ]);
        assert!(server.log().contains(way), "{}", server.log());
    }
    // A key and a password are both required.
    let server = Sshd::start("PasswordAuthentication yes\nAuthenticationMethods publickey,password");
    let both = format!("{password}\nprivate_key = file(\"{}\")", user_key().display());
    apply(&saying(&server.connection(&both))).ok().shows(&[SAID]);
    assert!(server.log().contains("Partial publickey"), "{}", server.log());
}

pub fn wrong_password_is_reported() {
    let server = Sshd::start("PasswordAuthentication yes");
    let w = saying(&server.connection("password = \"wrong\"").replace("30s", "5s"));
    let began = Instant::now();
    let told = format!(
        "timeout - last error: SSH authentication failed ({}@127.0.0.1:{}): ssh: handshake failed: ssh: unable to authenticate, \
         attempted methods [none password]",
        user(),
        server.port
    );
    apply(&w).fails_with(&["remote-exec provisioner error", &told]);
    assert!(began.elapsed() < Duration::from_secs(15));
    // Attempts are made at once, and after one, three and seven seconds. The last one is after the time limit.
    let tries = server.log().matches("Failed password").count();
    assert!((2..=3).contains(&tries), "{tries} tries");
    assert_eq!(w.state()["resources"][0]["instances"][0]["status"], "tainted");
}

pub fn keys_of_every_form() {
    let mut keys: Vec<PathBuf> = vec![user_key()];
    for (name, options) in [
        ("rsa_openssh", &["-t", "rsa", "-b", "2048"][..]),
        ("rsa_pkcs1", &["-t", "rsa", "-b", "3072", "-m", "PEM"]),
        ("rsa_pkcs8", &["-t", "rsa", "-b", "2048", "-m", "PKCS8"]),
        ("p256_openssh", &["-t", "ecdsa", "-b", "256"]),
        ("p384_sec1", &["-t", "ecdsa", "-b", "384", "-m", "PEM"]),
        ("p521_pkcs8", &["-t", "ecdsa", "-b", "521", "-m", "PKCS8"]),
        ("p521_openssh", &["-t", "ecdsa", "-b", "521"]),
    ] {
        keys.push(key(name, options));
    }
    let all: String = keys
        .iter()
        .map(|key| std::fs::read_to_string(public(key)).expect("a key"))
        .collect();
    let w = Workspace::new();
    w.write("authorized", &all);
    let server = Sshd::start(&format!("AuthorizedKeysFile {}", w.dir().join("authorized").display()));
    let list: Vec<String> = keys.iter().map(|key| format!("\"{}\"", key.display())).collect();
    w.write(
        "main.tf",
        &object(&format!(
            "for_each = toset([{}])\n{}provisioner \"remote-exec\" {{\n  inline = [\"echo in with ${{basename(each.key)}}\"]\n}}\n",
            list.join(", "),
            server.connection("private_key = file(each.key)")
        )),
    );
    let ran = apply(&w).ok();
    for key in &keys {
        let name = key.file_name().expect("a name").to_string_lossy();
        assert!(ran.stdout.contains(&format!("in with {name}")), "{name}: {}", ran.all());
    }
    assert_eq!(server.log().matches("Accepted publickey").count(), keys.len());
    assert!(!server.log().contains("ssh-rsa SHA256"), "no SHA-1: {}", server.log());
}

pub fn a_locked_key_is_refused() {
    let server = Sshd::usual();
    for format in ["RFC4716", "PEM", "PKCS8"] {
        let locked = key(&format!("locked_{format}"), &["-t", "rsa", "-b", "2048", "-m", format]);
        let status = Command::new("ssh-keygen")
            .args(["-q", "-p", "-P", "", "-N", "secret", "-m", format, "-f"])
            .arg(&locked)
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("ssh-keygen runs").success());
        apply(&saying(
            &server.connection(&format!("private_key = file(\"{}\")", locked.display())),
        ))
        .fails_with(&["password protected keys are not supported"]);
    }
}

/// Signs a key; returns the path of the certificate.
fn sign(authority: &Path, key: &Path, options: &[&str]) -> PathBuf {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-s"])
        .arg(authority)
        .args(["-I", "test"])
        .args(options)
        .arg(public(key))
        .status();
    assert!(status.expect("ssh-keygen runs").success());
    let name = format!("{}-cert.pub", key.display());
    name.into()
}

pub fn certificates() {
    let authority = key("users_authority", &["-t", "ecdsa"]);
    let server = Sshd::start(&format!(
        "AuthorizedKeysFile none\nTrustedUserCAKeys {}",
        public(&authority).display()
    ));
    for (name, options) in [
        ("signed_ed25519", &["-t", "ed25519"][..]),
        ("signed_rsa", &["-t", "rsa", "-b", "2048"]),
        ("signed_ecdsa", &["-t", "ecdsa", "-b", "256"]),
    ] {
        let own = key(name, options);
        let certificate = sign(&authority, &own, &["-n", &user()]);
        let arguments = format!(
            "private_key = file(\"{}\")\ncertificate = file(\"{}\")",
            own.display(),
            certificate.display()
        );
        apply(&saying(&server.connection(&arguments)))
            .ok()
            .shows(&[SAID, "Certificate: true"]);
    }
    assert_eq!(
        server.log().matches("Accepted publickey").count(),
        3,
        "{}",
        server.log()
    );
    let other = format!(
        "private_key = file(\"{}\")\ncertificate = file(\"{}-cert.pub\")",
        user_key().display(),
        key("signed_rsa", &[]).display()
    );
    apply(&saying(&server.connection(&other))).fails_with(&["it is for another key than private_key"]);
}

/// An SSH agent that lives as long as the test.
struct Agent {
    process: Child,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Agent {
    fn with(keys: &[PathBuf]) -> Agent {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("agent");
        let process = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("ssh-agent starts");
        let began = Instant::now();
        while !socket.exists() {
            assert!(began.elapsed() < Duration::from_secs(10), "ssh-agent does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
        for key in keys {
            let added = Command::new("ssh-add")
                .arg("-q")
                .arg(key)
                .env("SSH_AUTH_SOCK", &socket)
                .status();
            assert!(added.expect("ssh-add runs").success());
        }
        Agent {
            process,
            socket,
            _dir: dir,
        }
    }
}

pub fn agents() {
    let mut keys: Vec<PathBuf> = (0..4)
        .map(|n| key(&format!("unknown_{n}"), &["-t", "ed25519"]))
        .collect();
    keys.push(key("agent_rsa", &["-t", "rsa", "-b", "2048"]));
    let agent = Agent::with(&keys);
    let socket = agent.socket.display().to_string();
    let allowed = public(&keys[4]);
    let server = Sshd::start(&format!("AuthorizedKeysFile {}\nMaxAuthTries 3", allowed.display()));
    let in_agent = |more: &str| {
        let connection = server
            .connection(more)
            .replace("agent = false\n", "")
            .replace("30s", "1s");
        let both = "provisioner \"remote-exec\" {\n  inline = [\"ssh-add -l | wc -l\"]\n}\n";
        Workspace::with(&[("main.tf", &object(&format!("{connection}{both}")))]).env("SSH_AUTH_SOCK", socket.clone())
    };
    // The key is selected by its file, its comment, or the end of its comment. The agent is forwarded, too.
    let by_file = format!("agent_identity = \"{}\"", keys[4].display());
    for identity in [
        by_file.as_str(),
        "agent_identity = \"agent_rsa\"",
        "agent_identity = \"nt_rsa\"",
    ] {
        apply(&in_agent(identity))
            .ok()
            .shows(&["SSH Agent: true", "terraform_data.a (remote-exec): 5"]);
    }
    // The agent offers too many other keys before the right one.
    apply(&in_agent("")).fails_with(&["timeout - last error"]);
    // If the agent is switched off, it is not used; if it is required and missing, that is an error.
    let w = saying(&server.connection("").replace("30s", "1s")).env("SSH_AUTH_SOCK", socket.clone());
    apply(&w).fails_with(&["attempted methods [none]"]);
    apply(&saying(&server.connection("").replace("agent = false", "agent = true")))
        .fails_with(&["SSH agent requested but SSH_AUTH_SOCK not-specified"]);
}

/// Returns a connection that checks the host key in this file.
fn checking(server: &Sshd, file: &Path) -> String {
    server.connection(&format!(
        "private_key = file(\"{}\")\nhost_key = file(\"{}\")",
        user_key().display(),
        file.display()
    ))
}

pub fn host_keys() {
    let server = Sshd::usual();
    for own in sshd::host_keys() {
        // The server prefers one type of key, but the connection requests the type of `host_key`.
        let w = saying(&checking(&server, &public(own)));
        apply(&w).ok().shows(&[SAID, "Checking Host Key: true"]);
    }
    for (name, options) in [
        ("stranger_ed25519", &["-t", "ed25519"][..]),
        ("stranger_rsa", &["-t", "rsa", "-b", "2048"]),
    ] {
        let stranger = key(name, options);
        let connection = checking(&server, &public(&stranger)).replace("30s", "2s");
        apply(&saying(&connection)).fails_with(&["ssh: handshake failed: knownhosts: key mismatch"]);
    }
    // The server has no key of this type.
    let only = Sshd::start(&format!(
        "HostKeyAlgorithms ssh-ed25519\nHostKey {}",
        sshd::host_keys()[0].display()
    ));
    let connection = checking(&only, &public(&sshd::host_keys()[2])).replace("30s", "2s");
    apply(&saying(&connection)).fails_with(&["mismatch"]);
}

pub fn host_certificates() {
    let authority = key("hosts_authority", &["-t", "ed25519"]);
    for (name, options, names, problem) in [
        ("signed_host_rsa", &["-t", "rsa", "-b", "2048"][..], "127.0.0.1", None),
        ("signed_host_ecdsa", &["-t", "ecdsa"], "other,127.0.0.1", None),
        (
            "signed_host_other",
            &["-t", "ed25519"],
            "other.example",
            Some("for other names: other.example"),
        ),
    ] {
        let own = key(name, options);
        let certificate = sign(&authority, &own, &["-h", "-n", names]);
        let server = Sshd::start(&format!(
            "HostKey {}\nHostCertificate {}",
            own.display(),
            certificate.display()
        ));
        let w = saying(&checking(&server, &public(&authority)).replace("30s", "2s"));
        match problem {
            None => drop(apply(&w).ok().shows(&[SAID])),
            Some(problem) => drop(apply(&w).fails_with(&[problem])),
        }
        // The server sends the certificate first, which also proves its key.
        let w = saying(&checking(&server, &public(&own)));
        apply(&w).ok().shows(&[SAID]);
        let stranger = key("another_authority", &["-t", "ed25519"]);
        let w = saying(&checking(&server, &public(&stranger)).replace("30s", "2s"));
        apply(&w).fails_with(&["key mismatch"]);
    }
}
