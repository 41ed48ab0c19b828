//! Functions for regular expressions, in the syntax of RE2.

use std::collections::BTreeMap;

use cty::{Type, Value};
use regex::Regex;

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, string, text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "regex",
        &[string("pattern"), string("string")],
        Returns::By(regex_type),
        regex,
    ),
    Function::new(
        "regexall",
        &[string("pattern"), string("string")],
        Returns::By(regexall_type),
        regexall,
    ),
];

/// A compiled pattern, with the names of its groups as written.
pub(super) struct Pattern {
    pub(super) regex: Regex,
    names: Vec<Option<String>>,
}

impl Pattern {
    /// Replaces each match by an expansion of a template: `$1`, `${name}`, and `$$` for a dollar.
    pub(super) fn replace_all(&self, text: &str, template: &str) -> String {
        let expanded = |captures: &regex::Captures<'_>| self.expand(captures, template);
        self.regex.replace_all(text, expanded).into_owned()
    }

    fn expand(&self, captures: &regex::Captures<'_>, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            rest = after;
            // References to groups are expanded by the rules of Go's Regexp.Expand, which differ from those of
            // the regex crate.
            if let Some(after) = rest.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let is_name = |c: char| c == '_' || c.is_alphanumeric();
            let found = match rest.strip_prefix('{') {
                Some(inside) => inside
                    .split_once('}')
                    .filter(|(name, _)| !name.is_empty() && name.chars().all(is_name)),
                None => {
                    let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                    Some(rest.split_at(end)).filter(|(name, _)| !name.is_empty())
                }
            };
            let Some((name, after)) = found else {
                out.push('$');
                continue;
            };
            rest = after;
            let group = match name.parse::<usize>() {
                Ok(number) if name.bytes().all(|b| b.is_ascii_digit()) => captures.get(number),
                // If several groups have the same name, the first one in the match counts.
                _ => (1..captures.len())
                    .filter(|i| self.names.get(i - 1).is_some_and(|n| n.as_deref() == Some(name)))
                    .find_map(|i| captures.get(i)),
            };
            out.push_str(group.map_or("", |m| m.as_str()));
        }
        out.push_str(rest);
        out
    }
}

/// An invalid pattern: description, and the invalid part.
pub(super) struct PatternError {
    pub(super) why: String,
    pub(super) part: String,
}

fn pattern(args: &[Value]) -> CallResult<Option<Pattern>> {
    let invalid = |e: PatternError| {
        let message = format!("invalid regexp pattern: {} in {}", e.why, e.part);
        CallError::argument(0, message)
    };
    match args.first().and_then(Value::as_str) {
        Some(pattern) => compile(pattern).map(Some).map_err(invalid),
        None => Ok(None),
    }
}

/// Returns the type of a match: text, a tuple of groups, or an object of named groups.
fn match_type(pattern: &Pattern) -> CallResult<Type> {
    let groups = pattern.names.len();
    let names: Vec<&String> = pattern.names.iter().flatten().collect();
    if groups == 0 {
        Ok(Type::String)
    } else if names.is_empty() {
        Ok(Type::tuple(vec![Type::String; groups]))
    } else if names.len() == groups {
        Ok(Type::object(names.into_iter().map(|n| (n.as_str(), Type::String))))
    } else {
        Err(CallError::argument(
            0,
            "the pattern has capture groups with names and others without; give all of them names, or none",
        ))
    }
}

fn regex_type(args: &[Value]) -> CallResult<Type> {
    pattern(args)?.map_or(Ok(Type::Dynamic), |p| match_type(&p))
}

fn regexall_type(args: &[Value]) -> CallResult<Type> {
    Ok(Type::list(regex_type(args)?))
}

fn match_value(captures: &regex::Captures<'_>, pattern: &Pattern, ty: &Type) -> Value {
    let group =
        |m: Option<regex::Match<'_>>| m.map_or_else(|| Value::null(Type::String), |m| Value::string(m.as_str()));
    match ty {
        Type::Tuple(_) => Value::tuple((1..captures.len()).map(|i| group(captures.get(i))).collect()),
        // If several groups have the same name, the last one counts.
        Type::Object(_) => Value::object(
            pattern
                .names
                .iter()
                .enumerate()
                .filter_map(|(i, name)| Some((name.clone()?, group(captures.get(i + 1)))))
                .collect::<BTreeMap<_, _>>(),
        ),
        _ => group(captures.get(0)),
    }
}

fn regex(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let Some(pattern) = pattern(args)? else {
        return Ok(Value::dynamic());
    };
    match pattern.regex.captures(text(args, 1)) {
        Some(captures) => Ok(match_value(&captures, &pattern, ty)),
        None => Err(CallError::failed("no part of the string matches the pattern")),
    }
}

fn regexall(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let Some(pattern) = pattern(args)? else {
        return Ok(Value::dynamic());
    };
    let element = ty.element().cloned().unwrap_or(Type::String);
    let all = pattern
        .regex
        .captures_iter(text(args, 1))
        .map(|c| match_value(&c, &pattern, &element))
        .collect();
    Ok(Value::list(element, all))
}

/// Compiles a pattern in the syntax of RE2.
pub(super) fn compile(pattern: &str) -> Result<Pattern, PatternError> {
    let whole = |why: String| PatternError {
        why,
        part: pattern.to_owned(),
    };
    let translated = Translation::new(pattern)?;
    let regex = regex::RegexBuilder::new(&translated.out)
        // RE2 has octal escapes.
        .octal(true)
        // The limit is higher than the default, because nested repetitions of Unicode classes are large.
        .size_limit(32 << 20)
        .build()
        .map_err(|e| match e {
            regex::Error::Syntax(long) => {
                let why = long
                    .lines()
                    .filter_map(|l| l.trim().strip_prefix("error: "))
                    .next_back();
                whole(
                    match why.unwrap_or("syntax error") {
                        "unclosed group" => "missing closing )",
                        "unopened group" => "unexpected )",
                        "unclosed character class" => "missing closing ]",
                        "repetition operator missing expression" => "missing argument to repetition operator",
                        other => other,
                    }
                    .to_owned(),
                )
            }
            regex::Error::CompiledTooBig(_) => whole("expression too large".to_owned()),
            other => whole(other.to_string()),
        })?;
    Ok(Pattern {
        regex,
        names: translated.names,
    })
}

/// Named classes of ASCII characters.
const CLASSES: &[&str] = &[
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Limit on repetitions, which is RE2's.
const MOST_REPEATS: usize = 1000;

/// Translation of a pattern to the dialect of the `regex` crate. The dialect differs from RE2: it reads `\d`, `\w`,
/// `\s` and `\b` by Unicode, has operators inside of classes, requires an escape for a brace that repeats nothing, and
/// accepts some forms that RE2 refuses.
struct Translation<'p> {
    rest: &'p str,
    out: String,
    names: Vec<Option<String>>,
}

impl<'p> Translation<'p> {
    fn new(pattern: &'p str) -> Result<Translation<'p>, PatternError> {
        let mut t = Translation {
            rest: pattern,
            out: String::with_capacity(pattern.len() + 16),
            names: Vec::new(),
        };
        t.all()?;
        Ok(t)
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take_if(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn all(&mut self) -> Result<(), PatternError> {
        // `operand` is true if a repetition has something to repeat. `repetition` is the text that begins with the last
        // repetition.
        let mut operand = false;
        let mut repetition: Option<&str> = None;
        while let Some(c) = self.rest.chars().next() {
            let here = self.rest;
            let counted = repeats(here);
            if matches!(c, '*' | '+' | '?') || (c == '{' && counted.is_some()) {
                let length = match counted {
                    Some((length, fits)) if c == '{' => {
                        if !fits {
                            return Err(wrong("invalid repeat count", &here[..length]));
                        }
                        length
                    }
                    _ => 1,
                };
                if !operand {
                    return Err(wrong("missing argument to repetition operator", &here[..length]));
                }
                // The regex crate accepts `a**`; RE2 refuses it.
                if let Some(before) = repetition {
                    let both = &before[..before.len() - here.len() + length];
                    return Err(wrong("invalid nested repetition operator", both));
                }
                self.out.push_str(&here[..length]);
                self.rest = &here[length..];
                if self.take_if('?') {
                    self.out.push('?');
                }
                repetition = Some(here);
                continue;
            }
            repetition = None;
            self.take();
            match c {
                '\\' => self.escape(here, false)?,
                '[' => self.class()?,
                '(' => {
                    self.group(here)?;
                    operand = false;
                    continue;
                }
                '|' => {
                    self.out.push('|');
                    operand = false;
                    continue;
                }
                '{' => self.out.push_str("\\{"),
                _ => self.out.push(c),
            }
            operand = true;
        }
        Ok(())
    }

    /// Translates the text after an opening parenthesis.
    fn group(&mut self, here: &str) -> Result<(), PatternError> {
        let Some(rest) = self.rest.strip_prefix('?') else {
            self.out.push('(');
            self.names.push(None);
            return Ok(());
        };
        if let Some(named) = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<')) {
            let Some((name, after)) = named.split_once('>') else {
                return Err(wrong("invalid named capture", here));
            };
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return Err(wrong("invalid named capture", &here[..here.len() - after.len()]));
            }
            // The regex crate refuses duplicate names and names that begin with a digit. Such groups are only
            // numbered, and `names` contains their names.
            let plain = !name.starts_with(|c: char| c.is_ascii_digit());
            if plain && !self.names.iter().flatten().any(|n| n == name) {
                self.out.push_str(&format!("(?P<{name}>"));
            } else {
                self.out.push('(');
            }
            self.names.push(Some(name.to_owned()));
            self.rest = after;
            return Ok(());
        }
        for (i, c) in rest.char_indices() {
            match c {
                'i' | 'm' | 's' | 'U' | '-' => {}
                ':' | ')' => {
                    self.out.push_str("(?");
                    self.out.push_str(&rest[..=i]);
                    self.rest = &rest[i + 1..];
                    return Ok(());
                }
                _ => {
                    return Err(wrong(
                        "invalid or unsupported Perl syntax",
                        &here[..2 + i + c.len_utf8()],
                    ));
                }
            }
        }
        Err(wrong("missing closing )", here))
    }

    /// Translates the text after an opening bracket.
    fn class(&mut self) -> Result<(), PatternError> {
        self.out.push('[');
        if self.take_if('^') {
            self.out.push('^');
        }
        if self.take_if(']') {
            self.out.push_str("\\]");
        }
        loop {
            let here = self.rest;
            let Some(c) = self.take() else { return Ok(()) };
            match c {
                ']' => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape(here, true)?,
                '[' => match here.strip_prefix("[:").and_then(|r| r.find(":]")) {
                    Some(end) => {
                        let name = &here[..end + 4];
                        if !CLASSES.contains(&name.trim_matches(['[', ']', ':', '^'])) {
                            return Err(wrong("invalid character class range", name));
                        }
                        self.out.push_str(name);
                        self.rest = &here[name.len()..];
                    }
                    None => self.out.push_str("\\["),
                },
                // If they are doubled, these characters are operators of the regex crate.
                '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '-' if self.rest.starts_with('-') => self.out.push_str("\\-"),
                _ => {
                    let mut after = self.rest.strip_prefix('-').unwrap_or("\\").chars();
                    if let Some(high) = after.next().filter(|high| !matches!(high, '\\' | ']' | '['))
                        && high < c
                    {
                        return Err(wrong(
                            "invalid character class range",
                            &here[..here.len() - after.as_str().len()],
                        ));
                    }
                    self.out.push(c);
                }
            }
        }
    }

    /// Translates the text after `\x`: two hexadecimal digits, or any number of them in braces.
    fn code_point(&mut self, here: &'p str, class: bool) -> Result<(), PatternError> {
        let (digits, length) = match self.rest.strip_prefix('{') {
            Some(inside) => match inside.split_once('}') {
                Some((digits, _)) => (digits, digits.len() + 2),
                None => return Err(wrong("invalid escape sequence", here)),
            },
            None => match self.rest.get(..2) {
                Some(digits) => (digits, 2),
                None => return Err(wrong("invalid escape sequence", here)),
            },
        };
        let code = Some(digits)
            .filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|d| u32::from_str_radix(d, 16).ok())
            .filter(|code| *code <= u32::from(char::MAX));
        let Some(code) = code else {
            return Err(wrong("invalid escape sequence", &here[..(2 + length).min(here.len())]));
        };
        self.rest = &self.rest[length..];
        if char::from_u32(code).is_some() {
            self.out.push_str(&format!("\\x{{{code:X}}}"));
        } else {
            // The syntax allows surrogates, but no text contains one.
            self.nothing(false, class);
        }
        Ok(())
    }

    /// Adds a class that matches no character, or every character if `negative` is true.
    fn nothing(&mut self, negative: bool, class: bool) {
        self.out.push_str(match (negative, class) {
            (false, false) => r"[^\x{0}-\x{10FFFF}]",
            (true, false) => r"[\x{0}-\x{10FFFF}]",
            (false, true) => r"[^\x{0}-\x{10FFFF}]",
            (true, true) => r"\x{0}-\x{10FFFF}",
        });
    }

    /// Translates the text after a backslash.
    fn escape(&mut self, here: &'p str, class: bool) -> Result<(), PatternError> {
        let Some(c) = self.take() else {
            return Err(wrong("trailing backslash at end of expression", ""));
        };
        let set = match c.to_ascii_lowercase() {
            'd' => "0-9",
            'w' => "0-9A-Za-z_",
            's' => "\\t\\n\\x0C\\r ",
            _ => "",
        };
        let shown = &here[..1 + c.len_utf8()];
        match c {
            'd' | 'w' | 's' if class => self.out.push_str(set),
            'd' | 'w' | 's' => self.out.push_str(&format!("[{set}]")),
            'D' | 'W' | 'S' => self.out.push_str(&format!("[^{set}]")),
            // Word boundaries are those of ASCII, as in RE2.
            'b' if !class => self.out.push_str("(?-u:\\b)"),
            'x' => self.code_point(here, class)?,
            'p' | 'P' => {
                let length = match self.rest.chars().next() {
                    Some('{') => self.rest.find('}').map_or(self.rest.len(), |i| i + 1),
                    Some(one) => one.len_utf8(),
                    None => 0,
                };
                let property = &here[..2 + length];
                let name = property[2..].trim_start_matches('{').trim_end_matches('}');
                // A caret negates the property once more.
                let (name, other) = match name.strip_prefix('^') {
                    Some(name) => (name, true),
                    None => (name, false),
                };
                let negative = (c == 'P') != other;
                self.rest = &here[property.len()..];
                match known_property(name) {
                    Some(Property::Surrogates) => self.nothing(negative, class),
                    Some(Property::Named(known)) => {
                        let letter = if negative { 'P' } else { 'p' };
                        self.out.push_str(&format!("\\{letter}{{{known}}}"));
                    }
                    None => return Err(wrong("invalid character class range", property)),
                }
            }
            'Q' if !class => {
                let quoted = self.rest.find("\\E").map_or(self.rest, |end| &self.rest[..end]);
                self.out.push_str(&regex::escape(quoted));
                let after = &self.rest[quoted.len()..];
                self.rest = after.strip_prefix("\\E").unwrap_or(after);
            }
            '1'..='7' if !self.rest.starts_with(|d| matches!(d, '0'..='7')) => {
                return Err(wrong("invalid escape sequence", shown));
            }
            '0'..='7' | 'A' | 'B' | 'z' | 'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.out.push_str(shown),
            '<' | '>' => self.out.push(c),
            c if c.is_ascii_punctuation() => self.out.push_str(shown),
            _ => return Err(wrong("invalid escape sequence", shown)),
        }
        Ok(())
    }
}

enum Property {
    /// Property that no character of a valid text has.
    Surrogates,
    /// A property that the `regex` crate knows by this name.
    Named(String),
}

/// Returns the property that RE2 knows by a name: a general category by its short or long name, a script by its long
/// one. Case, blanks, underscores and hyphens are ignored (since Go 1.25, with which Terraform 1.16 is built).
fn known_property(name: &str) -> Option<Property> {
    let plain: String = name.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).collect();
    let plain = plain.to_ascii_lowercase();
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_lowercase()) {
        return None;
    }
    if matches!(&*plain, "cs" | "surrogate") {
        return Some(Property::Surrogates);
    }
    let forms = [format!("gc={plain}"), format!("Script={plain}")];
    // The crate has no list of its properties, so a pattern with the property is compiled as a test.
    let known = forms
        .into_iter()
        .find(|form| Regex::new(&format!("\\p{{{form}}}")).is_ok());
    known.map(Property::Named)
}

fn wrong(why: &str, part: &str) -> PatternError {
    PatternError {
        why: why.to_owned(),
        part: part.to_owned(),
    }
}

/// Parses a repetition such as `{2,3}` at the beginning of a text; `None` if there is none. Returns its length, and
/// true if its numbers are allowed.
fn repeats(text: &str) -> Option<(usize, bool)> {
    let end = text.strip_prefix('{')?.find('}')?;
    let inside = &text[1..=end];
    let (low, high) = match inside.split_once(',') {
        Some((low, high)) => (low, Some(high)),
        None => (inside, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if low.is_empty() || !digits(low) || !high.is_none_or(digits) {
        return None;
    }
    let number = |s: &str| s.parse::<usize>().unwrap_or(usize::MAX);
    let low = number(low);
    let high = high.filter(|h| !h.is_empty()).map(number);
    let fits = low <= MOST_REPEATS && high.is_none_or(|h| h <= MOST_REPEATS && low <= h);
    Some((end + 2, fits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ascii_as_in_re2() {
        for (pattern, text, expected) in [
            (r"\d+", "٣42", Some("42")),
            (r"\w+", "éabc", Some("abc")),
            (r"[\w-]+", "a-b.c", Some("a-b")),
            (r"[[:alpha:]&&]+", "a&b", Some("a&b")),
            (r"a{,2}", "a{,2}", Some("a{,2}")),
            (r"[[a]+", "[a[", Some("[a[")),
            (r"\Qa.b\E.", "a.bc", Some("a.bc")),
            (r"\S", " \u{b}", Some("\u{b}")),
        ] {
            let found = compile(pattern).ok().unwrap().regex;
            assert_eq!(found.find(text).map(|m| m.as_str()), expected, "{pattern}");
        }
    }
}
