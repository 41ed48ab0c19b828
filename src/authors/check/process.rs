//! The process of a provider: start, protocols, TLS, output, signals and end.

use std::time::Duration;

use plugins::probe::{Answer, Probe, Start, StartFailure};
use system::processes::Ask;

use super::requests::{described, service, start};
use super::{Outcome, Report, Subject};

const GROUP: &str = "process";

/// Protocol version that no provider serves.
const UNKNOWN_PROTOCOL: u32 = 99;
/// Number of concurrent requests.
const AT_ONCE: usize = 32;
/// Time to wait for an effect of a signal that providers must ignore.
const SETTLE: Duration = Duration::from_millis(300);

pub async fn check(subject: &Subject<'_>, report: &mut Report) {
    protocols(subject, report).await;
    if report.protocols.is_empty() {
        return;
    }
    without_tls(subject, report).await;
    without_host(subject, report).await;
    future_protocol(subject, report).await;
    running(subject, report).await;
    terminated(subject, report).await;
}

/// Starts the provider with each protocol.
async fn protocols(subject: &Subject<'_>, report: &mut Report) {
    let mut reasons = Vec::new();
    for protocol in [5, 6] {
        match Probe::start(&start(subject, &[protocol])).await {
            Ok(_) => report.protocols.push(protocol),
            Err(error) => reasons.push(format!("Protocol {protocol}: {}.", explained(&error))),
        }
    }
    let served: Vec<String> = report.protocols.iter().map(u32::to_string).collect();
    match served.is_empty() {
        false => report.add(
            GROUP,
            "starts and says where it can be reached",
            Outcome::Passed,
            format!("Protocol {}.", served.join(" and ")),
        ),
        true => report.add(
            GROUP,
            "starts and says where it can be reached",
            Outcome::Failed,
            reasons.join(" "),
        ),
    }
}

async fn without_tls(subject: &Subject<'_>, report: &mut Report) {
    let protocols = report.protocols.clone();
    let plain = Start {
        tls: false,
        ..start(subject, &protocols)
    };
    let problem = match Probe::start(&plain).await {
        Ok(probe) => answers(&probe, subject).await,
        Err(error) => Some(sentence(&explained(&error))),
    };
    report.judge(GROUP, "works without TLS (TF_DISABLE_PLUGIN_TLS)", problem);
}

/// Starts the provider as a person would in a shell: without the environment variables of a host.
async fn without_host(subject: &Subject<'_>, report: &mut Report) {
    let protocols = report.protocols.clone();
    let alone = Start {
        cookie: false,
        ..start(subject, &protocols)
    };
    let name = "explains itself to a person who starts it";
    match Probe::start(&alone).await {
        Ok(_) => report.add(
            GROUP,
            name,
            Outcome::Failed,
            "The provider serves although no host has started it.",
        ),
        // A first line that is not a handshake explains to the user that this program is a plugin.
        Err(StartFailure::Handshake(_)) => report.add(GROUP, name, Outcome::Passed, ""),
        Err(StartFailure::Ended { status, printed }) => match (status.success(), printed.trim().is_empty()) {
            (false, false) => report.add(GROUP, name, Outcome::Passed, ""),
            (true, _) => report.add(
                GROUP,
                name,
                Outcome::Warning,
                "The provider ends with status 0, which scripts take for success. End with another status.",
            ),
            (false, true) => report.add(
                GROUP,
                name,
                Outcome::Warning,
                "The provider ends without a message. Print that it is a plugin, and what starts it.",
            ),
        },
        Err(error) => report.add(GROUP, name, Outcome::Failed, sentence(&error.to_string())),
    }
}

async fn future_protocol(subject: &Subject<'_>, report: &mut Report) {
    let name = "does not claim a protocol that it does not know";
    let future = start(subject, &[UNKNOWN_PROTOCOL]);
    let problem = match Probe::start(&future).await {
        Ok(_) => Some(format!(
            "The provider announces protocol {UNKNOWN_PROTOCOL}, which does not exist."
        )),
        Err(StartFailure::Late(limit)) => Some(format!(
            "The provider neither ends nor answers within {} seconds.",
            limit.as_secs_f64()
        )),
        Err(_) => None,
    };
    report.judge(GROUP, name, problem);
}

/// Checks a running process: many requests at once, SIGINT, StopProvider, its output, and its end on request.
async fn running(subject: &Subject<'_>, report: &mut Report) {
    let protocols = report.protocols.clone();
    let mut probe = match Probe::start(&start(subject, &protocols)).await {
        Ok(probe) => probe,
        Err(error) => return report.add(GROUP, "starts again", Outcome::Failed, sentence(&explained(&error))),
    };
    let expected = protocols.iter().max().copied().unwrap_or_default();
    report.judge(
        GROUP,
        "chooses the highest protocol that is offered",
        (probe.protocol != expected)
            .then(|| format!("The provider chose {} although it serves {expected}.", probe.protocol)),
    );
    let requests = (0..AT_ONCE).map(|_| answers(&probe, subject));
    let mut late = Vec::new();
    for answered in futures::future::join_all(requests).await {
        late.extend(answered);
    }
    report.judge(
        GROUP,
        format!("answers {AT_ONCE} requests for its schema at once"),
        late.into_iter().next(),
    );
    if probe.signal(Ask::Interrupt) {
        tokio::time::sleep(SETTLE).await;
        let problem = match probe.is_running() {
            true => answers(&probe, subject).await,
            false => Some(
                "The provider ended. Ctrl-C reaches the whole process group, and the host must be able to save the results of running requests."
                    .to_owned(),
            ),
        };
        report.judge(GROUP, "ignores SIGINT", problem);
    }
    if probe.is_running() {
        let method = if probe.protocol == 5 { "Stop" } else { "StopProvider" };
        let stopped = probe.call(&service(&probe), method, Vec::new(), subject.limit).await;
        let problem = match stopped {
            Answer::Message(_) => answers(&probe, subject).await,
            other => Some(described(method, &other)),
        };
        report.judge(GROUP, "answers StopProvider, and further requests after it", problem);
    }
    let printed = probe.printed();
    match printed.trim().is_empty() {
        true => report.add(GROUP, "prints nothing but its address", Outcome::Passed, ""),
        false => report.add(
            GROUP,
            "prints nothing but its address",
            Outcome::Warning,
            format!(
                "Standard output has more text, which hosts ignore: {:?}. Write logs to standard error.",
                printed.lines().next().unwrap_or_default()
            ),
        ),
    }
    let _ = probe.shut_down(subject.limit).await;
    match probe.wait(subject.limit).await {
        Some(_) => report.add(GROUP, "ends when it is asked to", Outcome::Passed, ""),
        None => {
            return report.add(
                GROUP,
                "ends when it is asked to",
                Outcome::Failed,
                format!(
                    "The process still runs {} seconds after the request Shutdown.",
                    subject.limit.as_secs_f64()
                ),
            );
        }
    }
    let left = probe.sockets();
    match left.is_empty() {
        true => report.add(GROUP, "removes its socket", Outcome::Passed, ""),
        false => report.add(
            GROUP,
            "removes its socket",
            Outcome::Warning,
            "After an orderly end, its socket is left in PLUGIN_UNIX_SOCKET_DIR.",
        ),
    }
}

async fn terminated(subject: &Subject<'_>, report: &mut Report) {
    let protocols = report.protocols.clone();
    let Ok(mut probe) = Probe::start(&start(subject, &protocols)).await else {
        return;
    };
    if !probe.signal(Ask::Terminate) {
        return report.add(
            GROUP,
            "ends by SIGTERM",
            Outcome::Skipped,
            "This system has no signals.",
        );
    }
    let problem = match probe.wait(subject.limit).await {
        Some(_) => None,
        None => Some(format!(
            "The process still runs {} seconds later.",
            subject.limit.as_secs_f64()
        )),
    };
    report.judge(GROUP, "ends by SIGTERM", problem);
}

/// Requests the schema. Returns the reason if that failed.
async fn answers(probe: &Probe, subject: &Subject<'_>) -> Option<String> {
    let method = if probe.protocol == 5 {
        "GetSchema"
    } else {
        "GetProviderSchema"
    };
    let answer = probe.call(&service(probe), method, Vec::new(), subject.limit).await;
    match answer {
        Answer::Message(_) => None,
        other => Some(described(method, &other)),
    }
}

fn explained(error: &StartFailure) -> String {
    match error {
        StartFailure::Ended { printed, .. } if !printed.trim().is_empty() => {
            let first = printed.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{error}: {first}")
        }
        error => error.to_string(),
    }
}

fn sentence(clause: &str) -> String {
    let mut characters = clause.chars();
    let first = characters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    let end = if clause.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", characters.as_str())
}
