//! A pack alone in a root directory that is read-only, and lacks `/proc`, `/dev` and `/tmp`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use support::registry::zip;
use support::server::{Reply, Request, Server};
use support::{Ran, Workspace};

use crate::{install_in_mirror, kinds};

/// Three providers in Go, one on each of the official modules.
const KINDS: [&str; 3] = ["raw6", "frame6", "sdk"];

/// Root directory in which the program runs.
struct Bare {
    root: tempfile::TempDir,
    environment: Vec<(&'static str, String)>,
}

impl Bare {
    /// Creates a root directory with a program at its top, and with the libraries that it needs, if any.
    fn with(program: &Path) -> Bare {
        let bare = Bare {
            root: tempfile::tempdir().expect("a directory"),
            environment: Vec::new(),
        };
        bare.copy(program, Path::new("/site"));
        let listed = Command::new("ldd").arg(program).output().expect("ldd starts");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
            bare.copy(Path::new(library), Path::new(library));
        }
        bare
    }

    fn place(&self, path: &Path) -> PathBuf {
        let place = self.root.path().join(path.strip_prefix("/").expect("an absolute path"));
        std::fs::create_dir_all(place.parent().expect("a parent")).expect("a directory");
        place
    }

    fn copy(&self, from: &Path, to: &Path) {
        std::fs::copy(from, self.place(to)).expect("a copy");
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.place(Path::new(path)), text).expect("a file");
    }

    /// Runs the program in the directory `/cfg`, while the whole root directory is read-only; with `user`, under this
    /// user ID and without privileges.
    fn run(&self, user: Option<u32>, args: &[&str]) -> Ran {
        let user = user.map_or(String::new(), |id| format!("--userspec={id}:{id} "));
        let script = format!(
            "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec chroot {user}\"$0\" /site -chdir=/cfg \"$@\""
        );
        let mut command = Command::new(support::which("unshare").expect("unshare"));
        command.args(namespaces()).args(["--", "/bin/sh", "-c", &script]);
        command.arg(self.root.path()).args(args).arg("-no-color");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        support::ran(command.output().expect("unshare starts"))
    }

    /// Returns the paths of all files but libraries.
    fn listing(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).expect("a directory") {
                let path = entry.expect("an entry").path();
                let name = path
                    .strip_prefix(self.root.path())
                    .expect("inside")
                    .display()
                    .to_string();
                if path.is_dir() {
                    dirs.push(path);
                } else if !name.starts_with("lib") && !name.starts_with("usr/lib") {
                    out.push(name);
                }
            }
        }
        out.sort();
        out
    }
}

/// Returns the options of `unshare` for a mount: root needs only a mount namespace, other users also need a user
/// namespace.
fn namespaces() -> &'static [&'static str] {
    match rustix::process::geteuid().is_root() {
        true => &["-m"],
        false => &["-rm"],
    }
}

/// Returns the program to pack: a static executable, if the environment names one.
fn program() -> PathBuf {
    support::static_monoform().unwrap_or_else(|| support::lean().to_owned())
}

/// Starts a server that stores a state at each path, without locks.
fn state_server() -> Server {
    let states: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::default();
    Server::http(move |request: &Request| {
        let mut states = states.lock().expect("the states");
        let path = request.path().to_owned();
        match request.method() {
            "GET" => states
                .get(&path)
                .map_or(Reply::status(404), |state| Reply::ok(state.clone())),
            "POST" => {
                states.insert(path, request.body.clone());
                Reply::status(200)
            }
            _ => Reply::status(405),
        }
    })
}

pub fn three_providers_and_two_modules() {
    let inner = zip(&[
        (
            "main.tf",
            b"variable \"name\" {}\noutput \"said\" {\n  value = templatefile(\"${path.module}/hello.tftpl\", { name = var.name })\n}\n",
        ),
        ("hello.tftpl", b"hello ${name}"),
    ]);
    let server = Server::https(move |request| match request.path() {
        "/inner.zip" => Reply::ok(inner.clone()),
        "/outer.zip" => {
            let text = format!(
                "variable \"name\" {{}}\nmodule \"inner\" {{\n  source = \"https://{}/inner.zip\"\n  name   = var.name\n}}\n\
                 output \"said\" {{\n  value = \"${{module.inner.said}}${{file(\"${{path.module}}/mark.txt\")}}\"\n}}\n",
                request.header("host")
            );
            Reply::ok(zip(&[("main.tf", text.as_bytes()), ("mark.txt", b"!")]))
        }
        _ => Reply::status(404),
    });
    let states = state_server();
    let mut required = String::new();
    let mut resources = String::new();
    for kind in KINDS {
        required += &format!("    {kind} = {{\n      source = \"example.com/test/{kind}\"\n    }}\n");
        resources += &format!("resource \"{kind}_thing\" \"a\" {{\n  name = module.outer.said\n  size = 1\n}}\n");
    }
    let configuration = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"{}\"\n  }}\n  required_providers {{\n{required}  }}\n}}\n\
         module \"outer\" {{\n  source = \"{}\"\n  name   = \"Ada\"\n}}\n{resources}output \"said\" {{\n  value = \
         [module.outer.said, raw6_thing.a.id, frame6_thing.a.id, sdk_thing.a.id]\n}}\n",
        states.url("/state"),
        server.url("/outer.zip"),
    );

    // Machine A has a network and all programs.
    let a = Workspace::with(&[("main.tf", &configuration)]);
    std::fs::write(a.home().join("roots.pem"), &server.certificate).expect("a file");
    let roots = a.home().join("roots.pem").display().to_string();
    let a = a.env("SSL_CERT_FILE", roots);
    for kind in KINDS {
        install_in_mirror(&a, &kinds::executable(kind), &format!("example.com/test/{kind}"));
    }
    a.run_program(program(), &["pack", "-no-color", "-modules", "-out=site"])
        .ok()
        .shows(&["carries 5 packages"]);

    // Copies only the pack and the configuration.
    let site = a.dir().join("site");
    let bare = Bare::with(&site);
    bare.write("/cfg/main.tf", &configuration);
    assert_eq!(bare.listing(), ["cfg/main.tf", "site"]);
    bare.run(None, &["validate"]).ok();
    let planned = bare.run(None, &["plan"]).ok();
    planned.shows(&["Plan: 3 to add, 0 to change, 0 to destroy.", "hello Ada!"]);
    let applied = bare.run(None, &["apply", "-auto-approve"]).ok();
    applied.shows(&["Apply complete! Resources: 3 added", "hello Ada!", "id-of-hello Ada!"]);
    bare.run(None, &["plan", "-detailed-exitcode"]).ok();
    bare.run(None, &["output"]).ok().shows(&["hello Ada!"]);
    let destroyed = bare.run(None, &["destroy", "-auto-approve"]).ok();
    destroyed.shows(&["Destroy complete! Resources: 3 destroyed."]);
    assert_eq!(bare.listing(), ["cfg/main.tf", "site"]);

    // An incomplete backend block, and a state that `init` would have to migrate.
    let address = format!("    address = \"{}\"\n", states.url("/state"));
    assert!(configuration.contains(&address));
    bare.write("/cfg/main.tf", &configuration.replace(&address, ""));
    bare.run(None, &["plan"]).fails_with(&["address"]);
    bare.write("/cfg/main.tf", &configuration);
    bare.write("/cfg/terraform.tfstate", "{}");
    bare.run(None, &["plan"])
        .fails_with(&["Backend initialization required"]);
}

/// Built-in plugins need no directory at all, and for other plugins, the error explains to a user without privileges
/// what they need.
pub fn without_privileges() {
    if !rustix::process::geteuid().is_root() {
        return support::skip("bare::without_privileges", "root", "is needed to become another user");
    }
    let states = state_server();
    let head = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"{}\"\n  }}\n",
        states.url("/state")
    );
    let ours = format!("{head}}}\nresource \"null_resource\" \"a\" {{\n}}\nresource \"random_pet\" \"a\" {{\n}}\n");
    let theirs = "  required_providers {\n    sdk = {\n      source = \"example.com/test/sdk\"\n    }\n  }\n}\nresource \"sdk_thing\" \"a\" {\n  \
         name = \"a\"\n}\n";
    let a = Workspace::new();
    install_in_mirror(&a, &kinds::executable("sdk"), "example.com/test/sdk");
    a.run_program(
        program(),
        &["pack", "-no-color", "-provider=example.com/test/sdk", "-out=site"],
    )
    .ok();
    let bare = Bare::with(&a.dir().join("site"));
    std::fs::set_permissions(bare.root.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    bare.write("/cfg/main.tf", &ours);
    let nobody = Some(65534);
    bare.run(nobody, &["apply", "-auto-approve"])
        .ok()
        .shows(&["Apply complete! Resources: 2 added"]);
    bare.run(nobody, &["plan", "-detailed-exitcode"]).ok();
    bare.write("/cfg/main.tf", &format!("{head}{theirs}"));
    bare.run(nobody, &["plan"])
        .fails_with(&["Failed to start plugin", "Most plugins need a directory", "TMPDIR"]);
    assert_eq!(bare.listing(), ["cfg/main.tf", "site"]);
}
