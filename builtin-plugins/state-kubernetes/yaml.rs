//! YAML as JSON values, as far as kubeconfig files need it: numbers are strings.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value as Json};

/// Maximum nesting, which protects code that processes the value from a stack overflow.
const DEPTH: usize = 64;
/// Maximum size of what aliases repeat: bytes of text, plus one for each value.
const REPEATED: usize = 16 << 20;

/// Reason why a text cannot be read, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error(transparent)]
    Scan(#[from] saphyr_parser::ScanError),
    #[error("its values are too deep in each other")]
    TooDeep,
    #[error("its aliases repeat too much")]
    TooLarge,
    #[error("it ends what has not begun")]
    Unbalanced,
}

enum Open {
    List(Vec<Json>),
    Object(Map<String, Json>, Option<String>),
}

/// Depth and size of a value, including what aliases repeat: a short text can describe a deep and large value.
#[derive(Clone, Copy, Default)]
struct Weight {
    depth: usize,
    /// Bytes of text, plus one for each value.
    size: usize,
}

impl Weight {
    fn of_scalar(text: &str) -> Weight {
        Weight {
            depth: 0,
            size: text.len() + 1,
        }
    }

    fn add(&mut self, inner: Weight) {
        self.depth = self.depth.max(inner.depth + 1);
        self.size = self.size.saturating_add(inner.size);
    }
}

/// Reads the first document of a text.
///
/// # Errors
/// The text is not YAML, is nested too deeply, or has aliases that make it too large.
pub(crate) fn read(text: &str) -> Result<Json, YamlError> {
    // Collections that have begun and not ended, outermost first, each with the number of its anchor, or 0.
    let mut open: Vec<(Open, usize, Weight)> = Vec::new();
    let mut anchors: HashMap<usize, (Json, Weight)> = HashMap::new();
    let mut repeated: usize = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event?;
        let (value, anchor, weight) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style), anchor, Weight::of_scalar(&text)),
            Event::Alias(id) => {
                let weight = anchors.get(&id).map_or_else(Weight::default, |(_, weight)| *weight);
                repeated = repeated.saturating_add(weight.size);
                if open.len() + weight.depth > DEPTH {
                    return Err(YamlError::TooDeep);
                }
                if repeated > REPEATED {
                    return Err(YamlError::TooLarge);
                }
                let value = anchors.get(&id).map(|(value, _)| value.clone());
                (value.unwrap_or_default(), 0, weight)
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                return Err(YamlError::TooDeep);
            }
            Event::SequenceStart(anchor, _) => {
                open.push((Open::List(Vec::new()), anchor, Weight::of_scalar("")));
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push((Open::Object(Map::new(), None), anchor, Weight::of_scalar("")));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((Open::List(list), anchor, weight)) => (Json::Array(list), anchor, weight),
                Some((Open::Object(object, _), anchor, weight)) => (Json::Object(object), anchor, weight),
                None => return Err(YamlError::Unbalanced),
            },
            Event::DocumentEnd => break,
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, (value.clone(), weight));
        }
        let Some((outer, _, weight_of_outer)) = open.last_mut() else {
            return Ok(value);
        };
        weight_of_outer.add(weight);
        match outer {
            Open::List(list) => list.push(value),
            Open::Object(object, key) => match key.take() {
                Some(key) => drop(object.insert(key, value)),
                // Keys in JSON are strings, so other keys are converted.
                None => *key = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            },
        }
    }
    Ok(Json::Null)
}

fn scalar(text: &str, style: ScalarStyle) -> Json {
    match text {
        _ if style != ScalarStyle::Plain => Json::from(text),
        "" | "~" | "null" => Json::Null,
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        text => Json::from(text),
    }
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_of_kubectl_are_read() {
        let text = "apiVersion: v1\nclusters:\n- name: a\n  cluster: {server: 'https://x:1', insecure-skip-tls-verify: true}\nusers: []\nx: &y\n  z: |\n    line\nw: *y\n";
        assert_eq!(
            read(text).unwrap(),
            json!({
                "apiVersion": "v1",
                "clusters": [{"name": "a", "cluster": {"server": "https://x:1", "insecure-skip-tls-verify": true}}],
                "users": [],
                "x": {"z": "line\n"},
                "w": {"z": "line\n"},
            })
        );
        assert_eq!(read("").unwrap(), Json::Null);
        assert_eq!(read("{\"a\": null}").unwrap(), json!({"a": null}));
        assert!(read("a: [").is_err());
        assert!(read(&"[".repeat(100)).is_err());
    }

    #[test]
    fn aliases_multiply_neither_depth_nor_size_without_limit() {
        let mut bomb = "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n".to_owned();
        for i in 1..12 {
            let alias = format!("*a{}", i - 1);
            bomb.push_str(&format!("a{i}: &a{i} [{}]\n", vec![alias; 9].join(",")));
        }
        assert!(matches!(read(&bomb), Err(YamlError::TooLarge)));
        let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), ["*a"; 100].join(","));
        assert!(matches!(read(&text), Err(YamlError::TooLarge)));
        let mut tower = "a0: &a0 []\n".to_owned();
        for i in 1..100 {
            tower.push_str(&format!("a{i}: &a{i} [*a{}]\n", i - 1));
        }
        assert!(matches!(read(&tower), Err(YamlError::TooDeep)));
    }
}
