//! What every operation of a plugin is given beside its own arguments.

use std::sync::Arc;

use cty::{Type, Value};
use tokio::sync::watch;

use crate::server::core::{Wire, decode};
use crate::{Diagnostic, Diagnostics, Model};

/// Says whether the person asked to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    pub(crate) fn new() -> (StopSwitch, Stop) {
        let (sender, receiver) = watch::channel(false);
        (StopSwitch(sender), Stop(receiver))
    }

    /// A stop that never comes, for tests.
    #[must_use]
    pub fn never() -> Stop {
        Stop::new().1
    }

    /// A stop that comes after this time, for tests.
    #[must_use]
    pub fn after(time: std::time::Duration) -> Stop {
        let (switch, stop) = Stop::new();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            switch.stop();
        });
        stop
    }

    /// Whether to stop now.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the person asks to stop; perhaps for ever.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // Nobody is left who could ask.
            std::future::pending::<()>().await;
        }
    }
}

/// The other end of [`Stop`].
#[derive(Debug)]
pub(crate) struct StopSwitch(watch::Sender<bool>);

impl StopSwitch {
    pub(crate) fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// What an operation is given beside its arguments, and where it leaves what it has to tell beside its result.
#[derive(Debug)]
pub struct Context<C> {
    pub(crate) client: Option<Arc<C>>,
    pub(crate) stop: Stop,
    pub(crate) private: Vec<u8>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) saved: Option<Value>,
    pub(crate) config: Option<(Wire, Type)>,
}

impl<C> Context<C> {
    pub(crate) fn new(client: Option<Arc<C>>, stop: Stop, private: Vec<u8>) -> Context<C> {
        Context {
            client,
            stop,
            private,
            diagnostics: Diagnostics::new(),
            saved: None,
            config: None,
        }
    }

    /// A context for calling an operation from a test.
    pub fn for_test(client: C) -> Context<C> {
        Context::new(Some(Arc::new(client)), Stop::never(), Vec::new())
    }

    /// What the provider made of its configuration.
    pub fn client(&self) -> crate::Result<Arc<C>> {
        self.client.clone().ok_or_else(|| {
            Diagnostic::error(
                "Provider Not Configured",
                "This operation needs the provider's configuration, which has not been given to it yet. This is a bug \
                 of the program that called the plugin.",
            )
            .into()
        })
    }

    /// Says whether the person asked to stop. Long operations should wait for it too.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The configuration that is being applied, in `create` and `update`: the one place where write-only attributes
    /// can be read, since plans never hold them. Elsewhere every attribute is null.
    pub fn config<M: Model>(&self) -> crate::Result<M> {
        match &self.config {
            Some((wire, ty)) => {
                let config = decode(wire, ty)?;
                Ok(if config.is_null() {
                    M::default()
                } else {
                    M::from_cty(&config)?
                })
            }
            None => Ok(M::default()),
        }
    }

    /// What the provider noted beside the object's state when it was last written.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Notes something beside the object's state that no person sees.
    pub fn set_private(&mut self, bytes: Vec<u8>) {
        self.private = bytes;
    }

    /// Tells the person something while the operation goes on.
    pub fn warn(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(summary, detail));
    }

    /// Records what exists already, in case a later step of this operation fails. Without it, a failed creation
    /// leaves nothing in the state, and a failed update leaves the object of before.
    pub fn save<M: Model>(&mut self, model: &M) {
        self.saved = Some(model.to_cty());
    }
}
