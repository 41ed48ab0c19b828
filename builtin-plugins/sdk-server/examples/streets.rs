//! Example of computed blocks, which hosts like Terraform 1.16 and later support: streets with lamps. If a configuration has no lamps, the
//! provider chooses them. The streets exist in the state only.
//!
//! ```hcl
//! resource "streets_street" "main" {
//!   length = 120
//! }
//! ```

use std::process::ExitCode;

use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{Attr, Context, Model, Plain, Resource, Result, async_trait};
use monoform_sdk_server::serve_provider;

fn main() -> ExitCode {
    serve_provider(Plain(|members| members.resource("streets_street", Streets)))
}

/// A lamp of a street.
#[derive(Clone, Default, Model)]
struct Lamp {
    /// The power of the lamp in watts.
    #[member(optional().computed())]
    watts: Attr<i64>,
    /// The position of the lamp: its distance from the beginning of the street.
    #[member(computed())]
    at: Attr<i64>,
}

/// A street.
#[derive(Clone, Default, Model)]
struct Street {
    /// The length of the street.
    #[member(required())]
    length: Attr<i64>,
    /// The lamps of the street.
    #[member(block().computed())]
    lamp: Attr<Vec<Lamp>>,
    /// The signs of the street, one at each end.
    #[member(block().max_items(2))]
    sign: Vec<Sign>,
}

/// A sign with the name of a street.
#[derive(Clone, Default, Model)]
struct Sign {
    /// The name.
    #[member(required())]
    text: Attr<String>,
}

/// The type `streets_street`.
struct Streets;

#[async_trait]
impl Resource for Streets {
    type Model = Street;
    type Client = ();

    async fn create(&self, plan: Street, _cx: &mut Context<()>) -> Result<Street> {
        let length = plan.length.known().copied().unwrap_or_default();
        let lamps = match plan.lamp {
            Attr::Known(lamps) => lamps,
            // The town has one lamp for every fifty meters.
            _ => vec![Lamp::default(); usize::try_from(length / 50).unwrap_or_default()],
        };
        let lit = (0i64..).zip(lamps).map(|(i, lamp)| Lamp {
            watts: lamp.watts.known().copied().unwrap_or(40).into(),
            at: lamp.at.known().copied().unwrap_or(i * 50).into(),
        });
        Ok(Street {
            lamp: lit.collect::<Vec<_>>().into(),
            ..plan
        })
    }

    async fn update(&self, _prior: Street, plan: Street, cx: &mut Context<()>) -> Result<Street> {
        self.create(plan, cx).await
    }
}
