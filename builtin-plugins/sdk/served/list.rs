//! Requests for list resources.

use tokio::sync::mpsc;

use super::provider::{ServedProvider, with_defaults};
use crate::check;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::guard::guarded_now;
use crate::identity::{identity_of, identity_type};
use crate::list::{AnyList, ListRequest};
use crate::stop::Stop;
use crate::wire::{Wire, decode, encode};

/// Maximum number of found objects that wait to be sent.
const WAITING: usize = 64;

/// An event of a list: an object that was found, or errors and warnings without an object.
#[derive(Debug, Default)]
pub struct ListEvent {
    pub display_name: String,
    pub identity: Option<Wire>,
    pub object: Option<Wire>,
    pub diagnostics: Diagnostics,
}

/// A request to list objects.
pub struct ListCall {
    pub name: String,
    pub config: Wire,
    pub include_objects: bool,
    pub limit: i64,
}

impl ServedProvider {
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
            let diagnostics = check::against_schema(list.schema(), &config, true);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| list.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    /// Lists objects, and sends an event for each. Ends early if the receiver is dropped.
    pub async fn list(&self, request: ListCall, events: mpsc::Sender<ListEvent>, stop: Stop) -> Diagnostics {
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
        // Refused in the answer with the schemas: see `ServedProvider::describe`.
        let Some(resource) = self.resources.get(&*request.name) else {
            return Diagnostics::new();
        };
        let asked = ListRequest {
            limit: u64::try_from(request.limit).unwrap_or_default(),
            include_objects: request.include_objects,
            objects,
        };
        let send = async {
            while let Some(one) = found.recv().await {
                let value = one.object.to_object(resource.schema());
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
                        display_name: one.display_name,
                        identity,
                        object,
                        diagnostics: one.diagnostics,
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
            // The receiver is gone, so objects that the list still finds are dropped.
            found.close();
        };
        // Both run concurrently: the channel is bounded, so the list waits until its objects are sent.
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
        pub struct Thing {
            pub name: Attr<String> = required(),
            pub size: Attr<i64> = computed(),
        }
    }

    model! {
        pub struct Search {
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
                if !name.starts_with(config.prefix.text()) {
                    continue;
                }
                let wants_more = match name {
                    "astrid" => {
                        let warning = Diagnostic::warning("No size", "The service does not know it.");
                        found.push_with(name.to_uppercase(), thing, warning.into()).await
                    }
                    _ => found.push(name.to_uppercase(), thing).await,
                };
                if !wants_more {
                    return Ok(());
                }
            }
            Err(Diagnostic::error("Out of things", "There are no more.").into())
        }
    }

    fn served() -> ServedProvider {
        ServedProvider::new(Plain(|members| {
            members.resource("x_thing", Things);
            members.list("x_thing", AllThings);
        }))
    }

    async fn listed(limit: i64, include_objects: bool) -> (Vec<ListEvent>, Diagnostics) {
        let served = served();
        assert!(served.problems().is_empty(), "{:?}", served.problems());
        let config = Value::object([("prefix", Value::string("a"))]);
        let config = encode(&config, config.ty()).unwrap_or_else(|_| panic!("a value"));
        let request = ListCall {
            name: "x_thing".into(),
            config,
            include_objects,
            limit,
        };
        let (events, mut received) = mpsc::channel(WAITING);
        let diagnostics = served.list(request, events, Stop::never()).await;
        let mut out = Vec::new();
        while let Some(event) = received.recv().await {
            out.push(event);
        }
        (out, diagnostics)
    }

    #[tokio::test]
    async fn objects_have_their_identity_and_the_problem_is_returned() {
        let (events, diagnostics) = listed(10, false).await;
        let names: Vec<&str> = events.iter().map(|e| &*e.display_name).collect();
        assert_eq!(names, ["ANNA", "ASTRID"]);
        assert!(events[0].identity.is_some() && events[0].object.is_none());
        let problems: Vec<usize> = events.iter().map(|e| e.diagnostics.0.len()).collect();
        assert_eq!((problems.as_slice(), events[1].identity.is_some()), (&[0, 1][..], true));
        assert_eq!(diagnostics.0.len(), 1);
    }

    #[test]
    fn stored_identities_become_those_of_today() {
        let core = served();
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
        let (events, _) = listed(1, true).await;
        assert_eq!(events.len(), 1);
        assert!(events[0].object.is_some());
    }

    #[tokio::test]
    async fn generated_configuration_has_what_can_be_set() {
        let core = served();
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
        let core = ServedProvider::new(Plain(|members| members.list("x_thing", AllThings)));
        assert_eq!(
            core.problems(),
            ["list resource x_thing: there is no resource of this name that has an identity"]
        );
    }
}
