//! The session that is talked in: found or made, spoken to, followed.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::partner::Partner;
use super::stream::EventStream;
use crate::api::{Api, path};

/// The most characters that the server takes in one block.
const MAX_BLOCK_CHARS: usize = 20_000;
/// The most blocks that it takes in one message.
const MAX_BLOCKS: usize = 100;
/// Events of calls that a person may be asked about.
const CALLS: &str = "agent.tool_use,agent.mcp_tool_use";
/// How many of them are looked through for those that wait.
const MAX_CALLS: &str = "1000";

/// Who answers what was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The agent, in a turn that has begun.
    ByAgent,
    /// A person who has taken over; no turn runs.
    ByPerson,
}

/// More characters than a message can have.
#[derive(Debug)]
pub(crate) struct TooLong(usize);

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (has, most) = (self.0, MAX_BLOCKS * MAX_BLOCK_CHARS);
        write!(f, "the message has {has} characters, and the server takes at most {most} in one")
    }
}

impl std::error::Error for TooLong {}

/// A session, which is made with the first thing that is said.
pub(crate) struct Conversation<'a> {
    api: &'a Api,
    partner: Partner,
    user: String,
    session_id: Option<String>,
    /// The last event that was seen.
    after: u64,
}

impl<'a> Conversation<'a> {
    /// A conversation that has not begun.
    pub(crate) fn new(api: &'a Api, partner: Partner, user: String) -> Self {
        Conversation { api, partner, user, session_id: None, after: 0 }
    }

    /// Goes on with a session, and returns it as the server shows it.
    pub(crate) async fn resume(api: &'a Api, session_id: &str, user: String) -> Result<(Self, Value)> {
        // The log's end is looked up first: what happens in between is then seen twice rather than never.
        let newest = [("order", "desc"), ("limit", "1")];
        let newest = api.get(&path(&["sessions", session_id, "events"]), &newest).await?;
        let after = newest["data"][0]["sequence"].as_u64().unwrap_or_default();
        let session = api.get(&path(&["sessions", session_id]), &[]).await?;
        let agent_id = session["agentId"].as_str().context("the server's answer has no agentId")?;
        let agent = api.get(&path(&["agents", agent_id]), &[]).await.unwrap_or_default();
        let partner = Partner::from_agent(agent_id, &agent);
        let session_id = Some(session_id.to_owned());
        Ok((Conversation { api, partner, user, session_id, after }, session))
    }

    /// Who is talked to.
    pub(crate) fn partner(&self) -> &Partner {
        &self.partner
    }

    /// The session, if there is one yet.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Starts again with a new session, and returns the one that was left.
    pub(crate) fn renew(&mut self) -> Option<String> {
        self.after = 0;
        self.session_id.take()
    }

    /// Has hooks told that the person has left a session.
    pub(crate) async fn finalize(&self, session_id: &str) -> Result<()> {
        self.api.post(&path(&["sessions", session_id, "finalize"]), &json!({})).await.map(drop)
    }

    /// Looks for another server in the place of one that is gone. Returns whether there is one.
    pub(crate) async fn find_server(&self) -> bool {
        self.api.find_again().await
    }

    /// Says something, which starts a turn unless a person answers.
    pub(crate) async fn say(&mut self, text: &str) -> Result<Heard> {
        let characters: Vec<char> = text.chars().collect();
        if characters.len() > MAX_BLOCKS * MAX_BLOCK_CHARS {
            return Err(TooLong(characters.len()).into());
        }
        let blocks: Vec<Value> = characters
            .chunks(MAX_BLOCK_CHARS)
            .map(|block| json!({ "type": "text", "text": block.iter().collect::<String>() }))
            .collect();
        let answer = self.send(&json!({ "type": "user.message", "content": blocks })).await?;
        // Everything up to this message is older than the turn.
        self.after = self.after.max(answer["data"][0]["sequence"].as_u64().unwrap_or_default());
        // What waits for no turn is complete at once.
        let opens_turn = answer["data"][0]["status"] == "pending";
        Ok(if opens_turn { Heard::ByAgent } else { Heard::ByPerson })
    }

    /// Sends an event or several.
    pub(crate) async fn send(&mut self, events: &Value) -> Result<Value> {
        self.post("events", events).await
    }

    /// The slash commands that plugins bring.
    pub(crate) async fn commands(&self) -> Result<Vec<Value>> {
        let mut commands = self.api.get(&path(&["commands"]), &[]).await?;
        Ok(serde_json::from_value(commands["data"].take())?)
    }

    /// Has a slash command carried out, and returns what came of it.
    pub(crate) async fn command(&mut self, name: &str, args: &str) -> Result<Value> {
        self.post("commands", &json!({ "name": name, "args": args })).await
    }

    /// Sends something to the session, which is made if need be.
    async fn post(&mut self, what: &str, body: &Value) -> Result<Value> {
        let session_id = match &self.session_id {
            Some(session_id) => session_id.clone(),
            None => self.create().await?,
        };
        self.api.post(&path(&["sessions", &session_id, what]), body).await
    }

    async fn create(&mut self) -> Result<String> {
        let body = json!({ "userId": self.user });
        let session = self.api.post(&path(&["agents", &self.partner.agent_id, "sessions"]), &body).await?;
        let session_id = session["id"].as_str().context("the server's answer has no id")?.to_owned();
        self.session_id = Some(session_id.clone());
        Ok(session_id)
    }

    /// The session as the server shows it now.
    pub(crate) async fn look(&self) -> Result<Value> {
        let session_id = self.session_id().context("there is no session yet")?;
        self.api.get(&path(&["sessions", session_id]), &[]).await
    }

    /// What the turn waits for, and what is dangerous about it: only the calls themselves tell that.
    pub(crate) async fn pending(&self) -> Result<Vec<Value>> {
        let session = self.look().await?;
        let mut actions = session["pendingActions"].as_array().cloned().unwrap_or_default();
        if actions.iter().any(|action| action["type"] == "tool_confirmation") {
            let session_id = self.session_id().context("there is no session yet")?;
            let newest = [("types", CALLS), ("order", "desc"), ("limit", MAX_CALLS)];
            let calls = self.api.get(&path(&["sessions", session_id, "events"]), &newest).await?;
            for event in calls["data"].as_array().into_iter().flatten() {
                let call = &event["payload"];
                for action in actions.iter_mut().filter(|action| action["id"] == call["id"]) {
                    action["danger"] = call["danger"]["description"].clone();
                }
            }
        }
        Ok(actions)
    }

    /// Interrupts the turn.
    pub(crate) async fn interrupt(&mut self) -> Result<()> {
        self.send(&json!({ "type": "user.interrupt" })).await.map(drop)
    }

    /// Follows the session from the last event that was seen.
    pub(crate) fn follow(&self) -> Result<EventStream<'a>> {
        let session_id = self.session_id().context("there is no session yet")?;
        Ok(EventStream::new(self.api, session_id, self.after))
    }

    /// Remembers how far a stream has come.
    pub(crate) fn seen(&mut self, stream: &EventStream<'_>) {
        self.after = self.after.max(stream.after());
    }
}
