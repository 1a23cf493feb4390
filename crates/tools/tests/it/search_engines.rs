//! A search engine that never answers.

use std::sync::Arc;
use std::time::Duration;

use petasos_net::{Client, Egress, Guard, Options};
use petasos_testkit::within;
use petasos_tools::web_search::{Brave, Exa, SearchEngine, Searxng, Tavily};
use secrecy::SecretString;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

#[tokio::test]
async fn an_engine_that_hangs_is_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let guard = Guard::new(Egress { allow: vec!["127.0.0.1".parse().unwrap()], only_hosts: Vec::new() });
    let client = Client::guarded(&Options::default(), guard);
    let key = || SecretString::from("key");
    let engines: [(&str, Arc<dyn SearchEngine>); 4] = [
        ("brave", Arc::new(Brave::new(client.clone(), &url, key()).unwrap())),
        ("searxng", Arc::new(Searxng::new(client.clone(), &url).unwrap())),
        ("tavily", Arc::new(Tavily::new(client.clone(), &url, key()).unwrap())),
        ("exa", Arc::new(Exa::new(client.clone(), &url, key()).unwrap())),
    ];
    for (name, engine) in engines {
        let asked = tokio::spawn(async move { engine.search("hats", 8).await });
        let (mut connection, _) = within("a connection", listener.accept()).await.unwrap();
        within("the request", connection.read_u8()).await.unwrap();
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(21)).await;
        tokio::time::resume();
        let problem = within("the end of the search", asked).await.unwrap().unwrap_err();
        assert!(problem.contains(name) && problem.contains("did not answer within 20 s"), "{problem}");
    }
}
