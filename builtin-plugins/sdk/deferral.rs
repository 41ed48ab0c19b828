//! Reasons for deferring an answer.

use crate::diag::Diagnostic;

/// Reason for deferring an answer until more is known, as in the protocol.
///
/// ```
/// use monoform_sdk::schema::{computed, required};
/// use monoform_sdk::{Attr, Context, DataSource, Deferral, Result, async_trait, model};
///
/// model! {
///     pub struct Address {
///         pub house: Attr<String> = required(),
///         pub street: Attr<String> = computed(),
///     }
/// }
///
/// struct Addresses;
///
/// #[async_trait]
/// impl DataSource for Addresses {
///     type Model = Address;
///     type Client = ();
///
///     async fn read(&self, config: Address, cx: &mut Context<()>) -> Result<Address> {
///         if config.house.text() == "unbuilt" {
///             cx.defer(Deferral::AbsentPrerequisite)?;
///         }
///         Ok(Address { street: "Main Street".into(), ..config })
///     }
/// }
/// # let _ = Addresses;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deferral {
    /// An unknown value in the configuration of the object is needed for any answer.
    ResourceConfigUnknown,
    /// A value in the configuration of the provider is unknown.
    ProviderConfigUnknown,
    /// An object that this one depends on does not exist yet.
    AbsentPrerequisite,
}

impl Deferral {
    /// Builds the error for callers that do not support deferred answers.
    pub(crate) fn refused(self) -> Diagnostic {
        let missing = match self {
            Deferral::ResourceConfigUnknown => "its configuration has a value that is not known yet",
            Deferral::ProviderConfigUnknown => "the provider's configuration has a value that is not known yet",
            Deferral::AbsentPrerequisite => "something that it needs does not exist yet",
        };
        Diagnostic::error(
            "Deferral not allowed",
            format!(
                "This cannot be done now, because {missing}, and this run cannot defer it. Apply the objects that it \
                 depends on first, with -target."
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::CallOptions;
    use crate::model::Cty;
    use crate::schema::{computed, optional};
    use crate::served::{ObjectMetadata, ServedProvider};
    use crate::wire::{Wire, decode};
    use crate::{
        Attr, Context, DataSource, Empty, Members, Plan, Provider, Resource, Result, Schema, Stop, async_trait, model,
    };
    use cty::{Type, Value};

    model! {
        pub struct Meta {
            pub owner: Attr<String> = optional(),
        }
    }

    model! {
        pub struct Thing {
            pub name: Attr<String> = optional(),
            pub owner: Attr<String> = computed(),
        }
    }

    /// Resource type that defers an object while its name is unknown. The owner of an object comes from the `provider_meta` block of its
    /// module.
    struct Things;

    #[async_trait]
    impl Resource for Things {
        type Model = Thing;
        type Client = ();

        async fn plan(&self, plan: &mut Plan<'_, Thing>, cx: &mut Context<()>) -> Result<()> {
            if plan.config()?.name.is_unknown() {
                cx.defer(Deferral::ResourceConfigUnknown)?;
            }
            Ok(())
        }

        async fn create(&self, plan: Thing, cx: &mut Context<()>) -> Result<Thing> {
            let meta: Option<Meta> = cx.provider_meta()?;
            let owner = meta.map(|meta| meta.owner).unwrap_or_default();
            Ok(Thing { owner, ..plan })
        }
    }

    #[async_trait]
    impl DataSource for Things {
        type Model = Thing;
        type Client = ();

        async fn read(&self, config: Thing, cx: &mut Context<()>) -> Result<Thing> {
            cx.defer(Deferral::AbsentPrerequisite)?;
            Ok(config)
        }
    }

    struct WithMeta;

    #[async_trait]
    impl Provider for WithMeta {
        type Config = Empty;
        type Client = ();

        fn members(&self, members: &mut Members<()>) {
            members.resource("x_thing", Things);
            members.data_source("x_thing", Things);
        }

        fn meta_schema(&self) -> Option<Schema> {
            Some(Schema::of::<Meta>())
        }

        async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
            Ok(())
        }
    }

    fn wire(value: &Value, ty: &Type) -> Wire {
        crate::wire::encode(value, ty).unwrap()
    }

    fn beside() -> ObjectMetadata {
        ObjectMetadata {
            private: Vec::new(),
            identity: None,
        }
    }

    /// Plans an object whose name is unknown. Returns the deferral and the summaries of the diagnostics.
    async fn plan(allowed: bool) -> (Option<Deferral>, Vec<String>) {
        let core = ServedProvider::new(WithMeta);
        let ty = core.resources["x_thing"].schema().ty.clone();
        let (none, thing) = (
            wire(&Value::null(ty.clone()), &ty),
            Thing {
                name: Attr::Unknown,
                owner: Attr::Null,
            },
        );
        let thing = wire(&thing.to_cty(), &ty);
        let options = CallOptions::from(Stop::never()).deferral(allowed);
        let changed = core.plan("x_thing", &none, &thing, &thing, beside(), options).await;
        let found = changed.diagnostics.0.into_iter().map(|d| d.summary).collect();
        (changed.deferred, found)
    }

    #[tokio::test]
    async fn a_plan_is_deferred_only_where_the_caller_allows_it() {
        assert_eq!(plan(true).await, (Some(Deferral::ResourceConfigUnknown), vec![]));
        assert_eq!(plan(false).await, (None, vec!["Deferral not allowed".to_owned()]));
    }

    #[tokio::test]
    async fn a_data_source_can_be_deferred() {
        let core = ServedProvider::new(WithMeta);
        let ty = core.data_sources["x_thing"].schema().ty.clone();
        let config = wire(&Thing::default().to_cty(), &ty);
        let options = CallOptions::from(Stop::never()).deferral(true);
        let answer = core.read_data_source("x_thing", &config, options).await;
        assert_eq!(answer.deferred, Some(Deferral::AbsentPrerequisite));
        assert!(answer.state.is_some() && answer.diagnostics.0.is_empty());
    }

    #[tokio::test]
    async fn resources_know_what_the_module_says() {
        let core = ServedProvider::new(WithMeta);
        assert!(
            core.meta_schema().is_some() && core.problems().is_empty(),
            "{:?}",
            core.problems()
        );
        let ty = core.resources["x_thing"].schema().ty.clone();
        let none = wire(&Value::null(ty.clone()), &ty);
        let thing = wire(&Thing::default().to_cty(), &ty);
        let meta = Meta { owner: "us".into() };
        for (meta, owner) in [
            (wire(&meta.to_cty(), &Meta::ty()), Value::string("us")),
            (Wire::default(), Value::null(Type::String)),
        ] {
            let options = CallOptions::from(Stop::never()).meta(meta);
            let changed = core
                .apply("x_thing", none.clone(), &thing, thing.clone(), beside(), options)
                .await;
            let state = decode(&changed.state.unwrap(), &ty).unwrap();
            assert_eq!(state.get("owner"), Some(&owner));
        }
    }
}
