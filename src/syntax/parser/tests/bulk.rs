//! Real files: `SYNTAX_FILES=DIR cargo test --release -p monoform-syntax -- --ignored --nocapture bulk` parses every
//! configuration file below a directory and prints which have errors, and the time that took.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::parse_file;

#[test]
#[ignore = "needs a directory of configuration files in SYNTAX_FILES"]
fn bulk() {
    let root = std::env::var("SYNTAX_FILES").expect("SYNTAX_FILES names a directory");
    let mut files = Vec::new();
    collect(Path::new(&root), &mut files);
    files.sort();
    let contents: Vec<Vec<u8>> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let bytes: usize = contents.iter().map(Vec::len).sum();
    let begin = Instant::now();
    let mut failed = Vec::new();
    for (file, content) in files.iter().zip(&contents) {
        let (_, diagnostics) = parse_file(&file.display().to_string(), content);
        if !diagnostics.is_empty() {
            failed.push(diagnostics);
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    for diagnostics in &failed {
        for d in diagnostics {
            println!(
                "{}: {}",
                d.subject.as_ref().map(ToString::to_string).unwrap_or_default(),
                d.summary
            );
        }
    }
    let begin = Instant::now();
    let mut tokens = 0;
    for content in &contents {
        if let Ok(text) = std::str::from_utf8(content) {
            tokens += crate::lexer::lex(&"x".into(), text, crate::Pos::default()).list.len();
        }
    }
    let lexing = begin.elapsed().as_secs_f64();
    let mb = bytes as f64 / 1e6;
    println!(
        "{} files, {mb:.1} MB, {tokens} tokens: {:.1} MB/s ({:.1} MB/s lexing alone); {} files with errors",
        files.len(),
        mb / seconds,
        mb / lexing,
        failed.len()
    );
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, files);
        } else if name.ends_with(".tf") || name.ends_with(".tfvars") || name.ends_with(".hcl") {
            files.push(path);
        }
    }
}

#[test]
#[ignore = "needs a file of cases in SYNTAX_CASES"]
fn cases() {
    let all = std::fs::read_to_string(std::env::var("SYNTAX_CASES").unwrap()).unwrap();
    for case in all.split("=====\n") {
        println!("----- {case:?}");
        let (_, diagnostics) = parse_file("main.tf", case.as_bytes());
        for d in &diagnostics {
            let r = d.subject.clone().unwrap();
            println!(
                "    {}:{}-{}:{} {} | {}",
                r.start.line, r.start.column, r.end.line, r.end.column, d.summary, d.detail
            );
        }
    }
}
