//! Read-only context of an operation on a configuration.

use syntax::Diagnostics;

use crate::blocks::Blocks;
use crate::eval::{Evaluator, Reported};
use crate::inputs::Inputs;
use crate::providers::Providers;

/// Context that all steps of a plan or an apply share: the inputs, the running providers, the graph of blocks, and the
/// evaluator, which also collects the diagnostics.
#[derive(Clone, Copy)]
pub struct OperationContext<'a> {
    pub inputs: Inputs<'a>,
    pub providers: &'a Providers<'a>,
    pub blocks: &'a Blocks,
    pub evaluator: &'a Evaluator<'a>,
}

impl OperationContext<'_> {
    /// Reports errors, and returns [`Reported`] for the caller to pass on.
    pub fn fail(&self, errors: impl Into<Diagnostics>) -> Reported {
        self.evaluator.report(errors.into());
        Reported
    }

    /// Reports diagnostics. Returns an error if one of them is an error.
    pub fn report(&self, diagnostics: Diagnostics) -> Result<(), Reported> {
        let failed = diagnostics.has_errors();
        self.evaluator.report(diagnostics);
        if failed { Err(Reported) } else { Ok(()) }
    }
}
