//! Fuzz target: any bytes, decoded from msgpack and from JSON as values of types of each kind. No crash, and a decoded
//! value is encoded and decoded again as the same value.

#![no_main]

use cty::Type;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    if let Ok(json) = serde_json::from_slice(rest) {
        drop(cty::json::type_from_json(&json));
        drop(cty::json::from_simple_json(&json));
        for ty in types() {
            read_json(&json, &ty);
        }
    }
    let types = types();
    let Some(ty) = types.get(usize::from(*first) % types.len()) else { return };
    if let Ok(value) = cty::msgpack::decode(rest, ty) {
        let written = cty::msgpack::encode(&value, ty).expect("what was read can be written");
        let again = cty::msgpack::decode(&written, ty).expect("what was written can be read");
        assert_eq!(written, cty::msgpack::encode(&again, ty).expect("a second time, too"));
    }
});

fn read_json(json: &serde_json::Value, ty: &Type) {
    let Ok(value) = cty::json::from_json(json, ty) else { return };
    let written = cty::json::to_json(&value, ty).expect("what was read can be written");
    let again = cty::json::from_json(&written, ty).expect("what was written can be read");
    assert_eq!(value, again);
}


/// Returns a type of each kind, and types inside one another.
fn types() -> Vec<Type> {
    let object = Type::object([("a", Type::String), ("n", Type::Number), ("d", Type::Dynamic)]);
    vec![
        Type::Dynamic,
        Type::String,
        Type::Number,
        Type::Bool,
        object.clone(),
        Type::list(Type::String),
        Type::list(object.clone()),
        Type::set(Type::Number),
        Type::set(object.clone()),
        Type::map(Type::Bool),
        Type::map(Type::list(Type::Dynamic)),
        Type::tuple(vec![Type::Number, Type::set(Type::String), object]),
    ]
}
