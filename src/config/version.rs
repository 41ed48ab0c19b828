//! Versions, and constraints on them.
//!
//! The language has two readers of constraints, which differ in small ways: one for providers (strict), one for modules
//! and `required_version` (lenient). [`Dialect`] says which one reads.

use std::cmp::Ordering;
use std::fmt;

use syntax::Range;

/// A version: numbers, and perhaps a pre-release and build metadata.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    /// The numbers, at least three.
    pub numbers: Vec<u64>,
    /// What follows a dash.
    pub prerelease: String,
    /// What follows a plus sign; it says nothing about the order.
    pub build: String,
}

/// Who reads a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Constraints on providers: at most three numbers, no leading `v`, `~> 1` means below 2.
    Provider,
    /// Constraints on modules and on the tool itself: lenient, `~> 1` means any from 1.
    Module,
}

/// A constraint as written, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The text.
    pub text: String,
    /// Its terms, all of which must hold.
    pub terms: Vec<Term>,
    /// Where it is written.
    pub range: Range,
}

/// One term of a constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The operator.
    pub op: Op,
    /// What is compared with.
    pub version: Version,
    /// How many numbers were written.
    pub written: usize,
    dialect: Dialect,
}

/// The operator of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `=`, or nothing.
    Equal,
    /// `!=`.
    NotEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `~>`.
    Pessimistic,
}

impl Version {
    /// Reads a version; missing numbers are zero.
    #[must_use]
    pub fn parse(text: &str, dialect: Dialect) -> Option<Version> {
        parse_counted(text, dialect).map(|(version, _)| version)
    }

    /// The same version without pre-release and build metadata.
    #[must_use]
    pub fn core(&self) -> Version {
        Version {
            numbers: self.numbers.clone(),
            prerelease: String::new(),
            build: String::new(),
        }
    }

    /// The numbers and the pre-release in order of precedence.
    #[must_use]
    pub fn precedence(&self, other: &Version) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        let number = |v: &Version, i: usize| v.numbers.get(i).copied().unwrap_or(0);
        for i in 0..longest {
            match number(self, i).cmp(&number(other, i)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => prerelease_order(&self.prerelease, &other.prerelease),
        }
    }
}

fn prerelease_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let (x, y) = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(x), Some(y)) => (x, y),
        };
        let order = match (x.parse::<u64>(), y.parse::<u64>()) {
            (Ok(x), Ok(y)) => x.cmp(&y),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => x.cmp(y),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn parse_counted(text: &str, dialect: Dialect) -> Option<(Version, usize)> {
    let text = match dialect {
        Dialect::Module => {
            let trimmed = text.trim();
            trimmed.strip_prefix('v').unwrap_or(trimmed)
        }
        Dialect::Provider => text,
    };
    let (rest, build) = text.split_once('+').map_or((text, ""), |(r, b)| (r, b));
    let (core, prerelease) = rest.split_once('-').map_or((rest, ""), |(c, p)| (c, p));
    let word = |s: &str| {
        s.split('.')
            .all(|w| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
    };
    if (rest.len() != text.len() && !word(build)) || (core.len() != rest.len() && !word(prerelease)) {
        return None;
    }
    let mut numbers = Vec::new();
    for part in core.split('.') {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        if dialect == Dialect::Provider && part.len() > 1 && part.starts_with('0') {
            return None;
        }
        numbers.push(part.parse().ok()?);
    }
    let written = numbers.len();
    if dialect == Dialect::Provider && written > 3 {
        return None;
    }
    numbers.resize(written.max(3), 0);
    Some((
        Version {
            numbers,
            prerelease: prerelease.to_owned(),
            build: build.to_owned(),
        },
        written,
    ))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, n) in self.numbers.iter().enumerate() {
            write!(f, "{}{n}", if i > 0 { "." } else { "" })?;
        }
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

impl Constraint {
    /// Reads a constraint: terms separated by commas.
    #[must_use]
    pub fn parse(text: &str, dialect: Dialect, range: &Range) -> Option<Constraint> {
        let terms = text
            .split(',')
            .map(|t| Term::parse(t, dialect))
            .collect::<Option<Vec<_>>>()?;
        Some(Constraint {
            text: text.to_owned(),
            terms,
            range: range.clone(),
        })
    }

    /// Whether a version satisfies every term. A pre-release does so only if a term names exactly that one.
    #[must_use]
    pub fn allows(&self, version: &Version) -> bool {
        let named = version.prerelease.is_empty()
            || self
                .terms
                .iter()
                .any(|t| t.op == Op::Equal && t.version.precedence(version) == Ordering::Equal);
        named && self.terms.iter().all(|t| t.allows(version))
    }
}

impl Term {
    fn parse(text: &str, dialect: Dialect) -> Option<Term> {
        const OPS: [(&str, Op); 7] = [
            (">=", Op::GreaterOrEqual),
            ("<=", Op::LessOrEqual),
            ("!=", Op::NotEqual),
            ("~>", Op::Pessimistic),
            (">", Op::Greater),
            ("<", Op::Less),
            ("=", Op::Equal),
        ];
        let text = text.trim();
        let (op, rest) = OPS
            .iter()
            .find_map(|(word, op)| text.strip_prefix(word).map(|rest| (*op, rest)))
            .unwrap_or((Op::Equal, text));
        let rest = match dialect {
            Dialect::Provider => rest.strip_prefix(' ').unwrap_or(rest),
            Dialect::Module => rest.trim_start(),
        };
        let (version, written) = parse_counted(rest, dialect)?;
        Some(Term {
            op,
            version,
            written,
            dialect,
        })
    }

    fn allows(&self, version: &Version) -> bool {
        let order = version.precedence(&self.version);
        match self.op {
            Op::Equal => order == Ordering::Equal,
            Op::NotEqual => order != Ordering::Equal,
            Op::Greater => order == Ordering::Greater,
            Op::GreaterOrEqual => order != Ordering::Less,
            Op::Less => order == Ordering::Less,
            Op::LessOrEqual => order != Ordering::Greater,
            Op::Pessimistic => {
                // The last number written may rise, those before it may not. Of a single number, providers keep it.
                let fixed = match (self.written, self.dialect) {
                    (1, Dialect::Provider) => 1,
                    (written, _) => written - 1,
                };
                order != Ordering::Less
                    && (0..fixed).all(|i| version.numbers.get(i).copied().unwrap_or(0) == self.version.numbers[i])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(dialect: Dialect, constraint: &str, version: &str) -> bool {
        let constraint = Constraint::parse(constraint, dialect, &Range::synthetic("test")).unwrap();
        constraint.allows(&Version::parse(version, Dialect::Module).unwrap())
    }

    #[test]
    fn pessimistic_terms() {
        use Dialect::{Module, Provider};
        for (constraint, yes, no) in [
            ("~> 1.2.3", "1.2.9", "1.3.0"),
            ("~> 1.2", "1.9.0", "2.0.0"),
            ("~> 1.2", "1.2.0", "1.1.9"),
            (">= 1.0, < 2.0, != 1.5.0", "1.5.1", "1.5.0"),
        ] {
            for dialect in [Module, Provider] {
                assert!(allows(dialect, constraint, yes), "{constraint} {yes}");
                assert!(!allows(dialect, constraint, no), "{constraint} {no}");
            }
        }
        assert!(allows(Module, "~> 1", "7.0.0") && !allows(Provider, "~> 1", "2.0.0"));
    }

    #[test]
    fn prereleases_are_asked_for_by_name() {
        assert!(!allows(Dialect::Provider, ">= 1.0.0", "2.0.0-beta1"));
        assert!(allows(Dialect::Provider, "2.0.0-beta1", "2.0.0-beta1"));
        let v = |s| Version::parse(s, Dialect::Module).unwrap();
        assert_eq!(v("1.0.0-rc.2").precedence(&v("1.0.0-rc.10")), Ordering::Less);
        assert_eq!(v("1.0.0-rc.2").precedence(&v("1.0.0")), Ordering::Less);
    }

    #[test]
    fn the_two_dialects_read_differently() {
        let reads = |d, s| Constraint::parse(s, d, &Range::synthetic("test")).is_some();
        for (text, provider, module) in [
            ("", false, false),
            ("v1.0", false, true),
            ("1.2.3.4", false, true),
            (">=  1.0", false, true),
            (">= 1.0,", false, false),
            ("=> 1.0", false, false),
            ("1.x", false, false),
            (">=1.0, <2", true, true),
        ] {
            assert_eq!(reads(Dialect::Provider, text), provider, "provider {text:?}");
            assert_eq!(reads(Dialect::Module, text), module, "module {text:?}");
        }
    }
}
