//! The resource `zoo_pen`: an object with all of its operations.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{
    Attr, Context, Diagnostic, Empty, Found, IdentityAttribute, ListResource,
    Model, Resource, Result, async_trait,
};

use crate::service::Zoo;

/// A pen for animals.
#[derive(Clone, Default, Model)]
pub struct Pen {
    /// Name of the pen. Another name means another pen.
    #[member(required().requires_replace())]
    pub name: Attr<String>,
    /// Ground of the pen; `grass` by default.
    #[member(optional().computed().default("grass".to_owned()))]
    pub ground: Attr<String>,
    /// Identifier in the service.
    #[member(computed().keep())]
    pub id: Attr<String>,
}

pub struct Pens;

#[async_trait]
impl Resource for Pens {
    type Model = Pen;
    type Client = Zoo;

    fn identity(&self) -> Vec<IdentityAttribute> {
        vec![IdentityAttribute {
            name: "name",
            required_for_import: true,
            description: "Name of the pen.",
        }]
    }

    async fn create(&self, plan: Pen, cx: &mut Context<Zoo>) -> Result<Pen> {
        let id = format!("pen/{}", plan.name.text());
        cx.client()?.put(&id, &[("ground", plan.ground.text())]);
        let id = id.into();
        Ok(Pen { id, ..plan })
    }

    async fn read(
        &self,
        state: Pen,
        cx: &mut Context<Zoo>,
    ) -> Result<Option<Pen>> {
        let row = cx.client()?.get(state.id.text());
        Ok(row.map(|row| Pen {
            ground: row["ground"].clone().into(),
            ..state
        }))
    }

    async fn update(
        &self,
        _prior: Pen,
        plan: Pen,
        cx: &mut Context<Zoo>,
    ) -> Result<Pen> {
        self.create(plan, cx).await
    }

    async fn delete(&self, state: Pen, cx: &mut Context<Zoo>) -> Result<()> {
        cx.client()?.remove(state.id.text());
        Ok(())
    }

    async fn import(&self, name: &str, cx: &mut Context<Zoo>) -> Result<Pen> {
        let pen = Pen {
            name: name.into(),
            id: format!("pen/{name}").into(),
            ..Pen::default()
        };
        let detail = format!("There is no pen {name:?} in the zoo.");
        let missing = || Diagnostic::error("Pen not found", detail);
        Ok(self.read(pen, cx).await?.ok_or_else(missing)?)
    }
}

/// Pens for `list` blocks.
pub struct PenList;

#[async_trait]
impl ListResource for PenList {
    type Config = Empty;
    type Model = Pen;
    type Client = Zoo;

    async fn list(
        &self,
        _config: Empty,
        found: &mut Found<Pen>,
        cx: &mut Context<Zoo>,
    ) -> Result<()> {
        for id in cx.client()?.ids("pen/") {
            let name = id.trim_start_matches("pen/").to_owned();
            let pen = Pens.import(&name, cx).await?;
            if !found.push(name, pen).await {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::provider::tests::configured;

    #[tokio::test]
    async fn pen_is_created_updated_replaced_imported_and_destroyed() {
        let harness = configured().await;
        let mut pen = harness.object("zoo_pen");
        pen.apply(&[("name", "north".into())]).await.unwrap();
        assert_eq!(pen.get("ground"), Some(&"grass".into()));

        let sand = [("name", "north".into()), ("ground", "sand".into())];
        assert!(pen.plan(&sand).await.unwrap().replace.is_empty());
        pen.apply(&sand).await.unwrap();

        let south = pen.plan(&[("name", "south".into())]).await.unwrap();
        assert_eq!(south.replace, ["name"]);

        let imported = harness.import("zoo_pen", "north").await.unwrap();
        assert_eq!(imported.get("ground"), Some(&"sand".into()));
        let listed = harness.list("zoo_pen", &[], 10, false).await.unwrap();
        assert_eq!(listed[0].display_name, "north");

        pen.destroy().await.unwrap();
        assert!(harness.import("zoo_pen", "north").await.is_err());
    }

    #[tokio::test]
    async fn pen_that_somebody_removed_is_not_in_the_state() {
        let harness = configured().await;
        let mut pen = harness.object("zoo_pen");
        pen.apply(&[("name", "north".into())]).await.unwrap();
        let mut other = harness.object("zoo_pen");
        other.import("north").await.unwrap();
        other.destroy().await.unwrap();

        pen.read().await.unwrap();
        assert_eq!(pen.state(), None);
    }
}
