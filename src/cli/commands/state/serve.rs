//! `state serve`: serves the states of the configured backend by the protocol of Terraform's backend `http`.

use std::sync::{Arc, mpsc};

use server::{
    Credentials, Handler, HeaderMap, Incoming, Method, Reply, Request, Server, StatusCode, header, read_body,
};
use stores::serve::{Answer, Request as Wanted, Served};
use tokio::sync::{Semaphore, oneshot};

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
/// Limit of write requests that are processed at a time. Each holds a state in memory.
const WRITES: usize = 4;

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
    let (queue, jobs) = mpsc::channel();
    let ui = session.ui.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = Server {
        handler: Queue {
            jobs: queue.clone(),
            credentials: login.credentials,
            writes: Semaphore::new(WRITES),
        },
        tls,
        log: Arc::new(move |access| ui.err(format!("{:.0} {access}\n", process::now()))),
    };
    let ty = location.backend.ty();
    let url = format!("{scheme}://{address}/states/{}", location.workspace);
    announce(session, &format!("backend \"{ty}\""), &url, login.shown.as_deref());
    let mut served = Served::new(session.stores(), location.backend);
    // The handlers are installed before the first request is answered, so that no interrupt is missed.
    let interrupted = {
        let _context = runtime.enter();
        interrupt::received()
    };
    runtime.spawn(async move {
        server.run(listener, interrupted).await;
        // Connections that are still open hold the queue, so the receiver would wait for them. `None` ends its loop.
        let _ = queue.send(None);
    });
    // Backends are used on this thread only: they belong to the session.
    while let Ok(Some(job)) = jobs.recv() {
        // If the client has disconnected, its request is carried out nevertheless, since it may be a write. Only the reply is lost.
        let _ = job.reply.send(served.answer(&job.workspace, job.wanted));
    }
    for warning in served.release() {
        session.warn_now(warning);
    }
    Ok(Outcome::line("The server has ended."))
}

/// Credentials that clients need, and their text if the server has generated them.
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

/// Request for a state, on its way to the thread that has the backend.
struct Job {
    workspace: String,
    wanted: Wanted,
    reply: oneshot::Sender<Answer>,
}

/// Request handler that checks the credentials of clients, and sends their requests to the thread that has the backend.
struct Queue {
    /// Jobs; `None` ends the receiving loop.
    jobs: mpsc::Sender<Option<Job>>,
    credentials: Credentials,
    writes: Semaphore,
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
        // The permit is held until the answer is complete. `acquire` fails only on a closed semaphore, and nothing closes this one.
        let _write = match is_write(request.method()) {
            true => self.writes.acquire().await.ok(),
            false => None,
        };
        let wanted = match wanted(request).await {
            Ok(wanted) => wanted,
            Err(reply) => return reply,
        };
        let (sender, receiver) = oneshot::channel();
        let job = Job {
            workspace,
            wanted,
            reply: sender,
        };
        let answered = match self.jobs.send(Some(job)) {
            Ok(()) => receiver.await.ok(),
            Err(_) => None,
        };
        match answered {
            Some(answer) => reply(answer),
            None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the server is ending"),
        }
    }
}

/// Returns true if the body of a request is a state: POST, or PUT if the client's `update_method` says so.
fn is_write(method: &Method) -> bool {
    method == Method::POST || method == Method::PUT
}

/// Reads the request of a client for a state.
async fn wanted(request: Request<Incoming>) -> Result<Wanted, Reply> {
    let method = request.method().clone();
    if method == Method::GET || method == Method::HEAD {
        return Ok(Wanted::Read);
    }
    if is_write(&method) {
        let lock = lock_id(request.uri().query());
        let text = read_body(request, LARGEST).await?;
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
    Ok(change(read_body(request, LARGEST_RECORD).await?))
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
