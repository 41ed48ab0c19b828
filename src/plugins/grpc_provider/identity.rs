//! Encoding, decoding and upgrading of identities.

use cty::Value;
use proto::tfplugin6 as pb;
use provider::{Answer, PluginDiagnostic};
use schema::Schema;
use syntax::Diagnostics;

use super::GrpcProvider;
use crate::convert;

impl GrpcProvider {
    /// Encodes an identity for a request; `None` if there is no identity, or the type has no identity schema.
    pub(super) fn encode_identity(
        &self,
        path: &str,
        schema: &Schema,
        identity: Option<&Value>,
    ) -> Result<Option<pb::ResourceIdentityData>, Diagnostics> {
        let (Some(identity), Some(of)) = (identity, &schema.identity) else {
            return Ok(None);
        };
        Ok(Some(pb::ResourceIdentityData {
            identity_data: self.encode(path, identity, &of.implied_type())?,
        }))
    }

    /// Decodes an identity of an answer; `None` if it is missing or null.
    pub(super) fn decode_identity(
        &self,
        path: &str,
        ty: &str,
        schema: &Schema,
        identity: Option<pb::ResourceIdentityData>,
        reported: &[PluginDiagnostic],
    ) -> Result<Option<Value>, Diagnostics> {
        let Some(data) = identity.and_then(|identity| identity.identity_data) else {
            return Ok(None);
        };
        let Some(of) = &schema.identity else {
            let what = format!("it has an identity for the resource type \"{ty}\", which has no identity schema");
            return Err(self.fault(path, &what, reported));
        };
        let value = convert::decode(Some(data), &of.implied_type()).map_err(|error| {
            self.fault(
                path,
                &format!("the identity does not fit its schema: {error}"),
                reported,
            )
        })?;
        Ok((!value.is_null()).then_some(value))
    }

    /// Requests the upgrade of a stored identity to the current version of its schema.
    pub(super) async fn upgraded_identity(
        &self,
        ty: &str,
        version: i64,
        identity: &[u8],
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        let path = self.methods().await?.upgrade_identity;
        let schema = self.resource(ty).await?;
        let request = pb::upgrade_resource_identity::Request {
            type_name: ty.to_owned(),
            version,
            raw_identity: Some(pb::RawState {
                json: identity.to_vec(),
                ..Default::default()
            }),
        };
        let response: pb::upgrade_resource_identity::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        let value = if convert::has_errors(&diagnostics) {
            None
        } else {
            self.decode_identity(path, ty, &schema, response.upgraded_identity, &diagnostics)?
        };
        Ok(Answer { value, diagnostics })
    }
}
