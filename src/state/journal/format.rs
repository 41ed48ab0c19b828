//! Encoding of a journal: a first line that names the format, then frames with one record each.
//!
//! A frame is a head of twelve bytes and the text of a record, in JSON. The head has three little-endian numbers of four bytes: the length
//! of the text; the CRC-32 of the frame's offset in the file and of its text; the CRC-32 of those first eight bytes. Since the offset is
//! part of the checksum, a frame from another file or offset fails. Since the head has its own checksum, the length can be trusted: a frame
//! that is longer than the rest of the file was not written completely, and any other frame that fails is damaged. An incomplete frame is
//! dropped, because its operation does not count as done. A damaged frame is reported.
//!
//! If encryption is configured, the text of each frame is encrypted, and the first line has the number 2.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Answers, Base, Intent, IntentAction, IntentKey, Outcome};
use crate::{ContentError, DeposedKey, InstanceState, StateError, v4};

/// First line of a journal; the number is the version of the format.
pub(crate) const MAGIC: &[u8] = b"monoform journal 1\n";

/// First line of a journal whose records are encrypted. Programs that know only version 1 refuse it.
pub(crate) const SEALED_MAGIC: &[u8] = b"monoform journal 2\n";

const HEAD: usize = 12;

/// First record of a journal: the state that it continues, and the run that writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    pub base: Base,
    /// Name of the operation, as in its lock.
    pub operation: String,
    /// Time at which the run began, in RFC 3339.
    pub since: String,
    /// Version to record in states that are recovered from this journal.
    pub terraform_version: String,
    /// Set when the run has ended and all results are in the state. The journal then remains only because of creations that the provider
    /// did not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

/// Stored form of an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    pub address: String,
    /// Key of the deposed object that the operation is about; `None` for the current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    pub action: IntentAction,
    /// Provider configuration, provisioner type or action that carries out the operation.
    pub by: String,
    /// Checksum of the planned value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub planned: String,
    /// Start time of the operation, in RFC 3339.
    pub since: String,
}

impl InFlight {
    pub(crate) fn new(intent: &Intent, since: String) -> InFlight {
        InFlight {
            address: intent.address.clone(),
            deposed: intent.deposed.as_ref().map(|key| key.0.to_string()),
            action: intent.action,
            by: intent.by.clone(),
            planned: intent.planned.clone(),
            since,
        }
    }

    pub(crate) fn key(&self) -> IntentKey {
        IntentKey {
            address: self.address.clone(),
            deposed: self.deposed.clone(),
            provision: self.action.is_inside(),
        }
    }
}

/// A record of a journal.
#[derive(Clone, Debug)]
pub enum Record {
    /// Head of the journal.
    Opened(Opened),
    Begin(InFlight),
    /// All objects of an instance after a change.
    Outcome(Box<Outcome>),
    /// An operation has ended without an outcome.
    End(IntentKey),
    /// Announcement that the state file is about to become the snapshot with this identification.
    Fold(Base),
}

#[derive(Serialize, Deserialize)]
struct EndText {
    address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deposed: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    provision: bool,
}

/// Records that serde writes as JSON. Outcomes are written without serde, because their objects have the form of the state file.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum PlainText<'a> {
    Opened(&'a Opened),
    Begin(&'a InFlight),
    End(EndText),
    Fold(&'a Base),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordText<'a> {
    Opened(Opened),
    Begin(InFlight),
    #[serde(borrow)]
    Outcome(OutcomeText<'a>),
    End(EndText),
    Fold(Base),
}

#[derive(Deserialize)]
struct OutcomeText<'a> {
    address: String,
    provider: String,
    #[serde(default)]
    answers: Option<String>,
    #[serde(borrow, default)]
    objects: Option<&'a RawValue>,
}

/// Encodes a record as the text of a frame.
pub(crate) fn encode(record: &Record) -> Result<Vec<u8>, StateError> {
    let plain = match record {
        Record::Outcome(outcome) => return encode_outcome(outcome),
        Record::Opened(opened) => PlainText::Opened(opened),
        Record::Begin(intent) => PlainText::Begin(intent),
        Record::End(key) => PlainText::End(EndText {
            address: key.address.clone(),
            deposed: key.deposed.clone(),
            provision: key.provision,
        }),
        Record::Fold(base) => PlainText::Fold(base),
    };
    serde_json::to_vec(&plain).map_err(|e| StateError::Value {
        what: "A record of the journal".into(),
        message: e.to_string(),
    })
}

fn encode_outcome(outcome: &Outcome) -> Result<Vec<u8>, StateError> {
    // The record is written without serde, because the objects are texts already, in the form of the state
    // file.
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"outcome\":{\"address\":");
    v4::json_string(&outcome.address.to_string(), &mut out);
    out.extend_from_slice(b",\"provider\":");
    v4::json_string(&outcome.provider.to_string(), &mut out);
    match &outcome.answers {
        Answers::Nothing => {}
        Answers::Current => out.extend_from_slice(b",\"answers\":\"current\""),
        Answers::Deposed(key) => {
            out.extend_from_slice(b",\"answers\":");
            v4::json_string(&key.0, &mut out);
        }
    }
    if let Some(objects) = &outcome.objects {
        out.extend_from_slice(b",\"objects\":");
        v4::write_objects(&outcome.address, objects, &mut out)?;
    }
    out.extend_from_slice(b"}}");
    Ok(out)
}

/// Reason why a record cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    NotUtf8(#[from] std::str::Utf8Error),
    #[error("{}", files::json_reason(.0))]
    Json(#[from] serde_json::Error),
    #[error("{}", .0.detail)]
    Address(addrs::parse::ParseError),
    #[error(transparent)]
    Content(#[from] ContentError),
}

/// Parses the text of a frame.
pub(crate) fn decode(text: &[u8]) -> Result<Record, RecordError> {
    let text = std::str::from_utf8(text)?;
    Ok(match serde_json::from_str(text)? {
        RecordText::Opened(opened) => Record::Opened(opened),
        RecordText::Begin(intent) => Record::Begin(intent),
        RecordText::End(end) => Record::End(IntentKey {
            address: end.address,
            deposed: end.deposed,
            provision: end.provision,
        }),
        RecordText::Fold(base) => Record::Fold(base),
        RecordText::Outcome(outcome) => {
            let address = addrs::parse::resource_instance(&outcome.address).map_err(RecordError::Address)?;
            let objects: Option<InstanceState> = outcome.objects.map(|o| v4::read_objects(o.get())).transpose()?;
            Record::Outcome(Box::new(Outcome {
                address,
                provider: addrs::parse::provider_config(&outcome.provider).map_err(ContentError::Provider)?,
                objects,
                answers: match outcome.answers.as_deref() {
                    None => Answers::Nothing,
                    // A deposed key is eight hexadecimal digits, so it cannot be this word.
                    Some("current") => Answers::Current,
                    Some(key) => Answers::Deposed(DeposedKey(key.into())),
                },
            }))
        }
    })
}

/// Appends a frame to a buffer. The first byte of the buffer is at the offset `buffer_at` of the file.
pub(crate) fn frame(text: &[u8], buffer_at: u64, buffer: &mut Vec<u8>) -> Result<(), StateError> {
    let length = u32::try_from(text.len()).map_err(|_| StateError::Value {
        what: "A record of the journal".into(),
        message: "it is larger than 4 GiB".into(),
    })?;
    let place = buffer_at + buffer.len() as u64;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&sum(place, text).to_le_bytes());
    let own = crc32fast::hash(&head[..8]);
    head[8..].copy_from_slice(&own.to_le_bytes());
    buffer.extend_from_slice(&head);
    buffer.extend_from_slice(text);
    Ok(())
}

fn sum(place: u64, text: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&place.to_le_bytes());
    sum.update(text);
    sum.finalize()
}

/// A part of a journal that is being read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a [u8]),
    /// Bytes that are not a valid record.
    Damaged(Damage),
    /// An incomplete record at the end of the file, whose write was interrupted.
    Torn,
}

/// Position and kind of a damaged part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file.
    pub at: usize,
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.what)
    }
}

enum Frame<'a> {
    Whole(&'a [u8]),
    /// The head is valid, but the text fails its checksum. Has the offset of the next frame.
    BadText(usize),
    BadHead,
    Short,
}

fn frame_at(file: &[u8], at: usize) -> Frame<'_> {
    let rest = file.get(at..).unwrap_or_default();
    let Some((head, rest)) = rest.split_first_chunk::<HEAD>() else {
        return Frame::Short;
    };
    let number = |i: usize| u32::from_le_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    if number(8) != crc32fast::hash(&head[..8]) {
        return Frame::BadHead;
    }
    let length = number(0) as usize;
    match rest.get(..length) {
        None => Frame::Short,
        Some(text) if sum(at as u64, text) == number(4) => Frame::Whole(text),
        Some(_) => Frame::BadText(at + HEAD + length),
    }
}

/// Splits a journal into its parts, with their offsets. A file that is not a journal is one damaged part.
pub(crate) fn parts(file: &[u8]) -> Vec<(usize, Part<'_>)> {
    if !file.starts_with(MAGIC) && !file.starts_with(SEALED_MAGIC) {
        // An incomplete first line means that the creation of the file was interrupted.
        return match MAGIC.starts_with(file) || SEALED_MAGIC.starts_with(file) {
            true => vec![(0, Part::Torn)],
            false => vec![(0, damaged(0, "this is not the first line of a journal"))],
        };
    }
    let mut parts = Vec::new();
    let mut at = MAGIC.len();
    while at < file.len() {
        match frame_at(file, at) {
            Frame::Whole(text) => {
                parts.push((at, Part::Text(text)));
                at += HEAD + text.len();
            }
            Frame::BadText(next) => {
                parts.push((
                    at,
                    damaged(at, "a record does not have the checksum that it was written with"),
                ));
                at = next;
            }
            Frame::Short => {
                parts.push((at, Part::Torn));
                break;
            }
            Frame::BadHead if file[at..].iter().all(|byte| *byte == 0) => {
                // After a power cut, a file may have its new length but not the contents, and then ends in zeros.
                parts.push((at, Part::Torn));
                break;
            }
            Frame::BadHead => {
                parts.push((at, damaged(at, "the head of a record is not valid")));
                // The head is damaged, so the length of the frame is unknown, and the next frame is searched for byte by byte. A false
                // match would have to pass two checksums.
                let next = (at + 1..file.len()).find(|next| matches!(frame_at(file, *next), Frame::Whole(_)));
                at = next.unwrap_or(file.len());
            }
        }
    }
    parts
}

fn damaged(at: usize, what: &str) -> Part<'static> {
    Part::Damaged(Damage {
        at,
        what: what.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(texts: &[Vec<u8>]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for text in texts {
            frame(text, 0, &mut file).unwrap();
        }
        file
    }

    fn texts_of<'a>(parts: &'a [(usize, Part<'a>)]) -> Vec<&'a [u8]> {
        let text = |(_, part): &(usize, Part<'a>)| match part {
            Part::Text(text) => Some(*text),
            _ => None,
        };
        parts.iter().filter_map(text).collect()
    }

    fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)
    }

    proptest! {
        #[test]
        fn frames_read_back(texts in texts()) {
            let file = file(&texts);
            let parts = parts(&file);
            prop_assert_eq!(texts_of(&parts), texts);
        }

        #[test]
        fn every_prefix_is_the_beginning_and_undamaged(texts in texts()) {
            let file = file(&texts);
            for end in 0..=file.len() {
                let parts = parts(&file[..end]);
                let read = texts_of(&parts);
                prop_assert_eq!(&read[..], &texts[..read.len()]);
                prop_assert!(!parts.iter().any(|(_, p)| matches!(p, Part::Damaged(_))), "cut at {}", end);
                let torn = parts.iter().filter(|(_, p)| *p == Part::Torn).count();
                prop_assert!(torn <= 1);
            }
        }

        #[test]
        fn a_prefix_with_zeros_behind_it_is_the_beginning(texts in texts(), cut in any::<prop::sample::Index>()) {
            let mut file = file(&texts);
            let end = MAGIC.len() + cut.index(file.len() - MAGIC.len() + 1);
            file[end..].fill(0);
            let parts = parts(&file);
            // A record is complete if only zeros are missing at its end.
            for (i, text) in texts_of(&parts).iter().enumerate() {
                prop_assert_eq!(*text, &texts[i][..]);
            }
        }

        #[test]
        fn flipped_bit_is_reported_and_its_record_is_not_used(texts in texts(), bit in any::<prop::sample::Index>()) {
            let mut file = file(&texts);
            let bit = bit.index(file.len() * 8);
            file[bit / 8] ^= 1 << (bit % 8);
            let parts = parts(&file);
            prop_assert!(parts.iter().any(|(_, p)| matches!(p, Part::Damaged(_))), "{:?}", parts);
            let read = texts_of(&parts);
            // All records except the damaged one are found, in order.
            let mut left = texts.iter();
            for text in &read {
                prop_assert!(left.any(|t| t == text));
            }
            prop_assert!(bit / 8 < MAGIC.len() || read.len() + 1 >= texts.len());
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
            let mut file = if magic { MAGIC.to_vec() } else { Vec::new() };
            file.extend(bytes);
            parts(&file);
        }

        #[test]
        fn records_read_back(
            name in "[a-z]{1,8}",
            key in prop::option::of(".{0,8}"),
            deposed in prop::option::of("[0-9a-f]{8}"),
            provision in any::<bool>(),
            by in ".{0,12}",
            id in ".{0,12}",
            serial in any::<u64>(),
        ) {
            let index = key.map(|key| format!("[{}]", hcl(&key))).unwrap_or_default();
            let address = addrs::parse::resource_instance(&format!("module.m[1].a_b.{name}{index}")).unwrap();
            let objects = InstanceState {
                current: Some(std::sync::Arc::new(crate::Object {
                    private: by.clone().into_bytes(),
                    status: if provision { crate::ObjectStatus::Tainted } else { crate::ObjectStatus::Ready },
                    sensitive_paths: vec![cty::Path(vec![cty::Step::Attribute("id".into())])],
                    ..crate::Object::new(3, crate::Attributes::Json(crate::RawJson::from_value(&serde_json::json!({ "id": id }))))
                })),
                deposed: deposed.iter().map(|key| {
                    let object = crate::Object::new(0, crate::Attributes::Json(crate::RawJson::parse("{}").unwrap()));
                    (DeposedKey(key.as_str().into()), std::sync::Arc::new(object))
                }).collect(),
                provider_key: None,
            };
            let answers = match &deposed {
                Some(key) => Answers::Deposed(DeposedKey(key.as_str().into())),
                None if provision => Answers::Nothing,
                None => Answers::Current,
            };
            let intent = InFlight {
                address: address.to_string(),
                deposed: deposed.clone(),
                action: if provision { IntentAction::Provision } else { IntentAction::Delete },
                by: by.clone(),
                planned: id.clone(),
                since: by.clone(),
            };
            let base = Base { lineage: id.clone(), serial, checksum: by.clone() };
            let opened = Opened { base: base.clone(), operation: by.clone(), since: id.clone(), terraform_version: name, ended: base.serial % 2 == 1 };
            let outcome = |objects| Record::Outcome(Box::new(Outcome {
                address: address.clone(),
                provider: addrs::AbsProviderConfig::root(addrs::Provider::default_for("a")),
                objects,
                answers: answers.clone(),
            }));
            let records = [
                Record::End(intent.key()), Record::Begin(intent), Record::Fold(base), Record::Opened(opened),
                outcome(None), outcome(Some(objects)),
            ];
            for record in records {
                let text = encode(&record).unwrap();
                let again = decode(&text).unwrap();
                prop_assert_eq!(format!("{again:?}"), format!("{record:?}"));
            }
        }
    }

    /// Quotes a key as in an address.
    fn hcl(key: &str) -> String {
        addrs::InstanceKey::String(key.into())
            .to_string()
            .trim_matches(['[', ']'])
            .to_owned()
    }
}
