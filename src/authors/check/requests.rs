//! Starts of a provider under examination, and names and failures of its requests.

use plugins::probe::{Answer, Probe, Start};

use super::Subject;

pub fn start<'a>(subject: &'a Subject<'_>, protocols: &'a [u32]) -> Start<'a> {
    Start {
        program: subject.program,
        protocols,
        tls: true,
        cookie: true,
        timeout: subject.limit,
    }
}

/// Returns the name of the gRPC service in the provider's protocol version.
pub fn service(probe: &Probe) -> String {
    format!("tfplugin{}.Provider", probe.protocol)
}

/// Describes the outcome of a request, as a sentence.
pub fn described(method: &str, answer: &Answer) -> String {
    match answer {
        Answer::Message(_) => format!("{method} was answered."),
        Answer::Refused(code, message) => format!("{method} failed with {code}: {message}."),
        Answer::Lost(reason) => format!("There is no answer to {method}: {reason}."),
        Answer::Late => format!("There is no answer to {method} within the time limit."),
    }
}
