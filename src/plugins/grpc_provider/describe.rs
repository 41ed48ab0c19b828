//! Description of a provider: its schemas and capabilities, from its process or from the schema store.

use std::fs::File;
use std::sync::Arc;

use proto::tfplugin6 as pb;
use provider::{PluginDiagnostic, ProviderSchema};
use syntax::{DiagnosticParts, Diagnostics};
use tokio::sync::{OnceCell, Semaphore};
use tonic::Code;

use super::{Access, GrpcProvider, Started, plain};
use crate::convert::{self, MessageError};
use crate::grpc::name;
use crate::launch::Launch;
use crate::schemas::{
    self, Answer, Encoded, GetProviderSchema, GetResourceIdentitySchemas, Kind, Properties, SchemaFile, SchemaStore,
};

/// Cell with the description of a provider, shared by all processes of the same provider and version.
pub type SharedSchema = Arc<OnceCell<Description>>;

/// Schemas and capabilities of a provider.
#[derive(Clone)]
pub struct Description {
    pub(super) schema: Arc<ProviderSchema>,
    /// True if the provider accepts batched calls.
    pub(super) batches: bool,
}

impl Description {
    fn new(properties: &Properties, encoded: Arc<dyn Encoded>) -> Result<Description, MessageError> {
        Ok(Description {
            schema: Arc::new(schemas::provider_schema(properties, encoded)?),
            batches: properties.batches,
        })
    }
}

/// Entry of one provider package in the schema store, and the command that requests its schemas again.
pub struct Kept {
    pub store: Arc<SchemaStore>,
    pub package: String,
    /// Command line and settings for starting the provider again, if a stored schema turns out to be damaged.
    pub launch: Launch,
}

impl Kept {
    /// Returns the stored description of the provider; `None` if nothing is stored, or if the stored description cannot be used.
    pub fn description(self: &Arc<Kept>) -> Option<Description> {
        let file = self.store.open(&self.package)?;
        let description = self.description_in(file);
        let failed = |error: &MessageError| tracing::debug!(package = self.package, %error, "no stored schemas");
        let description = description.inspect_err(failed).ok()?;
        tracing::debug!(plugin = self.launch.title, "schemas from the disk");
        Some(description)
    }

    fn description_in(self: &Arc<Kept>, file: SchemaFile<File>) -> Result<Description, MessageError> {
        let kept = self.clone();
        let file = file.asking_again(Box::new(move || kept.answer_of_new_process()));
        Description::new(&file.properties.clone(), Arc::new(file))
    }

    /// Starts a process of the provider only to request its schemas. Stores the schemas again and returns them; `None` if the provider does
    /// not return them. The process is served by a thread of its own, since damage of a stored schema is found in code that cannot await a
    /// request.
    fn answer_of_new_process(&self) -> Option<Answer> {
        let ask = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.ok()?.block_on(async {
                // This process must not wait for a permit of the shared semaphore: plugins that are starting hold the permits, and may be
                // waiting for the caller.
                let access = Access::Start(self.launch.clone(), Arc::new(Semaphore::new(1)));
                let provider = GrpcProvider::new(self.launch.title.clone(), access, Arc::default(), None, "".into());
                let answer = match provider.started().await {
                    Ok(started) => provider.ask(started).await,
                    Err(problems) => Err(problems),
                };
                provider::Provider::close(&provider).await;
                let failed = |problems: &Diagnostics| tracing::debug!(?problems, "the provider cannot be asked again");
                answer.inspect_err(failed).ok()
            })
        };
        let answer = std::thread::scope(|scope| scope.spawn(ask).join().ok().flatten())?;
        self.store.write(&self.package, &answer);
        Some(answer)
    }
}

impl GrpcProvider {
    /// Requests the description of the provider from its process, and stores it for later runs.
    pub(super) async fn describe(&self) -> Result<Description, Diagnostics> {
        let started = self.started().await?;
        let answer = Arc::new(self.ask(started).await?);
        // The process has answered GetProviderSchema now.
        let _ = started.introduced.set(());
        let fault = |error: MessageError| {
            self.connection
                .fault(name(started.methods.get_schema), &error.to_string())
        };
        let description = Description::new(&answer.properties, answer.clone()).map_err(fault)?;
        let Some(kept) = self.kept.clone() else {
            return Ok(description);
        };
        // The schemas are read from the file, so that they need not stay in memory.
        let stored = tokio::task::spawn_blocking(move || {
            kept.store.write(&kept.package, &answer);
            kept.description()
        });
        Ok(stored.await.ok().flatten().unwrap_or(description))
    }

    /// Requests the schemas of a provider from its process.
    pub(super) async fn ask(&self, started: &Started) -> Result<Answer, Diagnostics> {
        let path = started.methods.get_schema;
        // In both protocols, this request is empty.
        let request = pb::get_provider_schema::Request {};
        let answered = self
            .call_for_status::<_, GetProviderSchema>(started, path, request)
            .await;
        let (metadata, mut response, _) = match answered {
            Ok(response) => response.into_parts(),
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        let batches = metadata.get(proto::STREAM_OF_CALLS);
        let batches = batches.is_some_and(|version| version == proto::STREAM_OF_CALLS_VERSION);
        let announced = metadata.get(proto::STATE_ONLY).and_then(|names| names.to_str().ok());
        let announced = announced.unwrap_or_default().split(',').filter(|n| !n.is_empty());
        let state_only = announced.map(Arc::from).collect();
        let problems = convert::diagnostics(std::mem::take(&mut response.diagnostics));
        if convert::has_errors(&problems) {
            return Err(plain(problems));
        }
        self.log_warnings(problems);
        let properties = Properties {
            protocol: started.methods.version,
            capabilities: convert::capabilities(response.capabilities.take().unwrap_or_default()),
            batches,
            state_only,
        };
        let mut schemas = response.into_schemas();
        let identities = self.ask_for_identities(started).await?;
        if let Some(response) = identities {
            schemas.insert(Kind::Identity, schemas::by_name(response.identities));
        }
        Ok(Answer { properties, schemas })
    }

    /// Requests the schemas of identities; `None` if the provider is older and does not implement the request.
    async fn ask_for_identities(&self, started: &Started) -> Result<Option<GetResourceIdentitySchemas>, Diagnostics> {
        let path = started.methods.identity_schemas;
        let request = pb::get_resource_identity_schemas::Request {};
        let answered = self
            .call_for_status::<_, GetResourceIdentitySchemas>(started, path, request)
            .await;
        let mut response = match answered {
            Ok(response) => response.into_inner(),
            Err(status) if status.code() == Code::Unimplemented => return Ok(None),
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        let problems = convert::diagnostics(std::mem::take(&mut response.diagnostics));
        if convert::has_errors(&problems) {
            return Err(plain(problems));
        }
        Ok(Some(response))
    }

    fn log_warnings(&self, problems: Vec<PluginDiagnostic>) {
        for problem in problems {
            let DiagnosticParts { summary, detail, .. } = problem.diagnostic.into_parts();
            tracing::warn!(
                plugin = self.connection.title(),
                summary,
                detail,
                "the schema comes with a warning"
            );
        }
    }
}
