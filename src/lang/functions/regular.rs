//! Regular expressions, in the syntax of RE2.

use std::iter::Peekable;
use std::str::Chars;

use cty::{Type, Value};
use regex::Regex;

use super::{CallError, CallResult, Function, Returns, Surroundings, string, text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new(
        "regex",
        &[string("pattern"), string("string")],
        Returns::By(regex_type),
        regex,
    )
    .nullable(),
    Function::new(
        "regexall",
        &[string("pattern"), string("string")],
        Returns::By(regexall_type),
        regexall,
    ),
];

fn pattern(args: &[Value]) -> CallResult<Option<Regex>> {
    match args.first().and_then(Value::as_str) {
        Some(pattern) => compile(pattern).map(Some).map_err(|e| CallError::argument(0, e)),
        None => Ok(None),
    }
}

/// The type of one match: text, a tuple of groups, or an object of named groups.
fn match_type(pattern: &Regex) -> CallResult<Type> {
    let groups = pattern.captures_len() - 1;
    let names: Vec<&str> = pattern.capture_names().flatten().collect();
    if groups == 0 {
        Ok(Type::String)
    } else if names.is_empty() {
        Ok(Type::tuple(vec![Type::String; groups]))
    } else if names.len() == groups {
        Ok(Type::object(names.into_iter().map(|n| (n, Type::String))))
    } else {
        Err(CallError::argument(
            0,
            "invalid regexp pattern: cannot mix both named and unnamed capture groups",
        ))
    }
}

fn regex_type(args: &[Value]) -> CallResult<Type> {
    pattern(args)?.map_or(Ok(Type::Dynamic), |p| match_type(&p))
}

fn regexall_type(args: &[Value]) -> CallResult<Type> {
    Ok(Type::list(regex_type(args)?))
}

fn match_value(captures: &regex::Captures<'_>, pattern: &Regex, ty: &Type) -> Value {
    let group =
        |m: Option<regex::Match<'_>>| m.map_or_else(|| Value::null(Type::String), |m| Value::string(m.as_str()));
    match ty {
        Type::Tuple(_) => Value::tuple((1..captures.len()).map(|i| group(captures.get(i))).collect()),
        Type::Object(_) => Value::object(
            pattern
                .capture_names()
                .flatten()
                .map(|n| (n.to_owned(), group(captures.name(n)))),
        ),
        _ => group(captures.get(0)),
    }
}

fn regex(args: &[Value], ty: &Type, _: &Surroundings<'_>) -> CallResult {
    let Some(pattern) = pattern(args)? else {
        return Ok(Value::dynamic());
    };
    match pattern.captures(text(args, 1)) {
        Some(captures) => Ok(match_value(&captures, &pattern, ty)),
        None => Err(CallError::failed("pattern did not match any part of the given string")),
    }
}

fn regexall(args: &[Value], ty: &Type, _: &Surroundings<'_>) -> CallResult {
    let Some(pattern) = pattern(args)? else {
        return Ok(Value::dynamic());
    };
    let element = ty.element().cloned().unwrap_or(Type::String);
    let all = pattern
        .captures_iter(text(args, 1))
        .map(|c| match_value(&c, &pattern, &element))
        .collect();
    Ok(Value::list(element, all))
}

/// Compiles a pattern of RE2.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    let invalid = |why: String| format!("invalid regexp pattern: {why} in {pattern}");
    regex::RegexBuilder::new(&translate(pattern))
        .octal(true)
        .size_limit(32 << 20)
        .build()
        .map_err(|e| match e {
            regex::Error::Syntax(long) => {
                let why = long
                    .lines()
                    .filter_map(|l| l.trim().strip_prefix("error: "))
                    .next_back();
                invalid(
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
            regex::Error::CompiledTooBig(_) => invalid("expression too large".to_owned()),
            other => invalid(other.to_string()),
        })
}

/// The same pattern in the dialect of the `regex` crate, which reads `\d`, `\w`, `\s` and `\b` by Unicode, has operators
/// inside classes, and insists on escaping a brace that repeats nothing.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut chars = pattern.chars().peekable();
    let mut class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(&mut chars, class, &mut out),
            '[' if !class => {
                class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                let rest: String = chars.clone().collect();
                match rest.find(":]") {
                    Some(end) => {
                        out.push('[');
                        out.push_str(&rest[..end + 2]);
                        for _ in rest[..end + 2].chars() {
                            chars.next();
                        }
                    }
                    None => out.push_str("\\["),
                }
            }
            '[' => out.push_str("\\["),
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            '-' if class && chars.peek() == Some(&'-') => out.push_str("\\-"),
            '{' if !class && !is_repetition(chars.clone()) => out.push_str("\\{"),
            _ => out.push(c),
        }
    }
    out
}

fn is_repetition(mut chars: Peekable<Chars<'_>>) -> bool {
    let mut digits = 0;
    while chars.next_if(char::is_ascii_digit).is_some() {
        digits += 1;
    }
    if digits > 0 && chars.next_if_eq(&',').is_some() {
        while chars.next_if(char::is_ascii_digit).is_some() {}
    }
    digits > 0 && chars.next() == Some('}')
}

fn escape(chars: &mut Peekable<Chars<'_>>, class: bool, out: &mut String) {
    let Some(c) = chars.next() else {
        out.push('\\');
        return;
    };
    let set = match c.to_ascii_lowercase() {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0C\\r ",
        _ => "",
    };
    match c {
        'd' | 'w' | 's' if class => out.push_str(set),
        'd' | 'w' | 's' => {
            out.push('[');
            out.push_str(set);
            out.push(']');
        }
        'D' | 'W' | 'S' => {
            out.push_str("[^");
            out.push_str(set);
            out.push(']');
        }
        'b' if !class => out.push_str("(?-u:\\b)"),
        '<' | '>' => out.push(c),
        'Q' => {
            let rest: String = chars.clone().collect();
            let quoted = rest.find("\\E").map_or(rest.as_str(), |end| &rest[..end]);
            out.push_str(&regex::escape(quoted));
            for _ in 0..quoted.chars().count() + 2 {
                chars.next();
            }
        }
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
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
            let found = compile(pattern).unwrap();
            assert_eq!(found.find(text).map(|m| m.as_str()), expected, "{pattern}");
        }
    }
}
