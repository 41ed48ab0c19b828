//! The resource `zoo_delivery`: a service that is busy, and slow.

use std::time::Duration;

use monoform_sdk::retry::{Failure, Retry, Waiter};
use monoform_sdk::schema::{block, computed, required};
use monoform_sdk::timeouts::{CREATE, Timeouts};
use monoform_sdk::{Attr, Context, Model, Resource, Result, async_trait};

use crate::service::Zoo;

/// A delivery of food.
#[derive(Clone, Default, Model)]
pub struct Delivery {
    /// What is delivered.
    #[member(required().requires_replace())]
    pub food: Attr<String>,
    /// Identifier in the service.
    #[member(computed().keep())]
    pub id: Attr<String>,
    #[member(block())]
    pub timeouts: Attr<Timeouts<{ CREATE }>>,
}

const PAUSE: Duration = Duration::from_millis(1);

pub struct Deliveries;

#[async_trait]
impl Resource for Deliveries {
    type Model = Delivery;
    type Client = Zoo;

    async fn create(
        &self,
        plan: Delivery,
        cx: &mut Context<Zoo>,
    ) -> Result<Delivery> {
        let time = plan.timeouts.create(Duration::from_secs(600));
        let zoo = cx.client()?;
        let food = plan.food.text();
        let id = format!("delivery/{food}");

        let retry = Retry::new(time).pauses(PAUSE, PAUSE);
        retry.run(cx.stop(), || async { order(&zoo, &id) }).await?;

        // If the rest fails, the delivery is in the state, and tainted.
        let delivery = Delivery {
            id: id.as_str().into(),
            ..plan
        };
        cx.save(&delivery);
        cx.set_private_value("attempts", &attempts(&zoo, &id))?;

        let waiter = Waiter::new(&["ordered", "sent"], &["there"], time);
        let waiter = waiter.pauses(PAUSE, PAUSE);
        waiter
            .wait(cx.stop(), || async { Ok(look(&zoo, &id)) })
            .await?;
        Ok(delivery)
    }
}

/// Orders food. The service is busy at first.
fn order(zoo: &Zoo, id: &str) -> std::result::Result<(), Failure> {
    let attempts = attempts(zoo, id) + 1;
    zoo.put(id, &[("attempts", &attempts.to_string())]);
    if attempts < 3 {
        let detail = "The service answered with status 503.";
        return Err(Failure::again("Service busy", detail));
    }
    zoo.put(id, &[("state", "ordered")]);
    Ok(())
}

fn attempts(zoo: &Zoo, id: &str) -> i64 {
    let row = zoo.get(id).unwrap_or_default();
    row.get("attempts").map_or(0, |n| n.parse().unwrap_or(0))
}

/// Returns the state of a delivery, which comes closer each time.
fn look(zoo: &Zoo, id: &str) -> Option<(String, ())> {
    let state = zoo.get(id)?.get("state")?.clone();
    let next = match state.as_str() {
        "ordered" => "sent",
        "sent" if id != "delivery/stones" => "there",
        "sent" => "lost",
        _ => &state,
    };
    zoo.put(id, &[("state", next)]);
    Some((state, ()))
}

#[cfg(test)]
mod tests {
    use crate::provider::tests::configured;

    #[tokio::test]
    async fn delivery_that_is_late_is_waited_for() {
        let harness = configured().await;
        let mut delivery = harness.object("zoo_delivery");
        delivery.apply(&[("food", "hay".into())]).await.unwrap();
        assert_eq!(delivery.get("id"), Some(&"delivery/hay".into()));
        assert!(!delivery.private().is_empty());
    }

    #[tokio::test]
    async fn delivery_that_is_lost_is_tainted() {
        let harness = configured().await;
        let mut delivery = harness.object("zoo_delivery");
        let failed = delivery.apply(&[("food", "stones".into())]).await;
        let errors = failed.unwrap_err();
        assert_eq!(errors.0[0].summary, "Unexpected State");
        assert!(delivery.is_tainted());
    }

    #[tokio::test]
    async fn no_time_is_an_error() {
        use monoform_sdk::cty::Value;

        let harness = configured().await;
        let mut delivery = harness.object("zoo_delivery");
        let timeouts = Value::object([("create", Value::from("0s"))]);
        let config = [("food", "hay".into()), ("timeouts", timeouts)];
        let errors = delivery.apply(&config).await.unwrap_err();
        assert_eq!(errors.0[0].summary, "Operation Timed Out");
    }
}
