//! What the outside is told about a turn that failed.

use petasos_core::event::Failure;

/// A summary for whoever talks to the agent or hears of its run: no keys, addresses or traces, which texts of providers and of the
/// network may hold.
pub(crate) fn summary(code: &str, message: &str) -> String {
    let summary = match code {
        "model_unreachable" => "The model could not be reached.",
        "model_timeout" => "The model did not answer in time.",
        "model_rate_limited" => "The model has too many requests to answer.",
        "model_overloaded" => "The model's provider has a problem of its own.",
        "model_unauthorized" | "model_missing_key" => {
            "The model's provider does not accept the server's key."
        }
        "model_not_found" | "model_unknown_provider" => "The agent's model is not there.",
        Failure::CONTEXT_TOO_LONG => "The conversation is longer than the model can read.",
        "model_bad_request" | "model_bad_response" | "model_output_too_large" => {
            "The model and the server did not understand each other."
        }
        // Of a run: its own message may repeat what the model or a tool said.
        "timeout" => "The run took longer than it may.",
        "tool_error" => "A tool of the run failed.",
        "output_validation_failed" => "The output of the run does not fit its schema.",
        "max_engine_iterations_reached" => "The run made all the model calls that it may, and has no output.",
        // Our own words about bounds of turns and budgets, and about the session of a run.
        _ if code.starts_with("turn_") || code.starts_with("session_") || code.starts_with("agent_") => {
            message
        }
        _ => "Something went wrong on the server; its log says what.",
    };
    summary.to_owned()
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn what_others_wrote_is_not_repeated() {
        let message = "openai/x: http://10.0.0.1:8080/v1 answered 401: key sk-abc";
        for code in ["model_unauthorized", "model_bad_request", "model_of_tomorrow", "internal"] {
            assert!(!summary(code, message).contains("10.0.0.1"), "{code}");
        }
        let ours = "The turn made 40 model calls, the most it may.";
        assert_eq!(summary("turn_model_calls_exceeded", ours), ours);
    }
}
