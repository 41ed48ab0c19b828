//! JUnit reports: text in XML, and the report of a plan.

use std::collections::HashMap;
use std::fmt::Write as _;

use addrs::Mode;
use engine::change_kind::ChangeKind;
use engine::plan::{Action, PlanView, ResourceChange};
use provider::Schemas;
use syntax::{Diagnostics, SourceMap};

use crate::diagnostics::{self, Layout};
use crate::diff;
use crate::ui::Style;

/// Width of texts in a report, in columns.
pub(crate) const WIDTH: usize = 80;

/// Escapes text for an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            '\n' => out.push_str("&#xA;"),
            '\t' => out.push_str("&#x9;"),
            '\r' => out.push_str("&#xD;"),
            // Other control characters are not allowed in XML, even if they are escaped.
            c if (c as u32) < 0x20 => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns a CDATA section with a text.
pub(crate) fn cdata(text: &str) -> String {
    // The end mark of a CDATA section is split between two sections.
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

/// Test case of a plan.
struct Case {
    name: String,
    class: String,
    /// Message and text of the failure; `None` if the test case passes.
    failure: Option<(String, String)>,
    output: String,
}

/// Returns the report of a plan: a test case for each managed object, which fails if the object has changed outside since the
/// last apply. Planned changes fail nothing; the output of their test cases names them. Errors of planning are a test case of
/// their own.
#[must_use]
pub fn plan_report(
    plan: Option<PlanView<'_>>,
    schemas: &Schemas,
    style: diff::Style,
    problems: &Diagnostics,
    sources: &SourceMap,
) -> String {
    let mut cases = Vec::new();
    if let Some(plan) = plan {
        let style = diff::Style {
            colour: false,
            short: true,
            width: WIDTH,
            ..style
        };
        for change in plan.changes.iter().filter(|change| is_managed(change)) {
            cases.push(Case {
                output: planned(change),
                ..case(change)
            });
        }
        let named = cases.iter().enumerate();
        let places: HashMap<String, usize> = named.map(|(place, case)| (case.name.clone(), place)).collect();
        for drift in plan.drift.iter().filter(|change| is_managed(change)) {
            let failure = Some((found(drift), diff::drift_text(plan, schemas, style, drift)));
            let failed = Case { failure, ..case(drift) };
            // A deleted object may have no planned change any more.
            match places.get(&failed.name).and_then(|place| cases.get_mut(*place)) {
                Some(case) => case.failure = failed.failure,
                None => cases.push(failed),
            }
        }
    }
    let errors: String = problems
        .iter()
        .filter(|problem| problem.is_error())
        .map(|problem| {
            let layout = Layout {
                style: Style { on: false },
                width: WIDTH,
                plain: true,
            };
            diagnostics::format(problem, sources, layout)
        })
        .collect();
    written(&cases, &errors)
}

fn is_managed(change: &ResourceChange) -> bool {
    change.address.resource.resource.mode == Mode::Managed
}

/// Returns the test case of an object, which passes.
fn case(change: &ResourceChange) -> Case {
    let address = &change.address;
    let resource = &address.resource.resource;
    Case {
        name: match &change.deposed {
            Some(key) => format!("{address} (deposed object {key})"),
            None => address.to_string(),
        },
        class: match address.module.is_root() {
            true => resource.ty.to_string(),
            false => format!("{}.{}", address.module, resource.ty),
        },
        failure: None,
        output: String::new(),
    }
}

/// Describes the planned change of an object; empty if there is none.
fn planned(change: &ResourceChange) -> String {
    let mut parts = Vec::new();
    parts.extend(ChangeKind::from_change(change).map(|kind| format!("planned: {}", kind.as_str())));
    let from = change.previous_address.as_ref().filter(|_| change.is_moved());
    parts.extend(from.map(|from| format!("moved from {from}")));
    parts.join(", ")
}

/// Describes the change of an object outside of the program.
fn found(drift: &ResourceChange) -> String {
    match drift.action {
        Action::Delete => "The object was destroyed outside since the last apply".to_owned(),
        _ => "The object was changed outside since the last apply".to_owned(),
    }
}

fn written(cases: &[Case], errors: &str) -> String {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let errored = usize::from(!errors.is_empty());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><testsuites>\n  <testsuite name=\"plan\" tests=\"{}\" skipped=\"0\" \
         failures=\"{failures}\" errors=\"{errored}\">\n",
        cases.len() + errored
    );
    if errored > 0 {
        let _ = writeln!(
            out,
            "    <testcase name=\"planning\" classname=\"plan\">\n      <error message=\"Planning failed\">{}</error>\n    \
             </testcase>",
            cdata(errors)
        );
    }
    for case in cases {
        let _ = write!(
            out,
            "    <testcase name=\"{}\" classname=\"{}\">",
            escaped(&case.name),
            escaped(&case.class)
        );
        if case.failure.is_some() || !case.output.is_empty() {
            out.push('\n');
            if let Some((message, text)) = &case.failure {
                let _ = writeln!(
                    out,
                    "      <failure type=\"drift\" message=\"{}\">{}</failure>",
                    escaped(message),
                    cdata(text)
                );
            }
            if !case.output.is_empty() {
                let _ = writeln!(out, "      <system-out>{}</system-out>", cdata(&case.output));
            }
            out.push_str("    ");
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}
