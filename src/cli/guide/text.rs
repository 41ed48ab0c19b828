//! Rendering of a guide for a terminal: headings in bold, wrapped paragraphs, indented code, tables in columns.

use views::ui::Style;
use views::wrap::wrap;

use super::markdown::Block;

/// Renders the page for a terminal of this width, up to 80 columns: longer lines are hard to read.
pub(super) fn page(blocks: &[Block], style: Style, width: usize) -> String {
    let width = width.clamp(40, 80);
    let mut out = String::new();
    for line in lines(blocks, style, width) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn lines(blocks: &[Block], style: Style, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if at > 0 {
            out.push(String::new());
        }
        match block {
            Block::Heading { text, .. } => out.extend(wrap(text, width).iter().map(|line| style.bold(line))),
            Block::Paragraph(text) => out.extend(wrap(text, width)),
            // Users copy code from the terminal, so its lines are not wrapped.
            Block::Code { lines, .. } => out.extend(lines.iter().map(|line| format!("    {line}"))),
            Block::List { ordered, items } => list(*ordered, items, style, width, &mut out),
            Block::Table { head, rows } => table(head, rows, style, width, &mut out),
        }
    }
    out
}

fn list(ordered: bool, items: &[Vec<Block>], style: Style, width: usize, out: &mut Vec<String>) {
    let spaced = items.iter().any(|item| item.len() > 1);
    for (at, item) in items.iter().enumerate() {
        if at > 0 && spaced {
            out.push(String::new());
        }
        let marker = if ordered {
            format!("{}. ", at + 1)
        } else {
            "- ".to_owned()
        };
        let indent = " ".repeat(marker.len());
        for (n, line) in lines(item, style, width - marker.len()).iter().enumerate() {
            out.push(format!("{}{line}", if n == 0 { &marker } else { &indent }));
        }
    }
}

/// Least width of a table's column.
const NARROWEST: usize = 8;

fn table(head: &[String], rows: &[Vec<String>], style: Style, width: usize, out: &mut Vec<String>) {
    let widths = widths(head, rows, width);
    if head.iter().any(|cell| !cell.is_empty()) {
        row(head, &widths, |text| style.bold(text), out);
    }
    // Empty lines separate rows only if one of them has several lines.
    let tall = rows.iter().any(|cells| {
        let broken = |(cell, width): (&String, &usize)| wrap(cell, *width).len() > 1;
        cells.iter().zip(&widths).any(broken)
    });
    for cells in rows {
        if tall {
            out.push(String::new());
        }
        row(cells, &widths, str::to_owned, out);
    }
}

/// Computes the column widths: each column gets the width that it needs. If the table would be too wide, the widest columns get less,
/// but not less than [`NARROWEST`].
fn widths(head: &[String], rows: &[Vec<String>], width: usize) -> Vec<usize> {
    let longest = |at: usize| {
        let cells = rows.iter().map(|cells| cells.get(at)).chain([head.get(at)]);
        cells
            .flatten()
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let mut widths: Vec<usize> = (0..head.len()).map(longest).collect();
    let room = width.saturating_sub(2 * head.len().saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn row(cells: &[String], widths: &[usize], shown: impl Fn(&str) -> String, out: &mut Vec<String>) {
    let columns: Vec<Vec<String>> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrap(cell, *width))
        .collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or_default();
    for at in 0..height {
        let mut line = String::new();
        for (column, width) in columns.iter().zip(widths) {
            let text = column.get(at).map_or("", String::as_str);
            let fill = width.saturating_sub(text.chars().count());
            line.push_str(&shown(text));
            line.push_str(&" ".repeat(fill + 2));
        }
        out.push(line.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::super::markdown::parse;
    use super::*;

    fn at(width: usize, markdown: &str) -> String {
        page(&parse(markdown), Style::default(), width)
    }

    #[test]
    fn paragraphs_and_lists_are_broken_at_the_width() {
        let text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen";
        let page = at(40, &format!("{text}\n\n- {text}\n"));
        assert!(page.lines().all(|line| line.len() <= 40), "{page}");
        assert!(page.contains("\n- one") && page.contains("\n  "), "{page}");
        assert_eq!(at(140, text), at(80, text));
    }

    #[test]
    fn code_stays_as_it_is() {
        let command = format!("run {}", "x".repeat(100));
        assert_eq!(at(40, &format!("```\n{command}\n```\n")), format!("    {command}\n"));
    }

    #[test]
    fn tables_are_columns_whose_cells_are_broken() {
        let small = "| a | b |\n| --- | --- |\n| one | two |\n| three | four |\n";
        assert_eq!(at(80, small), "a      b\none    two\nthree  four\n");
        let long = format!("| a | b |\n| --- | --- |\n| one | {} |\n", "word ".repeat(30));
        let page = at(40, &long);
        assert!(page.lines().all(|line| line.len() <= 40), "{page}");
        assert!(page.contains("\none  word word"), "{page}");
    }
}
