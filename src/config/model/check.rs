//! Conditions: preconditions, postconditions, validations, assertions; and `check` blocks.

use std::sync::Arc;

use addrs::Resource;
use syntax::Range;
use syntax::ast::Expr;

/// A condition, and the error message if it does not hold.
#[derive(Clone, Debug)]
pub struct CheckRule {
    pub condition: Expr,
    pub error_message: Expr,
    /// Range of the block's header.
    pub range: Range,
}

#[derive(Clone, Debug)]
pub struct Check {
    pub name: Arc<str>,
    /// The data source declared inside; it is among the module's resources too.
    pub data: Option<Resource>,
    pub asserts: Vec<CheckRule>,
    /// Range of the block's header.
    pub range: Range,
}
