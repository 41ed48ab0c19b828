//! DEFLATE compression with the same bytes as Go's standard library.
//!
//! Compressed text is in arguments such as `user_data`, and in checksums that other objects depend on: any difference
//! replaces a machine, or deploys code again. So it is not enough that the bytes decompress to the same text. Matches,
//! block limits and code lengths follow the rules of the compressor of Go's standard library at the two levels in use,
//! which general libraries do not implement.
//!
//! [`Gzip`] and [`Deflate`] are writers over the parts: [`matches`] finds repetitions, [`blocks`] encodes them as bits
//! with the prefix codes of [`codes`].

mod blocks;
mod codes;
mod matches;
mod symbols;

use std::io::{self, Write};

use flate2::Crc;

use crate::matches::Compressor;

/// The compression level: the effort of the search for matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The level of zip archives.
    Five,
    /// The level of gzip streams.
    Six,
}

/// A writer that compresses its input to the inner writer as a raw DEFLATE stream, without a header.
pub struct Deflate<W> {
    packer: Compressor,
    out: W,
}

impl<W: Write> Deflate<W> {
    pub fn new(out: W, level: Level) -> Deflate<W> {
        Deflate {
            packer: Compressor::new(level),
            out,
        }
    }

    /// Ends the stream. Returns the inner writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.packer.finish();
        // Like Go, ends the stream with an empty stored block instead of marking the last block of text.
        self.packer.out.stored(&[], true);
        self.hand_on()?;
        Ok(self.out)
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.out.write_all(&self.packer.out.bytes)?;
        self.packer.out.bytes.clear();
        Ok(())
    }
}

impl<W: Write> Write for Deflate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.packer.write(bytes);
        self.hand_on()?;
        Ok(bytes.len())
    }

    /// Flushes the inner writer. The end of the text stays in the compressor, because it may match text that follows.
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A writer that compresses its input to the inner writer as a gzip stream, without time and name in the header.
pub struct Gzip<W> {
    inner: Deflate<W>,
    crc: Crc,
    begun: bool,
}

impl<W: Write> Gzip<W> {
    /// Creates a compressor of the default level.
    pub fn new(out: W) -> Gzip<W> {
        Gzip {
            inner: Deflate::new(out, Level::Six),
            crc: Crc::new(),
            begun: false,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.begun {
            // The header that Go writes: no flags, no time, unknown operating system.
            self.inner.out.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff])?;
            self.begun = true;
        }
        Ok(())
    }

    /// Ends the text so far with an empty stored block, as Go's `Flush` does.
    pub fn mark(&mut self) {
        self.inner.packer.finish();
        self.inner.packer.out.stored(&[], false);
    }

    /// Ends the stream. Returns the inner writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.begin()?;
        let mut out = self.inner.finish()?;
        out.write_all(&self.crc.sum().to_le_bytes())?;
        // The length in the trailer is modulo 2³².
        out.write_all(&self.crc.amount().to_le_bytes())?;
        Ok(out)
    }
}

impl<W: Write> Write for Gzip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        self.crc.update(bytes);
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Decompresses a gzip stream, including those that other programs wrote.
///
/// # Errors
/// The bytes are not a gzip stream, or the result is larger than the limit.
pub fn gunzip(bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    use io::Read as _;
    let mut out = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    reader.read_to_end(&mut out)?;
    match out.len() as u64 > limit {
        true => Err(io::Error::other("the decompressed data is too large")),
        false => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn deflated(text: &[u8], level: Level) -> Vec<u8> {
        let mut out = Deflate::new(Vec::new(), level);
        out.write_all(text).unwrap();
        out.finish().unwrap()
    }

    /// Compresses a text with one write for each piece of this size.
    fn gzipped(text: &[u8], piece: usize) -> Vec<u8> {
        let mut out = Gzip::new(Vec::new());
        for piece in text.chunks(piece.max(1)) {
            out.write_all(piece).unwrap();
        }
        out.finish().unwrap()
    }

    fn decompressed(compressed: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(compressed).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn short_streams_are_those_of_go() {
        for (text, expected) in [
            ("", "H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="),
            ("hello", "H4sIAAAAAAAA/8pIzcnJBwAAAP//AQAA//+GphA2BQAAAA=="),
        ] {
            use base64::Engine;
            let mut out = Gzip::new(Vec::new());
            out.write_all(text.as_bytes()).unwrap();
            out.mark();
            let found = base64::engine::general_purpose::STANDARD.encode(out.finish().unwrap());
            assert_eq!(found, expected, "{text}");
        }
    }

    /// Returns a text of this length with some repetitions.
    fn text(length: usize, letters: u32, step: u32) -> Vec<u8> {
        let mut x = 1u32;
        let mut out = Vec::new();
        while out.len() < length {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let word = (x >> 16) % step;
            out.extend(format!("{} ", word.wrapping_mul(word)).into_bytes());
            if x >> 30 == 0 {
                out.push(b'a'.wrapping_add(u8::try_from((x >> 8) % letters).unwrap()));
            }
        }
        out.truncate(length);
        out
    }

    /// Expected lengths and CRC-32 checksums: compress/flate (at level 5) and compress/gzip of Go 1.26 produced them
    /// for the same texts.
    #[test]
    fn long_streams_are_those_of_go() {
        for (length, letters, step, five, six) in [
            (10, 3, 7, (16, 0xa3a4_72f3), (34, 0x8de3_5208)),
            (70000, 26, 50, (24507, 0xf691_9db1), (23563, 0xfd8c_6eb7)),
            (65536, 5, 9000, (28367, 0xb49a_6909), (28374, 0xede1_6637)),
            (200_000, 26, 60000, (92975, 0xa548_2027), (92926, 0xbc48_a707)),
            (300_000, 2, 3, (65957, 0x1d6b_33a7), (62977, 0x1d11_cad8)),
            (131_072, 255, 65536, (63036, 0x5a20_d71d), (63029, 0x98ef_33d0)),
            (33000, 1, 1, (2764, 0x863a_e64d), (2558, 0xdfa6_c439)),
        ] {
            let text = text(length, letters, step);
            let facts = |bytes: Vec<u8>| {
                let mut crc = Crc::new();
                crc.update(&bytes);
                (bytes.len(), crc.sum())
            };
            assert_eq!(facts(deflated(&text, Level::Five)), five, "{length} {letters} {step}");
            for piece in [777, text.len()] {
                assert_eq!(facts(gzipped(&text, piece)), six, "{length} {letters} {step}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn compressed_data_decompresses_equal(seed: Vec<u8>, times in 1usize..3000, piece in 1usize..70000) {
            let text: Vec<u8> = seed.iter().copied().cycle().take(seed.len().min(64) * times).collect();
            proptest::prop_assert_eq!(decompressed(&gzipped(&text, piece)), text);
            proptest::prop_assert_eq!(decompressed(&gzipped(&seed, 1)), seed);
        }
    }
}
