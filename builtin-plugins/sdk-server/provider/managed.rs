//! Methods for managed resources.

use proto::tfplugin6 as pb;
use tonic::Status;

use super::service::{Service, identity};
use crate::messages::v6::{deferral_allowed, deferred, diagnostics, dynamic, path, raw_state, wire};
use monoform_sdk::calls::CallOptions;
use monoform_sdk::served::{Changed, MovedObject, ObjectMetadata};

impl Service {
    pub(super) async fn validate_resource_config(
        &self,
        r: pb::validate_resource_config::Request,
    ) -> Result<pb::validate_resource_config::Response, Status> {
        let write_only = r.client_capabilities.is_some_and(|c| c.write_only_attributes_allowed);
        let found = self
            .run_now(move |provider| provider.validate_resource(&r.type_name, &wire(r.config), write_only))
            .await?;
        Ok(pb::validate_resource_config::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn upgrade_resource_state(
        &self,
        r: pb::upgrade_resource_state::Request,
    ) -> Result<pb::upgrade_resource_state::Response, Status> {
        let (state, found) = self
            .run_now(move |provider| provider.upgrade(&r.type_name, r.version, &raw_state(r.raw_state)))
            .await?;
        Ok(pb::upgrade_resource_state::Response {
            upgraded_state: state.map(dynamic),
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn upgrade_resource_identity(
        &self,
        r: pb::upgrade_resource_identity::Request,
    ) -> Result<pb::upgrade_resource_identity::Response, Status> {
        let (upgraded, found) = self
            .run_now(move |provider| provider.upgrade_identity(&r.type_name, r.version, &raw_state(r.raw_identity)))
            .await?;
        Ok(pb::upgrade_resource_identity::Response {
            upgraded_identity: identity(upgraded),
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn read_resource(
        &self,
        r: pb::read_resource::Request,
    ) -> Result<pb::read_resource::Response, Status> {
        let c = self
            .run(|provider, stop| async move {
                let identity = r.current_identity.map(|i| wire(i.identity_data));
                let options = CallOptions::from(stop)
                    .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                    .meta(wire(r.provider_meta));
                provider
                    .read(&r.type_name, wire(r.current_state), r.private, identity, options)
                    .await
            })
            .await?;
        Ok(pb::read_resource::Response {
            new_state: c.state.map(dynamic),
            diagnostics: diagnostics(c.diagnostics),
            private: c.private,
            deferred: deferred(c.deferred),
            new_identity: identity(c.identity),
        })
    }

    pub(super) async fn plan_resource_change(
        &self,
        r: pb::plan_resource_change::Request,
    ) -> Result<pb::plan_resource_change::Response, Status> {
        let lenient = self.provider.is_lenient(&r.type_name);
        let c = self
            .run(|provider, stop| async move {
                let (prior, proposed) = (wire(r.prior_state), wire(r.proposed_new_state));
                let config = wire(r.config);
                let beside = ObjectMetadata {
                    private: r.prior_private,
                    identity: r.prior_identity.map(|i| wire(i.identity_data)),
                };
                let options = CallOptions::from(stop)
                    .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                    .meta(wire(r.provider_meta));
                provider
                    .plan(&r.type_name, &prior, &proposed, &config, beside, options)
                    .await
            })
            .await?;
        Ok(pb::plan_resource_change::Response {
            planned_state: c.state.map(dynamic),
            requires_replace: c.requires_replace.iter().map(path).collect(),
            planned_private: c.private,
            diagnostics: diagnostics(c.diagnostics),
            planned_identity: identity(c.identity),
            deferred: deferred(c.deferred),
            // With this flag, hosts only log differences between configuration and plan.
            legacy_type_system: lenient,
        })
    }

    pub(super) async fn apply_resource_change(
        &self,
        r: pb::apply_resource_change::Request,
    ) -> Result<pb::apply_resource_change::Response, Status> {
        let lenient = self.provider.is_lenient(&r.type_name);
        let c = self
            .run(|provider, stop| async move {
                let (prior, planned) = (wire(r.prior_state), wire(r.planned_state));
                let config = wire(r.config);
                let beside = ObjectMetadata {
                    private: r.planned_private,
                    identity: r.planned_identity.map(|i| wire(i.identity_data)),
                };
                let options = CallOptions::from(stop).meta(wire(r.provider_meta));
                provider
                    .apply(&r.type_name, prior, &planned, config, beside, options)
                    .await
            })
            .await?;
        Ok(pb::apply_resource_change::Response {
            new_state: c.state.map(dynamic),
            private: c.private,
            diagnostics: diagnostics(c.diagnostics),
            new_identity: identity(c.identity),
            legacy_type_system: lenient,
        })
    }

    pub(super) async fn import_resource_state(
        &self,
        r: pb::import_resource_state::Request,
    ) -> Result<pb::import_resource_state::Response, Status> {
        let type_name = r.type_name.clone();
        let c: Changed = self
            .run(|provider, stop| async move {
                let identity = r.identity.map(|i| wire(i.identity_data));
                let options = CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                provider.import(&r.type_name, &r.id, identity, options).await
            })
            .await?;
        let failed = c.diagnostics.has_errors();
        let imported = pb::import_resource_state::ImportedResource {
            type_name,
            state: c.state.map(dynamic),
            private: c.private,
            identity: identity(c.identity),
        };
        Ok(pb::import_resource_state::Response {
            imported_resources: if failed { Vec::new() } else { vec![imported] },
            diagnostics: diagnostics(c.diagnostics),
            deferred: deferred(c.deferred),
        })
    }

    pub(super) async fn move_resource_state(
        &self,
        r: pb::move_resource_state::Request,
    ) -> Result<pb::move_resource_state::Response, Status> {
        let c = self
            .run(|provider, stop| async move {
                let moved = MovedObject {
                    provider: r.source_provider_address,
                    type_name: r.source_type_name,
                    schema_version: r.source_schema_version,
                    state: raw_state(r.source_state),
                    private: r.source_private,
                    identity: r.source_identity.map(|i| raw_state(Some(i))),
                    identity_schema_version: r.source_identity_schema_version,
                };
                provider.move_from(&r.target_type_name, moved, stop.into()).await
            })
            .await?;
        Ok(pb::move_resource_state::Response {
            target_state: c.state.map(dynamic),
            diagnostics: diagnostics(c.diagnostics),
            target_private: c.private,
            target_identity: identity(c.identity),
        })
    }

    pub(super) async fn generate_resource_config(
        &self,
        r: pb::generate_resource_config::Request,
    ) -> Result<pb::generate_resource_config::Response, Status> {
        let (config, found) = self
            .run(|provider, stop| async move {
                provider
                    .generate_config(&r.type_name, &wire(r.state), stop.into())
                    .await
            })
            .await?;
        Ok(pb::generate_resource_config::Response {
            config: config.map(dynamic),
            diagnostics: diagnostics(found),
        })
    }
}
