//! The commands of each guide, word for word and in order, in an empty home directory and a directory with a
//! configuration.
//!
//! A code block without a language is a script for bash. A comment before it marks exceptions:
//!
//! - `<!-- not run: REASON -->`: the block needs a network, a program or a right that a test does not have.
//! - `<!-- needs: PROGRAM -->`: the block is left out if that program is not installed.
//!
//! A code block with a language, or with `text` for the output of a session, is not run.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;
use support::{Workspace, lean, which};

/// Makes one test for each guide that has commands.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in guides() {
        let text = std::fs::read_to_string(&path).expect("a guide");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let blocks = blocks(&text);
        if blocks.iter().any(Block::is_run) {
            trials.push(Trial::test(format!("guides::{name}"), move || {
                run(&blocks);
                Ok(())
            }));
        }
    }
    assert!(trials.len() > 5, "only {} guides have commands", trials.len());
    trials
}

fn guides() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/guide");
    let entries = std::fs::read_dir(dir).expect("the guides");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    found.sort();
    found
}

/// A block of code, and the comment before it.
struct Block {
    line: usize,
    language: String,
    comment: String,
    lines: Vec<String>,
}

impl Block {
    /// Returns true for a script that can be run here.
    fn is_run(&self) -> bool {
        let needed = self.comment.strip_prefix("needs: ");
        self.language.is_empty() && !self.comment.starts_with("not run: ") && needed.is_none_or(|p| which(p).is_some())
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut comment = String::new();
    while let Some((at, line)) = lines.next() {
        let line = line.trim();
        if let Some(inside) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            assert!(
                inside.strip_prefix("not run: ").is_some_and(|reason| reason.len() > 8)
                    || inside.starts_with("needs: "),
                "line {}: a comment that says nothing to this test: {inside}",
                at + 1
            );
            inside.clone_into(&mut comment);
        } else if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line.trim());
            found.push(Block {
                line: at + 1,
                language: language.to_owned(),
                comment: std::mem::take(&mut comment),
                lines: inside.take_while(|line| *line != "```").map(str::to_owned).collect(),
            });
        }
    }
    found
}

fn run(blocks: &[Block]) {
    let w = Workspace::new();
    support::copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quickstart/config"),
        &w.dir().join("prod"),
    );
    std::fs::create_dir(w.dir().join("bin")).expect("a directory");
    symlink(lean(), w.dir().join("bin/monoform")).expect("a link");
    // Variables that a block exports apply to that block only, but its files exist for the following blocks.
    let mut script = "set -euo pipefail\nexport PATH=$PWD/bin:$PATH\ncd prod\n".to_owned();
    for block in blocks.iter().filter(|block| block.is_run()) {
        let _ = writeln!(
            script,
            "(\necho '== line {}'\n{}\n)",
            block.line,
            block.lines.join("\n")
        );
    }
    let ran = w.run_program("bash", &["-c", &script]);
    assert_eq!(ran.status, 0, "{}", ran.all());
}
