//! Interfaces of the crate to the command that starts a run.

use std::path::Path;

use engine::stop::Stop;
use files::Environment;
use views::console::Console;
use views::plan::Shown;

/// Services and settings for operations that run on a server.
#[derive(Clone)]
pub struct Context<'c> {
    pub stores: stores::Context<'c>,
    pub console: &'c Console,
    pub environment: &'c Environment,
    /// Directory of the root module.
    pub working_dir: &'c Path,
    pub net: net::Client,
    pub interrupts: &'c dyn Interrupts,
    /// Options of the views of plans.
    pub shown: Shown,
    /// Leaves out progress lines.
    pub concise: bool,
    /// Leaves out hints about next steps.
    pub in_automation: bool,
}

/// Source of interrupts, by which a user ends a command.
pub trait Interrupts {
    /// Listens for interrupts until the current runtime ends, and requests a stop for each.
    fn listen(&self, stop: Stop);
}
