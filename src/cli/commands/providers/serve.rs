//! `providers serve`: serves a mirror directory or a pack as a network mirror and a registry.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use pack::{Pack, PackError};
use packages::serve::{Answers, Contents, Shelf};
use server::Server;
use syntax::Diagnostic;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, listening};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::{interrupt, process};

const SUMMARY: &str = "Cannot serve providers";

/// Limit of the packages that a warning names.
const NAMED: usize = 10;

pub const COMMAND: Command = Command {
    path: "providers serve",
    about: "Serve provider packages to other machines",
    positional: "[DIR|PACK]",
    details: "Serves the provider packages in a directory that \"providers mirror\" or \"unpack\" has filled, or in a pack, over HTTPS: as a \
      network mirror, and as a registry. It answers only requests that read. Without an argument it serves what this executable \
      carries. A package whose program is a link, as \"internal-plugin link\" makes it, is served with the program; any other link that \
      leads out of a package is not followed, and that package is not served. Requests are logged at stderr. It ends when it is \
      interrupted.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    listen: String,
    certificate: Option<String>,
    key: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            listen: flags.value_or(
                "listen",
                "ADDRESS:PORT",
                "127.0.0.1:8443",
                "Where to listen. The port 0 means any that is free; 0.0.0.0 and [::] mean all addresses of the machine.",
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
    let source = match arguments.positional.as_slice() {
        [] => session.builtins.executable.clone(),
        [source] => source.into(),
        _ => {
            return Err(Failure::usage(
                "Too many command line arguments",
                "Name the directory or the pack that is served. It is the only argument.",
            ));
        }
    };
    let address = listening::address(&arguments.listen, 8443)?;
    let tls = listening::tls(SUMMARY, arguments.certificate.as_deref(), arguments.key.as_deref())?;
    let contents = match source.is_dir() {
        true => Contents::Mirror(source.clone()),
        false => match Pack::open(&source, &session.pack_conditions()) {
            Ok(pack) => Contents::Pack(Arc::new(pack)),
            Err(error) => return Err(Failure::new(SUMMARY, format!("That failed: {error}."))),
        },
    };
    let shelf = match Shelf::new(contents) {
        Ok(shelf) => Arc::new(shelf),
        Err(error) => {
            let reason = files::io_reason(&error);
            return Err(Failure::new(
                SUMMARY,
                format!("A temporary directory or a key cannot be made: {reason}."),
            ));
        }
    };
    // Packages that cannot be served are reported now, not when a client misses them.
    let survey = shelf.survey();
    if !survey.left_out.is_empty() {
        session.warn_now(left_out(&survey.left_out));
    }
    let count = survey.providers.len();
    let runtime = session.runtime()?;
    let ui = session.ui.clone();
    let server = Server {
        handler: Answers(shelf),
        tls,
        log: Arc::new(move |access| ui.err(format!("{:.0} {access}\n", process::now()))),
    };
    runtime.block_on(serve(session, server, address, &source, count))
}

async fn serve(
    session: &Session,
    server: Server<Answers>,
    address: SocketAddr,
    source: &Path,
    count: usize,
) -> Result<Outcome, Failure> {
    let bound = server::listen(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    let (listener, address) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            let reason = files::io_reason(&error);
            return Err(Failure::new(
                SUMMARY,
                format!("The server cannot listen at {address}: {reason}."),
            ));
        }
    };
    // The handlers are installed before the server announces itself, so that no interrupt is missed.
    let interrupted = interrupt::received();
    let secured = server.tls.is_some();
    let scheme = if secured { "https" } else { "http" };
    session.ui.line(format!(
        "Serving {count} {} from {} at {scheme}://{address}/.\n\nThe CLI configuration of a machine that installs from here:\n\n  \
         provider_installation {{\n    network_mirror {{\n      url = \"https://{address}/providers/\"\n    }}\n  }}\n",
        if count == 1 { "provider" } else { "providers" },
        source.display()
    ));
    if !secured {
        session.ui.line(
            "Clients accept only HTTPS: name a certificate by -tls-cert and -tls-key, or put a server with a certificate in front \
                 of this one.\n",
        );
    }
    session.ui.flush();
    server.run(listener, interrupted).await;
    Ok(Outcome::line("The server has ended."))
}

/// Returns the warning about packages that cannot be served.
fn left_out(reasons: &[PackError]) -> Diagnostic {
    let mut lines: Vec<String> = reasons
        .iter()
        .take(NAMED)
        .map(|reason| format!("  - {reason}"))
        .collect();
    if reasons.len() > NAMED {
        lines.push(format!("  - and {} more", reasons.len() - NAMED));
    }
    Diagnostic::warning(
        "Packages are not served",
        format!(
            "Some packages cannot be served, and are not listed either:\n{}\n\nMend or remove them. The server need not be started again.",
            lines.join("\n")
        ),
    )
}
