//! Changes inputs at random, the same way for the same seed.

/// What means something to one target or another.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data: ",
    b"event:",
    b"id: 7\n",
    b"retry: 1\n",
    b":",
    b" ",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x8f\x9b",
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"18446744073709551615",
    b"9223372036854775808",
    b"1e308",
    b"0.1",
    b"-0.0",
    b"5e-324",
    b"123456789.123456789",
    b"\\u0000",
    b"\\ud800",
    b"\"type\":",
    b"user.message",
    b"..",
    b"desc",
];

/// A small generator of random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers that belong to a seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % (bound as u64).max(1)) as usize
    }
}

/// One of the inputs, changed in one to four places.
pub fn mutation(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus.get(random.below(corpus.len())).cloned().unwrap_or_default();
    for _ in 0..=random.below(4) {
        change(&mut bytes, corpus, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len());
    let to = (at + random.below(24)).min(bytes.len());
    match random.below(8) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                // Often a digit, so that numbers and cursors stay ones.
                *byte = if random.below(2) == 0 {
                    b"0123456789abcdef"[random.below(16)]
                } else {
                    random.next() as u8
                };
            }
        }
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..to)),
        4 => {
            let copy = bytes[at..to].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        5 => {
            let other = corpus.get(random.below(corpus.len())).map(Vec::as_slice).unwrap_or_default();
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
        _ => {
            let end = if random.below(2) == 0 { at } else { to };
            bytes.splice(at..end, TOKENS[random.below(TOKENS.len())].iter().copied());
        }
    }
}
