//! Methods for data sources, ephemeral resources and list resources.

use std::time::{SystemTime, UNIX_EPOCH};

use futures::{Stream, StreamExt as _};
use proto::tfplugin6 as pb;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::service::{Service, identity};
use crate::list;
use crate::messages::v6::{deferral_allowed, deferred, diagnostics, dynamic, wire};
use monoform_sdk::calls::CallOptions;
use monoform_sdk::served::{ListCall, OpenedEphemeral};

fn time(at: SystemTime) -> prost_types::Timestamp {
    // A time before 1970 would be a bug in the provider; it is sent as 1970-01-01.
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    prost_types::Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(since.subsec_nanos()).unwrap_or(0),
    }
}

impl Service {
    pub(super) async fn validate_data_resource_config(
        &self,
        r: pb::validate_data_resource_config::Request,
    ) -> Result<pb::validate_data_resource_config::Response, Status> {
        let found = self
            .run_now(move |provider| provider.validate_data_source(&r.type_name, &wire(r.config)))
            .await?;
        Ok(pb::validate_data_resource_config::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn read_data_source(
        &self,
        r: pb::read_data_source::Request,
    ) -> Result<pb::read_data_source::Response, Status> {
        let answer = self
            .run(|provider, stop| async move {
                let options = CallOptions::from(stop)
                    .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                    .meta(wire(r.provider_meta));
                provider.read_data_source(&r.type_name, &wire(r.config), options).await
            })
            .await?;
        Ok(pb::read_data_source::Response {
            state: answer.state.map(dynamic),
            diagnostics: diagnostics(answer.diagnostics),
            deferred: deferred(answer.deferred),
        })
    }

    pub(super) async fn validate_ephemeral_resource_config(
        &self,
        r: pb::validate_ephemeral_resource_config::Request,
    ) -> Result<pb::validate_ephemeral_resource_config::Response, Status> {
        let found = self
            .run_now(move |provider| provider.validate_ephemeral(&r.type_name, &wire(r.config)))
            .await?;
        Ok(pb::validate_ephemeral_resource_config::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn open_ephemeral_resource(
        &self,
        r: pb::open_ephemeral_resource::Request,
    ) -> Result<pb::open_ephemeral_resource::Response, Status> {
        let e: OpenedEphemeral = self
            .run(|provider, stop| async move {
                let options = CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                provider.open(&r.type_name, &wire(r.config), options).await
            })
            .await?;
        Ok(pb::open_ephemeral_resource::Response {
            diagnostics: diagnostics(e.diagnostics),
            renew_at: e.renew_at.map(time),
            result: e.result.map(dynamic),
            private: Some(e.private).filter(|p| !p.is_empty()),
            deferred: deferred(e.deferred),
        })
    }

    pub(super) async fn renew_ephemeral_resource(
        &self,
        r: pb::renew_ephemeral_resource::Request,
    ) -> Result<pb::renew_ephemeral_resource::Response, Status> {
        let e: OpenedEphemeral = self
            .run(|provider, stop| async move {
                provider
                    .renew(&r.type_name, r.private.unwrap_or_default(), stop.into())
                    .await
            })
            .await?;
        Ok(pb::renew_ephemeral_resource::Response {
            diagnostics: diagnostics(e.diagnostics),
            renew_at: e.renew_at.map(time),
            private: Some(e.private).filter(|p| !p.is_empty()),
        })
    }

    pub(super) async fn close_ephemeral_resource(
        &self,
        r: pb::close_ephemeral_resource::Request,
    ) -> Result<pb::close_ephemeral_resource::Response, Status> {
        let found = self
            // `close` gets no stop signal, because it has to release leases and tokens after an interrupt, too.
            .run(|provider, _| async move { provider.close(&r.type_name, r.private.unwrap_or_default()).await })
            .await?;
        Ok(pb::close_ephemeral_resource::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn validate_list_resource_config(
        &self,
        r: pb::validate_list_resource_config::Request,
    ) -> Result<pb::validate_list_resource_config::Response, Status> {
        let found = self
            .run_now(move |provider| provider.validate_list(&r.type_name, &wire(r.config)))
            .await?;
        Ok(pb::validate_list_resource_config::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn list_resource(
        &self,
        r: pb::list_resource::Request,
    ) -> Result<impl Stream<Item = Result<pb::list_resource::Event, Status>> + use<>, Status> {
        let events = list::events(
            self.provider.clone(),
            ListCall {
                name: r.type_name,
                config: wire(r.config),
                include_objects: r.include_resource_object,
                limit: r.limit,
            },
        );
        Ok(ReceiverStream::new(events).map(|event| {
            Ok(pb::list_resource::Event {
                identity: identity(event.identity),
                display_name: event.display_name,
                resource_object: event.object.map(dynamic),
                diagnostic: diagnostics(event.diagnostics),
            })
        }))
    }
}
