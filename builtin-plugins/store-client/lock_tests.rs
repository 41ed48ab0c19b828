//! Tests of locks with a record in memory, with lost answers and with other programs that act between two requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex, MutexGuard};

use super::*;

/// Fault of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fault {
    #[default]
    None,
    /// The request is carried out. Its answer is lost, so the request is repeated.
    Repeated,
    /// The request is carried out, but the client gets an error.
    Unanswered,
    /// The request has no effect, and the client gets an error.
    Refused,
}

#[derive(Default)]
struct Service {
    record: Option<Found>,
    /// Fault of the next request that creates or removes the record.
    fault: Fault,
    /// Number of times that an existing record is removed before it can be read.
    vanishing: u32,
    creations: u32,
}

#[derive(Clone, Default)]
struct Record(Arc<Mutex<Service>>);

impl Record {
    fn service(&self) -> MutexGuard<'_, Service> {
        self.0.lock().unwrap()
    }

    fn id(&self) -> Option<String> {
        self.service().record.as_ref().map(|found| found.info.id.clone())
    }

    fn hold(&self, id: &str) {
        self.service().record = Some(Found::new(info(id)));
    }
}

#[async_trait]
impl LockRecord for Record {
    fn name(&self) -> String {
        "the lock \"x\"".to_owned()
    }

    fn path(&self) -> String {
        "x".to_owned()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let mut service = self.service();
        service.creations += 1;
        let fault = std::mem::take(&mut service.fault);
        if fault == Fault::Refused {
            return Err(problem(LOCK, "refused").into());
        }
        if service.record.is_some() || service.vanishing > 0 {
            return Ok(Created::Exists);
        }
        service.record = Some(Found::new(info.clone()));
        match fault {
            Fault::None | Fault::Refused => Ok(Created::Done(info.id.clone())),
            Fault::Repeated => Ok(Created::Exists),
            Fault::Unanswered => Err(problem(LOCK, "no answer").into()),
        }
    }

    async fn find(&self, _summary: &str) -> Result<Option<Found>> {
        let mut service = self.service();
        service.vanishing = service.vanishing.saturating_sub(1);
        Ok(service.record.clone())
    }

    async fn remove(&self, _found: &Found) -> Result<Removed> {
        let mut service = self.service();
        let fault = std::mem::take(&mut service.fault);
        if fault == Fault::Refused {
            return Err(problem(UNLOCK, "refused"));
        }
        service.record = None;
        match fault {
            Fault::None | Fault::Refused => Ok(Removed::Done),
            Fault::Repeated => Ok(Removed::Changed),
            Fault::Unanswered => Err(problem(UNLOCK, "no answer")),
        }
    }
}

fn info(id: &str) -> LockInfo {
    LockInfo {
        id: id.to_owned(),
        who: "me@here".to_owned(),
        ..LockInfo::default()
    }
}

fn records(records: &[&Record]) -> Records<'static> {
    records
        .iter()
        .map(|record| Box::new((*record).clone()) as Box<dyn LockRecord>)
        .collect()
}

fn detail(problems: &Diagnostics) -> String {
    details(problems)
}

#[tokio::test]
async fn lock_whose_answer_was_lost_is_the_own_one() {
    for fault in [Fault::None, Fault::Repeated, Fault::Unanswered] {
        let record = Record::default();
        record.service().fault = fault;
        assert_eq!(
            acquire(&records(&[&record]), info("own")).await.unwrap(),
            "own",
            "{fault:?}"
        );
        assert_eq!(record.service().record.as_ref().unwrap().info.path, "x");
        assert_eq!(record.service().creations, 1);
    }
}

#[tokio::test]
async fn lock_with_an_id_of_the_service_is_known_by_the_chosen_id() {
    let record = Record::default();
    record.hold("17");
    record.service().record.as_mut().unwrap().chosen_id = Some("own".to_owned());
    assert_eq!(acquire(&records(&[&record]), info("own")).await.unwrap(), "17");
    assert!(acquire(&records(&[&record]), info("17")).await.is_err());
}

#[tokio::test]
async fn lock_of_another_program_is_reported_with_its_holder() {
    for fault in [Fault::None, Fault::Refused] {
        let record = Record::default();
        record.hold("other");
        record.service().fault = fault;
        let error = acquire(&records(&[&record]), info("own")).await.unwrap_err();
        let LockError::Held { holder, message } = error else {
            panic!("{error:?}")
        };
        assert_eq!(holder.unwrap().id, "other");
        assert!(
            message.starts_with("the state is already locked: the lock \"x\""),
            "{message}"
        );
        assert_eq!(record.id().as_deref(), Some("other"));
    }
}

#[tokio::test]
async fn refused_lock_is_a_failure_and_leaves_nothing() {
    let record = Record::default();
    record.service().fault = Fault::Refused;
    let error = acquire(&records(&[&record]), info("own")).await.unwrap_err();
    assert!(
        matches!(&error, LockError::Failed(problems) if detail(problems) == "refused"),
        "{error:?}"
    );
    assert_eq!(record.id(), None);
}

#[tokio::test(start_paused = true)]
async fn lock_released_between_two_requests_is_taken() {
    let record = Record::default();
    record.service().vanishing = 3;
    assert_eq!(acquire(&records(&[&record]), info("own")).await.unwrap(), "own");
    record.service().record = None;
    record.service().vanishing = u32::MAX;
    let error = acquire(&records(&[&record]), info("own")).await.unwrap_err();
    assert!(matches!(&error, LockError::Held { holder: None, .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn only_a_lock_without_a_known_holder_is_tried_for_again() {
    let record = Record::default();
    record.hold("other");
    acquire(&records(&[&record]), info("own")).await.unwrap_err();
    assert_eq!(std::mem::take(&mut record.service().creations), 1);
    record.service().record.as_mut().unwrap().anonymous = Some("End it.".to_owned());
    let error = acquire(&records(&[&record]), info("own")).await.unwrap_err();
    assert!(detail(&error.into_diagnostics()).ends_with("End it."));
    assert_eq!(record.service().creations, SETTLING_ATTEMPTS);
}

#[tokio::test]
async fn release_whose_answer_was_lost_is_done() {
    for fault in [Fault::None, Fault::Repeated, Fault::Unanswered] {
        let record = Record::default();
        record.hold("own");
        record.service().fault = fault;
        release(&records(&[&record]), "own").await.unwrap();
        assert_eq!(record.id(), None, "{fault:?}");
    }
    let record = Record::default();
    record.hold("own");
    record.service().fault = Fault::Refused;
    let problems = release(&records(&[&record]), "own").await.unwrap_err();
    assert_eq!(
        (detail(&problems), record.id()),
        ("refused".to_owned(), Some("own".to_owned()))
    );
}

#[tokio::test]
async fn release_with_another_id_or_without_a_lock_is_refused() {
    let record = Record::default();
    let problems = release(&records(&[&record]), "own").await.unwrap_err();
    assert_eq!(
        detail(&problems),
        "The state is not locked: nobody holds the lock \"x\"."
    );
    record.hold("other");
    let problems = release(&records(&[&record]), "own").await.unwrap_err();
    assert!(
        detail(&problems).contains("the lock \"x\" has the ID \"other\""),
        "{problems:?}"
    );
    assert_eq!(record.id().as_deref(), Some("other"));
}

#[tokio::test]
async fn several_records_are_taken_together_or_not_at_all() {
    let (first, second) = (Record::default(), Record::default());
    let both = records(&[&first, &second]);
    assert_eq!(acquire(&both, info("own")).await.unwrap(), "own");
    assert!(matches!(holder(&both, LOCK, "own").await.unwrap(), Holder::Own));
    // The second record is missing, as if its program had been killed before creating it. The first one can still be released.
    second.service().record = None;
    assert!(matches!(holder(&both, LOCK, "own").await.unwrap(), Holder::Free));
    release(&both, "own").await.unwrap();
    second.hold("other");
    acquire(&both, info("own")).await.unwrap_err();
    assert_eq!((first.id(), second.id().as_deref()), (None, Some("other")));
    first.hold("own");
    release(&both, "own").await.unwrap_err();
    assert_eq!(
        first.id(),
        None,
        "the own record is released though the other one is not"
    );
}

#[tokio::test]
async fn state_without_records_is_not_locked() {
    let none = records(&[]);
    assert_eq!(acquire(&none, info("own")).await.unwrap(), "");
    release(&none, "").await.unwrap();
}
