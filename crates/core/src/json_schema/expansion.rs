//! To how many checks of one value a schema expands.
//!
//! References and combinations (`allOf`, `anyOf`, `oneOf`, `not`, `if`, `dependentSchemas`) apply further schemas to the
//! same value. Written out, ten references at each of thirteen levels are 10^13 schemas. The count is memoised per
//! subschema and saturates, so counting takes as long as the schema is large, not as long as what it stands for.

use super::SchemaProblem;
use super::bounds::MAX_EXPANSION;
use super::index::SchemaIndex;

/// How many schemas may be applied to one value by way of one another.
const MAX_CHAIN: usize = 100;

#[derive(Clone, Copy)]
enum Count {
    Unknown,
    UnderWay,
    Known(u64),
}

/// Refuses a schema that expands too far, and one that applies itself to the same value over and over.
pub(super) fn check(index: &SchemaIndex<'_>) -> Result<(), SchemaProblem> {
    let mut counts = vec![Count::Unknown; index.subschemas.len()];
    for number in 0..index.subschemas.len() {
        let expanded = expansion(index, number, &mut counts, 0)?;
        if expanded > MAX_EXPANSION {
            let problem = format!(
                "the schema expands to more than {MAX_EXPANSION} checks of one value; use fewer references within \
                 allOf, anyOf, oneOf, not, if and dependentSchemas"
            );
            return Err(SchemaProblem::new(&index.subschemas[number].place, problem));
        }
    }
    Ok(())
}

fn expansion(
    index: &SchemaIndex<'_>,
    number: usize,
    counts: &mut [Count],
    chain: usize,
) -> Result<u64, SchemaProblem> {
    let place = || index.subschemas[number].place.as_str();
    match counts[number] {
        Count::Known(count) => return Ok(count),
        Count::UnderWay => {
            return Err(SchemaProblem::new(
                place(),
                "the schema applies itself to the same value without end",
            ));
        }
        Count::Unknown if chain >= MAX_CHAIN => {
            let problem = format!("more than {MAX_CHAIN} schemas apply one another to the same value");
            return Err(SchemaProblem::new(place(), problem));
        }
        Count::Unknown => {}
    }
    counts[number] = Count::UnderWay;
    let mut count: u64 = 1;
    for next in &index.subschemas[number].same_value {
        count = count.saturating_add(expansion(index, *next, counts, chain + 1)?);
    }
    counts[number] = Count::Known(count);
    Ok(count)
}

/// What [`check`] counts for the root, for tests.
#[cfg(test)]
pub(super) fn root_expansion(index: &SchemaIndex<'_>) -> u64 {
    let mut counts = vec![Count::Unknown; index.subschemas.len()];
    expansion(index, 0, &mut counts, 0).unwrap()
}
