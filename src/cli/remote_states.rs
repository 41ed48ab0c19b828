//! Encrypted states that `terraform_remote_state` data sources read.
//!
//! The built-in provider reads states in a process of its own, which has no keys. A state whose encryption is
//! configured is therefore read and decrypted here, and only the outputs leave this module.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use addrs::{AbsProviderConfig, AbsResourceInstance, Mode};
use async_trait::async_trait;
use cty::Value;
use encryption::{Encryption, Target};
use provider::{
    Actions, Answer, Applied, ApplyRequest, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest, Listed,
    MoveRequest, ObjectRead, Opened, PlanRequest, PlannedChange, Provider, ProviderSchema, RawState, ReadRequest,
    SchemaMap,
};
use state::{Cipher, Codec};
use stores::Context;
use stores::backend::remote_state;
use syntax::{Diagnostic, Diagnostics};

use crate::plugin_source::{Plugins, Replacements};
use crate::session::{Session, Surroundings};

const TYPE: &str = "terraform_remote_state";

/// Reader of encrypted states.
struct RemoteStates {
    // Parts of a session may be used by one thread at a time only, but the providers of several data sources share it.
    session: Arc<Mutex<Session>>,
    encryption: Arc<Encryption>,
}

impl RemoteStates {
    /// Returns a reader; `None` if no state of a data source is encrypted.
    ///
    /// # Errors
    /// The configuration of the encryption has errors.
    fn of(session: &Session) -> Result<Option<RemoteStates>, Diagnostics> {
        let encryption = session
            .encryption()?
            .filter(|encryption| encryption.has_remote_states());
        Ok(encryption.map(|encryption| RemoteStates {
            session: Arc::new(Mutex::new(session.in_directory(session.working_dir.clone()))),
            encryption,
        }))
    }
}

impl Replacements for RemoteStates {
    // Only data sources whose states may be encrypted get a provider that decrypts.
    fn for_object(
        &self,
        config: &AbsProviderConfig,
        object: &AbsResourceInstance,
        provider: Arc<dyn Provider>,
    ) -> Arc<dyn Provider> {
        let resource = &object.resource.resource;
        if resource.mode != Mode::Data || &*resource.ty != TYPE || !config.provider.is_builtin() {
            return provider;
        }
        match self.encryption.remote_state(&label(object)) {
            None => provider,
            Some(target) => Arc::new(Decrypting {
                provider,
                session: self.session.clone(),
                target: target.clone(),
            }),
        }
    }
}

impl Session {
    /// Returns the plugins of the working directory, for the engine. They decrypt the states that data sources read.
    pub fn plugins(&self) -> Result<Plugins, Diagnostics> {
        let remote = RemoteStates::of(self)?.map(|remote| Box::new(remote) as Box<dyn Replacements>);
        Ok(Surroundings::plugins(self)?.replacing(remote))
    }
}

/// Returns the name of a data source in a `remote_state_data_source` block.
fn label(object: &AbsResourceInstance) -> String {
    let address = object.to_string();
    let short = address.replacen(&format!("data.{TYPE}."), "", 1);
    short.strip_prefix("module.").unwrap_or(&short).to_owned()
}

/// Provider of one data source, which decrypts the state.
struct Decrypting {
    provider: Arc<dyn Provider>,
    session: Arc<Mutex<Session>>,
    target: Arc<Target>,
}

impl Decrypting {
    async fn outputs(&self, config: &Value) -> Result<Value, Diagnostics> {
        let text = |name: &str| config.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (backend, workspace) = (text("backend"), text("workspace"));
        let workspace = if workspace.is_empty() {
            "default".to_owned()
        } else {
            workspace
        };
        let arguments = config.get("config").filter(|value| value.is_present());
        let arguments = arguments.cloned().unwrap_or_else(Value::empty_object);
        let codec = Codec::new(self.target.clone() as Arc<dyn Cipher>);
        let session = self.session.clone();
        let (send, found) = tokio::sync::oneshot::channel();
        // A store has a runtime of its own, which can neither be used nor dropped inside of another one.
        let thread = std::thread::Builder::new()
            .name("remote state".to_owned())
            .spawn(move || {
                let session = session.lock().unwrap_or_else(PoisonError::into_inner);
                let context: Context<'_> = session.stores();
                let read = remote_state::read(&context, &backend, &arguments, &workspace, &codec);
                // The receiver was dropped if the operation was stopped.
                let _ = send.send(read);
            });
        let stopped = |why: &str| Diagnostics::from(Diagnostic::error("Error loading state error", why));
        thread.map_err(|e| stopped(&::files::io_reason(&e)))?;
        let state = found.await.map_err(|_| stopped("The state could not be read."))??;
        let Some(state) = state else {
            return Err(Diagnostic::error(
                "Unable to find remote state",
                "The backend has no state for this workspace. Apply the other configuration first, or correct \"workspace\" or \
                 \"config\".",
            )
            .into());
        };
        let mut outputs: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        if let Some(defaults) = config
            .get("defaults")
            .and_then(|defaults| Some(defaults.entries()?.collect::<Vec<_>>()))
        {
            outputs.extend(defaults.into_iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        // Outputs of the state have precedence over the defaults.
        let own = state.outputs.iter();
        outputs.extend(own.map(|(name, output)| (Arc::from(&**name), output.value.clone())));
        Ok(Value::object(outputs))
    }
}

#[async_trait]
impl Provider for Decrypting {
    async fn read_data(&self, _: &str, config: Value, _: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        let outputs = self.outputs(&config).await?;
        let parts = config.entries().into_iter().flatten();
        let parts: Vec<_> = parts
            .map(|(name, value)| match &**name {
                "outputs" => (name.clone(), outputs.clone()),
                _ => (name.clone(), value.clone()),
            })
            .collect();
        Ok(Answer {
            value: Value::object(parts),
            diagnostics: Vec::new(),
        })
    }

    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        self.provider.schema().await
    }

    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_provider(config).await
    }

    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.configure(config).await
    }

    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_resource(ty, config).await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_data(ty, config).await
    }

    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_ephemeral(ty, config).await
    }

    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        self.provider.upgrade(ty, version, state).await
    }

    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        self.provider.upgrade_identity(ty, version, identity).await
    }

    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.provider.read(ty, request).await
    }

    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        self.provider.plan(ty, request).await
    }

    fn has_ended(&self) -> bool {
        self.provider.has_ended()
    }

    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        self.provider.apply(ty, request).await
    }

    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        self.provider.import(ty, target).await
    }

    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        self.provider.generate_config(ty, object).await
    }

    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_list(ty, config).await
    }

    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        self.provider.list(ty, request).await
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.provider.move_state(target_type, request).await
    }

    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics> {
        self.provider.open_ephemeral(ty, config).await
    }

    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        self.provider.renew_ephemeral(ty, private).await
    }

    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        self.provider.close_ephemeral(ty, private).await
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        self.provider.functions().await
    }

    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        self.provider.call_function(name, arguments).await
    }

    fn actions(&self) -> Option<&dyn Actions> {
        self.provider.actions()
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        self.provider.stop().await
    }

    async fn close(&self) {
        self.provider.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_sources_have_the_names_of_opentofu() {
        for (address, name) in [
            ("data.terraform_remote_state.a", "a"),
            ("data.terraform_remote_state.a[4]", "a[4]"),
            ("module.m[\"k\"].data.terraform_remote_state.a", "m[\"k\"].a"),
            ("module.m.module.n.data.terraform_remote_state.a", "m.module.n.a"),
        ] {
            assert_eq!(label(&addrs::parse::resource_instance(address).unwrap()), name);
        }
    }
}
