//! Comparison of the problems of a run with its expected failures.

use addrs::Referenceable;
use config::TestRun;
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics, Severity};

/// Problems of a plan or an apply, compared with the expected failures.
#[derive(Debug, Default)]
pub struct Compared {
    /// Unexpected problems, and an error for each expected failure that did not happen.
    pub rest: Diagnostics,
    /// True if there are errors other than those about missing expected failures.
    pub other_errors: bool,
    /// True if an expected failure did not happen.
    pub missing: bool,
}

/// Returns true if an object, whose address is `condition_of`, is the subject of an expectation.
fn is_condition_of(condition_of: &str, subject: &Referenceable) -> bool {
    match subject {
        Referenceable::Resource(resource) => match addrs::parse::resource_instance(condition_of) {
            // Only objects of the root module can be expected to fail: a test cannot name others.
            Ok(address) => address.module.is_root() && address.resource.resource == *resource,
            Err(_) => false,
        },
        Referenceable::ResourceInstance(instance) => match addrs::parse::resource_instance(condition_of) {
            Ok(address) => address.module.is_root() && address.resource == *instance,
            Err(_) => false,
        },
        other => other.to_string() == condition_of,
    }
}

/// Returns the index of the expectation that a problem fulfills; `None` if it fulfills none.
fn expected(run: &TestRun, problem: &Diagnostic) -> Option<usize> {
    let of = problem.condition_of.as_deref()?;
    run.expect_failures
        .iter()
        .position(|reference| is_condition_of(of, &reference.subject))
}

/// Turns failures of check blocks into errors; outside of tests they are warnings.
fn raised(mut problem: Diagnostic) -> Diagnostic {
    if problem.extra == Extra::OfCheck && problem.condition_of.is_some() {
        problem.severity = Severity::Error;
    }
    problem
}

/// Removes the failures that a run expects from the problems of its plan or apply.
#[must_use]
pub fn compare(run: &TestRun, problems: Diagnostics) -> Compared {
    let mut seen = vec![false; run.expect_failures.len()];
    let mut out = Compared::default();
    for problem in problems {
        let problem = raised(problem);
        if problem.is_error()
            && let Some(index) = expected(run, &problem)
        {
            seen[index] = true;
            continue;
        }
        out.other_errors |= problem.is_error();
        out.rest.push(problem);
    }
    for (reference, _) in run.expect_failures.iter().zip(seen).filter(|(_, seen)| !seen) {
        out.missing = true;
        out.rest.push(
            Diagnostic::error(
                "Missing expected failure",
                format!(
                    "The run expects that a condition of {} fails, and none of them did.",
                    reference.subject
                ),
            )
            .at(&reference.range),
        );
    }
    out
}

/// Adds warnings to the problems of a plan that was to be applied, if a failure was expected in the apply but happened
/// while planning.
#[must_use]
pub fn explain(run: &TestRun, problems: Diagnostics) -> Diagnostics {
    let mut out = Diagnostics::new();
    for problem in problems {
        if problem.is_error()
            && let Some(index) = expected(run, &problem)
        {
            let reference = &run.expect_failures[index];
            let mut warning = Diagnostic::warning(
                "Expected failure while planning",
                format!(
                    "A condition of {} failed as expected, but already while planning, so that there was nothing to apply. \
                         Such a failure can be expected of a run with command = plan only.",
                    reference.subject
                ),
            );
            // The warning points at the failed condition, except for an output, where the range of the expectation is
            // more useful.
            if matches!(reference.subject, Referenceable::Output(_)) {
                warning = warning.at(&reference.range);
            }
            out.push(warning);
        }
        out.push(problem);
    }
    out
}

/// Checks the expectations of a run, before it is run.
#[must_use]
pub fn check(run: &TestRun) -> Diagnostics {
    let mut out = Diagnostics::new();
    for reference in &run.expect_failures {
        let checkable = matches!(
            &reference.subject,
            Referenceable::Variable(_)
                | Referenceable::Output(_)
                | Referenceable::Check(_)
                | Referenceable::Resource(_)
                | Referenceable::ResourceInstance(_)
        );
        // Anything after the name of an object, as in `var.settings.port`, is ignored, as in Terraform.
        if !checkable {
            out.push(
                Diagnostic::error(
                    "Invalid `expect_failures` reference",
                    format!(
                        "No failure of {} can be expected: only input variables, output values, check blocks, managed resources and \
                         data sources have conditions.",
                        reference.subject
                    ),
                )
                .at(&reference.range),
            );
        }
    }
    out
}
