//! The log of the process, on standard error.

use anyhow::{Context, Result, anyhow, bail};
use opentelemetry::trace::TracerProvider;
use tracing::Level;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::LogFormat;
use crate::output::Colours;
use crate::traces::Traces;

/// Starts logging. `level` is one of the five levels, which is then that of our own crates, or a whole filter.
pub(crate) fn start(level: &str, format: LogFormat, colours: Colours, traces: Option<&Traces>) -> Result<()> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(format == LogFormat::Text && colours.on_stderr());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let traces = traces.map(|traces| {
        let ours = Targets::new().with_target("petasos", Level::INFO);
        tracing_opentelemetry::layer().with_tracer(traces.provider().tracer("petasos")).with_filter(ours)
    });
    let started =
        tracing_subscriber::registry().with(lines.with_filter(filter(level)?)).with(traces).try_init();
    started.map_err(|error| anyhow!("cannot start logging: {error}"))
}

/// Says what is wrong with a level or a filter, if anything is. `name` is where it was set.
pub(crate) fn check(name: &str, level: &str) -> Result<()> {
    filter(level).map(drop).with_context(|| format!("{name} cannot be used"))
}

fn filter(level: &str) -> Result<EnvFilter> {
    // A word alone would be a part of a program that logs everything, while all others are silent: most likely a
    // level that is none.
    let is_word = |part: &str| !part.is_empty() && !part.contains(['=', '[']);
    let is_level = |part: &str| part.eq_ignore_ascii_case("off") || part.parse::<Level>().is_ok();
    if let Some(word) = level.split(',').map(str::trim).find(|part| is_word(part) && !is_level(part)) {
        bail!(
            "{word:?} is no level of logging; use error, warn, info, debug or trace, or a filter such as \
             petasos_engine=debug"
        );
    }
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
        assert!(filter("warn,petasos=debug").is_ok() && filter("off").is_ok());
        assert!(filter("petasos=loud").is_err());
        // These would switch everything off.
        assert!(filter("loud").is_err() && filter("petasos=debug,lod").is_err());
    }
}
