//! Tests of the thread that writes a journal: waiting, answers, and a full disk.

use std::time::Duration;

use super::*;
use crate::journal::IntentAction;
use crate::journal::replay::{Contents, Verdict};

fn intent(name: &str) -> Intent {
    Intent {
        address: name.to_owned(),
        deposed: None,
        action: IntentAction::Create,
        by: "p".into(),
        planned: String::new(),
    }
}

fn outcome(name: &str) -> Outcome {
    let object = crate::Object::new(0, crate::Attributes::Json(crate::RawJson::parse("{}").unwrap()));
    Outcome {
        address: addrs::parse::resource_instance(name).unwrap(),
        provider: addrs::AbsProviderConfig::root(addrs::Provider::default_for("null")),
        objects: Some(crate::InstanceState {
            current: Some(Arc::new(object)),
            ..crate::InstanceState::default()
        }),
        answers: Answers::Current,
    }
}

/// Begins a journal whose file cannot be written.
fn on_a_full_disk(path: &Path) -> Writer {
    let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let opened = Opened {
        base: Base::default(),
        operation: "apply".into(),
        since: String::new(),
        terraform_version: "1.0.0".into(),
        ended: false,
    };
    Writer::start(path, file, opened, 0, Codec::PLAIN).unwrap()
}

#[test]
fn what_a_full_disk_refuses_does_not_begin_and_no_outcome_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let writer = on_a_full_disk(&path);
    let refused = writer.begin(&intent("a.b")).wait().unwrap_err();
    assert!(refused.to_string().contains("space"), "{refused}");
    let number = writer.outcome(outcome("a.c"));
    let unsaved = writer.sync().wait().unwrap_err();
    assert!(unsaved.to_string().contains("space"), "{unsaved}");
    writer.outcome(outcome("a.d"));
    assert!(writer.wants_compaction());
    // Saving the state after the first outcome has freed space.
    writer.compact(number, Base::default());
    // The thread may do the compaction before or after this request.
    let _ = writer.sync().wait();
    writer.sync().wait().unwrap();
    assert!(!writer.wants_compaction());
    writer.begin(&intent("a.e")).wait().unwrap();
    writer.stop();
    let contents = Contents::read(&fs::read(&path).unwrap());
    assert!(contents.damage.is_empty());
    let Verdict::Continues { replayed, .. } = contents.judge(None).unwrap() else {
        panic!("it continues");
    };
    assert_eq!(replayed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.d"]);
    assert_eq!(
        contents.in_flight().map(|i| i.address.as_str()).collect::<Vec<_>>(),
        ["a.e"]
    );
}

#[test]
fn those_who_wait_at_the_same_time_are_answered_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let writer = Writer::create(&path, Base::default(), "apply", "1.0.0", &Codec::PLAIN).unwrap();
    let threads: Vec<_> = (0..20)
        .map(|i| {
            let writer = writer.clone();
            std::thread::spawn(move || {
                for j in 0..20 {
                    writer.begin(&intent(&format!("a.b[{}]", i * 20 + j))).wait().unwrap();
                    writer.outcome(outcome(&format!("a.b[{}]", i * 20 + j)));
                    writer.sync().wait().unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let contents = Contents::read(&fs::read(&path).unwrap());
    assert_eq!(contents.in_flight().count(), 0);
    let Verdict::Continues { replayed, .. } = contents.judge(None).unwrap() else {
        panic!("it continues");
    };
    assert_eq!(replayed.len(), 400);
    writer.remove().unwrap();
    assert!(!path.exists());
}

/// Runs a future as a simple executor.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl std::task::Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Thread(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn an_intent_is_written_however_many_operations_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let writer = Writer::create(&path, Base::default(), "apply", "1.0.0", &Codec::PLAIN).unwrap();
    let in_flight = || Contents::read(&fs::read(&path).unwrap()).in_flight().count();
    for running in 1..=3 * MANY {
        block_on(writer.begin(&intent(&format!("a.b[{running}]")))).unwrap();
        assert_eq!(in_flight(), running);
    }
    for running in (0..3 * MANY).rev() {
        writer.outcome(outcome(&format!("a.b[{}]", running + 1)));
        block_on(writer.sync()).unwrap();
        assert_eq!(in_flight(), running);
    }
    writer.remove().unwrap();
}

#[test]
fn after_the_end_tickets_fail_instead_of_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::create(
        &dir.path().join("journal"),
        Base::default(),
        "apply",
        "1.0.0",
        &Codec::PLAIN,
    )
    .unwrap();
    writer.stop();
    let (sender, answered) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(writer.sync().wait()).unwrap());
    let answer = answered.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(answer, Err(JournalError::Ended)), "{answer:?}");
}
