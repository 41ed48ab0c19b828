//! Playing of a scenario with one of the programs.

use serde_json::{Map, Value, json};

use super::mask::Masks;
use super::parse::{Scenario, Step};
use crate::{Ran, Workspace};

/// A program, its workspace, and the placeholders for values that differ from run to run.
pub struct Player {
    program: String,
    /// Workspace in which the program runs.
    pub workspace: Workspace,
    /// True if `init` must run before the first command, and after each change of the configuration.
    init: bool,
    masks: Masks,
}

impl Player {
    pub fn new(program: &str, workspace: Workspace, init: bool) -> Player {
        Player {
            program: program.into(),
            workspace,
            init,
            masks: Masks::default(),
        }
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.workspace.run_program(&self.program, args)
    }

    /// Plays all steps and returns the results of the commands.
    pub fn play(&mut self, scenario: &Scenario) -> Vec<Value> {
        let mut out: Vec<Value> = Vec::new();
        let mut changed = true;
        let mut needs_init = false;
        for step in &scenario.steps {
            match step {
                Step::Write(name, text) => {
                    let marks = ["module \"", "required_providers", "null_", "random_", "local_", "lab_"];
                    needs_init |= marks.iter().any(|m| text.contains(m));
                    self.workspace.write(name, text);
                    changed = true;
                }
                Step::Remove(name) => {
                    std::fs::remove_file(self.workspace.dir().join(name)).expect("a file to remove");
                    changed = true;
                }
                Step::Shell(command) => {
                    let ran = self.workspace.run_program("sh", &["-c", command]);
                    if let Some(last) = out.last_mut()
                        && ran.status != 0
                    {
                        last["shell"] = json!(format!("{command} failed: {}", ran.stderr));
                    }
                }
                Step::Run(words) => {
                    if self.init && needs_init && std::mem::take(&mut changed) {
                        // The command itself reports errors of the configuration, too.
                        self.run(&["init", "-no-color", "-input=false"]);
                    }
                    out.push(self.command(words));
                }
            }
        }
        out
    }

    fn command(&mut self, words: &[String]) -> Value {
        let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let mut out = Map::new();
        out.insert("command".into(), json!(words.join(" ")));
        let name = words.first().map(String::as_str).unwrap_or_default();
        match name {
            "plan" | "apply" | "destroy" => {
                let mut planning = vec!["plan", "-no-color", "-input=false", "-out=the.plan"];
                if name == "destroy" {
                    planning.push("-destroy");
                }
                planning.extend(args);
                // The file is removed, because a failed plan leaves the file of an earlier one.
                let file = self.workspace.dir().join("the.plan");
                let _ = std::fs::remove_file(&file);
                let ran = self.run(&planning);
                let mut planned = Map::new();
                self.note(&mut planned, &ran);
                if file.exists() {
                    let shown = self.run(&["show", "-json", "the.plan"]);
                    planned.insert("json".into(), self.json(&shown));
                }
                out.insert("plan".into(), planned.into());
                if name != "plan" && matches!(ran.status, 0 | 2) {
                    let ran = self.run(&["apply", "-no-color", "-input=false", "the.plan"]);
                    let mut applied = Map::new();
                    self.state(&mut applied);
                    self.note(&mut applied, &ran);
                    out.insert("apply".into(), applied.into());
                }
            }
            name => {
                let mut all: Vec<&str> = vec![name];
                let mut args = args;
                if name == "state" && !args.is_empty() {
                    all.push(args.remove(0));
                }
                if !matches!(name, "console") {
                    all.push("-no-color");
                }
                all.extend(args);
                let ran = self.run(&all);
                let mut done = Map::new();
                if name != "validate" {
                    self.state(&mut done);
                }
                self.note(&mut done, &ran);
                out.insert("done".into(), done.into());
            }
        }
        out.into()
    }

    fn json(&self, ran: &Ran) -> Value {
        match serde_json::from_str(&ran.stdout) {
            Ok(value) => self.masks.document(&value),
            Err(_) => json!(format!("not JSON: {}", ran.all())),
        }
    }

    /// If there is a state file, adds its content and the output of `show -json`.
    fn state(&mut self, out: &mut Map<String, Value>) {
        let file = self.workspace.dir().join("terraform.tfstate");
        if let Ok(text) = std::fs::read_to_string(&file) {
            let state: Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("the state is broken: {e}\n{text}"));
            self.masks.learn(&state);
            out.insert("state".into(), self.masks.document(&state));
            let shown = self.run(&["show", "-json"]);
            out.insert("shown".into(), self.json(&shown));
        }
    }

    /// Adds the exit status, the problems, and the part of the output that describes changes.
    fn note(&self, out: &mut Map<String, Value>, ran: &Ran) {
        out.insert("status".into(), json!(ran.status));
        let problems = [problems(&ran.stderr), problems(&ran.stdout)].concat();
        // Each program uses its own name in its messages.
        let named = |p: &String| self.masks.text(p).replace("Monoform", "Terraform");
        let mut problems: Vec<String> = problems.iter().map(named).collect();
        problems.sort();
        if !problems.is_empty() {
            out.insert("problems".into(), json!(problems));
        }
        let text: Vec<String> = told(&ran.stdout).iter().map(|l| self.masks.text(l)).collect();
        if !text.is_empty() {
            out.insert("text".into(), json!(text));
        }
    }
}

/// Returns the lines of a text without the frame around problems.
fn unframed(text: &str) -> Vec<&str> {
    let inside = |l: &'_ str| !l.starts_with('╷') && !l.starts_with('╵');
    let bare = text.lines().filter(|l| inside(l));
    bare.map(|l| l.strip_prefix("│ ").unwrap_or(if l == "│" { "" } else { l }))
        .collect()
}

fn begins_problem(line: &str) -> bool {
    line.starts_with("Error: ") || line.starts_with("Warning: ")
}

/// Returns the headings of problems: severity, summary, object and position.
fn problems(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let lines = unframed(text);
    let mut lines = lines.into_iter().peekable();
    while let Some(line) = lines.next() {
        if !begins_problem(line) {
            continue;
        }
        let mut head = line.to_owned();
        while lines.peek().is_some_and(|l| l.trim().is_empty()) {
            lines.next();
        }
        while let Some(l) = lines.next_if(|l| l.starts_with("  with ") || l.starts_with("  on ")) {
            head.push_str(" |");
            head.push_str(&l[1..]);
        }
        out.push(head);
    }
    out
}

/// Returns the part of an output that describes changes: without progress, problems and prose.
fn told(text: &str) -> Vec<String> {
    let lines = unframed(text);
    let mut out: Vec<String> = Vec::new();
    let mut in_problem = false;
    for line in lines {
        in_problem = (in_problem && !line.starts_with("Apply complete!") && !line.starts_with("Destroy complete!"))
            || begins_problem(line);
        // The advice to apply a saved plan contains the program's name.
        if in_problem || line.ends_with("apply \"the.plan\"") {
            continue;
        }
        let of_the_change = line.starts_with("  ")
            || line.starts_with("-/+ ")
            || line.starts_with("+/- ")
            || line.starts_with(" <= ")
            || line.starts_with("Plan: ")
            || line.starts_with("Changes to Outputs:")
            || line.starts_with("No changes.")
            || line.starts_with("Apply complete!")
            || line.starts_with("Destroy complete!");
        if of_the_change {
            out.push(line.trim_end().to_owned());
        }
    }
    out
}

/// Returns a hash by which a recording and its scenario are matched.
pub fn fingerprint(text: &str) -> String {
    // FNV needs no dependency, and is good enough because the input is not hostile.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Renders a recording with one line for each document, so that diffs can be read.
pub fn to_text(scenario: &str, steps: &[Value]) -> String {
    let mut out = format!("{{\n \"scenario\": \"{}\",\n \"steps\": [", fingerprint(scenario));
    for (i, step) in steps.iter().enumerate() {
        out.push_str(if i == 0 { "\n  {" } else { ",\n  {" });
        for (j, (name, part)) in step.as_object().into_iter().flatten().enumerate() {
            out.push_str(if j == 0 { "" } else { ",\n   " });
            match part.as_object() {
                None => out.push_str(&format!("{}: {part}", json!(name))),
                Some(parts) => {
                    let parts: Vec<String> = parts
                        .iter()
                        .map(|(name, value)| format!("\n    {}: {value}", json!(name)))
                        .collect();
                    out.push_str(&format!("{}: {{{}}}", json!(name), parts.join(",")));
                }
            }
        }
        out.push('}');
    }
    out.push_str("]\n}\n");
    out
}
