//! The resource `terraform_data`.

use std::collections::BTreeMap;

use monoform_sdk::cty::{Path, Type, Value};
use monoform_sdk::schema::{block, computed, optional};
use monoform_sdk::{
    Any, Attr, Context, Diagnostic, IdentityAttribute, MoveSource, Plan, Resource, Result, Schema, async_trait, model,
};
use uuid::Uuid;

use crate::store::{self, Store};

model! {
    /// A value that is kept in the state.
    pub struct Model {
        /// A value to store. After the next apply, it is in `output`.
        pub input: Any = optional(),
        /// The stored value.
        pub output: Any = computed(),
        /// A value of any meaning. When it changes, the object is replaced, and with it everything that hangs on it.
        pub triggers_replace: Any = optional().requires_replace(),
        /// A value to store, which may be ephemeral.
        pub store: Attr<Store> = block(),
        /// A random UUID, new for each object.
        pub id: Attr<String> = computed().keep(),
    }
}

model! {
    /// State of a `null_resource`, which can be moved to a `terraform_data`.
    pub struct NullResource {
        /// Map whose changes replace the resource.
        pub triggers: Attr<BTreeMap<String, Attr<String>>> = optional(),
        /// Its random number.
        pub id: Attr<String> = computed(),
    }
}

pub(crate) struct TerraformData;

#[async_trait]
impl Resource for TerraformData {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;
    // As in Terraform, the schema has an identity, but answers have none.
    const ANSWERS_IDENTITY: bool = false;

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("Stores a value, and has the usual life cycle without any object at a service.")
            .plain()
    }

    fn identity(&self) -> Vec<IdentityAttribute> {
        vec![IdentityAttribute {
            name: "id",
            required_for_import: true,
            description: "The id of the object.",
        }]
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        let mut planned = plan.planned()?;
        let prior = plan.prior()?;
        if let Some(prior) = &prior {
            for (was, will) in [
                (&prior.input, &mut planned.input),
                (&prior.triggers_replace, &mut planned.triggers_replace),
            ] {
                if is_of_older_release(&was.0, &will.0) {
                    *will = was.clone();
                }
            }
        }
        let Any(input) = &planned.input;
        planned.output = Any(match &prior {
            Some(prior) if prior.input.0 == *input => prior.output.0.clone(),
            // A null value has a type as well, and the output must have the same type.
            _ if input.is_null() => Value::null(input.ty().clone()),
            _ => Value::unknown(input.ty().clone()),
        });
        let renewed = match plan_store(plan, &mut planned, prior.as_ref()) {
            Ok(renewed) => renewed,
            Err(diagnostic) => {
                plan.diagnose(diagnostic);
                return Ok(());
            }
        };
        if renewed {
            planned.id = Attr::Unknown;
        }
        plan.set(&planned);
        if renewed {
            plan.replace_at(Path::root().attribute("store").attribute("input"));
        } else {
            plan.never_null("id");
        }
        Ok(())
    }

    async fn create(&self, plan: Model, cx: &mut Context<()>) -> Result<Model> {
        Ok(Model {
            id: Uuid::new_v4().to_string().into(),
            ..with_outputs(plan, cx)?
        })
    }

    async fn update(&self, _prior: Model, plan: Model, cx: &mut Context<()>) -> Result<Model> {
        with_outputs(plan, cx)
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        Ok(Model {
            id: id.into(),
            ..Model::default()
        })
    }

    async fn move_from(&self, source: MoveSource, _cx: &mut Context<()>) -> Result<Option<Model>> {
        if !source.provider.ends_with("hashicorp/null") {
            return Err(Diagnostic::error(
                "Unsupported source provider for move operation",
                "Only objects of the hashicorp/null provider can be moved to terraform_data.",
            )
            .into());
        }
        if source.type_name != "null_resource" {
            return Err(Diagnostic::error(
                "Unsupported source resource type for move operation",
                "Only null_resource can be moved to terraform_data.",
            )
            .into());
        }
        let old: NullResource = source.read()?;
        // The triggers become an object, as if they were written in braces in a configuration. A map with the same values would count as a
        // change.
        let triggers = match old.triggers {
            Attr::Known(triggers) => Value::object(triggers.into_iter().map(|(name, value)| {
                (
                    name,
                    value
                        .into_known()
                        .map_or_else(|| Value::null(Type::String), Value::string),
                )
            })),
            _ => Value::null(Type::Dynamic),
        };
        Ok(Some(Model {
            triggers_replace: Any(triggers),
            id: old.id,
            ..Model::default()
        }))
    }
}

/// Plans the `store` block. Returns true if a new value requires a replacement of the object.
fn plan_store(
    plan: &Plan<'_, Model>,
    planned: &mut Model,
    prior: Option<&Model>,
) -> std::result::Result<bool, Diagnostic> {
    let store = match &mut planned.store {
        Attr::Null => return Ok(false),
        Attr::Unknown => return Err(store::must_be_known("sensitive")),
        Attr::Known(store) => store,
    };
    let (config, _) = plan.values();
    let input = config.get("store").and_then(|s| s.get("input")).cloned();
    let input = input.unwrap_or_else(|| Value::null(Type::Dynamic));
    let before = prior.and_then(|prior| prior.store.known());
    (store.output, store.sensitive_output) = match before {
        Some(before) => (before.output.clone(), before.sensitive_output.clone()),
        None => (Any::default(), Any::default()),
    };
    // A change of `triggers_replace` replaces the object, and the new object has no earlier stored value.
    let goes_on = prior.is_some_and(|prior| prior.triggers_replace == planned.triggers_replace);
    store.plan(&input, before.filter(|_| goes_on))
}

/// Attributes of `terraform_data` in releases of Terraform before 1.16.
const OLDER_ATTRIBUTES: [&str; 4] = ["id", "input", "output", "triggers_replace"];

/// Block that Terraform 1.16 added to `terraform_data`.
const ADDED_BLOCK: &str = "store";

/// Returns true if two values differ only because objects in them come from `terraform_data` of an older release: the old value does not
/// have the added block, and the new value has null there. Such a difference requires no replacement.
fn is_of_older_release(was: &Value, will: &Value) -> bool {
    was != will && equal_apart_from_added_block(was, will)
}

fn equal_apart_from_added_block(was: &Value, will: &Value) -> bool {
    if was == will {
        return true;
    }
    match (was.ty(), will.ty()) {
        (Type::Object(old), Type::Object(new)) => {
            let added = new.len() == old.len() + 1
                && old.len() == OLDER_ATTRIBUTES.len()
                && OLDER_ATTRIBUTES.iter().all(|name| old.get(name).is_some())
                && will.get(ADDED_BLOCK).is_some_and(Value::is_null);
            (added || new.len() == old.len())
                && was.entries().into_iter().flatten().all(|(name, before)| {
                    let after = will.get(name);
                    after.is_some_and(|after| equal_apart_from_added_block(before, after))
                })
        }
        (Type::Map(_), Type::Map(_)) => {
            was.len() == will.len()
                && was.entries().into_iter().flatten().all(|(key, before)| {
                    let after = will.get(key);
                    after.is_some_and(|after| equal_apart_from_added_block(before, after))
                })
        }
        (Type::Tuple(_), Type::Tuple(_)) | (Type::List(_), Type::List(_)) | (Type::Set(_), Type::Set(_)) => {
            // Elements of both sets are in the same order: the added block is null in all of them, so it does not change the order.
            match (was.as_seq(), will.as_seq()) {
                (Some(x), Some(y)) => {
                    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal_apart_from_added_block(x, y))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Sets the attributes that are unknown in the plan: `store.output` from the configuration, and `output` from `input`.
fn with_outputs(mut plan: Model, cx: &Context<()>) -> Result<Model> {
    if let Attr::Known(store) = &mut plan.store {
        store.resolve(|| {
            let config = cx.config::<Model>()?;
            Ok(config.store.into_known().unwrap_or_default().input.0)
        })?;
    }
    plan.output = plan.input.clone();
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    use super::*;

    #[tokio::test]
    async fn output_follows_input() {
        let harness = Harness::new(crate::provider());
        let plan = harness
            .plan("terraform_data", None, &[("input", "a".into())])
            .await
            .unwrap();
        assert_eq!(plan.planned.get("output"), Some(&Value::unknown(Type::String)));
        assert_eq!(plan.planned.get("id"), Some(&Value::unknown_not_null(Type::String)));
        let state = harness
            .create("terraform_data", &[("input", "a".into())])
            .await
            .unwrap();
        assert_eq!(state.get("output"), Some(&"a".into()));

        let plan = harness
            .plan("terraform_data", Some(&state), &[("input", 1.into())])
            .await
            .unwrap();
        assert_eq!(plan.planned.get("output"), Some(&Value::unknown(Type::Number)));
        assert_eq!((plan.planned.get("id"), plan.replace.len()), (state.get("id"), 0));
        let state = harness
            .apply(
                "terraform_data",
                Some(&state),
                Some(&plan.planned),
                &[("input", 1.into())],
            )
            .await
            .unwrap();
        assert_eq!(state.get("output"), Some(&1.into()));
        let again = harness
            .plan("terraform_data", Some(&state), &[("input", 1.into())])
            .await
            .unwrap();
        assert_eq!(again.planned, state);
        let without = harness.plan("terraform_data", Some(&state), &[]).await.unwrap();
        assert!(without.planned.get("output").unwrap().is_null());
    }

    #[tokio::test]
    async fn triggers_are_compared_with_their_type() {
        let harness = Harness::new(crate::provider());
        let map = Value::map(Type::String, [("a".into(), "b".into())].into());
        let state = harness
            .create("terraform_data", &[("triggers_replace", map.clone())])
            .await
            .unwrap();
        for (triggers, replaced) in [
            (map, false),
            (Value::object([("a", Value::string("b"))]), true),
            (Value::unknown(Type::String), true),
            (Value::null(Type::Dynamic), true),
        ] {
            let config = [("triggers_replace", triggers.clone())];
            let plan = harness.plan("terraform_data", Some(&state), &config).await.unwrap();
            assert_eq!(!plan.replace.is_empty(), replaced, "{triggers:?}");
        }
    }

    /// Returns a `terraform_data` object as a reference to it evaluates, with or without the added block.
    fn seen(with_store: bool, input: &str) -> Value {
        let mut attributes = vec![
            ("id", Value::string("i")),
            ("input", Value::string(input)),
            ("output", Value::string(input)),
            ("triggers_replace", Value::null(Type::Dynamic)),
        ];
        if with_store {
            attributes.push(("store", Value::null(Type::object([("input", Type::Dynamic)]))));
        }
        Value::object(attributes)
    }

    #[tokio::test]
    async fn objects_of_older_releases_are_equal_to_those_with_a_null_store() {
        let harness = Harness::new(crate::provider());
        let deep = |with_store| Value::object([("all", Value::tuple(vec![seen(with_store, "x")]))]);
        for (old, new) in [
            (seen(false, "x"), seen(true, "x")),
            (
                Value::tuple(vec![seen(false, "x")]),
                Value::tuple(vec![seen(true, "x")]),
            ),
            (deep(false), deep(true)),
        ] {
            let config = |value: &Value| [("input", value.clone()), ("triggers_replace", value.clone())];
            let state = harness.create("terraform_data", &config(&old)).await.unwrap();
            let plan = harness
                .plan("terraform_data", Some(&state), &config(&new))
                .await
                .unwrap();
            // The plan may still list `triggers_replace` as requiring replacement. Hosts ignore that for an attribute without a change.
            assert_eq!(plan.planned, state, "{new:?}");
        }
        let state = harness
            .create("terraform_data", &[("triggers_replace", seen(false, "x"))])
            .await
            .unwrap();
        // Any other difference is a change, even the same null block in an object of another type.
        let other = Value::object([("a", Value::from(1)), ("store", Value::null(Type::String))]);
        for config in [seen(true, "y"), other] {
            let config = [("triggers_replace", config)];
            let plan = harness.plan("terraform_data", Some(&state), &config).await.unwrap();
            assert_eq!(plan.replace.len(), 1);
        }
        assert!(!is_of_older_release(
            &Value::object([("a", Value::from(1))]),
            &Value::object([("a", Value::from(1)), ("store", Value::null(Type::String))])
        ));
    }

    fn source(provider: &str, type_name: &str, json: &str) -> MoveSource {
        MoveSource {
            provider: provider.into(),
            type_name: type_name.into(),
            schema_version: 0,
            state: json.parse().unwrap(),
            identity: None,
            identity_schema_version: 0,
        }
    }

    #[tokio::test]
    async fn null_resources_can_become_this() {
        let harness = Harness::new(crate::provider());
        let provider = "registry.terraform.io/hashicorp/null";
        let json = r#"{"id":"12","triggers":{"a":"b","c":null}}"#;
        let state = harness
            .move_from("terraform_data", source(provider, "null_resource", json), Vec::new())
            .await
            .unwrap();
        assert_eq!(state.get("id"), Some(&"12".into()));
        let triggers = Value::object([("a", Value::string("b")), ("c", Value::null(Type::String))]);
        assert_eq!(
            state.get("triggers_replace").and_then(|t| t.get("a")),
            triggers.get("a")
        );
        for (provider, name, summary) in [
            (
                provider,
                "null_thing",
                "Unsupported source resource type for move operation",
            ),
            (
                "registry.terraform.io/a/b",
                "null_resource",
                "Unsupported source provider for move operation",
            ),
        ] {
            let errors = harness
                .move_from("terraform_data", source(provider, name, json), Vec::new())
                .await
                .unwrap_err();
            assert_eq!(errors.0[0].summary, summary);
        }
        let imported = harness.import("terraform_data", "any").await.unwrap();
        assert_eq!(imported.get("id"), Some(&"any".into()));
    }
}
