//! A PostgreSQL server of its own, in a temporary directory.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::{Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use support::ports::ServerPort;

use crate::lab::{Lab, Tool};

pub const PROGRAMS: &[&str] = &["postgres", "psql"];

pub struct Server {
    child: Mutex<Child>,
    pub port: u16,
    more: Vec<String>,
    _reserved: ServerPort,
    dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the directory of the server's programs. The search path may contain only some of them.
fn programs() -> PathBuf {
    let postgres = support::which("postgres").expect("postgres");
    let real = postgres.canonicalize().unwrap_or(postgres);
    real.parent().expect("a directory").to_owned()
}

/// Returns a command that runs a program as the user `postgres` if the tests run as root, because the server refuses
/// to run as root.
fn as_user(program: &Path) -> Command {
    let root = is_root();
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program);
    command
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(|_| (), &[])
    }

    /// Starts a server with the arguments `more`. Before, `prepare` can change the data directory.
    pub fn start_with(prepare: impl FnOnce(&Path), more: &[&str]) -> Server {
        Server::start_on(more, |data| {
            let made = as_user(&programs().join("initdb"))
                .args(["-A", "trust", "-U", "me", "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
                .arg(data)
                .current_dir("/tmp")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(made.is_ok_and(|status| status.success()), "initdb");
            prepare(data);
        })
    }

    /// Starts a standby, and makes this server wait for it with each transaction.
    pub fn standby(&self) -> Server {
        let standby = Server::start_on(&[], |data| {
            let copied = as_user(&programs().join("pg_basebackup"))
                .args(["-h", "127.0.0.1", "-U", "me", "-p", &self.port.to_string()])
                .args(["-R", "-X", "stream", "--checkpoint=fast", "--no-sync", "-D"])
                .arg(data)
                .current_dir("/tmp")
                .stdout(Stdio::null())
                .status();
            assert!(copied.is_ok_and(|status| status.success()), "pg_basebackup");
        });
        assert!(self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'"));
        assert!(self.sql("postgres", "SELECT pg_reload_conf()"));
        standby
    }

    fn start_on(more: &[&str], fill: impl FnOnce(&Path)) -> Server {
        let dir = tempfile::Builder::new()
            .prefix("pg")
            .tempdir_in("/tmp")
            .expect("a directory");
        let data = dir.path().join("data");
        if is_root() {
            let owned = Command::new("chown").arg("postgres:postgres").arg(dir.path()).status();
            assert!(owned.is_ok_and(|status| status.success()), "there is a user postgres");
        }
        fill(&data);
        if is_root() {
            let owned = Command::new("chown")
                .args(["-R", "postgres:postgres"])
                .arg(&data)
                .status();
            assert!(
                owned.is_ok_and(|status| status.success()),
                "the files are those of the server"
            );
        }
        let reserved = ServerPort::reserve();
        let port = reserved.number();
        let more: Vec<String> = more.iter().map(ToString::to_string).collect();
        let server = Server {
            child: Mutex::new(Server::spawn(dir.path(), port, &more)),
            port,
            more,
            _reserved: reserved,
            dir,
        };
        server.wait();
        server
    }

    fn spawn(dir: &Path, port: u16, more: &[String]) -> Child {
        as_user(&programs().join("postgres"))
            .arg("-D")
            .arg(dir.join("data"))
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-k"])
            .arg(dir)
            .args(more)
            .current_dir("/tmp")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres starts")
    }

    fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while !self.sql("postgres", "SELECT 1") {
            assert!(Instant::now() < end, "postgres answers");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Ends the server and its sessions at once, as `pg_ctl stop -m immediate`.
    pub fn kill(&self) {
        let mut child = self.child();
        // The process of an ended server has been waited for, and its number may be that of another one.
        if matches!(child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").args(["-QUIT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }

    /// Starts a server that was killed.
    pub fn start_again(&self) {
        *self.child() = Server::spawn(self.dir.path(), self.port, &self.more);
        self.wait();
    }

    /// Runs a statement as the administrator; returns true if it succeeds.
    pub fn sql(&self, database: &str, statement: &str) -> bool {
        let run = Command::new("psql")
            .args([
                "-q",
                "-h",
                "127.0.0.1",
                "-U",
                "me",
                "-p",
                &self.port.to_string(),
                "-d",
                database,
                "-c",
                statement,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        run.is_ok_and(|status| status.success())
    }
}

/// Ends all other sessions of a lab's database, and their locks with them.
pub fn end_sessions(lab: &Lab) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert!(statement(lab, end), "sessions are ended");
}

/// Runs a statement in a lab's database; returns true if it succeeds.
pub fn statement(lab: &Lab, statement: &str) -> bool {
    let server = lab.server.downcast_ref::<Arc<Server>>().expect("the server");
    let database = lab.settings.split(['/', '?']).nth(3).expect("a database");
    server.sql(database, statement)
}

/// Returns the server that all current labs share.
fn server() -> Arc<Server> {
    static SERVER: OnceLock<Mutex<Weak<Server>>> = OnceLock::new();
    let mut shared = SERVER.get_or_init(Mutex::default).lock().expect("the server");
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

pub fn lab() -> Lab {
    let server = server();
    let port = server.port;
    lab_on(server, &format!("127.0.0.1:{port}"))
}

/// Returns a lab of rows of objects on a server of its own, which can be killed. `hosts` are in the connection string.
pub fn lab_with_objects_on(server: Arc<Server>, hosts: &str) -> Lab {
    objects(lab_on(server, hosts))
}

fn lab_on(server: Arc<Server>, hosts: &str) -> Lab {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    // Advisory locks belong to a database, so each lab has its own.
    let database = format!("states{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    assert!(
        server.sql("postgres", &format!("CREATE DATABASE {database}")),
        "a database"
    );
    Lab {
        ty: "pg",
        settings: format!("conn_str = \"postgres://me@{hosts}/{database}?sslmode=disable\""),
        environment: Vec::new(),
        workspaces: true,
        named_locks: false,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(server),
    }
}

/// Returns a lab whose backend stores states as rows of objects. Terraform does not know this layout.
pub fn lab_with_objects() -> Lab {
    objects(lab())
}

fn objects(lab: Lab) -> Lab {
    Lab {
        settings: format!("{}\nlayout = \"objects\"", lab.settings),
        named_locks: true,
        ..lab
    }
}

/// Returns the result of a query in a lab's database, as `psql` prints it without headings.
pub fn query(lab: &Lab, statement: &str) -> String {
    let server = lab.server.downcast_ref::<Arc<Server>>().expect("the server");
    let database = lab.settings.split(['/', '?']).nth(3).expect("a database");
    let run = Command::new("psql")
        .args(["-qtA", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "me", "-p"])
        .args([&server.port.to_string(), "-d", database, "-c", statement])
        .output()
        .expect("psql starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&run.stdout).trim().to_owned()
}
