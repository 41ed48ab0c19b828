//! Hashes and identifiers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cty::Value;
use data_encoding::HEXLOWER;
use sha2::Digest;
use uuid::Uuid;

use super::filesystem::read_to_hash;
use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, integer, number, string, text, unknown};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base64sha256", &[string("str")], Returns::String, |a, _, _| {
        base64(&sha256(text(a, 0).as_bytes()))
    }),
    Function::new("base64sha512", &[string("str")], Returns::String, |a, _, _| {
        base64(&sha512(text(a, 0).as_bytes()))
    }),
    Function::new("bcrypt", &[string("str")], Returns::String, bcrypt_hash).variadic(number("cost")),
    Function::new("filebase64sha256", &[string("path")], Returns::String, |a, _, s| {
        base64(&sha256(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("filebase64sha512", &[string("path")], Returns::String, |a, _, s| {
        base64(&sha512(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("filemd5", &[string("path")], Returns::String, |a, _, s| {
        hex(&md5(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("filesha1", &[string("path")], Returns::String, |a, _, s| {
        hex(&sha1(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("filesha256", &[string("path")], Returns::String, |a, _, s| {
        hex(&sha256(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("filesha512", &[string("path")], Returns::String, |a, _, s| {
        hex(&sha512(&read_to_hash(text(a, 0), s)?))
    }),
    Function::new("md5", &[string("str")], Returns::String, |a, _, _| {
        hex(&md5(text(a, 0).as_bytes()))
    }),
    Function::new("sha1", &[string("str")], Returns::String, |a, _, _| {
        hex(&sha1(text(a, 0).as_bytes()))
    }),
    Function::new("sha256", &[string("str")], Returns::String, |a, _, _| {
        hex(&sha256(text(a, 0).as_bytes()))
    }),
    Function::new("sha512", &[string("str")], Returns::String, |a, _, _| {
        hex(&sha512(text(a, 0).as_bytes()))
    }),
    Function::new("uuid", &[], Returns::String, |_, t, s| {
        // Each call returns a different value, so a plan and its apply would never agree.
        if s.settings.pure {
            unknown(t)
        } else {
            Ok(Value::string(Uuid::new_v4().to_string()))
        }
    }),
    Function::new(
        "uuidv5",
        &[string("namespace"), string("name")],
        Returns::String,
        |a, _, _| {
            let namespace = match text(a, 0) {
                "dns" => Uuid::NAMESPACE_DNS,
                "url" => Uuid::NAMESPACE_URL,
                "oid" => Uuid::NAMESPACE_OID,
                "x500" => Uuid::NAMESPACE_X500,
                given => Uuid::parse_str(given).map_err(|_| {
                    let why = match given.len() {
                        32 | 36 | 38 | 45 => "invalid UUID format".to_owned(),
                        n => format!("invalid UUID length: {n}"),
                    };
                    CallError::failed(format!("uuidv5() doesn't support namespace {given} ({why})"))
                })?,
            };
            Ok(Value::string(
                Uuid::new_v5(&namespace, text(a, 1).as_bytes()).to_string(),
            ))
        },
    ),
];

fn md5(bytes: &[u8]) -> Vec<u8> {
    md5::Md5::digest(bytes).to_vec()
}

fn sha1(bytes: &[u8]) -> Vec<u8> {
    sha1::Sha1::digest(bytes).to_vec()
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    sha2::Sha256::digest(bytes).to_vec()
}

fn sha512(bytes: &[u8]) -> Vec<u8> {
    sha2::Sha512::digest(bytes).to_vec()
}

fn hex(digest: &[u8]) -> CallResult {
    Ok(Value::string(HEXLOWER.encode(digest)))
}

fn base64(digest: &[u8]) -> CallResult {
    Ok(Value::string(STANDARD.encode(digest)))
}

fn bcrypt_hash(args: &[Value], ty: &cty::Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    let cost = match args.len() {
        0 | 1 => 10,
        2 => integer(args, 1)?,
        n => {
            return Err(CallError::failed(format!(
                "bcrypt takes no more than two arguments, and was given {n}"
            )));
        }
    };
    if cost > 31 {
        return Err(CallError::failed(format!(
            "the cost {cost} is out of range: it can be from 4 to 31"
        )));
    }
    if environment.settings.pure {
        return unknown(ty);
    }
    // Go's library uses its default for a cost below its minimum.
    let cost = if cost < 4 {
        10
    } else {
        u32::try_from(cost).unwrap_or(10)
    };
    let given = text(args, 0);
    // Longer passwords would be truncated silently, so they are refused, as in Go's library.
    if given.len() > 72 {
        return Err(CallError::failed(
            "the password is longer than 72 bytes, which is as much as bcrypt looks at",
        ));
    }
    let hash = bcrypt::hash_with_result(given, cost)
        .map_err(|e| CallError::failed(format!("the password cannot be hashed: {e}")))?;
    Ok(Value::string(hash.format_for_version(bcrypt::Version::TwoA)))
}
