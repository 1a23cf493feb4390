//! Pictures that models can look at: known by their first bytes, and measured by their header alone.
//!
//! Nothing here decodes a picture. Whoever does later must not be sent one that is small as a file and huge in memory,
//! so the size in pixels is bounded here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The most bytes of a picture.
pub(crate) const MAX_BYTES: usize = 5 * 1024 * 1024;
/// The most pixels of a picture.
const MAX_PIXELS: u64 = 64_000_000;

/// What is known of a picture without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    media_type: &'static str,
    width: u32,
    height: u32,
}

/// Why bytes are not shown as a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is no PNG, JPEG, GIF or WebP")]
    NoPicture,
    #[error("its header is damaged")]
    Damaged,
    #[error("it has {0} bytes; at most {MAX_BYTES} are shown")]
    TooManyBytes(u64),
    #[error("it has {width}x{height} pixels; at most {MAX_PIXELS} are shown")]
    TooManyPixels { width: u32, height: u32 },
}

impl Picture {
    /// Looks at a whole picture.
    pub(crate) fn read(bytes: &[u8]) -> Result<Picture, Unusable> {
        let media_type = media_type(bytes).ok_or(Unusable::NoPicture)?;
        if bytes.len() > MAX_BYTES {
            return Err(Unusable::TooManyBytes(bytes.len().try_into().unwrap_or(u64::MAX)));
        }
        let size = match media_type {
            "image/png" => png_size(bytes),
            "image/jpeg" => jpeg_size(bytes),
            "image/gif" => Some((le16(bytes, 6), le16(bytes, 8))).and_then(both),
            _ => webp_size(bytes),
        };
        let (width, height) =
            size.filter(|(width, height)| *width > 0 && *height > 0).ok_or(Unusable::Damaged)?;
        if u64::from(width) * u64::from(height) > MAX_PIXELS {
            return Err(Unusable::TooManyPixels { width, height });
        }
        Ok(Picture { media_type, width, height })
    }

    /// Its type and size in words.
    pub(crate) fn described(&self, bytes: usize) -> String {
        format!("{}, {}x{} pixels, {bytes} bytes", self.media_type, self.width, self.height)
    }

    /// The picture as a `data:` URI.
    pub(crate) fn data_uri(&self, bytes: &[u8]) -> String {
        format!("data:{};base64,{}", self.media_type, STANDARD.encode(bytes))
    }
}

/// The type of a picture by its first bytes; none if it is not one that models take.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((number(16)?, number(20)?))
}

/// The size in the first frame header. Segments before it say how long they are.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        let marker = *bytes.get(at + 1)?;
        match marker {
            // Any number of these may come before a marker.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            // The data begins, or the picture ends, and no frame header was there.
            0xd9 | 0xda => return None,
            _ => at += 2 + usize::try_from(be16(bytes, at + 2)?).ok().filter(|length| *length >= 2)?,
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " if bytes.get(23..26)? == [0x9d, 0x01, 0x2a] => {
            Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff))
        }
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => {
            let less_one = |at: usize| Some(le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16);
            Some((less_one(24)? + 1, less_one(27)? + 1))
        }
        _ => None,
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn both((width, height): (Option<u32>, Option<u32>)) -> Option<(u32, u32)> {
    Some((width?, height?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
        [header, &width.to_be_bytes(), &height.to_be_bytes(), &[8, 6, 0, 0, 0]].concat()
    }

    fn read(bytes: &[u8]) -> Result<(&'static str, u32, u32), Unusable> {
        Picture::read(bytes).map(|picture| (picture.media_type, picture.width, picture.height))
    }

    #[test]
    fn the_header_of_each_kind_is_read() {
        assert_eq!(read(&png(640, 480)), Ok(("image/png", 640, 480)));
        assert_eq!(read(b"GIF89a\x02\x01\x03\x00\0\0\0"), Ok(("image/gif", 258, 3)));
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc2\x00\x11\x08\x00\x20\x00\x30\x03";
        assert_eq!(read(jpeg), Ok(("image/jpeg", 48, 32)));
        let webp = |chunk: &[u8]| [b"RIFF\x20\0\0\0WEBP".as_slice(), chunk].concat();
        let lossy = webp(b"VP8 \x10\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\x00");
        assert_eq!(read(&lossy), Ok(("image/webp", 320, 240)));
        assert_eq!(read(&webp(b"VP8L\x10\0\0\0\x2f\x3f\xc1\x3b\x00")), Ok(("image/webp", 320, 240)));
        assert_eq!(read(&webp(b"VP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0")), Ok(("image/webp", 320, 240)));
    }

    #[test]
    fn what_nobody_should_decode_is_refused() {
        assert_eq!(read(b"%PDF-1.7\0"), Err(Unusable::NoPicture));
        assert_eq!(read(b"\xff\xd8\xff\xda\0\x02"), Err(Unusable::Damaged));
        assert_eq!(read(&png(0, 7)), Err(Unusable::Damaged));
        let (width, height) = (100_000, 100_000);
        assert_eq!(read(&png(width, height)), Err(Unusable::TooManyPixels { width, height }));
        let mut large = png(1, 1);
        large.resize(MAX_BYTES + 1, 0);
        assert_eq!(read(&large), Err(Unusable::TooManyBytes(large.len() as u64)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(kind in 0..4_usize, rest in proptest::collection::vec(any::<u8>(), 0..64)) {
            let starts = [b"\x89PNG\r\n\x1a\n".as_slice(), b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X"];
            let _ = Picture::read(&[starts[kind], &rest].concat());
        }
    }
}
