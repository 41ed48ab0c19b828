//! Coverage of a module by its tests: as text, as JSON, and in the format of lcov.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use testing::coverage::{Item, Kind, totals};

use crate::ui::Style;

/// Limit of the uncovered items that are listed.
const MOST: usize = 50;

/// Returns the coverage as text.
#[must_use]
pub fn text(items: &[Item], style: Style) -> String {
    let mut out = format!("\n{}\n", style.bold("Coverage of the module by its tests:"));
    let all = totals(items);
    for kind in Kind::ALL {
        if let Some((covered, all)) = all.get(&kind) {
            out.push_str(&format!("  {:<14} {covered} of {all}\n", kind.many()));
        }
    }
    let missed: Vec<&Item> = items.iter().filter(|item| item.hits == 0).collect();
    if missed.is_empty() {
        return out;
    }
    out.push_str("\nWhat no run has come upon:\n");
    for item in missed.iter().take(MOST) {
        let range = &item.range;
        out.push_str(&format!("  {}:{}: {}\n", range.file, range.start.line, item.name));
    }
    if missed.len() > MOST {
        out.push_str(&format!("  and {} more\n", missed.len() - MOST));
    }
    out
}

/// Returns the coverage as JSON.
#[must_use]
pub fn document(items: &[Item]) -> Json {
    let totals: serde_json::Map<String, Json> = totals(items)
        .into_iter()
        .map(|(kind, (covered, all))| (kind.word().to_owned(), json!({"covered": covered, "total": all})))
        .collect();
    let one = |item: &Item| {
        json!({
            "kind": item.kind.word(),
            "name": item.name,
            "file": &*item.range.file,
            "line": item.range.start.line,
            "column": item.range.start.column,
            "hits": item.hits,
        })
    };
    let items: Vec<Json> = items.iter().map(one).collect();
    json!({"format_version": "1.0", "totals": totals, "items": items})
}

/// Returns the coverage in lcov's format: items are lines, and the results of a conditional are its branches.
#[must_use]
pub fn lcov(items: &[Item]) -> String {
    let mut files: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items {
        files.entry(&item.range.file).or_default().push(item);
    }
    let mut out = String::new();
    for (file, items) in files {
        out.push_str(&format!("TN:\nSF:{file}\n"));
        let (branches, others): (Vec<&Item>, Vec<&Item>) = items.into_iter().partition(|i| i.kind == Kind::Branch);
        for (number, branch) in branches.iter().enumerate() {
            // Branches of a conditional come in pairs, which may be on different lines.
            let line = branch.range.start.line;
            out.push_str(&format!("BRDA:{line},{},{},{}\n", number / 2, number % 2, branch.hits));
        }
        if !branches.is_empty() {
            let hit = branches.iter().filter(|b| b.hits > 0).count();
            out.push_str(&format!("BRF:{}\nBRH:{hit}\n", branches.len()));
        }
        let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
        for item in others {
            // The coverage of a line is that of its least covered item.
            let hits = lines.entry(item.range.start.line).or_insert(item.hits);
            *hits = (*hits).min(item.hits);
        }
        for (line, hits) in &lines {
            out.push_str(&format!("DA:{line},{hits}\n"));
        }
        let hit = lines.values().filter(|hits| **hits > 0).count();
        out.push_str(&format!("LF:{}\nLH:{hit}\nend_of_record\n", lines.len()));
    }
    out
}

#[cfg(test)]
mod unit {
    use super::*;
    use syntax::{Pos, Range};

    fn item(kind: Kind, line: u32, hits: u64) -> Item {
        let start = Pos { line, ..Pos::default() };
        let range = Range {
            file: "main.tf".into(),
            start,
            end: start,
        };
        Item {
            kind,
            name: format!("{}.x", kind.word()),
            range,
            hits,
        }
    }

    #[test]
    fn three_forms_of_a_report() {
        let items = [
            item(Kind::Output, 1, 3),
            item(Kind::Local, 4, 0),
            item(Kind::Branch, 4, 2),
            item(Kind::Branch, 4, 0),
        ];
        let text = text(&items, Style::PLAIN);
        assert!(
            text.contains("  output values  1 of 1\n  local values   0 of 1\n  branches       1 of 2\n"),
            "{text}"
        );
        assert!(
            text.ends_with("come upon:\n  main.tf:4: local.x\n  main.tf:4: branch.x\n"),
            "{text}"
        );
        assert_eq!(
            lcov(&items),
            "TN:\nSF:main.tf\nBRDA:4,0,0,2\nBRDA:4,0,1,0\nBRF:2\nBRH:1\nDA:1,3\nDA:4,0\nLF:2\nLH:1\nend_of_record\n"
        );
        assert_eq!(document(&items)["totals"]["branch"], json!({"covered": 1, "total": 2}));
    }
}
