//! The `checksum` argument of an address: `sha256:…`, a checksum alone, or `file:` with the URL of a list of
//! checksums.

use std::io::Read;
use std::path::Path;

use data_encoding::HEXLOWER;
use md5::Digest;
use net::Url;

use super::{Address, ChecksumError, FetchError, Fetcher, file_error};

/// Limit of the size of a list of checksums.
const LIST_LIMIT: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Md5,
    Sha1,
    Sha256,
    Sha512,
}

/// Checksum that a file must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    method: Method,
    hex: String,
}

impl Method {
    fn named(name: &str) -> Option<Method> {
        Some(match name.to_ascii_lowercase().as_str() {
            "md5" => Method::Md5,
            "sha1" => Method::Sha1,
            "sha256" => Method::Sha256,
            "sha512" => Method::Sha512,
            _ => return None,
        })
    }

    fn digits(self) -> usize {
        match self {
            Method::Md5 => 32,
            Method::Sha1 => 40,
            Method::Sha256 => 64,
            Method::Sha512 => 128,
        }
    }

    fn hash(self, reader: impl Read) -> std::io::Result<String> {
        match self {
            Method::Md5 => hash::<md5::Md5>(reader),
            Method::Sha1 => hash::<sha1::Sha1>(reader),
            Method::Sha256 => hash::<sha2::Sha256>(reader),
            Method::Sha512 => hash::<sha2::Sha512>(reader),
        }
    }
}

fn hash<D: Digest>(mut reader: impl Read) -> std::io::Result<String> {
    let mut digest = D::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            n => digest.update(buffer.get(..n).unwrap_or_default()),
        }
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

impl Checksum {
    /// Parses the argument, and fetches the list that it may name.
    pub(super) async fn read(fetcher: &Fetcher, text: &str, url: &Url) -> Result<Checksum, ChecksumError> {
        match text.strip_prefix("file:") {
            None => Checksum::parse(text),
            Some(list) => {
                let wrong = |e: FetchError| ChecksumError::List(Box::new(e));
                let list = if list.starts_with('/') {
                    format!("file://{list}")
                } else {
                    list.to_owned()
                };
                // The list can be at any address that a module package can have.
                let address = Address::parse(&list).map_err(wrong)?;
                let file = tempfile::NamedTempFile::new()
                    .map_err(|e| wrong(FetchError::Temporary(e)))?
                    .into_temp_path();
                Box::pin(fetcher.file(&address.way, &address.url, &file))
                    .await
                    .map_err(wrong)?;
                let mut content = Vec::new();
                let read = std::fs::File::open(&file).and_then(|f| f.take(LIST_LIMIT).read_to_end(&mut content));
                read.map_err(|e| wrong(file_error("reading", &file)(e)))?;
                let name = url.path_segments().and_then(|mut s| s.next_back()).unwrap_or("");
                Checksum::in_list(&String::from_utf8_lossy(&content), name)
                    .ok_or_else(|| ChecksumError::NotInList(name.to_owned()))
            }
        }
    }

    fn parse(text: &str) -> Result<Checksum, ChecksumError> {
        let (method, hex) = match text.split_once(':') {
            Some((name, hex)) => {
                let method = Method::named(name).ok_or_else(|| ChecksumError::Algorithm(name.to_owned()))?;
                (method, hex)
            }
            None => {
                // The number of digits determines the algorithm.
                let all = [Method::Md5, Method::Sha1, Method::Sha256, Method::Sha512];
                let method = all.into_iter().find(|m| m.digits() == text.len());
                (method.ok_or_else(|| ChecksumError::Length(text.to_owned()))?, text)
            }
        };
        if hex.len() != method.digits() || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ChecksumError::Digits {
                text: hex.to_owned(),
                digits: method.digits(),
            });
        }
        Ok(Checksum {
            method,
            hex: hex.to_ascii_lowercase(),
        })
    }

    /// Returns the checksum of a file from a list in the format of `sha256sum` (or similar programs) or of BSD;
    /// `None` if the list has no checksum for the file.
    fn in_list(list: &str, name: &str) -> Option<Checksum> {
        let base = |path: &str| {
            // `*` marks a file that was read as binary.
            path.trim_start_matches(['*', '?'])
                .rsplit('/')
                .next()
                .unwrap_or("")
                .to_owned()
        };
        for line in list.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (file, found) = match words.as_slice() {
                [method, file, "=", hex] => {
                    let file = file.trim_start_matches('(').trim_end_matches(')');
                    (Some(base(file)), Checksum::parse(&format!("{method}:{hex}")))
                }
                [hex, file] => (Some(base(file)), Checksum::parse(hex)),
                // A list of a single checksum names no file.
                [hex] => (None, Checksum::parse(hex)),
                _ => continue,
            };
            if let Ok(found) = found
                && file.is_none_or(|f| f == name)
            {
                return Some(found);
            }
        }
        None
    }

    /// Checks that a file has this checksum.
    pub(super) fn verify(&self, file: &Path, name: &str) -> Result<(), ChecksumError> {
        let actual = std::fs::File::open(file)
            .and_then(|f| self.method.hash(f))
            .map_err(|source| ChecksumError::Read {
                path: file.to_owned(),
                source,
            })?;
        if actual == self.hex {
            return Ok(());
        }
        Err(ChecksumError::Mismatch {
            name: name.to_owned(),
            expected: self.hex.clone(),
            actual,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_read() {
        let empty = "d41d8cd98f00b204e9800998ecf8427e";
        let named = Checksum::parse(&format!("md5:{empty}")).unwrap();
        assert_eq!(named, Checksum::parse(empty).unwrap());
        for bad in ["md5:00", "sha3:00", "00", "md5:zz1d8cd98f00b204e9800998ecf8427e"] {
            assert!(Checksum::parse(bad).is_err(), "{bad}");
        }
        let list = format!(
            "{empty}  other.zip\n# a comment here and more\nMD5 (dir/x.zip) = {}\n",
            "a".repeat(32)
        );
        assert_eq!(Checksum::in_list(&list, "x.zip").unwrap().hex, "a".repeat(32));
        assert_eq!(Checksum::in_list(&list, "other.zip").unwrap().hex, empty);
        assert_eq!(Checksum::in_list(&list, "none.zip"), None);
        assert_eq!(Checksum::in_list(empty, "any.zip").unwrap().hex, empty);
    }

    #[test]
    fn files_are_verified() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for good in [
            "d41d8cd98f00b204e9800998ecf8427e",
            "sha1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ] {
            Checksum::parse(good).unwrap().verify(file.path(), "x").unwrap();
        }
        let wrong = Checksum::parse(&"0".repeat(128)).unwrap();
        let error = wrong.verify(file.path(), "x.zip").unwrap_err().to_string();
        assert!(
            error.contains("x.zip does not match") && error.contains("cf83e1357eefb8bd"),
            "{error}"
        );
    }
}
