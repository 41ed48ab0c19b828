//! Usage texts, made from what commands declare.

use clap::Command;

use crate::args::flags::is_switch;
use crate::views::wrap::wrap;

/// The usage of one command.
#[must_use]
pub fn command(program: &str, path: &str, positional: &str, declared: &Command) -> String {
    let mut out = format!("Usage: {program} [global options] {path} [options]");
    if !positional.is_empty() {
        out.push(' ');
        out.push_str(positional);
    }
    out.push_str("\n\n");
    if let Some(about) = declared.get_about() {
        for line in wrap(&about.to_string(), 76) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    let flags: Vec<(String, String)> = declared
        .get_arguments()
        .filter_map(|arg| {
            let name = arg.get_long()?;
            let default = arg.get_default_values().first().and_then(|d| d.to_str());
            let shown = if is_switch(arg) {
                if default == Some("true") {
                    format!("-{name}=false")
                } else {
                    format!("-{name}")
                }
            } else {
                let placeholder = arg
                    .get_value_names()
                    .and_then(|n| n.first())
                    .map_or("VALUE", |n| n.as_str());
                format!("-{name}={placeholder}")
            };
            let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            if let (false, Some(default)) = (is_switch(arg), default) {
                help.push_str(&format!(" Defaults to {default}."));
            }
            Some((shown, help))
        })
        .collect();
    out.push_str("\nOptions:\n");
    let width = flags.iter().map(|(shown, _)| shown.len()).max().unwrap_or(0).min(24);
    for (shown, help) in flags {
        out.push('\n');
        let lines = wrap(&help, 74usize.saturating_sub(width).max(30));
        if shown.len() > width {
            out.push_str(&format!("  {shown}\n"));
        }
        for (i, line) in lines.iter().enumerate() {
            let left = if i == 0 && shown.len() <= width { &*shown } else { "" };
            out.push_str(format!("  {left:width$}  {line}").trim_end());
            out.push('\n');
        }
    }
    out
}
