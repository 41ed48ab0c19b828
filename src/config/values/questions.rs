//! Questions for variables that are needed before a plan is made: by sources of modules, the backend or the encryption.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::Variable;

/// Asks the user for a variable; returns the typed text, or none if the input ended or was interrupted.
type Ask = dyn Fn(&Variable) -> Option<String> + Send + Sync;

/// Typed texts by the names of variables; `None` for a question without an answer.
pub(super) type Answers = BTreeMap<Arc<str>, Option<String>>;

/// Questions of one command. Each variable is asked for once, however often the configuration is loaded.
pub struct Questions {
    ask: Box<Ask>,
    answers: Mutex<Answers>,
}

impl std::fmt::Debug for Questions {
    /// Prints no answers: they may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}

impl Questions {
    pub(super) fn new(ask: Box<Ask>) -> Questions {
        Questions {
            ask,
            answers: Mutex::default(),
        }
    }

    pub(super) fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the text for a variable, and asks for it the first time. After a question without an answer, there are no others.
    pub(super) fn text(&self, variable: &Variable) -> Option<String> {
        let mut answers = self.answers();
        if answers.values().any(Option::is_none) {
            return None;
        }
        let answer = answers
            .entry(variable.name.clone())
            .or_insert_with(|| (self.ask)(variable));
        answer.clone()
    }
}
