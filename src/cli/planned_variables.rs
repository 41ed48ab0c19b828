//! Values of the variables of a saved plan, with those that are set again when it is applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::Variable;
use config::values::{self, ValueSource, VariableFlag, VariableValue};
use cty::Value;
use engine::plan::Plan;
use syntax::{Diagnostic, Diagnostics};

use crate::outcome::Failure;
use crate::session::Session;
use crate::workdir::Project;

/// Returns the values of a saved plan's variables. Values that are set again must be equal. Ephemeral values are not saved, and
/// must be set again.
pub fn read(session: &Session, project: &mut Project, plan: &Plan) -> Result<BTreeMap<Arc<str>, Value>, Failure> {
    let flags = &session.invocation.variables;
    let mut out: BTreeMap<Arc<str>, Value> = BTreeMap::new();
    let mut problems = Diagnostics::new();
    let root = project.config.root.module.clone();
    let collected = values::collect(&root, &session.set_variables());
    project.sources.extend(collected.sources);
    let found = collected.undeclared.into_iter().chain(collected.diagnostics);
    let mut invalid: Vec<Diagnostic> = found.filter(Diagnostic::is_error).collect();
    // Without flags, only files that are read automatically can be invalid, and these do not matter here.
    if flags.is_empty() {
        invalid.clear();
    }
    problems.extend(invalid);
    for variable in root.variables.values() {
        let now = collected.values.get(&variable.name);
        let planned = plan.variables.get(&variable.name).map(|v| v.clone().unmark_deep().0);
        if variable.ephemeral {
            // A default does not count as set.
            let now = now.filter(|n| n.source != ValueSource::Default);
            match (plan.variables.contains_key(&variable.name), now) {
                (true, Some(now)) => {
                    out.insert(variable.name.clone(), now.value.clone());
                }
                (false, None) => {}
                (true, None) => problems.push(
                    Diagnostic::error(
                        "No value for required variable",
                        format!(
                            "The ephemeral input variable \"{0}\" was set when the plan was made. Its value is not kept in the \
                             plan, so it must be set again to apply it: with -var '{0}=…', in a variable file, or in the \
                             environment as TF_VAR_{0}.",
                            variable.name
                        ),
                    )
                    .at(&variable.range),
                ),
                (false, Some(_)) => problems.push(
                    Diagnostic::error(
                        "Ephemeral variable was not set during planning",
                        format!(
                            "The ephemeral input variable \"{}\" was not set when the plan was made, so it must not be set when \
                             the plan is applied.",
                            variable.name
                        ),
                    )
                    .at(&variable.range),
                ),
            }
            continue;
        }
        let Some(planned) = planned else { continue };
        if let Some(now) = now.filter(|now| now.value != planned) {
            problems.extend(changed(variable, now, &planned, flags));
        }
        out.insert(variable.name.clone(), planned);
    }
    session.pass(&problems, &project.sources)?;
    Ok(out)
}

/// Returns a diagnostic if a value differs from that of the plan. On the command line that is an error. A variable of
/// the environment may be meant for another configuration, so it causes a warning and has no effect. Variable files
/// that are read automatically are ignored.
fn changed(variable: &Variable, now: &VariableValue, planned: &Value, flags: &[VariableFlag]) -> Option<Diagnostic> {
    let named = |path: &str| {
        flags
            .iter()
            .any(|flag| matches!(flag, VariableFlag::File(p) if p == path))
    };
    let (by, place) = match &now.source {
        ValueSource::Flag => ("by -var", None),
        ValueSource::File(range) if named(&range.file) => ("in a file that -var-file names", Some(range)),
        ValueSource::Environment => ("in the environment", None),
        _ => return None,
    };
    // The diagnostic may end up in a log, so sensitive values are not in it.
    let values = if variable.sensitive {
        "The values are sensitive.".to_owned()
    } else {
        let shown = |value: &Value| lang::render::format_value(value, 0);
        format!(
            "In the plan it is {}, and {} is given {by}.",
            shown(planned),
            shown(&now.value)
        )
    };
    let advice = "A variable that is not to be kept in plans is declared with \"ephemeral = true\".";
    let name = &variable.name;
    let diagnostic = if now.source == ValueSource::Environment {
        Diagnostic::warning(
            "Ignoring variable when applying a saved plan",
            format!(
                "A saved plan has the values that the variables had when it was made, so the value that the environment gives \
                 \"{name}\" has no effect. {values} {advice}"
            ),
        )
    } else {
        Diagnostic::error(
            "Can't change variable when applying a saved plan",
            format!(
                "A saved plan has the values that the variables had when it was made, and \"{name}\" cannot be given another one. \
                 {values} {advice}"
            ),
        )
    };
    Some(match place {
        Some(range) => diagnostic.at(range),
        None => diagnostic,
    })
}
