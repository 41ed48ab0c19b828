//! Values that the user typed when a variable was needed early.

use std::sync::Arc;

use super::questions::Questions;
use super::{SetVariables, VariableValue, from_prompt};
use crate::model::Variable;

impl SetVariables {
    /// Has the user asked for required variables that have no value when they are needed.
    #[must_use]
    pub fn asking(self, ask: impl Fn(&Variable) -> Option<String> + Send + Sync + 'static) -> SetVariables {
        SetVariables {
            questions: Some(Arc::new(Questions::new(Box::new(ask)))),
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
        let unanswered = |questions: &Arc<Questions>| questions.answers().values().any(Option::is_none);
        self.questions.as_ref().is_some_and(unanswered)
    }

    /// Returns the value that the user typed for a variable, if it was asked for before.
    pub(super) fn answered(&self, variable: &Variable) -> Option<VariableValue> {
        let text = self.questions.as_ref()?.answers().get(&variable.name)?.clone()?;
        from_prompt(variable, &text).ok()
    }
}

impl Questions {
    /// Returns the value of a required variable without a value, and asks for it the first time.
    #[must_use]
    pub fn value(&self, variable: &Variable) -> Option<VariableValue> {
        if variable.default.is_some() {
            return None;
        }
        from_prompt(variable, &self.text(variable)?).ok()
    }
}
