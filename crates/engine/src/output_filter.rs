//! Lets hooks put another text in place of what a command wrote.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_hooks::{HookEvent, TerminalOutput};
use petasos_tools::{CommandOutput, Filter, OutputFilter};

use crate::tool_run::ToolRun;

impl ToolRun {
    /// The filter of what commands write, if a hook wants to be one.
    pub(crate) fn output_filter(&self) -> Option<Filter> {
        let wanted = self.around.shared.hooks.wants(HookEvent::TransformTerminalOutput);
        wanted.then(|| Filter::new(self.clone()))
    }
}

impl OutputFilter for ToolRun {
    fn filter<'a>(&'a self, output: CommandOutput<'a>) -> BoxFuture<'a, Option<String>> {
        let CommandOutput { command, text, exit_code, directory } = output;
        let directory = directory.to_string_lossy().into_owned();
        async move {
            let output = TerminalOutput { command, output: text, exit_code, directory: &directory };
            let transform =
                async { self.around.shared.hooks.transform_terminal_output(&self.around.turn, output).await };
            AssertUnwindSafe(transform).catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!(session_id = %self.around.turn.session_id, "a hook ended in a bug");
                None
            })
        }
        .boxed()
    }
}
