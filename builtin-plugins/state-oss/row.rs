//! Rows of Tablestore in their binary format ("PlainBuffer"), and the Protocol Buffers messages that contain them, limited to what locks
//! and checksums need. The formats are those of Tablestore's official clients.
//!
//! A row is a header, followed by items that each begin with a tag: the primary key, the other columns, a deletion mark, a checksum. A
//! column consists of its name, its value and a checksum. Checksums are CRC-8 with the polynomial 0x07. Numbers are little-endian.

use std::collections::BTreeMap;

use prost::Message;

const HEADER: u32 = 0x75;
const KEY: u8 = 0x1;
const DATA: u8 = 0x2;
const CELL: u8 = 0x3;
const NAME: u8 = 0x4;
const VALUE: u8 = 0x5;
const TYPE: u8 = 0x6;
const TIME: u8 = 0x7;
const DELETE: u8 = 0x8;
const ROW_CHECK: u8 = 0x9;
const CELL_CHECK: u8 = 0xa;
/// Type tag of a text value.
const TEXT: u8 = 0x3;

/// Existence condition of a request: none.
pub(crate) const WHETHER_OR_NOT: i32 = 0;

/// Existence condition of a request: the row must not exist.
pub(crate) const NOT_THERE: i32 = 2;

/// Condition of a request.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Condition {
    #[prost(int32, required, tag = "1")]
    pub existence: i32,
}

/// Body of `PutRow` and `DeleteRow`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Change {
    #[prost(string, required, tag = "1")]
    pub table: String,
    #[prost(bytes = "vec", required, tag = "2")]
    pub row: Vec<u8>,
    #[prost(message, required, tag = "3")]
    pub condition: Condition,
}

/// Body of `GetRow`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Get {
    #[prost(string, required, tag = "1")]
    pub table: String,
    #[prost(bytes = "vec", required, tag = "2")]
    pub key: Vec<u8>,
    #[prost(string, repeated, tag = "3")]
    pub columns: Vec<String>,
    #[prost(int32, optional, tag = "5")]
    pub versions: Option<i32>,
}

/// Response of `GetRow`. The row is empty if it does not exist.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Got {
    #[prost(bytes = "vec", required, tag = "2")]
    pub row: Vec<u8>,
}

/// Body of `DescribeTable`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Describe {
    #[prost(string, required, tag = "1")]
    pub table: String,
}

/// Response of a request that failed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Refusal {
    #[prost(string, required, tag = "1")]
    pub code: String,
    #[prost(string, optional, tag = "2")]
    pub message: Option<String>,
}

fn crc8(check: u8, bytes: &[u8]) -> u8 {
    bytes.iter().fold(check, |check, byte| {
        (0..8).fold(check ^ byte, |check, _| match check & 0x80 {
            0 => check << 1,
            _ => check << 1 ^ 0x07,
        })
    })
}

fn number(length: usize) -> [u8; 4] {
    // Names and values are far shorter than 4 GiB.
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// Appends a column to a row, and returns the checksum of the column.
fn add(out: &mut Vec<u8>, name: &str, value: &str) -> u8 {
    let length = number(value.len());
    out.extend([CELL, NAME]);
    out.extend(number(name.len()));
    out.extend(name.as_bytes());
    out.push(VALUE);
    out.extend(number(length.len() + 1 + value.len()));
    out.push(TEXT);
    out.extend(length);
    out.extend(value.as_bytes());
    // The checksum of a column covers its name, and the type, length and content of its value, but not the tags.
    let check = crc8(crc8(0, name.as_bytes()), &[TEXT]);
    let check = crc8(crc8(check, &length), value.as_bytes());
    out.extend([CELL_CHECK, check]);
    check
}

/// Encodes a row with this key and these columns, or a row with a deletion mark.
pub(crate) fn written(key: (&str, &str), columns: &[(&str, &str)], delete: bool) -> Vec<u8> {
    let mut out = HEADER.to_le_bytes().to_vec();
    out.push(KEY);
    let mut check = crc8(0, &[add(&mut out, key.0, key.1)]);
    if !columns.is_empty() {
        out.push(DATA);
    }
    for (name, value) in columns {
        check = crc8(check, &[add(&mut out, name, value)]);
    }
    if delete {
        out.push(DELETE);
    }
    // The checksum includes one byte for the deletion mark: 1, or 0 for a row without the mark.
    check = crc8(check, &[u8::from(delete)]);
    out.extend([ROW_CHECK, check]);
    out
}

/// Decodes the text columns of a row, including its key; `None` for invalid bytes.
pub(crate) fn read(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    let mut rest = Reader(bytes);
    if rest.number()? != HEADER as usize {
        return None;
    }
    let mut columns = BTreeMap::new();
    loop {
        match rest.byte()? {
            KEY | DATA | DELETE => {}
            CELL => {
                if let Some((name, value)) = rest.cell()? {
                    columns.insert(name, value);
                }
            }
            ROW_CHECK => {
                rest.byte()?;
                return Some(columns);
            }
            _ => return None,
        }
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn number(&mut self) -> Option<usize> {
        let bytes: [u8; 4] = self.bytes(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()?;
        String::from_utf8(self.bytes(length)?.to_vec()).ok()
    }

    /// Decodes a column; the inner value is `None` if its type is not text.
    fn cell(&mut self) -> Option<Option<(String, String)>> {
        if self.byte()? != NAME {
            return None;
        }
        let name = self.text()?;
        let mut value = None;
        loop {
            match self.byte()? {
                VALUE => {
                    let length = self.number()?;
                    let mut inner = Reader(self.bytes(length)?);
                    if inner.byte()? == TEXT {
                        value = Some(inner.text()?);
                    }
                }
                TYPE => drop(self.byte()?),
                TIME => drop(self.bytes(8)?),
                CELL_CHECK => {
                    self.byte()?;
                    return Some(value.map(|value| (name, value)));
                }
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let row = written(("LockID", "b/k"), &[("Info", "{}")], false);
        let columns = read(&row).unwrap();
        assert_eq!((columns["LockID"].as_str(), columns["Info"].as_str()), ("b/k", "{}"));
        for end in 0..row.len() {
            assert_eq!(read(&row[..end]), None, "{end}");
        }
    }

    /// According to catalogs of CRC algorithms, the CRC-8 of "123456789" with this polynomial is 0xf4.
    #[test]
    fn checks_are_those_of_the_polynomial() {
        assert_eq!(crc8(0, b"123456789"), 0xf4);
    }

    /// The bytes that the official Go client (4.1.2) sends for a row with only a key, with and without a deletion mark.
    #[test]
    fn keys_are_those_of_the_official_client() {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(&written(("LockID", "a"), &[], false)), OFFICIAL_KEY);
        assert_eq!(hex(&written(("LockID", "a"), &[], true)), OFFICIAL_DELETED);
        assert_eq!(hex(&written(("LockID", "a"), &[("Info", "b")], false)), OFFICIAL_ROW);
    }

    const OFFICIAL_KEY: &str = "75000000010304060000004c6f636b494405060000000301000000610af7097f";
    const OFFICIAL_DELETED: &str = "75000000010304060000004c6f636b494405060000000301000000610af7080978";
    const OFFICIAL_ROW: &str = "75000000010304060000004c6f636b494405060000000301000000610af702030404000000496e666f05060000000301000000620a550937";
}
