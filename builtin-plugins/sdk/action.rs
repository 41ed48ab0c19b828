//! Actions: the trait that an author implements.

use async_trait::async_trait;
use cty::Value;
use tokio::sync::mpsc;

use crate::calls::CallOptions;
use crate::check::own_rules;
use crate::client::ClientCell;
use crate::context::Context;
use crate::deferral::Deferral;
use crate::diag::{Diagnostics, Result};
use crate::guard::guarded;
use crate::model::{Cty, Model};
use crate::schema::{Compiled, Described, LazySchema, Schema};
use crate::stop::Stop;

/// An action type: an operation that a provider carries out once, when a resource changes or a user requests it. An action returns no
/// values and stores nothing in the state.
///
/// ```
/// use monoform_sdk::schema::required;
/// use monoform_sdk::{Action, Attr, Context, Plain, Progress, Provider, Result, async_trait, model};
///
/// model! {
///     /// A ring of the bell.
///     pub struct Ring {
///         /// The number of rings.
///         pub times: Attr<i64> = required(),
///     }
/// }
///
/// struct Bell;
///
/// #[async_trait]
/// impl Action for Bell {
///     type Config = Ring;
///     type Client = ();
///
///     async fn invoke(&self, config: Ring, progress: Progress, _cx: &mut Context<()>) -> Result<()> {
///         for _ in 0..config.times.or(1) {
///             progress.report("ding").await;
///         }
///         Ok(())
///     }
/// }
///
/// fn provider() -> impl Provider {
///     Plain(|members| members.action("house_bell", Bell))
/// }
/// # let _ = provider();
/// ```
#[async_trait]
pub trait Action: Send + Sync + 'static {
    /// The arguments, declared by [`model!`](crate::model!).
    type Config: Model;
    /// The result of [`Provider::configure`](crate::Provider::configure), usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema of the arguments. By default, it is derived from [`Action::Config`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Checks, while a change is planned, that the action can be invoked. Parts of the configuration may be unknown.
    async fn plan(&self, _config: Self::Config, _cx: &mut Context<Self::Client>) -> Result<()> {
        Ok(())
    }

    /// Carries out the action. Users see the messages reported to `progress` at once. When a stop is requested (see [`Context::stop`]), the
    /// action should end soon.
    async fn invoke(&self, config: Self::Config, progress: Progress, cx: &mut Context<Self::Client>) -> Result<()>;
}

/// Sender of the progress messages of an action.
#[derive(Clone, Debug)]
pub struct Progress(mpsc::Sender<String>);

impl Progress {
    /// Creates a sender and a receiver, for servers and for tests: messages reported to the sender arrive at the receiver.
    #[must_use]
    pub fn channel() -> (Progress, mpsc::Receiver<String>) {
        // Bounded: an action that reports faster than the host reads waits, instead of filling the memory.
        let (sender, receiver) = mpsc::channel(64);
        (Progress(sender), receiver)
    }

    /// Shows a message. Waits until the host takes it; if the host has disconnected, the message is dropped.
    pub async fn report(&self, message: impl Into<String>) {
        drop(self.0.send(message.into()).await);
    }
}

/// Object-safe form of [`Action`]: takes values instead of the action's models.
#[async_trait]
pub(crate) trait AnyAction: Described {
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn plan(&self, config: &Value, options: CallOptions) -> (Option<Deferral>, Diagnostics);
    async fn invoke(&self, config: &Value, progress: Progress, stop: Stop) -> Diagnostics;
}

pub(crate) struct ActionEntry<A: Action> {
    action: A,
    schema: LazySchema,
    client: ClientCell<A::Client>,
}

impl<A: Action> ActionEntry<A> {
    pub fn new(action: A, plain: bool, client: ClientCell<A::Client>) -> ActionEntry<A> {
        ActionEntry {
            action,
            schema: LazySchema::new(plain),
            client,
        }
    }

    /// Decodes the configuration; without a configuration block, it is empty.
    fn config(config: &Value) -> Result<A::Config> {
        match config.is_null() {
            true => Ok(A::Config::default()),
            false => Ok(A::Config::from_cty(config)?),
        }
    }
}

/// Returns the diagnostics of a call: those of its context, then those of its error.
fn reported<C>(result: Result<()>, cx: Context<C>) -> Diagnostics {
    let mut diagnostics = cx.diagnostics;
    if let Err(errors) = result {
        diagnostics.append(errors);
    }
    diagnostics
}

impl<A: Action> Described for ActionEntry<A> {
    fn declared(&self) -> Schema {
        self.schema.declared(|| self.action.schema())
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.action.schema())
    }
}

#[async_trait]
impl<A: Action> AnyAction for ActionEntry<A> {
    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &A::Config| self.action.validate(model))
    }

    async fn plan(&self, config: &Value, options: CallOptions) -> (Option<Deferral>, Diagnostics) {
        let mut cx = Context::new(self.client.get(), options, Vec::new());
        let result = match A::Config::from_cty(config) {
            // An action without a configuration block has the empty configuration.
            _ if config.is_null() => guarded(self.action.plan(A::Config::default(), &mut cx)).await,
            Ok(config) => guarded(self.action.plan(config, &mut cx)).await,
            // The model cannot represent an unknown number of blocks, so `plan` is not called until the number is known.
            Err(error) if error.unknown => Ok(()),
            Err(error) => Err(error.into()),
        };
        (cx.deferred, reported(result, cx))
    }

    async fn invoke(&self, config: &Value, progress: Progress, stop: Stop) -> Diagnostics {
        let mut cx = Context::new(self.client.get(), stop, Vec::new());
        let result = match ActionEntry::<A>::config(config) {
            Ok(config) => guarded(self.action.invoke(config, progress, &mut cx)).await,
            Err(errors) => Err(errors),
        };
        reported(result, cx)
    }
}
