//! Rules of `.terraformignore`: the files of a directory that are not uploaded.
//!
//! The patterns look like those of `.gitignore`, but have another meaning. A pattern is compared with the whole path
//! below the root. So `name` excludes files of that name in any directory, while only `name/` excludes the contents of
//! a directory. The last matching rule decides. The sources are the published documentation of the file and the
//! behaviour of Terraform.

use regex::Regex;

pub const FILE: &str = ".terraformignore";

/// Rules that precede those of the file, which can revoke them.
const DEFAULTS: &str = ".terraform/\n!.terraform/modules/\n.git/\n";

/// Rules of a `.terraformignore` file, after the default rules.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Lines that are not valid rules.
    pub invalid: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    pattern: Regex,
    negated: bool,
}

/// Result of the rules for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The path is excluded.
    pub excluded: bool,
    /// True if the content of an excluded directory is excluded, too: no later rule includes a part of it.
    pub below_too: bool,
}

impl Rules {
    /// Parses the text of a file, and appends its rules to the default ones.
    #[must_use]
    pub fn parse(text: &str) -> Rules {
        let mut rules = Vec::new();
        let mut invalid = Vec::new();
        for line in DEFAULTS.lines().chain(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (negated, pattern) = match line.strip_prefix('!') {
                Some(rest) => (true, rest),
                None => (false, line),
            };
            match (pattern.is_empty(), Regex::new(&expression(pattern))) {
                (false, Ok(pattern)) => rules.push(Rule { pattern, negated }),
                _ => invalid.push(line.to_owned()),
            }
        }
        Rules { rules, invalid }
    }

    /// Decides about a path below the root, with slashes as separators. The path of a directory ends with a slash.
    #[must_use]
    pub fn verdict(&self, path: &str) -> Verdict {
        let last = self.rules.iter().rposition(|rule| rule.pattern.is_match(path));
        let Some((last, rule)) = last.and_then(|i| Some((i, self.rules.get(i)?))) else {
            return Verdict::default();
        };
        let later = self.rules.get(last + 1..).unwrap_or_default();
        Verdict {
            excluded: !rule.negated,
            // A later negated rule may include a path below the directory, so the directory is read if there is
            // such a rule.
            below_too: !rule.negated && !later.iter().any(|rule| rule.negated),
        }
    }
}

/// Translates a pattern into a regular expression: `*` and `?` do not match slashes, `**` does.
fn expression(pattern: &str) -> String {
    let pattern = match pattern.strip_suffix('/') {
        Some(dir) => format!("{dir}/**"),
        None => pattern.to_owned(),
    };
    let pattern = match pattern.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None => format!("**/{pattern}"),
    };
    let mut out = String::from("^");
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also matches no directory at all, so the slash is part of the match.
                rest.next_if_eq(&'/');
                out.push_str(if rest.peek().is_none() { ".*" } else { "(?:.*/)?" });
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            // Character sets have the same syntax in patterns and regular expressions, except for their
            // negation.
            '[' => {
                out.push('[');
                if rest.next_if_eq(&'!').is_some() || rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                for c in rest.by_ref() {
                    // These characters would have a meaning in the regular expression that they do not have in
                    // the pattern.
                    if c == '[' || c == '\\' {
                        out.push('\\');
                    }
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '\\' => {
                let escaped = rest.next().unwrap_or('\\');
                out.push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4])));
            }
            c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out.push('$');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(rules: &str, path: &str) -> bool {
        Rules::parse(rules).verdict(path).excluded
    }

    #[test]
    fn data_and_history_stay_out_and_modules_do_not() {
        for path in [
            ".terraform/",
            ".terraform/environment",
            "sub/.terraform/x/y",
            ".git/config",
        ] {
            assert!(excluded("", path), "{path}");
        }
        for path in [
            ".terraform/modules/a/main.tf",
            "main.tf",
            ".gitignore",
            ".terraform.lock.hcl",
        ] {
            assert!(!excluded("", path), "{path}");
        }
        assert!(!excluded("!.terraform/", ".terraform/environment"));
    }

    #[test]
    fn patterns_match_whole_paths() {
        let cases: &[(&str, &str, bool)] = &[
            ("name", "a/name", true),
            ("name", "name/file", false),
            ("name/", "a/name/file", true),
            ("/name", "a/name", false),
            ("/a/*.tf", "a/x.tf", true),
            ("/a/*.tf", "a/b/x.tf", false),
            ("a/**/x", "a/b/c/x", true),
            ("a/**/x", "a/x", true),
            ("?.txt", "b.txt", true),
            ("[!a].txt", "b.txt", true),
            ("[a-c].txt", "d.txt", false),
            ("a+b.(tf)", "a+b.(tf)", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("# x", "# x", false),
        ];
        for (rules, path, expected) in cases {
            assert_eq!(excluded(rules, path), *expected, "{rules} {path}");
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let rules = Rules::parse("logs/\n!logs/keep\n*.bak\n");
        assert!(!rules.verdict("logs/keep").excluded);
        let logs = rules.verdict("logs/");
        assert!(logs.excluded && !logs.below_too);
        assert!(rules.verdict("x.bak").below_too);
        assert_eq!(Rules::parse("[z\n!\n").invalid, ["[z", "!"]);
    }
}
