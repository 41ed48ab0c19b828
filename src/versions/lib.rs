//! Versions and version constraints.
//!
//! For historical reasons there are two dialects of constraints: a strict one for providers, and a lenient one for
//! modules and for the version of Terraform itself ([`Dialect`]). All versions are parsed and compared here: those of
//! modules, providers, plugins and of the program.

use std::cmp::Ordering;
use std::fmt;

/// A version: numbers, an optional pre-release and optional build metadata. Ordered by precedence.
#[derive(Clone, Debug)]
pub struct Version {
    /// Three numbers or, in the lenient dialect, more.
    numbers: Vec<u64>,
    /// The part after `-`; may be empty.
    pre: semver::Prerelease,
    /// The part after `+`, without influence on the order.
    build: semver::BuildMetadata,
}

/// The syntax of versions and constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Providers: at most three numbers, no `v`, at most one blank after the operator; `~> 1` is below 2.
    Provider,
    /// Modules and `required_version`: any count of numbers, an optional `v`, any blanks; `~> 1` has no upper bound.
    Module,
}

/// The error for text that is not a version or constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct VersionError(String);

impl Version {
    #[must_use]
    pub fn new(major: u64, minor: u64, patch: u64) -> Version {
        Version {
            numbers: vec![major, minor, patch],
            pre: semver::Prerelease::EMPTY,
            build: semver::BuildMetadata::EMPTY,
        }
    }

    /// Parses the version of a provider: exactly three numbers.
    pub fn parse(text: &str) -> Result<Version, VersionError> {
        match Written::parse(text, Dialect::Provider)? {
            Written { version, parts: 3 } => Ok(version),
            _ => Err(VersionError(format!(
                "\"{text}\" is not a version: it must have three numbers, like 1.2.3"
            ))),
        }
    }

    /// Parses the version of a module or of Terraform itself.
    pub fn parse_lenient(text: &str) -> Result<Version, VersionError> {
        Written::parse(text.trim(), Dialect::Module).map(|w| w.version)
    }

    #[must_use]
    pub fn is_prerelease(&self) -> bool {
        !self.pre.is_empty()
    }

    /// Returns the numbers: three, or more in the lenient dialect.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Returns the version without pre-release and build metadata.
    #[must_use]
    pub fn core(&self) -> Version {
        Version {
            numbers: self.numbers.clone(),
            pre: semver::Prerelease::EMPTY,
            build: semver::BuildMetadata::EMPTY,
        }
    }

    fn number(&self, index: usize) -> u64 {
        self.numbers.get(index).copied().unwrap_or(0)
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Version) -> Ordering {
        let longest = self.numbers.len().max(other.numbers.len());
        let numbers = (0..longest)
            .map(|i| self.number(i).cmp(&other.number(i)))
            .find(|o| o.is_ne());
        numbers.unwrap_or_else(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Version) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares by precedence, which ignores build metadata.
impl PartialEq for Version {
    fn eq(&self, other: &Version) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, number) in self.numbers.iter().enumerate() {
            write!(f, "{}{number}", if i == 0 { "" } else { "." })?;
        }
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

/// A version and the count of numbers in its text.
struct Written {
    version: Version,
    parts: usize,
}

impl Written {
    fn parse(text: &str, dialect: Dialect) -> Result<Written, VersionError> {
        let malformed = |why: &str| VersionError(format!("\"{text}\" is not a version: {why}"));
        let rest = match dialect {
            Dialect::Provider => text,
            Dialect::Module => text.strip_prefix('v').unwrap_or(text),
        };
        // The build metadata is split off first, because it may contain dashes, while a pre-release contains no plus
        // sign.
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(r, b)| (r, Some(b)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(c, p)| (c, Some(p)));
        let mut numbers = Vec::new();
        for part in core.split('.') {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(malformed("its parts must be numbers"));
            }
            // Semantic versions have no leading zeros.
            if dialect == Dialect::Provider && part.len() > 1 && part.starts_with('0') {
                return Err(malformed("its numbers must not begin with zero"));
            }
            numbers.push(part.parse().map_err(|_| malformed("a number is too large"))?);
        }
        let parts = numbers.len();
        if dialect == Dialect::Provider && parts > 3 {
            return Err(malformed("it has more than three numbers"));
        }
        // The canonical form has three numbers, even for `1.2`.
        numbers.resize(parts.max(3), 0);
        let pre = match pre {
            None => semver::Prerelease::EMPTY,
            Some("") => return Err(malformed("nothing follows the dash")),
            Some(pre) => semver::Prerelease::new(pre).map_err(|_| malformed("its pre-release part is not valid"))?,
        };
        let build = match build {
            None => semver::BuildMetadata::EMPTY,
            Some("") => return Err(malformed("nothing follows the plus sign")),
            Some(build) => {
                semver::BuildMetadata::new(build).map_err(|_| malformed("its build metadata is not valid"))?
            }
        };
        Ok(Written {
            version: Version { numbers, pre, build },
            parts,
        })
    }
}

/// The operator of a term, in the order of the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Op {
    Greater,
    GreaterOrEqual,
    Equal,
    Pessimistic,
    LessOrEqual,
    Less,
    NotEqual,
}

// An operator comes before its own prefixes: `>=` before `>`.
const OPS: [(&str, Op); 7] = [
    (">=", Op::GreaterOrEqual),
    ("<=", Op::LessOrEqual),
    ("!=", Op::NotEqual),
    ("~>", Op::Pessimistic),
    (">", Op::Greater),
    ("<", Op::Less),
    ("=", Op::Equal),
];

/// One condition on a version.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    op: Op,
    version: Version,
    /// The count of leading numbers that `~>` fixes.
    fixed: usize,
}

/// Conditions on a version, all of which must hold. Without conditions, every version except pre-releases is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints(Vec<Term>);

impl Constraints {
    #[must_use]
    pub fn any() -> Constraints {
        Constraints::default()
    }

    #[must_use]
    pub fn exactly(version: Version) -> Constraints {
        Constraints(vec![Term {
            op: Op::Equal,
            version,
            fixed: 0,
        }])
    }

    /// Parses the constraints on a provider.
    pub fn parse(text: &str) -> Result<Constraints, VersionError> {
        Constraints::parse_dialect(text, Dialect::Provider)
    }

    /// Parses constraints in a dialect.
    pub fn parse_dialect(text: &str, dialect: Dialect) -> Result<Constraints, VersionError> {
        if text.trim().is_empty() {
            return Err(VersionError("a version constraint must not be empty".to_owned()));
        }
        let terms = text
            .split(',')
            .map(|term| Term::parse(term, dialect))
            .collect::<Result<_, _>>()?;
        Ok(Constraints(terms))
    }

    /// Combines two sets of conditions.
    #[must_use]
    pub fn and(mut self, others: Constraints) -> Constraints {
        self.0.extend(others.0);
        self
    }

    /// Returns true if there are no conditions.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the version meets all conditions. A pre-release must also be named exactly by one of them.
    #[must_use]
    pub fn allows(&self, version: &Version) -> bool {
        // Ranges do not select pre-releases, as in Terraform.
        let named = !version.is_prerelease() || self.0.iter().any(|t| t.op == Op::Equal && t.version == *version);
        named && self.0.iter().all(|t| t.allows(version))
    }
}

/// Formats the canonical form of the lock file: sorted, without duplicates, with versions of three numbers.
impl fmt::Display for Constraints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms: Vec<&Term> = self.0.iter().collect();
        // Between two `~>` with the same version, the narrower one is first.
        terms.sort_by(|a, b| (&a.version, a.op, b.fixed).cmp(&(&b.version, b.op, a.fixed)));
        terms.dedup();
        for (i, term) in terms.iter().enumerate() {
            write!(f, "{}{term}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Term {
    fn parse(text: &str, dialect: Dialect) -> Result<Term, VersionError> {
        let malformed = |why: &str| VersionError(format!("\"{}\" is not a version constraint: {why}", text.trim()));
        let text = text.trim();
        if text.is_empty() {
            return Err(malformed("there is nothing between two commas, or after the last"));
        }
        let found = OPS
            .iter()
            .find_map(|(word, op)| text.strip_prefix(word).map(|rest| (*op, rest)));
        let (op, rest) = found.unwrap_or((Op::Equal, text));
        let rest = match dialect {
            Dialect::Provider => rest.strip_prefix(' ').unwrap_or(rest),
            Dialect::Module => rest.trim_start(),
        };
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == 'v') {
            return Err(malformed(
                "an operator (one of = != > >= < <= ~>) and a version are expected",
            ));
        }
        let Written { version, parts } = Written::parse(rest, dialect)?;
        // `~> 1.2.3` fixes two numbers, and `~> 1.2` fixes one. A single number is fixed for providers only.
        let fixed = match (op, parts, dialect) {
            (Op::Pessimistic, 1, Dialect::Provider) => 1,
            (Op::Pessimistic, parts, _) => parts - 1,
            _ => 0,
        };
        Ok(Term { op, version, fixed })
    }

    fn allows(&self, version: &Version) -> bool {
        let order = version.cmp(&self.version);
        match self.op {
            Op::Equal => order.is_eq(),
            Op::NotEqual => order.is_ne(),
            Op::Greater => order.is_gt(),
            Op::GreaterOrEqual => order.is_ge(),
            Op::Less => order.is_lt(),
            Op::LessOrEqual => order.is_le(),
            Op::Pessimistic => order.is_ge() && (0..self.fixed).all(|i| version.number(i) == self.version.number(i)),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Op::Equal => {}
            // A third number would make the constraint narrower.
            Op::Pessimistic if self.fixed == 1 && !self.version.is_prerelease() => {
                return write!(f, "~> {}.{}", self.version.number(0), self.version.number(1));
            }
            op => {
                let word = OPS.iter().find(|(_, o)| *o == op).map_or("", |(word, _)| word);
                write!(f, "{word} ")?;
            }
        }
        write!(f, "{}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(dialect: Dialect, constraints: &str, version: &str) -> bool {
        let version = Version::parse_lenient(version).unwrap();
        Constraints::parse_dialect(constraints, dialect)
            .unwrap()
            .allows(&version)
    }

    #[test]
    fn operators() {
        for (constraints, yes, no) in [
            ("1.2.3", "1.2.3", "1.2.4"),
            ("= 1.2", "1.2.0", "1.2.1"),
            ("!= 1.2.3", "1.2.4", "1.2.3"),
            ("> 1.2", "1.2.1", "1.2.0"),
            (">= 1.2", "1.2.0", "1.1.9"),
            ("< 2", "1.99.0", "2.0.0"),
            ("<= 2", "2.0.0", "2.0.1"),
            ("~> 1.2.3", "1.2.9", "1.3.0"),
            ("~> 1.2", "1.9.0", "2.0.0"),
            (">= 1.0, < 2.0, != 1.5.0", "1.5.1", "1.5.0"),
        ] {
            for dialect in [Dialect::Provider, Dialect::Module] {
                assert!(allows(dialect, constraints, yes), "{constraints} should allow {yes}");
                assert!(!allows(dialect, constraints, no), "{constraints} should not allow {no}");
            }
        }
        assert!(!allows(Dialect::Provider, "~> 1", "2.0.0"));
        assert!(allows(Dialect::Module, "~> 1", "2.0.0"));
    }

    #[test]
    fn a_prerelease_must_be_named() {
        for constraints in [">= 1.0.0", "~> 2.0", ">= 2.0.0-beta1", "!= 1.0.0"] {
            assert!(!allows(Dialect::Provider, constraints, "2.0.0-beta1"), "{constraints}");
        }
        for constraints in ["2.0.0-beta1", "= 2.0.0-beta1", "= 2.0.0-beta1, >= 1.0.0"] {
            assert!(allows(Dialect::Provider, constraints, "2.0.0-beta1"), "{constraints}");
        }
        assert!(!Constraints::any().allows(&Version::parse("1.0.0-rc1").unwrap()));
    }

    #[test]
    fn the_strict_reader_refuses_what_the_lenient_one_takes() {
        for text in ["v1.0", ">=  1.0", "1.2.3.4", ">= v1", "01.2.3"] {
            assert!(Constraints::parse(text).is_err(), "{text}");
            assert!(Constraints::parse_dialect(text, Dialect::Module).is_ok(), "{text}");
        }
        for text in [
            "", " ", ">= 1.0,", ",", "=> 1.0", "1.x", "*", ">", "1..2", "1.0-", "a", "1.0 2.0",
        ] {
            assert!(Constraints::parse(text).is_err(), "{text}");
            assert!(Constraints::parse_dialect(text, Dialect::Module).is_err(), "{text}");
        }
        assert!(Version::parse("1.2").is_err() && Version::parse("1.2.3").is_ok());
    }

    #[test]
    fn precedence_is_that_of_semantic_versions() {
        let sorted = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-rc.2",
            "1.0.0-rc.10",
            "1.0.0",
            "1.0.1",
        ];
        let versions: Vec<Version> = sorted.iter().map(|v| Version::parse(v).unwrap()).collect();
        assert!(versions.is_sorted_by(|a, b| a < b));
        assert_eq!(Version::parse("1.0.0+a").unwrap(), Version::parse("1.0.0+b").unwrap());
    }

    #[test]
    fn canonical_form() {
        for (written, canonical) in [
            ("~> 2", "~> 2.0"),
            ("~>2.1", "~> 2.1"),
            ("~> 2.1.0", "~> 2.1.0"),
            ("=1.2", "1.2.0"),
            ("< 3, >= 1.5, >=1.5.0", ">= 1.5.0, < 3.0.0"),
            (
                "~> 2, ~> 2.0, ~> 2.0.0, >= 2.0.0, 2.0.0",
                ">= 2.0.0, 2.0.0, ~> 2.0.0, ~> 2.0",
            ),
            (
                "!= 2.1.0, <= 2.5.0, > 1, >=2.0",
                "> 1.0.0, >= 2.0.0, != 2.1.0, <= 2.5.0",
            ),
            (
                "!= 2.0.0, <= 2.0.0, > 2, ~> 2.0, >= 2, = 2",
                "> 2.0.0, >= 2.0.0, 2.0.0, ~> 2.0, <= 2.0.0, != 2.0.0",
            ),
        ] {
            assert_eq!(Constraints::parse(written).unwrap().to_string(), canonical, "{written}");
        }
    }
}
