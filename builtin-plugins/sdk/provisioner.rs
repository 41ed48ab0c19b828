//! Provisioners: the trait that an author implements.

use async_trait::async_trait;
use cty::Value;
use tokio::sync::mpsc;

use crate::diag::{Diagnostics, Result};
use crate::model::Model;
use crate::schema::Schema;
use crate::stop::Stop;

/// Environment variables of the plugin handshake. A plugin that starts other programs for the user should not pass them on.
pub const HANDSHAKE_VARIABLES: &[&str] = &[
    "TF_PLUGIN_MAGIC_COOKIE",
    "PLUGIN_PROTOCOL_VERSIONS",
    "PLUGIN_CLIENT_CERT",
    "PLUGIN_MIN_PORT",
    "PLUGIN_MAX_PORT",
    "PLUGIN_UNIX_SOCKET_DIR",
    "PLUGIN_UNIX_SOCKET_GROUP",
    "PLUGIN_MULTIPLEX_GRPC",
];

/// A provisioner: runs once for an object that was just created, or is about to be destroyed.
///
/// ```
/// use monoform_sdk::cty::Value;
/// use monoform_sdk::schema::required;
/// use monoform_sdk::{Attr, Output, Provisioner, Result, Stop, async_trait, model};
///
/// model! {
///     /// A greeting.
///     pub struct Greeting {
///         /// The name of the person.
///         pub name: Attr<String> = required(),
///     }
/// }
///
/// struct Greeter;
///
/// #[async_trait]
/// impl Provisioner for Greeter {
///     type Config = Greeting;
///
///     async fn run(&self, config: Greeting, _connection: Value, output: Output, _stop: Stop) -> Result<()> {
///         output.show(format!("Hello, {}!", config.name.text())).await;
///         Ok(())
///     }
/// }
/// # let _ = Greeter;
/// ```
#[async_trait]
pub trait Provisioner: Send + Sync + 'static {
    /// The arguments, declared by [`model!`](crate::model!).
    type Config: Model;

    /// True if code of this provisioner may block its thread; see [`Provider::BLOCKS`](crate::Provider::BLOCKS).
    const BLOCKS: bool = true;

    /// Returns the schema of the arguments. By default, it is derived from [`Provisioner::Config`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Runs the provisioner. `connection` is the `connection` block as the protocol has it: a map of strings, or null. When `stop` is
    /// requested, the provisioner should end soon.
    async fn run(&self, config: Self::Config, connection: Value, output: Output, stop: Stop) -> Result<()>;
}

/// Sender of the output of a provisioner while it runs.
#[derive(Clone, Debug)]
pub struct Output(mpsc::Sender<String>);

impl Output {
    /// Creates a sender and a receiver, for servers and for tests: text shown by the sender arrives at the receiver.
    #[must_use]
    pub fn channel() -> (Output, mpsc::Receiver<String>) {
        // Bounded: a program that prints faster than the host reads waits, instead of filling the memory.
        let (sender, receiver) = mpsc::channel(64);
        (Output(sender), receiver)
    }

    /// Shows a text of one or more lines. Waits until the host takes it; if the host has disconnected, the text is
    /// dropped.
    pub async fn show(&self, text: impl Into<String>) {
        drop(self.0.send(text.into()).await);
    }
}
