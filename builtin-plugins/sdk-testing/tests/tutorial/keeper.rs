//! The resource `zoo_keeper`: states of earlier versions.

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{
    Attr, Context, Model, MoveSource, Resource, Result, Schema, Upgrader,
    async_trait,
};

use crate::service::Zoo;

/// A keeper.
#[derive(Clone, Default, Model)]
pub struct Keeper {
    /// First name.
    #[member(required())]
    pub first_name: Attr<String>,
    /// Family name.
    #[member(optional())]
    pub family_name: Attr<String>,
}

/// A keeper in states of version 0.
#[derive(Clone, Default, Model)]
struct KeeperV0 {
    #[member(required())]
    name: Attr<String>,
}

impl From<KeeperV0> for Keeper {
    fn from(old: KeeperV0) -> Keeper {
        let name = old.name.text();
        let (first, family) = name.split_once(' ').unwrap_or((name, ""));
        Keeper {
            first_name: first.into(),
            family_name: family.into(),
        }
    }
}

pub struct Keepers;

#[async_trait]
impl Resource for Keepers {
    type Model = Keeper;
    type Client = Zoo;

    fn schema(&self) -> Schema {
        Schema::of::<Keeper>().version(1)
    }

    fn upgraders(&self) -> Vec<Upgrader<Keeper>> {
        vec![Upgrader::from(0, |old: KeeperV0| Ok(old.into()))]
    }

    async fn create(
        &self,
        plan: Keeper,
        _cx: &mut Context<Zoo>,
    ) -> Result<Keeper> {
        Ok(plan)
    }

    /// A `moved` block can name an object of the type `park_ranger`.
    async fn move_from(
        &self,
        source: MoveSource,
        _cx: &mut Context<Zoo>,
    ) -> Result<Option<Keeper>> {
        if source.type_name != "park_ranger" {
            return Ok(None);
        }
        let ranger: KeeperV0 = source.read()?;
        Ok(Some(ranger.into()))
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::tests::configured;

    #[tokio::test]
    async fn state_of_version_0_is_upgraded() {
        let harness = configured().await;
        let old = r#"{"name": "Ada Byron"}"#;
        let state = harness.upgrade("zoo_keeper", 0, old).unwrap();
        assert_eq!(state.get("first_name"), Some(&"Ada".into()));
        assert_eq!(state.get("family_name"), Some(&"Byron".into()));
    }
}
