//! The list of functions by purpose, each with a short description.

use lang::functions::{groups, signature};
use views::ui::Style;
use views::wrap::wrap;

/// Renders the page `functions` from the table of functions and their descriptions.
pub(super) fn page(style: Style, width: usize, command: &str) -> String {
    let (groups, signatures) = (groups(), signature::all());
    let longest = groups.iter().flat_map(|(_, names)| names).map(|name| name.len()).max();
    let column = longest.unwrap_or_default();
    let room = width.clamp(60, 100) - column - 4;
    let mut out = format!(
        "{}\n\n\"{command} docs NAME\" describes one of them with its parameters.\n",
        style.bold("Functions")
    );
    for (title, names) in groups {
        out.push_str(&format!("\n{}\n\n", style.bold(title)));
        for name in names {
            let about = signatures
                .get(name)
                .map_or("", |signature| first_sentence(signature.description));
            for (i, line) in wrap(about, room).iter().enumerate() {
                let left = if i == 0 { name } else { "" };
                out.push_str(&format!("  {left:column$}  {line}\n"));
            }
        }
    }
    out
}

/// Returns a description up to its first full stop.
fn first_sentence(text: &str) -> &str {
    text.split_once(". ")
        .map_or(text, |(first, _)| first)
        .trim_end_matches('.')
}
