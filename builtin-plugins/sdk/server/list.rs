//! Lists of existing objects, as the services send them.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::guard::guarded_now;
use crate::list::{AnyList, ListRequest};
use crate::resource::{identity_of, identity_type};
use crate::server::core::{Core, Wire, decode, encode, with_defaults};
use crate::server::threads::spawn;
use crate::{Diagnostic, Diagnostics, Result, Stop, check};

/// How many objects may wait to be sent.
const WAITING: usize = 64;

/// One event of a list: an object, or problems.
#[derive(Debug, Default)]
pub(crate) struct ListEvent {
    pub display_name: String,
    pub identity: Option<Wire>,
    pub object: Option<Wire>,
    pub diagnostics: Diagnostics,
}

/// What a request to list objects says.
pub(crate) struct ListCall {
    pub name: String,
    pub config: Wire,
    pub include_objects: bool,
    pub limit: i64,
}

impl Core {
    fn lister(&self, name: &str) -> Result<&dyn AnyList> {
        match self.lists.get(name) {
            Some(list) => Ok(&**list),
            None => Err(Diagnostic::error(
                "Unknown List Resource",
                format!("This provider has no list resource \"{name}\"."),
            )
            .into()),
        }
    }

    pub fn validate_list(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let list = self.lister(name)?;
            let config = decode(config, &list.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(list.schema(), &config, true);
            diagnostics.append(guarded_now(|| list.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    /// Lists objects. Whoever takes the events may go away: then the list is asked to stop.
    pub fn list(self: Arc<Core>, request: ListCall) -> mpsc::Receiver<ListEvent> {
        let (events, stream) = mpsc::channel(WAITING);
        let call = self.calls.begin();
        spawn(self.blocks, async move {
            let mut caller = Some(call.stop_on_drop());
            let work = self.list_into(request, events.clone(), call.stop());
            tokio::pin!(work);
            let diagnostics = loop {
                tokio::select! {
                    diagnostics = &mut work => break diagnostics,
                    () = events.closed(), if caller.is_some() => drop(caller.take()),
                }
            };
            if !diagnostics.0.is_empty() {
                let event = ListEvent {
                    diagnostics,
                    ..ListEvent::default()
                };
                drop(events.send(event).await);
            }
            drop(call);
        });
        stream
    }

    async fn list_into(&self, request: ListCall, events: mpsc::Sender<ListEvent>, stop: Stop) -> Diagnostics {
        let (objects, mut found) = mpsc::channel(WAITING);
        let prepared = || {
            let list = self.lister(&request.name)?;
            let config = decode(&request.config, &list.schema().ty)?;
            Ok::<_, Diagnostics>((list, with_defaults(list.schema(), &config)))
        };
        let (list, config) = match prepared() {
            Ok(prepared) => prepared,
            Err(diagnostics) => return diagnostics,
        };
        let Some(resource) = self.resources.get(&*request.name) else {
            return Diagnostics::new();
        };
        let asked = ListRequest {
            limit: u64::try_from(request.limit).unwrap_or_default(),
            include_objects: request.include_objects,
            objects,
        };
        let send = async {
            while let Some((display_name, object)) = found.recv().await {
                let value = object.to_object(resource.schema());
                let identity = identity_of(resource.identity(), &value);
                let wired = || -> Result<(Option<Wire>, Option<Wire>)> {
                    let ty = identity_type(resource.schema(), resource.identity());
                    let identity = identity.map(|identity| encode(&identity, &ty)).transpose()?;
                    let object = request
                        .include_objects
                        .then(|| encode(&value, &resource.schema().ty))
                        .transpose()?;
                    Ok((identity, object))
                };
                let event = match wired() {
                    Ok((identity, object)) => ListEvent {
                        display_name,
                        identity,
                        object,
                        ..ListEvent::default()
                    },
                    Err(diagnostics) => ListEvent {
                        diagnostics,
                        ..ListEvent::default()
                    },
                };
                if events.send(event).await.is_err() {
                    break;
                }
            }
            // What is still found is dropped.
            found.close();
        };
        futures::join!(list.list(&config, asked, stop), send).0
    }
}
