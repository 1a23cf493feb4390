//! Bodies that the other side has compressed.
//!
//! What was compressed is decoded as it arrives, a little at a time, so that a reader sees each piece as soon as it is
//! there and can stop at its own bound: no piece of input becomes more than about a megabyte at once.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

/// How much input is decoded at once. A byte of it becomes at most about a thousand.
const STEP: usize = 1024;

/// How a body was encoded.
#[derive(Debug)]
pub(crate) enum Encoding {
    /// Not at all.
    Identity,
    /// In a way that is decoded here.
    Compressed(Box<Decoder>),
    /// In another way, of this name.
    Unknown(String),
}

impl Encoding {
    /// The encoding of this name, the value of `Content-Encoding`.
    pub(crate) fn named(name: Option<&str>) -> Encoding {
        let name = name.unwrap_or_default().trim().to_ascii_lowercase();
        let target = match name.as_str() {
            "" | "identity" => return Encoding::Identity,
            "gzip" | "x-gzip" => Target::Gzip(MultiGzDecoder::new(Vec::new())),
            "deflate" => Target::Deflate,
            _ => return Encoding::Unknown(name),
        };
        Encoding::Compressed(Box::new(Decoder { input: Bytes::new(), is_empty: true, target }))
    }
}

/// Decodes one body.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// What has arrived and is not decoded yet.
    input: Bytes,
    /// Whether nothing has arrived so far.
    is_empty: bool,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
    /// "deflate" means zlib, but some servers send what it wraps. The first byte tells which it is.
    Deflate,
}

impl Decoder {
    /// Takes what has arrived, once everything before it was decoded.
    pub(crate) fn feed(&mut self, input: Bytes) {
        self.is_empty &= input.is_empty();
        self.input = input;
    }

    /// The next piece of what was decoded; none if more has to arrive first.
    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() {
            let step = self.input.split_to(self.input.len().min(STEP));
            let piece = self.target.decode(&step)?;
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
        Ok(None)
    }

    /// What comes out at the end of the body. A body that was cut is an error.
    pub(crate) fn finish(&mut self) -> io::Result<Bytes> {
        if self.is_empty {
            return Ok(Bytes::new());
        }
        self.target.finish().map(Bytes::from)
    }
}

impl Target {
    fn decode(&mut self, input: &[u8]) -> io::Result<Vec<u8>> {
        if let Target::Deflate = self {
            let is_zlib = input.first().is_some_and(|byte| byte & 0x0f == 8 && byte >> 4 <= 7);
            *self = match is_zlib {
                true => Target::Zlib(ZlibDecoder::new(Vec::new())),
                false => Target::Raw(DeflateDecoder::new(Vec::new())),
            };
        }
        let writer: &mut dyn Write = match self {
            Target::Gzip(decoder) => decoder,
            Target::Zlib(decoder) => decoder,
            Target::Raw(decoder) => decoder,
            Target::Deflate => return Ok(Vec::new()),
        };
        writer.write_all(input)?;
        writer.flush()?;
        Ok(self.take())
    }

    fn finish(&mut self) -> io::Result<Vec<u8>> {
        match self {
            Target::Gzip(decoder) => decoder.try_finish()?,
            Target::Zlib(decoder) => decoder.try_finish()?,
            Target::Raw(decoder) => decoder.try_finish()?,
            Target::Deflate => {}
        }
        Ok(self.take())
    }

    /// What came out since the last time.
    fn take(&mut self) -> Vec<u8> {
        match self {
            Target::Gzip(decoder) => std::mem::take(decoder.get_mut()),
            Target::Zlib(decoder) => std::mem::take(decoder.get_mut()),
            Target::Raw(decoder) => std::mem::take(decoder.get_mut()),
            Target::Deflate => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn decoder(name: &str) -> Box<Decoder> {
        match Encoding::named(Some(name)) {
            Encoding::Compressed(decoder) => decoder,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes what arrives in pieces of this size.
    fn decoded(name: &str, input: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let (mut decoder, mut all) = (decoder(name), Vec::new());
        for piece in input.chunks(size) {
            decoder.feed(Bytes::copy_from_slice(piece));
            while let Some(piece) = decoder.next_piece()? {
                all.extend_from_slice(&piece);
            }
        }
        all.extend_from_slice(&decoder.finish()?);
        Ok(all)
    }

    #[test]
    fn bodies_are_decoded_however_they_arrive() {
        let text: Vec<u8> =
            (0..5000_u32).flat_map(|n| format!("data: {}\n", n.wrapping_mul(n)).into_bytes()).collect();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).unwrap();
        let half = text.len() / 2;
        let members = [gzip(&text[..half]), gzip(&text[half..])].concat();
        for (name, input) in [
            ("gzip", gzip(&text)),
            ("X-Gzip", gzip(&text)),
            ("gzip", members),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
        ] {
            for size in [1, 7, 1000, usize::MAX] {
                assert!(decoded(name, &input, size).unwrap() == text, "{name} in pieces of {size}");
            }
        }
        assert_eq!(decoded("gzip", b"", 1).unwrap(), b"");
        assert!(matches!(Encoding::named(None), Encoding::Identity));
        assert!(matches!(Encoding::named(Some("Br")), Encoding::Unknown(name) if name == "br"));
    }

    #[test]
    fn each_flushed_piece_is_there_at_once() {
        let (mut encoder, mut decoder) =
            (GzEncoder::new(Vec::new(), Compression::default()), decoder("gzip"));
        for text in ["data: one\n\n", "data: two\n\n", "data: three\n\n"] {
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.flush().unwrap();
            decoder.feed(std::mem::take(encoder.get_mut()).into());
            assert_eq!(decoder.next_piece().unwrap().unwrap(), text);
            assert_eq!(decoder.next_piece().unwrap(), None);
        }
    }

    #[test]
    fn a_bomb_comes_out_in_pieces_that_fit_into_memory() {
        let bomb = gzip(&vec![0; 16 << 20]);
        let (mut decoder, mut total) = (decoder("gzip"), 0);
        decoder.feed(bomb.into());
        while let Some(piece) = decoder.next_piece().unwrap() {
            assert!(piece.len() <= 2 << 20, "{}", piece.len());
            total += piece.len();
        }
        assert_eq!(total, 16 << 20);
    }

    #[test]
    fn what_is_cut_or_no_compression_is_an_error() {
        let whole = gzip(b"some text that is long enough");
        for length in 1..whole.len() {
            assert!(decoded("gzip", &whole[..length], 5).is_err(), "{length}");
        }
        assert!(decoded("gzip", b"event: message_start", 100).is_err());
        assert!(decoded("deflate", b"xevent: message_start", 100).is_err());
    }
}
