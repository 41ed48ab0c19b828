//! Working directories whose states are in the fake of HCP Terraform, by the backend `remote` and by a `cloud` block.

use std::sync::Arc;

use serde_json::Value;
use support::{Workspace, which};

use crate::hcp::{Hcp, TOKEN};
use crate::lab::{Lab, Tool, run};

/// Starts a fake of HCP Terraform. Returns it, and a lab for it whose settings have this content of the block
/// `workspaces`.
pub fn made(ty: &'static str, workspaces: &str) -> (Lab, Arc<Hcp>) {
    let hcp = Arc::new(Hcp::start());
    let files = tempfile::tempdir().expect("a directory");
    let certificate = files.path().join("ca.pem");
    std::fs::write(&certificate, &hcp.server.certificate).expect("the certificate");
    let lab = Lab {
        ty,
        settings: format!(
            "hostname = \"{}\"\norganization = \"org\"\ntoken = \"{TOKEN}\"\nworkspaces {{\n{workspaces}\n}}",
            hcp.host()
        ),
        environment: vec![("SSL_CERT_FILE".to_owned(), certificate.display().to_string())],
        workspaces: false,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new((hcp.clone(), files)),
    };
    (lab, hcp)
}

pub fn lab() -> Lab {
    made("remote", "name = \"only\"").0
}

/// Returns the number of states that exist after every tool has applied the same configuration. Each tool writes one: Terraform 1.11 writes
/// the state of a later release again, without the attributes that its `terraform_data` does not have.
pub fn applied_by_all() -> usize {
    tools().len()
}

pub fn tools() -> Vec<Tool> {
    let theirs = which("terraform").map(|_| Tool::Terraform);
    [Some(Tool::Monoform), theirs].into_iter().flatten().collect()
}

pub fn lab_version(tool: Tool) -> String {
    let w = Workspace::new();
    let version = run(&w, tool, &["version", "-json"]).ok().json();
    version["terraform_version"].as_str().unwrap_or_default().to_owned()
}

pub fn names(w: &Workspace, tool: Tool) -> Vec<String> {
    let listed = run(w, tool, &["workspace", "list"]).ok().stdout;
    let names = listed.lines().map(|line| line.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns a directory whose `cloud` block has these settings of workspaces.
pub fn cloud(lab: &Lab, hcp: &Hcp, workspaces: &str) -> Workspace {
    let w = lab.without();
    cloud_block(&w, hcp, workspaces);
    w
}

pub fn cloud_block(w: &Workspace, hcp: &Hcp, workspaces: &str) {
    let text = format!(
        "terraform {{\n  cloud {{\n    hostname = \"{}\"\n    organization = \"org\"\n    token = \"{TOKEN}\"\n    workspaces \
         {{\n{workspaces}\n    }}\n  }}\n}}\n",
        hcp.host()
    );
    w.write("cloud.tf", &text);
}

/// Runs a program that asks questions; each line answers one.
pub fn asked(w: &Workspace, tool: Tool, args: &[&str], answers: &[&str]) -> support::Ran {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;
    let mut command = w.command(tool.path());
    command.args(args).arg("-no-color");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut seen = Vec::new();
    for answer in answers {
        // Input that is written before Terraform asks for it is lost.
        let (mut byte, begin) = ([0], seen.len());
        while stdout.read(&mut byte).is_ok_and(|read| read == 1) {
            seen.push(byte[0]);
            if seen[begin..].ends_with(b"Enter a value:") {
                break;
            }
        }
        let _ = stdin.write_all(format!("{answer}\n").as_bytes());
    }
    drop(stdin);
    stdout.read_to_end(&mut seen).expect("the rest");
    let mut ran = support::ran(child.wait_with_output().expect("it ends"));
    ran.stdout = String::from_utf8_lossy(&seen).into_owned();
    ran
}

pub fn record(w: &Workspace) -> Value {
    serde_json::from_str(&w.read(".terraform/terraform.tfstate")).expect("JSON")
}
