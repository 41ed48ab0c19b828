//! Plugins that hang, flood the log, or send nonsense after a good start, and readers that close their end of a pipe.
//! No process or file may be left over.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::signal::Signal;
use support::{Workspace, monoform};

use crate::{no_orphans, script_plugin, start, until};

/// Returns the names of the entries of the temporary directory, except the working directory and the home directory.
fn left(w: &Workspace) -> Vec<String> {
    let root = w.dir().parent().expect("a parent").to_owned();
    let names = std::fs::read_dir(root).expect("a directory");
    let mut names: Vec<String> = names
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name != "work" && name != "home")
        .collect();
    names.sort();
    names
}

/// Returns the IDs of a workspace's processes whose command lines have this text.
pub fn ids(w: &Workspace, text: &str) -> Vec<u32> {
    let mark = format!("HOME={}", w.home().display()).into_bytes();
    let entries = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let of = |entry: std::fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (environment.split(|b| *b == 0).any(|v| v == mark) && line.contains(text)).then_some(id)
    };
    entries.filter_map(of).collect()
}

pub fn signal(ids: &[u32], signal: &str) {
    for id in ids {
        // The process may have ended already.
        let _ = Command::new("kill").args(["-s", signal, &id.to_string()]).output();
    }
}

/// Writes a configuration whose second object waits for a pipe: the provider reads it, and answers nothing until a
/// test writes to it.
fn hanging(w: &Workspace) {
    let fifo = w.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    w.write(
        "main.tf",
        r#"
resource "terraform_data" "before" {
  input = "done before"
}

data "local_file" "a" {
  filename   = "fifo"
  depends_on = [terraform_data.before]
}
"#,
    );
}

/// Waits until the plugin reads the pipe, and until the state has the object before it. The read ends when the result
/// is dropped.
fn until_it_reads(w: &Workspace) -> std::fs::File {
    let writer = crate::open_when_read(&w.dir().join("fifo"));
    until("the first object is saved", || {
        std::fs::read_to_string(w.dir().join("terraform.tfstate")).is_ok_and(|s| s.contains("done before"))
    });
    writer
}

#[test]
fn a_plugin_that_hangs_is_ended_by_two_interrupts() {
    let w = Workspace::new();
    hanging(&w);
    let mut apply = start(&w, &["apply", "-no-color", "-auto-approve"]);
    let _fifo = until_it_reads(&w);
    signal(&ids(&w, "provider local"), "STOP");
    let began = Instant::now();
    crate::interrupt(&mut apply);
    apply.signal(Signal::SIGINT);
    let apply = apply.ends();
    assert_eq!(apply.status, 1, "{}", apply.all());
    assert!(began.elapsed().as_secs() < 25, "{:?}", began.elapsed());
    no_orphans(&w);
    assert!(w.read("terraform.tfstate").contains("done before"));
    assert!(!w.exists(".terraform.tfstate.lock.info"));
    assert_eq!(left(&w), Vec::<String>::new());
}

/// Cancels an apply whose plugin is stopped, and lets the plugin answer as soon as `moment` returns.
fn canceled_with_an_answer(w: &Workspace, moment: impl FnOnce()) {
    hanging(w);
    let mut apply = start(w, &["apply", "-no-color", "-auto-approve"]);
    let mut fifo = until_it_reads(w);
    let plugin = ids(w, "provider local");
    signal(&plugin, "STOP");
    crate::interrupt(&mut apply);
    apply.signal(Signal::SIGINT);
    apply.sees("Two interrupts received.");
    moment();
    // The core may have ended its plugins already, so that nothing reads the pipe.
    let _ = fifo.write_all(b"late\n");
    drop(fifo);
    signal(&plugin, "CONT");
    let apply = apply.ends();
    assert_eq!(apply.status, 1, "{}", apply.all());
    no_orphans(w);
    assert!(w.read("terraform.tfstate").contains("done before"));
    assert_eq!(left(w), Vec::<String>::new());
}

#[test]
fn an_answer_after_the_state_is_released_changes_nothing() {
    let w = Workspace::new();
    canceled_with_an_answer(&w, || {
        until("the state is released", || !w.exists(".terraform.tfstate.lock.info"));
    });
    assert!(!w.read("terraform.tfstate").contains("late"));
}

#[test]
fn an_answer_beside_the_cancellation_leaves_a_whole_state() {
    let w = Workspace::new();
    canceled_with_an_answer(&w, || {});
    // If the answer arrived just before the cancellation, its object is saved; otherwise it is not.
    let objects = w.run(&["state", "list"]).ok();
    let objects: Vec<&str> = objects.stdout.lines().collect();
    let both = ["data.local_file.a", "terraform_data.before"];
    assert!(objects == both || objects == both[1..], "{objects:?}");
}

#[test]
fn a_plugin_that_is_killed_is_named_with_its_end() {
    let w = Workspace::new();
    hanging(&w);
    let apply = start(&w, &["apply", "-no-color", "-auto-approve"]);
    let _fifo = until_it_reads(&w);
    signal(&ids(&w, "provider local"), "KILL");
    let apply = apply.ends();
    apply.fails_with(&["data.local_file.a", "local", "signal"]);
    no_orphans(&w);
    assert!(w.read("terraform.tfstate").contains("done before"));
    assert_eq!(left(&w), Vec::<String>::new());
}

/// Installs a built-in provider behind a script, as a plugin with another name.
fn behind(w: &Workspace, before: &str) {
    script_plugin(
        w,
        "flooding",
        &format!("{before}\nexec {} internal-plugin provider null", monoform()),
    );
    w.write("main.tf", "resource \"null_resource\" \"a\" {\n  provider = flooding\n}\nterraform {\n  required_providers {\n    flooding = { source = \"hashicorp/flooding\" }\n  }\n}\n");
}

#[test]
fn a_plugin_that_floods_its_log_stops_nobody() {
    let w = Workspace::new();
    // The log has endless lines, and one line that never ends.
    behind(&w, "(yes 'a line of the log' >&2) &\n(tr '\\0' 'x' < /dev/zero >&2) &");
    let began = Instant::now();
    for args in [&["plan", "-no-color"][..], &["apply", "-no-color", "-auto-approve"]] {
        let ran = start(&w, args).ends();
        assert_eq!(ran.status, 0, "{}", ran.all().chars().take(2000).collect::<String>());
        assert!(ran.stderr.len() < 100_000, "the log is not printed");
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    no_orphans(&w);
}

#[test]
fn a_plugin_that_answers_garbage_is_an_error() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\nthis is no gRPC"[..],
        &[0; 4096],
        &[0xff; 4096],
        // An HTTP/2 frame that is longer than allowed.
        &[0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0],
        b"",
    ] {
        let w = Workspace::with(&[("main.tf", "resource \"broken_thing\" \"a\" {}\n")]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut some = [0; 64];
                let _ = stream.read(&mut some);
                let _ = stream.write_all(answer);
            }
        });
        script_plugin(&w, "broken", &format!("echo '1|6|tcp|{address}|grpc|'\nexec sleep 300"));
        let began = Instant::now();
        let plan = start(&w, &["plan", "-no-color"])
            .ends()
            .fails_with(&["hashicorp/broken"]);
        assert!(!plan.all().contains("CRASH"), "{}", plan.all());
        assert!(began.elapsed().as_secs() < 40);
        no_orphans(&w);
        assert_eq!(left(&w), Vec::<String>::new());
    }
}

#[test]
fn errors_that_nobody_reads_change_no_status_and_lose_nothing() {
    let w = Workspace::with(&[("main.tf", crate::WAITING), ("go", "")]);
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    let run = |args: &[&str]| {
        let mut command = w.command(monoform());
        let status = command.args(args).stdout(closed()).stderr(closed()).status();
        status.expect("it starts").code().unwrap_or(-1)
    };
    assert!([0, 141].contains(&run(&["apply", "-no-color", "-auto-approve"])));
    assert!(w.read("terraform.tfstate").contains("done before"));
    assert_eq!(run(&["state", "show", "nothing.there"]), 1);
    // Standard output is closed from the start.
    let mut command = w.command("sh");
    command.args([
        "-c",
        "exec \"$0\" \"$@\" >&- 2>&- <&-",
        monoform(),
        "apply",
        "-no-color",
        "-auto-approve",
        "-replace=terraform_data.before",
    ]);
    let status = command.status().expect("sh starts").code();
    assert!([Some(0), Some(1), Some(141)].contains(&status), "{status:?}");
    let state = w.state();
    assert_eq!(state["resources"].as_array().map_or(0, Vec::len), 3, "{state:#}");
    no_orphans(&w);
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    assert_eq!(left(&w), Vec::<String>::new());
}

#[test]
fn two_series_of_applies_at_once_follow_each_other() {
    // scripts/crash runs 2 × 50 rounds.
    let times = support::crash::setting("MONOFORM_CONCURRENT", 6);
    let w = Workspace::with(&[(
        "main.tf",
        "variable \"word\" {}\nresource \"terraform_data\" \"a\" {\n  input = var.word\n}\n",
    )]);
    w.run(&["apply", "-no-color", "-auto-approve", "-var=word=first"]).ok();
    std::thread::scope(|scope| {
        for who in ["one", "two"] {
            let w = &w;
            scope.spawn(move || {
                for i in 0..times {
                    let word = format!("-var=word={who}{i}");
                    w.run(&["apply", "-no-color", "-auto-approve", "-lock-timeout=600s", &word])
                        .ok();
                }
            });
        }
    });
    assert_eq!(
        w.state()["serial"],
        1 + 2 * times,
        "every apply has written once, after the others"
    );
    assert!(!w.exists(".terraform.tfstate.journal") && !w.exists(".terraform.tfstate.pending"));
    no_orphans(&w);
}
