//! Compares the provisioners `file` and `remote-exec` of Monoform and Terraform, which has both built in: copied files and their modes,
//! output lines, statuses of objects, and states.

use std::path::Path;
use std::time::Instant;

use crate::sshd::Sshd;
use crate::{copies, object};
use support::{Ran, Workspace, monoform, words};

/// One of the programs, in its own workspace.
struct Side {
    program: &'static str,
    w: Workspace,
}

fn sides() -> [Side; 2] {
    [monoform(), "terraform"].map(|program| Side {
        program,
        w: Workspace::new(),
    })
}

impl Side {
    fn apply(&self, main: &str) -> Ran {
        self.w.write("main.tf", main);
        self.w.run_program(self.program, &["init", "-no-color"]).ok();
        self.w
            .run_program(self.program, &["apply", "-no-color", "-auto-approve"])
    }

    /// Returns the lines about the object, without values that differ every time; and, sorted, those that the scripts wrote.
    fn lines(&self, ran: &Ran) -> (Vec<String>, Vec<String>) {
        let here = self.w.dir().display().to_string();
        let lines = (ran.stdout.lines())
            .filter(|line| line.starts_with("terraform_data."))
            // Messages that an operation still runs appear only on a slow machine.
            .filter(|line| !line.contains(": Still "));
        let (mut written, told): (Vec<String>, Vec<String>) = lines
            .map(|line| line.replace(&here, "HERE"))
            .map(|line| line.split(" after ").next().unwrap_or_default().to_owned())
            .map(|line| line.split(" [id=").next().unwrap_or_default().to_owned())
            .map(|line| line.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect())
            .map(without_repetition)
            .partition(|line| written_there(line));
        written.sort();
        (told, written)
    }

    fn statuses(&self) -> Vec<(String, String)> {
        let state = self.w.state();
        let resources = state["resources"].as_array().cloned().unwrap_or_default();
        let one = |r: &serde_json::Value| (r["name"].to_string(), r["instances"][0]["status"].to_string());
        resources.iter().map(one).collect()
    }
}

/// Returns true for a line that a script wrote, not the provisioner itself.
fn written_there(line: &str) -> bool {
    let Some((_, text)) = line.split_once(" (remote-exec): ") else {
        return false;
    };
    let of_the_connection = text.starts_with("Connect") || (text.starts_with("  ") && text.contains(": "));
    !of_the_connection
}

/// Reduces masked numbers to a single 9: their lengths differ each time.
fn without_repetition(line: String) -> String {
    let mut out = String::new();
    for c in line.chars() {
        if c != '9' || !out.ends_with('9') {
            out.push(c);
        }
    }
    out
}

/// Lines that the scripts of "order and output" write, each once.
const SCRIPT_LINES: [&str; 8] = [
    "): one",
    "):   two",
    "): three",
    "): four",
    "): rest",
    "): failing",
    "): script a",
    "): script b",
];

pub fn terraform() {
    let (with_sftp, without) = (Sshd::usual(), Sshd::start(""));
    let log = |w: &Workspace| w.dir().join("log").display().to_string();
    type Case = (&'static str, fn(&Workspace, &str, &str) -> String);
    let cases: &[Case] = &[
        ("copies", |w, connection, _| {
            let copies = copies::copies(&w.dir().join("to"));
            object(&format!("input = \"old\"\n{connection}{copies}"))
        }),
        ("order and output", |_, connection, log| {
            object(&format!(
                "{connection}
provisioner \"remote-exec\" {{
  inline = [\"echo one | tee -a {log}; echo; echo '  two  '; printf 'three\\\\r\\\\n'; echo four >&2\", \"printf rest\"]
}}
provisioner \"remote-exec\" {{
  inline     = [\"echo failing; exit 6\"]
  on_failure = continue
}}
provisioner \"local-exec\" {{
  command = \"echo local >> {log}\"
}}
provisioner \"remote-exec\" {{
  scripts = [\"a.sh\", \"b.sh\"]
}}
provisioner \"remote-exec\" {{
  when   = destroy
  inline = [\"echo end ${{self.input}} >> {log}\"]
}}
input = \"obj\"
triggers_replace = 0
"
            ))
        }),
        ("nothing to say at the end", |_, connection, _| {
            object(&format!(
                "{connection}
triggers_replace = 4
provisioner \"remote-exec\" {{
  when       = destroy
  on_failure = continue
  inline     = [\"echo ${{self.output.none}}\"]
}}
"
            ))
        }),
        ("changed", |_, connection, log| {
            object(&format!(
                "{connection}
provisioner \"remote-exec\" {{
  when   = destroy
  inline = [\"echo end ${{self.input}} >> {log}\"]
}}
triggers_replace = 1
input = sensitive(\"obj\")
provisioner \"remote-exec\" {{
  inline = [\"echo ${{self.input}}\"]
}}
"
            ))
        }),
        ("failure", |_, connection, log| {
            object(&format!(
                "{connection}
triggers_replace = 2
provisioner \"remote-exec\" {{
  inline = [\"echo before >> {log}\", \"exit 7\"]
}}
provisioner \"local-exec\" {{
  command = \"echo after >> {log}\"
}}
"
            ))
        }),
        ("gone", |_, _, _| String::new()),
    ];
    for server in [&with_sftp, &without] {
        let sides = sides();
        for side in &sides {
            copies::source(&side.w);
            // Terraform fails for this link: it announces the length of the link instead of that of the file.
            std::fs::remove_file(side.w.dir().join("src/to_file")).expect("removed");
            copies::target(&side.w, "to");
            side.w.write("log", "");
            side.w.write("a.sh", "echo script a\n");
            side.w.write("b.sh", "#!/bin/bash\necho script b\n");
        }
        for (name, main) in cases {
            let [ours, theirs] = sides.each_ref().map(|side| {
                let ran = side.apply(&main(&side.w, &server.by_key(), &log(&side.w)));
                // The line breaks depend on the length of the script's random name.
                let problem = words(&ran.stderr).contains("Process exited with status 7");
                let tree = copies::tree(&side.w.dir().join("to"));
                (
                    (ran.status, problem, tree, side.w.read("log"), side.statuses()),
                    side.lines(&ran),
                    ran.all(),
                )
            });
            assert_eq!(ours.0, theirs.0, "{name}\n{}\n{}", ours.2, theirs.2);
            let ((told, mut written), (peer_told, peer_written)) = (ours.1, theirs.1);
            assert_eq!(told, peer_told, "{name}\n{}\n{}", ours.2, theirs.2);
            // Terraform does not wait for all output of a script, so its lines can be late or missing.
            for line in peer_written {
                let at = written.iter().position(|one| *one == line);
                let at = at.unwrap_or_else(|| panic!("{name}: without {line:?}\n{}\n{}", ours.2, theirs.2));
                written.remove(at);
            }
            let known = |line: &String| SCRIPT_LINES.iter().any(|one| line.ends_with(one));
            assert!(written.iter().all(known), "{name}: lines of our own {written:?}");
            if *name == "order and output" {
                for line in SCRIPT_LINES {
                    assert_eq!(ours.2.matches(&format!("{line}\n")).count(), 1, "{line}\n{}", ours.2);
                }
            }
        }
    }
}

/// Measures the time of both programs, by hand: cargo test --test provisioners -- --ignored --nocapture timed
pub fn timed() {
    let server = Sshd::usual();
    for side in sides() {
        let began = Instant::now();
        let many = object(&format!(
            "count = 200\n{}provisioner \"remote-exec\" {{\n  inline = [\"true\"]\n}}\n",
            server.by_key()
        ));
        side.apply(&many).ok();
        let name = Path::new(side.program)
            .file_name()
            .unwrap_or_default()
            .display()
            .to_string();
        eprintln!("{name}: 200 times remote-exec in {:?}", began.elapsed());
    }
    for side in sides() {
        let file = std::fs::File::create(side.w.dir().join("large")).expect("a file");
        file.set_len(1 << 30).expect("a length");
        for (what, server) in [("SFTP", &server), ("SCP only", &Sshd::start(""))] {
            let main = format!(
                "{}provisioner \"file\" {{\n  source = \"large\"\n  destination = \"{}/copy\"\n}}\ntriggers_replace = \"{what}\"\n",
                server.by_key(),
                side.w.dir().display()
            );
            let began = Instant::now();
            side.apply(&object(&main)).ok();
            eprintln!(
                "{}: 1 GiB to a server with {what} in {:?}",
                side.program,
                began.elapsed()
            );
        }
        for n in 0..2000 {
            side.w.write(&format!("many/{}/{n}", n % 40), &format!("file {n}\n"));
        }
        let main = format!(
            "{}provisioner \"file\" {{\n  source = \"many\"\n  destination = \"{}/copies\"\n}}\ntriggers_replace = 3\n",
            server.by_key(),
            side.w.dir().display()
        );
        let began = Instant::now();
        side.apply(&object(&main)).ok();
        eprintln!("{}: 2,000 files in {:?}", side.program, began.elapsed());
    }
}
