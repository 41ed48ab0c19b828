//! Decoding of YAML. Plain scalars are typed by the rules of version 1.1.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cty::{Number, Type, Value};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, string, text};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("yamldecode", &[string("src")], Returns::By(yaml_type), yamldecode).nullable()];

/// Depth limit of documents.
const MAX_DEPTH: usize = 256;
/// Limit on the number of values that aliases repeat.
const MAX_REPEATED: usize = 1_000_000;

fn yaml_type(args: &[Value]) -> CallResult<Type> {
    match args[0].as_str() {
        Some(text) => Ok(decode(text)?.ty().clone()),
        None => Ok(Type::Dynamic),
    }
}

fn yamldecode(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    decode(text(args, 0))
}

/// A collection whose end has not been read.
enum Open {
    Sequence(Vec<Value>),
    Mapping {
        entries: BTreeMap<Arc<str>, Value>,
        merged: BTreeMap<Arc<str>, Value>,
        key: Option<Key>,
    },
}

/// A mapping key whose value has not been read.
enum Key {
    Name(Arc<str>),
    Merge(Marker),
}

/// Builds an error about a value. The position is as in Terraform: lines count from zero, and line zero is not shown.
fn problem_at(place: &Marker, why: &str) -> CallError {
    CallError::failed(match place.line().saturating_sub(1) {
        0 => why.to_owned(),
        line => format!("on line {line}, column {}: {why}", place.col() + 1),
    })
}

/// Builds an error from the parser's message, in Terraform's wording if there is an equivalent.
fn unreadable(source: &str, error: &ScanError) -> CallError {
    let (place, said) = (error.marker(), error.info());
    if said.contains("unknown anchor") {
        let name = alias_at(source, place);
        return problem_at(place, &format!("reference to undefined anchor \"{name}\""));
    }
    // As in Terraform, a scanner error on the first line has no position.
    let scanned = |why: &str| match place.line() {
        0 | 1 => CallError::failed(why),
        line => CallError::failed(format!("on line {line}, column {}: {why}", place.col().max(1))),
    };
    if said.starts_with("unexpected character") || said.starts_with("tabs disallowed") {
        return scanned("found character that cannot start any token");
    }
    if said.starts_with("mapping values are not allowed") {
        return scanned("mapping values are not allowed in this context");
    }
    if said.ends_with("found unexpected end of stream") {
        return scanned("found unexpected end of stream");
    }
    let why = match said.split_once(", ") {
        Some((_, expected)) if expected.starts_with("expected ") => format!("did not find {expected}"),
        Some((_, why)) => why.to_owned(),
        None => said.to_owned(),
    };
    problem_at(place, &why)
}

/// Returns the name of the alias at a position.
fn alias_at<'s>(source: &'s str, place: &Marker) -> &'s str {
    let line = source.lines().nth(place.line().saturating_sub(1)).unwrap_or_default();
    let start = line.char_indices().nth(place.col()).map_or(line.len(), |(at, _)| at);
    let alias = line.get(start..).unwrap_or_default().trim_start_matches('*');
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}');
    alias.split(ends).next().unwrap_or_default()
}

/// Returns true if the document declares another version than 1.1.
fn other_version(source: &str) -> bool {
    let mut directives = source.lines().take_while(|l| l.is_empty() || l.starts_with(['%', '#']));
    directives.any(|l| {
        l.strip_prefix("%YAML")
            .is_some_and(|v| v.split_whitespace().next() != Some("1.1"))
    })
}

fn decode(source: &str) -> CallResult {
    if other_version(source) {
        return Err(CallError::failed("found incompatible YAML document"));
    }
    if !source.chars().all(is_allowed) {
        return Err(CallError::failed("control characters are not allowed"));
    }
    let mut reader = Reader {
        source,
        open: Vec::new(),
        anchors: HashMap::new(),
        repeated: 0,
        result: None,
        documents: 0,
    };
    for event in Parser::new_from_str(source) {
        let (event, span) = event.map_err(|e| unreadable(source, &e))?;
        reader.event(event, span.start)?;
    }
    reader
        .result
        .ok_or_else(|| CallError::failed("on line 1, column 1: missing start of document"))
}

/// Depth of a value and the number of values in it. Aliases repeat whole values, so that the value of a short document can be
/// deep and large.
#[derive(Clone, Copy, Default)]
struct Weight {
    depth: usize,
    values: usize,
}

impl Weight {
    const SCALAR: Weight = Weight { depth: 0, values: 1 };

    fn add(&mut self, inner: Weight) {
        self.depth = self.depth.max(inner.depth + 1);
        self.values = self.values.saturating_add(inner.values);
    }
}

/// State between two events of the parser.
struct Reader<'s> {
    source: &'s str,
    /// Incomplete collections, outermost first, each with the number of its anchor (0 if it has none) and the total weight of the values in
    /// it.
    open: Vec<(Open, usize, Weight)>,
    anchors: HashMap<usize, (Value, Weight)>,
    /// Values that aliases have repeated so far.
    repeated: usize,
    result: Option<Value>,
    documents: usize,
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, place: Marker) -> CallResult<()> {
        let fail = |why: &str| Err(problem_at(&place, why));
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    // The position is that of the document, as in Terraform.
                    return Err(CallError::failed(
                        "on line 1, column 1: unexpected extra content after value",
                    ));
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let merge = plain && &*text == "<<" && tag.is_none();
                match scalar(&text, plain, tag.as_deref()) {
                    Ok(value) => self.complete(value, anchor, merge, Weight::SCALAR, place)?,
                    Err(error) => return fail(&error.to_string()),
                }
            }
            Event::Alias(id) => match self.anchors.get(&id).cloned() {
                Some((value, weight)) => {
                    self.repeated = self.repeated.saturating_add(weight.values);
                    if self.open.len() + weight.depth > MAX_DEPTH {
                        return fail("the document is nested too deeply");
                    }
                    if self.repeated > MAX_REPEATED {
                        return fail("the aliases of the document repeat too many values");
                    }
                    self.complete(value, 0, false, weight, place)?;
                }
                None => {
                    let name = alias_at(self.source, &place);
                    return fail(&format!(
                        "cannot refer to anchor \"{name}\" from inside its own definition"
                    ));
                }
            },
            Event::SequenceStart(..) | Event::MappingStart(..) if self.open.len() >= MAX_DEPTH => {
                return fail("the document is nested too deeply");
            }
            Event::SequenceStart(_, Some(tag)) if !is_standard(&tag, "seq") => {
                return fail(&format!("can't interpret sequence as {}{}", tag.handle, tag.suffix));
            }
            Event::MappingStart(_, Some(tag)) if !is_standard(&tag, "map") => {
                return fail(&format!("can't interpret mapping as {}{}", tag.handle, tag.suffix));
            }
            Event::SequenceStart(anchor, _) => self.open.push((Open::Sequence(Vec::new()), anchor, Weight::SCALAR)),
            Event::MappingStart(anchor, _) => {
                let mapping = Open::Mapping {
                    entries: BTreeMap::new(),
                    merged: BTreeMap::new(),
                    key: None,
                };
                self.open.push((mapping, anchor, Weight::SCALAR));
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::Sequence(items), anchor, weight)) => {
                    self.complete(Value::tuple(items), anchor, false, weight, place)?;
                }
                Some((
                    Open::Mapping {
                        entries, mut merged, ..
                    },
                    anchor,
                    weight,
                )) => {
                    // Explicit keys take precedence over merged ones, even if they come before `<<`.
                    merged.extend(entries);
                    self.complete(Value::object(merged), anchor, false, weight, place)?;
                }
                None => {}
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// Adds a complete value to its collection. `bare_merge` distinguishes the key `<<` from the text "<<".
    fn complete(
        &mut self,
        value: Value,
        anchor: usize,
        bare_merge: bool,
        weight: Weight,
        place: Marker,
    ) -> CallResult<()> {
        let fail = |why: &str| problem_at(&place, why);
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), weight));
        }
        if let Some((_, _, whole)) = self.open.last_mut() {
            whole.add(weight);
        }
        match self.open.last_mut() {
            None => self.result = Some(value),
            Some((Open::Sequence(items), ..)) => items.push(value),
            Some((Open::Mapping { entries, merged, key }, ..)) => match key.take() {
                None if bare_merge => *key = Some(Key::Merge(place)),
                None if value.is_null() => return Err(fail("mapping key cannot be null")),
                None => {
                    *key = Some(Key::Name(
                        key_text(&value).ok_or_else(|| fail("only strings are allowed as mapping keys"))?,
                    ))
                }
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge(place)) => merge(&value, merged).ok_or_else(|| {
                    let why = format!("cannot merge {} into mapping", value.ty().friendly_name());
                    problem_at(&place, &why)
                })?,
            },
        }
        Ok(())
    }
}

fn is_standard(tag: &Tag, suffix: &str) -> bool {
    standard(tag) == Some(suffix)
}

/// Returns true for characters that a document may contain.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn key_text(value: &Value) -> Option<Arc<str>> {
    cty::convert(value, &Type::String).ok()?.as_arc_str().cloned()
}

/// Adds the entries of a mapping whose keys do not exist yet; `None` if the value is not a mapping.
fn merge(value: &Value, into: &mut BTreeMap<Arc<str>, Value>) -> Option<()> {
    for (key, value) in value.entries()? {
        into.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Some(())
}

/// Returns the suffix of a standard tag (`!!int`, or `!<tag:yaml.org,2002:int>`); `None` for other tags.
fn standard(tag: &Tag) -> Option<&str> {
    match tag.handle.as_str() {
        "tag:yaml.org,2002:" | "!!" => Some(&tag.suffix),
        "" => tag.suffix.strip_prefix("tag:yaml.org,2002:"),
        _ => None,
    }
}

/// An invalid scalar.
#[derive(Debug, thiserror::Error)]
enum ScalarError {
    /// The text is not of the form that its tag requires.
    #[error("cannot parse {text:?} as {expected}")]
    Form { text: String, expected: &'static str },
    #[error("unsupported tag \"{0}\"")]
    Tag(String),
    #[error("floating point NaN is not supported")]
    NotANumber,
}

fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, ScalarError> {
    let Some(tag) = tag else {
        return if plain { resolve(text) } else { Ok(Value::string(text)) };
    };
    let wrong = |expected: &'static str| {
        Err(ScalarError::Form {
            text: text.to_owned(),
            expected,
        })
    };
    match standard(tag) {
        Some("str") => Ok(Value::string(text)),
        // The text stays encoded, but its encoding must be valid.
        Some("binary") => match STANDARD.decode(text) {
            Ok(_) => Ok(Value::string(text)),
            Err(_) => wrong("binary data in Base64"),
        },
        Some("null" | "int" | "float" | "bool" | "timestamp") if text.is_empty() && !plain => Ok(Value::string("")),
        Some(kind @ ("null" | "int" | "float" | "bool" | "timestamp")) => {
            // A plain scalar that is not a string has the type of its content, even if its tag names another type.
            let own = resolve(text)?;
            if *own.ty() != Type::String {
                return Ok(if plain { own } else { Value::string(text) });
            }
            match kind {
                "null" => Ok(Value::null(Type::Dynamic)),
                // In numbers of YAML 1.1, underscores may separate digits.
                "int" | "float" => match number(&text.replace('_', "")) {
                    Some(number) => Ok(Value::number(number)),
                    None => wrong("a number"),
                },
                "timestamp" if timestamp(text).is_some() => Ok(own),
                "timestamp" => wrong("a time"),
                _ => wrong("true or false"),
            }
        }
        _ => Err(ScalarError::Tag(format!("{}{}", tag.handle, tag.suffix))),
    }
}

/// Resolves a plain scalar to a value, by the types of YAML 1.1.
fn resolve(text: &str) -> Result<Value, ScalarError> {
    if is_null(text) {
        return Ok(Value::null(Type::Dynamic));
    }
    if let Some(b) = boolean(text) {
        return Ok(Value::bool(b));
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(ScalarError::NotANumber);
    }
    Ok(match number(text) {
        Some(n) => Value::number(n),
        None => Value::string(timestamp(text).unwrap_or_else(|| text.to_owned())),
    })
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn number(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = |n: Number| if negative { n.neg() } else { n };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(signed(Number::infinity()));
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = digits.strip_prefix(prefix) {
            let n = i64::from_str_radix(digits, radix)
                .ok()
                // The library's parser would accept a second sign.
                .filter(|_| !digits.starts_with(['+', '-']))?;
            return Some(signed(Number::from(n)));
        }
    }
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if (whole.is_empty() && fraction.is_empty())
        || !all_digits(whole)
        || !all_digits(fraction)
        || unsigned.is_empty()
        || !all_digits(unsigned)
    {
        return None;
    }
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    Number::parse(&format!("{whole}.{fraction}e{exponent}")).map(signed)
}

/// Converts a date, or a date and a time, to the form of RFC 3339; `None` for other texts.
fn timestamp(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let date = bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(i, b)| {
            if i == 4 || i == 7 {
                *b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
    if !date || !text.is_char_boundary(10) {
        return None;
    }
    let rest = text[10..].trim_start_matches(['T', 't', ' ']);
    let whole = if rest.is_empty() {
        format!("{text}T00:00:00Z")
    } else if rest.ends_with('Z') || rest.get(8..).is_some_and(|r| r.contains(['+', '-'])) {
        format!("{}T{rest}", &text[..10])
    } else {
        format!("{}T{rest}Z", &text[..10])
    };
    super::datetime::normal(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(source: &str) -> String {
        format!("{:?}", decode(source).unwrap_err())
    }

    #[test]
    fn aliases_cannot_make_a_document_deeper_than_its_limit() {
        let mut chain = "a0: &a0 [1]\n".to_owned();
        for i in 1..20_000 {
            chain.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
        }
        assert!(failure(&chain).contains("nested too deeply"));
    }

    #[test]
    fn aliases_cannot_multiply_without_limit() {
        let mut bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n".to_owned();
        for i in 1..12 {
            let alias = format!("*a{}", i - 1);
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", vec![alias; 9].join(",")));
        }
        assert!(failure(&bomb).contains("repeat too many values"));
    }

    #[test]
    fn aliases_repeat_values() {
        let value = decode("a: &x [1, 2]\nb: *x\nc: {<<: {d: *x}}\n").unwrap();
        let same = decode("a: [1, 2]\nb: [1, 2]\nc: {d: [1, 2]}\n").unwrap();
        assert_eq!(value, same);
    }
}
