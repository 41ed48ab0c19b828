//! Context of an operation: client, private data, warnings and stop signal, in addition to its arguments.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cty::{Type, Value};

use crate::calls::CallOptions;
use crate::deferral::Deferral;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::model::{Cty, Model};
use crate::private;
use crate::retry::cut_off;
pub use crate::stop::Stop;
use crate::wire::{Wire, decode};

/// Context of an operation. Input: the client and the options of the call. Output: private data, warnings and partial results.
#[derive(Debug)]
pub struct Context<C> {
    pub(crate) client: Option<Arc<C>>,
    pub(crate) options: CallOptions,
    pub(crate) private: Vec<u8>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) saved: Option<Value>,
    pub(crate) config: Option<(Wire, Type)>,
    pub(crate) deferred: Option<Deferral>,
}

impl<C> Context<C> {
    pub(crate) fn new(client: Option<Arc<C>>, options: impl Into<CallOptions>, private: Vec<u8>) -> Context<C> {
        Context {
            client,
            options: options.into(),
            private,
            diagnostics: Diagnostics::new(),
            saved: None,
            config: None,
            deferred: None,
        }
    }

    /// Creates a context for calling an operation from a test.
    pub fn for_test(client: C) -> Context<C> {
        Context::new(Some(Arc::new(client)), Stop::never(), Vec::new())
    }

    /// Returns the client that [`Provider::configure`](crate::Provider::configure) has created.
    ///
    /// # Errors
    /// The host has not configured the provider.
    pub fn client(&self) -> Result<Arc<C>> {
        self.client.clone().ok_or_else(|| {
            Diagnostic::error(
                "Provider not configured",
                "This operation needs a configured provider, and this one was not configured. This is a bug \
                 in the program that called the plugin.",
            )
            .into()
        })
    }

    /// Returns the stop signal of this call, which long operations should observe.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.options.stop.clone()
    }

    /// Returns the `provider_meta` block of the module that contains the resource or data source, if there is one: see
    /// [`Provider::meta_schema`](crate::Provider::meta_schema). The block is available while planning, applying and reading.
    pub fn provider_meta<M: Model>(&self) -> Result<Option<M>> {
        let value = self.options.meta_value(&M::ty())?;
        Ok((!value.is_null()).then(|| M::from_cty(&value)).transpose()?)
    }

    /// Returns true if the caller accepts deferred answers (the client capability `deferral_allowed`).
    #[must_use]
    pub fn deferral_allowed(&self) -> bool {
        self.options.deferral_allowed
    }

    /// Defers the answer until more is known. Allowed in `plan`, `read`, `import` and `open`, and in `plan` of an action. The operation
    /// then returns the part of its result that is known already.
    ///
    /// # Errors
    /// The caller does not accept deferred answers.
    pub fn defer(&mut self, why: Deferral) -> Result<()> {
        if !self.options.deferral_allowed {
            return Err(why.refused().into());
        }
        self.deferred = Some(why);
        Ok(())
    }

    /// Returns the configuration that is being applied, in `create` and `update`. It is the only source of write-only attributes, since
    /// plans and states never hold them.
    ///
    /// # Errors
    /// The operation is neither `create` nor `update`, or a value does not fit the model.
    pub fn config<M: Model>(&self) -> Result<M> {
        // Decoded on demand: few operations read it, and write-only values should not be around longer than that.
        if let Some((wire, ty)) = &self.config {
            let config = decode(wire, ty)?;
            if !config.is_null() {
                return Ok(M::from_cty(&config)?);
            }
        }
        Err(Diagnostic::error(
            "Configuration not available",
            "The plugin requested the configuration of this object in an operation that has none: only creating and \
             updating have one. This is a bug in the plugin.",
        )
        .into())
    }

    /// Runs a part of the operation with a time limit. When the limit is reached or a stop is requested, the part is dropped at its current
    /// `await`.
    ///
    /// # Errors
    /// The errors of the part, or an error that says why the part was ended early.
    pub async fn within<T>(&self, time: Duration, part: impl Future<Output = Result<T>>) -> Result<T> {
        let mut stop = self.stop();
        tokio::select! {
            // The part is polled first: if it is ready at the instant of the limit, its result counts.
            biased;
            result = part => result,
            () = stop.requested() => Err(cut_off(None).into()),
            () = tokio::time::sleep(time) => Err(cut_off(Some(time)).into()),
        }
    }

    /// Returns the private data of this key that was stored with the object; `None` if there is none.
    ///
    /// # Errors
    /// The value has another type, or the private data has no keys, because it was stored by [`Context::set_private`].
    pub fn private_value<T: Cty>(&self, key: &str) -> Result<Option<T>> {
        private::get(&self.private, key)
    }

    /// Stores private data with the object under a key, in the format of terraform-plugin-framework.
    ///
    /// ```
    /// # use monoform_sdk::Context;
    /// let mut cx = Context::for_test(());
    /// cx.set_private_value("etag", &"x-1".to_owned())?;
    /// assert_eq!(cx.private_value::<String>("etag")?.as_deref(), Some("x-1"));
    /// # Ok::<(), monoform_sdk::Diagnostics>(())
    /// ```
    ///
    /// # Errors
    /// The value is unknown, the key is empty or begins with a dot, or the private data has no keys.
    pub fn set_private_value<T: Cty>(&mut self, key: &str, value: &T) -> Result<()> {
        self.private = private::set(&self.private, key, Some(value))?;
        Ok(())
    }

    /// Removes the private data of a key.
    ///
    /// # Errors
    /// The private data has no keys.
    pub fn remove_private_value(&mut self, key: &str) -> Result<()> {
        self.private = private::set::<String>(&self.private, key, None)?;
        Ok(())
    }

    /// Returns the private data: the bytes that were stored with the object, or those that this operation has set since.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Stores private data with the object, in place of all earlier private data. Users do not see it.
    pub fn set_private(&mut self, bytes: Vec<u8>) {
        self.private = bytes;
    }

    /// Adds a warning. The operation continues.
    ///
    /// ```
    /// # use monoform_sdk::Context;
    /// let mut cx = Context::for_test(());
    /// cx.warn("Certificate Expires Soon", "It is valid until tomorrow. Renew it.");
    /// ```
    pub fn warn(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(summary, detail));
    }

    /// Records the object as it exists already, in case a later step of this operation fails or panics. Without it, a failed creation
    /// leaves nothing in the state, and a failed update leaves the object of before. Attributes that are still unknown become null in
    /// plan and state.
    ///
    /// ```
    /// use monoform_sdk::schema::{computed, required};
    /// use monoform_sdk::{Attr, Context, Diagnostic, Resource, Result, async_trait, model};
    ///
    /// model! {
    ///     pub struct House {
    ///         pub name: Attr<String> = required(),
    ///         pub id: Attr<String> = computed().keep(),
    ///         pub address: Attr<String> = computed(),
    ///     }
    /// }
    ///
    /// struct Houses;
    ///
    /// #[async_trait]
    /// impl Resource for Houses {
    ///     type Model = House;
    ///     type Client = ();
    ///
    ///     async fn create(&self, plan: House, cx: &mut Context<()>) -> Result<House> {
    ///         let house = House { id: "7".into(), ..plan };
    ///         // The house exists from here on. If the next step fails, it is in the state, and can be destroyed.
    ///         cx.save(&house);
    ///         Err(Diagnostic::error("No Address", "The office for addresses is closed.").into())
    ///     }
    /// }
    /// # let _ = Houses;
    /// ```
    pub fn save<M: Model>(&mut self, model: &M) {
        self.saved = Some(model.to_cty());
    }

    /// Takes the object to store after a failure. Its unknown attributes become null.
    pub(crate) fn take_saved(&mut self) -> Option<Value> {
        self.saved.take().map(|saved| {
            // The host accepts no unknown value after an operation that failed.
            saved.transform(|_, part| match part.is_known() {
                true => part,
                false => Value::null(part.ty().clone()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn part_of_an_operation_is_cut_off_by_time_and_stop() {
        let mut cx = Context::for_test(());
        let done = async { Ok(1) };
        assert_eq!(cx.within(Duration::ZERO, done).await, Ok(1), "what is ready counts");
        let endless = || std::future::pending::<Result<()>>();
        let error = cx.within(Duration::from_secs(0), endless()).await.unwrap_err();
        assert_eq!(error.0[0].summary, "Operation Timed Out");
        cx.options.stop = Stop::when(async {});
        let error = cx.within(Duration::from_secs(3600), endless()).await.unwrap_err();
        assert_eq!(error.0[0].summary, "Operation Canceled");
    }

    #[test]
    fn there_is_no_configuration_outside_create_and_update() {
        let cx = Context::for_test(());
        let error = cx.config::<crate::Empty>().unwrap_err();
        assert_eq!(error.0[0].summary, "Configuration not available");
    }
}
