//! Graceful stop and cancellation.

use crate::support::{Case, texts};

const MANY: &str = r#"
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      name  = "b"
      value = fake_thing.a.id
    }
    resource "fake_thing" "n" {
      count = 20
      name  = "n${count.index}"
    }
"#;

#[test]
fn stop_completes_running_operations_and_starts_no_others() {
    let mut case = Case::new(MANY);
    case.parallelism = 2;
    let plan = case.plan();
    let stop = case.stop.clone();
    case.remote.hook("create n3", move || stop.request());
    case.remote.lock().turns.insert("create n3".into(), 100);
    case.remote.take_log();
    let diagnostics = case.try_apply(&plan);
    assert!(
        texts(diagnostics.iter()).contains("Operation interrupted: The apply was interrupted"),
        "{}",
        texts(diagnostics.iter())
    );
    let log = case.remote.take_log();
    assert!(log.contains(&"stop".to_owned()), "plugins are told: {log:?}");
    let begun = log.iter().filter(|l| l.starts_with("> create")).count();
    let ended = log.iter().filter(|l| l.starts_with("< create")).count();
    assert_eq!(begun, ended, "what was begun is waited for");
    let at = log.iter().position(|l| l == "> create n3").unwrap();
    assert!(
        !log[at + 1..].iter().any(|l| l.starts_with("> ")),
        "nothing begins afterwards: {log:?}"
    );
    assert_eq!(case.addresses().len(), ended, "and is in the state");
    assert!(ended < 22);
    // The next run carries out the operations that had not begun.
    case.stop = engine::stop::Stop::new();
    case.remote.heal();
    case.apply().assert_settled();
    assert_eq!(case.addresses().len(), 22);
}

#[test]
fn canceled_apply_keeps_results_and_lists_unfinished_operations() {
    let mut case = Case::new(MANY);
    case.parallelism = 2;
    let plan = case.plan();
    let stop = case.stop.clone();
    case.remote.hook("create n3", move || stop.cancel());
    // The call never ends.
    case.remote.lock().turns.insert("create n3".into(), u64::MAX);
    let diagnostics = case.try_apply(&plan);
    assert!(texts(diagnostics.iter()).contains("Operation canceled: "));
    let done = case.addresses();
    let completion = &case.completion;
    assert_eq!((completion.total, completion.done), (22, done.len()));
    let aborted: Vec<String> = completion.aborted.iter().map(|o| o.address.to_string()).collect();
    assert!(aborted.contains(&"fake_thing.n[3]".to_owned()), "{aborted:?}");
    assert!(!done.contains(&"fake_thing.n[3]".to_owned()), "{done:?}");
    assert_eq!(completion.not_begun.len(), 22 - done.len() - aborted.len());
    // The sink must have received all results that the state has.
    assert!(case.results.0.lock().unwrap().same_content(&case.state));
}

#[test]
fn results_reproduce_the_state_at_any_time() {
    let mut case = Case::new(MANY);
    case.apply();
    assert!(case.completion.is_complete());
    assert!(case.results.0.lock().unwrap().same_content(&case.state));
    case.destroy();
    assert!(case.results.0.lock().unwrap().is_empty());
}

#[test]
fn stopped_planning_is_an_error() {
    let case = Case::new(MANY);
    let stop = case.stop.clone();
    case.remote.hook("plan a", move || stop.request());
    let (_, diagnostics) = case.try_plan();
    assert!(texts(diagnostics.iter()).contains("Operation interrupted: Planning was interrupted"));
}

#[test]
fn apply_stopped_before_start_does_nothing() {
    let mut case = Case::new(MANY);
    let plan = case.plan();
    case.stop.request();
    case.remote.take_log();
    let diagnostics = case.try_apply(&plan);
    assert!(diagnostics.has_errors());
    assert!(!case.remote.take_log().iter().any(|l| l.starts_with("> ")));
    assert!(case.state.is_empty());
}
