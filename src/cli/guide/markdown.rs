//! Parser for the Markdown of the guides: headings, paragraphs, lists, tables and blocks of code. Syntax that no guide
//! uses (nested lists, links, emphasis) is not supported.

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Block {
    Heading { level: usize, text: String },
    Paragraph(String),
    Code { language: String, lines: Vec<String> },
    List { ordered: bool, items: Vec<Vec<Block>> },
    Table { head: Vec<String>, rows: Vec<Vec<String>> },
}

/// Parses a page. HTML comments are instructions for the test that runs the commands, and are left out.
#[must_use]
pub fn parse(markdown: &str) -> Vec<Block> {
    let lines: Vec<&str> = markdown.lines().collect();
    blocks(&lines)
}

fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = &lines[at..];
        let (block, used) = if line.trim().is_empty() || line.starts_with("<!--") {
            (None, 1)
        } else if let Some(language) = line.strip_prefix("```") {
            code(language, rest)
        } else if line.starts_with('#') {
            let text = line.trim_start_matches('#');
            let level = line.len() - text.len();
            (Some(heading(level, text)), 1)
        } else if line.starts_with('|') {
            table(rest)
        } else if let Some(marker) = Marker::parse(line) {
            list(marker.ordered, rest)
        } else {
            paragraph(rest)
        };
        out.extend(block);
        at += used;
    }
    out
}

fn heading(level: usize, text: &str) -> Block {
    Block::Heading {
        level,
        text: text.trim().to_owned(),
    }
}

fn code(language: &str, lines: &[&str]) -> (Option<Block>, usize) {
    let inside = lines.iter().skip(1).take_while(|line| !line.starts_with("```"));
    let inside: Vec<String> = inside.map(|line| (*line).to_owned()).collect();
    let used = inside.len() + 2;
    // Words after the language are for tests of the documentation ("rust,no_run").
    let language = language.split(',').next().unwrap_or_default().to_owned();
    let block = Block::Code {
        language,
        lines: inside,
    };
    (Some(block), used)
}

fn table(lines: &[&str]) -> (Option<Block>, usize) {
    let inside: Vec<&str> = lines.iter().take_while(|line| line.starts_with('|')).copied().collect();
    let mut rows = inside.iter().map(|line| cells(line));
    let head = rows.next().unwrap_or_default();
    // The second line of a table contains only dashes.
    let rows = rows.skip(1).collect();
    (Some(Block::Table { head, rows }), inside.len())
}

/// Splits a row into cells. A bar in code is written as `\|`.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_start_matches('|');
    let line = line.strip_suffix('|').unwrap_or(line);
    let hidden = line.replace("\\|", "\u{0}");
    hidden
        .split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"))
        .collect()
}

/// Marker at the beginning of a list item.
struct Marker {
    ordered: bool,
    width: usize,
}

impl Marker {
    fn parse(line: &str) -> Option<Marker> {
        if line.starts_with("- ") {
            return Some(Marker {
                ordered: false,
                width: 2,
            });
        }
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let ordered = digits > 0 && line[digits..].starts_with(". ");
        ordered.then_some(Marker {
            ordered,
            width: digits + 2,
        })
    }
}

fn list(ordered: bool, lines: &[&str]) -> (Option<Block>, usize) {
    let (mut items, mut at) = (Vec::new(), 0);
    while let Some(marker) = lines.get(at).and_then(|line| Marker::parse(line)) {
        let mut inside = vec![&lines[at][marker.width..]];
        at += 1;
        let indent = " ".repeat(marker.width);
        while let Some(line) = lines.get(at) {
            if let Some(text) = line.strip_prefix(&*indent) {
                inside.push(text);
            } else if line.is_empty() && lines.get(at + 1).is_some_and(|next| next.starts_with(&*indent)) {
                inside.push("");
            } else {
                break;
            }
            at += 1;
        }
        items.push(blocks(&inside));
        // There may be an empty line between items.
        let next = lines.get(at + 1).and_then(|line| Marker::parse(line));
        if lines.get(at).is_some_and(|line| line.is_empty()) && next.is_some_and(|next| next.ordered == ordered) {
            at += 1;
        }
    }
    (Some(Block::List { ordered, items }), at)
}

fn paragraph(lines: &[&str]) -> (Option<Block>, usize) {
    let begins_another = |line: &str| {
        line.trim().is_empty()
            || line.starts_with(['#', '|'])
            || line.starts_with("```")
            || Marker::parse(line).is_some()
    };
    let more = lines.iter().skip(1).take_while(|line| !begins_another(line)).count();
    let text: Vec<&str> = lines.iter().take(more + 1).map(|line| line.trim()).collect();
    (Some(Block::Paragraph(text.join(" "))), more + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_becomes_its_block() {
        let page = "# A page\n\nOne line\nand another.\n\n<!-- not run: it is slow -->\n```sh\na  b\n```\n\n- one\n  more\n- \
                    two\n\n1. first:\n\n   ```\n   run\n   ```\n\n2. second\n\n| a | b |\n| --- | --- |\n| `x \\| y` | z |\n";
        let paragraph = |text: &str| Block::Paragraph(text.to_owned());
        let code = |language: &str, line: &str| Block::Code {
            language: language.to_owned(),
            lines: vec![line.to_owned()],
        };
        assert_eq!(
            parse(page),
            [
                heading(1, "A page"),
                paragraph("One line and another."),
                code("sh", "a  b"),
                Block::List {
                    ordered: false,
                    items: vec![vec![paragraph("one more")], vec![paragraph("two")]],
                },
                Block::List {
                    ordered: true,
                    items: vec![vec![paragraph("first:"), code("", "run")], vec![paragraph("second")]],
                },
                Block::Table {
                    head: vec!["a".to_owned(), "b".to_owned()],
                    rows: vec![vec!["`x | y`".to_owned(), "z".to_owned()]],
                },
            ]
        );
    }
}
