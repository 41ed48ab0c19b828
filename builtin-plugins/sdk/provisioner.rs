//! Provisioners: what an author writes.

use async_trait::async_trait;
use cty::Value;
use tokio::sync::mpsc;

use crate::model::Model;
use crate::schema::Schema;
use crate::{Diagnostics, Result, Stop};

/// A provisioner: runs once for an object that was just created, or is about to be destroyed.
#[async_trait]
pub trait Provisioner: Send + Sync + 'static {
    /// The arguments, declared by [`model!`](crate::model!).
    type Config: Model;

    /// Whether some code of this provisioner may block its thread; see [`Provider::BLOCKS`](crate::Provider::BLOCKS).
    const BLOCKS: bool = true;

    /// The schema; the model's unless there is more to say.
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks the arguments beyond what the rules of each say.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Runs it. `connection` is the connection block as the program sends it: a map of strings, or null.
    /// When `stop` is requested, it should end soon.
    async fn run(&self, config: Self::Config, connection: Value, output: Output, stop: Stop) -> Result<()>;
}

/// What a provisioner shows while it runs.
#[derive(Clone, Debug)]
pub struct Output(pub(crate) mpsc::Sender<String>);

impl Output {
    /// An output whose text can be read at the other end, for tests.
    #[must_use]
    pub fn channel() -> (Output, mpsc::Receiver<String>) {
        let (sender, receiver) = mpsc::channel(64);
        (Output(sender), receiver)
    }

    /// Shows this text: a line, or several. Waits until the host takes it; if the host is gone, the text is dropped.
    pub async fn show(&self, text: impl Into<String>) {
        drop(self.0.send(text.into()).await);
    }
}
