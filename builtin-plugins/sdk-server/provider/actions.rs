//! Methods for the provider itself, its functions and its actions.

use proto::tfplugin6 as pb;
use tonic::Status;

use super::service::Service;
use crate::actions::{self, ActionEvent};
use crate::messages::v6::{deferral_allowed, deferred, diagnostics, dynamic, wire};
use monoform_sdk::calls::CallOptions;
use monoform_sdk::wire::Wire;

impl Service {
    pub(super) async fn validate_provider_config(
        &self,
        r: pb::validate_provider_config::Request,
    ) -> Result<pb::validate_provider_config::Response, Status> {
        let found = self
            .run_now(|provider| provider.validate_provider(&wire(r.config)))
            .await?;
        // Protocol 5 also has prepared_config, which Terraform ignores.
        Ok(pb::validate_provider_config::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn configure_provider(
        &self,
        r: pb::configure_provider::Request,
    ) -> Result<pb::configure_provider::Response, Status> {
        let found = self
            .run(|provider, stop| async move {
                let options = CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                provider.configure(&wire(r.config), &r.terraform_version, options).await
            })
            .await?;
        Ok(pb::configure_provider::Response {
            diagnostics: diagnostics(found),
        })
    }

    pub(super) async fn stop_provider(
        &self,
        _: pb::stop_provider::Request,
    ) -> Result<pb::stop_provider::Response, Status> {
        // Answers at once: the host sends this request while other calls run, and the answer says only that the request arrived.
        self.provider.calls().stop();
        Ok(pb::stop_provider::Response::default())
    }

    pub(super) async fn call_function(
        &self,
        r: pb::call_function::Request,
    ) -> Result<pb::call_function::Response, Status> {
        let result = self
            .run_now(move |provider| {
                let arguments: Vec<Wire> = r.arguments.into_iter().map(|a| wire(Some(a))).collect();
                provider.call(&r.name, &arguments)
            })
            .await?;
        let response = match result {
            Ok(result) => pb::call_function::Response {
                result: Some(dynamic(result)),
                error: None,
            },
            // The error of a function is sent in the answer, because a gRPC status could not name the argument that the host marks.
            Err(error) => pb::call_function::Response {
                result: None,
                error: Some(pb::FunctionError {
                    text: error.text,
                    function_argument: error.argument.and_then(|i| i64::try_from(i).ok()),
                }),
            },
        };
        Ok(response)
    }

    pub(super) async fn plan_action(&self, r: pb::plan_action::Request) -> Result<pb::plan_action::Response, Status> {
        let (why, found) = self
            .run(|provider, stop| async move {
                let options = CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                provider.plan_action(&r.action_type, &wire(r.config), options).await
            })
            .await?;
        Ok(pb::plan_action::Response {
            diagnostics: diagnostics(found),
            deferred: deferred(why),
        })
    }

    pub(super) async fn invoke_action(
        &self,
        r: pb::invoke_action::Request,
    ) -> Result<actions::Events<pb::invoke_action::Event>, Status> {
        use pb::invoke_action::{
            Event,
            event::{Completed, Progress, Type},
        };
        Ok(actions::events(
            self.provider.clone(),
            r.action_type,
            wire(r.config),
            |event| Event {
                r#type: Some(match event {
                    ActionEvent::Progress(message) => Type::Progress(Progress { message }),
                    ActionEvent::Completed(found) => Type::Completed(Completed {
                        diagnostics: diagnostics(found),
                    }),
                }),
            },
        ))
    }

    pub(super) async fn validate_action_config(
        &self,
        r: pb::validate_action_config::Request,
    ) -> Result<pb::validate_action_config::Response, Status> {
        let found = self
            .run_now(move |provider| provider.validate_action(&r.type_name, &wire(r.config)))
            .await?;
        Ok(pb::validate_action_config::Response {
            diagnostics: diagnostics(found),
        })
    }
}
