//! Diagnostics about the changes of objects: bugs in providers, creations without an answer, and resources that the configuration no
//! longer has.

use syntax::{Diagnostic, Diagnostics};

use super::ObjectOperation;
use crate::objchange::Problem;

/// Builds the warning for a creation request that the provider did not answer: the object may exist although the state does not have it.
pub(super) fn may_exist(s: &ObjectOperation<'_>) -> Diagnostic {
    Diagnostic::warning(
        "Object may exist without being in the state",
        format!(
            "The provider did not answer the request to create {}, so it is not known whether the object exists. Look for it. If it exists, \
             import it or remove it: otherwise the next apply creates another one.",
            s.address
        ),
    )
    .about(s.address)
}

pub(super) fn bug(s: &ObjectOperation<'_>, summary: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        summary,
        format!(
            "{what}\n\nThis is a bug in the provider {}; please report it to its maintainers.",
            s.change.provider.provider
        ),
    )
    .about(s.address)
}

pub(super) fn inconsistent(s: &ObjectOperation<'_>, summary: &str, what: &str, problems: &[Problem]) -> Diagnostics {
    problems
        .iter()
        .map(|p| {
            bug(
                s,
                summary,
                &format!("{what} for {}{}: {}.", s.address, p.path, p.message),
            )
        })
        .collect()
}

pub(super) fn not_configured(address: &addrs::AbsResourceInstance) -> Diagnostic {
    Diagnostic::error(
        "Resource not in configuration",
        format!("The plan changes {address}, which the configuration no longer has."),
    )
}
