//! A provisioner as a gRPC service of protocol 5, the only version with provisioners.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use monoform_sdk::calls::Calls;
use monoform_sdk::served::ServedProvisioner;
use monoform_sdk::{Output, Provisioner, async_trait};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::messages::v5::{diagnostics, pb, schema, wire};
use crate::threads::spawn;

/// The provisioner behind the service.
pub(crate) struct Service<P: Provisioner> {
    provisioner: Arc<ServedProvisioner<P>>,
    calls: Calls,
}

impl<P: Provisioner> Service<P> {
    pub fn new(provisioner: ServedProvisioner<P>, calls: Calls) -> Service<P> {
        Service {
            provisioner: Arc::new(provisioner),
            calls,
        }
    }
}

type Responses = Pin<Box<dyn Stream<Item = Result<pb::provision_resource::Response, Status>> + Send>>;

#[async_trait]
impl<P: Provisioner> pb::provisioner_server::Provisioner for Service<P> {
    async fn get_schema(
        &self,
        _: Request<pb::get_provisioner_schema::Request>,
    ) -> Result<Response<pb::get_provisioner_schema::Response>, Status> {
        Ok(Response::new(pb::get_provisioner_schema::Response {
            provisioner: Some(schema(&self.provisioner.declared())),
            ..Default::default()
        }))
    }

    async fn validate_provisioner_config(
        &self,
        request: Request<pb::validate_provisioner_config::Request>,
    ) -> Result<Response<pb::validate_provisioner_config::Response>, Status> {
        let found = self.provisioner.validate(&wire(request.into_inner().config));
        Ok(Response::new(pb::validate_provisioner_config::Response {
            diagnostics: diagnostics(found),
        }))
    }

    type ProvisionResourceStream = Responses;

    async fn provision_resource(
        &self,
        request: Request<pb::provision_resource::Request>,
    ) -> Result<Response<Responses>, Status> {
        let request = request.into_inner();
        let (responses, stream) = mpsc::channel(64);
        let (output, mut texts) = Output::channel();
        let (config, connection) = (wire(request.config), wire(request.connection));
        let provisioner = self.provisioner.clone();
        let call = self.calls.begin();
        spawn(P::BLOCKS, async move {
            let work = provisioner.run(&config, &connection, output, call.stop());
            let mut caller = Some(call.stop_on_drop());
            let forward = async {
                loop {
                    tokio::select! {
                        text = texts.recv() => {
                            let Some(output) = text else { break };
                            let response = pb::provision_resource::Response {
                                output,
                                diagnostics: Vec::new(),
                            };
                            // A failure is ignored: it means that the caller has disconnected, which the select below handles.
                            drop(responses.send(Ok(response)).await);
                        }
                        // The caller has disconnected. Dropping the guard requests the provisioner to stop; its further output is dropped.
                        () = responses.closed(), if caller.is_some() => drop(caller.take()),
                    }
                }
            };
            let (result, ()) = futures::join!(work, forward);
            let found = diagnostics(result.err().unwrap_or_default());
            if !found.is_empty() {
                let response = pb::provision_resource::Response {
                    output: String::new(),
                    diagnostics: found,
                };
                drop(responses.send(Ok(response)).await);
            }
            drop(call);
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn stop(&self, _: Request<pb::stop::Request>) -> Result<Response<pb::stop::Response>, Status> {
        self.calls.stop();
        Ok(Response::new(pb::stop::Response::default()))
    }
}
