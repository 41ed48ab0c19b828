//! Tests of schema files: intact files are read as they were written, damaged ones are not used.

use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};

use provider::Capabilities;

use super::super::provider_schema;
use super::*;

const NAMES: [&str; 3] = ["acme_a", "acme_b", "acme_c"];

fn schema_of(name: &str) -> Bytes {
    let attribute = pb::schema::Attribute {
        name: format!("of_{name}"),
        r#type: b"\"string\"".to_vec(),
        ..Default::default()
    };
    let block = pb::schema::Block {
        attributes: vec![attribute],
        ..Default::default()
    };
    let schema = pb::Schema {
        version: 1,
        block: Some(block),
    };
    schema.encode_to_vec().into()
}

fn answer() -> Answer {
    let of = |names: &[&str]| names.iter().map(|name| (Arc::from(*name), schema_of(name))).collect();
    Answer {
        properties: Properties {
            protocol: 6,
            capabilities: Capabilities {
                plan_destroy: true,
                schema_optional: true,
                ..Capabilities::default()
            },
            batches: true,
            state_only: vec!["acme_a".into(), "acme_b".into()],
        },
        schemas: Table::from([
            (Kind::Provider, of(&[""])),
            (Kind::Resource, of(&NAMES)),
            (Kind::DataSource, of(&NAMES[..1])),
        ]),
    }
}

fn key() -> Key {
    Key {
        package: "h1:x".to_owned(),
        environment: vec![1, 2],
    }
}

fn written() -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &key(), &answer()).unwrap();
    out
}

fn read(bytes: &[u8]) -> Result<SchemaFile<Cursor<Vec<u8>>>, Unusable> {
    SchemaFile::read(Cursor::new(bytes.to_vec()), bytes.len() as u64, &key())
}

/// Returns the whole content of a file as an answer.
fn content(file: &SchemaFile<Cursor<Vec<u8>>>) -> Option<Answer> {
    let mut schemas = Table::new();
    for kind in Kind::ALL {
        for name in file.names(kind) {
            let message = file.schema(kind, &name)?;
            schemas.entry(kind).or_default().insert(name, message);
        }
    }
    Some(Answer {
        properties: file.properties.clone(),
        schemas,
    })
}

#[test]
fn answer_is_read_as_it_was_written() {
    assert_eq!(content(&read(&written()).unwrap()), Some(answer()));
}

#[test]
fn file_with_another_key_is_not_used() {
    let bytes = written();
    for (package, environment) in [("h1:y", vec![1, 2]), ("h1:x", vec![1, 3]), ("h1:x", vec![])] {
        let key = Key {
            package: package.to_owned(),
            environment,
        };
        let refused = SchemaFile::read(Cursor::new(bytes.clone()), bytes.len() as u64, &key);
        assert!(matches!(refused, Err(Unusable::Key)), "{key:?}");
    }
}

#[test]
fn file_of_another_format_is_not_used() {
    let mut bytes = written();
    bytes[8] += 1;
    assert!(matches!(read(&bytes), Err(Unusable::Format(2))));
}

/// Every byte belongs to the header, the index or a schema, each with its checksum.
#[test]
fn no_damaged_byte_is_taken_for_content() {
    let bytes = written();
    for at in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            let found = read(&damaged).ok().and_then(|file| content(&file));
            assert_eq!(found, None, "bit {bit:#x} of byte {at}");
        }
    }
}

#[test]
fn file_that_is_cut_or_longer_is_not_used() {
    let bytes = written();
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "cut at {length}");
    }
    let longer = [bytes, vec![0]].concat();
    assert!(matches!(read(&longer), Err(Unusable::Damaged)));
}

#[test]
fn length_of_the_index_beyond_its_limit_is_refused_without_reading_it() {
    let mut bytes = written();
    bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&bytes), Err(Unusable::TooLarge)));
}

/// A schema is read when it is used, so damage in one is found late, and damage in others not at all.
#[test]
fn damaged_schema_is_asked_for_again_once_and_others_are_read() {
    let mut bytes = written();
    let needle = b"of_acme_b";
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    bytes[at] ^= 1;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let again = Box::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Some(answer())
    });
    let file = read(&bytes).unwrap().asking_again(again);
    let schema = provider_schema(&file.properties.clone(), Arc::new(file)).unwrap();
    assert!(
        schema
            .resources
            .get("acme_a")
            .unwrap()
            .block
            .attributes
            .contains_key("of_acme_a")
    );
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    for _ in 0..2 {
        assert!(
            schema
                .resources
                .get("acme_b")
                .unwrap()
                .block
                .attributes
                .contains_key("of_acme_b")
        );
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(!schema.resources.is_converted("acme_c"));
}

#[test]
fn damaged_schema_of_a_provider_that_is_gone_has_a_reason() {
    let mut bytes = written();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let file = read(&bytes).unwrap().asking_again(Box::new(|| None));
    let schema = provider_schema(&file.properties.clone(), Arc::new(file)).unwrap();
    assert!(schema.resources.get("acme_c").is_some());
    assert!(
        schema
            .data_sources
            .problem("acme_a")
            .unwrap()
            .ends_with("it cannot be read any more")
    );
}
