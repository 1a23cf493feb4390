//! The decoder of server-sent events: however a stream is cut into chunks, the same comes out.

use petasos_net::sse::{DecodeError, Decoder, Event};

use crate::Target;

/// A small bound, so that it is reached, and one that recorded streams stay under.
const BOUNDS: [usize; 2] = [48, 1 << 20];

/// Bytes of a stream.
pub fn target() -> Target {
    Box::new(check)
}

fn check(bytes: &[u8]) {
    for bound in BOUNDS {
        let whole = decode(bound, std::iter::once(bytes));
        assert_eq!(decode(bound, bytes.chunks(1)), whole, "byte by byte");
        // The bytes themselves say where else to cut.
        let mut rest = bytes;
        let pieces = std::iter::from_fn(|| {
            let size = usize::from(*rest.first()? % 13);
            let (piece, after) = rest.split_at(size.clamp(1, rest.len()));
            rest = after;
            Some(piece)
        });
        assert_eq!(decode(bound, pieces), whole, "in pieces");
        let (errors, events): (Vec<_>, Vec<_>) = whole.iter().partition(|result| result.is_err());
        assert!(errors.len() <= 1 && whole.last().is_none_or(|last| errors.is_empty() || last.is_err()));
        assert!(events.iter().flat_map(|event| event.iter()).all(|event| event.data.len() <= bound));
    }
}

fn decode<'a>(bound: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Event, DecodeError>> {
    let mut decoder = Decoder::new(bound);
    chunks.flat_map(|chunk| decoder.feed(chunk).collect::<Vec<_>>()).collect()
}
