//! HTML: escaping, blocks of guides, and the layout of a page.

use std::fmt::Write as _;

use super::Page;
use crate::guide::{self, markdown::Block};
use crate::{TERRAFORM_VERSION, VERSION};

/// Sections of the navigation, in order.
pub(super) const SECTIONS: [&str; 4] = ["Guides", "Commands", "Providers", "Language"];

pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Renders a sentence: code between backticks, and a link if the code is a command that shows a guide.
pub(super) fn inline(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        // Parts with odd indexes were between backticks.
        if at % 2 == 0 {
            out.push_str(&escaped(part));
            continue;
        }
        let topic = part.strip_prefix("monoform help ").and_then(guide::find);
        match topic {
            Some(topic) => {
                let _ = write!(
                    out,
                    "<a href=\"guide-{}.html\"><code>{}</code></a>",
                    topic.name,
                    escaped(part)
                );
            }
            None => {
                let _ = write!(out, "<code>{}</code>", escaped(part));
            }
        }
    }
    out
}

/// Returns the anchor of a part of a page.
pub(super) fn anchor(text: &str) -> String {
    let word = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let made: String = text.chars().map(word).collect();
    made.trim_matches('-').to_owned()
}

pub(super) fn code(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escaped(text.trim_end()))
}

/// Renders the blocks of a guide.
pub(super) fn blocks(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        match block {
            Block::Heading { level, text } => {
                let _ = writeln!(out, "<h{level} id=\"{}\">{}</h{level}>", anchor(text), inline(text));
            }
            Block::Paragraph(text) => {
                let _ = writeln!(out, "<p>{}</p>", inline(text));
            }
            Block::Code { lines, .. } => out.push_str(&code(&lines.join("\n"))),
            Block::List { ordered, items } => {
                let tag = if *ordered { "ol" } else { "ul" };
                let _ = writeln!(out, "<{tag}>");
                for item in items {
                    let inner = match item.as_slice() {
                        [Block::Paragraph(text)] => inline(text),
                        inner => self::blocks(inner),
                    };
                    let _ = writeln!(out, "<li>{inner}</li>");
                }
                let _ = writeln!(out, "</{tag}>");
            }
            Block::Table { head, rows } => table(&mut out, head, rows),
        }
    }
    out
}

fn table(out: &mut String, head: &[String], rows: &[Vec<String>]) {
    out.push_str("<div class=\"wide\"><table>\n<tr>");
    for cell in head {
        let _ = write!(out, "<th>{}</th>", inline(cell));
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", inline(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// Renders a page with its navigation.
pub(super) fn page(page: &Page, all: &[Page]) -> String {
    let name = escaped(&page.title);
    let title = match page.file.as_str() {
        "index.html" => "Monoform".to_owned(),
        _ => format!("{name} · Monoform"),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta \
         name=\"description\" content=\"{about}\">\n<title>{title}</title>\n<link rel=\"stylesheet\" href=\"style.css\">\n</head>\n\
         <body>\n<header>\n<a class=\"home\" href=\"index.html\">Monoform</a>\n<div class=\"search\">\n<input id=\"search\" \
         type=\"search\" placeholder=\"Search (press /)\" aria-label=\"Search\" autocomplete=\"off\">\n<ul id=\"found\" \
         hidden></ul>\n</div>\n</header>\n<div class=\"columns\">\n<nav aria-label=\"Pages\">\n<details class=\"menu\" \
         open>\n<summary>Pages</summary>\n{navigation}</details>\n</nav>\n<main>\n{body}</main>\n</div>\n<footer>Monoform {VERSION}, \
         compatible with Terraform {TERRAFORM_VERSION}. Made by <code>monoform docs -html</code>.</footer>\n<script \
         src=\"search.js\"></script>\n</body>\n</html>\n",
        about = escaped(&page.about),
        navigation = navigation(page, all),
        body = page.body,
    )
}

fn navigation(current: &Page, all: &[Page]) -> String {
    let mut out = String::new();
    for section in SECTIONS {
        let open = if current.section == section { " open" } else { "" };
        let _ = writeln!(out, "<details{open}><summary>{section}</summary>\n<ul>");
        for page in all.iter().filter(|page| page.section == section) {
            let here = if page.file == current.file {
                " aria-current=\"page\""
            } else {
                ""
            };
            let _ = writeln!(
                out,
                "<li><a href=\"{}\"{here}>{}</a></li>",
                page.file,
                escaped(&page.title)
            );
        }
        out.push_str("</ul></details>\n");
    }
    out
}
