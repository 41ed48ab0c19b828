//! A provisioner as the gRPC service of protocol 5, the only one that has provisioners.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures::Stream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::context::Calls;
use crate::guard::{guarded, panicked};
use crate::model::Cty;
use crate::provisioner::Output;
use crate::schema::Compiled;
use crate::server::messages::v5::{diagnostics, pb, schema, wire};
use crate::server::threads::spawn;
use crate::wire::decode;
use crate::{Diagnostics, Provisioner, Result, Stop, check};

/// The provisioner behind the service.
pub(crate) struct Service<P: Provisioner>(Arc<Inner<P>>);

struct Inner<P> {
    provisioner: P,
    config: Compiled,
    calls: Calls,
}

impl<P: Provisioner> Service<P> {
    pub fn new(provisioner: P, calls: Calls) -> Service<P> {
        let config = Compiled::new(provisioner.schema());
        Service(Arc::new(Inner {
            provisioner,
            config,
            calls,
        }))
    }
}

impl<P: Provisioner> Inner<P> {
    fn validate(&self, config: Option<pb::DynamicValue>) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let config = decode(&wire(config), &self.config.ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut found = check::against_schema(&self.config, &config, true);
            found.append(check::own_rules(&config, |model: &P::Config| {
                self.provisioner.validate(model)
            }));
            Ok(found)
        };
        let checked = std::panic::catch_unwind(AssertUnwindSafe(check));
        checked
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
            .unwrap_or_else(|errors| errors)
    }

    async fn run(&self, request: pb::provision_resource::Request, output: Output, stop: Stop) -> Result<()> {
        let config = decode(&wire(request.config), &self.config.ty)?;
        let config = P::Config::from_cty(&config)?;
        let connection = decode(&wire(request.connection), &cty::Type::map(cty::Type::String))?;
        let run = self.provisioner.run(config, connection, output, stop);
        guarded(run).await
    }
}

type Responses = Pin<Box<dyn Stream<Item = std::result::Result<pb::provision_resource::Response, Status>> + Send>>;

#[async_trait]
impl<P: Provisioner> pb::provisioner_server::Provisioner for Service<P> {
    async fn get_schema(
        &self,
        _: Request<pb::get_provisioner_schema::Request>,
    ) -> std::result::Result<Response<pb::get_provisioner_schema::Response>, Status> {
        Ok(Response::new(pb::get_provisioner_schema::Response {
            provisioner: Some(schema(&self.0.config)),
            ..Default::default()
        }))
    }

    async fn validate_provisioner_config(
        &self,
        request: Request<pb::validate_provisioner_config::Request>,
    ) -> std::result::Result<Response<pb::validate_provisioner_config::Response>, Status> {
        let found = self.0.validate(request.into_inner().config);
        Ok(Response::new(pb::validate_provisioner_config::Response {
            diagnostics: diagnostics(found),
        }))
    }

    type ProvisionResourceStream = Responses;

    async fn provision_resource(
        &self,
        request: Request<pb::provision_resource::Request>,
    ) -> std::result::Result<Response<Responses>, Status> {
        let request = request.into_inner();
        let (responses, stream) = mpsc::channel(64);
        let (text, mut texts) = mpsc::channel(64);
        let inner = self.0.clone();
        let call = inner.calls.begin();
        spawn(P::BLOCKS, async move {
            let work = inner.run(request, Output(text), call.stop());
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
                            // The output is no longer read: the select below notices.
                            drop(responses.send(Ok(response)).await);
                        }
                        // The caller is gone: the work is asked to stop, and its output is dropped.
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

    async fn stop(&self, _: Request<pb::stop::Request>) -> std::result::Result<Response<pb::stop::Response>, Status> {
        self.0.calls.stop();
        Ok(Response::new(pb::stop::Response::default()))
    }
}
