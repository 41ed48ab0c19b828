//! Data sources and ephemeral resources.

use std::time::SystemTime;

use async_trait::async_trait;
use cty::Value;

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

/// A type of data source.
///
/// ```
/// use monoform_sdk::schema::{computed, required};
/// use monoform_sdk::{Attr, Context, DataSource, Plain, Provider, Result, async_trait, model};
///
/// model! {
///     /// A word and its length.
///     pub struct Word {
///         /// The word.
///         pub text: Attr<String> = required(),
///         /// The number of its characters.
///         pub length: Attr<i64> = computed(),
///     }
/// }
///
/// struct Words;
///
/// #[async_trait]
/// impl DataSource for Words {
///     type Model = Word;
///     type Client = ();
///
///     async fn read(&self, config: Word, _cx: &mut Context<()>) -> Result<Word> {
///         let length = config.text.text().chars().count() as i64;
///         Ok(Word { length: length.into(), ..config })
///     }
/// }
///
/// fn provider() -> impl Provider {
///     Plain(|members| members.data_source("language_word", Words))
/// }
/// # let _ = provider();
/// ```
#[async_trait]
pub trait DataSource: Send + Sync + 'static {
    /// Arguments and results, declared by [`model!`](crate::model!).
    type Model: Model;
    /// The result of [`Provider::configure`](crate::Provider::configure), usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema. By default, it is derived from [`DataSource::Model`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Model>()
    }

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Model) -> Diagnostics {
        Diagnostics::new()
    }

    /// Reads the data source. A failing read can leave a partial result with [`Context::save`].
    async fn read(&self, config: Self::Model, cx: &mut Context<Self::Client>) -> Result<Self::Model>;
}

/// A type of ephemeral resource: opened for one command, used, and closed; never stored.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use monoform_sdk::schema::{computed, required};
/// use monoform_sdk::{Attr, Context, EphemeralResource, Opened, Result, async_trait, model};
///
/// model! {
///     /// Access to a house.
///     pub struct Access {
///         /// The name of the house.
///         pub house: Attr<String> = required(),
///         /// A code that opens the door.
///         pub code: Attr<String> = computed().sensitive(),
///     }
/// }
///
/// struct Doors;
///
/// #[async_trait]
/// impl EphemeralResource for Doors {
///     type Model = Access;
///     type Client = ();
///
///     async fn open(&self, config: Access, cx: &mut Context<()>) -> Result<Opened<Access>> {
///         cx.set_private_value("house", &config.house.text().to_owned())?;
///         Ok(Opened {
///             result: Access { code: "1234".into(), ..config },
///             renew_at: Some(SystemTime::now() + Duration::from_secs(600)),
///         })
///     }
///
///     async fn close(&self, cx: &mut Context<()>) -> Result<()> {
///         let house = cx.private_value::<String>("house")?;
///         assert!(house.is_some());
///         Ok(())
///     }
/// }
/// # let _ = Doors;
/// ```
#[async_trait]
pub trait EphemeralResource: Send + Sync + 'static {
    /// Arguments and results, declared by [`model!`](crate::model!).
    type Model: Model;
    /// The result of [`Provider::configure`](crate::Provider::configure), usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema. By default, it is derived from [`EphemeralResource::Model`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Model>()
    }

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Model) -> Diagnostics {
        Diagnostics::new()
    }

    /// Opens the resource. Data for renewing and closing goes into [`Context::set_private`].
    async fn open(&self, config: Self::Model, cx: &mut Context<Self::Client>) -> Result<Opened<Self::Model>>;

    /// Extends the lifetime of the open resource. Returns the time of the next renewal, if another one is needed.
    async fn renew(&self, _cx: &mut Context<Self::Client>) -> Result<Option<SystemTime>> {
        Ok(None)
    }

    /// Closes the resource. This call gets no request to stop, because users who stop an operation wait
    /// for it.
    async fn close(&self, _cx: &mut Context<Self::Client>) -> Result<()> {
        Ok(())
    }
}

/// The result of opening an ephemeral resource.
#[derive(Clone, Debug)]
pub struct Opened<M> {
    /// Arguments and results of the opened resource.
    pub result: M,
    /// The time of the next renewal, if one is needed.
    pub renew_at: Option<SystemTime>,
}

impl<M> From<M> for Opened<M> {
    /// Opens without a renewal: the result is valid until the resource is closed.
    fn from(result: M) -> Opened<M> {
        Opened { result, renew_at: None }
    }
}

/// The result of an operation on an ephemeral resource, with values instead of models.
#[derive(Debug, Default)]
pub(crate) struct EphemeralAnswer {
    pub result: Option<Value>,
    pub renew_at: Option<SystemTime>,
    pub private: Vec<u8>,
    pub deferred: Option<Deferral>,
    pub diagnostics: Diagnostics,
}

/// The result of reading a data source. `T` is a decoded value, or its encoded form for the host.
#[derive(Debug)]
pub struct DataAnswer<T> {
    /// Arguments and results. After a failed read, the object of [`Context::save`]; `None` if nothing was saved.
    pub state: Option<T>,
    /// Reason for a deferral, if the answer is deferred.
    pub deferred: Option<Deferral>,
    /// Errors and warnings of the read.
    pub diagnostics: Diagnostics,
}

#[async_trait]
pub(crate) trait AnyDataSource: Described {
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn read(&self, config: &Value, options: CallOptions) -> DataAnswer<Value>;
}

#[async_trait]
pub(crate) trait AnyEphemeral: Described {
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn open(&self, config: &Value, options: CallOptions) -> EphemeralAnswer;
    async fn renew(&self, private: Vec<u8>, options: CallOptions) -> EphemeralAnswer;
    async fn close(&self, private: Vec<u8>) -> EphemeralAnswer;
}

pub(crate) struct DataEntry<D: DataSource> {
    source: D,
    schema: LazySchema,
    client: ClientCell<D::Client>,
}

impl<D: DataSource> DataEntry<D> {
    pub fn new(source: D, plain: bool, client: ClientCell<D::Client>) -> DataEntry<D> {
        DataEntry {
            schema: LazySchema::new(plain),
            source,
            client,
        }
    }
}

impl<D: DataSource> Described for DataEntry<D> {
    fn declared(&self) -> Schema {
        self.schema.declared(|| self.source.schema())
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.source.schema())
    }
}

#[async_trait]
impl<D: DataSource> AnyDataSource for DataEntry<D> {
    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &D::Model| self.source.validate(model))
    }

    async fn read(&self, config: &Value, options: CallOptions) -> DataAnswer<Value> {
        let mut cx = Context::new(self.client.get(), options, Vec::new());
        let result = match D::Model::from_cty(config) {
            Ok(model) => guarded(self.source.read(model, &mut cx)).await,
            Err(error) => Err(error.into()),
        };
        let saved = cx.take_saved();
        let mut diagnostics = cx.diagnostics;
        let state = match result {
            Ok(model) => Some(self.schema().settled(config, model.to_object(&self.schema().object))),
            // A failed read may have left a part of its result.
            Err(errors) => {
                diagnostics.append(errors);
                saved
            }
        };
        DataAnswer {
            state,
            deferred: cx.deferred,
            diagnostics,
        }
    }
}

pub(crate) struct EphemeralEntry<E: EphemeralResource> {
    resource: E,
    schema: LazySchema,
    client: ClientCell<E::Client>,
}

impl<E: EphemeralResource> EphemeralEntry<E> {
    pub fn new(resource: E, plain: bool, client: ClientCell<E::Client>) -> EphemeralEntry<E> {
        EphemeralEntry {
            schema: LazySchema::new(plain),
            resource,
            client,
        }
    }

    fn answer(
        &self,
        result: Result<(Option<E::Model>, Option<SystemTime>)>,
        cx: Context<E::Client>,
    ) -> EphemeralAnswer {
        let mut answer = EphemeralAnswer {
            private: cx.private,
            deferred: cx.deferred,
            diagnostics: cx.diagnostics,
            ..Default::default()
        };
        match result {
            Ok((model, renew_at)) => {
                answer.result = model.map(|m| m.to_object(&self.schema().object));
                answer.renew_at = renew_at;
            }
            Err(errors) => answer.diagnostics.append(errors),
        }
        answer
    }
}

impl<E: EphemeralResource> Described for EphemeralEntry<E> {
    fn declared(&self) -> Schema {
        self.schema.declared(|| self.resource.schema())
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.resource.schema())
    }
}

#[async_trait]
impl<E: EphemeralResource> AnyEphemeral for EphemeralEntry<E> {
    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &E::Model| self.resource.validate(model))
    }

    async fn open(&self, config: &Value, options: CallOptions) -> EphemeralAnswer {
        let mut cx = Context::new(self.client.get(), options, Vec::new());
        let result = match E::Model::from_cty(config) {
            Ok(config) => guarded(self.resource.open(config, &mut cx))
                .await
                .map(|o| (Some(o.result), o.renew_at)),
            Err(error) => Err(error.into()),
        };
        self.answer(result, cx)
    }

    async fn renew(&self, private: Vec<u8>, options: CallOptions) -> EphemeralAnswer {
        let mut cx = Context::new(self.client.get(), options, private);
        let result = guarded(self.resource.renew(&mut cx))
            .await
            .map(|renew_at| (None, renew_at));
        self.answer(result, cx)
    }

    async fn close(&self, private: Vec<u8>) -> EphemeralAnswer {
        // Never stopped: a user who stops an operation waits for the resources to be closed.
        let mut cx = Context::new(self.client.get(), Stop::never(), private);
        let result = guarded(self.resource.close(&mut cx)).await.map(|()| (None, None));
        self.answer(result, cx)
    }
}
