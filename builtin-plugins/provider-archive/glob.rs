//! The patterns of `excludes`: shell wildcards over whole paths, where `**` stands for any number of directories.

use regex::bytes::{Regex, RegexBuilder};

use crate::error::{ArchiveError, PatternError};

/// Compiles a pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex, ArchiveError> {
    let bad = |reason| ArchiveError::Pattern {
        pattern: pattern.to_owned(),
        reason,
    };
    let text = translate(&pattern.chars().collect::<Vec<_>>()).map_err(bad)?;
    RegexBuilder::new(&format!("^(?:{text})$"))
        .dot_matches_new_line(true)
        .build()
        .map_err(|_| bad(PatternError::NotCompiled))
}

/// The same pattern as a regular expression.
fn translate(pattern: &[char]) -> Result<String, PatternError> {
    let mut out = String::new();
    let mut depth = 0usize;
    let mut at = 0;
    // Whether a path component begins here.
    let mut fresh = true;
    let is_end = |i: usize, depth: usize| match pattern.get(i) {
        None | Some('/') => true,
        Some(',' | '}') => depth > 0,
        _ => false,
    };
    while let Some(&c) = pattern.get(at) {
        let next = |n: usize| pattern.get(at + n).copied();
        let (text, taken, then_fresh) = match c {
            '/' if next(1) == Some('*') && next(2) == Some('*') && is_end(at + 3, depth) => {
                if next(3) == Some('/') {
                    ("/(?:.*/)?".to_owned(), 4, true)
                } else {
                    ("(?:/.*)?".to_owned(), 3, false)
                }
            }
            '*' if fresh && next(1) == Some('*') && is_end(at + 2, depth) => {
                if next(2) == Some('/') {
                    ("(?:.*/)?".to_owned(), 3, true)
                } else {
                    (".*".to_owned(), 2, false)
                }
            }
            '*' => ("[^/]*".to_owned(), 1, false),
            '?' => ("[^/]".to_owned(), 1, false),
            '[' => {
                let (text, taken) = class(pattern.get(at..).unwrap_or_default())?;
                (text, taken, false)
            }
            '{' => {
                depth += 1;
                ("(?:".to_owned(), 1, fresh)
            }
            ',' if depth > 0 => ("|".to_owned(), 1, true),
            '}' if depth > 0 => {
                depth -= 1;
                (")".to_owned(), 1, false)
            }
            '\\' => {
                let literal = next(1).ok_or(PatternError::Backslash)?;
                (regex::escape(&literal.to_string()), 2, literal == '/')
            }
            c => (regex::escape(&c.to_string()), 1, c == '/'),
        };
        out.push_str(&text);
        at += taken;
        fresh = then_fresh;
    }
    if depth > 0 {
        return Err(PatternError::Brace);
    }
    Ok(out)
}

/// A class of characters, and how long it is in the pattern. It never stands for the separator of paths.
fn class(pattern: &[char]) -> Result<(String, usize), PatternError> {
    let mut at = 1;
    let negated = matches!(pattern.get(at), Some('!' | '^'));
    if negated {
        at += 1;
    }
    let mut set = String::new();
    loop {
        let c = match pattern.get(at) {
            None => return Err(PatternError::Bracket),
            Some(']') if set.is_empty() => return Err(PatternError::EmptyClass),
            Some(']') => break,
            Some('\\') => {
                at += 1;
                *pattern.get(at).ok_or(PatternError::Backslash)?
            }
            // A range, unless it is the first or last of the class.
            Some('-') if !set.is_empty() && !matches!(pattern.get(at + 1), None | Some(']')) => {
                set.push('-');
                at += 1;
                continue;
            }
            Some(c) => *c,
        };
        if "\\[]^-&~".contains(c) {
            set.push('\\');
        }
        set.push(c);
        at += 1;
    }
    let not = if negated { "^" } else { "" };
    Ok((format!("[[{not}{set}]&&[^/]]"), at + 1))
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, yes, no) in [
            ("a.txt", vec!["a.txt"], vec!["d/a.txt", "aXtxt", "a.txt/b"]),
            ("*", vec!["a", ".", ".hidden"], vec!["a/b"]),
            ("**", vec![".", "a", "a/b"], vec![]),
            ("*.txt", vec!["a.txt", ".txt"], vec!["d/a.txt", "a.txt2"]),
            ("**/*.txt", vec!["a.txt", "d/e/a.txt"], vec!["a.md"]),
            ("d/**", vec!["d", "d/a", "d/e/f"], vec!["dd", "e/d"]),
            ("d/**/f", vec!["d/f", "d/e/f", "d/e/e/f"], vec!["f", "d/ef"]),
            ("a**b", vec!["ab", "axb"], vec!["a/b"]),
            ("?", vec!["a", "é"], vec!["", "ab", "/"]),
            ("[a-c]x", vec!["ax", "cx"], vec!["dx", "-x"]),
            ("[!a-c]", vec!["d"], vec!["a", "/"]),
            ("[^a]", vec!["d"], vec!["a"]),
            ("[a\\]-]", vec!["]", "-", "a"], vec!["b"]),
            ("[[&~]", vec!["[", "&", "~"], vec!["a"]),
            ("{a,b/c}.txt", vec!["a.txt", "b/c.txt"], vec!["c.txt", "b"]),
            ("{a,**/x}", vec!["a", "x", "d/x"], vec!["d/a"]),
            ("{a,{b,c}}d", vec!["ad", "bd", "cd"], vec!["d"]),
            ("\\*", vec!["*"], vec!["a"]),
            ("a,b}", vec!["a,b}"], vec!["a"]),
        ] {
            let regex = compile(pattern).unwrap();
            for path in yes {
                assert!(regex.is_match(path.as_bytes()), "{pattern} should match {path}");
            }
            for path in no {
                assert!(!regex.is_match(path.as_bytes()), "{pattern} should not match {path}");
            }
        }
        for bad in ["[", "[]", "[a", "{a", "a\\", "[z-a]"] {
            assert!(compile(bad).unwrap_err().to_string().contains("bad pattern"), "{bad}");
        }
    }
}
