//! Effects of provisioners on their objects, and their output.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::sshd::Sshd;
use crate::{apply, object};
use support::{Workspace, monoform, ran};

pub fn scripts() {
    let server = Sshd::usual();
    let w = Workspace::with(&[
        ("one.sh", "echo one $0 | sed 's/[0-9][0-9]*/N/g'\n"),
        ("two", "#!/bin/cat\nshown as it is\n"),
        ("short", "x"),
    ]);
    let connection = server.by_key().replace("/s_%RAND%", "/s_%RAND%_%RAND%");
    let exec = |arguments: &str| format!("provisioner \"remote-exec\" {{\n{arguments}\n}}\n");
    w.write(
        "main.tf",
        &object(&format!(
            "{connection}{}{}{}",
            exec("script = \"one.sh\""),
            exec("scripts = [\"two\", \"one.sh\"]"),
            exec("inline = [\"false\", \"printf no-end; sleep 0.4; echo; stty size; echo err >&2\"]"),
        )),
    );
    let output = apply(&w).ok().stdout;
    let lines: Vec<&str> = output
        .lines()
        .filter_map(|line| line.strip_prefix("terraform_data.a (remote-exec): "))
        .filter(|line| !line.starts_with("  ") && !line.contains("onnect"))
        .collect();
    let name = lines
        .first()
        .map(|line| line.trim_start_matches("one "))
        .unwrap_or_default();
    assert!(name.contains("/s_N"), "{output}");
    assert_eq!(
        &lines[1..],
        [
            "#!/bin/cat",
            "shown as it is",
            &format!("one {name}"),
            "no-end",
            "80 40",
            "err"
        ],
        "{output}"
    );
    // The scripts were emptied, and are still executable by everybody.
    assert_eq!(server.scripts(), vec![(String::new(), 0o777); 4]);

    for (arguments, texts) in [
        (
            "inline = [\"echo before\", \"exit 7\"]",
            &[
                "remote-exec provisioner error",
                "error executing \"",
                "Process exited with status 7",
            ][..],
        ),
        (
            "inline = [\"kill -9 $$\"]",
            &["Process exited with status 137 from signal KILL"],
        ),
        ("script = \"short\"", &["Failed to upload script: Error reading script"]),
        ("inline = [\"a\", \"\"]", &["invalid empty string in"]),
        (
            "scripts = [\"one.sh\", \"absent\"]",
            &["Failed to open script 'absent'"],
        ),
    ] {
        w.write("main.tf", &object(&format!("{connection}{}", exec(arguments))));
        drop(std::fs::remove_file(w.dir().join("terraform.tfstate")));
        apply(&w).fails_with(texts);
    }
    // A script that failed is not emptied.
    let failed = server.scripts().into_iter().filter(|(text, _)| !text.is_empty());
    assert_eq!(
        failed
            .map(|(text, _)| text)
            .filter(|text| text.contains("exit 7"))
            .count(),
        1
    );
    for arguments in ["", "inline = [\"a\"]\nscript = \"b\""] {
        w.write("main.tf", &object(&format!("{connection}{}", exec(arguments))));
        w.run(&["validate", "-no-color"])
            .fails_with(&["Set either \"inline\", \"script\" or \"scripts\""]);
    }
}

pub fn order_failures_and_destruction() {
    let server = Sshd::usual();
    let w = Workspace::new();
    let log = w.dir().join("log").display().to_string();
    let note = |text: &str, more: &str| {
        format!("provisioner \"remote-exec\" {{\n  inline = [\"echo {text} >> {log}\"]\n{more}\n}}\n")
    };
    // The resource's connection is the default, and the provisioner's own arguments override it.
    let wrong_port = server.by_key().replace(&format!("port = {}", server.port), "port = 1");
    let own = format!("connection {{\n  host = self.input.host\n  port = {}\n}}", server.port);
    let body = [
        "input = { host = \"127.0.0.1\", name = \"obj\" }\ntriggers_replace = [var.trigger]\n".to_owned(),
        wrong_port,
        note("one ${self.input.name}", &own),
        format!("provisioner \"remote-exec\" {{\n  inline = [\"exit 3\"]\n  on_failure = continue\n{own}\n}}\n"),
        format!("provisioner \"local-exec\" {{\n  command = \"echo local ${{self.input.name}} >> {log}\"\n}}\n"),
        note("gone ${self.input.name}", &format!("when = destroy\n{own}")),
    ]
    .concat();
    let variable = "variable \"trigger\" {\n  default = \"1\"\n}\n";
    w.write("main.tf", &format!("{variable}{}", object(&body)));
    apply(&w).ok().shows(&["1 added"]);
    assert_eq!(w.read("log"), "one obj\nlocal obj\n");
    // Another trigger replaces the object: the destroy-time provisioner of the old object runs before the new one is
    // created.
    w.run(&["apply", "-no-color", "-auto-approve", "-var=trigger=2"]).ok();
    assert_eq!(w.read("log"), "one obj\nlocal obj\ngone obj\none obj\nlocal obj\n");

    // The resource was removed, and its destroy-time provisioners are in the `removed` block.
    std::fs::write(w.dir().join("log"), "").expect("written");
    let removed = |script: &str| {
        format!(
            "removed {{\n  from = terraform_data.a\n  lifecycle {{\n    destroy = true\n  }}\n{}provisioner \"remote-exec\" {{\n    \
             when = destroy\n    inline = [\"{script}\"]\n  }}\n}}\n",
            server.by_key()
        )
    };
    w.write("main.tf", &removed("exit 4"));
    apply(&w).fails_with(&["Process exited with status 4"]);
    assert_eq!(w.state()["resources"].as_array().map(Vec::len), Some(1));
    w.write(
        "main.tf",
        &removed(&format!("echo removed ${{self.input.name}} >> {log}")),
    );
    apply(&w).ok().shows(&["1 destroyed"]);
    assert_eq!(w.read("log"), "removed obj\n");

    // A failure taints the object and skips later provisioners. The next apply replaces the object, without the
    // destroy-time provisioners of the tainted one.
    std::fs::write(w.dir().join("log"), "").expect("written");
    let failing = |status: &str| {
        object(&format!(
            "{}provisioner \"remote-exec\" {{\n  inline = [\"exit {status}\"]\n}}\n{}{}",
            server.by_key(),
            note("after", ""),
            note("end", "when = destroy"),
        ))
    };
    w.write("main.tf", &failing("5"));
    apply(&w).fails_with(&["Process exited with status 5"]);
    assert_eq!(w.state()["resources"][0]["instances"][0]["status"], "tainted");
    w.write("main.tf", &failing("0"));
    apply(&w).ok().shows(&["1 added, 0 changed, 1 destroyed"]);
    assert_eq!(w.read("log"), "after\n");
    // An update runs no provisioner.
    w.write(
        "main.tf",
        &failing("0").replacen("terraform_data\" \"a\" {", "terraform_data\" \"a\" {\n  input = 1\n", 1),
    );
    apply(&w).ok().shows(&["1 changed"]);
    assert_eq!(w.read("log"), "after\n");
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    assert_eq!(w.read("log"), "after\nend\n");
}

pub fn secrets_are_not_shown() {
    let server = Sshd::usual();
    let w = Workspace::new();
    let exec = "provisioner \"remote-exec\" {\n  inline = [\"echo value ${var.value}\"]\n}\n";
    let with = |mark: &str, connection: &str| {
        w.write(
            "main.tf",
            &format!(
                "variable \"value\" {{\n  default = \"public\"\n  {mark} = true\n}}\n{}",
                object(&format!("{connection}{exec}"))
            ),
        );
        drop(std::fs::remove_file(w.dir().join("terraform.tfstate")));
        apply(&w).ok()
    };
    for (mark, word) in [("sensitive", "sensitive"), ("ephemeral", "ephemeral")] {
        let shown = with(mark, &server.by_key());
        let line = format!("terraform_data.a (remote-exec): (output suppressed due to {word} value in config)");
        assert!(
            shown.stdout.contains(&line) && !shown.stdout.contains("value public"),
            "{}",
            shown.all()
        );
    }
    // Sensitive values in the connection do not hide the output.
    let user = format!("user = \"{}\"", crate::sshd::user());
    let connection = server
        .by_key()
        .replace(&user, "user = sensitive(\"USER\")")
        .replace("USER", &crate::sshd::user());
    let shown = with("nullable", &connection);
    assert!(shown.stdout.contains("value public"), "{}", shown.all());
}

fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    })
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{what}: not within 30 seconds"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn interruption_ends_the_command() {
    let server = Sshd::usual();
    // The first script ends on any signal. The second one ignores SIGINT and SIGTERM, so it ends only if its session is closed.
    for script in [
        "echo $$ > PID; exec sleep 300",
        "trap '' INT TERM; echo $$ > PID; while true; do sleep 0.2; done",
    ] {
        let w = Workspace::new();
        let pid = w.dir().join("pid");
        let script = script.replace("PID", &pid.display().to_string());
        w.write(
            "main.tf",
            &object(&format!(
                "{}provisioner \"remote-exec\" {{\n  inline = [\"{script}\"]\n}}\n",
                server.by_key()
            )),
        );
        let child = w
            .command(monoform())
            .args(["apply", "-no-color", "-auto-approve"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        until("the command runs", || {
            std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
        });
        let number = std::fs::read_to_string(&pid).expect("a number").trim().to_owned();
        assert!(is_alive(&number));
        let began = Instant::now();
        let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupted.expect("kill runs").success());
        let parent = child.id();
        let ran = ran(child.wait_with_output().expect("it ends")).fails_with(&["interrupted"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        until("the command ends", || !is_alive(&number));
        assert_eq!(
            w.state()["resources"][0]["instances"][0]["status"],
            "tainted",
            "{}",
            ran.all()
        );
        assert!(children(parent).is_empty());
        until("the connection is closed", || {
            let log = server.log();
            log.matches("Accepted publickey").count() == log.matches("Disconnected from user").count()
        });
    }
}

/// Returns the text of `/proc/PID/status` for each child of a process.
fn children(parent: u32) -> Vec<String> {
    let entries = std::path::Path::new("/proc").read_dir().expect("processes").flatten();
    let statuses = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    statuses
        .filter(|status| status.contains(&format!("PPid:\t{parent}\n")))
        .collect()
}

pub fn a_local_command_writes_a_lot_and_anything() {
    let w = Workspace::with(&[(
        "main.tf",
        &object(
            "provisioner \"local-exec\" {\n  command = \"printf 'a\\\\377b\\\\n'; head -c 100000000 /dev/zero | tr '\\\\0' x | fold -w \
             1000; echo; echo end\"\n}\n",
        ),
    )]);
    let child = w
        .command("sh")
        .args([
            "-c",
            &format!(
                "{} apply -no-color -auto-approve | tail -c 300 > tail; grep VmHWM /proc/self/status",
                monoform()
            ),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let peak = peak_of_children(child.id());
    let ran = ran(child.wait_with_output().expect("it ends")).ok();
    let tail = w.read("tail");
    assert!(
        tail.contains("terraform_data.a (local-exec): end"),
        "{tail} {}",
        ran.all()
    );
    let (all, highest) = peak.join().expect("a number");
    eprintln!("100 MB of output: {highest} KiB of memory at most in one of {all} processes");
    assert!(highest > 0 && highest < 150_000, "{highest} KiB");
}

/// Watches the processes of this executable below a process until they have ended. Returns their number, and the peak memory of the largest
/// one.
fn peak_of_children(parent: u32) -> std::thread::JoinHandle<(usize, u64)> {
    std::thread::spawn(move || {
        let mut seen = std::collections::BTreeSet::new();
        let mut peak = 0;
        while is_alive(&parent.to_string()) {
            let entries = std::path::Path::new("/proc").read_dir().expect("processes").flatten();
            for entry in entries {
                let executable = std::fs::read_link(entry.path().join("exe")).unwrap_or_default();
                let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
                if executable.as_os_str() != monoform() || !below(&entry.file_name().to_string_lossy(), parent) {
                    continue;
                }
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kib = line
                    .and_then(|l| l.trim().split(' ').next())
                    .and_then(|n| n.parse().ok());
                peak = peak.max(kib.unwrap_or(0));
                seen.insert(entry.file_name());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        (seen.len(), peak)
    })
}

/// Returns true if a process is a descendant of `ancestor`.
fn below(pid: &str, ancestor: u32) -> bool {
    let mut pid = pid.to_owned();
    for _ in 0..10 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"));
        match parent {
            Some(parent) if parent == ancestor.to_string() => return true,
            Some(parent) if parent != "0" => pid = parent.to_owned(),
            _ => return false,
        }
    }
    false
}
