//! Packets of keys and signatures, and the armor around them.

use base64::Engine;

use super::Error;

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

    /// Reads a number of at most four bytes, in big-endian order.
    pub(super) fn number(&mut self, bytes: usize) -> Result<usize, Error> {
        Ok(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    /// Reads a multiprecision integer, without leading zeros.
    pub(super) fn mpi(&mut self) -> Result<Vec<u8>, Error> {
        let bits = self.number(2)?;
        let bytes = self.take(bits.div_ceil(8))?;
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        Ok(bytes.get(zeros..).unwrap_or_default().to_vec())
    }

    /// Reads a length in the new format. Partial lengths, which exist for packets but not for subpackets, are refused: keys and
    /// signatures do not use them.
    fn length(&mut self, of_packet: bool) -> Result<usize, Error> {
        match self.byte()? {
            first @ 0..=191 => Ok(usize::from(first)),
            first @ 192..=223 => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            255 => self.number(4),
            first if !of_packet => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            _ => Err(Error::NoLength),
        }
    }

    /// Reads a packet. Returns its tag and content.
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
            // An indeterminate length of the old format: the packet extends to the end of the data.
            _ => self.0.len(),
        };
        Ok((head >> 2 & 0x0f, self.take(length)?))
    }

    /// Reads a subpacket of a signature. Returns its critical bit, its type and its content. If a critical subpacket has an
    /// unknown type, the signature must be rejected.
    pub(super) fn subpacket(&mut self) -> Result<(bool, u8, Reader<'b>), Error> {
        let length = self.length(false)?;
        let mut content = Reader(self.take(length)?);
        let kind = content.byte()?;
        Ok((kind & 0x80 != 0, kind & 0x7f, content))
    }
}

/// Decodes armored text. Binary data is returned as it is.
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
            // There are headers like `Comment: …`, and then an empty line, which some programs omit.
            head = line.contains(": ");
            if !head {
                block.push_str(line);
            }
        // A line that begins with `=` is the CRC, which is redundant beside the signature.
        } else if inside && !line.starts_with('=') {
            block.push_str(line);
        }
    }
    if out.is_empty() || inside {
        return Err(Error::NotOpenPgp);
    }
    Ok(out)
}
