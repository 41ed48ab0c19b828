//! Output of a run: text for people, or machine-readable events.

use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Server};
use views::terminal::SGR;
use views::ui::Style;

use crate::Context;

/// Separator between parts of the output.
pub(crate) const RULE: &str = "------------------------------------------------------------------------";

/// Destination of the output of a run.
pub(crate) struct Output<'s> {
    context: &'s Context<'s>,
}

impl<'s> Output<'s> {
    pub fn new(context: &'s Context<'s>) -> Output<'s> {
        Output { context }
    }

    pub fn style(&self) -> Style {
        self.context.console.ui.style()
    }

    pub fn line(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        match &self.context.console.stream {
            // In machine-readable output, the server's empty lines and separators are left out, because they are not events.
            Some(_) if text.trim().is_empty() || text.trim() == RULE => {}
            Some(stream) => stream.log(text.trim()),
            None => {
                self.context.console.ui.line(text);
                self.context.console.ui.flush();
            }
        }
    }

    pub fn bold(&self, text: &str) {
        self.line(self.style().bold(text));
    }

    pub fn yellow(&self, text: &str) {
        self.line(self.style().yellow(text));
    }

    pub fn red(&self, text: &str) {
        self.line(self.style().red(text));
    }

    /// Prints a line from the server, which may contain color sequences.
    pub fn foreign(&self, line: &str) {
        self.line(coloured(line, self.style().on));
    }

    /// Prints a line that is already an event. If the output is for people, prints nothing and returns false.
    pub fn event(&self, line: &str) -> bool {
        let to_program = self.context.console.stream.is_some();
        if to_program {
            self.context.console.ui.exact_line(line);
            self.context.console.ui.flush();
        }
        to_program
    }
}

/// Converts the color sequences of a line to those of this program, or removes them if colors are off. Other terminal sequences are
/// removed.
fn coloured(line: &str, colours: bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("\x1b[") {
        out.push_str(before);
        let end = behind.find(|c: char| c.is_ascii_alphabetic());
        // An incomplete sequence is dropped, because the terminal would take the next line as its continuation.
        let Some(end) = end else {
            rest = "";
            break;
        };
        let (codes, command) = behind.split_at(end);
        if colours && command.starts_with('m') {
            let codes = codes.trim_start_matches("0;");
            for code in codes.split(';') {
                out.push(SGR);
                out.push_str(if code.is_empty() { "0" } else { code });
                out.push('m');
            }
        }
        rest = command.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Creates the error for a failed request.
pub(crate) fn general_error(server: &Server, summary: &str, error: &ApiError) -> Diagnostics {
    let name = if server.name.is_empty() {
        "HCP Terraform"
    } else {
        &server.name
    };
    let detail = match error {
        ApiError::NotFound => format!(
            "{name} answers \"not found\" both for what does not exist and for what the token may not see. If it exists, check \
             the rights of the token."
        ),
        ApiError::Unauthorized => "The token is not accepted any more: log in again.".to_owned(),
        _ => format!(
            "{name} did not do what it was asked for. If this comes from the network, it may help to run the command again; the \
             page of the workspace shows the status of the run."
        ),
    };
    Diagnostic::error(format!("{summary}: {error}"), detail).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_others_become_ours() {
        let line = "\x1b[0m\x1b[1;32mApply\x1b[0m done\x1b[2K";
        assert_eq!(coloured(line, false), "Apply done");
        assert_eq!(coloured(line, true), format!("{SGR}0m{SGR}1m{SGR}32mApply{SGR}0m done"));
        assert_eq!(coloured("a\x1b[", true), "a");
    }

    #[test]
    fn errors_say_what_was_attempted() {
        let problems = general_error(&Server::default(), "Failed to create run", &ApiError::NotFound);
        assert_eq!(problems.0[0].summary, "Failed to create run: resource not found");
        assert!(problems.0[0].detail.contains("HCP Terraform"));
    }
}
