//! The packets that keys and signatures are made of, and the armor around them.

use base64::Engine;

use super::Error;

/// Bytes that are read from the beginning.
pub(super) struct Reader<'b>(pub(super) &'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'b [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.number(1)? as u8)
    }

    /// A number of at most four bytes.
    pub(super) fn number(&mut self, bytes: usize) -> Result<usize, Error> {
        Ok(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    /// A big number, without leading zeros.
    pub(super) fn mpi(&mut self) -> Result<Vec<u8>, Error> {
        let bits = self.number(2)?;
        let bytes = self.take(bits.div_ceil(8))?;
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        Ok(bytes.get(zeros..).unwrap_or_default().to_vec())
    }

    /// A length in the newer notation. Those of unknown size, which packets but not parts of signatures can have, have no
    /// place in keys and signatures.
    fn length(&mut self, of_packet: bool) -> Result<usize, Error> {
        match self.byte()? {
            first @ 0..=191 => Ok(usize::from(first)),
            first @ 192..=223 => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            255 => self.number(4),
            first if !of_packet => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            _ => Err(Error::NoLength),
        }
    }

    /// The next packet: what it is, and its content.
    pub(super) fn packet(&mut self) -> Result<(u8, &'b [u8]), Error> {
        let head = self.byte()?;
        if head & 0x80 == 0 {
            return Err(Error::NoPacket);
        }
        if head & 0x40 != 0 {
            let length = self.length(true)?;
            return Ok((head & 0x3f, self.take(length)?));
        }
        let length = match head & 3 {
            0 => self.number(1)?,
            1 => self.number(2)?,
            2 => self.number(4)?,
            _ => self.0.len(),
        };
        Ok((head >> 2 & 0x0f, self.take(length)?))
    }

    /// The next part of a signature: whether who does not know it must not rely on the signature, what it is, its content.
    pub(super) fn subpacket(&mut self) -> Result<(bool, u8, Reader<'b>), Error> {
        let length = self.length(false)?;
        let mut content = Reader(self.take(length)?);
        let kind = content.byte()?;
        Ok((kind & 0x80 != 0, kind & 0x7f, content))
    }
}

/// The bytes in an armored text, or of one that is not armored.
pub(super) fn dearmored(text: &[u8]) -> Result<Vec<u8>, Error> {
    if text.first().is_some_and(|first| first & 0x80 != 0) {
        return Ok(text.to_vec());
    }
    let text = std::str::from_utf8(text).map_err(|_| Error::NotOpenPgp)?;
    let mut out = Vec::new();
    let mut inside = false;
    let mut head = false;
    let mut block = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----BEGIN PGP ") {
            (inside, head) = (true, true);
        } else if line.starts_with("-----END PGP ") {
            let bytes = base64::engine::general_purpose::STANDARD.decode(&block);
            out.extend(bytes?);
            block.clear();
            inside = false;
        } else if inside && head {
            // Lines like `Comment: …`, then an empty one, which some leave out.
            head = line.contains(": ");
            if !head {
                block.push_str(line);
            }
        } else if inside && !line.starts_with('=') {
            block.push_str(line);
        }
    }
    if out.is_empty() || inside {
        return Err(Error::NotOpenPgp);
    }
    Ok(out)
}
