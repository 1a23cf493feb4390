use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Egress, Guard, Lookup};
use crate::{Answer, Bounds, Client, Error, Method, Options};

fn guard(allow: &[&str], only_hosts: &[&str]) -> Guard {
    Guard::new(Egress {
        allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
        only_hosts: only_hosts.iter().map(|text| text.parse().unwrap()).collect(),
    })
}

/// One address of every network that is not public, and of its end where that is not obvious.
const NOT_PUBLIC: [&str; 54] = [
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "feff::1",
    "ff02::1",
    "ff0e::1",
    "4000::1",
    "8000::1",
    "e000::1",
];

const PUBLIC: [&str; 14] = [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "::ffff:1.1.1.1",
];

fn literal(address: &str) -> String {
    match address.parse::<IpAddr>().unwrap() {
        IpAddr::V4(address) => format!("http://{address}/"),
        IpAddr::V6(address) => format!("https://[{address}]:8443/"),
    }
}

#[test]
fn addresses_that_are_not_public_are_refused_as_literals() {
    let guard = Guard::default();
    for text in NOT_PUBLIC {
        let error = guard.check(&literal(text)).unwrap_err();
        let Error::Refused { address: Some(refused), .. } = &error else { panic!("{text}: {error}") };
        assert_eq!(refused.to_canonical(), text.parse::<IpAddr>().unwrap().to_canonical());
        assert!(error.to_string().contains("egress.allow"), "{error}");
    }
    for text in PUBLIC {
        assert_eq!(guard.check(&literal(text)), Ok(()), "{text}");
    }
}

#[test]
fn other_ways_to_write_an_address_change_nothing() {
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "0",
        "0x0",
        "127.0.0.1.",
        "１２７.0.0.1",
        "127。0。0。1",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::]",
        "2852039166",
    ] {
        for url in
            [format!("http://{host}/"), format!("HTTP://{host}:8080/path?a=b#c"), format!("http:\\\\{host}/")]
        {
            let error = Guard::default().check(&url).unwrap_err();
            assert!(matches!(error, Error::Refused { address: Some(_), .. }), "{url}: {error}");
        }
    }
}

#[test]
fn urls_that_are_no_plain_web_address_are_refused() {
    let guard = Guard::default();
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "data:,x",
        "/relative",
        "//host/",
        "",
    ] {
        assert!(matches!(guard.check(url), Err(Error::Invalid { .. })), "{url}");
    }
    for url in
        ["http://user@example.com/", "http://user:password@example.com/", "http://example.com:80@127.0.0.1/"]
    {
        let error = guard.check(url).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{url}: {error}");
        assert!(!error.to_string().contains("password@"), "{error}");
    }
    let long = format!("https://example.com/{}", "a".repeat(9000));
    assert!(matches!(guard.check(&long), Err(Error::Invalid { .. })));
}

#[test]
fn the_operator_can_allow_networks_addresses_and_hosts() {
    let guard = guard(&["10.0.0.0/8", "127.0.0.1", "fd00::/8", "search.internal", "*.corp.example"], &[]);
    for url in [
        "http://10.9.8.7/",
        "http://127.0.0.1:8080/",
        "http://2130706433/",
        "http://[::ffff:10.0.0.1]/",
        "http://[fd00::1]/",
    ] {
        assert_eq!(guard.check(url), Ok(()), "{url}");
    }
    for url in ["http://127.0.0.2/", "http://192.168.0.1/", "http://[fe80::1]/"] {
        assert!(guard.check(url).is_err(), "{url}");
    }
    let loopback = IpAddr::from([127, 0, 0, 9]);
    for host in ["search.internal", "SEARCH.internal.", "a.corp.example", "a.b.corp.example"] {
        assert_eq!(guard.check_address(host, loopback), Ok(()), "{host}");
    }
    for host in ["internal", "xsearch.internal", "corp.example", ".corp.example", "evilcorp.example"] {
        assert!(guard.check_address(host, loopback).is_err(), "{host}");
    }
}

#[test]
fn the_operator_can_confine_requests_to_some_hosts() {
    let guard = guard(&["127.0.0.1"], &["example.com", "*.example.org"]);
    for url in
        ["https://example.com/", "https://EXAMPLE.com./", "https://a.example.org/", "http://127.0.0.1/"]
    {
        assert_eq!(guard.check(url), Ok(()), "{url}");
    }
    for url in ["https://www.example.com/", "https://example.org/", "https://1.1.1.1/"] {
        let error = guard.check(url).unwrap_err();
        assert!(error.to_string().contains("egress.only_hosts"), "{url}: {error}");
    }
    assert_eq!(guard.trusting("https://other.net/mcp").check("https://other.net/"), Ok(()));
}

#[test]
fn entries_that_mean_nothing_are_named() {
    for text in ["", "10.0.0.0/33", "*", "*.", "http://host/", "a b"] {
        assert!(text.parse::<super::Allowed>().is_err(), "{text}");
    }
    let pattern: super::HostPattern = "*.Bücher.example".parse().unwrap();
    assert_eq!(pattern.to_string(), "*.xn--bcher-kva.example");
    assert!(pattern.matches("a.xn--bcher-kva.example"));
}

/// Answers each lookup with the next list, and the last one again and again.
fn answering(lists: &[&[&str]]) -> (Lookup, Arc<AtomicUsize>) {
    let mut lists: Vec<Vec<IpAddr>> =
        lists.iter().map(|list| list.iter().map(|text| text.parse().unwrap()).collect()).collect();
    lists.reverse();
    let lists = Mutex::new(lists);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut lists = lists.lock().unwrap();
        let list = if lists.len() > 1 { lists.pop().unwrap() } else { lists[0].clone() };
        std::future::ready(io::Result::Ok(list)).boxed()
    });
    (lookup, asked)
}

/// A server that answers every connection, and counts them.
async fn server(answer: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = socket.read(&mut request).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    (address, connections)
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(10), body_bytes: 1000, redirects: 3 };

async fn get(guard: Guard, lookup: Lookup, url: &str) -> Result<Answer, Error> {
    let client = Client::guarded_with(&Options::default(), guard, lookup);
    client.send(Method::Get, url, &[], None, BOUNDS).await
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused_and_never_dialled() {
    let (address, connections) = server(OK).await;
    for answer in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
        let (lookup, _) = answering(&[&[answer]]);
        let error = get(Guard::default(), lookup, &format!("http://name.test:{}/", address.port()))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Refused { address: Some(_), .. }), "{error}");
        assert!(error.to_string().starts_with("name.test:"), "{error}");
        assert!(!error.to_string().contains(answer), "who named the host learns no address: {error}");
    }
    let error =
        get(Guard::default(), super::system(), &format!("http://localhost:{}/", address.port())).await;
    assert!(matches!(error, Err(Error::Refused { address: Some(_), .. })), "{error:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_ones_are_dialled() {
    let (address, connections) = server(OK).await;
    let (lookup, _) = answering(&[&["127.0.0.2", "169.254.169.254", "127.0.0.1"]]);
    let answer =
        get(guard(&["127.0.0.1"], &[]), lookup, &format!("http://name.test:{}/", address.port())).await;
    assert_eq!(&answer.unwrap().body[..], b"ok");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_dialled() {
    let (address, connections) = server(OK).await;
    // A name that turns private as soon as it has been looked at.
    let (lookup, asked) = answering(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = Client::guarded_with(&Options::default(), guard(&["127.0.0.1"], &[]), lookup);
    let url = format!("http://name.test:{}/", address.port());
    assert_eq!(client.send(Method::Get, &url, &[], None, BOUNDS).await.unwrap().status, 200);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let error = client.send(Method::Get, &url, &[], None, BOUNDS).await.unwrap_err();
    assert!(matches!(error, Error::Refused { address: Some(_), .. }), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn redirects_are_checked_like_the_first_address() {
    let (inner, connections) = server(OK).await;
    let target = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2:{}/\r\ncontent-length: 0\r\n\r\n",
        inner.port()
    );
    let (outer, _) = server(target.leak()).await;
    let error =
        get(guard(&["127.0.0.1"], &[]), super::system(), &format!("http://{outer}/")).await.unwrap_err();
    assert!(matches!(error, Error::Refused { address: Some(_), .. }), "{error}");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_proxy_is_told_the_address_that_was_judged_and_the_certificate_is_that_of_the_name() {
    use petasos_testkit::receiver::Receiver;
    use petasos_testkit::{Authority, ProxyMood, ProxyServer};

    let (upstream, authority) = (Receiver::start().await, Authority::new());
    let address = upstream.url.strip_prefix("http://").unwrap().strip_suffix("/hook").unwrap();
    let front = authority.identity("hooks.example").front(address).await;
    let proxy = ProxyServer::start(&front, ProxyMood::Serves).await;
    let https = Some(proxy.url().parse().unwrap());
    let proxies = crate::Proxies { https, callers: true, ..crate::Proxies::default() };
    let certificates = crate::Certificates::from_pem(authority.pem().as_bytes()).unwrap();
    let options = Options { proxies, certificates, ..Options::default() };
    let lookup: Lookup = Arc::new(|name| {
        let found = match name.as_str() {
            "hooks.example" | "other.example" => vec!["10.0.0.7", "93.184.215.14"],
            _ => vec!["10.0.0.7"],
        };
        let found = found.into_iter().map(|address| address.parse().unwrap()).collect();
        async move { Ok(found) }.boxed()
    });
    let client = Client::guarded_with(&options, Guard::default(), lookup);
    let ask = |url: &'static str| client.request(Method::Post, url, &[], None);
    assert_eq!(ask("https://hooks.example/in").await.unwrap().status(), 200);
    assert_eq!(proxy.lines(), ["CONNECT 93.184.215.14:443"]);
    let wrong = ask("https://other.example/").await.unwrap_err().to_string();
    assert!(wrong.contains("not valid for name") && wrong.contains(&proxy.address), "{wrong}");
    let private = ask("https://inside.example/").await.unwrap_err();
    assert!(
        matches!(&private, Error::Refused { .. }) && !private.to_string().contains("10.0.0.7"),
        "{private}"
    );
    assert_eq!((proxy.lines().len(), upstream.received().len()), (2, 1));
}
