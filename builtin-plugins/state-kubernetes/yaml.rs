//! YAML as JSON values, limited to the needs of kubeconfig files: numbers stay text.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value as Json};

/// Limit of nesting, which protects the stack of later users of the value.
const DEPTH: usize = 64;

/// Reason why a text cannot be read, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum YamlError {
    #[error(transparent)]
    Scan(#[from] saphyr_parser::ScanError),
    #[error("its values are too deep in each other")]
    TooDeep,
    #[error("it ends what has not begun")]
    Unbalanced,
}

enum Open {
    List(Vec<Json>, usize),
    Object(Map<String, Json>, Option<String>, usize),
}

/// Reads the first document of a text.
///
/// # Errors
/// The text is not YAML, or is nested too deeply.
pub(crate) fn read(text: &str) -> Result<Json, YamlError> {
    let mut open: Vec<Open> = Vec::new();
    let mut anchors: HashMap<usize, Json> = HashMap::new();
    for event in Parser::new_from_str(text) {
        let (event, _) = event?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style), anchor),
            Event::Alias(id) => (anchors.get(&id).cloned().unwrap_or_default(), 0),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH => {
                return Err(YamlError::TooDeep);
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open::List(Vec::new(), anchor));
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open::Object(Map::new(), None, anchor));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(list, anchor)) => (Json::Array(list), anchor),
                Some(Open::Object(object, _, anchor)) => (Json::Object(object), anchor),
                None => return Err(YamlError::Unbalanced),
            },
            Event::DocumentEnd => break,
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, value.clone());
        }
        match open.last_mut() {
            None => return Ok(value),
            Some(Open::List(list, _)) => list.push(value),
            Some(Open::Object(object, key, _)) => match key.take() {
                Some(key) => drop(object.insert(key, value)),
                // Keys in JSON are text, so other keys become their text.
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
}
