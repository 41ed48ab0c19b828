//! OpenSSH servers that live as long as a test: on a port of their own, with their own keys and rules.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use support::ports::ServerPort;
use support::which;

/// Password of the user that logs in.
pub const PASSWORD: &str = "pass word";
/// Hash of [`PASSWORD`], in the form of the system's password file.
const PASSWORD_HASH: &str =
    "$6$monoform$Ydl37ZwitiN2WGQXAJGzk4ZcoS8KKY0ZpjhpV3BOzeQmM.m.f9047NG0NSKy1ufBb6zAWTTEtEVTGV/heCCwk.";

/// Returns the name of the user that runs the tests and logs in.
pub fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns true if an sshd can run with its own `/etc/shadow`, which is bind-mounted in a private mount namespace. That requires root and a
/// PAM configuration for sshd.
pub fn may_give_passwords() -> bool {
    let status = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            "test $(id -u) = 0 && test -e /etc/pam.d/sshd && mount -t tmpfs none /run",
        ])
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Makes a key pair. Returns the path of the private key; the public key is beside it.
pub fn key(name: &str, options: &[&str]) -> PathBuf {
    let path = keys().join(name);
    if !path.exists() {
        let status = Command::new(which("ssh-keygen").expect("ssh-keygen"))
            .args(["-q", "-N", "", "-C", name, "-f"])
            .arg(&path)
            .args(options)
            .stdin(Stdio::null())
            .status();
        assert!(status.expect("ssh-keygen runs").success(), "{name}");
    }
    path
}

/// Returns the directory of this run's keys.
pub fn keys() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ssh-keys");
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).expect("a directory");
        dir
    })
}

/// Returns the key that usually lets the user in.
pub fn user_key() -> PathBuf {
    static ONE: OnceLock<PathBuf> = OnceLock::new();
    ONE.get_or_init(|| key("user", &["-t", "ed25519"])).clone()
}

pub fn host_keys() -> &'static [PathBuf; 3] {
    static THREE: OnceLock<[PathBuf; 3]> = OnceLock::new();
    THREE.get_or_init(|| {
        [
            key("host_ed25519", &["-t", "ed25519"]),
            key("host_rsa", &["-t", "rsa", "-b", "2048"]),
            key("host_ecdsa", &["-t", "ecdsa", "-b", "384"]),
        ]
    })
}

pub fn public(key: &Path) -> PathBuf {
    key.with_extension("pub")
}

pub struct Sshd {
    process: Child,
    pub port: u16,
    _reserved: ServerPort,
    dir: tempfile::TempDir,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Sshd {
    /// Starts a server that lets the user in by a key, and has SFTP.
    pub fn usual() -> Sshd {
        Sshd::start("Subsystem sftp internal-sftp\n")
    }

    /// Starts a server with these lines in its configuration.
    pub fn start(lines: &str) -> Sshd {
        Sshd::start_at(ServerPort::reserve(), lines)
    }

    /// Starts a server at a reserved port. The options in `lines` take precedence over the usual ones.
    pub fn start_at(reserved: ServerPort, lines: &str) -> Sshd {
        let port = reserved.number();
        let dir = tempfile::tempdir().expect("a directory");
        let authorized = dir.path().join("authorized_keys");
        std::fs::copy(public(&user_key()), &authorized).expect("copied");
        let host_keys: String = host_keys()
            .iter()
            .map(|key| format!("HostKey {}\n", key.display()))
            .collect();
        // The first value of an option counts. `SHLVL` is set so that Bash does not run the user's startup file, whose output a test might
        // mistake for that of its commands: Bash runs that file for sshd only if `SHLVL` is not set.
        let config = format!(
            "{lines}\nPort {port}\nListenAddress 127.0.0.1\nListenAddress ::1\n{host_keys}PidFile none\nPermitRootLogin yes\n\
             AuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             LogLevel VERBOSE\nMaxStartups 100\nSetEnv SHLVL=1 ZDOTDIR={}\n",
            authorized.display(),
            dir.path().display()
        );
        let file = dir.path().join("sshd_config");
        std::fs::write(&file, config).expect("written");
        let log = std::fs::File::create(dir.path().join("log")).expect("a log");
        let sshd = which("sshd").expect("sshd");
        let mut command = if may_give_passwords() {
            let shadow = dir.path().join("shadow");
            let pam = dir.path().join("pam");
            let all = std::fs::read_to_string("/etc/shadow").expect("read");
            let replaced = all.lines().map(|line| {
                let mut fields: Vec<&str> = line.split(':').collect();
                if fields[0] == user() {
                    fields[1] = PASSWORD_HASH;
                }
                fields.join(":") + "\n"
            });
            std::fs::write(&shadow, replaced.collect::<String>()).expect("written");
            let rules = "auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n";
            std::fs::write(&pam, rules).expect("written");
            let script = format!(
                "mount -t tmpfs none /run && mkdir /run/sshd && mount --bind {} /etc/shadow && mount --bind {} /etc/pam.d/sshd \
                 && exec {} -D -e -f {}",
                shadow.display(),
                pam.display(),
                sshd.display(),
                file.display()
            );
            let mut command = Command::new("unshare");
            command.args(["-m", "--propagation", "private", "sh", "-c", &script]);
            command
        } else {
            let mut command = Command::new(sshd);
            command.args(["-D", "-e", "-f"]).arg(&file);
            command
        };
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd starts");
        let server = Sshd {
            process,
            port,
            _reserved: reserved,
            dir,
        };
        let began = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "sshd: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Returns the arguments of a connection to the server, without authentication.
    pub fn host(&self) -> String {
        format!(
            "host = \"127.0.0.1\"\nport = {}\nuser = \"{}\"\nagent = false\ntimeout = \"30s\"\nscript_path = \"{}/s_%RAND%.sh\"\n",
            self.port,
            user(),
            self.dir.path().display()
        )
    }

    /// Returns a connection block with these arguments, too.
    pub fn connection(&self, more: &str) -> String {
        format!("connection {{\n{}{more}\n}}\n", self.host())
    }

    /// Returns a connection block with the usual key.
    pub fn by_key(&self) -> String {
        self.connection(&format!("private_key = file(\"{}\")", user_key().display()))
    }

    /// Returns the scripts in the server's directory, with their modes.
    pub fn scripts(&self) -> Vec<(String, u32)> {
        use std::os::unix::fs::PermissionsExt;
        let entries = self.dir.path().read_dir().expect("a directory").flatten();
        let scripts = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("s_"));
        scripts
            .map(|entry| {
                let mode = entry.metadata().expect("it is there").permissions().mode();
                (std::fs::read_to_string(entry.path()).expect("text"), mode & 0o7777)
            })
            .collect()
    }
}
