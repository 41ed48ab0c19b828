//! Random text from character classes, and its bcrypt hash. Used by `random_string` and `random_password`.

use bcrypt::Version;
use monoform_sdk::{Diagnostics, Result};
use rand::seq::{IndexedRandom, SliceRandom};

use crate::failed;

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";
const SPECIAL: &str = "!@#$%&*()-_=+[]{}<>:?";

/// A character class: it is enabled or not, and has a minimum number of characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    pub enabled: bool,
    pub least: i64,
}

/// Requested length and character classes of a text.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub length: i64,
    pub upper: Class,
    pub lower: Class,
    pub numeric: Class,
    pub special: Class,
    /// Special characters to use; if empty, the default ones.
    pub override_special: String,
}

impl Wish {
    /// Generates a text with a cryptographically secure generator. The minimum of a class applies even if the class is disabled.
    pub fn make(&self, summary: &str) -> Result<String> {
        let special = if self.override_special.is_empty() {
            SPECIAL
        } else {
            &self.override_special
        };
        let length = crate::length(self.length, summary)?;
        let mut rng = rand::rng();
        let mut all: Vec<char> = Vec::new();
        let mut out: Vec<char> = Vec::new();
        for (class, alphabet) in [
            (self.upper, UPPER),
            (self.lower, LOWER),
            (self.numeric, DIGITS),
            (self.special, special),
        ] {
            let alphabet: Vec<char> = alphabet.chars().collect();
            let least = crate::length(class.least.max(0), summary)?;
            out.extend((0..least).filter_map(|_| alphabet.choose(&mut rng)));
            if class.enabled {
                // All enabled classes form one alphabet, so that each character has the same probability.
                all.extend(alphabet);
            }
        }
        if out.len() < length && all.is_empty() {
            return Err(failed(
                summary,
                "No class of characters is enabled, so there is nothing to make the text of.",
            ));
        }
        out.extend((out.len()..length).filter_map(|_| all.choose(&mut rng)));
        // Shuffled, because the required characters of each class are at the beginning, and would reveal their classes.
        out.shuffle(&mut rng);
        Ok(out.into_iter().collect())
    }
}

/// Returns the first 72 bytes, because bcrypt ignores the others.
fn significant(text: &str) -> Vec<u8> {
    text.bytes().take(72).collect()
}

/// Returns the bcrypt hash of a text at cost 10.
pub(crate) async fn hash(text: &str, summary: &'static str) -> Result<String> {
    let bytes = significant(text);
    // On a separate thread: the hash is slow by design, and would block a thread of the runtime.
    monoform_sdk::blocking(move || hash_now(&bytes, summary)).await
}

/// Hashes a text on the calling thread, which is blocked meanwhile.
pub(crate) fn hash_text_now(text: &str, summary: &'static str) -> Result<String> {
    hash_now(&significant(text), summary)
}

fn hash_now(bytes: &[u8], summary: &str) -> Result<String> {
    let error = |e: bcrypt::BcryptError| -> Diagnostics { failed(summary, format!("The text cannot be hashed: {e}.")) };
    // Cost 10 and the version are those of the official provider's hashes.
    Ok(bcrypt::hash_with_result(bytes, 10)
        .map_err(error)?
        .format_for_version(Version::TwoA))
}

/// Returns true if the bcrypt hash belongs to the text.
pub(crate) fn verifies(text: &str, hash: &str) -> bool {
    bcrypt::verify(significant(text), hash).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(enabled: bool, least: i64) -> Class {
        Class { enabled, least }
    }

    fn wish(length: i64) -> Wish {
        let on = class(true, 0);
        Wish {
            length,
            upper: on,
            lower: on,
            numeric: on,
            special: on,
            override_special: String::new(),
        }
    }

    #[test]
    fn minima_are_kept_even_for_disabled_classes() {
        let wish = Wish {
            upper: class(false, 3),
            lower: class(false, 0),
            numeric: class(true, 1),
            special: class(false, 2),
            override_special: "äß".into(),
            ..wish(10)
        };
        for _ in 0..50 {
            let text = wish.make("s").unwrap();
            assert_eq!(text.chars().count(), 10);
            assert_eq!(text.chars().filter(|c| UPPER.contains(*c)).count(), 3);
            assert_eq!(text.chars().filter(|c| "äß".contains(*c)).count(), 2);
            assert_eq!(text.chars().filter(|c| DIGITS.contains(*c)).count(), 5);
        }
    }

    #[test]
    fn every_character_comes_up_alike_and_no_other() {
        let text = wish(83_000).make("s").unwrap();
        let alphabet = [UPPER, LOWER, DIGITS, SPECIAL].concat();
        let count = |c| u32::try_from(text.chars().filter(|x| *x == c).count()).unwrap();
        let counts: Vec<u32> = alphabet.chars().map(count).collect();
        assert_eq!(counts.iter().sum::<u32>(), 83_000);
        crate::assert_fair(&counts);
    }

    #[test]
    fn what_must_be_there_may_be_anywhere() {
        let wish = Wish {
            special: class(false, 1),
            ..wish(8)
        };
        let mut places = [0; 8];
        for _ in 0..8_000 {
            let text = wish.make("s").unwrap();
            let place = text.find(|c| SPECIAL.contains(c)).unwrap();
            places[place] += 1;
        }
        crate::assert_fair(&places);
    }

    #[test]
    fn nothing_to_choose_from_is_an_error() {
        let off = class(false, 0);
        let wish = Wish {
            upper: off,
            lower: off,
            numeric: off,
            special: off,
            ..wish(3)
        };
        assert!(wish.make("s").is_err());
    }

    #[test]
    fn hashes_look_at_72_bytes() {
        let long = "x".repeat(71) + "€";
        let hash = hash_text_now(&long, "s").unwrap();
        assert!(hash.starts_with("$2a$10$"), "{hash}");
        assert!(verifies(&(long + "more"), &hash));
        assert!(!verifies("y", &hash));
    }
}
