//! Interfaces of the services and settings that this crate needs from the command that starts a run.

use std::path::Path;

use engine::stop::Stop;
use files::Environment;
use views::console::Console;
use views::plan::Shown;

/// Services and settings for operations on a server.
#[derive(Clone)]
pub struct Context<'c> {
    pub stores: stores::Context<'c>,
    pub console: &'c Console,
    pub environment: &'c Environment,
    /// Directory of the root module.
    pub working_dir: &'c Path,
    pub net: net::Client,
    pub interrupts: &'c dyn Interrupts,
    /// Options of the display of plans.
    pub shown: Shown,
    /// Set if progress lines are left out (`-concise`).
    pub concise: bool,
    /// Set if hints about next steps are left out (`TF_IN_AUTOMATION`).
    pub in_automation: bool,
}

/// Source of interrupts, with which users end a command.
pub trait Interrupts {
    /// Listens for interrupts until the current runtime ends, and requests a stop for each.
    fn listen(&self, stop: Stop);
}
