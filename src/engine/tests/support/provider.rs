//! An in-memory provider and provisioner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cty::{Path, Type, Value};
use provider::{
    Answer, Applied, ApplyRequest, Capabilities, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest,
    Listed, MoveRequest, ObjectRead, Opened, Output, ParameterSchema, PlanRequest, PlannedChange, PluginDiagnostic,
    ProviderSchema, RawState, ReadRequest,
};
use provider::{Provider, Provisioner};
use provider::{ProviderSource, SchemaMap, StartError};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting, Schema};
use syntax::{Diagnostic, Diagnostics};

use super::identity::{self, identity_of};
use super::remote::{FakeRemote, with};

/// Computed attributes of the fake resource types.
const COMPUTED: [&str; 3] = ["id", "note", "token"];

pub fn attribute(ty: Type, flags: &str) -> AttributeSchema {
    AttributeSchema {
        ty: AttributeType::Plain(ty),
        required: flags.contains('r'),
        optional: flags.contains('o'),
        computed: flags.contains('c'),
        sensitive: flags.contains('s'),
        write_only: flags.contains('w'),
        ..AttributeSchema::default()
    }
}

pub fn block(attributes: &[(&str, Type, &str)]) -> BlockSchema {
    BlockSchema {
        attributes: attributes
            .iter()
            .map(|(n, ty, f)| ((*n).into(), attribute(ty.clone(), f)))
            .collect(),
        ..BlockSchema::default()
    }
}

fn schema(name: &str) -> ProviderSchema {
    let mut thing = block(&[
        ("id", Type::String, "c"),
        ("name", Type::String, "o"),
        ("value", Type::String, "o"),
        ("forced", Type::String, "o"),
        ("secret", Type::String, "os"),
        ("tags", Type::map(Type::String), "o"),
        // `note` is unknown before each change.
        ("note", Type::String, "c"),
        // `token` is the provider's configured token at the last creation or update of the object.
        ("token", Type::String, "c"),
        // `password` is write-only.
        ("password", Type::String, "ow"),
    ]);
    let rule = NestedBlock {
        block: block(&[("port", Type::Number, "r"), ("label", Type::String, "o")]),
        nesting: Nesting::List,
        min_items: 0,
        max_items: 0,
    };
    thing.blocks.insert("rule".into(), rule);
    let lookup = block(&[("query", Type::String, "r"), ("result", Type::String, "c")]);
    let ticket = block(&[("name", Type::String, "o"), ("secret", Type::String, "c")]);
    let shout = FunctionSchema {
        parameters: vec![ParameterSchema {
            name: "text".into(),
            ty: Type::String,
            allow_null: false,
            allow_unknown: false,
            description: schema::Description::default(),
        }],
        result: Some(Type::String),
        ..FunctionSchema::default()
    };
    ProviderSchema {
        ephemeral: BTreeMap::from([(format!("{name}_ticket").into(), Schema::new(0, ticket))]).into(),
        functions: BTreeMap::from([("shout".into(), shout)]).into(),
        provider: Schema::new(0, block(&[("token", Type::String, "o")])),
        resources: BTreeMap::from([(format!("{name}_thing").into(), Schema::new(1, thing))]).into(),
        // States record version 0 for data sources, whatever version their schema has.
        data_sources: BTreeMap::from([(format!("{name}_lookup").into(), Schema::new(2, lookup))]).into(),
        capabilities: Capabilities {
            plan_destroy: true,
            move_resource_state: name != "plain",
            ..Capabilities::default()
        },
        ..ProviderSchema::default()
    }
}

/// Plugin source that starts fake providers and provisioners with any name.
#[derive(Clone)]
pub struct FakeSource(pub FakeRemote);

#[async_trait]
impl ProviderSource for FakeSource {
    async fn start(&self, provider: &addrs::Provider) -> Result<Arc<dyn Provider>, StartError> {
        if self.0.lock().missing.contains(&*provider.ty) {
            return Err(Diagnostic::error("Failed to start provider", format!("No {} here.", provider.ty)).into());
        }
        let state_only = self.0.lock().state_only;
        let ty: Arc<str> = format!("{}_thing", provider.ty).into();
        let described = ProviderSchema {
            state_only: state_only.then_some(ty).into_iter().collect(),
            ..schema(&provider.ty)
        };
        Ok(Arc::new(Fake {
            remote: self.0.clone(),
            schema: Arc::new(identity::with_identities(&self.0, &provider.ty, described)),
            token: Mutex::new(None),
        }))
    }

    async fn start_provisioner(&self, name: &str) -> Result<Arc<dyn Provisioner>, StartError> {
        Ok(Arc::new(FakeProvisioner(self.0.clone(), name.to_owned())))
    }
}

struct Fake {
    remote: FakeRemote,
    schema: Arc<ProviderSchema>,
    /// The configured token; `None` before configuration.
    token: Mutex<Option<Value>>,
}

pub fn text<'v>(object: &'v Value, attribute: &str) -> &'v str {
    object.get(attribute).and_then(Value::as_str).unwrap_or("?")
}

fn error(summary: &str, detail: &str) -> Vec<PluginDiagnostic> {
    vec![PluginDiagnostic {
        diagnostic: Diagnostic::error(summary, detail),
        attribute: Path::root(),
    }]
}

pub fn fine<T>(value: T) -> Result<Answer<T>, Diagnostics> {
    Ok(Answer {
        value,
        diagnostics: Vec::new(),
    })
}

/// Guard that counts a call as in flight.
struct InFlight<'w>(&'w FakeRemote);

impl<'w> InFlight<'w> {
    fn new(remote: &'w FakeRemote) -> InFlight<'w> {
        let mut w = remote.lock();
        w.in_flight += 1;
        w.most_in_flight = w.most_in_flight.max(w.in_flight);
        InFlight(remote)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
    }
}

/// Returns true if a read exceeds the service's limit of reads per second.
fn is_too_fast(w: &mut super::remote::RemoteData) -> bool {
    let Some(limit) = w.per_second else { return false };
    let now = std::time::Instant::now();
    while w
        .latest_reads
        .front()
        .is_some_and(|read| now.duration_since(*read).as_secs() >= 1)
    {
        w.latest_reads.pop_front();
    }
    let full = w.latest_reads.len() >= limit;
    if !full {
        w.latest_reads.push_back(now);
    }
    full
}

/// Simulates a validation call, which yields once.
async fn validation(remote: &FakeRemote) {
    let _in_flight = InFlight::new(remote);
    remote.lock().validated += 1;
    // Other requests can run here, so that the number in flight shows how many are concurrent.
    tokio::task::yield_now().await;
}

/// Records a call, and yields as often as the seed or the test requires. Returns true if the test lets the call fail. An unreachable
/// plugin is an error.
pub async fn call(remote: &FakeRemote, name: &str) -> Result<bool, Diagnostics> {
    let _in_flight = InFlight::new(remote);
    let (turns, hook, failing, unreachable) = {
        let mut w = remote.lock();
        if !w.quiet {
            w.log.push(format!("> {name}"));
        }
        // The number of yields depends on the seed, so that requests end in different orders.
        let mixed = name
            .bytes()
            .fold(w.seed, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let turns = w
            .turns
            .get(name)
            .copied()
            .unwrap_or(if w.quiet { 1 } else { 2 + (mixed >> 7) % 13 });
        (
            turns,
            w.hooks.get(name).cloned(),
            w.failing.contains(name),
            w.unreachable.contains(name),
        )
    };
    // The lock is released before the hook is called, because the hook may use the remote.
    if let Some(hook) = hook {
        hook();
    }
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    if !remote.lock().quiet {
        remote.lock().log.push(format!("< {name}"));
    }
    if unreachable {
        return Err(Diagnostic::error("Plugin did not respond", format!("The plugin died during {name}.")).into());
    }
    Ok(failing)
}

pub fn twisted(remote: &FakeRemote, name: &str, value: Value) -> Value {
    let mutate = remote.lock().mutations.get(name).cloned();
    mutate.map_or(value.clone(), |t| t(value))
}

impl Fake {
    fn token(&self) -> Result<Value, Diagnostics> {
        self.token.lock().unwrap().clone().ok_or_else(|| {
            Diagnostic::error("Provider not configured", "An operation came before the configuration.").into()
        })
    }

    fn resource(&self, ty: &str) -> &Schema {
        self.schema.resources.get(ty).unwrap()
    }
}

#[async_trait]
impl Provider for Fake {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        Ok(self.schema.clone())
    }

    async fn validate_provider(&self, _config: Value) -> Result<Answer<()>, Diagnostics> {
        fine(())
    }

    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        let token = config.get("token").cloned().unwrap_or_else(Value::dynamic);
        let shown = if token.is_known() {
            text(&config, "token")
        } else {
            "(unknown)"
        };
        let failing = call(&self.remote, &format!("configure {shown}")).await?;
        *self.token.lock().unwrap() = Some(token);
        Ok(Answer {
            value: (),
            diagnostics: if failing {
                error("Bad token", "Not this one.")
            } else {
                Vec::new()
            },
        })
    }

    async fn validate_resource(&self, _ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        validation(&self.remote).await;
        if text(&config, "value") == "invalid" {
            return Ok(Answer {
                value: (),
                diagnostics: vec![PluginDiagnostic {
                    diagnostic: Diagnostic::error("Invalid value", "The value is invalid."),
                    attribute: Path::root().attribute("value"),
                }],
            });
        }
        fine(())
    }

    async fn validate_data(&self, _ty: &str, _config: Value) -> Result<Answer<()>, Diagnostics> {
        validation(&self.remote).await;
        fine(())
    }

    async fn validate_ephemeral(&self, _ty: &str, _config: Value) -> Result<Answer<()>, Diagnostics> {
        validation(&self.remote).await;
        fine(())
    }

    async fn upgrade(&self, ty: &str, _version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        let RawState::Json(json) = state else {
            return Err(Diagnostic::error("Flat state", "Too old.").into());
        };
        let json = serde_json::from_slice(&json).map_err(|e| Diagnostic::error("Bad state", e.to_string()))?;
        let value = cty::json::from_json(&json, &self.resource(ty).implied_type());
        let value = value.map_err(|e| Diagnostic::error("Bad state", e.to_string()))?;
        let call = format!("upgrade {}", text(&value, "id"));
        fine(twisted(&self.remote, &call, value))
    }

    async fn upgrade_identity(
        &self,
        _ty: &str,
        version: u64,
        json: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        identity::upgraded(&self.remote, version, &json)
    }

    async fn read(&self, _ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        let ReadRequest {
            current,
            private,
            identity,
            ..
        } = request;
        self.token()?;
        if call(&self.remote, &format!("read {}", text(&current, "name"))).await? {
            return Ok(Answer {
                value: ObjectRead {
                    object: current,
                    private,
                    identity,
                },
                diagnostics: error("Cannot read", "Out of order."),
            });
        }
        let (is_throttled, latency) = {
            let mut w = self.remote.lock();
            w.reads += 1;
            let before = w.throttled;
            w.throttled = before.saturating_sub(1);
            (before > 0 || is_too_fast(&mut w), w.latency)
        };
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        if is_throttled {
            return Ok(Answer {
                value: ObjectRead {
                    object: current,
                    private,
                    identity,
                },
                diagnostics: error("Cannot read", "The service says: 429 Too Many Requests."),
            });
        }
        let id = text(&current, "id").to_owned();
        let found = self.remote.lock().objects.get(&id).cloned();
        let found = found.unwrap_or_else(|| Value::null(current.ty().clone()));
        let call = format!("read {}", text(&found, "name"));
        let private = self.remote.lock().noted(private, "read ");
        fine(ObjectRead {
            identity: identity_of(&self.remote, &call, &found, identity),
            object: twisted(&self.remote, &call, found),
            private,
        })
    }

    async fn plan(&self, _ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        let PlanRequest {
            prior,
            proposed,
            prior_private,
            prior_identity,
            planned_private,
            ..
        } = request;
        self.remote.lock().planned_private.push(planned_private);
        self.token()?;
        let name = if proposed.is_null() {
            text(&prior, "name")
        } else {
            text(&proposed, "name")
        }
        .to_owned();
        let failing = call(&self.remote, &format!("plan {name}")).await?;
        let mut requires_replace = Vec::new();
        let mut planned = proposed;
        if planned.is_null() {
        } else if prior.is_null() {
            for name in COMPUTED {
                planned = with(&planned, name, Value::unknown(Type::String));
            }
        } else if planned != prior {
            planned = with(&planned, "note", Value::unknown(Type::String));
            planned = with(&planned, "token", Value::unknown(Type::String));
            if planned.get("forced") != prior.get("forced") {
                requires_replace.push(Path::root().attribute("forced"));
            }
        }
        let planned = twisted(&self.remote, &format!("plan {name}"), planned);
        let identity = identity_of(&self.remote, &format!("plan {name}"), &planned, prior_identity);
        let w = self.remote.lock();
        requires_replace.extend(w.replaced_for.get(&name).cloned());
        let change = PlannedChange {
            planned,
            requires_replace,
            private: w.noted(prior_private, "planned "),
            identity,
            legacy_type_system: w.legacy,
        };
        drop(w);
        Ok(Answer {
            value: change,
            diagnostics: if failing {
                error("Cannot plan", "Not today.")
            } else {
                Vec::new()
            },
        })
    }

    fn has_ended(&self) -> bool {
        false
    }

    async fn apply(&self, _ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        let ApplyRequest {
            prior,
            planned,
            config,
            planned_private,
            planned_identity,
            ..
        } = request;
        let token = self.token()?;
        let (verb, object) = match (prior.is_null(), planned.is_null()) {
            (true, _) => ("create", &planned),
            (_, true) => ("delete", &prior),
            _ => ("update", &planned),
        };
        let name = format!("{verb} {}", text(object, "name"));
        let answer = |state: Value, diagnostics| {
            let identity = identity_of(&self.remote, &name, &state, planned_identity.clone());
            let w = self.remote.lock();
            Ok(Answer {
                value: Applied {
                    state,
                    private: w.noted(planned_private.clone(), "applied "),
                    identity,
                    legacy_type_system: w.legacy,
                },
                diagnostics,
            })
        };
        // The call fails, and the prior object is unchanged.
        if call(&self.remote, &name).await? {
            return answer(prior, error("Operation failed", &format!("Could not {name}.")));
        }
        let half = self.remote.lock().half.contains(&name);
        let new = match verb {
            "delete" => {
                self.remote.lock().objects.remove(text(&prior, "id"));
                planned
            }
            _ => {
                let mut w = self.remote.lock();
                w.count += 1;
                let mut new = planned.clone();
                if verb == "create" {
                    new = with(
                        &new,
                        "id",
                        Value::string(format!("id-{}-{}", text(&planned, "name"), w.count)),
                    );
                }
                let password = if config.get("password").is_some_and(|p| !p.is_null()) {
                    format!(" with {}", text(&config, "password"))
                } else {
                    String::new()
                };
                new = with(&new, "note", Value::string(format!("note-{}{password}", w.count)));
                if new.get("token").is_some_and(|t| !t.is_known()) {
                    new = with(&new, "token", token);
                }
                w.objects.insert(text(&new, "id").to_owned(), new.clone());
                new
            }
        };
        {
            let mut w = self.remote.lock();
            // The operation took effect, but its response is lost.
            if w.lost.contains(&name) {
                let id = text(if new.is_null() { &prior } else { &new }, "id").to_owned();
                w.lost_effects.push((verb.into(), id));
                return Err(Diagnostic::error("Plugin did not respond", format!("The plugin died in {name}.")).into());
            }
        }
        let new = twisted(&self.remote, &name, new);
        answer(
            new,
            if half {
                error("Half done", &format!("Could not finish {name}."))
            } else {
                Vec::new()
            },
        )
    }

    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        let id = match target {
            ImportTarget::Id(id) => id,
            ImportTarget::Identity(identity) => text(identity, "id"),
        };
        call(&self.remote, &format!("import {id}")).await?;
        // A read returns null if the object does not exist.
        let empty = self.resource(ty).block.empty_object();
        let state = twisted(
            &self.remote,
            &format!("import {id}"),
            with(&empty, "id", Value::string(id)),
        );
        let found = || Imported {
            ty: ty.into(),
            state: state.clone(),
            private: Vec::new(),
            identity: identity_of(&self.remote, &format!("import {id}"), &state, None),
        };
        let count = self.remote.lock().imported.get(id).copied().unwrap_or(1);
        fine(std::iter::repeat_with(found).take(count).collect())
    }

    async fn generate_config(&self, _ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        identity::configuration(&self.remote, &object).await
    }

    async fn validate_list(&self, _ty: &str, _config: Value) -> Result<Answer<()>, Diagnostics> {
        validation(&self.remote).await;
        fine(())
    }

    async fn list(&self, _ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        self.token()?;
        identity::listed(&self.remote, request).await
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        let source = format!("{} {}", request.source_provider, request.source_type);
        self.remote.lock().moved.push(source);
        // All resource types have the same schema.
        let value = self
            .upgrade(target_type, request.source_version, request.source_state)
            .await?
            .value;
        let moved = format!("move {}", text(&value, "id"));
        fine(ObjectRead {
            identity: identity_of(&self.remote, &moved, &value, None),
            object: value,
            private: request.source_private,
        })
    }

    async fn read_data(&self, _ty: &str, config: Value, _meta: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        self.token()?;
        let query = text(&config, "query").to_owned();
        let name = format!("data {query}");
        if call(&self.remote, &name).await? {
            return Ok(Answer {
                value: config,
                diagnostics: error("Cannot look up", "Nothing found."),
            });
        }
        fine(twisted(
            &self.remote,
            &name,
            with(&config, "result", Value::string(format!("result of {query}"))),
        ))
    }

    async fn open_ephemeral(&self, _ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics> {
        self.token()?;
        let name = text(&config, "name").to_owned();
        let failing = call(&self.remote, &format!("open {name}")).await?;
        let secret = {
            let mut w = self.remote.lock();
            w.count += 1;
            format!("secret-{name}-{}", w.count)
        };
        let result = twisted(
            &self.remote,
            &format!("open {name}"),
            with(&config, "secret", Value::string(secret)),
        );
        let renew_at = self.remote.lock().renew.then_some((1, 0));
        Ok(Answer {
            value: Opened {
                result,
                private: Some(name.into_bytes()),
                renew_at,
            },
            diagnostics: if failing {
                error("Cannot open", "It is locked.")
            } else {
                Vec::new()
            },
        })
    }

    async fn renew_ephemeral(&self, _ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        let name = String::from_utf8(private.unwrap_or_default()).unwrap();
        let failing = call(&self.remote, &format!("renew {name}")).await?;
        Ok(Answer {
            value: Opened {
                result: Value::dynamic(),
                private: Some(format!("{name}+").into_bytes()),
                renew_at: None,
            },
            diagnostics: if failing {
                error("Cannot renew", "It has run out.")
            } else {
                Vec::new()
            },
        })
    }

    async fn close_ephemeral(&self, _ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        let name = String::from_utf8(private.unwrap_or_default()).unwrap();
        let failing = call(&self.remote, &format!("close {name}")).await?;
        Ok(Answer {
            value: (),
            diagnostics: if failing {
                error("Cannot close", "It is stuck.")
            } else {
                Vec::new()
            },
        })
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        let signs = self.token.lock().unwrap().is_some();
        let shout = self.schema.functions.get("shout").unwrap();
        let names = ["shout", "sign"].into_iter().take(1 + usize::from(signs));
        Ok(names.map(|name| (name.into(), shout.clone())).collect())
    }

    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        // This function exists only after the provider is configured.
        if name == "sign" {
            let token = self.token()?;
            let signed = format!("{}:{}", token.as_str().unwrap(), arguments[0].as_str().unwrap());
            return Ok(Ok(Value::string(signed)));
        }
        let said = arguments.first().and_then(Value::as_str).unwrap_or("?").to_owned();
        call(&self.remote, &format!("call {name} {said}")).await?;
        if said.is_empty() {
            return Ok(Err(FunctionError {
                text: "nothing to say.".into(),
                argument: Some(0),
            }));
        }
        let loud = Value::string(said.to_uppercase());
        Ok(Ok(twisted(&self.remote, &format!("call {name} {said}"), loud)))
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        self.remote.lock().log.push("stop".into());
        Ok(())
    }

    async fn close(&self) {
        if let Some(token) = &*self.token.lock().unwrap() {
            let mut remote = self.remote.lock();
            let entries = remote.log.len();
            let token = token.as_str().unwrap_or_default().to_owned();
            remote.closed_providers.push((token, entries));
        }
    }
}

/// A provisioner of the remote, with its type.
struct FakeProvisioner(FakeRemote, String);

#[async_trait]
impl Provisioner for FakeProvisioner {
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics> {
        if self.0.lock().schemaless.contains(&self.1) {
            return Err(Diagnostic::error("No schema", format!("The provisioner {} has none.", self.1)).into());
        }
        Ok(Arc::new(Schema::new(0, block(&[("text", Type::String, "r")]))))
    }

    async fn validate(&self, _config: Value) -> Result<Answer<()>, Diagnostics> {
        fine(())
    }

    async fn provision(
        &self,
        config: Value,
        _connection: Value,
        output: &Output<'_>,
    ) -> Result<Answer<()>, Diagnostics> {
        let name = format!("provision {}", text(&config, "text"));
        let failing = call(&self.0, &name).await?;
        output(text(&config, "text"));
        Ok(Answer {
            value: (),
            diagnostics: if failing {
                error("Provisioner failed", &name)
            } else {
                Vec::new()
            },
        })
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        Ok(())
    }

    async fn close(&self) {
        self.0.lock().closed_provisioners.push(self.1.clone());
    }
}
