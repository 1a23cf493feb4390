//! Which known name is nearest to one that is not known.

/// How alike two names must be for one to be a slip of the other.
const ALIKE: f64 = 0.75;

/// The known name that is most like `name`; none if nothing is known.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known.iter().copied().max_by(|one, other| likeness(name, one).total_cmp(&likeness(name, other)))
}

/// The known name of which `name` is probably a slip.
pub fn meant<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    nearest(name, known).filter(|candidate| likeness(name, candidate) >= ALIKE)
}

/// How alike two names are: 1 for equal ones, 0 for names without anything in common.
fn likeness(one: &str, other: &str) -> f64 {
    // Somebody who writes a name in capitals means that name.
    strsim::jaro_winkler(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        let known = ["name", "tools", "instructions"];
        assert_eq!(meant("naem", &known), Some("name"));
        assert_eq!(meant("NAEM", &known), Some("name"));
        assert_eq!(meant("colour", &known), None);
        assert_eq!(nearest("colour", &known), Some("tools"));
        assert_eq!(nearest("colour", &[]), None);
    }
}
