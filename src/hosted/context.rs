//! The surroundings of a command, as far as runs on a server depend on them.

use std::path::Path;

use engine::stop::Stop;
use files::Environment;
use views::console::Console;
use views::plan::Shown;

/// The surroundings of a command, as far as runs on a server depend on them.
#[derive(Clone)]
pub struct Context<'c> {
    pub stores: stores::Context<'c>,
    pub console: &'c Console,
    pub environment: &'c Environment,
    /// The directory with the root module.
    pub working_dir: &'c Path,
    pub net: net::Client,
    pub interrupts: &'c dyn Interrupts,
    /// Options of the views of plans.
    pub shown: Shown,
    /// Progress is not reported by lines.
    pub concise: bool,
    /// Hints about what to do next are of no use.
    pub in_automation: bool,
}

/// The signals by which a user ends a command.
pub trait Interrupts {
    /// Listens for interrupts as long as the current runtime lives, and requests a stop then.
    fn listen(&self, stop: Stop);
}
