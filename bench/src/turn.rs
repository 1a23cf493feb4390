//! One turn at a time: what the server adds to the model's stream, and what the disk costs in the same minute.

use std::path::Path;

use anyhow::Result;

use crate::Bench;
use crate::api::Api;
use crate::commits::Commits;
use crate::conversation::{Conversation, Direct};
use crate::process::Server;
use crate::report::{Section, Target, milliseconds};
use crate::samples::Samples;
use crate::stub::PAUSE;

/// Tokens of an answer.
pub(crate) const TOKENS: usize = 200;
/// Turns of one session before the next is taken.
pub(crate) const TURNS: usize = 10;

pub(crate) async fn measure(bench: &Bench) -> Result<Section> {
    let directory = bench.directory()?;
    let server = bench.serve(&directory.path().join("home")).await?;
    let mut api = server.api().await?;
    let mut commits = Commits::open(directory.path(), TOKENS)?;
    if !bench.scale.quick {
        go_round(&server, &mut api, &mut commits, directory.path()).await?;
    }
    let mut section = Section::new("One turn at a time");
    section.note(&format!(
        "An answer of {TOKENS} tokens, read straight from the stub model and through the server, one after the other, \
         and between them two commits of the same rows by SQLite alone (WAL, `synchronous=FULL`). The server has to \
         make these commits too: the first before anybody sees a token, the second before the turn is over. Before that, both write-ahead logs have \
         gone round once, because a commit takes longer while the file of its log still grows. The model \
         with a pace takes {} ms for its second token; the one without says all it has within a millisecond, and then \
         model, server and client share the processors while the first token is on its way.",
        PAUSE.as_millis()
    ));
    section.header(&["", "p50", "p99"]);
    let mut targets = Vec::new();
    for style in ["single", "paced", "burst"] {
        let agent = api.agent(&format!("{style}-{TOKENS}")).await?;
        let mut direct = Direct::open(bench.stub.address, style, TOKENS).await?;
        let mut conversation =
            Conversation::open(server.address, &api.session(&agent).await?, TOKENS).await?;
        let mut figures = Figures::default();
        let count = bench.scale.of(600, 30);
        for index in 0..count + TURNS {
            if index > 0 && index % TURNS == 0 {
                conversation = conversation.switch(server.address, &api.session(&agent).await?).await?;
            }
            let alone = direct.turn().await?;
            let committed = tokio::task::block_in_place(|| commits.turn())?;
            let through = conversation.turn().await?;
            // The first turns warm both sides up.
            if index >= TURNS {
                figures.direct.time(alone.whole);
                figures.direct_first.time(alone.first);
                figures.through.time(through.whole);
                figures.through_first.time(through.first);
                figures.added.time(through.whole.saturating_sub(alone.whole));
                figures.added_first.time(through.first.saturating_sub(alone.first));
                figures.commits.time(committed);
            }
        }
        figures.rows(style, &mut section);
        match style {
            "single" => targets.push(figures.whole()),
            "paced" => targets.push(figures.first()),
            _ => {}
        }
    }
    for target in targets {
        section.target(target);
    }
    server.stop().await?;
    Ok(section)
}

/// Lets both write-ahead logs go round once, after which their files no longer grow.
async fn go_round(server: &Server, api: &mut Api, commits: &mut Commits, directory: &Path) -> Result<()> {
    let length = |log: &str| std::fs::metadata(directory.join(log)).map_or(0, |file| file.len());
    let lengths = || ["home/petasos.db-wal", "commits.db-wal"].map(length);
    let agent = api.agent("burst-1").await?;
    loop {
        let before = lengths();
        for _ in 0..20 {
            let session = api.session(&agent).await?;
            let mut conversation = Conversation::open(server.address, &session, 1).await?;
            for _ in 0..TURNS {
                conversation.turn().await?;
                tokio::task::block_in_place(|| commits.turn())?;
            }
        }
        if lengths() == before {
            return Ok(());
        }
    }
}

#[derive(Default)]
struct Figures {
    direct: Samples,
    direct_first: Samples,
    through: Samples,
    through_first: Samples,
    added: Samples,
    added_first: Samples,
    commits: Samples,
}

impl Figures {
    fn rows(&self, style: &str, section: &mut Section) {
        let style = match style {
            "single" => "token by token",
            "paced" => "token by token, with a pace",
            _ => "all at once",
        };
        let rows = [
            ("whole turn, direct", &self.direct),
            ("whole turn, through the server", &self.through),
            ("**added to the turn**", &self.added),
            ("two commits by SQLite alone", &self.commits),
            ("first token, direct", &self.direct_first),
            ("first token, through the server", &self.through_first),
            ("**added to the first token**", &self.added_first),
        ];
        for (name, samples) in rows {
            let cells =
                [format!("{name} ({style})"), milliseconds(samples.p50()), milliseconds(samples.p99())];
            section.row(cells);
        }
    }

    fn whole(&self) -> Target {
        let over = self.added.p50() - self.commits.p50();
        Target::at_most("Added to a plain turn over two commits, p50", over, 1.5, "ms")
    }

    fn first(&self) -> Target {
        Target::at_most("First token later than direct, p50", self.added_first.p50(), 1.0, "ms")
    }
}
