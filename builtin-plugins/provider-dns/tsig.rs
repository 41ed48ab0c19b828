//! Signatures of messages with a shared secret (TSIG, RFC 8945).
//!
//! The DNS library supports neither MD5 nor SHA-1, which existing keys still use, so signatures are computed here. The functions work on
//! messages in wire format, since the signature covers those bytes.

use hickory_proto::rr::Name;
use hmac::{Hmac, KeyInit, Mac};

/// Type of the record with a signature.
const TSIG: u16 = 250;
/// Class of the record with a signature.
const ANY: u16 = 255;
/// Allowed difference between the clocks in seconds. RFC 8945 recommends 300.
const FUDGE: u16 = 300;
/// Length of a message's header in bytes.
const HEAD: usize = 12;
/// Offset in the header of the count of additional records.
const ADDITIONAL: usize = 10;

/// Hash algorithm of a TSIG key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

impl Algorithm {
    /// Returns the algorithm of this name.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Some(match name {
            "hmac-md5" => Algorithm::Md5,
            "hmac-sha1" => Algorithm::Sha1,
            "hmac-sha256" => Algorithm::Sha256,
            "hmac-sha512" => Algorithm::Sha512,
            _ => return None,
        })
    }

    fn labels(self) -> &'static [&'static str] {
        match self {
            // The registered name of HMAC-MD5 has this form (RFC 8945, section 6).
            Algorithm::Md5 => &["hmac-md5", "sig-alg", "reg", "int"],
            Algorithm::Sha1 => &["hmac-sha1"],
            Algorithm::Sha256 => &["hmac-sha256"],
            Algorithm::Sha512 => &["hmac-sha512"],
        }
    }

    /// Calls the continuation with the keyed hash (HMAC) of these parts.
    fn run<T>(self, secret: &[u8], parts: &[&[u8]], then: impl Then<T>) -> T {
        match self {
            Algorithm::Md5 => then.call(hashed::<Hmac<md5::Md5>>(secret, parts)),
            Algorithm::Sha1 => then.call(hashed::<Hmac<sha1::Sha1>>(secret, parts)),
            Algorithm::Sha256 => then.call(hashed::<Hmac<sha2::Sha256>>(secret, parts)),
            Algorithm::Sha512 => then.call(hashed::<Hmac<sha2::Sha512>>(secret, parts)),
        }
    }
}

/// Continuation that receives a digest. A trait instead of a closure, since the type of the digest depends on the algorithm.
trait Then<T> {
    fn call(self, hash: Option<impl Mac>) -> T;
}

fn hashed<M: Mac + KeyInit>(secret: &[u8], parts: &[&[u8]]) -> Option<M> {
    let mut hash = <M as KeyInit>::new_from_slice(secret).ok()?;
    parts.iter().for_each(|part| hash.update(part));
    Some(hash)
}

struct Bytes;

impl Then<Vec<u8>> for Bytes {
    fn call(self, hash: Option<impl Mac>) -> Vec<u8> {
        hash.map(|h| h.finalize().into_bytes().to_vec()).unwrap_or_default()
    }
}

/// Continuation that compares in constant time, so that the duration reveals nothing about the correct signature.
struct Equals<'a>(&'a [u8]);

impl Then<bool> for Equals<'_> {
    fn call(self, hash: Option<impl Mac>) -> bool {
        hash.is_some_and(|h| h.verify_slice(self.0).is_ok())
    }
}

#[derive(Clone)]
pub(crate) struct Key {
    name: Vec<u8>,
    algorithm: Algorithm,
    secret: Vec<u8>,
}

/// Omits the secret.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}

impl Key {
    pub fn new(name: &Name, algorithm: Algorithm, secret: Vec<u8>) -> Key {
        Key {
            name: on_the_wire(name.iter()),
            algorithm,
            secret,
        }
    }

    /// Signs a message at this time (seconds since 1970). Returns the signed message, and the signature, which is also a part of the data
    /// that the signature of the answer covers; `None` if the message is malformed or too large.
    pub fn sign(&self, message: &[u8], time: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        let id = message.get(..2)?;
        let algorithm = on_the_wire(self.algorithm.labels());
        let when = [&time.to_be_bytes()[2..], &FUDGE.to_be_bytes()].concat();
        // The TSIG variables of RFC 8945, section 4.3.3: name, class, TTL, algorithm, times, error, and the length of other data.
        let about = [&self.name, &ANY.to_be_bytes()[..], &[0; 4], &algorithm, &when, &[0; 4]].concat();
        let mac = self.algorithm.run(&self.secret, &[message, &about], Bytes);
        let size = u16::try_from(mac.len()).ok()?.to_be_bytes();
        let data = [&algorithm, &when, &size[..], &mac, id, &[0; 4]].concat();

        let mut signed = message.to_vec();
        signed.extend_from_slice(&self.name);
        for number in [TSIG, ANY, 0, 0, u16::try_from(data.len()).ok()?] {
            signed.extend_from_slice(&number.to_be_bytes());
        }
        signed.extend_from_slice(&data);
        let count = number(message, ADDITIONAL)?.checked_add(1)?;
        signed.get_mut(ADDITIONAL..HEAD)?.copy_from_slice(&count.to_be_bytes());
        Some((signed, mac))
    }

    /// Verifies the signature of the answer to a message that was signed with this key.
    pub fn verify(&self, answer: &[u8], request_mac: &[u8], now: u64) -> Result<(), Problem> {
        let record = Record::find(answer).ok_or(Problem::Unsigned)?;
        if record.name != self.name || record.algorithm != on_the_wire(self.algorithm.labels()) {
            return Err(Problem::Wrong("it is signed with another key"));
        }
        // A server that does not have the key cannot sign its error (RFC 8945, section 5.3.2).
        if let Some(problem) = Problem::from_code(record.error)
            && record.mac.is_empty()
        {
            return Err(problem);
        }
        let broken = || Problem::Wrong("its signature cannot be read");
        // The signature covers the message without its TSIG record, and with the original ID (RFC 8945, section 4.3.2).
        let mut head = record.before.to_vec();
        head.get_mut(..2).ok_or_else(broken)?.copy_from_slice(record.id);
        let count = number(answer, ADDITIONAL)
            .and_then(|n| n.checked_sub(1))
            .ok_or_else(broken)?;
        head.get_mut(ADDITIONAL..HEAD)
            .ok_or_else(broken)?
            .copy_from_slice(&count.to_be_bytes());
        let size = u16::try_from(request_mac.len()).map_err(|_| broken())?.to_be_bytes();
        let about = [
            &record.name,
            &ANY.to_be_bytes()[..],
            &[0; 4],
            &record.algorithm,
            record.when,
            record.rest,
        ]
        .concat();
        if !self
            .algorithm
            .run(&self.secret, &[&size, request_mac, &head, &about], Equals(record.mac))
        {
            return Err(Problem::Wrong("its signature does not fit"));
        }
        if let Some(problem) = Problem::from_code(record.error) {
            return Err(problem);
        }
        // The time is checked after the signature, since the time in an unverified message is meaningless.
        if now.abs_diff(record.time) > u64::from(FUDGE) {
            return Err(Problem::BadTime);
        }
        Ok(())
    }
}

/// TSIG error, reported by the server or found in its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Unsigned,
    Wrong(&'static str),
    BadSignature,
    BadKey,
    BadTime,
    Other(u16),
}

impl Problem {
    fn from_code(error: u16) -> Option<Problem> {
        Some(match error {
            0 => return None,
            16 => Problem::BadSignature,
            17 => Problem::BadKey,
            18 => Problem::BadTime,
            other => Problem::Other(other),
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Unsigned => {
                f.write_str("the question was signed, but the answer is not, so that it could be anybody's")
            }
            Problem::Wrong(what) => write!(f, "the answer cannot be trusted: {what}"),
            Problem::BadSignature => f.write_str(
                "the server finds the signature wrong (BADSIG): key_secret is not the one it has for this key",
            ),
            Problem::BadKey => {
                f.write_str("the server does not know the key (BADKEY): check key_name and key_algorithm")
            }
            Problem::BadTime => {
                f.write_str("the clocks of this machine and of the server differ by more than five minutes (BADTIME)")
            }
            Problem::Other(error) => write!(f, "the server refuses the signature with error {error}"),
        }
    }
}

/// The TSIG record of a message, which is the last one.
struct Record<'m> {
    /// Message without its TSIG record.
    before: &'m [u8],
    name: Vec<u8>,
    algorithm: Vec<u8>,
    /// Time of the signature and allowed difference, in wire format.
    when: &'m [u8],
    time: u64,
    mac: &'m [u8],
    id: &'m [u8],
    error: u16,
    /// Error and other data in wire format.
    rest: &'m [u8],
}

impl<'m> Record<'m> {
    fn find(message: &'m [u8]) -> Option<Record<'m>> {
        let count = |at| number(message, at).map(usize::from);
        let mut at = HEAD;
        for _ in 0..count(4)? {
            at = after_name(message, at)? + 4;
        }
        let records = count(6)? + count(8)? + count(ADDITIONAL)?;
        if count(ADDITIONAL)? == 0 {
            return None;
        }
        // The TSIG record is the last one (RFC 8945, section 5.1), so the records before it are skipped.
        for _ in 1..records {
            let data = after_name(message, at)? + 10;
            at = data + usize::from(number(message, data - 2)?);
        }
        let name_end = after_name(message, at)?;
        if number(message, name_end)? != TSIG {
            return None;
        }
        let data = name_end + 10;
        let algorithm_end = after_name(message, data)?;
        let when = message.get(algorithm_end..algorithm_end + 8)?;
        let mac_at = algorithm_end + 10;
        let id_at = mac_at + usize::from(number(message, mac_at - 2)?);
        let mut time = [0; 8];
        time.get_mut(2..)?.copy_from_slice(when.get(..6)?);
        Some(Record {
            before: message.get(..at)?,
            // The signed data has names in canonical form (lower case), whatever their case in the message is.
            name: message.get(at..name_end)?.to_ascii_lowercase(),
            algorithm: message.get(data..algorithm_end)?.to_ascii_lowercase(),
            when,
            time: u64::from_be_bytes(time),
            mac: message.get(mac_at..id_at)?,
            id: message.get(id_at..id_at + 2)?,
            error: number(message, id_at + 2)?,
            rest: message.get(id_at + 2..data + usize::from(number(message, data - 2)?))?,
        })
    }
}

/// Encodes a name in lower case, which is the canonical form for signatures.
fn on_the_wire<L: AsRef<[u8]>>(labels: impl IntoIterator<Item = L>) -> Vec<u8> {
    let mut out = Vec::new();
    for label in labels {
        let label = label.as_ref();
        // A label has at most 63 bytes.
        out.push(u8::try_from(label.len()).unwrap_or(u8::MAX));
        out.extend(label.to_ascii_lowercase());
    }
    out.push(0);
    out
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    bytes.try_into().ok().map(u16::from_be_bytes)
}

/// Returns the offset of the byte after a name in a message.
fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            pointer if pointer >= 0xc0 => return Some(at + 2),
            size => at += usize::from(size) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &[u8]) -> Key {
        Key::new(
            &crate::text::name("Key.example.").unwrap(),
            Algorithm::Sha256,
            secret.to_vec(),
        )
    }

    /// Returns an answer with a signature, as a server would create it.
    fn answer(key: &Key, request_mac: &[u8], time: u64) -> Vec<u8> {
        let message = [0xab, 0xcd, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let algorithm = on_the_wire(key.algorithm.labels());
        let when = [&time.to_be_bytes()[2..], &FUDGE.to_be_bytes()].concat();
        let about = [&key.name, &ANY.to_be_bytes()[..], &[0; 4], &algorithm, &when, &[0; 4]].concat();
        let size = u16::try_from(request_mac.len()).unwrap().to_be_bytes();
        let mac = key
            .algorithm
            .run(&key.secret, &[&size, request_mac, &message, &about], Bytes);
        let (mut signed, wrong) = key.sign(&message, time).unwrap();
        let at = signed.windows(wrong.len()).position(|w| w == wrong).unwrap();
        signed[at..at + mac.len()].copy_from_slice(&mac);
        signed
    }

    #[test]
    fn an_answer_is_believed_if_it_is_signed_with_the_key_for_this_question() {
        let now = 1_700_000_000;
        let good = answer(&key(b"secret"), b"question", now);
        assert_eq!(key(b"secret").verify(&good, b"question", now), Ok(()));
        assert_eq!(
            key(b"secret").verify(&good, b"question", now + 301),
            Err(Problem::BadTime)
        );
        let unfit = Err(Problem::Wrong("its signature does not fit"));
        assert_eq!(key(b"other").verify(&good, b"question", now), unfit);
        assert_eq!(key(b"secret").verify(&good, b"another question", now), unfit);
        let mut changed = good.clone();
        changed[3] = 1;
        assert_eq!(key(b"secret").verify(&changed, b"question", now), unfit);
        assert_eq!(
            key(b"secret").verify(&good[..12], b"question", now),
            Err(Problem::Unsigned)
        );
    }

    #[test]
    fn broken_answers_are_no_panic() {
        let good = answer(&key(b"secret"), b"question", 1);
        for end in 0..good.len() {
            assert!(key(b"secret").verify(&good[..end], b"question", 1).is_err());
        }
        for at in 0..good.len() {
            for byte in [0, 1, 0x3f, 0xc0, 0xff] {
                let mut bad = good.clone();
                bad[at] = byte;
                let _ = key(b"secret").verify(&bad, b"question", 1);
            }
        }
    }
}
