//! The resource `zoo_animal`: rules for configurations.

use std::collections::BTreeMap;

use monoform_sdk::schema::{block, nested, optional, required};
use monoform_sdk::validate::{between, conflicts_with, one_of, size_at_least};
use monoform_sdk::{
    Attr, Check, Context, Cty, Diagnostic, Diagnostics, Model, Resource,
    Result, Validator, async_trait,
};

use crate::service::Zoo;

/// An animal.
#[derive(Clone, Default, Model)]
pub struct Animal {
    /// Name of the animal.
    #[member(required().validate(Validator::custom(name)))]
    pub name: Attr<String>,
    /// Food of the animal.
    #[member(required())]
    pub food: Attr<Food>,
    /// Age in years.
    #[member(optional().validate(between(0, 200)))]
    pub age: Attr<i64>,
    /// Identifier of the pen.
    #[member(optional().validate(conflicts_with(&["free"])))]
    pub pen: Attr<String>,
    /// True for an animal without a pen.
    #[member(optional())]
    pub free: Attr<bool>,
    /// Labels at the pen, by language.
    #[member(nested(optional()))]
    pub labels: Attr<BTreeMap<String, Label>>,
    /// Times of feeding.
    #[member(block().validate(size_at_least(1)))]
    pub feeding: Vec<Feeding>,
}

/// Food of an animal.
#[derive(Clone, Debug, PartialEq, Cty)]
pub enum Food {
    Plants,
    Meat,
    PlantsAndMeat,
}

#[derive(Clone, Default, Model)]
pub struct Label {
    /// Text of the label.
    #[member(required())]
    pub text: Attr<String>,
}

#[derive(Clone, Default, Model)]
pub struct Feeding {
    /// Day of the week.
    #[member(required().validate(one_of(["Monday", "Thursday"])))]
    pub day: Attr<String>,
    /// Mass in kilograms.
    #[member(required())]
    pub mass: Attr<f64>,
}

fn name(check: &Check<'_>) -> Option<Diagnostic> {
    let is_wrong = check.value.as_str()?.trim().is_empty();
    let detail = "An animal has a name that is not blank.";
    is_wrong.then(|| {
        Diagnostic::error("Invalid name", detail).at(check.path.clone())
    })
}

pub struct Animals;

#[async_trait]
impl Resource for Animals {
    type Model = Animal;
    type Client = Zoo;

    fn validate(&self, config: &Animal) -> Diagnostics {
        let mut found = Diagnostics::new();
        let eats_meat = config.food.known() == Some(&Food::Meat);
        if eats_meat && config.free.known() == Some(&true) {
            let detail = "An animal that eats meat needs a pen.";
            let error = Diagnostic::error("Dangerous animal", detail);
            found.push(error.at_attribute("free"));
        }
        found
    }

    async fn create(
        &self,
        plan: Animal,
        _cx: &mut Context<Zoo>,
    ) -> Result<Animal> {
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;

    use crate::provider::tests::configured;

    async fn errors(more: &[(&str, Value)]) -> Vec<String> {
        let feeding = Value::object([
            ("day", Value::from("Monday")),
            ("mass", Value::number(2)),
        ]);
        let mut config = vec![
            ("name", "Bo".into()),
            ("food", "plants".into()),
            ("feeding", Value::tuple(vec![feeding])),
        ];
        config.extend_from_slice(more);
        let found = configured().await.validate("zoo_animal", &config);
        found.0.into_iter().map(|error| error.summary).collect()
    }

    #[tokio::test]
    async fn rules_of_attributes_hold() {
        assert!(errors(&[]).await.is_empty());
        assert_eq!(errors(&[("name", " ".into())]).await, ["Invalid name"]);
        assert_eq!(errors(&[("food", "stones".into())]).await.len(), 1);
        assert_eq!(errors(&[("age", Value::number(300))]).await.len(), 1);
        let both = [("pen", "pen/a".into()), ("free", Value::bool(true))];
        assert_eq!(errors(&both).await.len(), 1);
        let none = [("feeding", Value::tuple(Vec::new()))];
        assert_eq!(errors(&none).await.len(), 1);
    }

    #[tokio::test]
    async fn rules_of_the_whole_object_hold() {
        let lion = [("food", "meat".into()), ("free", Value::bool(true))];
        assert_eq!(errors(&lion).await, ["Dangerous animal"]);
    }
}
