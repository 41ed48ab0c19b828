//! Positions in source files, and the files themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A position in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, counted in grapheme clusters.
    pub column: u32,
    /// The offset in bytes, from 0.
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

/// A stretch of a source file, from `start` up to but not including `end`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The file, as diagnostics display it: relative to the working directory.
    pub file: Arc<str>,
    /// The first position.
    pub start: Pos,
    /// The position after the last.
    pub end: Pos,
}

impl Range {
    /// The stretch from the beginning of this to the end of `other`.
    #[must_use]
    pub fn to(&self, other: &Range) -> Range {
        Range {
            file: self.file.clone(),
            start: self.start,
            end: other.end,
        }
    }

    /// A stretch of nothing, for things that do not come from a file; `what` stands where the file name would.
    #[must_use]
    pub fn synthetic(what: &str) -> Range {
        Range {
            file: what.into(),
            start: Pos::default(),
            end: Pos::default(),
        }
    }
}

/// `main.tf:3,5-12` or `main.tf:3,5-4,2`.
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

/// The text of every file that was read, so that diagnostics can show the lines they speak of.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: BTreeMap<Arc<str>, Arc<str>>,
}

impl SourceMap {
    /// Stores the text of a file.
    pub fn insert(&mut self, file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) {
        self.files.insert(file.into(), text.into());
    }

    /// The text of a file.
    #[must_use]
    pub fn get(&self, file: &str) -> Option<&Arc<str>> {
        self.files.get(file)
    }

    /// Every file and its text, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.files.iter()
    }

    /// Takes over the files of another map.
    pub fn extend(&mut self, other: SourceMap) {
        self.files.extend(other.files);
    }
}
