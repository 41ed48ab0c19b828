//! Encoding of certificates and requests. The extensions, their order, and which of them are critical, are as in the official provider.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{DERWriter, DERWriterSeq, Tag};

use crate::alt_names::AltNames;
use crate::key::public::Public;
use crate::key::{Key, KeyError, signed};
use crate::name::Name;
use crate::oid::{self, Oid};
use crate::usage::Uses;

/// Content of a certificate to sign.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub subject: Name,
    /// Alternative names of the subject.
    pub names: AltNames,
    pub public: Public,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    pub uses: Uses,
    /// True for a CA certificate, which may sign others.
    pub is_ca: bool,
    /// Path length constraint: maximum number of intermediate certificates below this one.
    pub max_path_length: Option<u64>,
    /// True if the certificate has a subject key identifier.
    pub with_key_id: bool,
}

/// Name and key identifier of the issuer.
#[derive(Clone, Debug)]
pub(crate) struct Issuer {
    /// Name of the issuer, as DER.
    pub name: Vec<u8>,
    /// Authority key identifier, if there is one.
    pub key_id: Option<Vec<u8>>,
}

impl Template {
    /// Returns the subject key identifier; `None` if the certificate is to have none.
    pub fn key_id(&self) -> Option<Vec<u8>> {
        (self.is_ca || self.with_key_id).then(|| self.public.key_id())
    }

    /// Signs the certificate, and returns it with its serial number.
    pub fn sign(&self, issuer: &Issuer, key: &Key) -> Result<(Vec<u8>, u128), KeyError> {
        // The serial number has 128 random bits, which makes it unpredictable, and unique among the certificates of an issuer.
        let serial: u128 = rand::random();
        let content = yasna::construct_der(|w| {
            w.write_sequence(|w| {
                // Version 3 of X.509, encoded as 2.
                w.next().write_tagged(Tag::context(0), |w| w.write_u8(2));
                w.next().write_bigint_bytes(&serial.to_be_bytes(), true);
                key.write_signature_algorithm(w.next());
                w.next().write_der(&issuer.name);
                w.next().write_sequence(|w| {
                    write_time(self.not_before, w.next());
                    write_time(self.not_after, w.next());
                });
                self.subject.write(w.next());
                self.public.write(w.next());
                w.next().write_tagged(Tag::context(3), |w| {
                    w.write_sequence(|w| self.write_extensions(issuer, w));
                });
            });
        });
        Ok((signed(key, &content)?, serial))
    }

    fn write_extensions(&self, issuer: &Issuer, w: &mut DERWriterSeq<'_>) {
        if let Some(uses) = self.uses.key_usage() {
            write_extension(oid::KEY_USAGE, true, &uses, w);
        }
        if let Some(uses) = self.uses.extended_key_usage() {
            write_extension(oid::EXT_KEY_USAGE, false, &uses, w);
        }
        let constraints = yasna::construct_der(|w| {
            w.write_sequence(|w| {
                if self.is_ca {
                    w.next().write_bool(true);
                    if let Some(length) = self.max_path_length {
                        w.next().write_u64(length);
                    }
                }
            });
        });
        write_extension(oid::BASIC_CONSTRAINTS, true, &constraints, w);
        if let Some(id) = self.key_id() {
            let id = yasna::construct_der(|w| w.write_bytes(&id));
            write_extension(oid::SUBJECT_KEY_ID, false, &id, w);
        }
        if let Some(id) = &issuer.key_id {
            let id = yasna::construct_der(|w| {
                w.write_sequence(|w| {
                    w.next().write_tagged_implicit(Tag::context(0), |w| w.write_bytes(id));
                });
            });
            write_extension(oid::AUTHORITY_KEY_ID, false, &id, w);
        }
        // Alternative names are critical if the subject is empty (RFC 5280, section 4.2.1.6).
        write_alt_names(&self.names, self.subject.is_empty(), w);
    }
}

/// Creates a certificate request.
pub(crate) fn request(subject: &Name, names: &AltNames, key: &Key) -> Result<Vec<u8>, KeyError> {
    let content = yasna::construct_der(|w| {
        w.write_sequence(|w| {
            w.next().write_u8(0);
            subject.write(w.next());
            key.public().write(w.next());
            w.next().write_tagged_implicit(Tag::context(0), |w| {
                w.write_set(|w| {
                    // The set of attributes is mandatory (RFC 2986, section 4.1), so it is written even if it is empty.
                    if names.is_empty() {
                        return;
                    }
                    w.next().write_sequence(|w| {
                        w.next().write_oid(&oid::der(oid::EXTENSION_REQUEST));
                        w.next().write_set(|w| {
                            w.next().write_sequence(|w| write_alt_names(names, false, w));
                        });
                    });
                });
            });
        });
    });
    signed(key, &content)
}

fn write_alt_names(names: &AltNames, critical: bool, w: &mut DERWriterSeq<'_>) {
    if !names.is_empty() {
        let content = yasna::construct_der(|w| names.write(w));
        write_extension(oid::SUBJECT_ALT_NAME, critical, &content, w);
    }
}

fn write_extension(oid: Oid, critical: bool, content: &[u8], w: &mut DERWriterSeq<'_>) {
    w.next().write_sequence(|w| {
        w.next().write_oid(&oid::der(oid));
        if critical {
            w.next().write_bool(true);
        }
        w.next().write_bytes(content);
    });
}

/// Writes a time. Years up to 2049 have two digits (RFC 5280, section 4.1.2.5).
fn write_time(time: Timestamp, writer: DERWriter<'_>) {
    let time = time.to_zoned(TimeZone::UTC);
    let (tag, format) = match time.year() {
        1950..2050 => (TAG_UTCTIME, "%y%m%d%H%M%SZ"),
        _ => (TAG_GENERALIZEDTIME, "%Y%m%d%H%M%SZ"),
    };
    let text = time.strftime(format).to_string();
    writer.write_tagged_implicit(tag, |w| w.write_bytes(text.as_bytes()));
}
