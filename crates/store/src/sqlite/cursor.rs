//! Cursors: the place of the last row of a page, as text that only this store reads.
//!
//! A cursor names a row by its sort key, not by its number, so rows added elsewhere shift nothing. It carries
//! which kind of listing made it, and is refused by the others. Any text at all may come in.

use super::statement::PageRows;
use crate::contract::{Cursor, Page, PageRequest};
use crate::error::{Error, Result};

/// The place of a row in a listing ordered by time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// When the row was made, in nanoseconds; or its number, where rows are numbered.
    pub(super) at: i64,
    /// Its id, which orders rows of the same time.
    pub(super) id: String,
}

/// Which listing a cursor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    /// Agents of a tenant.
    Agents,
    /// Versions of an agent.
    AgentVersions,
    /// Sessions of a tenant.
    Sessions,
    /// Deliveries of a tenant.
    Deliveries,
    /// Customers of a tenant.
    Customers,
    /// Runs of a routine.
    Runs,
}

impl Listing {
    fn tag(self) -> u8 {
        match self {
            Listing::Agents => b'a',
            Listing::AgentVersions => b'v',
            Listing::Sessions => b's',
            Listing::Deliveries => b'd',
            Listing::Customers => b'c',
            Listing::Runs => b'r',
        }
    }
}

/// Writes a place as a cursor of one listing.
pub(super) fn encode(listing: Listing, place: &Place) -> Cursor {
    let at = place.at.to_be_bytes();
    let bytes = std::iter::once(listing.tag()).chain(at).chain(place.id.bytes());
    Cursor(bytes.flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect())
}

/// Reads the place that a cursor of this listing names.
pub(super) fn decode(listing: Listing, cursor: &Cursor) -> Result<Place> {
    let place = unhex(&cursor.0).and_then(|bytes| {
        let (tag, rest) = bytes.split_first()?;
        let (at, id) = rest.split_first_chunk::<8>()?;
        let id = String::from_utf8(id.to_vec()).ok()?;
        (*tag == listing.tag()).then_some(Place { at: i64::from_be_bytes(*at), id })
    });
    place.ok_or(Error::InvalidCursor)
}

/// The place after which the wanted page starts; none for the first page.
pub(super) fn start(listing: Listing, page: &PageRequest) -> Result<Option<Place>> {
    page.after.as_ref().map(|cursor| decode(listing, cursor)).transpose()
}

/// Makes a page of rows.
pub(super) fn page<T>(
    listing: Listing,
    found: PageRows<T>,
    place: impl Fn(&T) -> Result<Place>,
) -> Result<Page<T>> {
    let PageRows { rows, has_more } = found;
    let next = match rows.last() {
        Some(last) if has_more => Some(encode(listing, &place(last)?)),
        _ => None,
    };
    Ok(Page { items: rows, next })
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LISTINGS: [Listing; 6] = [
        Listing::Agents,
        Listing::AgentVersions,
        Listing::Sessions,
        Listing::Deliveries,
        Listing::Customers,
        Listing::Runs,
    ];

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            for listing in LISTINGS {
                let _ = decode(listing, &Cursor(text.clone()));
            }
        }

        #[test]
        fn any_hexadecimal_text_is_read_or_refused(text in "(61|64|72|73|76)?[0-9a-f]{0,60}") {
            for listing in LISTINGS {
                if let Ok(place) = decode(listing, &Cursor(text.clone())) {
                    prop_assert_eq!(encode(listing, &place).0, text.clone());
                }
            }
        }

        #[test]
        fn a_cursor_leads_back_to_its_place_in_its_own_listing_only(at in any::<i64>(), id in "[a-zA-Z0-9_-]{0,128}") {
            let place = Place { at, id };
            for made_by in LISTINGS {
                let cursor = encode(made_by, &place);
                for used_by in LISTINGS {
                    match decode(used_by, &cursor) {
                        Ok(read) => prop_assert!(made_by == used_by && read == place),
                        Err(error) => prop_assert!(made_by != used_by && matches!(error, Error::InvalidCursor)),
                    }
                }
            }
        }
    }
}
