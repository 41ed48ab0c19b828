//! The commands that run an operation, and what each is called where.

/// A command that runs an operation.
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
    /// Its name at the beginning of a sentence.
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

    /// Doing it, at the beginning of a sentence.
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

    /// The operation that its lock names: the word that Terraform writes there.
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
