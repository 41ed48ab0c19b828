//! Edits of a source text that correct the problem of a diagnostic.

use std::ops;

use crate::Range;

/// A change of a source text. Only a mistake with exactly one likely correction has an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Range that the change is in.
    pub range: Range,
    /// Word in the range that is replaced; the whole range if there is none.
    word: Option<String>,
    /// Replacement text.
    pub new: String,
}

impl Edit {
    /// Creates an edit that replaces a whole range.
    pub fn stretch(range: &Range, new: impl Into<String>) -> Edit {
        Edit {
            range: range.clone(),
            word: None,
            new: new.into(),
        }
    }

    /// Creates an edit that replaces a word that occurs once in a range, such as a name in quotes or after a dot.
    pub fn word(range: &Range, word: &str, new: impl Into<String>) -> Edit {
        Edit {
            range: range.clone(),
            word: Some(word.to_owned()),
            new: new.into(),
        }
    }

    /// Returns the byte range of the source text that is replaced. `None` if the range of the edit is not in the text,
    /// or if the word does not occur exactly once in it.
    #[must_use]
    pub fn locate(&self, source: &str) -> Option<ops::Range<usize>> {
        let (start, end) = (self.range.start.byte as usize, self.range.end.byte as usize);
        let stretch = source.get(start..end)?;
        let Some(word) = &self.word else {
            return Some(start..end);
        };
        let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        // Only whole words count: `a` must not be found within `bar`.
        let mut found = stretch.match_indices(word.as_str()).filter(|(at, _)| {
            let before = stretch[..*at].chars().next_back();
            let after = stretch[at + word.len()..].chars().next();
            !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
        });
        let (at, _) = found.next()?;
        // If the word occurs twice, the edit could change the wrong one.
        if found.next().is_some() {
            return None;
        }
        Some(start + at..start + at + word.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pos;

    fn range(start: u32, end: u32) -> Range {
        let at = |byte| Pos { byte, ..Pos::default() };
        Range {
            file: "main.tf".into(),
            start: at(start),
            end: at(end),
        }
    }

    #[test]
    fn a_word_is_found_only_where_it_occurs_once() {
        let source = "x = var.regoin";
        assert_eq!(
            Edit::word(&range(4, 14), "regoin", "region").locate(source),
            Some(8..14)
        );
        assert_eq!(Edit::word(&range(4, 14), "reg", "region").locate(source), None);
        assert_eq!(Edit::word(&range(0, 5), "a", "b").locate("a + a"), None);
    }

    #[test]
    fn a_stretch_outside_of_the_text_is_not_found() {
        assert_eq!(Edit::stretch(&range(1, 2), "").locate("ab"), Some(1..2));
        assert_eq!(Edit::stretch(&range(1, 3), "").locate("ab"), None);
        assert_eq!(Edit::stretch(&range(1, 2), "").locate("“"), None);
    }
}
