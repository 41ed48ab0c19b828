//! `format` and `formatlist`: verbs as in C, with Go's details.

use cty::refine::safe_prefix;
use cty::{Number, Refinements, Type, Value};

use super::digits::{exponent, fixed, general};
use super::letters::{clusters, count};
use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, any, string, text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("format", &[string("format")], Returns::String, format)
        .variadic(any("args").null().unknown().dynamic()),
    Function::new("formatlist", &[string("format")], Returns::ListOfString, formatlist)
        .variadic(any("args").null().unknown().dynamic()),
];

fn format(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    match apply(text(args, 0), &args[1..])? {
        Text::Known(text) => Ok(Value::string(text)),
        Text::Prefix(prefix) => Ok(Value::unknown_refined(
            Type::String,
            Refinements {
                not_null: true,
                prefix: Some(safe_prefix(&prefix).into()),
                ..Refinements::default()
            },
        )),
    }
}

fn formatlist(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let rest = &args[1..];
    if rest.is_empty() {
        // Without arguments, the result is one formatted string.
        return match apply(text(args, 0), rest)? {
            Text::Known(text) => Ok(Value::list(Type::String, vec![Value::string(text)])),
            Text::Prefix(_) => super::unknown(ty),
        };
    }
    // An argument that may turn out to be a list makes the length unknown.
    let mut open = rest.iter().any(|v| *v.ty() == Type::Dynamic && !v.is_known());
    let is_list = |v: &Value| matches!(v.ty(), Type::List(_) | Type::Set(_) | Type::Tuple(_)) && !v.is_null();
    let mut length: Option<(usize, usize)> = None;
    for (i, arg) in rest.iter().enumerate().filter(|(_, a)| is_list(a)) {
        let Some(n) = arg
            .len()
            // Unknown elements of a set may turn out to be equal, so its length is unknown.
            .filter(|_| !matches!(arg.ty(), Type::Set(_)) || arg.is_wholly_known())
        else {
            open = true;
            continue;
        };
        match length {
            None => length = Some((n, i)),
            Some((first, _)) if first == n => {}
            Some((first, position)) => {
                return Err(CallError::argument(
                    i + 1,
                    format!(
                        "argument {} has {n} elements and argument {} has {first}; lists must have equal lengths",
                        i + 1,
                        position + 1
                    ),
                ));
            }
        }
    }
    if open {
        return super::unknown(ty);
    }
    let count = length.map_or(1, |(n, _)| n);
    let mut out = Vec::with_capacity(count);
    for row in 0..count {
        let one: Vec<Value> = rest
            .iter()
            .map(|a| {
                if is_list(a) {
                    super::sequence(a)[row].clone()
                } else {
                    a.clone()
                }
            })
            .collect();
        let text = apply(text(args, 0), &one).map_err(|e| match e {
            CallError::Failed(message) | CallError::Argument(_, message) => {
                CallError::Failed(format!("error on format iteration {row}: {message}"))
            }
            other => other,
        })?;
        out.push(match text {
            Text::Known(text) => Value::string(text),
            Text::Prefix(prefix) => Value::unknown_refined(
                Type::String,
                Refinements {
                    not_null: true,
                    prefix: Some(safe_prefix(&prefix).into()),
                    ..Refinements::default()
                },
            ),
        });
    }
    Ok(Value::list(Type::String, out))
}

/// Result of a format.
enum Text {
    Known(String),
    /// An argument is unknown: only the text before the first verb is certain.
    Prefix(String),
}

/// A verb of a format, with its flags, width, precision and argument position.
#[derive(Default)]
struct Verb {
    raw: String,
    plus: bool,
    minus: bool,
    zero: bool,
    space: bool,
    sharp: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// Position of the argument, from 1; 0 means the next one.
    argument: usize,
    mode: char,
}

/// Limit on width and precision, so that a format cannot use up all memory.
const MAX_WIDTH: usize = 1 << 16;

fn apply(format: &str, args: &[Value]) -> CallResult<Text> {
    let mut out = String::new();
    let mut prefix: Option<String> = None;
    let mut next = 0;
    let mut highest = 0;
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let offset = format.len() - rest.len() + at;
        let (mut verb, after) = parse(&rest[at + 1..], offset)?;
        rest = after;
        if verb.mode == '%' {
            out.push('%');
            continue;
        }
        if verb.argument == 0 {
            next += 1;
            verb.argument = next;
        } else {
            next = verb.argument;
        }
        highest = highest.max(verb.argument);
        let Some(arg) = args.get(verb.argument - 1) else {
            return Err(CallError::failed(format!(
                "\"%{}\" at offset {offset} needs argument {}, and there are {}",
                verb.raw,
                verb.argument,
                args.len()
            )));
        };
        if !arg.is_wholly_known() {
            // Parsing continues, to find errors in the rest. Only the text before all verbs is certain to be a
            // prefix.
            prefix.get_or_insert_with(|| format.split('%').next().unwrap_or_default().to_owned());
            continue;
        }
        one(&verb, arg, &mut out)
            .map_err(|why| CallError::failed(format!("unsupported value for \"%{}\" at {offset}: {why}", verb.raw)))?;
    }
    out.push_str(rest);
    // Surplus arguments are reported only if all arguments are known.
    if highest < args.len() && args.iter().all(Value::is_wholly_known) {
        let message = if highest == 0 {
            "too many arguments; no verbs in format string".to_owned()
        } else {
            format!("too many arguments; only {highest} used by format string")
        };
        return Err(CallError::argument(highest + 1, message));
    }
    Ok(match prefix {
        Some(prefix) => Text::Prefix(prefix),
        None => Text::Known(out),
    })
}

/// Parses a verb. `text` begins after the percent sign, which is at byte `offset` of the format. Returns the verb and the
/// text after it.
fn parse(text: &str, offset: usize) -> CallResult<(Verb, &str)> {
    let mut verb = Verb::default();
    let mut chars = text.char_indices().peekable();
    // Offsets count from the beginning of the format, so one is added for the percent sign.
    let error = |at: usize, c: char| {
        CallError::failed(format!(
            "unrecognized format character {c:?} at offset {}",
            offset + 1 + at
        ))
    };
    loop {
        match chars.peek() {
            Some((_, '+')) => verb.plus = true,
            Some((_, '-')) => verb.minus = true,
            Some((_, '0')) => verb.zero = true,
            Some((_, ' ')) => verb.space = true,
            Some((_, '#')) => verb.sharp = true,
            _ => break,
        }
        chars.next();
    }
    let number = |chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>| {
        let mut n: Option<usize> = None;
        while let Some((_, c)) = chars.peek() {
            let Some(digit) = c.to_digit(10) else { break };
            n = Some(
                n.unwrap_or(0)
                    .saturating_mul(10)
                    .saturating_add(digit as usize)
                    .min(MAX_WIDTH),
            );
            chars.next();
        }
        n
    };
    verb.width = number(&mut chars);
    if matches!(chars.peek(), Some((_, '.'))) {
        chars.next();
        verb.precision = Some(number(&mut chars).unwrap_or(0));
    }
    if matches!(chars.peek(), Some((_, '['))) {
        chars.next();
        verb.argument = number(&mut chars).unwrap_or(0);
        let first = text.char_indices().find(|(i, _)| text[..*i].ends_with('['));
        match chars.next() {
            Some((_, ']')) if verb.argument > 0 => {}
            Some((_, ']')) => return Err(first.map_or_else(|| error(0, ']'), |(i, c)| error(i, c))),
            Some((i, c)) => return Err(error(i, c)),
            None => return Err(CallError::failed("format string ends in the middle of a verb")),
        }
    }
    let Some((i, mode)) = chars.next() else {
        return Err(CallError::failed(format!(
            "invalid format string starting at offset {}",
            offset + text.len() + 1
        )));
    };
    let end = i + mode.len_utf8();
    verb.mode = mode;
    verb.raw = text[..end].to_owned();
    if !mode.is_ascii_alphabetic() && (mode != '%' || i > 0) {
        return Err(error(i, mode));
    }
    if !"vtbdoxXeEfgGsq%".contains(mode) {
        return Err(CallError::failed(format!(
            "unsupported format verb {mode:?} in \"%{}\" at offset {offset}",
            verb.raw
        )));
    }
    Ok((verb, &text[end..]))
}

/// Reason why a value cannot be formatted by a verb.
#[derive(Debug, thiserror::Error)]
enum ValueError {
    #[error("null value cannot be formatted")]
    Null,
    #[error("an integer is required")]
    NotInteger,
    #[error("{}", .0.message)]
    Conversion(cty::ConvertError),
    #[error(transparent)]
    Json(cty::msgpack::CodecError),
}

/// Formats an argument by a verb.
fn one(verb: &Verb, arg: &Value, out: &mut String) -> Result<(), ValueError> {
    if verb.mode == 'v' {
        let plain = match (arg.ty(), verb.sharp) {
            _ if arg.is_null() => None,
            (Type::String, false) => arg.as_str().map(str::to_owned),
            (Type::Number, false) => arg.as_number().map(|n| general(n, None, 'g')),
            _ => None,
        };
        let text = match plain {
            Some(text) => text,
            // As in Terraform, everything but strings and numbers is formatted as JSON.
            None => cty::json::to_simple_text(arg).map_err(ValueError::Json)?,
        };
        pad(verb, &text, out);
        return Ok(());
    }
    let ty = match verb.mode {
        't' => Type::Bool,
        's' | 'q' => Type::String,
        _ => Type::Number,
    };
    if arg.is_null() {
        return Err(ValueError::Null);
    }
    let value = cty::convert(arg, &ty).map_err(ValueError::Conversion)?;
    match verb.mode {
        // Go's formatter ignores the width of a bool.
        't' => out.push_str(if value.as_bool() == Some(true) { "true" } else { "false" }),
        's' => pad(verb, &cut(verb, value.as_str().unwrap_or_default()), out),
        'q' => {
            let text = cut(verb, value.as_str().unwrap_or_default());
            pad(verb, &cty::json::to_text(&serde_json::Value::from(text), None), out);
        }
        mode => {
            let zero = Number::from(0i64);
            let number = value.as_number().unwrap_or(&zero);
            let text = match mode {
                'b' | 'd' | 'o' | 'x' | 'X' => {
                    if !number.is_integer() {
                        return Err(ValueError::NotInteger);
                    }
                    whole(verb, number)
                }
                'f' => fixed(number, verb.precision.unwrap_or(6)),
                'e' | 'E' => exponent(number, verb.precision.unwrap_or(6), mode),
                _ => general(number, verb.precision, if mode == 'G' { 'E' } else { 'g' }),
            };
            pad_number(verb, &text, out);
        }
    }
    Ok(())
}

/// Cuts a text to `precision` characters. A precision of zero does not limit the text.
fn cut(verb: &Verb, text: &str) -> String {
    match verb.precision {
        // The precision counts grapheme clusters, as all lengths of text in the language do.
        Some(n) if n > 0 => clusters(text).into_iter().take(n).collect(),
        _ => text.to_owned(),
    }
}

/// Pads a text to the width.
fn pad(verb: &Verb, text: &str, out: &mut String) {
    let missing = verb.width.unwrap_or(0).saturating_sub(count(text));
    let fill = if verb.zero && !verb.minus { "0" } else { " " }.repeat(missing);
    if verb.minus {
        out.push_str(text);
        out.push_str(&fill);
    } else {
        out.push_str(&fill);
        out.push_str(text);
    }
}

/// Pads a number to the width: zeros go between sign and digits.
fn pad_number(verb: &Verb, text: &str, out: &mut String) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        // An infinity is formatted with its sign already.
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let plus = verb.plus || text.starts_with('+');
    let sign = if negative {
        "-"
    } else if plus {
        "+"
    } else if verb.space {
        " "
    } else {
        ""
    };
    let missing = verb
        .width
        .unwrap_or(0)
        .saturating_sub(sign.len() + digits.chars().count());
    if verb.minus {
        out.push_str(sign);
        out.push_str(digits);
        out.push_str(&" ".repeat(missing));
    } else if verb.zero && digits.starts_with(|c: char| c.is_ascii_digit()) {
        out.push_str(sign);
        out.push_str(&"0".repeat(missing));
        out.push_str(digits);
    } else {
        out.push_str(&" ".repeat(missing));
        out.push_str(sign);
        out.push_str(digits);
    }
}

/// Formats a whole number in the base of the verb.
fn whole(verb: &Verb, number: &Number) -> String {
    let (negative, digits) = match number.exact_digits() {
        // Whole numbers have no minus zero.
        Some((_, digits, _)) if digits.is_empty() => (false, "0".to_owned()),
        Some((negative, digits, point)) => {
            let zeros = usize::try_from(point).unwrap_or_default().saturating_sub(digits.len());
            let digits: String = digits.into_iter().map(|d| char::from(b'0' + d)).collect();
            (negative, digits + &"0".repeat(zeros))
        }
        None => (false, number.to_string()),
    };
    let sign = if negative { "-" } else { "" };
    let (base, prefix) = match verb.mode {
        'b' => (2, "0b"),
        'o' => (8, "0"),
        'x' => (16, "0x"),
        'X' => (16, "0X"),
        _ => (10, ""),
    };
    let mut text = if base == 10 { digits } else { rebase(&digits, base) };
    if verb.mode == 'X' {
        text.make_ascii_uppercase();
    }
    if let Some(precision) = verb.precision {
        text = format!("{}{text}", "0".repeat(precision.saturating_sub(text.len())));
    }
    let prefix = if verb.sharp { prefix } else { "" };
    format!("{sign}{prefix}{text}")
}

/// Converts decimal digits to another base, by repeated division.
fn rebase(decimal: &str, base: u32) -> String {
    // Numbers have up to 512 bits of precision, which no integer type holds.
    let mut digits: Vec<u32> = decimal.chars().filter_map(|c| c.to_digit(10)).collect();
    let mut out = Vec::new();
    while digits.iter().any(|d| *d != 0) {
        let mut remainder = 0;
        for d in &mut digits {
            let n = remainder * 10 + *d;
            *d = n / base;
            remainder = n % base;
        }
        out.push(char::from_digit(remainder, base).unwrap_or('0'));
    }
    if out.is_empty() {
        return "0".into();
    }
    out.into_iter().rev().collect()
}
