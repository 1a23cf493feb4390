//! What requests on a caller's word may reach.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use petasos_net::{Egress, Guard};

use super::file;

/// Makes the guard that the file describes.
pub(super) fn guard(file: &file::Egress) -> Result<Guard> {
    Ok(Guard::new(Egress {
        allow: parsed("egress.allow", &file.allow)?,
        only_hosts: parsed("egress.only_hosts", &file.only_hosts)?,
    }))
}

fn parsed<T: FromStr<Err: Display>>(setting: &str, texts: &[String]) -> Result<Vec<T>> {
    let entries = texts.iter().enumerate();
    entries.map(|(i, text)| text.parse().map_err(|problem| anyhow!("{setting}[{i}]: {problem}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_or_named() {
        let file = |allow: &str| file::Egress { allow: vec![allow.to_owned()], only_hosts: Vec::new() };
        assert!(guard(&file("10.0.0.0/8")).unwrap().check("http://10.0.0.1/").is_ok());
        assert!(guard(&file::Egress::default()).unwrap().check("http://10.0.0.1/").is_err());
        let problem = guard(&file("10.0.0.0/33")).unwrap_err().to_string();
        assert!(problem.starts_with("egress.allow[0]: "), "{problem}");
    }
}
