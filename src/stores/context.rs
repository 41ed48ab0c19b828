//! Interfaces of the crate to the command that uses it.

use addrs::Program;
use plugins::Host;
use state::Codec;
use syntax::{Diagnostic, Diagnostics};
use tokio::runtime::Runtime;
use versions::{Constraints, Version};

use crate::backend::record::{Saved, SupplyMode};

/// Services and settings of a command that states depend on.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Data directory: `.terraform`, or `TF_DATA_DIR`.
    pub data_dir: &'c str,
    /// Workspace that `TF_WORKSPACE` selects.
    pub workspace: Option<&'c str>,
    /// Names of the built-in state stores.
    pub builtin: &'c [String],
    /// Plugins that this build leaves out: the name, and the Cargo feature that adds it.
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

    /// Obtains the key for states, so that it is available when results must be saved.
    ///
    /// # Errors
    /// The key is not available.
    fn prepare_states(&self) -> Result<(), Diagnostics>;
}

/// A question that is answered by a line.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    pub title: &'q str,
    /// Paragraphs below the title, which are broken at the width of the terminal; lines that begin with a blank are
    /// not wrapped. May be empty.
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

/// Emphasis of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Success,
    /// A title in the first line.
    Titled,
}

/// The user of the command: a person, or a program that reads events.
pub trait Console {
    /// # Errors
    /// There is no answer.
    fn ask(&self, question: &Question<'_>) -> Result<String, NoAnswer>;

    /// Returns true if an invalid answer can be corrected by another one.
    fn is_interactive(&self) -> bool;

    /// Reports progress.
    fn note(&self, tone: Tone, text: &str);

    /// Shows diagnostics while the command runs.
    fn show(&self, problems: &Diagnostics);

    /// Prints a document as it is, on standard output.
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

/// Workspaces of HCP Terraform, as far as they differ from those of other stores. The settings of a store are those of
/// its record: this trait is below the stores themselves, which need a [`Context`] to be opened.
pub trait Cloud {
    /// Checks that this version may write the state of a workspace without an operation.
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
