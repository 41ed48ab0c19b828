//! Lists of existing objects, as the services send them.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::guard::guarded_now;
use crate::list::{AnyList, ListRequest};
use crate::resource::{identity_of, identity_type};
use crate::server::core::{Core, Wire, decode, encode, with_defaults};
use crate::server::threads::spawn;
use crate::{Diagnostic, Diagnostics, Result, Stop, check};

/// How many objects may wait to be sent.
const WAITING: usize = 64;

/// One event of a list: an object, or problems.
#[derive(Debug, Default)]
pub(crate) struct ListEvent {
    pub display_name: String,
    pub identity: Option<Wire>,
    pub object: Option<Wire>,
    pub diagnostics: Diagnostics,
}

/// What a request to list objects says.
pub(crate) struct ListCall {
    pub name: String,
    pub config: Wire,
    pub include_objects: bool,
    pub limit: i64,
}

impl Core {
    fn lister(&self, name: &str) -> Result<&dyn AnyList> {
        match self.lists.get(name) {
            Some(list) => Ok(&**list),
            None => Err(Diagnostic::error(
                "Unknown list resource",
                format!("This provider has no list resource \"{name}\"."),
            )
            .into()),
        }
    }

    pub fn validate_list(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let list = self.lister(name)?;
            let config = decode(config, &list.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(list.schema(), &config, true);
            diagnostics.append(guarded_now(|| list.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    /// Lists objects. Whoever takes the events may go away: then the list is asked to stop.
    pub fn list(self: Arc<Core>, request: ListCall) -> mpsc::Receiver<ListEvent> {
        let (events, stream) = mpsc::channel(WAITING);
        let call = self.calls.begin();
        spawn(self.blocks, async move {
            let mut caller = Some(call.stop_on_drop());
            let work = self.list_into(request, events.clone(), call.stop());
            tokio::pin!(work);
            let diagnostics = loop {
                tokio::select! {
                    diagnostics = &mut work => break diagnostics,
                    () = events.closed(), if caller.is_some() => drop(caller.take()),
                }
            };
            if !diagnostics.0.is_empty() {
                let event = ListEvent {
                    diagnostics,
                    ..ListEvent::default()
                };
                drop(events.send(event).await);
            }
            drop(call);
        });
        stream
    }

    async fn list_into(&self, request: ListCall, events: mpsc::Sender<ListEvent>, stop: Stop) -> Diagnostics {
        let (objects, mut found) = mpsc::channel(WAITING);
        let prepared = || {
            let list = self.lister(&request.name)?;
            let config = decode(&request.config, &list.schema().ty)?;
            Ok::<_, Diagnostics>((list, with_defaults(list.schema(), &config)))
        };
        let (list, config) = match prepared() {
            Ok(prepared) => prepared,
            Err(diagnostics) => return diagnostics,
        };
        let Some(resource) = self.resources.get(&*request.name) else {
            return Diagnostics::new();
        };
        let asked = ListRequest {
            limit: u64::try_from(request.limit).unwrap_or_default(),
            include_objects: request.include_objects,
            objects,
        };
        let send = async {
            while let Some((display_name, object)) = found.recv().await {
                let value = object.to_object(resource.schema());
                let identity = identity_of(resource.identity(), &value);
                let wired = || -> Result<(Option<Wire>, Option<Wire>)> {
                    let ty = identity_type(resource.schema(), resource.identity());
                    let identity = identity.map(|identity| encode(&identity, &ty)).transpose()?;
                    let object = request
                        .include_objects
                        .then(|| encode(&value, &resource.schema().ty))
                        .transpose()?;
                    Ok((identity, object))
                };
                let event = match wired() {
                    Ok((identity, object)) => ListEvent {
                        display_name,
                        identity,
                        object,
                        ..ListEvent::default()
                    },
                    Err(diagnostics) => ListEvent {
                        diagnostics,
                        ..ListEvent::default()
                    },
                };
                if events.send(event).await.is_err() {
                    break;
                }
            }
            // What is still found is dropped.
            found.close();
        };
        futures::join!(list.list(&config, asked, stop), send).0
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use cty::Value;

    use cty::json::Json;

    use super::*;
    use crate::schema::{computed, optional, required};
    use crate::{Attr, Context, Found, IdentityAttribute, ListResource, Plain, Resource, model};

    model! {
        /// A thing.
        pub struct Thing {
            /// Its name.
            pub name: Attr<String> = required(),
            /// Its size.
            pub size: Attr<i64> = computed(),
        }
    }

    model! {
        /// What to look for.
        pub struct Search {
            /// What the name begins with.
            pub prefix: Attr<String> = optional(),
        }
    }

    struct Things;

    #[async_trait]
    impl Resource for Things {
        type Model = Thing;
        type Client = ();
        const GENERATES_CONFIG: bool = true;
        const IDENTITY_VERSION: i64 = 2;

        fn identity(&self) -> Vec<IdentityAttribute> {
            vec![IdentityAttribute {
                name: "name",
                required_for_import: true,
                description: "The name.",
            }]
        }

        fn upgrade_identity(&self, version: i64, identity: Json) -> Result<Json> {
            match version {
                1 => Ok(Json::object([("name", identity["title"].clone())])),
                _ => Err(Diagnostic::error("Too old", "Nobody knows version 0 any more.").into()),
            }
        }

        async fn create(&self, plan: Thing, _cx: &mut Context<()>) -> Result<Thing> {
            Ok(plan)
        }
    }

    struct AllThings;

    #[async_trait]
    impl ListResource for AllThings {
        type Config = Search;
        type Model = Thing;
        type Client = ();

        async fn list(&self, config: Search, found: &mut Found<Thing>, _cx: &mut Context<()>) -> Result<()> {
            for (size, name) in (1..).zip(["anna", "bert", "astrid"]) {
                let thing = Thing {
                    name: name.into(),
                    size: size.into(),
                };
                if name.starts_with(config.prefix.text()) && !found.push(name.to_uppercase(), thing).await {
                    return Ok(());
                }
            }
            Err(Diagnostic::error("Out of things", "There are no more.").into())
        }
    }

    fn core() -> Arc<Core> {
        Arc::new(Core::new(Plain(|members| {
            members.resource("x_thing", Things);
            members.list("x_thing", AllThings);
        })))
    }

    async fn listed(limit: i64, include_objects: bool) -> Vec<ListEvent> {
        let core = core();
        assert!(core.problems.is_empty(), "{:?}", core.problems);
        let config = Value::object([("prefix", Value::string("a"))]);
        let config = encode(&config, config.ty()).unwrap_or_else(|_| panic!("a value"));
        let mut events = core.list(ListCall {
            name: "x_thing".into(),
            config,
            include_objects,
            limit,
        });
        let mut out = Vec::new();
        while let Some(event) = events.recv().await {
            out.push(event);
        }
        out
    }

    #[tokio::test]
    async fn objects_have_their_identity_and_problems_come_last() {
        let events = listed(10, false).await;
        let names: Vec<&str> = events.iter().map(|e| &*e.display_name).collect();
        assert_eq!(names, ["ANNA", "ASTRID", ""]);
        assert!(events[0].identity.is_some() && events[0].object.is_none());
        assert_eq!(events[2].diagnostics.0.len(), 1);
    }

    #[test]
    fn stored_identities_become_those_of_today() {
        let core = core();
        let upgrade = |version: i64, json: &str| {
            let stored = crate::wire::RawState {
                json: json.into(),
                is_flat: false,
            };
            let (upgraded, problems) = core.upgrade_identity("x_thing", version, &stored);
            let ty = cty::Type::object([("name", cty::Type::String)]);
            let name = upgraded.map(|wire| decode(&wire, &ty).unwrap_or_else(|_| panic!("an identity")));
            (
                name.and_then(|identity| identity.get("name").cloned()),
                problems.0.len(),
            )
        };
        let anna = Some(Value::string("anna"));
        assert_eq!(upgrade(2, r#"{"name": "anna"}"#), (anna.clone(), 0));
        assert_eq!(upgrade(1, r#"{"title": "anna"}"#), (anna, 0));
        assert_eq!(upgrade(0, r#"{"title": "anna"}"#), (None, 1));
    }

    #[tokio::test]
    async fn list_ends_at_the_limit() {
        let events = listed(1, true).await;
        assert_eq!(events.len(), 1);
        assert!(events[0].object.is_some());
    }

    #[tokio::test]
    async fn generated_configuration_has_what_can_be_set() {
        let core = core();
        let ty = core.resources["x_thing"].schema().ty.clone();
        let thing = Value::object([("name", Value::string("a")), ("size", Value::number(1))]);
        let wire = encode(&thing, &ty).unwrap_or_else(|_| panic!("a value"));
        let (config, problems) = core.generate_config("x_thing", &wire, Stop::never().into()).await;
        assert!(problems.0.is_empty());
        let config =
            decode(&config.unwrap_or_else(|| panic!("a configuration")), &ty).unwrap_or_else(|_| panic!("a value"));
        assert_eq!(config.get("name"), Some(&Value::string("a")));
        assert!(config.get("size").is_some_and(Value::is_null));
    }

    #[test]
    fn list_without_resource_is_a_problem() {
        let core = Core::new(Plain(|members| members.list("x_thing", AllThings)));
        assert_eq!(
            core.problems,
            ["list resource x_thing: there is no resource of this name that has an identity"]
        );
    }
}
