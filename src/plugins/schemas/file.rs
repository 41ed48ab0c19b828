//! The file with the schemas of a provider: an index, and the encoded schemas behind it, so that a lookup reads one of them.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `mfschema` |
//! | 4 | the version of this format, little-endian |
//! | 4 | the length of the index, little-endian |
//! | 32 | SHA-256 of the 16 bytes above and the index |
//! | … | the index: a message [`Index`], which ends with kind, name, length and checksum of each schema |
//! | … | the schemas, in the order of the index, as the provider has sent them |
//!
//! The index is verified when the file is opened, and a schema when it is read. The whole file is never read.

use std::fs::File;
use std::io::{self, Read, SeekFrom, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aws_lc_rs::digest::{Context, SHA256, digest};
use prost::Message as _;
use prost::bytes::Bytes;
use proto::tfplugin6 as pb;
use thiserror::Error;

use super::{Answer, Encoded, Kind, Properties, Table, find};
use crate::convert;

const MAGIC: &[u8; 8] = b"mfschema";
/// Version of the format. It is raised with every change of the format, and when answers get new parts that existing files
/// lack. Then all files are written again.
pub(crate) const FORMAT: u32 = 1;
const PREFIX: usize = 16;
const HEADER: usize = PREFIX + 32;
/// Maximum length of the index in bytes, for reading and writing. The largest providers need less than a tenth of the limit.
const MAX_INDEX: usize = 16 << 20;
/// Maximum length of all schemas in bytes, for reading and writing. The largest providers need less than a tenth of the limit.
const MAX_SCHEMAS: u64 = 256 << 20;
/// Length of the checksum of each schema, in bytes.
const SUM: usize = 16;

/// Key of a file: the package and environment of its schemas. A file with another key is not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// The checksum of the provider's package, its executable included.
    pub package: String,
    /// A digest of the environment variables that can change the schemas of a provider.
    pub environment: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Index {
    #[prost(string, tag = "1")]
    package: String,
    #[prost(bytes = "vec", tag = "2")]
    environment: Vec<u8>,
    #[prost(uint32, tag = "3")]
    protocol: u32,
    #[prost(message, optional, tag = "4")]
    capabilities: Option<pb::ServerCapabilities>,
    #[prost(bool, tag = "5")]
    batches: bool,
    #[prost(string, repeated, tag = "6")]
    state_only: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    schemas: Vec<Listed>,
}

/// Entry of a schema in the index.
#[derive(Clone, PartialEq, prost::Message)]
struct Listed {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint32, tag = "3")]
    length: u32,
    #[prost(bytes = "vec", tag = "4")]
    sum: Vec<u8>,
}

/// The reason why a file is not used.
#[derive(Debug, Error)]
pub(crate) enum Unusable {
    #[error("{}", files::io_reason(.0))]
    Io(#[from] io::Error),
    #[error("it is not a file of schemas")]
    Foreign,
    #[error("it has format {0}")]
    Format(u32),
    #[error("it is damaged")]
    Damaged,
    #[error("it describes another package, or was made in another environment")]
    Key,
    #[error("it is larger than any answer of a provider")]
    TooLarge,
}

/// Writes a provider's schemas and properties: header, index, then one message for each schema.
///
/// # Errors
/// The file cannot be written, or the answer is larger than the limit that readers have.
pub(crate) fn write(out: &mut impl Write, key: &Key, answer: &Answer) -> Result<(), Unusable> {
    let Properties {
        protocol,
        capabilities,
        batches,
        state_only,
    } = &answer.properties;
    let all = || {
        let kinds = answer.schemas.iter();
        kinds.flat_map(|(kind, schemas)| std::iter::repeat(*kind).zip(schemas))
    };
    // The index contains the length and the checksum of each schema, so that single schemas can be loaded.
    let mut schemas = Vec::new();
    let mut size = 0;
    for (kind, (name, message)) in all() {
        size += message.len() as u64;
        schemas.push(Listed {
            kind: kind as u32,
            name: name.to_string(),
            length: u32::try_from(message.len()).map_err(|_| Unusable::TooLarge)?,
            sum: sum(message).to_vec(),
        });
    }
    let index = Index {
        package: key.package.clone(),
        environment: key.environment.clone(),
        protocol: *protocol,
        capabilities: Some(convert::capabilities_message(capabilities)),
        batches: *batches,
        state_only: state_only.iter().map(ToString::to_string).collect(),
        schemas,
    };
    let index = index.encode_to_vec();
    if size > MAX_SCHEMAS || index.len() > MAX_INDEX {
        return Err(Unusable::TooLarge);
    }
    let length = u32::try_from(index.len()).map_err(|_| Unusable::TooLarge)?;
    let mut prefix = MAGIC.to_vec();
    prefix.extend(FORMAT.to_le_bytes());
    prefix.extend(length.to_le_bytes());
    out.write_all(&prefix)?;
    out.write_all(&index_sum(&prefix, &index))?;
    out.write_all(&index)?;
    for (_, (_, message)) in all() {
        out.write_all(message)?;
    }
    Ok(out.flush()?)
}

fn index_sum(prefix: &[u8], index: &[u8]) -> Vec<u8> {
    let mut context = Context::new(&SHA256);
    context.update(prefix);
    context.update(index);
    context.finish().as_ref().to_vec()
}

fn sum(schema: &[u8]) -> [u8; SUM] {
    let mut sum = [0; SUM];
    sum.iter_mut()
        .zip(digest(&SHA256, schema).as_ref())
        .for_each(|(to, from)| *to = *from);
    sum
}

/// Range of bytes in a file, and its checksum.
#[derive(Clone, Debug)]
struct Extent {
    offset: u64,
    length: u32,
    sum: [u8; SUM],
}

/// Function that requests the schemas from the provider again, because those in a file are damaged.
pub(crate) type AskAgain = Box<dyn Fn() -> Option<Answer> + Send + Sync>;

/// An open file of schemas.
pub(crate) struct SchemaFile<R> {
    pub properties: Properties,
    places: Table<Extent>,
    content: Mutex<R>,
    again: Option<AskAgain>,
    anew: OnceLock<Option<Answer>>,
}

impl SchemaFile<File> {
    /// Opens a file, if it has this key.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn open(file: File, key: &Key) -> Result<SchemaFile<File>, Unusable> {
        let size = file.metadata()?.len();
        SchemaFile::read(file, size, key)
    }
}

impl<R: Read + io::Seek> SchemaFile<R> {
    /// Reads the index of a file of this size, if it has this key.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn read(mut content: R, size: u64, key: &Key) -> Result<SchemaFile<R>, Unusable> {
        let mut header = [0; HEADER];
        read_exact(&mut content, &mut header)?;
        let (prefix, expected) = header.split_at(PREFIX);
        let number = |at: usize| {
            let bytes = prefix.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u32::from_le_bytes).ok_or(Unusable::Damaged)
        };
        if !prefix.starts_with(MAGIC) {
            return Err(Unusable::Foreign);
        }
        let (format, length) = (number(8)?, number(12)? as usize);
        if format != FORMAT {
            return Err(Unusable::Format(format));
        }
        if length > MAX_INDEX {
            return Err(Unusable::TooLarge);
        }
        let mut index = vec![0; length];
        read_exact(&mut content, &mut index)?;
        if index_sum(prefix, &index) != expected {
            return Err(Unusable::Damaged);
        }
        let index = Index::decode(index.as_slice()).map_err(|_| Unusable::Damaged)?;
        if (&index.package, &index.environment) != (&key.package, &key.environment) {
            return Err(Unusable::Key);
        }
        let (places, end) = places(index.schemas, (HEADER + length) as u64)?;
        // Each schema is verified when it is read, but missing ones are detected here.
        if size != end {
            return Err(Unusable::Damaged);
        }
        Ok(SchemaFile {
            properties: Properties {
                protocol: index.protocol,
                capabilities: convert::capabilities(index.capabilities.unwrap_or_default()),
                batches: index.batches,
                state_only: index.state_only.into_iter().map(Arc::from).collect(),
            },
            places,
            content: Mutex::new(content),
            again: None,
            anew: OnceLock::new(),
        })
    }

    /// Sets the function that asks the provider again if a schema cannot be read.
    pub fn asking_again(self, again: AskAgain) -> SchemaFile<R> {
        SchemaFile {
            again: Some(again),
            ..self
        }
    }

    fn read_schema(&self, place: &Extent) -> Result<Bytes, Unusable> {
        let mut content = self.content.lock().unwrap_or_else(PoisonError::into_inner);
        content.seek(SeekFrom::Start(place.offset))?;
        let mut schema = vec![0; place.length as usize];
        read_exact(&mut *content, &mut schema)?;
        if sum(&schema) == place.sum {
            Ok(schema.into())
        } else {
            Err(Unusable::Damaged)
        }
    }
}

/// Reads exactly this number of bytes. Fewer mean that the file was truncated.
fn read_exact(content: &mut impl Read, into: &mut [u8]) -> Result<(), Unusable> {
    content.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unusable::Damaged,
        _ => Unusable::Io(error),
    })
}

/// Computes the position of each schema in the file, from the index, and the end of the file.
fn places(schemas: Vec<Listed>, start: u64) -> Result<(Table<Extent>, u64), Unusable> {
    let mut places = Table::new();
    let mut offset = start;
    for listed in schemas {
        let kind = Kind::of_number(listed.kind).ok_or(Unusable::Damaged)?;
        let sum = listed.sum.as_slice().try_into().map_err(|_| Unusable::Damaged)?;
        let length = listed.length;
        let place = Extent { offset, length, sum };
        places.entry(kind).or_default().insert(Arc::from(listed.name), place);
        offset += u64::from(length);
    }
    if offset - start > MAX_SCHEMAS {
        return Err(Unusable::TooLarge);
    }
    Ok((places, offset))
}

impl<R: Read + io::Seek + Send + 'static> Encoded for SchemaFile<R> {
    fn schema(&self, kind: Kind, name: &str) -> Option<Bytes> {
        let place = find(&self.places, kind, name)?;
        match self.read_schema(place) {
            Ok(schema) => Some(schema),
            Err(error) => {
                tracing::debug!(?kind, name, %error, "a stored schema is not used");
                let anew = self.anew.get_or_init(|| self.again.as_ref().and_then(|again| again()));
                anew.as_ref()?.schema(kind, name)
            }
        }
    }

    fn names(&self, kind: Kind) -> Vec<Arc<str>> {
        self.places
            .get(&kind)
            .into_iter()
            .flat_map(|of| of.keys().cloned())
            .collect()
    }
}

#[cfg(test)]
mod tests;
