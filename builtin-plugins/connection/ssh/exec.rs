//! Commands in an SSH session.

use std::time::Duration;

use monoform_sdk::lines::Lines;
use monoform_sdk::{Output, Stop};
use russh::client::Msg;
use russh::{Channel, ChannelMsg, Pty, Sig};
use tokio::time::{sleep, timeout};

use crate::{Error, Result};

/// Time without output after which an incomplete line is shown, since it may be a prompt.
const SILENCE: Duration = Duration::from_millis(100);

/// Time limit for a command to end after SIGINT, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// Options of a command.
#[derive(Clone, Copy)]
pub struct How {
    /// True to allocate a pseudo-terminal. The command then ends with the connection, and its standard output and standard error are one
    /// stream.
    pub terminal: bool,
    pub forward_agent: bool,
}

/// Exit status and signal of a command, as far as the server reported them.
#[derive(Default)]
struct Ended {
    status: Option<u32>,
    signal: Option<(String, String)>,
}

/// Runs a command and shows its output line by line. A command that fails is an error.
pub async fn run(mut channel: Channel<Msg>, command: &str, how: How, output: &Output, stop: &mut Stop) -> Result<()> {
    let text = command.trim();
    start(&mut channel, text, how)
        .await
        .map_err(|error| error.context(format_args!("error executing {text:?}")))?;
    let mut streams = [Lines::new(), Lines::new()];
    let mut ended = Ended::default();
    loop {
        let waiting = streams.iter().any(Lines::is_waiting);
        let message = tokio::select! {
            // Not `biased`: with it, a command that writes all the time would keep a stop from being noticed. Lines written before the stop
            // are shown while the command is being ended.
            message = channel.wait() => message,
            () = stop.requested() => {
                end(&mut channel, how, &mut streams, output).await;
                return Err(Error::fatal(format!("error executing {text:?}: interrupted")));
            }
            () = sleep(SILENCE), if waiting => {
                rest(&mut streams, output).await;
                continue;
            }
        };
        let Some(message) = message else { break };
        if take(message, &mut streams, &mut ended, output).await {
            break;
        }
    }
    rest(&mut streams, output).await;
    match ended.problem() {
        None => Ok(()),
        Some(problem) => Err(Error::fatal(format!("error executing {text:?}: {problem}"))),
    }
}

/// Requests agent forwarding, a terminal and the command, and waits for the replies.
async fn start(channel: &mut Channel<Msg>, command: &str, how: How) -> Result<()> {
    /// Name of a request for error messages, and true if the command cannot run without the request.
    type Request = (&'static str, bool);
    let mut requests: Vec<Request> = Vec::new();
    if how.forward_agent {
        channel.agent_forward(true).await?;
        requests.push(("agent forwarding", false));
    }
    if how.terminal {
        let modes = [
            // Echo is off, so that input sent to the command does not appear in its output.
            (Pty::ECHO, 0),
            (Pty::TTY_OP_ISPEED, 14_400),
            (Pty::TTY_OP_OSPEED, 14_400),
        ];
        channel.request_pty(true, "xterm", 40, 80, 0, 0, &modes).await?;
        requests.push(("a terminal", true));
    }
    channel.exec(true, format!("{command}\n")).await?;
    requests.push(("the command", true));
    // Replies come in the order of the requests. All requests are sent before the first reply is awaited, which saves round trips.
    for (what, needed) in requests {
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Success) => break,
                Some(ChannelMsg::Failure) if needed => {
                    return Err(Error::fatal(format!("the server refused {what}")));
                }
                Some(ChannelMsg::Failure) => break,
                Some(ChannelMsg::Close) | None => return Err(russh::Error::HUP.into()),
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Handles a message of the server. Returns true if the channel is closed.
async fn take(message: ChannelMsg, streams: &mut [Lines; 2], ended: &mut Ended, output: &Output) -> bool {
    match message {
        ChannelMsg::Data { data } => {
            for line in streams[0].push(&data) {
                output.show(line).await;
            }
        }
        ChannelMsg::ExtendedData { data, .. } => {
            for line in streams[1].push(&data) {
                output.show(line).await;
            }
        }
        ChannelMsg::ExitStatus { exit_status } => ended.status = Some(exit_status),
        ChannelMsg::ExitSignal {
            signal_name,
            error_message,
            ..
        } => ended.signal = Some((name(&signal_name), error_message)),
        // EOF does not end the command: servers may send the exit status after it.
        ChannelMsg::Close => return true,
        _ => {}
    }
    false
}

async fn rest(streams: &mut [Lines; 2], output: &Output) {
    for lines in streams {
        while let Some(line) = lines.rest() {
            output.show(line).await;
        }
    }
}

/// Ends a command: with SIGINT, then SIGTERM, then SIGKILL, if it is still running. Closing the session hangs up its terminal.
async fn end(channel: &mut Channel<Msg>, how: How, streams: &mut [Lines; 2], output: &Output) {
    for (signal, key) in [(Sig::INT, b"\x03"), (Sig::TERM, b"\x1c")] {
        // Some servers ignore signals. On a terminal, the characters for interrupt and quit have a similar effect.
        drop(channel.signal(signal).await);
        if how.terminal {
            drop(channel.data_bytes(key.to_vec()).await);
        }
        let ending = async {
            let mut ended = Ended::default();
            while let Some(message) = channel.wait().await {
                if take(message, streams, &mut ended, output).await {
                    return;
                }
            }
        };
        if timeout(GRACE, ending).await.is_ok() {
            break;
        }
    }
    drop(channel.signal(Sig::KILL).await);
    drop(channel.close().await);
    rest(streams, output).await;
}

impl Ended {
    /// Describes a failure in the wording of Go's SSH library, which users search for; `None` if the command succeeded.
    fn problem(&self) -> Option<String> {
        match (self.status, &self.signal) {
            (Some(0), None) => None,
            (Some(status), None) => Some(format!("Process exited with status {status}")),
            (_, Some((signal, reason))) => {
                let reason = match reason.as_str() {
                    "" => String::new(),
                    text => format!(". Reason was: {text}"),
                };
                // 128 plus the signal number is the exit status that a shell reports for a command ended by a signal.
                let status = 128 + number(signal);
                Some(format!(
                    "Process exited with status {status} from signal {signal}{reason}"
                ))
            }
            (None, None) => Some("wait: remote command exited without exit status or exit signal".to_owned()),
        }
    }
}

fn name(signal: &Sig) -> String {
    match signal {
        Sig::ABRT => "ABRT",
        Sig::ALRM => "ALRM",
        Sig::FPE => "FPE",
        Sig::HUP => "HUP",
        Sig::ILL => "ILL",
        Sig::INT => "INT",
        Sig::KILL => "KILL",
        Sig::PIPE => "PIPE",
        Sig::QUIT => "QUIT",
        Sig::SEGV => "SEGV",
        Sig::TERM => "TERM",
        Sig::USR1 => "USR1",
        Sig::Custom(name) => name,
    }
    .to_owned()
}

fn number(signal: &str) -> u32 {
    match signal {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ILL" => 4,
        "ABRT" => 6,
        "FPE" => 8,
        "KILL" => 9,
        "SEGV" => 11,
        "PIPE" => 13,
        "ALRM" => 14,
        "TERM" => 15,
        _ => 0,
    }
}
