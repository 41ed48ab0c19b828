//! Interfaces of the services and settings that this crate needs from a command.

use addrs::Program;
use plugins::Host;
use state::Codec;
use syntax::{Diagnostic, Diagnostics};
use tokio::runtime::Runtime;
use versions::{Constraints, Version};

use crate::backend::record::{Saved, SupplyMode};

/// Services and settings that a command provides.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Data directory: `.terraform`, or `TF_DATA_DIR`.
    pub data_dir: &'c str,
    /// Workspace that `TF_WORKSPACE` selects.
    pub workspace: Option<&'c str>,
    /// Names of the built-in state stores.
    pub builtin: &'c [String],
    /// Plugins that are not in this build, each with the Cargo feature that adds it.
    pub left_out: &'c [(&'static str, &'static str)],
    /// Name of the program in messages.
    pub program: Program,
    pub console: &'c dyn Console,
    pub plugins: &'c dyn Plugins,
    pub cloud: &'c dyn Cloud,
    pub encryption: &'c dyn Encryption,
}

impl Context<'_> {
    /// Shows a warning while the command runs.
    pub fn warn(&self, warning: Diagnostic) {
        self.console.show(&warning.into());
    }
}

/// Encryption of states and plans, as set by the configuration and the environment.
pub trait Encryption {
    /// Returns the form in which states are stored.
    ///
    /// # Errors
    /// The configuration of the encryption has errors.
    fn states(&self) -> Result<Codec, Diagnostics>;

    /// Obtains the key for states before an operation, so that it is available when results must be saved.
    ///
    /// # Errors
    /// The key is not available.
    fn prepare_states(&self) -> Result<(), Diagnostics>;
}

/// A question that the user answers with one line.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    pub title: &'q str,
    /// Paragraphs below the title; may be empty. They are wrapped at the width of the terminal, except for lines that begin with a space.
    pub explanation: &'q str,
    /// Print the title as a warning.
    pub warns: bool,
    /// Do not show the answer while it is typed.
    pub secret: bool,
}

impl<'q> Question<'q> {
    #[must_use]
    pub fn new(title: &'q str, explanation: &'q str) -> Question<'q> {
        Question {
            title,
            explanation,
            warns: false,
            secret: false,
        }
    }
}

/// Reason why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The input has ended.
    End,
    /// The question was interrupted.
    Interrupted,
}

/// Style of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Success,
    /// The first line is a title.
    Titled,
}

/// Connection to the user of the command, who may be a person or a program that reads events.
pub trait Console {
    /// Asks a question.
    ///
    /// # Errors
    /// There is no answer.
    fn ask(&self, question: &Question<'_>) -> Result<String, NoAnswer>;

    /// Returns true if the user can correct an invalid answer.
    fn is_interactive(&self) -> bool;

    /// Reports progress.
    fn note(&self, tone: Tone, text: &str);

    /// Shows diagnostics while the command runs.
    fn show(&self, problems: &Diagnostics);

    /// Prints a document unchanged to standard output.
    fn print(&self, document: &str);

    /// Reports that the command waits for the lock of a state.
    fn waits_for_lock(&self);

    /// Flushes buffered output.
    fn flush(&self);
}

/// A selected provider of a state store.
pub struct SelectedProvider {
    pub program: plugins::Program,
    /// `None` for providers without version selection.
    pub version: Option<Version>,
    pub supply_mode: SupplyMode,
}

/// Source of the plugins that serve state stores.
pub trait Plugins {
    /// Creates the runtime for connections to a plugin.
    ///
    /// # Errors
    /// No threads can be started.
    fn runtime(&self) -> Result<Runtime, Diagnostics>;

    /// Returns the plugin host.
    ///
    /// # Errors
    /// A setting of the environment is invalid.
    fn host(&self) -> Result<Host, Diagnostics>;

    /// Selects a version of a provider.
    ///
    /// # Errors
    /// No available version meets the constraints.
    fn select(
        &self,
        provider: &addrs::Provider,
        constraints: Constraints,
        runtime: &Runtime,
    ) -> Result<SelectedProvider, Diagnostics>;
}

/// Operations on workspaces of HCP Terraform that other stores do not have. The store is identified by its recorded settings and not by a
/// [`Store`](crate::backend::store::Store), because opening a store needs a [`Context`], which contains this trait.
pub trait Cloud {
    /// Checks that this version of the program may write the state of a workspace directly, outside of a run.
    ///
    /// # Errors
    /// This version may not write the state, or the workspace cannot be read.
    fn check(&self, settings: &Saved, workspace: &str) -> Result<(), Diagnostics>;

    /// Describes the tags by which a `cloud` block selects its workspaces; empty without tags.
    ///
    /// # Errors
    /// The settings contradict each other.
    fn tags(&self, settings: &Saved) -> Result<String, Diagnostics>;
}
