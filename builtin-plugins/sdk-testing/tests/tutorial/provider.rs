//! The provider: its configuration, its client, its members.

use monoform_sdk::log::mask_texts;
use monoform_sdk::schema::{optional, required};
use monoform_sdk::types::Url;
use monoform_sdk::{
    Attr, ConfigureContext, Deferral, Members, Model, Provider, Result,
    async_trait,
};

use crate::service::Zoo;
use crate::{animal, delivery, keeper, lookup, pen, visit};

pub struct ZooProvider;

/// Objects of a zoo.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// URL of the service.
    #[member(required())]
    pub url: Attr<Url>,
    /// Token of the service.
    #[member(optional().sensitive())]
    pub token: Attr<String>,
}

#[async_trait]
impl Provider for ZooProvider {
    type Config = Config;
    type Client = Zoo;

    fn members(&self, members: &mut Members<Zoo>) {
        members.resource("zoo_pen", pen::Pens);
        members.resource("zoo_animal", animal::Animals);
        members.resource("zoo_visit", visit::Visits);
        members.resource("zoo_delivery", delivery::Deliveries);
        members.resource("zoo_keeper", keeper::Keepers);
        members.list("zoo_pen", pen::PenList);
        members.data_source("zoo_pen", lookup::PenLookup);
        members.ephemeral("zoo_key", lookup::Keys);
        members.function("cage", lookup::cage());
    }

    async fn configure_with(
        &self,
        config: Config,
        cx: &mut ConfigureContext,
    ) -> Result<Zoo> {
        if config.url.is_unknown() {
            return Err(cx.defer(Deferral::ProviderConfigUnknown));
        }
        if config.url.known().is_some_and(|url| url.scheme() == "http") {
            cx.warn("Unencrypted URL", "Use https, to protect the token.");
        }
        mask_texts([config.token.text()]);
        Ok(Zoo::default())
    }
}

#[cfg(test)]
pub mod tests {
    use monoform_sdk_testing::Harness;

    use super::*;

    pub async fn configured() -> Harness<ZooProvider> {
        let harness = Harness::new(ZooProvider);
        let url = ("url", "https://zoo.example.com".into());
        harness.configure(&[url]).await.unwrap();
        harness
    }

    #[tokio::test]
    async fn url_without_encryption_is_a_warning() {
        let harness = Harness::new(ZooProvider);
        let url = ("url", "http://zoo.example.com".into());
        harness.configure(&[url]).await.unwrap();
        assert_eq!(harness.warnings()[0].summary, "Unencrypted URL");
    }

    #[tokio::test]
    async fn url_is_required_and_checked() {
        let harness = Harness::new(ZooProvider);
        assert!(harness.configure(&[]).await.is_err());
        let wrong = harness.configure(&[("url", "zoo".into())]).await;
        assert!(wrong.is_err());
    }
}
