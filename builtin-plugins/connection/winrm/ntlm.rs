//! NTLM version 2 for authentication to an HTTP server: the three messages of MS-NLMP. The messages after the login are neither signed nor
//! sealed.

use hmac::{Hmac, KeyInit, Mac};
use md4::{Digest, Md4};
use md5::Md5;

use crate::{Error, Result};

const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";

/// NEGOTIATE_UNICODE: names are in UTF-16.
const UNICODE: u32 = 0x0000_0001;
const REQUEST_TARGET: u32 = 0x0000_0004;
const NTLM: u32 = 0x0000_0200;
const ALWAYS_SIGN: u32 = 0x0000_8000;
const EXTENDED_SESSION_SECURITY: u32 = 0x0008_0000;
const TARGET_INFO: u32 = 0x0080_0000;
const VERSION: u32 = 0x0200_0000;
const KEY_128: u32 = 0x2000_0000;
const KEY_56: u32 = 0x8000_0000;

const FLAGS: u32 = UNICODE
    | REQUEST_TARGET
    | NTLM
    | ALWAYS_SIGN
    | EXTENDED_SESSION_SECURITY
    | TARGET_INFO
    | VERSION
    | KEY_128
    | KEY_56;

/// Version of Windows in the messages: 6.1, build 7601, with NTLM revision 15. Every server accepts it.
const OWN_VERSION: [u8; 8] = [6, 1, 0xb1, 0x1d, 0, 0, 0, 15];

/// ID of the server's time in the target info (MsvAvTimestamp).
const TIMESTAMP: u16 = 7;

/// Credentials of the user.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    pub domain: &'a str,
    pub user: &'a str,
    pub password: &'a str,
}

impl<'a> Who<'a> {
    /// Splits a user name of the form `DOMAIN\user`.
    pub fn new(user: &'a str, password: &'a str) -> Who<'a> {
        let (domain, user) = user.split_once('\\').unwrap_or(("", user));
        Who { domain, user, password }
    }
}

/// The server's answer to the first message (CHALLENGE_MESSAGE).
#[derive(Debug, PartialEq)]
pub struct Challenge {
    flags: u32,
    nonce: [u8; 8],
    target_info: Vec<u8>,
}

/// Values that are new in each exchange: a random number, and the time in intervals of 100 ns since 1601.
pub struct Fresh {
    pub nonce: [u8; 8],
    pub time: u64,
}

/// Encodes the first message (NEGOTIATE_MESSAGE).
pub fn negotiate() -> Vec<u8> {
    let mut out = Vec::with_capacity(40);
    out.extend(SIGNATURE);
    out.extend(1u32.to_le_bytes());
    out.extend(FLAGS.to_le_bytes());
    // Domain and workstation are empty here, because the third message has the domain.
    out.extend([0; 16]);
    out.extend(OWN_VERSION);
    out
}

impl Challenge {
    /// Reads the second message (CHALLENGE_MESSAGE).
    pub fn read(message: &[u8]) -> Result<Challenge> {
        let wrong = || Error::new("the server's NTLM challenge cannot be read");
        let number = |at: usize| {
            let bytes = message.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        if message.get(..8) != Some(SIGNATURE) || number(8) != Some(2) {
            return Err(wrong());
        }
        // Offsets in CHALLENGE_MESSAGE: flags 20, nonce 24, length and offset of the target info 40 and 44.
        let flags = number(20).ok_or_else(wrong)?;
        let nonce = message.get(24..32).and_then(|b| b.try_into().ok()).ok_or_else(wrong)?;
        let mut target_info = Vec::new();
        if flags & TARGET_INFO != 0 {
            let length = message
                .get(40..42)
                .and_then(|b| b.try_into().ok())
                .map(u16::from_le_bytes);
            let from = number(44).and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)?;
            let to = from.saturating_add(usize::from(length.ok_or_else(wrong)?));
            target_info = message.get(from..to).ok_or_else(wrong)?.to_vec();
        }
        Ok(Challenge {
            flags,
            nonce,
            target_info,
        })
    }

    /// Returns the server's time; `None` if the challenge has no time.
    pub fn time(&self) -> Option<u64> {
        let mut rest = self.target_info.as_slice();
        loop {
            let (head, tail) = rest.split_first_chunk::<4>()?;
            let kind = u16::from_le_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
            if kind == TIMESTAMP {
                return Some(u64::from_le_bytes(tail.get(..8)?.try_into().ok()?));
            }
            rest = tail.get(length..)?;
        }
    }

    /// Encodes the third message (AUTHENTICATE_MESSAGE).
    pub fn answer(&self, who: Who<'_>, fresh: &Fresh) -> Vec<u8> {
        let answers = answers(self, who, fresh);
        authenticate(self.flags & FLAGS, OWN_VERSION, who, "", &answers, &[])
    }
}

/// The LM and NT responses, which prove knowledge of the password.
struct Answers {
    lm: Vec<u8>,
    nt: Vec<u8>,
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mut mac) = Hmac::<Md5>::new_from_slice(key) else {
        return [0; 16];
    };
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns the NTLMv2 key of the user (NTOWFv2). The user name is converted to upper case, the domain is not.
fn password_key(who: Who<'_>) -> [u8; 16] {
    let hash = Md4::digest(utf16(who.password));
    hmac_md5(&hash, &[&utf16(&who.user.to_uppercase()), &utf16(who.domain)])
}

fn answers(challenge: &Challenge, who: Who<'_>, fresh: &Fresh) -> Answers {
    let key = password_key(who);
    let mut blob = vec![1, 1, 0, 0, 0, 0, 0, 0];
    blob.extend(fresh.time.to_le_bytes());
    blob.extend(fresh.nonce);
    blob.extend([0; 4]);
    blob.extend(&challenge.target_info);
    blob.extend([0; 4]);
    let proof = hmac_md5(&key, &[&challenge.nonce, &blob]);
    // If the challenge has a time, the LM response is 24 zero bytes (MS-NLMP 3.1.5.1.2).
    let lm = if challenge.time().is_some() {
        vec![0; 24]
    } else {
        let proof = hmac_md5(&key, &[&challenge.nonce, &fresh.nonce]);
        [&proof[..], &fresh.nonce].concat()
    };
    Answers {
        lm,
        nt: [&proof[..], &blob].concat(),
    }
}

/// Lays out the third message: a header with the position of each part, then the parts.
fn authenticate(
    flags: u32,
    version: [u8; 8],
    who: Who<'_>,
    workstation: &str,
    answers: &Answers,
    session_key: &[u8],
) -> Vec<u8> {
    const HEAD: usize = 72;
    let (domain, user, workstation) = (utf16(who.domain), utf16(who.user), utf16(workstation));
    let names = domain.len() + user.len() + workstation.len();
    let lm = HEAD + names;
    let nt = lm + answers.lm.len();
    let field = |length: usize, place: usize| {
        // The length of a longer field is cut off, and the server then refuses the message.
        let length = u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes();
        let place = u32::try_from(place).unwrap_or(u32::MAX).to_le_bytes();
        [&length[..], &length, &place].concat()
    };
    let mut out = Vec::new();
    out.extend(SIGNATURE);
    out.extend(3u32.to_le_bytes());
    out.extend(field(answers.lm.len(), lm));
    out.extend(field(answers.nt.len(), nt));
    out.extend(field(domain.len(), HEAD));
    out.extend(field(user.len(), HEAD + domain.len()));
    out.extend(field(workstation.len(), HEAD + domain.len() + user.len()));
    out.extend(field(session_key.len(), nt + answers.nt.len()));
    out.extend(flags.to_le_bytes());
    out.extend(version);
    for part in [&domain, &user, &workstation, &answers.lm, &answers.nt] {
        out.extend(part);
    }
    out.extend(session_key);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
        digits
            .chunks(2)
            .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
            .collect()
    }

    const WHO: Who<'static> = Who {
        domain: "Domain",
        user: "User",
        password: "Password",
    };

    const FRESH: Fresh = Fresh {
        nonce: [0xaa; 8],
        time: 0,
    };

    /// The challenge of section 4.2.4 of MS-NLMP.
    fn challenge() -> Challenge {
        let message = bytes(
            "4e544c4d53535000 02000000 0c000c00 38000000 33828ae2 0123456789abcdef 0000000000000000 24002400 44000000
             06007017 0000000f 530065007200760065007200
             02000c0044006f006d00610069006e00 01000c005300650072007600650072 00 00000000",
        );
        Challenge::read(&message).unwrap()
    }

    #[test]
    fn the_published_values_come_out() {
        assert_eq!(password_key(WHO).to_vec(), bytes("0c868a403bfd7a93a3001ef22ef02e3f"));
        let challenge = challenge();
        assert_eq!(challenge.nonce.to_vec(), bytes("0123456789abcdef"));
        assert_eq!(
            challenge.target_info,
            bytes("02000c0044006f006d00610069006e0001000c00530065007200760065007200 00000000")
        );
        let found = answers(&challenge, WHO, &FRESH);
        assert_eq!(found.lm, bytes("86c35097ac9cec102554764a57cccc19 aaaaaaaaaaaaaaaa"));
        assert_eq!(found.nt[..16], bytes("68cd0ab851e51c96aabc927bebef6a1c"));
        assert_eq!(
            found.nt[16..],
            bytes(
                "0101000000000000 0000000000000000 aaaaaaaaaaaaaaaa 00000000
                 02000c0044006f006d00610069006e0001000c00530065007200760065007200 00000000 00000000"
            )
        );
    }

    #[test]
    fn the_third_message_is_the_published_one() {
        let found = answers(&challenge(), WHO, &FRESH);
        let version = [5, 1, 0x28, 0x0a, 0, 0, 0, 15];
        let key = bytes("c5dad2544fc9799094ce1ce90bc9d03e");
        let message = authenticate(0xe288_8235, version, WHO, "COMPUTER", &found, &key);
        assert_eq!(
            message,
            bytes(
                "4e544c4d53535000 03000000 18001800 6c000000 54005400 84000000 0c000c00 48000000 08000800 54000000
                 10001000 5c000000 10001000 d8000000 358288e2 0501280a0000000f
                 44006f006d00610069006e00 55007300650072 00 43004f004d0050005500540045005200
                 86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa
                 68cd0ab851e51c96aabc927bebef6a1c 0101000000000000 0000000000000000 aaaaaaaaaaaaaaaa 00000000
                 02000c0044006f006d00610069006e0001000c00530065007200760065007200 00000000 00000000
                 c5dad2544fc9799094ce1ce90bc9d03e"
            )
        );
    }

    #[test]
    fn a_server_that_says_its_time_gets_no_old_proof() {
        let mut challenge = challenge();
        let end = challenge.target_info.len() - 4;
        let item = [&7u16.to_le_bytes()[..], &8u16.to_le_bytes(), &42u64.to_le_bytes()].concat();
        challenge.target_info.splice(end..end, item);
        assert_eq!(challenge.time(), Some(42));
        assert_eq!(answers(&challenge, WHO, &FRESH).lm, [0; 24]);
    }

    #[test]
    fn nonsense_is_no_challenge() {
        for message in [&b""[..], b"NTLMSSP\0", &[0; 60], &negotiate()] {
            assert!(Challenge::read(message).is_err());
        }
        let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
        message.extend([0xff; 40]);
        assert!(Challenge::read(&message).is_err());
    }
}
