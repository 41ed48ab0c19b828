//! `state serve`: serves the states of the configured backend by the protocol of Terraform's backend `http`.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use server::{
    Credentials, Handler, HeaderMap, Incoming, Method, Reply, Request, Server, StatusCode, header, read_body,
};
use stores::backend::{self, StateBackend, StateLocation};
use stores::serve::{self, Answer, Event, Job, Pool, Request as Wanted};
use syntax::Diagnostics;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::{Command, listening};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::{interrupt, process, state_session};

const SUMMARY: &str = "Cannot serve states";

/// Limit of a request's body in bytes. States of a million objects are smaller.
const LARGEST: usize = 1 << 30;
/// Limit of the record of a lock in bytes.
const LARGEST_RECORD: usize = 1 << 20;
/// Limit of the texts of states in memory that clients write, in KiB, and of those that they read. A request beyond it is refused, so
/// that nobody waits for a client that stalls.
const MEMORY: usize = 2 << 20;
/// Interval at which a refused client may try again, in seconds.
const AGAIN: &str = "5";

/// User name in the credentials that the server generates.
const NAME: &str = "monoform";

pub const COMMAND: Command = Command {
    path: "state serve",
    about: "Serve the states to Terraform and OpenTofu",
    positional: "",
    details: "Serves the states of the configured backend over HTTP, as Terraform's backend \"http\" expects it, with locks: for programs \
      that cannot use the backend themselves. A state is served in clear text, even if it is stored encrypted. Clients need a name and a \
      password. Without -credentials the server makes a password for this run, and shows it. Other machines can be served only with \
      -credentials and a certificate. Requests are logged at stderr. It ends when it is interrupted, and then releases the locks of its \
      clients.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    listen: String,
    credentials: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        // The settings of a backend can depend on variables, whose values are in the session.
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            listen: flags.value_or(
                "listen",
                "ADDRESS:PORT",
                "127.0.0.1:8444",
                "Where to listen. The port 0 means any that is free; 0.0.0.0 and [::] mean all addresses of the machine.",
            ),
            credentials: flags.value(
                "credentials",
                "FILE",
                "A file with the line NAME:PASSWORD, which clients must send.",
            ),
            certificate: flags.value(
                "tls-cert",
                "FILE",
                "The certificate of the server, and those that lead to the authority (PEM).",
            ),
            key: flags.value("tls-key", "FILE", "The private key of the certificate (PEM)."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.positional.is_empty() {
        return Err(Failure::usage(
            "Too many command line arguments",
            "The command has no arguments: it serves the backend of the configuration in the working directory.",
        ));
    }
    let address = listening::address(&arguments.listen, 8444)?;
    let tls = listening::tls(SUMMARY, arguments.certificate.as_deref(), arguments.key.as_deref())?;
    // A state has secrets, and whoever can write it decides what the next apply destroys.
    if !address.ip().is_loopback() && (tls.is_none() || arguments.credentials.is_none()) {
        return Err(Failure::new(
            SUMMARY,
            format!(
                "Other machines can reach {address}, and states have secrets. Give the server a certificate with -tls-cert and \
                 -tls-key, and a password with -credentials; or listen at 127.0.0.1 only."
            ),
        ));
    }
    let login = login(arguments.credentials.as_deref())?;
    let location = state_session::location(session)?;
    let runtime = session.runtime()?;
    let listener = runtime.block_on(async {
        let listener = server::listen(address)?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    });
    let (listener, address) = listener.map_err(|error| {
        let reason = files::io_reason(&error);
        Failure::new(SUMMARY, format!("The server cannot listen at {address}: {reason}."))
    })?;
    let codec = session.stores().encryption.states()?;
    if codec.cipher().is_some() {
        session.stores().encryption.prepare_states()?;
    }
    let (sender, events) = mpsc::channel();
    let (pool, threads) = serve::start(&codec, &sender).map_err(|error| {
        let reason = files::io_reason(&error);
        Failure::new(SUMMARY, format!("The system starts no more threads: {reason}."))
    })?;
    let ui = session.ui.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = Server {
        handler: Queue {
            pool: pool.clone(),
            credentials: login.credentials,
            written: Memory::new(),
            read: Memory::new(),
        },
        tls,
        log: Arc::new(move |access| ui.err(format!("{:.0} {access}\n", process::now()))),
    };
    let ty = location.backend.ty();
    let url = format!("{scheme}://{address}/states/{}", location.workspace);
    announce(session, &format!("backend \"{ty}\""), &url, login.shown.as_deref());
    // The handlers are installed before the first request is answered, so that no interrupt is missed.
    let interrupted = {
        let _context = runtime.enter();
        interrupt::received()
    };
    runtime.spawn(async move {
        server.run(listener, interrupted).await;
        let _ = sender.send(Event::End);
    });
    for warning in attend(session, location, &events, &pool, threads)? {
        session.warn_now(warning);
    }
    Ok(Outcome::line("The server has ended."))
}

/// Does what the threads of the server ask for, until they have ended. Returns their warnings.
fn attend(
    session: &Session,
    location: StateLocation,
    events: &mpsc::Receiver<Event>,
    pool: &Pool,
    threads: Vec<JoinHandle<Diagnostics>>,
) -> Result<Diagnostics, Failure> {
    let saved = match &location.backend {
        StateBackend::Store(store) => Some(store.saved()?),
        StateBackend::Local(_) => None,
    };
    let local = location.backend.clone();
    let mut first = Some(location.backend);
    // The last sender is dropped with the last thread.
    for event in events {
        match event {
            Event::Open(reply) => {
                let opened = match (first.take(), &saved) {
                    (Some(first), _) => Ok(first),
                    (None, Some(saved)) => backend::of_saved(&session.stores(), saved),
                    (None, None) => Ok(local.clone()),
                };
                let _ = reply.send(opened);
            }
            Event::Warning(warning, reply) => {
                session.warn_now(*warning);
                let _ = reply.send(());
            }
            // Connections that did not end in time get no more answers.
            Event::End => pool.close(),
        }
    }
    let mut warnings = Diagnostics::new();
    for thread in threads {
        match thread.join() {
            Ok(found) => warnings.extend(found),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(warnings)
}

/// Credentials of clients, and their text if this run has made them.
struct Login {
    credentials: Credentials,
    shown: Option<String>,
}

fn login(file: Option<&str>) -> Result<Login, Failure> {
    let (text, shown) = match file {
        Some(path) => match std::fs::read_to_string(path) {
            Ok(text) => (text, None),
            Err(error) => {
                let reason = files::io_reason(&error);
                return Err(Failure::new(
                    SUMMARY,
                    format!("The file {path} cannot be read: {reason}."),
                ));
            }
        },
        None => {
            let password = uuid::Uuid::new_v4().simple().to_string();
            (format!("{NAME}:{password}"), Some(password))
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    match Credentials::parse(text) {
        Some(credentials) => Ok(Login { credentials, shown }),
        None => Err(Failure::new(
            SUMMARY,
            format!(
                "The file {} must have one line: a name, a colon and a password.",
                file.unwrap_or_default()
            ),
        )),
    }
}

fn announce(session: &Session, backend: &str, url: &str, password: Option<&str>) {
    let login = match password {
        Some(password) => format!("  export TF_HTTP_USERNAME={NAME} TF_HTTP_PASSWORD={password}\n"),
        None => "  export TF_HTTP_USERNAME=… TF_HTTP_PASSWORD=…\n".to_owned(),
    };
    session.ui.line(format!(
        "Serving the states of the {backend}. The settings of a client, whose address ends with the workspace:\n\n  \
         terraform {{\n    backend \"http\" {{\n      address        = \"{url}\"\n      lock_address   = \"{url}\"\n      \
         unlock_address = \"{url}\"\n    }}\n  }}\n\n{login}"
    ));
    session.ui.flush();
}

/// Limit of the texts that are in memory at a time.
struct Memory(Arc<Semaphore>);

impl Memory {
    fn new() -> Memory {
        Memory(Arc::new(Semaphore::new(MEMORY)))
    }

    /// Takes memory for so many bytes, if there is some left.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).ok()?;
        self.0.clone().try_acquire_many_owned(kib).ok()
    }
}

fn no_memory() -> Reply {
    let mut reply = refusal(
        StatusCode::SERVICE_UNAVAILABLE,
        "the states of other requests fill the memory for them",
    );
    let seconds = header::HeaderValue::from_static(AGAIN);
    reply.headers.insert(header::RETRY_AFTER, seconds);
    reply
}

/// Sends the requests of clients to the threads that have the backend.
struct Queue {
    pool: Arc<Pool>,
    credentials: Credentials,
    written: Memory,
    read: Memory,
}

impl Handler for Queue {
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        let headers = request.headers();
        // Web pages in a browser on this machine could send requests to this server. Browsers set the header `Origin` then, so requests
        // with it are refused.
        if headers.contains_key(header::ORIGIN) {
            return refusal(StatusCode::FORBIDDEN, "requests of web pages are not answered");
        }
        if !self.credentials.are_in(headers) {
            let mut reply = refusal(StatusCode::UNAUTHORIZED, "the name or the password is wrong");
            let scheme = header::HeaderValue::from_static("Basic realm=\"states\"");
            reply.headers.insert(header::WWW_AUTHENTICATE, scheme);
            return reply;
        }
        let Some(workspace) = request.uri().path().strip_prefix("/states/").map(ToOwned::to_owned) else {
            return refusal(StatusCode::BAD_REQUEST, "paths are /states/WORKSPACE");
        };
        // Held until the answer.
        let mut memory = Vec::new();
        let wanted = match wanted(request, &self.written, &mut memory).await {
            Ok(wanted) => wanted,
            Err(reply) => return reply,
        };
        let (sender, receiver) = oneshot::channel();
        self.pool.send(Job {
            workspace,
            request: wanted,
            reply: Box::new(move |answer| drop(sender.send(answer))),
        });
        match receiver.await {
            Ok(Answer::State(text)) => match self.read.take(text.len()) {
                Some(memory) => reply(Answer::State(text)).holding(memory),
                None => no_memory(),
            },
            Ok(answer) => reply(answer),
            Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is ending"),
        }
    }
}

/// Returns true if the body of a request is a state: POST, or PUT if the client's `update_method` says so.
fn is_write(method: &Method) -> bool {
    method == Method::POST || method == Method::PUT
}

/// Reads the request of a client for a state.
async fn wanted(
    request: Request<Incoming>,
    memory: &Memory,
    taken: &mut Vec<OwnedSemaphorePermit>,
) -> Result<Wanted, Reply> {
    let method = request.method().clone();
    if method == Method::GET || method == Method::HEAD {
        return Ok(Wanted::Read);
    }
    if is_write(&method) {
        let lock = lock_id(request.uri().query());
        let mut take = |bytes| {
            taken.push(memory.take(bytes).ok_or_else(|| Box::new(no_memory()))?);
            Ok(())
        };
        let text = read_body(request, LARGEST, &mut take).await?;
        return Ok(Wanted::Write { lock, text });
    }
    let change = match method.as_str() {
        "LOCK" => Wanted::Lock,
        "UNLOCK" => Wanted::Unlock,
        _ => {
            let mut reply = refusal(StatusCode::METHOD_NOT_ALLOWED, "states are not deleted here");
            let allowed = header::HeaderValue::from_static("GET, HEAD, LOCK, POST, PUT, UNLOCK");
            reply.headers = HeaderMap::from_iter([(header::ALLOW, allowed)]);
            return Err(reply);
        }
    };
    Ok(change(read_body(request, LARGEST_RECORD, &mut |_| Ok(())).await?))
}

/// Returns the lock's ID in a query (`?ID=…`); `None` if it has none.
fn lock_id(query: Option<&str>) -> Option<String> {
    let id = query?.split('&').find_map(|part| part.strip_prefix("ID="))?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn reply(answer: Answer) -> Reply {
    let json = "application/json";
    match answer {
        Answer::Done => Reply::status(StatusCode::OK),
        Answer::State(text) => Reply::bytes(StatusCode::OK, json, text),
        Answer::NoState => Reply::status(StatusCode::NO_CONTENT),
        Answer::Locked(holder) => Reply::bytes(StatusCode::LOCKED, json, holder.to_json().into_bytes()),
        Answer::Refused(why) => refusal(StatusCode::CONFLICT, &why),
        Answer::Invalid(why) => refusal(StatusCode::BAD_REQUEST, &why),
        Answer::Failed(why) => Reply {
            // The details go to the server's log, not to the client.
            error: Some(why),
            ..refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the backend failed; the server's log has the reason",
            )
        },
    }
}

fn refusal(status: StatusCode, why: &str) -> Reply {
    Reply {
        error: Some(why.to_owned()),
        ..Reply::bytes(status, "text/plain; charset=utf-8", format!("{why}\n").into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_id_is_in_the_query() {
        assert_eq!(lock_id(Some("ID=1-2")).as_deref(), Some("1-2"));
        assert_eq!(lock_id(Some("a=b&ID=1")).as_deref(), Some("1"));
        assert_eq!(lock_id(Some("ID=")), None);
        assert_eq!(lock_id(None), None);
    }
}
