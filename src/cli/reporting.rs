//! Views of an operation's progress.

use std::sync::Arc;

use addrs::Program;
use views::live::{Live, Work};
use views::plan::Form;
use views::progress::Progress;
use views::reporter::{OperationView, Reporter};
use views::status::StatusLines;
use views::ui::Ui;

use crate::session::Session;
use crate::spans::Spans;

/// Returns the reporter of an operation, with the views that the command line selects: text, or the stream of `-json`.
pub fn reporter(session: &Session, work: Work) -> Reporter {
    match &session.stream {
        Some(stream) => traced(session, vec![stream.clone() as Arc<dyn OperationView>], work),
        None => showing(session, Progress::new, work),
    }
}

/// Returns the reporter of an operation with the views for text: lines and, on a terminal, the live area. With `-json-into`, the stream in
/// the file is a view, too.
pub fn showing(session: &Session, progress: impl Fn(Arc<Ui>) -> Progress, work: Work) -> Reporter {
    let ui = &session.ui;
    let invocation = &session.invocation;
    let lines = progress(ui.clone())
        .concise(invocation.concise)
        .without_reading(invocation.shown.form == Form::Summary);
    let mut views: Vec<Arc<dyn OperationView>> = vec![Arc::new(lines)];
    // If it is called as terraform, the program writes what Terraform writes.
    if !invocation.concise && ui.program == Program::MONOFORM && !session.env.progress_off() {
        let sections = session.env.log_sections();
        // A summary has no lines that a CI log could fold.
        let sections = sections.filter(|_| !ui.is_terminal() && invocation.shown.form == Form::Whole);
        // First in the list, so that a section begins before the lines in it.
        views.insert(0, Arc::new(StatusLines::new(ui.clone(), work, sections)));
    }
    if let Some(stream) = &session.beside {
        views.push(stream.clone());
    }
    if let Some(live) = Live::start(ui, work) {
        views.push(live);
    }
    traced(session, views, work)
}

/// Returns the reporter of these views, and of the spans if a trace is recorded.
fn traced(session: &Session, mut views: Vec<Arc<dyn OperationView>>, work: Work) -> Reporter {
    if let Some(tracer) = &session.tracer {
        let phase = match work.counted {
            true => "Apply phase",
            false => "Plan phase",
        };
        views.push(Arc::new(Spans::begin(tracer, phase)));
    }
    Reporter::new(views)
}
