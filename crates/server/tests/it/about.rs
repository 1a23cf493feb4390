//! `GET /v1/server`.

use petasos_sandbox::{Kernel, Sandbox, Settings, Supervisor};
use petasos_testkit::{Setup, TestServer};
use serde_json::{Value, json};

/// What a server tells whose kernel is like that.
async fn promises(kernel: Kernel) -> Value {
    let sandbox = Sandbox::new(Settings { kernel, ..Settings::default() }, Supervisor::of_tests());
    let setup = Setup { sandbox: Some(sandbox), ..Setup::default() };
    let server = TestServer::start_with(setup).await;
    let key = json!({ "tenant": "globex" });
    let key = server.client.post("/v1/keys", key).await.expect(201)["key"].as_str().unwrap().to_owned();
    server.client_with(&key).get("/v1/server").await.expect_error(403, "forbidden");
    server.client.get("/v1/server").await.expect(200)["sandbox"].clone()
}

fn told<'a>(sandbox: &'a Value, promise: &str) -> &'a Value {
    let promises = sandbox["promises"].as_array().unwrap();
    promises.iter().find(|told| told["promise"] == promise).unwrap()
}

#[tokio::test]
async fn what_the_kernel_cannot_keep_is_told_to_administrators() {
    let (signal, see) = ("commands cannot signal the server", "commands cannot see other processes");
    let old = promises(Kernel { landlock_abi: 5, namespaces: false }).await;
    assert_eq!(old["level"], "partial");
    assert_eq!(*told(&old, signal), json!({ "promise": signal, "kept": false, "by": null }));
    let new = promises(Kernel { landlock_abi: 6, namespaces: false }).await;
    assert_eq!(*told(&new, signal), json!({ "promise": signal, "kept": true, "by": "landlock" }));
    assert_eq!(told(&new, see)["kept"], false);
    let here = promises(Kernel::default()).await;
    assert_eq!(told(&here, "commands cannot reach the network")["by"], "seccomp");
}

#[tokio::test]
async fn providers_are_told_without_their_keys() {
    let server = TestServer::start().await;
    let about = server.client.get("/v1/server").await.expect(200);
    let kinds = [
        ("anthropic", "anthropic"),
        ("demo", "demo"),
        ("nobody", "openai"),
        ("openai", "openai"),
        ("responses", "openai-responses"),
    ];
    let told: Vec<Value> = kinds.iter().map(|(name, kind)| json!({ "name": name, "kind": kind })).collect();
    assert_eq!(about["providers"], json!(told), "{about}");
    assert!(!about.to_string().contains("sk-test"), "{about}");
}
