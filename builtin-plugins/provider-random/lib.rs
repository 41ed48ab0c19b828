//! The `random` provider: values that are created once and stored in the state.
//!
//! All managed types work alike. Creation generates the value with the generator of the operating system. Later, only a change of an
//! argument or of `keepers` replaces the value. `random_integer` and `random_shuffle` accept a seed; the same seed gives the same result in
//! every release ([`seeded`]).
//!
//! It implements version 3.9.0 of the official provider. Of the crates of this workspace it may use only the SDK and `cty`. The official
//! provider returns null for an empty `prefix` or `seed`, which hosts reject because it differs from the configuration. This provider
//! returns the configured value.

mod bytes;
mod id;
mod integer;
mod pet;
mod seeded;
mod shuffle;
mod text;
mod text_resources;
mod uuid;
mod words;

use std::collections::BTreeMap;

use monoform_sdk::{Attr, Diagnostic, Diagnostics, NeverBlocks, Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "random";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "3.9.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "3.0.0", "3.0.1", "3.1.0", "3.1.1", "3.1.2", "3.1.3", "3.2.0", "3.3.0", "3.3.1", "3.3.2", "3.4.0", "3.4.1",
    "3.4.2", "3.4.3", "3.5.0", "3.5.1", "3.6.0", "3.6.1", "3.6.2", "3.6.3", "3.7.0", "3.7.1", "3.7.2", "3.8.0",
    "3.8.1",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    NeverBlocks(Plain(|members| {
        members.plain();
        members.resource("random_bytes", bytes::RandomBytes);
        members.resource("random_id", id::RandomId);
        members.resource("random_integer", integer::RandomInteger);
        members.resource("random_password", text_resources::RandomPassword);
        members.resource("random_pet", pet::RandomPet);
        members.resource("random_shuffle", shuffle::RandomShuffle);
        members.resource("random_string", text_resources::RandomString);
        members.resource("random_uuid", uuid::RandomUuid);
        members.resource("random_uuid4", uuid::RandomUuid4);
        members.resource("random_uuid7", uuid::RandomUuid7);
        members.ephemeral("random_bytes", bytes::EphemeralBytes);
        members.ephemeral("random_password", text_resources::EphemeralPassword);
    }))
}

/// Type of the argument `keepers`.
type Keepers = Attr<BTreeMap<String, Attr<String>>>;

/// Limit of lengths in bytes or characters. It is more than a useful value in a state file needs.
const LENGTH_LIMIT: i64 = 16 * 1024 * 1024;

/// Converts a configured length to a number of elements.
fn length(given: i64, summary: &str) -> Result<usize, Diagnostics> {
    match usize::try_from(given) {
        Ok(length) if given <= LENGTH_LIMIT => Ok(length),
        _ => Err(failed(
            summary,
            format!("A length of {given} is not possible: it must be between 0 and {LENGTH_LIMIT}."),
        )),
    }
}

/// Returns cryptographically secure random bytes.
fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand::fill(&mut bytes[..]);
    bytes
}

/// Returns the chi-squared statistic of counts that should be equal. For n counts it is about n. It is practically never larger than n plus
/// ten times the square root of 2n.
#[cfg(test)]
fn unevenness(counts: &[u32]) -> f64 {
    let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|n| (f64::from(*n) - mean).powi(2) / mean).sum()
}

/// Panics unless the counts are plausible for uniform choices.
#[cfg(test)]
#[track_caller]
fn assert_fair(counts: &[u32]) {
    let (found, n) = (unevenness(counts), counts.len() as f64);
    assert!(
        found < n + 10.0 * (2.0 * n).sqrt(),
        "{found} for {n} counts: {counts:?}"
    );
}

fn failed(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_comes_up_alike_and_so_do_pairs() {
        let bytes = super::random_bytes(1 << 18);
        let (mut single, mut pairs) = (vec![0u32; 256], vec![0u32; 256]);
        for pair in bytes.windows(2) {
            single[usize::from(pair[0])] += 1;
            pairs[usize::from(pair[0] ^ pair[1])] += 1;
        }
        super::assert_fair(&single);
        super::assert_fair(&pairs);
    }

    #[test]
    #[should_panic(expected = "counts")]
    fn an_unfair_choice_is_noticed() {
        super::assert_fair(&[1000, 1000, 1400, 1000]);
    }
}
