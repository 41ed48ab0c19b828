//! Fuzz target: any bytes as a file in the JSON syntax, as a whole configuration and as the body of a resource whose schema
//! has blocks. No crash, no hang, and every range inside the text.

#![no_main]

use std::io;

use cty::Type;
use lang::eval::Context;
use lang::scope::Unknowns;
use libfuzzer_sys::fuzz_target;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting};
use syntax::Diagnostics;

fuzz_target!(|bytes: &[u8]| {
    let (body, diagnostics) = syntax::json::parse_file("main.tf.json", bytes);
    within(&diagnostics, bytes.len());
    let surroundings = Unknowns::default();
    let (_, diagnostics) = lang::body::decode_body(&body, &schema(2), Context::new(&surroundings));
    within(&diagnostics, bytes.len());
    let manifest = config::manifest::Manifest::default();
    let options = config::LoadOptions::new("1.11.4", &manifest);
    within(&config::load(&OneFile(bytes), ".", &options).diagnostics, bytes.len());
});

fn within(diagnostics: &Diagnostics, length: usize) {
    for diagnostic in diagnostics.iter() {
        if let Some(range) = &diagnostic.subject {
            assert!(range.start.byte <= range.end.byte, "{diagnostic:?}");
            assert!(range.end.byte as usize <= length + 1, "{diagnostic:?} ends after {length}");
        }
    }
}

/// A directory of one file.
struct OneFile<'b>(&'b [u8]);

impl config::files::FileSource for OneFile<'_> {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        if dir == "." { Ok(vec!["main.tf.json".into()]) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path.ends_with("main.tf.json") { Ok(self.0.to_vec()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// Returns a schema of two attributes and a block of each kind, each with the same content down to this depth.
fn schema(depth: usize) -> BlockSchema {
    let attribute = |ty| AttributeSchema {
        ty: AttributeType::Plain(ty),
        optional: true,
        ..AttributeSchema::default()
    };
    let mut block = BlockSchema::default();
    block.attributes.insert("a".into(), attribute(Type::String));
    block.attributes.insert("l".into(), attribute(Type::list(Type::Dynamic)));
    if depth > 0 {
        let kinds = [
            ("s", Nesting::Single),
            ("g", Nesting::Group),
            ("b", Nesting::List),
            ("t", Nesting::Set),
            ("m", Nesting::Map),
        ];
        for (name, nesting) in kinds {
            let nested = NestedBlock {
                block: schema(depth - 1),
                nesting,
                min_items: 0,
                max_items: 0,
            };
            block.blocks.insert(name.into(), nested);
        }
    }
    block
}
