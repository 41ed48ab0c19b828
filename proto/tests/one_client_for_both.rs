//! The host speaks both protocols in the messages of version 6, and only the answer to the schema request is read in
//! the form of its own version. That is correct as long as all other messages have the same encoding in both versions,
//! which this test verifies for the two protocol files.
// Helpers of tests may panic, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;

use prost_types::{DescriptorProto, FileDescriptorProto};

/// A field: its name, type and label, and the name of its message or enum type, without the package.
type Field = (String, i32, i32, String);

/// Messages, by name, with their fields by number; and the methods that use them.
struct Protocol {
    messages: BTreeMap<String, BTreeMap<i32, Field>>,
    /// Requests: input and output.
    methods: BTreeMap<String, (String, String)>,
}

fn load(version: u32) -> Protocol {
    let file = format!("tfplugin{version}.proto");
    let set = protox::compile([&file], ["."]).unwrap();
    let file: FileDescriptorProto = set.file.into_iter().find(|f| f.name() == file).unwrap();
    let prefix = format!(".tfplugin{version}.");
    let strip = |name: &str| name.strip_prefix(&prefix).unwrap_or(name).to_owned();
    let mut messages = BTreeMap::new();
    let mut waiting: Vec<(String, &DescriptorProto)> =
        file.message_type.iter().map(|m| (m.name().to_owned(), m)).collect();
    while let Some((name, message)) = waiting.pop() {
        let fields = message.field.iter().map(|f| {
            (
                f.number(),
                (
                    f.name().to_owned(),
                    f.r#type() as i32,
                    f.label() as i32,
                    strip(f.type_name()),
                ),
            )
        });
        messages.insert(name.clone(), fields.collect());
        waiting.extend(
            message
                .nested_type
                .iter()
                .map(|inner| (format!("{name}.{}", inner.name()), inner)),
        );
    }
    let provider = file.service.iter().find(|s| s.name() == "Provider").unwrap();
    let methods = provider
        .method
        .iter()
        .map(|m| (m.name().to_owned(), (strip(m.input_type()), strip(m.output_type()))));
    Protocol {
        messages,
        methods: methods.collect(),
    }
}

#[test]
fn messages_of_all_requests_but_the_schema_are_compatible() {
    let (five, six) = (load(5), load(6));
    let renamed = [
        ("GetSchema", "GetProviderSchema"),
        ("PrepareProviderConfig", "ValidateProviderConfig"),
        ("ValidateResourceTypeConfig", "ValidateResourceConfig"),
        ("ValidateDataSourceConfig", "ValidateDataResourceConfig"),
        ("Configure", "ConfigureProvider"),
        ("Stop", "StopProvider"),
    ];
    let mut compared = 0;
    for (method, (input, output)) in &five.methods {
        let name = renamed
            .iter()
            .find(|(old, _)| old == method)
            .map_or(method.as_str(), |(_, new)| new);
        let (input6, output6) = &six.methods[name];
        // The host never sends this request, and its response, which has names only, differs between the
        // protocols.
        if ["GetSchema", "GetMetadata"].contains(&method.as_str()) {
            continue;
        }
        for (a, b) in [(input, input6), (output, output6)] {
            compare(&five, &six, a, b);
            compared += 1;
        }
    }
    assert!(compared > 40);
}

/// Asserts that the newer message has every field of the older one, with the same content at all depths. It may
/// have more.
fn compare(five: &Protocol, six: &Protocol, a: &str, b: &str) {
    let (Some(old), Some(new)) = (five.messages.get(a), six.messages.get(b)) else {
        // Enums, and messages of other packages, are compared by name only.
        assert_eq!(a, b);
        return;
    };
    for (number, field) in old {
        // Plugins send this field for historical reasons, and nobody reads it.
        if field.0 == "prepared_config" {
            continue;
        }
        let other = new
            .get(number)
            .unwrap_or_else(|| panic!("{b} has no field {number}, {a} has {field:?}"));
        assert_eq!(
            (&field.0, field.1, field.2),
            (&other.0, other.1, other.2),
            "{a} and {b}, field {number}"
        );
        // The attributes in Schema differ between the protocols, so Schema is not compared.
        if !field.3.is_empty() && field.3 != "Schema" {
            compare(five, six, &field.3, &other.3);
        }
    }
}
