//! Rules about groups of attributes. Their errors are about the whole group, not about one of its attributes.

use cty::Value;

use super::expression::Expression;
use super::is_absent;
use crate::diag::{Diagnostic, Diagnostics};

/// Condition on the number of attributes of a group that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupRule {
    /// Exactly one.
    ExactlyOneOf,
    /// At most one.
    Conflicting,
    /// All or none.
    RequiredTogether,
}

/// A group of attributes, and the condition on them.
#[derive(Clone, Debug)]
pub struct Group {
    /// The condition.
    pub rule: GroupRule,
    /// Path expressions of the attributes, from the outermost block of the schema.
    pub paths: Vec<&'static str>,
}

impl Group {
    /// Checks a configuration.
    pub(crate) fn check(&self, config: &Value, out: &mut Diagnostics) {
        let (mut set, mut absent, mut open) = (0, 0, 0);
        for path in &self.paths {
            let found = Expression::parse(path).map(|e| e.find(&[config])).unwrap_or_default();
            let known = |value: &&&Value| value.is_known() && !is_absent(value);
            if found.values.iter().any(|value| known(&value)) {
                set += 1;
            } else if found.open || found.values.iter().any(|value| !value.is_known()) {
                open += 1;
            } else {
                absent += 1;
            }
        }
        let names = self.paths.join(",");
        // An unknown value may turn out to be set or not, so the check waits until it is known.
        let (missing, wrong) = match self.rule {
            GroupRule::ExactlyOneOf => (set == 0 && open == 0, set > 1),
            GroupRule::Conflicting => (false, set > 1),
            GroupRule::RequiredTogether => (false, set > 0 && absent > 0),
        };
        let condition = match self.rule {
            GroupRule::ExactlyOneOf => format!("Exactly one of these attributes must be configured: [{names}]"),
            GroupRule::Conflicting => format!("These attributes cannot be configured together: [{names}]"),
            GroupRule::RequiredTogether => format!("These attributes must be configured together: [{names}]"),
        };
        if missing {
            out.push(Diagnostic::error("Missing Attribute Configuration", condition));
        } else if wrong {
            out.push(Diagnostic::error("Invalid Attribute Combination", condition));
        }
    }
}
