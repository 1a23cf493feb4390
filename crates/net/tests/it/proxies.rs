//! Requests that go through a proxy, and those that must not.

use std::time::Duration;

use petasos_net::{Certificates, Client, Egress, Error, Guard, Method, Options, Proxies, Response};
use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Authority, ProxyMood, ProxyServer, within};

/// An address of the internet that nothing here dials.
const PUBLIC: &str = "93.184.215.14";

fn options(proxy: &str, certificates: Certificates) -> Options {
    let proxy = Some(proxy.parse().unwrap());
    let proxies = Proxies { http: proxy.clone(), https: proxy, ..Proxies::default() };
    Options { proxies, certificates, ..Options::default() }
}

fn for_callers(proxy: &str, certificates: Certificates) -> Options {
    let mut options = options(proxy, certificates);
    options.proxies.callers = true;
    options
}

fn trust(authority: &Authority) -> Certificates {
    Certificates::from_pem(authority.pem().as_bytes()).unwrap()
}

fn place(receiver: &Receiver) -> String {
    receiver.url.strip_prefix("http://").unwrap().strip_suffix("/hook").unwrap().to_owned()
}

async fn get(client: &Client, url: &str) -> Result<Response, Error> {
    client.request(Method::Get, url, &[], None).await
}

/// An error that names the proxy and tells no password.
fn assert_names(error: &Error, proxy: &ProxyServer, words: &[&str]) {
    let texts = [error.to_string(), format!("{error:?}")];
    for text in &texts {
        assert!(text.contains(&proxy.address), "{text}");
        assert!(!text.contains("secret") && !text.contains("ann"), "{text}");
    }
    for word in words {
        assert!(texts[0].contains(word), "{word}: {}", texts[0]);
    }
}

#[tokio::test]
async fn plain_requests_reach_the_proxy_with_their_whole_url() {
    let upstream = Receiver::start().await;
    let proxy = ProxyServer::start(&place(&upstream), ProxyMood::Demands("ann", "p@ss")).await;
    let client = Client::new(&options(&proxy.url_with("ann", "p%40ss"), Certificates::default()));
    let response =
        client.post_json("http://models.example:8080/v1/chat?x=1", &[("x-own", "yes")], "{}").await;
    let response = response.unwrap();
    assert_eq!((response.status(), response.proxy()), (200, Some(proxy.url().as_str())));
    assert_eq!(get(&client, "http://models.example/v1/models").await.unwrap().status(), 200);
    assert_eq!(
        proxy.lines(),
        ["POST http://models.example:8080/v1/chat?x=1", "GET http://models.example/v1/models"]
    );
    let received = upstream.received();
    assert_eq!(received[0].path, "/v1/chat?x=1");
    assert_eq!((received[0].header("host"), received[0].header("x-own")), ("models.example:8080", "yes"));
    assert_eq!(received[0].body, b"{}");
}

#[tokio::test]
async fn encrypted_requests_go_through_a_tunnel_and_the_certificate_is_checked() {
    let (upstream, authority) = (Receiver::start().await, Authority::new());
    let front = authority.identity("models.example").front(&place(&upstream)).await;
    let proxy = ProxyServer::start(&front, ProxyMood::Serves).await;
    let client = Client::new(&options(&proxy.url(), trust(&authority)));
    let response = client.post_json("https://models.example/v1/chat", &[], "{}").await.unwrap();
    assert_eq!(response.status(), 200);
    response.finish();
    assert_eq!(proxy.lines(), ["CONNECT models.example:443"]);
    assert!(!proxy.asked()[0].head.contains("chat"), "the proxy sees no request");

    let elsewhere = get(&client, "https://other.example/").await.unwrap_err();
    assert_names(&elsewhere, &proxy, &["other.example", "certificate not valid for name"]);
    let unknown = Client::new(&options(&proxy.url(), Certificates::default()));
    let unknown = get(&unknown, "https://models.example/").await.unwrap_err();
    assert_names(&unknown, &proxy, &["UnknownIssuer", "SSL_CERT_FILE or ca_file"]);
    assert_eq!(upstream.received().len(), 1);
}

#[tokio::test]
async fn a_tunnel_is_used_again() {
    let (upstream, authority) = (Place::open().await, Authority::new());
    let front = authority.identity("models.example").front(&upstream.address).await;
    let proxy = ProxyServer::start(&front, ProxyMood::Serves).await;
    let client = Client::new(&options(&proxy.url(), trust(&authority)));
    let serve = async {
        let mut socket = upstream.accept().await;
        for _ in 0..2 {
            crate::plain::answer(&mut socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    };
    let ask = async {
        for _ in 0..2 {
            let response = client.post_json("https://models.example/", &[], "{}").await.unwrap();
            assert_eq!(response.text_bounded(10).await.unwrap(), "ok");
        }
    };
    Box::pin(within("two answers", async { tokio::join!(serve, ask) })).await;
    assert_eq!(proxy.lines().len(), 1);
}

#[tokio::test]
async fn a_proxy_may_be_reached_over_tls() {
    let (upstream, authority) = (Receiver::start().await, Authority::new());
    let front = authority.identity("models.example").front(&place(&upstream)).await;
    let identity = authority.identity("127.0.0.1");
    for (upstream, url) in [(place(&upstream), "http://models.example/"), (front, "https://models.example/")]
    {
        let proxy = ProxyServer::start_encrypted(&upstream, ProxyMood::Demands("ann", "pw"), &identity).await;
        let address = format!("https://ann:pw@{}", proxy.address);
        let client = Client::new(&options(&address, trust(&authority)));
        assert_eq!(get(&client, url).await.unwrap().status(), 200, "{url}");
    }
}

#[tokio::test]
async fn direct_requests_trust_the_certificates_that_are_given() {
    let (upstream, authority) = (Receiver::start().await, Authority::new());
    let front = authority.identity("localhost").front(&place(&upstream)).await;
    let url = format!("https://{}/", front.replace("127.0.0.1", "localhost"));
    let certificates = trust(&authority);
    let client = Client::new(&Options { certificates, ..Options::default() });
    assert_eq!(get(&client, &url).await.unwrap().status(), 200);
    let error = get(&crate::client(), &url).await.unwrap_err().to_string();
    assert!(error.contains("UnknownIssuer") && error.contains("ca_file"), "{error}");
}

#[tokio::test]
async fn this_machine_and_listed_hosts_are_reached_directly() {
    let upstream = Receiver::start().await;
    let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Serves).await;
    let client = Client::new(&for_callers(&proxy.url(), Certificates::default()));
    for url in [upstream.url.clone(), upstream.url.replace("127.0.0.1", "localhost")] {
        assert_eq!(client.post_json(&url, &[], "{}").await.unwrap().status(), 200);
        assert_eq!(get(&client, &url).await.unwrap().status(), 200);
    }
    assert_eq!(proxy.lines(), [""; 0]);

    let mut options = options(&proxy.url(), Certificates::default());
    options.proxies.no_proxy = ".corp.example".parse().unwrap();
    let client = Client::new(&options);
    assert_eq!(client.proxy_for("https://a.corp.example/"), None);
    assert_eq!(client.proxy_for("https://models.example/"), Some(proxy.url()));
}

#[tokio::test]
async fn what_callers_name_is_dialled_directly_unless_the_operator_says_otherwise() {
    let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Serves).await;
    let direct = Client::guarded(&options(&proxy.url(), Certificates::default()), Guard::default());
    assert_eq!(direct.proxy_for("https://pages.example/"), None);
    let proxied = Client::guarded(&for_callers(&proxy.url(), Certificates::default()), Guard::default());
    assert_eq!(proxied.proxy_for("https://pages.example/"), Some(proxy.url()));
    let options = options(&proxy.url(), Certificates::default());
    let trusting = Client::trusting(&options, &Guard::default(), "https://mcp.corp.example/mcp");
    assert_eq!(trusting.proxy_for("https://mcp.corp.example/other"), Some(proxy.url()));
    assert_eq!(trusting.proxy_for("https://elsewhere.example/"), None);
}

#[tokio::test]
async fn what_callers_name_is_judged_before_a_proxy_is_asked() {
    let upstream = Receiver::start().await;
    let proxy = ProxyServer::start(&place(&upstream), ProxyMood::Serves).await;
    let guard = Guard::new(Egress { allow: vec!["10.9.0.0/16".parse().unwrap()], only_hosts: Vec::new() });
    let client = Client::guarded(&for_callers(&proxy.url(), Certificates::default()), guard);
    for url in ["http://10.0.0.1/", "https://169.254.169.254/", "http://127.0.0.1:1/", "http://[fd00::1]/"] {
        let error = get(&client, url).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{url}: {error}");
    }
    assert_eq!(proxy.lines(), [""; 0]);
    for url in [format!("http://{PUBLIC}/a"), "http://10.9.1.1:8080/b".to_owned()] {
        assert_eq!(get(&client, &url).await.unwrap().status(), 200, "{url}");
    }
    // Both go through tunnels, since only a tunnel leads to the address that was judged.
    assert_eq!(proxy.lines(), [format!("CONNECT {PUBLIC}:80"), "CONNECT 10.9.1.1:8080".to_owned()]);
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_without_its_password() {
    for url in ["http://models.example/", "https://models.example/"] {
        let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Demands("someone", "else")).await;
        for (address, word) in
            [(proxy.url(), "asks for a user"), (proxy.url_with("ann", "secret"), "does not accept the user")]
        {
            let client = Client::new(&options(&address, Certificates::default()));
            let error = get(&client, url).await.unwrap_err();
            assert!(matches!(error, Error::Proxy { status: Some(407), .. }), "{url}: {error:?}");
            assert_names(&error, &proxy, &["models.example", "407", word]);
        }
    }
    let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Answers(502)).await;
    let client = Client::new(&options(&proxy.url_with("ann", "secret"), Certificates::default()));
    let error = get(&client, "https://models.example/").await.unwrap_err();
    assert!(matches!(error, Error::Proxy { status: Some(502), .. }), "{error:?}");
    assert_names(&error, &proxy, &["models.example", "502"]);
    // Whose status this is cannot be known, but the proxy is named.
    let response = get(&client, "http://models.example/").await.unwrap();
    assert_eq!((response.status(), response.proxy()), (502, Some(proxy.url().as_str())));
}

#[tokio::test]
async fn a_proxy_that_is_gone_closes_or_hangs_is_named() {
    for url in ["http://models.example/", "https://models.example/"] {
        let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Closes).await;
        let client = Client::new(&options(&proxy.url_with("ann", "secret"), Certificates::default()));
        assert_names(&get(&client, url).await.unwrap_err(), &proxy, &["models.example"]);

        let mut gone = proxy;
        gone.address = "127.0.0.1:9".to_owned();
        let client = Client::new(&options(&gone.url_with("ann", "secret"), Certificates::default()));
        let error = get(&client, url).await.unwrap_err();
        assert!(matches!(error, Error::Proxy { status: None, .. }), "{error:?}");
        assert_names(&error, &gone, &["models.example", "refused"]);
    }
    let proxy = ProxyServer::start("127.0.0.1:9", ProxyMood::Hangs).await;
    let mut options = options(&proxy.url_with("ann", "secret"), Certificates::default());
    options.connect_timeout = Duration::from_millis(50);
    let error = get(&Client::new(&options), "https://models.example/").await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert_names(&error, &proxy, &["models.example"]);
}

#[tokio::test]
async fn a_plain_answer_of_a_proxy_is_no_connection() {
    let upstream = Receiver::start().await;
    upstream.script([Reception::Garbage]);
    let proxy = ProxyServer::start(&place(&upstream), ProxyMood::Serves).await;
    let client = Client::new(&options(&proxy.url_with("ann", "secret"), Certificates::default()));
    let error = get(&client, "https://models.example/").await.unwrap_err();
    assert_names(&error, &proxy, &["models.example"]);
}

/// A server whose connections a test answers itself.
struct Place {
    listener: tokio::net::TcpListener,
    address: String,
}

impl Place {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        Place { listener, address }
    }

    async fn accept(&self) -> tokio::net::TcpStream {
        self.listener.accept().await.unwrap().0
    }
}
