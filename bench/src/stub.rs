//! The stub model: an OpenAI-compatible server that answers every request with the same text, as fast as it can.
//!
//! A model's name says how it answers: `<style>-<tokens>`. The style `single` sends each token on its own, as model
//! servers do, but without a pause; `paced` does the same and takes a moment for its second token, so that the first
//! does not share the processor with all others; `burst` sends the whole answer at once, which no model does, and which is the hardest to keep up with;
//! `command` calls the tool `terminal` with the command `true` first, and then answers as `burst` does.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Characters of one token.
pub(crate) const TOKEN: usize = 4;

/// Serves on a free port, whose address is printed, until the program that started it closes its standard input.
pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let serving = async {
        loop {
            let (stream, _) = listener.accept().await?;
            // A connection that breaks is the other side's affair.
            tokio::spawn(async move { serve(stream).await.ok() });
        }
    };
    let parent = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    tokio::select! {
        failed = serving => failed,
        _ = parent => Ok(()),
    }
}

/// How long a model with a pace takes for its second token.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// An answer, in the pieces in which it is written.
pub(crate) struct Answer {
    pieces: Vec<Vec<u8>>,
    is_paced: bool,
}

impl Answer {
    /// Writes it.
    pub(crate) async fn write(&self, stream: &mut TcpStream) -> Result<()> {
        for (index, piece) in self.pieces.iter().enumerate() {
            // The head and the first token are on their way.
            if self.is_paced && index == 2 {
                tokio::time::sleep(PAUSE).await;
            }
            stream.write_all(piece).await?;
        }
        Ok(())
    }
}

async fn serve(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut answers: HashMap<String, Arc<Answer>> = HashMap::new();
    let mut input = Vec::with_capacity(16 * 1024);
    loop {
        let Some(length) = request_length(&input)? else {
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let mut model = model(&input[..length])?;
        if model.starts_with("command-") && !ends_with_result(&input[..length]) {
            model = CALL.to_owned();
        }
        let answer = match answers.get(&model) {
            Some(answer) => Arc::clone(answer),
            None => {
                let answer = Arc::new(answer(&model)?);
                answers.insert(model, Arc::clone(&answer));
                answer
            }
        };
        input.drain(..length);
        answer.write(&mut stream).await?;
    }
}

/// The length of the first request, once it is there.
pub(crate) fn request_length(input: &[u8]) -> Result<Option<usize>> {
    let Some(head) = memmem::find(input, b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&input[..head])?.to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).context("no length")?;
    let length = head + 4 + length.trim().parse::<usize>()?;
    Ok((input.len() >= length).then_some(length))
}

fn model(request: &[u8]) -> Result<String> {
    let key = b"\"model\":\"";
    let start = memmem::find(request, key).context("no model")? + key.len();
    let length = memmem::find(&request[start..], b"\"").context("no model")?;
    Ok(std::str::from_utf8(&request[start..start + length])?.to_owned())
}

/// What stands for the model's name when it calls the tool.
const CALL: &str = "call-0";

/// Whether the last message is the result of a tool.
fn ends_with_result(request: &[u8]) -> bool {
    memmem::rfind(request, b"\"role\":\"tool\"") > memmem::rfind(request, b"\"role\":\"user\"")
}

/// The answer of a model of this name.
pub(crate) fn answer(model: &str) -> Result<Answer> {
    let (style, tokens) = model.split_once('-').context("the model is not <style>-<tokens>")?;
    let tokens: usize = tokens.parse()?;
    ensure!(
        matches!(style, "single" | "paced" | "burst" | "command" | "call"),
        "the style is single, paced, burst or command"
    );
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut pieces = vec![head.as_bytes().to_vec()];
    for _ in 0..tokens {
        pieces.push(chunk(r#"{"content":"lore"}"#, "null"));
    }
    if style == "call" {
        let call = r#"{"index":0,"id":"call_1","type":"function","function":{"name":"terminal","arguments":"{\"command\":\"true\"}"}}"#;
        pieces.push(chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null"));
    }
    let reason = if style == "call" { "\"tool_calls\"" } else { "\"stop\"" };
    let mut end = chunk("{}", reason);
    let usage =
        format!(r#"{{"prompt_tokens":20,"completion_tokens":{tokens},"total_tokens":{}}}"#, tokens + 20);
    end.extend(http_chunk(&format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n")));
    end.extend(http_chunk("data: [DONE]\n\n"));
    end.extend(b"0\r\n\r\n");
    pieces.push(end);
    if !matches!(style, "single" | "paced") {
        pieces = vec![pieces.concat()];
    }
    Ok(Answer { pieces, is_paced: style == "paced" })
}

fn chunk(delta: &str, finish: &str) -> Vec<u8> {
    http_chunk(&format!(
        "data: {{\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":\"chat.completion.chunk\",\
         \"created\":1741569952,\"model\":\"stub\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
         \"logprobs\":null,\"finish_reason\":{finish}}}]}}\n\n"
    ))
}

fn http_chunk(text: &str) -> Vec<u8> {
    let mut chunk = String::new();
    let _ = write!(chunk, "{:x}\r\n{text}\r\n", text.len());
    chunk.into_bytes()
}
