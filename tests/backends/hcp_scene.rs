//! A working directory with a fake of HCP Terraform, and the observable results of commands in it.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Ran, Workspace};

use crate::hcp::{self, Hcp};
use crate::hcp_lab;
use crate::hcp_runs::Script;
use crate::lab::{Lab, Tool, run};

/// Observable results of a scenario.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    /// Exit status of each command.
    pub status: Vec<i32>,
    /// Requests that change something.
    pub requests: Vec<String>,
    /// Attributes with which configurations and runs were requested.
    pub asked: Vec<Value>,
    /// Output, without the lines that each program words for itself.
    pub output: Vec<String>,
}

/// Event while a program waits.
pub enum Meanwhile {
    Nothing,
    /// An interrupt.
    Interrupt,
    /// Another user decides, and the run then has this status.
    Decided(&'static str),
}

/// One of the programs, its initialized working directory, the fake server that it uses, and its observable results.
pub struct Scene {
    tool: Tool,
    pub hcp: std::sync::Arc<Hcp>,
    pub w: Workspace,
    seen: Seen,
    _lab: Lab,
}

impl Scene {
    pub fn new(tool: Tool, ty: &'static str, script: Script) -> Scene {
        let (lab, hcp) = hcp_lab::made(ty, "name = \"only\"");
        let w = match ty {
            "cloud" => hcp_lab::cloud(&lab, &hcp, "name = \"only\""),
            _ => {
                let w = lab.without();
                w.write("backend.tf", &lab.block(""));
                w
            }
        };
        run(&w, tool, &["init", "-input=false"]).ok();
        {
            let mut world = hcp.world();
            world.runs.script = script;
            // A `cloud` block creates the workspace during `init`; `backend "remote"` does not, so the fake creates it
            // here.
            let id = world.id("ws");
            let only = world.workspaces.entry("only".to_owned()).or_insert(hcp::Remote {
                id,
                version: "1.11.0".to_owned(),
                ..hcp::Remote::default()
            });
            only.mode = "remote".to_owned();
        }
        hcp.log();
        Scene {
            tool,
            hcp,
            w,
            seen: Seen::default(),
            _lab: lab,
        }
    }

    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.hcp.world().runs.script);
    }

    pub fn run(&mut self, args: &[&str]) -> String {
        let ran = run(&self.w, self.tool, args);
        self.note(&ran)
    }

    pub fn asked(&mut self, args: &[&str], answers: &[&str]) -> String {
        let ran = hcp_lab::asked(&self.w, self.tool, args, answers);
        self.note(&ran)
    }

    /// Runs a command whose whole input is this line. Returns its output.
    pub fn asked_at_once(&mut self, args: &[&str], line: &str) -> String {
        use std::io::Write as _;
        let mut command = self.w.command(self.tool.path());
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A program that refuses to start does not read its input.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
        drop(stdin);
        let ran = support::ran(child.wait_with_output().expect("it ends"));
        self.note(&ran)
    }

    /// Runs a command whose input stays open and empty, with an event meanwhile.
    pub fn unanswered(&mut self, args: &[&str], meanwhile: Meanwhile) -> String {
        let mut command = self.w.command(self.tool.path());
        command.args(args).arg("-no-color");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut out = Vec::new();
        match meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::Interrupt => {
                self.wait_for_run();
                std::thread::sleep(Duration::from_millis(1500));
                let pid = i32::try_from(child.id()).expect("a process");
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGINT)
                    .expect("it lives");
            }
            Meanwhile::Decided(status) => {
                let mut byte = [0];
                while !out.ends_with(b"Enter a value:") && stdout.read(&mut byte).is_ok_and(|read| read == 1) {
                    out.push(byte[0]);
                }
                let mut world = self.hcp.world();
                let run = world.runs.all.last_mut().expect("a run");
                status.clone_into(&mut run.status);
            }
        }
        stdout.read_to_end(&mut out).expect("the rest");
        let mut ran = support::ran(child.wait_with_output().expect("it ends"));
        drop(stdin);
        ran.stdout = String::from_utf8_lossy(&out).into_owned();
        self.note(&ran)
    }

    pub fn wait_for_run(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.hcp.world().runs.all.is_empty() {
            assert!(Instant::now() < end, "no run was started");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn note(&mut self, ran: &Ran) -> String {
        self.seen.status.push(ran.status);
        let host = self.hcp.host();
        self.seen.output.extend(normal(&ran.stdout, &host));
        ran.all()
    }

    pub fn end(mut self) -> Seen {
        let changes = self.hcp.log().into_iter().filter(|line| !line.starts_with("GET "));
        let named = |line: String| without_numbers(&line).replace(" variables", "");
        self.seen.requests = changes.map(named).collect();
        let world = self.hcp.world();
        for configuration in &world.runs.configurations {
            let mut asked = configuration.attributes.clone();
            asked["files"] = json!(configuration.files);
            self.seen.asked.push(asked);
        }
        for run in &world.runs.all {
            let mut asked = run.asked["data"]["attributes"].clone();
            // Terraform 1.11 sends an empty list of variables, too, which is dropped here.
            if asked["variables"] == json!([])
                && let Some(attributes) = asked.as_object_mut()
            {
                attributes.remove("variables");
            }
            self.seen.asked.push(asked);
        }
        drop(world);
        self.seen
    }
}

/// Removes the numbers of identifiers, which count different requests.
fn without_numbers(line: &str) -> String {
    let mut out = String::new();
    for part in line.split_inclusive('-') {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        out.push_str(if digits == 16 { &part[digits..] } else { part });
    }
    out
}

/// Beginnings of explanations that each program words for itself: that a plan is not saved, and the effect of a destroy.
const EXPLANATIONS: &[&str] = &[
    "Note: This plan is not saved.",
    "differ. To apply exactly",
    "Note: You didn't use the -out option",
    "guarantee to take exactly",
    "Every object listed above",
    "Monoform will destroy all",
];

/// Returns the lines of an output without empty ones, and without those that each program words for itself.
fn normal(text: &str, host: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut own_words = false;
    for line in text.lines() {
        let line = line
            .replace(host, "HOST")
            .replace("Terraform", "Monoform")
            .replace("terraform", "monoform")
            .replace("Enter a value: ", "Enter a value:\n");
        for line in line.lines() {
            own_words |= line.starts_with("Running ") || line.starts_with("Interrupt received");
            let ended = line.starts_with("Preparing the remote") || line.starts_with("Gracefully");
            let rule = line.trim_matches(['─', '-']).is_empty();
            let line = line.trim().replace("There is no undo. Only", "Only");
            let explains = EXPLANATIONS.iter().any(|begin| line.starts_with(begin));
            if !own_words && !rule && !explains {
                out.push(without_numbers(&line));
            }
            own_words &= !ended;
        }
    }
    out
}
