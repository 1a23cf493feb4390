//! What `serve` prints when it is ready.

use std::net::SocketAddr;

use secrecy::ExposeSecret;

use crate::admin_key::{AdminKey, Source};
use crate::env;
use crate::home::Home;
use crate::output;

/// What the banner tells.
pub(crate) struct Banner<'a> {
    /// Where a client on this machine finds the server.
    pub(crate) url: String,
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    /// Where everything is kept.
    pub(crate) home: &'a Home,
    /// The admin key.
    pub(crate) admin_key: &'a AdminKey,
    /// Who reads the banner.
    pub(crate) reader: Reader,
    /// How many sessions go on.
    pub(crate) recovered: usize,
}

/// Who reads the banner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A person at a terminal, who is shown a new key once.
    Terminal,
    /// A journal, a file or a pipe, where a key would stay.
    Other,
}

impl Reader {
    /// Who reads what this process prints.
    pub(crate) fn of_stdout() -> Self {
        if output::stdout_is_terminal() { Reader::Terminal } else { Reader::Other }
    }
}

/// The banner as text.
pub(crate) fn text(banner: &Banner<'_>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (url, home) = (&banner.url, banner.home.path().display());
    let mut lines = vec![format!("petasos {version} is ready at {url}")];
    if banner.address.ip().is_unspecified() {
        lines.push(format!("  listening  on {}, all addresses of this machine", banner.address));
    }
    lines.push(format!("  home       {home}"));
    lines.push(format!("  admin key  {}", admin_key(banner)));
    lines.push(match banner.recovered {
        0 => "  sessions   none were left running".to_owned(),
        count => format!("  sessions   {count} picked up where the last process stopped"),
    });
    lines.push(String::new());
    lines.push(examples(banner));
    lines.join("\n")
}

fn admin_key(banner: &Banner<'_>) -> String {
    let file = banner.home.admin_key();
    match banner.admin_key.source {
        Source::Environment => format!("is the one in {}", env::API_KEY),
        Source::New if banner.reader == Reader::Other => {
            format!("was made, and is kept in {}", file.display())
        }
        Source::File => format!("is in {}", file.display()),
        Source::New => format!(
            "{}\n             shown only this once, and kept in {}",
            banner.admin_key.key.expose_secret(),
            file.display()
        ),
    }
}

/// Shell lines that take a newcomer to a first answer.
fn examples(banner: &Banner<'_>) -> String {
    let key = match banner.admin_key.source {
        Source::Environment => format!("${}", env::API_KEY),
        Source::File | Source::New => {
            format!("$(cat {})", shell_word(&banner.home.admin_key().display().to_string()))
        }
    };
    let url = &banner.url;
    format!(
        r#"Try it in another terminal:

  URL={url} AUTH="Authorization: Bearer {key}" JSON="Content-Type: application/json"
  AGENT=$(curl -s $URL/v1/agents -H "$AUTH" -H "$JSON" -d '{{"name":"Echo","model":"demo/echo"}}' | grep -o 'agent_[0-9a-f]*' | head -1)
  SESSION=$(curl -s $URL/v1/agents/$AGENT/sessions -H "$AUTH" -H "$JSON" -d '{{}}' | grep -o 'session_[0-9a-f]*' | head -1)
  curl -sN $URL/v1/sessions/$SESSION/events/stream -H "$AUTH" &
  curl -s $URL/v1/sessions/$SESSION/events -H "$AUTH" -H "$JSON" -d '{{"type":"user.message","content":[{{"type":"text","text":"Hello!"}}]}}'
"#
    )
}

/// Quotes a path for the shell, if it needs that. It stands inside `"$(…)"`, where quotes start afresh.
fn shell_word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%".contains(&byte);
    if text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use secrecy::SecretString;

    use super::*;
    use crate::env::Environment;

    fn banner(source: Source, recovered: usize) -> String {
        banner_for(Reader::Terminal, source, recovered)
    }

    fn banner_for(reader: Reader, source: Source, recovered: usize) -> String {
        let home = Home::find(Some(Path::new("/my home")), &Environment::default()).unwrap();
        let admin_key = AdminKey { key: SecretString::from("pk_secret"), source };
        let url = "http://127.0.0.1:7380".to_owned();
        let address = "127.0.0.1:7380".parse().unwrap();
        text(&Banner { url, address, home: &home, admin_key: &admin_key, reader, recovered })
    }

    #[test]
    fn the_key_is_shown_only_when_it_is_new_and_only_to_a_terminal() {
        assert!(banner(Source::New, 0).contains("pk_secret"));
        let elsewhere = banner_for(Reader::Other, Source::New, 0);
        assert!(
            !elsewhere.contains("pk_secret") && elsewhere.contains("kept in /my home/admin.key"),
            "{elsewhere}"
        );
        assert!(!banner(Source::File, 0).contains("pk_secret"));
        assert!(!banner(Source::Environment, 0).contains("pk_secret"));
        assert!(banner(Source::Environment, 0).contains("Bearer $PETASOS_API_KEY"));
        assert!(banner(Source::File, 0).contains("$(cat '/my home/admin.key')"));
    }

    #[test]
    fn picked_up_sessions_are_counted() {
        assert!(!banner(Source::File, 0).contains("picked up"));
        assert!(banner(Source::File, 3).contains("sessions   3 picked up"));
    }
}
