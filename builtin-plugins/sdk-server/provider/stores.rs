//! Methods for state stores.

use futures::Stream;
use monoform_sdk::Diagnostics;
use proto::tfplugin6 as pb;
use tonic::{Request, Response, Status};

use super::service::Service;
use crate::messages::v6::{diagnostics, wire};
use crate::state_store;

type Answer<T> = Result<Response<T>, Status>;

impl Service {
    pub(super) async fn validate_state_store_config(
        &self,
        r: pb::validate_state_store::Request,
    ) -> Result<pb::validate_state_store::Response, Status> {
        let found = self
            .run_now(move |provider| provider.validate_store(&r.type_name, &wire(r.config)))
            .await?;
        Ok(pb::validate_state_store::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn configure_state_store(
        &self,
        request: Request<pb::configure_state_store::Request>,
    ) -> Answer<pb::configure_state_store::Response> {
        let r = request.into_inner();
        // The host proposes a chunk size. Both sides then use the size in the answer, which is never larger.
        let asked = r.capabilities.unwrap_or_default().chunk_size;
        let chunk_size = state_store::chunk_size(usize::try_from(asked).unwrap_or_default());
        let result = self
            .run(move |provider, _| async move {
                let config = wire(r.config);
                let support = provider.configure_store(&r.type_name, &config, chunk_size).await?;
                Ok::<_, Diagnostics>((support, provider.store_keeps_objects(&r.type_name)))
            })
            .await?;
        let (chunk_size, support, problems) = match result {
            Ok(support) => (chunk_size, Some(support), Diagnostics::new()),
            Err(problems) => (0, None, problems),
        };
        let mut response = Response::new(pb::configure_state_store::Response {
            diagnostics: diagnostics(problems),
            capabilities: Some(pb::StateStoreServerCapabilities {
                chunk_size: i64::try_from(chunk_size).unwrap_or_default(),
            }),
        });
        // Sent as metadata, since the protocol has no field for the workspaces that a store can have.
        if let Some((support, keeps_objects)) = support {
            if keeps_objects {
                let version = tonic::metadata::MetadataValue::from_static("1");
                response.metadata_mut().insert(proto::STATE_INQUIRIES, version);
            }
            let support = tonic::metadata::MetadataValue::from_static(state_store::support_text(support));
            response.metadata_mut().insert(proto::STATE_WORKSPACES, support);
        }
        Ok(response)
    }

    pub(super) async fn get_states(&self, r: pb::get_states::Request) -> Result<pb::get_states::Response, Status> {
        let result = self
            .run(move |provider, _| async move { provider.states(&r.type_name).await })
            .await?;
        let (state_id, problems) = match result {
            Ok(names) => (names, Diagnostics::new()),
            Err(problems) => (Vec::new(), problems),
        };
        Ok(pb::get_states::Response {
            state_id,
            diagnostics: diagnostics(problems),
        })
    }

    pub(super) async fn delete_state(
        &self,
        r: pb::delete_state::Request,
    ) -> Result<pb::delete_state::Response, Status> {
        let result = self
            .run(move |provider, _| async move { provider.delete_state(&r.type_name, &r.state_id).await })
            .await?;
        let problems = result.err().unwrap_or_default();
        Ok(pb::delete_state::Response {
            diagnostics: diagnostics(problems),
        })
    }

    pub(super) async fn read_state_bytes(
        &self,
        request: Request<pb::read_state_bytes::Request>,
    ) -> Result<impl Stream<Item = Result<pb::read_state_bytes::Response, Status>> + use<>, Status> {
        let question = request.metadata().get_bin(proto::STATE_INQUIRY);
        let question = question.and_then(|question| question.to_bytes().ok());
        let r = request.into_inner();
        let result = self
            .run(move |provider, _| async move {
                match question {
                    Some(question) => {
                        let question = String::from_utf8_lossy(&question);
                        provider.inquire_state(&r.type_name, &r.state_id, &question).await
                    }
                    None => provider.read_state(&r.type_name, &r.state_id).await,
                }
            })
            .await?;
        let pieces: Vec<_> = match result {
            Ok((bytes, chunk_size)) => state_store::pieces(&bytes, chunk_size)
                .map(|(range, total_length, bytes)| pb::read_state_bytes::Response {
                    bytes: bytes.to_vec(),
                    total_length,
                    range: Some(range),
                    diagnostics: Vec::new(),
                })
                .map(Ok)
                .collect(),
            Err(problems) => vec![Ok(pb::read_state_bytes::Response {
                diagnostics: diagnostics(problems),
                ..Default::default()
            })],
        };
        Ok(futures::stream::iter(pieces))
    }

    pub(super) async fn write_state_bytes(
        &self,
        request: Request<impl Stream<Item = Result<pb::write_state_bytes::RequestChunk, Status>> + Unpin>,
    ) -> Result<pb::write_state_bytes::Response, Status> {
        let is_request = request.metadata().contains_key(proto::STATE_REQUEST);
        let (meta, bytes) = state_store::gather(request.into_inner()).await?;
        let result = self
            .run(move |provider, _| async move {
                match is_request {
                    true => {
                        let request = String::from_utf8_lossy(&bytes);
                        provider.request_state(&meta.type_name, &meta.state_id, &request).await
                    }
                    false => provider.write_state(&meta.type_name, &meta.state_id, bytes).await,
                }
            })
            .await?;
        let problems = result.err().unwrap_or_default();
        Ok(pb::write_state_bytes::Response {
            diagnostics: diagnostics(problems),
        })
    }

    pub(super) async fn lock_state(
        &self,
        request: Request<pb::lock_state::Request>,
    ) -> Answer<pb::lock_state::Response> {
        // The message has the operation only. The metadata has the whole lock info, so that the store writes the same lock as Terraform
        // would.
        let info = request
            .metadata()
            .get_bin(proto::STATE_LOCK_INFO)
            .and_then(|info| info.to_bytes().ok());
        let r = request.into_inner();
        let info = state_store::lock_info(info.as_deref(), &r.operation);
        let result = self
            .run(move |provider, _| async move { provider.lock_state(&r.type_name, &r.state_id, info).await })
            .await?;
        let (lock_id, holder, problems) = match result {
            Ok(id) => (id, None, Diagnostics::new()),
            Err(error) => (String::new(), state_store::holder(&error), error.into_diagnostics()),
        };
        let mut response = Response::new(pb::lock_state::Response {
            lock_id,
            diagnostics: diagnostics(problems),
        });
        // With this metadata, a host knows that the lock is held, waits for it and shows the holder. All other hosts show the text of the
        // error.
        if let Some(holder) = holder {
            let holder = tonic::metadata::MetadataValue::from_bytes(holder.as_bytes());
            response.metadata_mut().insert_bin(proto::STATE_LOCK_HOLDER, holder);
        }
        Ok(response)
    }

    pub(super) async fn unlock_state(
        &self,
        r: pb::unlock_state::Request,
    ) -> Result<pb::unlock_state::Response, Status> {
        let result = self
            .run(move |provider, _| async move { provider.unlock_state(&r.type_name, &r.state_id, &r.lock_id).await })
            .await?;
        let problems = result.err().unwrap_or_default();
        Ok(pb::unlock_state::Response {
            diagnostics: diagnostics(problems),
        })
    }
}
