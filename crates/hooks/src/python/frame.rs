//! Frames on the pipes to a host: four bytes of length, most significant first, and so many bytes of JSON.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes that a host is sent in one frame.
const MAX_SENT: usize = 64 * 1024 * 1024;
/// The most bytes that a host may send in one frame. It cuts itself short before that.
const MAX_RECEIVED: u32 = 17 * 1024 * 1024;

/// The bytes of a frame, or what is wrong with the value.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value).map_err(|error| format!("it cannot be sent: {error}"))?;
    let length = frame.len() - 4;
    match u32::try_from(length) {
        Ok(header) if length <= MAX_SENT => {
            frame[..4].copy_from_slice(&header.to_be_bytes());
            Ok(frame)
        }
        _ => Err(format!("its arguments have {length} bytes; at most {MAX_SENT} are sent")),
    }
}

/// The bytes of the next frame; none when the host has gone.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let length = match from.read_u32().await {
        Ok(length) if length <= MAX_RECEIVED => length,
        Ok(length) => {
            let problem = format!("a frame of {length} bytes; at most {MAX_RECEIVED} are read");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut body = Vec::new();
    let expected = u64::from(length);
    let read = from.take(expected).read_to_end(&mut body).await?;
    Ok((u64::try_from(read).is_ok_and(|read| read == expected)).then_some(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_and_what_is_cut_off_is_not() {
        let mut bytes = encode(&["ä", "b"]).unwrap();
        bytes.extend(encode(&1).unwrap());
        let mut reader = bytes.as_slice();
        assert_eq!(read(&mut reader).await.unwrap().unwrap(), r#"["ä","b"]"#.as_bytes());
        assert_eq!(read(&mut reader).await.unwrap().unwrap(), b"1");
        assert_eq!(read(&mut reader).await.unwrap(), None);
        let mut cut = &bytes[..6];
        assert_eq!(read(&mut cut).await.unwrap(), None);
        let mut huge = &u32::MAX.to_be_bytes()[..];
        assert!(read(&mut huge).await.is_err());
    }
}
