//! The list of JSON documents, for `help json`.

use views::json::documents::DOCUMENTS;
use views::ui::Style;
use views::wrap::wrap;

/// Renders the page: an introduction for programs, and every document with the command that prints it.
pub(super) fn page(style: Style, width: usize, command: &str) -> String {
    let width = width.clamp(40, 80);
    let mut out = format!("{}\n\n", style.bold("JSON documents"));
    let mut paragraph = |text: &str| {
        for line in wrap(text, width) {
            out.push_str(&line);
            out.push('\n');
        }
        out.push('\n');
    };
    paragraph(
        "With -json a command prints one document on standard output, and errors that have no place in it on standard error. Those \
         of plan, apply, destroy, refresh, init, query and test print one object a line while they run: each line is a document of \
         the kind \"stream\". Documents that have a format_version get new properties in later versions; a property that is there \
         keeps its meaning while the first number stays the same.",
    );
    paragraph(&format!(
        "The JSON Schema of each document (draft 2020-12) is part of this program. To print it, run: {command} help json NAME"
    ));
    let column = DOCUMENTS.iter().map(|d| d.name.len()).max().unwrap_or_default();
    for document in DOCUMENTS {
        for (i, line) in wrap(document.command, width.saturating_sub(column + 4))
            .iter()
            .enumerate()
        {
            let name = if i == 0 { document.name } else { "" };
            out.push_str(&format!("  {name:column$}  {line}\n"));
        }
    }
    out
}
