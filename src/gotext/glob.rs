//! Path patterns: `*`, `?`, `[a-z]` within one component, `**` for any number of directories, `{a,b}` for alternatives,
//! and a backslash before a literal character.
//!
//! The rules are those of Go's `path.Match` with the extensions of the `doublestar` package, which Terraform and its
//! providers use. [`Pattern::matches`] compares a whole path. Callers that walk directories compare entries component
//! by component ([`Pattern::alternatives`]), and enter only directories in which an entry can match.

/// The maximum number of alternatives of a pattern. Groups multiply them.
const MAX_ALTERNATIVES: usize = 4096;

#[derive(Clone, Debug)]
pub struct Pattern {
    /// One sequence of components for each combination of choices in the `{a,b}` groups.
    alternatives: Vec<Vec<Part>>,
}

/// One component of a pattern.
#[derive(Clone, Debug)]
pub enum Part {
    /// `**`: any number of directories, or none.
    Directories,
    Name(Name),
}

/// A pattern of one name without separators.
#[derive(Clone, Debug)]
pub struct Name(Vec<Token>);

#[derive(Clone, Debug)]
enum Token {
    Separator,
    Char(char),
    /// `?`
    Any,
    /// `*`
    Star,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternError {
    Backslash,
    Brace,
    Bracket,
    EmptyClass,
    ReversedRange,
    TooManyAlternatives,
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PatternError::Backslash => "a backslash at the end",
            PatternError::Brace => "a { without its }",
            PatternError::Bracket => "a [ without its ]",
            PatternError::EmptyClass => "nothing between [ and ]",
            PatternError::ReversedRange => "a range in [] is upside down",
            PatternError::TooManyAlternatives => "too many alternatives",
        })
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns an error if the pattern is malformed or has too many alternatives.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let alternatives = Parser::default().run(text)?;
        Ok(Pattern {
            alternatives: alternatives.into_iter().map(parts).collect(),
        })
    }

    #[must_use]
    pub fn alternatives(&self) -> &[Vec<Part>] {
        &self.alternatives
    }

    /// Returns true if the pattern matches the whole path, whose separators are slashes.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let path: Vec<Vec<char>> = path.split('/').map(|name| name.chars().collect()).collect();
        self.alternatives.iter().any(|parts| {
            let is_star = |part: &Part| matches!(part, Part::Directories);
            fits(parts, &path, is_star, |part, name| match part {
                Part::Directories => false,
                Part::Name(pattern) => pattern.matches_chars(name),
            })
        })
    }
}

impl Name {
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.matches_chars(&name.chars().collect::<Vec<_>>())
    }

    /// Returns true if the pattern is the literal `text`.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.0.len() == text.chars().count()
            && self
                .0
                .iter()
                .zip(text.chars())
                .all(|(token, c)| matches!(token, Token::Char(own) if *own == c))
    }

    fn matches_chars(&self, name: &[char]) -> bool {
        let is_star = |token: &Token| matches!(token, Token::Star);
        fits(&self.0, name, is_star, |token, c| match token {
            Token::Any => true,
            Token::Char(own) => own == c,
            Token::Class { negated, ranges } => ranges.iter().any(|(low, high)| (low..=high).contains(&c)) != *negated,
            Token::Star | Token::Separator => false,
        })
    }
}

/// Returns true if a pattern, in which a star takes any number of items, matches all items.
fn fits<P, T>(pattern: &[P], items: &[T], is_star: impl Fn(&P) -> bool, takes: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut i) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while let Some(item) = items.get(i) {
        match pattern.get(p) {
            Some(part) if is_star(part) => {
                p += 1;
                // Only the last star is tried again, so that the time is at most the product of both lengths.
                retry = Some((p, i));
            }
            Some(part) if takes(part, item) => {
                p += 1;
                i += 1;
            }
            _ => {
                let Some((after, at)) = retry else { return false };
                retry = Some((after, at + 1));
                (p, i) = (after, at + 1);
            }
        }
    }
    pattern.iter().skip(p).all(is_star)
}

/// Splits an alternative into components.
fn parts(tokens: Vec<Token>) -> Vec<Part> {
    tokens
        .split(|token| matches!(token, Token::Separator))
        .map(|name| match name {
            // Two stars are special only as a whole component. Within a name they mean one star.
            [Token::Star, Token::Star] => Part::Directories,
            name => Part::Name(Name(name.to_vec())),
        })
        .collect()
}

/// The alternatives of an open group. The whole pattern is the outermost group.
struct Group {
    done: Vec<Vec<Token>>,
    /// The alternative that is being read: one sequence for each combination of choices in the nested groups that it
    /// contains.
    current: Vec<Vec<Token>>,
}

impl Group {
    fn new() -> Group {
        Group {
            done: Vec::new(),
            current: vec![Vec::new()],
        }
    }

    fn push(&mut self, token: &Token) {
        for sequence in &mut self.current {
            sequence.push(token.clone());
        }
    }

    fn end_alternative(&mut self) {
        self.done.append(&mut self.current);
        self.current.push(Vec::new());
    }
}

#[derive(Default)]
struct Parser {
    /// The enclosing groups, outermost first.
    // An explicit stack instead of recursion, because a pattern is arbitrary text, and may be nested to any
    // depth.
    around: Vec<Group>,
}

impl Parser {
    fn run(mut self, text: &str) -> Result<Vec<Vec<Token>>, PatternError> {
        let text: Vec<char> = text.chars().collect();
        let mut group = Group::new();
        let mut at = 0;
        while let Some(&c) = text.get(at) {
            at += 1;
            match c {
                '/' => group.push(&Token::Separator),
                '*' => group.push(&Token::Star),
                '?' => group.push(&Token::Any),
                '[' => {
                    let (class, end) = class(&text, at)?;
                    group.push(&class);
                    at = end;
                }
                '{' => self.around.push(std::mem::replace(&mut group, Group::new())),
                // Outside a group, a comma is literal.
                ',' if !self.around.is_empty() => group.end_alternative(),
                '}' => match self.around.pop() {
                    Some(outer) => group = joined(outer, group)?,
                    // A closing brace without its opening one is literal.
                    None => group.push(&Token::Char(c)),
                },
                '\\' => {
                    let literal = *text.get(at).ok_or(PatternError::Backslash)?;
                    at += 1;
                    group.push(&match literal {
                        '/' => Token::Separator,
                        literal => Token::Char(literal),
                    });
                }
                c => group.push(&Token::Char(c)),
            }
        }
        if self.around.is_empty() {
            Ok(group.current)
        } else {
            Err(PatternError::Brace)
        }
    }
}

/// Closes the inner group: each sequence of the outer group continues with each alternative.
fn joined(mut outer: Group, mut inner: Group) -> Result<Group, PatternError> {
    inner.end_alternative();
    // The number of alternatives is checked before they are combined, because nested groups make any number from a
    // short text.
    if outer.done.len() + outer.current.len() * inner.done.len() > MAX_ALTERNATIVES {
        return Err(PatternError::TooManyAlternatives);
    }
    outer.current = outer
        .current
        .iter()
        .flat_map(|before| {
            inner
                .done
                .iter()
                .map(|alternative| before.iter().chain(alternative).cloned().collect())
        })
        .collect();
    Ok(outer)
}

/// Parses a class after its opening bracket. Returns the class and the position after it.
fn class(text: &[char], start: usize) -> Result<(Token, usize), PatternError> {
    let mut at = start;
    let negated = matches!(text.get(at), Some('!' | '^'));
    if negated {
        at += 1;
    }
    let mut ranges = Vec::new();
    loop {
        if text.get(at) == Some(&']') {
            let class = Token::Class { negated, ranges };
            return match &class {
                Token::Class { ranges, .. } if ranges.is_empty() => Err(PatternError::EmptyClass),
                _ => Ok((class, at + 1)),
            };
        }
        let (low, next) = member(text, at)?;
        at = next;
        let high = match text.get(at..at + 2) {
            // A hyphen at the end of a class is literal.
            Some(['-', after]) if *after != ']' => {
                let (high, next) = member(text, at + 1)?;
                at = next;
                high
            }
            _ => low,
        };
        if high < low {
            return Err(PatternError::ReversedRange);
        }
        ranges.push((low, high));
    }
}

/// Parses a character of a class. Returns the character and the position after it.
fn member(text: &[char], at: usize) -> Result<(char, usize), PatternError> {
    match text.get(at) {
        None => Err(PatternError::Bracket),
        Some('\\') => match text.get(at + 1) {
            Some(c) => Ok((*c, at + 2)),
            None => Err(PatternError::Backslash),
        },
        Some(c) => Ok((*c, at + 1)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, yes, no) in [
            ("", vec![""], vec!["a"]),
            ("a.txt", vec!["a.txt"], vec!["d/a.txt", "aXtxt", "a.txt/b"]),
            ("*", vec!["a", ".", ".hidden", ""], vec!["a/b"]),
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
            ("[-a]", vec!["-", "a"], vec!["b"]),
            ("[\\--/]x", vec!["-x", ".x"], vec!["/x", "ax"]),
            ("[[&~]", vec!["[", "&", "~"], vec!["a"]),
            ("{a,b/c}.txt", vec!["a.txt", "b/c.txt"], vec!["c.txt", "b"]),
            ("{a,**/x}", vec!["a", "x", "d/x"], vec!["d/a"]),
            ("{a,{b,c}}d", vec!["ad", "bd", "cd"], vec!["d"]),
            ("{a,}b{,c}", vec!["ab", "b", "abc", "bc"], vec!["a"]),
            ("[{,}]", vec!["{", ",", "}"], vec!["a"]),
            ("\\{a,b\\}", vec!["{a,b}"], vec!["a", "b"]),
            ("\\*", vec!["*"], vec!["a"]),
            ("\\*\\*", vec!["**"], vec!["a/b"]),
            ("a,b}", vec!["a,b}"], vec!["a"]),
        ] {
            let compiled = Pattern::parse(pattern).unwrap();
            for path in yes {
                assert!(compiled.matches(path), "{pattern} should match {path}");
            }
            for path in no {
                assert!(!compiled.matches(path), "{pattern} should not match {path}");
            }
        }
    }

    #[test]
    fn malformed_patterns_are_errors() {
        for (pattern, expected) in [
            ("[", PatternError::Bracket),
            ("[a", PatternError::Bracket),
            ("[]", PatternError::EmptyClass),
            ("[z-a]", PatternError::ReversedRange),
            ("{a", PatternError::Brace),
            ("{a,{b}", PatternError::Brace),
            ("a\\", PatternError::Backslash),
            ("[\\", PatternError::Backslash),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap_err(), expected, "{pattern}");
        }
        let many = "{a,b}".repeat(40);
        assert_eq!(Pattern::parse(&many).unwrap_err(), PatternError::TooManyAlternatives);
    }

    #[test]
    fn deep_groups_and_many_stars_end_in_time() {
        let depth = 20_000;
        let nested = format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert!(Pattern::parse(&nested).unwrap().matches("a"));
        let stars = Pattern::parse(&"*a".repeat(200)).unwrap();
        assert!(!stars.matches(&"a".repeat(199)));
        let directories = Pattern::parse(&"**/a/".repeat(100)).unwrap();
        assert!(!directories.matches(&"a/".repeat(99)));
    }

    #[test]
    fn names_are_recognised_as_literal() {
        let first = |pattern: &str| match Pattern::parse(pattern).unwrap().alternatives()[0][0].clone() {
            Part::Name(name) => name,
            Part::Directories => panic!("{pattern}"),
        };
        assert!(first("..").is("..") && first("\\..").is(".."));
        assert!(!first("?.").is("..") && !first(".").is("..") && !first("...").is(".."));
    }

    proptest! {
        #[test]
        fn escaped_text_matches_itself_only(text in "[]a*?\\[{},!^-]{1,12}", other in "[]a*?\\[{},!^-]{1,12}") {
            let escaped: String = text.chars().flat_map(|c| ['\\', c]).collect();
            let pattern = Pattern::parse(&escaped).unwrap();
            prop_assert!(pattern.matches(&text));
            prop_assert_eq!(pattern.matches(&other), text == other);
        }

        #[test]
        fn group_matches_what_one_of_its_alternatives_matches(
            a in "[ab*?/]{0,5}", b in "[ab*?/]{0,5}", tail in "[ab*?]{0,3}", path in "[ab/]{0,8}",
        ) {
            let matches = |pattern: &str| Pattern::parse(pattern).unwrap().matches(&path);
            let either = matches(&format!("{a}{tail}")) || matches(&format!("{b}{tail}"));
            prop_assert_eq!(matches(&format!("{{{a},{b}}}{tail}")), either);
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in "[]a*?\\[{},!^/\\\\-]{0,30}", path in "[a/]{0,8}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                let _ = pattern.matches(&path);
            }
        }
    }
}
