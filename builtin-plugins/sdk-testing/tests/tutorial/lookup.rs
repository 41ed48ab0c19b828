//! The data source `zoo_pen`, the ephemeral resource `zoo_key`, and the
//! function `cage`.

use monoform_sdk::schema::{computed, required};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, EphemeralResource, Function, Model,
    Opened, Parameter, Result, async_trait,
};

use crate::service::Zoo;

/// A pen that exists.
#[derive(Clone, Default, Model)]
pub struct FoundPen {
    /// Name of the pen.
    #[member(required())]
    pub name: Attr<String>,
    /// Ground of the pen.
    #[member(computed())]
    pub ground: Attr<String>,
}

pub struct PenLookup;

#[async_trait]
impl DataSource for PenLookup {
    type Model = FoundPen;
    type Client = Zoo;

    async fn read(
        &self,
        config: FoundPen,
        cx: &mut Context<Zoo>,
    ) -> Result<FoundPen> {
        let id = format!("pen/{}", config.name.text());
        let detail = format!("There is no pen {:?}.", config.name.text());
        let missing = || Diagnostic::error("Pen not found", detail);
        let row = cx.client()?.get(&id).ok_or_else(missing)?;
        let ground = row["ground"].as_str().into();
        Ok(FoundPen { ground, ..config })
    }
}

/// A key to a pen, for one run.
#[derive(Clone, Default, Model)]
pub struct Key {
    /// Name of the pen.
    #[member(required())]
    pub pen: Attr<String>,
    /// Code of the key.
    #[member(computed().sensitive())]
    pub code: Attr<String>,
}

pub struct Keys;

#[async_trait]
impl EphemeralResource for Keys {
    type Model = Key;
    type Client = Zoo;

    async fn open(
        &self,
        config: Key,
        cx: &mut Context<Zoo>,
    ) -> Result<Opened<Key>> {
        let id = format!("key/{}", config.pen.text());
        cx.client()?.put(&id, &[]);
        cx.set_private_value("id", &id)?;
        let code = "1234".into();
        Ok(Opened::from(Key { code, ..config }))
    }

    async fn close(&self, cx: &mut Context<Zoo>) -> Result<()> {
        if let Some(id) = cx.private_value::<String>("id")? {
            cx.client()?.remove(&id);
        }
        Ok(())
    }
}

/// The function `provider::zoo::cage`.
pub fn cage() -> Function {
    Function::new(
        "Area of a cage",
        "Returns the area of a cage in square meters.",
        vec![
            Parameter::new::<i64>("length", "Length in meters."),
            Parameter::new::<i64>("width", "Width in meters."),
        ],
        |arguments| Ok(arguments.get::<i64>(0)? * arguments.get::<i64>(1)?),
    )
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;

    use crate::provider::tests::configured;

    #[tokio::test]
    async fn pen_is_found() {
        let harness = configured().await;
        let name = [("name", "north".into())];
        assert!(harness.data("zoo_pen", &name).await.is_err());
        harness.create("zoo_pen", &name).await.unwrap();
        let pen = harness.data("zoo_pen", &name).await.unwrap();
        assert_eq!(pen.get("ground"), Some(&"grass".into()));
    }

    #[tokio::test]
    async fn key_is_opened_and_closed() {
        let harness = configured().await;
        let pen = [("pen", "north".into())];
        let key = harness.ephemeral("zoo_key", &pen).await.unwrap();
        assert_eq!(key.result().get("code"), Some(&"1234".into()));
        key.close().await.unwrap();
    }

    #[tokio::test]
    async fn area_is_the_product() {
        let harness = configured().await;
        let sides = [Value::number(3), Value::number(4)];
        let area = harness.call("cage", &sides).unwrap();
        assert_eq!(area, Value::number(12));
    }
}
