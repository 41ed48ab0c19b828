//! Commands that run an operation, with the words for them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Plan,
    Apply,
    Destroy,
    Refresh,
    Import,
    Console,
}

impl Verb {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verb::Plan => "Plan",
            Verb::Apply => "Apply",
            Verb::Destroy => "Destroy",
            Verb::Refresh => "Refresh",
            Verb::Import => "Import",
            Verb::Console => "Console",
        }
    }

    /// Returns the gerund, for the beginning of a sentence.
    #[must_use]
    pub fn gerund(self) -> &'static str {
        match self {
            Verb::Plan => "Planning",
            Verb::Apply => "Applying",
            Verb::Destroy => "Destroying",
            Verb::Refresh => "Refreshing",
            Verb::Import => "Importing",
            Verb::Console => "Evaluating",
        }
    }

    /// Returns the operation for lock records: the word that Terraform writes.
    #[must_use]
    pub fn lock_operation(self) -> &'static str {
        match self {
            Verb::Plan => "OperationTypePlan",
            Verb::Apply | Verb::Destroy => "OperationTypeApply",
            Verb::Refresh => "OperationTypeRefresh",
            Verb::Import => "import",
            Verb::Console => "OperationTypeInvalid",
        }
    }
}
