//! Resource identities: their schemas, and their form in messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Value;
use proto::tfplugin6 as pb;
use provider::{Answer, PluginDiagnostic, ProviderSchema};
use schema::{IdentityAttribute, IdentitySchema, Schema};
use syntax::Diagnostics;
use tonic::Code;

use super::{GrpcProvider, plain};
use crate::convert::{self, MessageError};
use crate::grpc::name;

impl GrpcProvider {
    /// Requests the identity schemas and adds them to those of the resource types.
    pub(super) async fn add_identity_schemas(&self, schema: &mut ProviderSchema) -> Result<(), Diagnostics> {
        let path = self.methods.identity_schemas;
        let request = pb::get_resource_identity_schemas::Request {};
        let response: pb::get_resource_identity_schemas::Response = match self.call_for_status(path, request).await {
            Ok(response) => response.into_inner(),
            // A provider from before there were identities does not know the request.
            Err(status) if status.code() == Code::Unimplemented => return Ok(()),
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        let problems = convert::diagnostics(response.diagnostics);
        if convert::has_errors(&problems) {
            return Err(plain(problems));
        }
        for (ty, identity) in response.identity_schemas {
            let identity = identity_schema(identity)
                .map_err(|error| self.fault(path, &format!("identity schema of \"{ty}\": {error}"), &[]))?;
            if let Some(resource) = schema.resources.get_mut(ty.as_str()) {
                resource.identity = Some(Arc::new(identity));
            }
        }
        Ok(())
    }

    /// Encodes an identity for a request; `None` if the type has no identity schema.
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

    /// Has the provider upgrade a stored identity to the current version of its schema.
    pub(super) async fn upgraded_identity(
        &self,
        ty: &str,
        version: i64,
        identity: &[u8],
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        let path = self.methods.upgrade_identity;
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

fn identity_schema(schema: pb::ResourceIdentitySchema) -> Result<IdentitySchema, MessageError> {
    let version = u64::try_from(schema.version).map_err(|_| MessageError::Version(schema.version))?;
    let mut attributes = BTreeMap::new();
    for a in schema.identity_attributes {
        let attribute = IdentityAttribute {
            ty: convert::ty(&a.r#type).map_err(|error| error.within(format!("attribute \"{}\"", a.name)))?,
            required_for_import: a.required_for_import,
            optional_for_import: a.optional_for_import,
            description: a.description,
        };
        attributes.insert(a.name.into(), attribute);
    }
    Ok(IdentitySchema::new(version, attributes))
}
