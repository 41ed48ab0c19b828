//! An operation that runs on a server, from the request of a command to its exit status.

use config::Module;
use syntax::{Diagnostics, SourceMap};

use crate::run::{Remote, Request};
use crate::workspace::Hosted;
use crate::{Context, request};

/// Runs an operation in a workspace on a server. Returns the exit status.
///
/// # Errors
/// The operation failed.
pub fn perform(
    context: &Context<'_>,
    request: &Request<'_>,
    hosted: Hosted,
    module: &Module,
    sources: &mut SourceMap,
) -> Result<u8, Diagnostics> {
    let remote = Remote::start(context, request, hosted)?;
    let options = request::check(&remote, module, sources)?;
    remote.carry_out(options)
}
