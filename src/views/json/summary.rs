//! Summary of a plan as a document: totals, counts by module and type, and the objects that are replaced,
//! destroyed or forgotten.

use engine::change_kind::ChangeKind;
use engine::plan::{Action, PlanView, ResourceChange};
use serde_json::{Map, Value as Json};

use super::Object;
use crate::summary::{counts, reasons};

/// Returns the summary of a plan: the content of `-summary`, without limits.
#[must_use]
pub fn document(plan: PlanView<'_>) -> Json {
    let changes: Vec<(ChangeKind, &ResourceChange)> = plan
        .changes
        .iter()
        .filter_map(|change| Some((ChangeKind::from_change(change)?, change)))
        .collect();
    let totals: Map<String, Json> = ChangeKind::ALL
        .into_iter()
        .map(|kind| {
            let count = changes.iter().filter(|(of, _)| *of == kind).count();
            (kind.as_str().to_owned(), count.into())
        })
        .chain([("invoke".to_owned(), plan.invocations.len().into())])
        .collect();
    let lines = counts(&changes).into_iter().map(|((module, ty), row)| {
        let mut line = Object::default()
            .with_content("module", module.to_string())
            .with("type", ty);
        for (kind, count) in row {
            line = line.with(kind.as_str(), count);
        }
        Json::from(line)
    });
    let named = |kind: ChangeKind| -> Json {
        changes
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, c)| object(c))
            .collect()
    };
    let outputs = plan.outputs.values().filter(|output| output.action != Action::NoOp);
    Object::default()
        .with("format_version", "1.0")
        .with("errored", plan.errored)
        .with("totals", totals)
        .with("counts", lines.collect::<Vec<_>>())
        .with("replaced", named(ChangeKind::Replace))
        .with("destroyed", named(ChangeKind::Delete))
        .with("forgotten", named(ChangeKind::Forget))
        .with("moved", plan.changes.iter().filter(|c| c.is_moved()).count())
        .with("changed_outside", plan.drift.len())
        .with("outputs", outputs.count())
        .with_some("unread", plan.unread.map(super::plan::unread_counts))
        .into()
}

/// Returns a replaced, destroyed or forgotten object, with the attributes that force its replacement.
fn object(change: &ResourceChange) -> Json {
    Object::default()
        .with("address", change.address.to_string())
        .with_some("deposed", change.deposed.as_deref())
        .with_content("because_of", reasons(change).into_iter().collect::<Vec<_>>())
        .into()
}
