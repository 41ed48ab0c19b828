//! A Consul agent in development mode.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use support::ports::ServerPort;

use crate::lab::{Lab, Tool, run};
use crate::server::{Server, Shared, shared};

pub const PROGRAMS: &[&str] = &["consul"];

pub const TESTS: &[(&str, fn())] = &[("keys_are_those_of_terraform", keys)];

fn consul(server: &Server, words: &[&str]) -> String {
    let output = Command::new("consul")
        .args(words)
        .env("CONSUL_HTTP_ADDR", format!("127.0.0.1:{}", server.port))
        .output()
        .expect("consul");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn server() -> Arc<Server> {
    static SERVER: Shared = Shared::new();
    shared(&SERVER, || {
        let reserved = ServerPort::reserve();
        let others = [(); 3].map(|()| ServerPort::reserve());
        let mut command = Command::new(support::which("consul").expect("consul"));
        command.args([
            "agent",
            "-dev",
            "-bind=127.0.0.1",
            "-client=127.0.0.1",
            "-dns-port=-1",
            "-grpc-port=-1",
        ]);
        command.arg(format!("-http-port={}", reserved.number()));
        for (other, port) in ["serf-lan", "serf-wan", "server"].iter().zip(&others) {
            command.arg(format!("-{other}-port={}", port.number()));
        }
        let server = Server::start(reserved, &mut command, vec![Box::new(others)]);
        let end = Instant::now() + Duration::from_secs(60);
        while !consul(&server, &["kv", "put", "ready", "1"]).contains("Success") {
            assert!(Instant::now() < end, "the agent has a leader");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    })
}

fn made(more: &str) -> (Lab, Arc<Server>, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = server();
    let path = format!("teams/a b/{}", COUNT.fetch_add(1, Ordering::SeqCst));
    let lab = Lab {
        ty: "consul",
        settings: format!("address = \"127.0.0.1:{}\"\npath = \"{path}\"\n{more}", server.port),
        environment: Vec::new(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(server.clone()),
    };
    (lab, server, path)
}

pub fn lab() -> Lab {
    made("").0
}

pub fn lab_with_compression() -> Lab {
    made("gzip = true").0
}

fn keys() {
    let (lab, server, path) = made("");
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    let keys = |prefix: &str| -> Vec<String> {
        let listed = consul(&server, &["kv", "get", "-keys", "-separator=", prefix]);
        listed.lines().map(str::to_owned).collect()
    };
    assert_eq!(keys(&path), [path.clone(), format!("{path}-env:dev")]);
    // A state of two megabytes is split into chunks, which the next smaller state removes.
    run(&w, Tool::Monoform, &["workspace", "select", "default"]).ok();
    w.write("big.txt", &"0123456789abcdef".repeat(1 << 17));
    w.write("big.tf", "output \"big\" {\n  value = file(\"big.txt\")\n}\n");
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert_eq!(keys(&format!("{path}/tfstate.")).len(), 5);
    w.write("big.tf", "");
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert_eq!(keys(&format!("{path}/")), Vec::<String>::new());
}
