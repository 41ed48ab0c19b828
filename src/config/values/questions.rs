//! Questions for variables that are needed before a plan is made: by sources of modules, the backend or the encryption.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{SetVariables, VariableValue, from_prompt};
use crate::model::Variable;

/// Asks the user for a variable; returns the typed text, or none if the input ended or was interrupted.
type Ask = dyn Fn(&Variable) -> Option<String> + Send + Sync;

/// Questions of one command. Each variable is asked for once, however often the configuration is loaded.
pub struct Questions {
    ask: Box<Ask>,
    answers: Mutex<BTreeMap<Arc<str>, Option<String>>>,
}

impl std::fmt::Debug for Questions {
    /// Prints no answers: they may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Questions").finish_non_exhaustive()
    }
}

impl SetVariables {
    /// Has the user asked for required variables that have no value when they are needed.
    #[must_use]
    pub fn asking(self, ask: impl Fn(&Variable) -> Option<String> + Send + Sync + 'static) -> SetVariables {
        SetVariables {
            questions: Some(Arc::new(Questions {
                ask: Box::new(ask),
                answers: Mutex::default(),
            })),
            ..self
        }
    }

    /// Returns the questions, if there may be any.
    #[must_use]
    pub fn questions(&self) -> Option<&Arc<Questions>> {
        self.questions.as_ref()
    }

    /// Returns true if the user gave no answer to a question, so that further questions make no sense.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        let asked = |questions: &Arc<Questions>| questions.answers().values().any(Option::is_none);
        self.questions.as_ref().is_some_and(asked)
    }

    /// Returns the value that the user typed for a variable, if it was asked for before.
    pub(super) fn answered(&self, variable: &Variable) -> Option<VariableValue> {
        let text = self.questions.as_ref()?.answers().get(&variable.name)?.clone()?;
        from_prompt(variable, &text).ok()
    }
}

impl Questions {
    fn answers(&self) -> std::sync::MutexGuard<'_, BTreeMap<Arc<str>, Option<String>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value of a required variable without a value, and asks for it the first time.
    #[must_use]
    pub fn value(&self, variable: &Variable) -> Option<VariableValue> {
        if variable.default.is_some() {
            return None;
        }
        let mut answers = self.answers();
        if answers.values().any(Option::is_none) {
            return None;
        }
        let answer = answers
            .entry(variable.name.clone())
            .or_insert_with(|| (self.ask)(variable));
        from_prompt(variable, answer.as_deref()?).ok()
    }
}
