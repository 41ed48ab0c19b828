//! The msgpack form of values in the plugin protocol.
//!
//! The form depends on the type: a value of type `any` is wrapped together with its own type. Unknown values are
//! extensions that contain their refinements.

mod decode;
mod encode;

pub use decode::decode;
pub use encode::encode;

pub use crate::codec::CodecError;

/// Extension code of an unknown value with refinements.
const REFINED: u8 = 12;
/// Limit on the encoded refinements of an unknown value, in bytes.
const MAX_REFINEMENT_BYTES: usize = 1024;

/// Keys of the encoded refinements.
mod refinement {
    pub const NULLNESS: i64 = 1;
    pub const PREFIX: i64 = 2;
    pub const NUMBER_MIN: i64 = 3;
    pub const NUMBER_MAX: i64 = 4;
    pub const LENGTH_MIN: i64 = 5;
    pub const LENGTH_MAX: i64 = 6;
}

#[cfg(test)]
mod tests;
