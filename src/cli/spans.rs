//! Spans of the command: the command itself, plan and apply, the objects in them, and the providers that `init` installs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use addrs::program::Mode;
use addrs::{AbsResourceInstance, Program, Provider};
use engine::events::{EphemeralAction, Event};
use engine::plan::Action;
use net::{Method, Url, WatchedRequest};
use packages::install::Step;
use traces::{Open, Product, Settings, Tracer};
use views::reporter::{OperationView, StillRunning};

use crate::env::Env;
use crate::outcome::Status;

/// Creates the recorder, if the environment requests a trace. If the settings of the trace are invalid, logs that and returns `None`.
pub fn start(env: &Env) -> Option<Arc<Tracer>> {
    let product = Product {
        service: match Mode::current() {
            Mode::OpenTofu => "OpenTofu CLI",
            Mode::Monoform | Mode::Terraform => "Monoform",
        },
        version: crate::VERSION,
    };
    match Settings::from_environment(env, product) {
        Ok(settings) => settings.map(|settings| Arc::new(Tracer::new(settings))),
        Err(error) => {
            tracing::warn!("no trace is recorded: {error}");
            None
        }
    }
}

/// Runs the program with a span around it, and sends the spans.
pub fn whole(tracer: Option<&Tracer>, program: Program, run: impl FnOnce() -> Status) -> Status {
    let status = within(tracer, program.command, run);
    if let Some(Err(error)) = tracer.map(Tracer::export) {
        // The result of the command does not depend on the collector.
        tracing::warn!("the trace was not sent: {error}");
    }
    status
}

/// Runs a command with a span around it.
pub fn command(tracer: Option<&Tracer>, path: &str, run: impl FnOnce() -> Status) -> Status {
    let mut name = path.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    within(tracer, &name, run)
}

fn within(tracer: Option<&Tracer>, name: &str, run: impl FnOnce() -> Status) -> Status {
    let Some(tracer) = tracer else { return run() };
    let span = tracer.enter(name);
    let status = run();
    let error = (status != 0).then(|| format!("exit status {status}"));
    tracer.end(span, error);
    status
}

/// Returns the observer of requests to registries and other hosts: each has a span, and continues the trace.
pub fn requests(tracer: Arc<Tracer>) -> impl Fn(&Method, &Url) -> WatchedRequest + Send + Sync {
    move |method, url| {
        let mut span = tracer.start(format!("HTTP {method}"));
        span.set("http.request.method", method.as_str());
        // Without the query, which can have a signature.
        span.set("url.full", net::shown(url));
        span.set("server.address", url.host_str().unwrap_or_default());
        if let Some(port) = url.port_or_known_default() {
            span.set("server.port", port.to_string());
        }
        let tracer = tracer.clone();
        WatchedRequest {
            traceparent: tracer.traceparent(span.id),
            end: Box::new(move |result| {
                let error = match result {
                    Ok(status) => {
                        span.set("http.response.status_code", status.as_u16().to_string());
                        let failed = status.is_client_error() || status.is_server_error();
                        failed.then(|| status.to_string())
                    }
                    Err(error) => Some(error.to_string()),
                };
                tracer.end(span, error);
            }),
        }
    }
}

/// Operation on an object whose span is open.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    /// Planning of an object, with the key if it is deposed.
    Plan(String, Option<Arc<str>>),
    Refresh(String),
    /// Operation on an object, with the key if it is deposed.
    Operation(String, Option<Arc<str>>),
    Provisioner(String, Arc<str>),
    Ephemeral(String, &'static str),
    Action(String),
    /// Installation of a provider.
    Provider(String),
}

/// Open spans of a phase: its own, and those of the operations in it.
pub struct Spans {
    tracer: Arc<Tracer>,
    phase: Mutex<Option<Open>>,
    open: Mutex<HashMap<Key, Open>>,
}

impl Spans {
    /// Starts the span of a phase, such as "Plan phase".
    #[must_use]
    pub fn begin(tracer: &Arc<Tracer>, phase: &str) -> Spans {
        Spans {
            phase: Mutex::new(Some(tracer.enter(phase))),
            tracer: tracer.clone(),
            open: Mutex::default(),
        }
    }

    fn start(&self, key: Key, span: Open) {
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, span);
    }

    fn stop(&self, key: &Key, error: Option<&str>) {
        let span = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        if let Some(span) = span {
            self.tracer.end(span, error.map(str::to_owned));
        }
    }

    fn of_object(&self, name: &str, address: &AbsResourceInstance) -> Open {
        let mut span = self.tracer.start(name);
        span.set("opentofu.resource_instance.address", address.to_string());
        span.set("opentofu.resource.type", &*address.resource.resource.ty);
        span
    }

    /// Ends all spans. Those of operations that are still running are marked as failed.
    pub fn finish(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        for span in open.into_values() {
            self.tracer.end(span, Some("not completed".to_owned()));
        }
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(phase) = phase {
            self.tracer.end(phase, None);
        }
    }

    /// Records the installation of providers.
    pub fn step(&self, step: &Step<'_>) {
        let key = |provider: &Provider| Key::Provider(provider.to_string());
        match step {
            Step::Installing(provider, version) => {
                let mut span = self.tracer.start(format!("Install Provider \"{provider}\""));
                span.set("opentofu.provider.address", provider.to_string());
                span.set("opentofu.provider.version", version.to_string());
                self.start(key(provider), span);
            }
            Step::Done(provider, _) => self.stop(&key(provider), None),
            Step::Finding(..) | Step::Reusing(_) | Step::Downloading(_) => {}
        }
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        self.finish();
    }
}

fn ephemeral(action: EphemeralAction) -> &'static str {
    match action {
        EphemeralAction::Open => "Open ephemeral resource",
        EphemeralAction::Renew => "Renew ephemeral resource",
        EphemeralAction::Close => "Close ephemeral resource",
    }
}

impl OperationView for Spans {
    fn event(&self, event: &Event) {
        let operation = |address: &AbsResourceInstance, deposed: &Option<Arc<str>>| {
            Key::Operation(address.to_string(), deposed.clone())
        };
        match event {
            Event::PlanStart { address, deposed } => {
                let mut span = self.of_object("Plan resource instance changes", address);
                if let Some(key) = deposed {
                    span.set("opentofu.resource_instance.deposed", &**key);
                }
                self.start(Key::Plan(address.to_string(), deposed.clone()), span);
            }
            Event::PlanComplete { address, deposed } => {
                self.stop(&Key::Plan(address.to_string(), deposed.clone()), None);
            }
            Event::PlanFailed { address, deposed } => {
                self.stop(&Key::Plan(address.to_string(), deposed.clone()), Some("failed"));
            }
            Event::RefreshStart { address, .. } => {
                let span = self.of_object("Refresh resource instance", address);
                self.start(Key::Refresh(address.to_string()), span);
            }
            Event::RefreshComplete { address, .. } => self.stop(&Key::Refresh(address.to_string()), None),
            Event::RefreshFailed { address } => self.stop(&Key::Refresh(address.to_string()), Some("failed")),
            Event::OperationStart {
                address,
                deposed,
                action,
                ..
            } => {
                let mut span = match action {
                    Action::Read => self.of_object("Read data source instance", address),
                    _ => self.of_object("Apply resource instance changes", address),
                };
                span.set("monoform.action", format!("{action:?}").to_lowercase());
                self.start(operation(address, deposed), span);
            }
            Event::OperationComplete { address, deposed, .. } => self.stop(&operation(address, deposed), None),
            Event::OperationFailed { address, deposed, .. } => self.stop(&operation(address, deposed), Some("failed")),
            Event::ProvisionStart { address, provisioner } => {
                let mut span = self.of_object("Run provisioner", address);
                span.set("monoform.provisioner.type", &**provisioner);
                self.start(Key::Provisioner(address.to_string(), provisioner.clone()), span);
            }
            Event::ProvisionComplete { address, provisioner } => {
                self.stop(&Key::Provisioner(address.to_string(), provisioner.clone()), None);
            }
            Event::ProvisionFailed { address, provisioner } => {
                let key = Key::Provisioner(address.to_string(), provisioner.clone());
                self.stop(&key, Some("failed"));
            }
            Event::EphemeralStart { address, action } => {
                let name = ephemeral(*action);
                let span = self.of_object(name, address);
                self.start(Key::Ephemeral(address.to_string(), name), span);
            }
            Event::EphemeralComplete { address, action, .. } => {
                self.stop(&Key::Ephemeral(address.to_string(), ephemeral(*action)), None);
            }
            Event::EphemeralFailed { address, action, .. } => {
                let key = Key::Ephemeral(address.to_string(), ephemeral(*action));
                self.stop(&key, Some("failed"));
            }
            Event::ActionStart { address, .. } => {
                let mut span = self.tracer.start("Invoke action");
                span.set("monoform.action.address", address.to_string());
                self.start(Key::Action(address.to_string()), span);
            }
            Event::ActionComplete { address, .. } => self.stop(&Key::Action(address.to_string()), None),
            Event::ActionFailed { address, .. } => self.stop(&Key::Action(address.to_string()), Some("failed")),
            _ => {}
        }
    }

    fn wants_planning(&self) -> bool {
        true
    }

    fn still_running(&self, _: &[StillRunning]) {}

    fn end(&self) {
        self.finish();
    }
}
