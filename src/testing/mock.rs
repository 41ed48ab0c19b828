//! Mock providers. The real plugin provides the schemas, validates configurations and evaluates functions. Objects are
//! as configured, and their computed attributes get values from the test or generated ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cty::{Path, Value};
use provider::{
    Answer, Applied, ApplyRequest, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest, Listed,
    MoveRequest, ObjectRead, Opened, Output, PlanRequest, PlannedChange, PluginDiagnostic, Provider, ProviderSchema,
    RawState, ReadRequest, SchemaMap,
};
use schema::Schema;
use schema::marking::without_write_only;
use syntax::{Diagnostic, Diagnostics};
use uuid::Uuid;

use crate::generate::{Draws, Holes, with_unknowns, with_values};

/// Values for computed attributes of a resource type or of one object.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Object with the values; `None` if all are generated.
    pub values: Option<Value>,
    /// True if the values are already known when the object is planned.
    pub during_plan: bool,
}

/// Source of the values of a mock provider.
#[derive(Clone, Debug)]
pub enum Source {
    /// Values by type, for managed resources and for data sources.
    Types {
        resources: BTreeMap<Arc<str>, Given>,
        data: BTreeMap<Arc<str>, Given>,
        /// `during_plan` of the types that have no entry above.
        during_plan: bool,
    },
    /// Values of a single object: an override.
    One(Given),
}

/// A provider without remote objects.
pub struct Mock {
    /// Real provider, which is not configured.
    real: Arc<dyn Provider>,
    source: Arc<Source>,
    /// Seed of generated values.
    seed: Uuid,
}

fn problem(summary: &str, detail: String) -> Vec<PluginDiagnostic> {
    vec![PluginDiagnostic {
        diagnostic: Diagnostic::error(summary, detail),
        attribute: Path::root(),
    }]
}

fn fine<T>(value: T) -> Answer<T> {
    Answer {
        value,
        diagnostics: Vec::new(),
    }
}

impl Mock {
    #[must_use]
    pub fn new(real: Arc<dyn Provider>, source: Arc<Source>, seed: Uuid) -> Mock {
        Mock { real, source, seed }
    }

    fn given(&self, ty: &str, data: bool) -> Given {
        match &*self.source {
            Source::One(given) => given.clone(),
            Source::Types {
                resources,
                data: sources,
                during_plan,
            } => {
                let by_type = if data { sources } else { resources };
                by_type.get(ty).cloned().unwrap_or(Given {
                    values: None,
                    during_plan: *during_plan,
                })
            }
        }
    }

    async fn resource_schema(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.real.schema().await?;
        schema.resources.get(ty).cloned().ok_or_else(|| unknown_type(ty))
    }

    /// Fills the computed attributes of an object.
    fn filled(&self, schema: &Schema, ty: &str, object: &Value, given: &Given, holes: Holes) -> Answer<Value> {
        match with_values(
            &schema.block,
            object,
            given.values.as_ref(),
            holes,
            Draws::new(self.seed),
        ) {
            Ok(value) => fine(value),
            Err(unsuitable) => Answer {
                value: object.clone(),
                diagnostics: problem(
                    "Failed to compute attribute",
                    format!("The value that is given for an attribute of {ty} does not fit it: {unsuitable}."),
                ),
            },
        }
    }
}

fn unknown_type(ty: &str) -> Diagnostics {
    Diagnostic::error(
        "Unknown resource type",
        format!("The provider has no resource type or data source \"{ty}\" that could be mocked."),
    )
    .into()
}

fn impossible(what: &str) -> Diagnostics {
    Diagnostic::error(
        what,
        "A mock provider knows no object but those of the test. Override the object, or use the real provider.",
    )
    .into()
}

/// Builds the error for an ephemeral resource whose provider is mocked.
pub(crate) fn no_ephemerals() -> Diagnostic {
    Diagnostic::error(
        "No ephemeral resource types in mock providers",
        "A mock provider has no ephemeral resources, and overrides cannot stand in for them. Use the real provider for this one: a \
         provider block in the test file, and an alias if others of the same provider are mocked.",
    )
}

#[async_trait]
impl Provider for Mock {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        self.real.schema().await
    }

    async fn validate_provider(&self, _: Value) -> Result<Answer<()>, Diagnostics> {
        Ok(fine(()))
    }

    // The real provider is never configured, because a test with mocks needs no credentials.
    async fn configure(&self, _: Value) -> Result<Answer<()>, Diagnostics> {
        Ok(fine(()))
    }

    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.real.validate_resource(ty, config).await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.real.validate_data(ty, config).await
    }

    async fn validate_ephemeral(&self, _: &str, _: Value) -> Result<Answer<()>, Diagnostics> {
        Err(no_ephemerals().into())
    }

    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        let schema = self.resource_schema(ty).await?;
        // A mock has written the object, in the form of the current schema, so it needs no upgrade.
        if let RawState::Json(bytes) = &state
            && let Ok(json) = serde_json::from_slice(bytes)
            && let Ok(value) = cty::json::from_json(&json, &schema.implied_type())
        {
            return Ok(fine(value));
        }
        self.real.upgrade(ty, version, state).await
    }

    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        self.real.upgrade_identity(ty, version, identity).await
    }

    // There is no remote object that could have changed.
    async fn read(&self, _: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        Ok(fine(ObjectRead {
            object: request.current,
            private: request.private,
            identity: request.identity,
        }))
    }

    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        let planned = |planned: Value, diagnostics: Vec<PluginDiagnostic>| Answer {
            value: PlannedChange {
                planned,
                requires_replace: Vec::new(),
                private: request.prior_private.clone(),
                identity: request.prior_identity.clone(),
                legacy_type_system: false,
            },
            diagnostics,
        };
        if request.proposed.is_null() {
            return Ok(planned(request.proposed.clone(), Vec::new()));
        }
        let schema = self.resource_schema(ty).await?;
        // A mock never plans a replacement: computed values stay as they are in the first plan.
        if !request.prior.is_null() {
            return Ok(planned(
                without_write_only(&schema.block, &request.proposed),
                Vec::new(),
            ));
        }
        let given = self.given(ty, false);
        // The test requests these values in the plan, so that assertions of runs with command = plan can refer to
        // them.
        if given.during_plan {
            let filled = self.filled(&schema, ty, &request.proposed, &given, Holes::Null);
            return Ok(planned(filled.value, filled.diagnostics));
        }
        let unknown = with_unknowns(&schema.block, &request.proposed);
        Ok(planned(without_write_only(&schema.block, &unknown), Vec::new()))
    }

    fn has_ended(&self) -> bool {
        self.real.has_ended()
    }

    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        let applied = |state: Value, diagnostics: Vec<PluginDiagnostic>| Answer {
            value: Applied {
                state,
                private: request.planned_private.clone(),
                identity: request.planned_identity.clone(),
                legacy_type_system: false,
            },
            diagnostics,
        };
        // An update or a deletion fills nothing in, because the values are those of the prior object.
        if request.planned.is_null() || !request.prior.is_null() {
            return Ok(applied(request.planned.clone(), Vec::new()));
        }
        let schema = self.resource_schema(ty).await?;
        let filled = self.filled(&schema, ty, &request.planned, &self.given(ty, false), Holes::Unknown);
        Ok(applied(filled.value, filled.diagnostics))
    }

    async fn import(&self, ty: &str, _: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        // Only an override determines which object is imported.
        let Source::One(given) = &*self.source else {
            return Err(impossible("Invalid import request"));
        };
        let schema = self.resource_schema(ty).await?;
        let empty = schema.block.empty_object();
        let filled = self.filled(&schema, ty, &empty, given, Holes::Null);
        Ok(Answer {
            value: vec![Imported {
                ty: ty.into(),
                state: filled.value,
                private: Vec::new(),
                identity: None,
            }],
            diagnostics: filled.diagnostics,
        })
    }

    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        self.real.generate_config(ty, object).await
    }

    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.real.validate_list(ty, config).await
    }

    async fn list(&self, _: &str, _: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        Err(impossible("No list resources in mock providers"))
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.real.move_state(target_type, request).await
    }

    async fn read_data(&self, ty: &str, config: Value, _: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        let schema = self.real.schema().await?;
        let schema = schema.data_sources.get(ty).ok_or_else(|| unknown_type(ty))?;
        Ok(self.filled(schema, ty, &config, &self.given(ty, true), Holes::Null))
    }

    async fn open_ephemeral(&self, _: &str, _: Value) -> Result<Answer<Opened>, Diagnostics> {
        Err(no_ephemerals().into())
    }

    async fn renew_ephemeral(&self, _: &str, _: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        Err(no_ephemerals().into())
    }

    async fn close_ephemeral(&self, _: &str, _: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        Ok(fine(()))
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        self.real.functions().await
    }

    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        self.real.call_function(name, arguments).await
    }

    fn actions(&self) -> Option<&dyn provider::Actions> {
        self.real.actions().map(|_| self as &dyn provider::Actions)
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        Ok(())
    }

    async fn close(&self) {}
}

#[async_trait]
impl provider::Actions for Mock {
    async fn validate_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        match self.real.actions() {
            Some(actions) => actions.validate_action(ty, config).await,
            None => Ok(fine(())),
        }
    }

    async fn plan_action(&self, _: &str, _: Value) -> Result<Answer<()>, Diagnostics> {
        Ok(fine(()))
    }

    async fn invoke_action(&self, _: &str, _: Value, _: &Output<'_>) -> Result<Answer<()>, Diagnostics> {
        Ok(fine(()))
    }
}
