//! The demo model as a caller sees it.

use petasos_core::event::Block;
use petasos_core::model::{Message, Stop, ToolOutcome};

use crate::support::{call_part, client, request, run};

async fn say(model: &str, text: &str) -> crate::support::Outcome {
    let models = petasos_models::Models::new(Default::default(), Default::default(), client());
    let (demo, name) = models.resolve(&format!("demo/{model}")).unwrap();
    run(demo.as_ref(), petasos_core::model::Request { model: name, ..request(text) }).await
}

#[tokio::test(start_paused = true)]
async fn what_is_streamed_is_what_is_answered() {
    for text in ["Hello", "help", "think about hats", "count to 12", "refuse"] {
        let outcome = say("echo", text).await;
        let (streamed, thinking) = (outcome.text.clone(), outcome.thinking.clone());
        let answer = outcome.answer();
        let mut text = String::new();
        for part in &answer.parts {
            match part {
                petasos_core::model::AnswerPart::Text(more) => text.push_str(more),
                petasos_core::model::AnswerPart::Thinking { text, .. } => assert_eq!(*text, thinking),
                petasos_core::model::AnswerPart::ToolCall { .. } => panic!("{part:?}"),
            }
        }
        assert_eq!(text, streamed);
        assert!(answer.usage.output_tokens > 0 && answer.usage.input_tokens > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn counting_takes_its_time_unless_it_is_fast() {
    let start = tokio::time::Instant::now();
    assert_eq!(say("echo", "count to 10").await.text, "1 2 3 4 5 6 7 8 9 10 ");
    assert!(start.elapsed().as_millis() >= 900);
    let start = tokio::time::Instant::now();
    assert_eq!(say("fast", "count to 10").await.text, "1 2 3 4 5 6 7 8 9 10 ");
    assert!(start.elapsed().is_zero());
}

#[tokio::test]
async fn a_tool_is_called_and_its_result_reported() {
    let models = petasos_models::Models::new(Default::default(), Default::default(), client());
    let (demo, _) = models.resolve("demo/fast").unwrap();
    let mut request = request("call get_time {\"zone\": \"CET\"}");
    request.model = "fast".to_owned();
    let answer = run(demo.as_ref(), request.clone()).await.answer();
    assert_eq!(answer.parts, [call_part("get_time", "{\"zone\": \"CET\"}")]);
    assert_eq!(answer.stop, Stop::ToolUse);

    let outcome = ToolOutcome {
        id: "tu_1".to_owned(),
        name: "get_time".to_owned(),
        text: "noon".to_owned(),
        images: Vec::new(),
        is_error: false,
    };
    request.messages.push(Message::Assistant(Vec::new()));
    request.messages.push(Message::ToolResults(vec![outcome]));
    assert_eq!(run(demo.as_ref(), request.clone()).await.text, "get_time answered: noon");

    // Guidance that joins the turn is followed.
    request.messages.push(Message::User(vec![Block::text("count to 2")]));
    assert_eq!(run(demo.as_ref(), request).await.text, "1 2 ");
}
