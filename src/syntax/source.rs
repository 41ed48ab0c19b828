//! Positions in source files, and the text of those files.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Line number, from 1.
    pub line: u32,
    /// Column, from 1, in grapheme clusters.
    pub column: u32,
    /// Offset in bytes, from 0.
    pub byte: u32,
}

impl Default for Pos {
    fn default() -> Pos {
        Pos {
            line: 1,
            column: 1,
            byte: 0,
        }
    }
}

/// A range of a source file, from `start` up to but not including `end`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// Path of the file as diagnostics display it: relative to the working directory.
    pub file: Arc<str>,
    pub start: Pos,
    pub end: Pos,
}

impl Range {
    /// Range from the beginning of this one to the end of `other`.
    #[must_use]
    pub fn to(&self, other: &Range) -> Range {
        Range {
            file: self.file.clone(),
            start: self.start,
            end: other.end,
        }
    }

    /// Creates an empty range for text that does not come from a file; `what` is used as the file name.
    #[must_use]
    pub fn synthetic(what: &str) -> Range {
        Range {
            file: what.into(),
            start: Pos::default(),
            end: Pos::default(),
        }
    }
}

/// Formats as `main.tf:3,5-12` or `main.tf:3,5-4,2`.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { file, start, end } = self;
        if start.line == end.line {
            write!(f, "{file}:{},{}-{}", start.line, start.column, end.column)
        } else {
            write!(f, "{file}:{},{}-{},{}", start.line, start.column, end.line, end.column)
        }
    }
}

/// Texts of all files that were read, so that diagnostics can display their lines.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: BTreeMap<Arc<str>, Arc<str>>,
}

impl SourceMap {
    pub fn insert(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.files.insert(file.into(), text.into());
    }

    #[must_use]
    pub fn get(&self, file: &str) -> Option<&Arc<str>> {
        self.files.get(file)
    }

    /// Iterates over all files by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.files.iter()
    }

    /// Adds the files of another map.
    pub fn extend(&mut self, other: SourceMap) {
        self.files.extend(other.files);
    }
}
