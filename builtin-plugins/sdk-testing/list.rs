//! List resources under test.

use monoform_sdk::cty::Value;
use monoform_sdk::served::{ListCall, identity_type};
use monoform_sdk::wire::decode;
use monoform_sdk::{Provider, Result};

use crate::config::{self, Config};
use crate::harness::{Harness, named};
use crate::wires::encode;

/// An object that a list resource has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Display name of the object.
    pub display_name: String,
    /// Identity of the object, if it is known.
    pub identity: Option<Value>,
    /// The whole object, if the request was for objects and not only for identities.
    pub object: Option<Value>,
}

impl<P: Provider> Harness<P> {
    /// Lists at most `limit` objects with this configuration of a list resource. The whole objects are returned if `include_objects` is
    /// true, and only their identities otherwise.
    ///
    /// # Errors
    /// Errors of the configuration or of the list. Objects that were found before an error are not returned, although a host would show
    /// them.
    pub async fn list(&self, name: &str, config: Config<'_>, limit: u32, include_objects: bool) -> Result<Vec<Listed>> {
        let schema = named(self.provider.lists(), name);
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.provider.validate_list(name, &wire))?;
        let request = ListCall {
            name: name.to_owned(),
            config: wire,
            include_objects,
            limit: limit.into(),
        };
        let (events, mut received) = tokio::sync::mpsc::channel(1);
        let (_call, options) = self.begin();
        let work = self.provider.list(request, events, options.stop);
        let all = async {
            let mut all = Vec::new();
            while let Some(event) = received.recv().await {
                all.push(event);
            }
            all
        };
        let (found, events) = futures::join!(work, all);
        self.sort(found)?;
        let resource = self.provider.resources().find(|(n, _)| *n == name).map(|(_, r)| r);
        let mut listed = Vec::with_capacity(events.len());
        for event in events {
            self.sort(event.diagnostics)?;
            let identity_ty = resource.as_ref().map(|r| identity_type(r.member.schema(), r.identity));
            listed.push(Listed {
                display_name: event.display_name,
                identity: (event.identity.zip(identity_ty))
                    .map(|(wire, ty)| decode(&wire, &ty))
                    .transpose()?,
                object: (event.object.zip(resource.as_ref()))
                    .map(|(wire, r)| decode(&wire, &r.member.schema().ty))
                    .transpose()?,
            });
        }
        Ok(listed)
    }
}
