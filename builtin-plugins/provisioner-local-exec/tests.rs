//! Tests of the output that users see.

use std::time::Instant;

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::{Attr, Output, Stop};

use super::*;

async fn run_with(config: Config, stop: Stop) -> (Vec<String>, Result<()>) {
    let (output, mut lines) = Output::channel();
    let null = Value::null(Type::map(Type::String));
    let collect = async {
        let mut all = Vec::new();
        while let Some(line) = lines.recv().await {
            all.push(line);
        }
        all
    };
    let (result, lines) = tokio::join!(LocalExec.run(config, null, output, stop), collect);
    (lines, result)
}

async fn run(config: Config) -> (Vec<String>, Result<()>) {
    run_with(config, Stop::never()).await
}

fn command(text: &str) -> Config {
    Config {
        command: text.into(),
        ..Config::default()
    }
}

#[tokio::test]
async fn both_streams_are_shown_line_by_line() {
    let (lines, result) = run(command("echo one; echo two >&2; printf three")).await;
    assert_eq!(
        lines[0],
        r#"Executing: ["/bin/sh" "-c" "echo one; echo two >&2; printf three"]"#
    );
    assert_eq!(&lines[1..], ["one", "two", "three"]);
    assert!(result.is_ok());
}

#[tokio::test]
async fn failures_show_the_status_and_the_end_of_the_output() {
    let (_, result) = run(command("echo out; exit 3")).await;
    let errors = result.unwrap_err();
    assert_eq!(errors.0[0].summary, "local-exec provisioner error");
    assert_eq!(
        errors.0[0].detail,
        "Error running command 'echo out; exit 3': exit status 3. Output: out\n"
    );
    let (_, result) = run(command("kill -9 $$")).await;
    assert!(result.unwrap_err().0[0].detail.contains("signal: killed"));
}

#[tokio::test]
async fn arguments_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        working_dir: dir.path().to_str().unwrap().into(),
        interpreter: vec![Attr::from("sh"), Attr::Null, Attr::from("-c")].into(),
        environment: BTreeMap::from([("A".to_owned(), Attr::from("x y")), ("B".to_owned(), Attr::Null)]).into(),
        quiet: true.into(),
        ..command("pwd; echo \"$A ${B-unset}\"")
    };
    let (lines, _) = run(config).await;
    let here = dir.path().canonicalize().unwrap();
    assert_eq!(
        lines,
        [
            "local-exec: Executing: Suppressed by quiet=true",
            here.to_str().unwrap(),
            "x y unset"
        ]
    );
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    let (lines, result) = run(command("")).await;
    assert_eq!(
        result.unwrap_err().0[0].detail,
        "The argument \"command\" is empty: write what is to be run."
    );
    assert!(lines.is_empty());
}

#[tokio::test]
async fn programs_that_are_not_there() {
    let config = Config {
        interpreter: vec![Attr::from("/no/such/shell")].into(),
        ..command("x")
    };
    let (_, result) = run(config).await;
    assert!(
        result.unwrap_err().0[0]
            .detail
            .starts_with("Error running command 'x': No such file")
    );
}

#[tokio::test]
async fn what_is_left_in_the_background_is_not_waited_for() {
    let start = Instant::now();
    let (lines, result) = run(command("sleep 5 & echo done")).await;
    assert!(result.is_ok() && start.elapsed().as_secs() < 3);
    assert_eq!(lines.last().map(String::as_str), Some("done"));
}

#[tokio::test]
async fn a_line_without_an_end_is_shown_after_a_moment() {
    let (output, mut lines) = Output::channel();
    let null = Value::null(Type::map(Type::String));
    let start = Instant::now();
    let run = LocalExec.run(command("printf wait; sleep 2"), null, output, Stop::never());
    let first = async {
        lines.recv().await;
        assert_eq!(lines.recv().await.as_deref(), Some("wait"));
        assert!(start.elapsed().as_millis() < 1500);
        lines.close();
    };
    drop(tokio::join!(run, first));
}

#[tokio::test]
async fn stopping_ends_the_command_with_its_children_and_shows_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!(
        "trap 'echo bye; exit 7' INT; sleep 300 & echo $! > {}; wait",
        pid.display()
    );
    support::usual_signals();
    let begun = pid.clone();
    let stop = Stop::when(async move {
        // The script sets its trap before it writes the file, so the trap is set once the file has a line.
        while std::fs::read_to_string(&begun).map_or(true, |text| !text.ends_with('\n')) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let (lines, result) = run_with(command(&script), stop).await;
    assert!(
        result.unwrap_err().0[0].detail.contains("exit status 7"),
        "it could end in its own way"
    );
    assert_eq!(lines.last().map(String::as_str), Some("bye"));
    let child = std::fs::read_to_string(&pid).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
    assert!(
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z ")),
        "no child is left"
    );
}

#[test]
fn texts_are_quoted_like_go_does() {
    assert_eq!(quoted_list(&["a\"b\n".to_owned(), "c".to_owned()]), r#"["a\"b\n" "c"]"#);
}
