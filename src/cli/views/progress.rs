//! What goes on, told while it goes on: a line an event, and on a terminal one line that says how far it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addrs::AbsResourceInstance;
use engine::events::{EphemeralAction, Event, EventSink};
use engine::plan::Action;

use crate::ui::Ui;
use crate::views::stream::Stream;

/// How often an operation that goes on is mentioned again.
const REMINDER: Duration = Duration::from_secs(10);
/// From so many instances on there is a line that says how far it is.
const MANY: usize = 50;

/// What an apply has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Objects created.
    pub added: usize,
    /// Objects updated.
    pub changed: usize,
    /// Objects destroyed.
    pub destroyed: usize,
}

/// Tells events.
pub struct Progress {
    ui: Arc<Ui>,
    stream: Option<Arc<Stream>>,
    /// Whether an import is all that is done.
    import: bool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    running: HashMap<(AbsResourceInstance, Option<Arc<str>>), Running>,
    done: Done,
    progress: (usize, usize),
    /// Whether the last line of the terminal is the one that says how far it is.
    status: bool,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is changed, or read.
    Change(Action),
    /// It is ephemeral, and opened, renewed or closed.
    Ephemeral(EphemeralAction),
}

struct Running {
    doing: Doing,
    id: String,
    since: Instant,
    reminded: u64,
}

impl Progress {
    /// Tells them there.
    #[must_use]
    pub fn new(ui: Arc<Ui>) -> Progress {
        Progress {
            ui,
            stream: None,
            import: false,
            inner: Mutex::default(),
        }
    }

    /// Tells them in the words of the import command.
    #[must_use]
    pub fn of_import(self) -> Progress {
        Progress { import: true, ..self }
    }

    /// Tells them to a program, if there is one.
    #[must_use]
    pub fn for_program(self, stream: Option<Arc<Stream>>) -> Progress {
        Progress { stream, ..self }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was done so far.
    #[must_use]
    pub fn done(&self) -> Done {
        self.inner().done
    }

    /// Mentions what goes on again, and says how far it is, until it is dropped.
    pub async fn tick(&self) -> std::convert::Infallible {
        let mut interval = tokio::time::interval(Duration::from_millis(200));
        loop {
            interval.tick().await;
            self.remind(Instant::now());
            self.status();
            self.ui.flush();
        }
    }

    fn remind(&self, now: Instant) {
        let mut lines = Vec::new();
        let mut inner = self.inner();
        for ((address, deposed), running) in &mut inner.running {
            let elapsed = now.saturating_duration_since(running.since);
            let times = elapsed.as_secs() / REMINDER.as_secs();
            if times > running.reminded {
                running.reminded = times;
                if let Some(stream) = &self.stream {
                    let elapsed = Duration::from_secs(times * REMINDER.as_secs());
                    stream.still(address, running.doing, elapsed);
                }
                let what = match running.doing {
                    Doing::Change(Action::Create) => "creating",
                    Doing::Change(Action::Update) => "modifying",
                    Doing::Change(Action::Delete) => "destroying",
                    Doing::Change(_) => "reading",
                    Doing::Ephemeral(EphemeralAction::Open) => "opening",
                    Doing::Ephemeral(EphemeralAction::Renew) => "renewing",
                    Doing::Ephemeral(EphemeralAction::Close) => "closing",
                };
                let elapsed = seconds(Duration::from_secs(times * REMINDER.as_secs()));
                let id = if running.id.is_empty() {
                    String::new()
                } else {
                    format!("{}, ", running.id)
                };
                lines.push(format!(
                    "{}: Still {what}... [{id}{elapsed} elapsed]",
                    name(address, deposed.as_ref())
                ));
            }
        }
        lines.sort();
        for line in lines {
            self.say(&mut inner, &line);
        }
    }

    fn status(&self) {
        if !self.ui.is_terminal() || self.stream.is_some() {
            return;
        }
        let mut inner = self.inner();
        let (done, total) = inner.progress;
        if total < MANY || done >= total {
            return;
        }
        let text = format!("{done}/{total} done, {} running", inner.running.len());
        self.ui.status(&self.ui.style().dim(text));
        inner.status = true;
    }

    /// Takes away the line that says how far it is.
    pub fn clear(&self) {
        let mut inner = self.inner();
        if std::mem::take(&mut inner.status) {
            self.ui.clear_status();
        }
    }

    fn say(&self, inner: &mut Inner, line: &str) {
        if self.stream.is_some() {
            return;
        }
        if std::mem::take(&mut inner.status) {
            self.ui.clear_status();
        }
        self.ui.line(self.ui.style().bold(line));
    }
}

/// `t.n (deposed object 1234abcd)`.
fn name(address: &AbsResourceInstance, deposed: Option<&Arc<str>>) -> String {
    match deposed {
        Some(key) => format!("{address} (deposed object {key})"),
        None => address.to_string(),
    }
}

fn identity(id: Option<&(String, String)>) -> String {
    id.map(|(name, value)| format!("{name}={value}")).unwrap_or_default()
}

fn bracketed(id: Option<&(String, String)>) -> String {
    id.map(|(name, value)| format!(" [{name}={value}]")).unwrap_or_default()
}

/// A length of time in whole seconds, as Go writes it: `1h2m3s`.
#[must_use]
pub fn seconds(time: Duration) -> String {
    let all = (time + Duration::from_millis(500)).as_secs();
    let (h, m, s) = (all / 3600, all / 60 % 60, all % 60);
    if h > 0 {
        format!("{h}h{m}m{s}s")
    } else if m > 0 {
        format!("{m}m{s}s")
    } else {
        format!("{s}s")
    }
}

impl EventSink for Progress {
    fn event(&self, event: Event) {
        if let Some(stream) = &self.stream {
            stream.event(&event);
        }
        let mut inner = self.inner();
        match event {
            Event::ImportStart { address, id } => {
                let line = if self.import {
                    format!("{address}: Importing from ID {:?}...", &*id)
                } else {
                    format!("{address}: Preparing import... [id={id}]")
                };
                self.say(&mut inner, &line);
            }
            Event::Imported { address, id } => {
                self.say(&mut inner, &format!("{address}: Importing... [id={id}]"));
                self.say(&mut inner, &format!("{address}: Import complete [id={id}]"));
            }
            Event::RefreshStart { address, id } => {
                if self.import {
                    let style = self.ui.style();
                    let ty = &address.resource.resource.ty;
                    self.ui.line(style.good(format!("{address}: Import prepared!")));
                    self.ui.line(style.green(format!("  Prepared {ty} for import")));
                }
                self.say(
                    &mut inner,
                    &format!("{address}: Refreshing state...{}", bracketed(id.as_ref())),
                );
            }
            Event::OperationStart {
                address,
                deposed,
                action,
                id,
            } => {
                let what = match action {
                    Action::Create => "Creating...",
                    Action::Update => "Modifying...",
                    Action::Delete => "Destroying...",
                    Action::Read => "Reading...",
                    _ => return,
                };
                let shown = if action == Action::Create { None } else { id.as_ref() };
                self.say(
                    &mut inner,
                    &format!("{}: {what}{}", name(&address, deposed.as_ref()), bracketed(shown)),
                );
                let running = Running {
                    doing: Doing::Change(action),
                    id: identity(shown),
                    since: Instant::now(),
                    reminded: 0,
                };
                inner.running.insert((address, deposed), running);
            }
            Event::OperationComplete {
                address,
                deposed,
                action,
                id,
                elapsed,
            } => {
                // Which object of an instance it was has been said at the beginning.
                let shown = name(&address, None);
                inner.running.remove(&(address, deposed));
                let what = match action {
                    Action::Create => {
                        inner.done.added += 1;
                        "Creation"
                    }
                    Action::Update => {
                        inner.done.changed += 1;
                        "Modifications"
                    }
                    Action::Delete => {
                        inner.done.destroyed += 1;
                        "Destruction"
                    }
                    Action::Read => "Read",
                    _ => return,
                };
                let id = if action == Action::Delete {
                    String::new()
                } else {
                    bracketed(id.as_ref())
                };
                self.say(
                    &mut inner,
                    &format!("{shown}: {what} complete after {}{id}", seconds(elapsed)),
                );
            }
            Event::OperationFailed { address, deposed, .. } => {
                inner.running.remove(&(address, deposed));
            }
            Event::EphemeralDeferred { address } => {
                self.say(&mut inner, &format!("{address}: Configuration unknown, deferring..."));
            }
            Event::EphemeralStart { address, action } => {
                let what = match action {
                    EphemeralAction::Open => "Opening...",
                    EphemeralAction::Renew => "Renewing...",
                    EphemeralAction::Close => "Closing...",
                };
                self.say(&mut inner, &format!("{address}: {what}"));
                let running = Running {
                    doing: Doing::Ephemeral(action),
                    id: String::new(),
                    since: Instant::now(),
                    reminded: 0,
                };
                inner.running.insert((address, None), running);
            }
            Event::EphemeralComplete {
                address,
                action,
                elapsed,
            } => {
                let what = match action {
                    EphemeralAction::Open => "Opening",
                    EphemeralAction::Renew => "Renewal",
                    EphemeralAction::Close => "Closing",
                };
                self.say(
                    &mut inner,
                    &format!("{address}: {what} complete after {}", seconds(elapsed)),
                );
                inner.running.remove(&(address, None));
            }
            Event::EphemeralFailed { address, .. } => {
                inner.running.remove(&(address, None));
            }
            Event::ProvisionStart { address, provisioner } => {
                self.say(&mut inner, &format!("{address}: Provisioning with '{provisioner}'..."));
            }
            Event::ProvisionOutput {
                address,
                provisioner,
                output,
            } => {
                if self.stream.is_some() {
                    return;
                }
                let head = self.ui.style().bold(format!("{address} ({provisioner}):"));
                for line in output.lines() {
                    if std::mem::take(&mut inner.status) {
                        self.ui.clear_status();
                    }
                    self.ui.line(format!("{head} {}", line.trim_end_matches('\r')));
                }
                self.ui.flush();
            }
            Event::Progress { done, total } => inner.progress = (done, total),
            Event::RefreshComplete { .. }
            | Event::ProvisionComplete { .. }
            | Event::ProvisionFailed { .. }
            | Event::Stopping => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address() -> AbsResourceInstance {
        addrs::parse::resource_instance("terraform_data.a[0]").unwrap()
    }

    #[test]
    fn an_operation_from_begin_to_end() {
        let (ui, out, _) = Ui::captured();
        let progress = Progress::new(ui);
        let id = Some(("id".to_owned(), "x".to_owned()));
        progress.event(Event::OperationStart {
            address: address(),
            deposed: None,
            action: Action::Update,
            id: id.clone(),
        });
        progress.remind(Instant::now() + Duration::from_secs(75));
        progress.remind(Instant::now() + Duration::from_secs(76));
        let elapsed = Duration::from_secs(80);
        progress.event(Event::OperationComplete {
            address: address(),
            deposed: None,
            action: Action::Update,
            id,
            elapsed,
        });
        assert_eq!(
            out.text(),
            "terraform_data.a[0]: Modifying... [id=x]
terraform_data.a[0]: Still modifying... [id=x, 1m10s elapsed]
terraform_data.a[0]: Modifications complete after 1m20s [id=x]
"
        );
        assert_eq!(
            progress.done(),
            Done {
                changed: 1,
                ..Done::default()
            }
        );
    }

    #[test]
    fn output_of_provisioners_is_told_line_by_line() {
        let (ui, out, _) = Ui::captured();
        let progress = Progress::new(ui);
        let provisioner: Arc<str> = "local-exec".into();
        progress.event(Event::ProvisionOutput {
            address: address(),
            provisioner,
            output: "a\nb\n".into(),
        });
        assert_eq!(
            out.text(),
            "terraform_data.a[0] (local-exec): a\nterraform_data.a[0] (local-exec): b\n"
        );
    }
}
