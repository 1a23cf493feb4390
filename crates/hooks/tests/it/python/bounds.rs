//! How much may be under way in a host.

use petasos_hooks::python::{Caller, Settings};
use petasos_testkit::within;

use super::{World, quick};

#[tokio::test]
async fn a_full_host_fails_further_calls_clearly_and_takes_them_again_later() {
    let code = r#"
import os, time
WORLD = os.environ["WORLD"]
def wait(raw):
    open(WORLD + "/waits-" + raw, "w").close()
    while not os.path.exists(WORLD + "/open"):
        time.sleep(0.005)
    return "through"
def register(ctx):
    ctx.register_command("wait", wait)
    ctx.register_hook("pre_llm_call", lambda **kwargs: "there is room")
"#;
    let world = World::of(Settings { most_calls: 2, ..quick() }, &[("gate", code)], &[]).await;
    let wait = |number: &'static str| {
        let hosts = world.hosts.clone();
        tokio::spawn(async move { hosts.run_command("wait", number, Caller::default()).await })
    };
    let waiting = [wait("1"), wait("2")];
    within("both to wait", async {
        while !["waits-1", "waits-2"].iter().all(|name| world.home.path().join(name).exists()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let refused = within("the refusal", wait("3")).await.unwrap().unwrap_err();
    assert!(
        refused.contains("2 calls are under way") && refused.contains("max_concurrent_calls"),
        "{refused}"
    );
    assert_eq!(world.context("x").await, None, "a turn goes on without its callback");

    std::fs::write(world.home.path().join("open"), "").unwrap();
    for waiting in waiting {
        assert_eq!(within("the gate", waiting).await.unwrap(), Ok(Some("through".to_owned())));
    }
    assert_eq!(world.context("x").await.as_deref(), Some("there is room"));
}
