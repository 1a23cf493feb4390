//! The log of the process, on standard error.

use anyhow::{Result, anyhow};
use tracing::Level;
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;
use crate::output::Colours;

/// Starts logging. `level` is one of the five levels, which is then that of our own crates, or a whole filter.
pub(crate) fn start(level: &str, format: LogFormat, colours: Colours) -> Result<()> {
    let filter = filter(level)?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(format == LogFormat::Text && colours.on_stderr());
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}

fn filter(level: &str) -> Result<EnvFilter> {
    // Other crates log headers and the like at their lower levels, so a bare level is not for them.
    let directives = match level.parse::<Level>() {
        Ok(level) if level <= Level::WARN => level.to_string(),
        Ok(level) => format!("warn,petasos={level}"),
        Err(_) => level.to_owned(),
    };
    EnvFilter::try_new(&directives).map_err(|error| {
        anyhow!("{level:?} says nothing about logging ({error}); use error, warn, info, debug or trace")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_filters_are_understood() {
        assert_eq!(filter("info").unwrap().to_string(), "petasos=info,warn");
        assert_eq!(filter("ERROR").unwrap().to_string(), "error");
        assert!(filter("petasos_engine=trace,hyper=debug").is_ok());
        assert!(filter("petasos=loud").is_err());
    }
}
