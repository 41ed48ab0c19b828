use proptest::prelude::*;

use super::*;

#[test]
fn nodes_have_their_ranges() {
    let node = parse("f", "{\"a\": [1, \"ü\\n\"],\n \"b\": null}".as_bytes()).unwrap();
    let Kind::Object(members) = &node.kind else {
        panic!("not an object")
    };
    assert_eq!(members[0].value.range.to_string(), "f:1,7-17");
    assert_eq!(members[1].name_range.to_string(), "f:2,2-5");
}

/// Summaries and ranges of the first problem, as in Terraform 1.11.4.
#[test]
fn problems_have_their_ranges() {
    for (text, summary, at) in [
        ("{\"s\": }", "Missing JSON value", "f:1,7-8"),
        ("[1,,2]", "Invalid start of value", "f:1,4-5"),
        ("{\"s\": 1,}", "Trailing comma in object", "f:1,8-9"),
        ("[1,]", "Trailing comma in array", "f:1,3-4"),
        ("[1", "Unclosed object", "f:1,1-2"),
        ("{\"a\": 1", "Unclosed object", "f:1,1-2"),
        ("{1: 1}", "Invalid object property name", "f:1,2-3"),
        ("{\"a\" = 1}", "Missing property value colon", "f:1,6-7"),
        ("{\"a\"}", "Missing object value", "f:1,5-6"),
        ("01", "Invalid JSON number", "f:1,1-3"),
        ("\"a", "Invalid JSON string", "f:1,3-4"),
        ("nope", "Invalid JSON keyword", "f:1,1-5"),
        ("{} x", "Extraneous data after value", "f:1,4-5"),
        ("", "Missing value", "f:1,1-1"),
        ("\t@", "Invalid start of value", "f:1,3-4"),
    ] {
        let error = parse("f", text.as_bytes()).unwrap_err();
        assert_eq!(
            (&*error.summary, &*error.subject.as_ref().unwrap().to_string()),
            (summary, at),
            "{text}"
        );
    }
    for opener in ["[", "{\"a\":"] {
        assert!(parse("f", opener.repeat(100_000).as_bytes()).is_err());
    }
}

#[test]
fn escapes_are_resolved() {
    let text = |text: &str| parse("f", text.as_bytes()).unwrap().literal();
    assert_eq!(text(r#""\u00e9\ud83d\ude00\/\"""#), Value::string("é😀/\""));
    assert_eq!(text(r#""\ud83dx""#), Value::string("\u{fffd}x"));
}

#[test]
fn labels_are_levels_of_objects() {
    let (body, problems) = parse_file(
        "f",
        br#"[{"//": "x", "r": {"a": [{"b": {"x": 1}}, {"c": [{}, {"y": 2}]}]}}, {"z": 1, "n": null}]"#,
    );
    assert!(problems.is_empty());
    let mut problems = Diagnostics::new();
    let labels = |name: &str| match name {
        "r" => Some(&["type", "name"][..]),
        "n" => Some(&[][..]),
        _ => None,
    };
    let body = resolve(Arc::unwrap_or_clone(body), labels, &mut problems);
    assert!(problems.is_empty(), "{problems:?}");
    let blocks: Vec<String> = body
        .blocks
        .iter()
        .map(|b| {
            let labels: Vec<&str> = b.labels.iter().map(|l| &*l.text).collect();
            format!("{} {} {}", b.ty, labels.join(" "), b.body.attributes.len())
        })
        .collect();
    assert_eq!(blocks, ["r a b 1", "r a c 0", "r a c 1"]);
    assert_eq!(body.attributes.len(), 1);
}

fn documents() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn documents_written_by_serde_are_read_equal(document in documents(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }.unwrap();
        let node = parse("f", text.as_bytes()).unwrap();
        prop_assert_eq!(node.literal(), cty::json::from_simple_json(&document).unwrap());
    }

    #[test]
    fn arbitrary_text_never_panics(text in "[\\[\\]{},:=\"\\\\u0-9a-e+. \n\tü]{0,60}") {
        let accepted = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        // serde refuses unpaired surrogates, which are valid here.
        prop_assert!(!accepted || parse("f", text.as_bytes()).is_ok());
        let _ = parse_file("f", text.as_bytes());
    }
}
