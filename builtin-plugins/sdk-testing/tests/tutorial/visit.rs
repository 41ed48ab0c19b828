//! The resource `zoo_visit`: plans, and values of several spellings.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::types::{JsonText, Timestamp};
use monoform_sdk::{
    Attr, Context, Diagnostic, Model, Plan, Resource, Result, async_trait,
};

use crate::service::Zoo;

/// A visit of a group.
#[derive(Clone, Default, Model)]
pub struct Visit {
    /// Time of the visit. Another spelling of the time is no change.
    #[member(required())]
    pub at: Attr<Timestamp>,
    /// Number of persons.
    #[member(required())]
    pub persons: Attr<i64>,
    /// Wishes of the group, as a JSON document.
    #[member(optional())]
    pub wishes: Attr<JsonText>,
    /// Price of the visit.
    #[member(computed())]
    pub price: Attr<i64>,
    /// Number of the ticket.
    #[member(computed().keep())]
    pub ticket: Attr<String>,
}

const PRICE: i64 = 12;

pub struct Visits;

#[async_trait]
impl Resource for Visits {
    type Model = Visit;
    type Client = Zoo;

    async fn plan(
        &self,
        plan: &mut Plan<'_, Visit>,
        _cx: &mut Context<Zoo>,
    ) -> Result<()> {
        let mut visit = plan.planned()?;
        if let Some(persons) = visit.persons.known() {
            visit.price = (persons * PRICE).into();
            plan.set(&visit);
        }
        if let Some(prior) = plan.prior()?
            && prior.persons.known() > visit.persons.known()
        {
            let detail = "Tickets are not taken back.";
            plan.diagnose(Diagnostic::warning("Fewer persons", detail));
        }
        Ok(())
    }

    async fn create(
        &self,
        plan: Visit,
        _cx: &mut Context<Zoo>,
    ) -> Result<Visit> {
        let ticket = "T-1".into();
        Ok(Visit { ticket, ..plan })
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;

    use crate::provider::tests::configured;

    fn visit(at: &str, persons: i64) -> [(&'static str, Value); 2] {
        [("at", at.into()), ("persons", Value::number(persons))]
    }

    #[tokio::test]
    async fn price_is_known_in_the_plan() {
        let harness = configured().await;
        let object = harness.object("zoo_visit");
        let plan = object.plan(&visit("2026-05-01T10:00:00Z", 3)).await;
        let planned = plan.unwrap().planned;
        assert_eq!(planned.get("price"), Some(&Value::number(36)));
        assert!(!planned.get("ticket").unwrap().is_known());
    }

    #[tokio::test]
    async fn another_spelling_of_the_time_is_no_change() {
        let harness = configured().await;
        let mut object = harness.object("zoo_visit");
        object
            .apply(&visit("2026-05-01T10:00:00Z", 3))
            .await
            .unwrap();
        let same = visit("2026-05-01T12:00:00+02:00", 3);
        let plan = object.plan(&same).await.unwrap();
        assert_eq!(Some(&plan.planned), object.state());
    }

    #[tokio::test]
    async fn ticket_is_kept_when_something_else_changes() {
        let harness = configured().await;
        let mut object = harness.object("zoo_visit");
        object
            .apply(&visit("2026-05-01T10:00:00Z", 3))
            .await
            .unwrap();
        let fewer = visit("2026-05-01T10:00:00Z", 2);
        let plan = object.plan(&fewer).await.unwrap();
        assert_eq!(plan.planned.get("ticket"), Some(&"T-1".into()));
        assert_eq!(harness.warnings()[0].summary, "Fewer persons");
    }
}
