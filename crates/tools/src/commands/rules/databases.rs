//! Statements and tools that lose the data of a database.

use crate::commands::names::{is_shell, is_text};
use crate::commands::programs;
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(in crate::commands) const DATABASE_DROP: Finding =
    finding("database_drop", "deletes a database or all that is in it");

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let name = command.name();
    let runs_others =
        is_shell(name) || programs::speaks_another_language(name) || matches!(name, "ssh" | "eval" | "trap");
    if is_client(name) {
        let input = command.input.as_deref().map(|input| input.text.as_str());
        let words = command.arguments().join(" ");
        let each = command.arguments().iter().map(String::as_str);
        let mut texts = std::iter::once(words.as_str()).chain(each).chain(input);
        if let Some(found) = texts.find_map(|text| statement(text).or_else(|| of_other_stores(name, text))) {
            return Some(found);
        }
    } else if !is_text(name)
        && !runs_others
        && let Some(found) =
            command.arguments().iter().filter(|text| begins_statement(text)).find_map(|text| statement(text))
    {
        return Some(found);
    }
    (resets(command) || deletes_keys(command) || deletes_index(command)).then_some(DATABASE_DROP)
}

/// Whether a text, or a part of it, begins as a statement does. The name of a test may hold the same words.
fn begins_statement(text: &str) -> bool {
    let value = text.split_once('=').map_or("", |(_, value)| value);
    text.split([';', '\n']).chain([value]).any(|part| {
        let part = part.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        ["drop", "delete", "truncate", "alter", "use", "begin"].iter().any(|verb| part.starts_with(verb))
    })
}

/// Keys of Redis that another command lists.
fn deletes_keys(command: &Simple) -> bool {
    let deletes = |word: &str| word.eq_ignore_ascii_case("del") || word.eq_ignore_ascii_case("unlink");
    command.name() == "redis-cli" && command.by.is_some() && command.operands().any(deletes)
}

/// Indexes of Elasticsearch.
fn deletes_index(command: &Simple) -> bool {
    let deletes = command.values('X', "request").iter().any(|method| method.eq_ignore_ascii_case("delete"));
    command.name() == "curl" && deletes && command.operands().any(|word| word.contains(":9200/"))
}

fn is_client(name: &str) -> bool {
    programs::is_database(name)
}

/// A statement that loses data.
pub(in crate::commands) fn statement(text: &str) -> Option<Finding> {
    let text = without_comments(&without_literals(&text.to_ascii_lowercase()));
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let follows = |first: &str, seconds: &[&str]| {
        words.windows(2).any(|pair| matches!(pair, [a, b] if *a == first && seconds.contains(b)))
    };
    const DROPPED: [&str; 10] = [
        "table",
        "database",
        "schema",
        "keyspace",
        "column",
        "collection",
        "tablespace",
        "owned",
        "user",
        "role",
    ];
    let truncates =
        words.first() == Some(&"truncate") || text.contains("; truncate ") || text.contains("-c truncate ");
    let all = ["where 1=1", "where 1 = 1", "where true"].iter().any(|clause| text.contains(clause));
    if follows("drop", &DROPPED) || follows("truncate", &["table"]) || truncates {
        Some(finding("sql_drop", "deletes tables of a database"))
    } else if follows("delete", &["from"]) && (!words.contains(&"where") || all) {
        Some(finding("sql_delete_all", "deletes all rows of a table"))
    } else {
        None
    }
}

/// A statement without the texts in it, which are data. A quote that has no end on its line is none.
fn without_literals(statement: &str) -> String {
    let parts: Vec<&str> = statement.split('\'').collect();
    let is_literal = |at: usize, part: &str| at % 2 == 1 && !part.contains(['\n', ';']);
    if parts.len().is_multiple_of(2) {
        return statement.to_owned();
    }
    let kept = parts.iter().enumerate().filter(|(at, part)| !is_literal(*at, part));
    kept.map(|(_, part)| *part).collect::<Vec<_>>().join(" ? ")
}

/// A statement without what stands between `/*` and `*/`.
fn without_comments(statement: &str) -> String {
    let mut parts = statement.split("/*");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept.push(' ');
        kept.push_str(part.split_once("*/").map_or(part, |(_, rest)| rest));
    }
    kept
}

/// Commands of databases that do not speak SQL.
fn of_other_stores(name: &str, text: &str) -> Option<Finding> {
    let lower = text.to_ascii_lowercase().replace("{ }", "{}");
    let lost = match name {
        "redis-cli" => {
            lower.contains("flushall") || lower.contains("flushdb") || lower.starts_with("shutdown")
        }
        "mongosh" | "mongo" => {
            lower.contains("dropdatabase(")
                || lower.contains(".drop(")
                || lower.contains("deletemany({})")
                || lower.contains(".remove({})")
        }
        "influx" => lower.contains("bucket delete") || lower.contains("drop "),
        "bq" => lower.starts_with("rm "),
        _ => false,
    };
    lost.then_some(DATABASE_DROP)
}

/// Tools of frameworks that empty a database.
fn resets(command: &Simple) -> bool {
    let says = |words: &[&str]| command.operands().any(|word| words.contains(&word));
    let in_order = |first: &str, second: &str| {
        command.operands().zip(command.operands().skip(1)).any(|pair| pair == (first, second))
    };
    match command.name() {
        "dropdb" | "dropuser" => true,
        "mongorestore" => command.has('\0', "drop"),
        "pg_restore" => command.has('c', "clean"),
        "etcdctl" => says(&["del"]) && (command.has('\0', "prefix") || command.has('\0', "from-key")),
        "kafka-topics" | "kafka-topics.sh" => command.has('\0', "delete"),
        "rabbitmqctl" => {
            let deletes = |verb: &str| verb.starts_with("delete_") || verb.starts_with("purge_");
            says(&["reset", "force_reset"]) || command.operands().any(deletes)
        }
        "nc" | "ncat" | "netcat" | "telnet" => {
            command.input.as_ref().and_then(|input| of_other_stores("redis-cli", &input.text)).is_some()
        }
        "consul" => in_order("kv", "delete") && command.says("-recurse"),
        "influx" => command.operand(0) == "delete",
        "mysqladmin" => says(&["drop"]),
        "rails" | "rake" => {
            says(&["db:drop", "db:reset", "db:purge", "db:drop:all", "db:schema:load", "db:truncate_all"])
        }
        "prisma" => {
            in_order("migrate", "reset")
                || command.has('\0', "force-reset")
                || command.has('\0', "accept-data-loss")
        }
        "php" | "artisan" | "sail" => {
            says(&["migrate:fresh", "migrate:reset", "migrate:refresh", "db:wipe", "doctrine:database:drop"])
        }
        "python" | "python3" | "python2" | "django-admin" | "manage.py" => {
            (says(&["manage.py", "./manage.py"])
                || command.name().contains("manage")
                || command.name() == "django-admin")
                && says(&["flush", "reset_db", "sqlflush"])
        }
        "mix" => says(&["ecto.drop", "ecto.reset", "ecto.drop,", "ecto.reset,"]),
        "dotnet" => in_order("database", "drop"),
        "diesel" | "sqlx" => {
            in_order("database", "reset") || in_order("database", "drop") || in_order("db", "drop")
        }
        "sequelize" | "sequelize-cli" => says(&["db:drop", "db:migrate:undo:all"]),
        "typeorm" => says(&["schema:drop"]),
        "supabase" => in_order("db", "reset"),
        "alembic" => in_order("downgrade", "base"),
        "heroku" => command.operands().any(|word| word.starts_with("pg:reset")),
        "goose" | "dbmate" | "flyway" => says(&["reset", "drop", "clean"]),
        "knex" => says(&["migrate:rollback"]) && command.has('\0', "all"),
        _ => false,
    }
}
