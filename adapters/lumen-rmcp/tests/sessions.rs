//! Whole sessions of rmcp, over our transports at both ends and at one.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod common;

use lumen_rmcp::{ChildOptions, ChildTransport, ClientTransport, Outcome, ServerTransport};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientServiceExt as _, ServiceExt as _};
use serde_json::{Value, json};

use common::{Tools, call, child, command, lifecycles, serve_if_child, visit};

/// Not a test: what the others start.
#[test]
fn serve_as_child() {
    serve_if_child();
}

#[tokio::test]
async fn every_pair_gives_the_same_in_every_lifecycle() {
    for lifecycle in lifecycles() {
        let plain = TokioChildProcess::new(command("rmcp")).unwrap();
        let client = ().serve_with_lifecycle(plain, lifecycle.clone()).await.unwrap();
        let expected = visit(&client).await;
        client.cancel().await.unwrap();

        for (over, is_lumen) in [("lumen", true), ("rmcp", false)] {
            // Against a server that has no LUMEN there is nothing to wait for.
            let options = if is_lumen { child(over) } else { child(over).force_json_rpc(true) };
            let ours = ChildTransport::spawn(options);
            let watch = ours.watch();
            let client = ().serve_with_lifecycle(ours, lifecycle.clone()).await.unwrap();
            assert_eq!(visit(&client).await, expected, "{lifecycle:?} over {over}");
            assert_eq!(watch.seen().is_lumen, is_lumen, "{lifecycle:?} over {over}");
            client.cancel().await.unwrap();
        }

        let plain = TokioChildProcess::new(command("lumen")).unwrap();
        let client = ().serve_with_lifecycle(plain, lifecycle.clone()).await.unwrap();
        assert_eq!(visit(&client).await, expected, "{lifecycle:?} with our server");
        client.cancel().await.unwrap();
    }
}

/// The probe costs it nothing but the wait, and it still gets the offer, which it ignores.
#[tokio::test]
async fn a_server_that_knows_no_lumen_is_served_after_the_probe() {
    let options = child("rmcp").probe_timeout(std::time::Duration::from_millis(1));
    let ours = ChildTransport::spawn(options);
    let watch = ours.watch();
    let client = ().serve(ours).await.unwrap();
    assert_eq!(call(&client, "sum", json!({ "a": 1, "b": 2 })).await.unwrap(), "3");
    assert!(!watch.seen().is_lumen);
    client.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_serve_as_well() {
    let folder = std::env::temp_dir().join(format!("lumen-rmcp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("socket");
    let unix = tokio::net::UnixListener::bind(&path).unwrap();
    let tcp = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = tcp.local_addr().unwrap().to_string();
    let serve = tokio::spawn(async move {
        let over_unix = ServerTransport::socket(unix.accept().await.unwrap().0);
        Tools.serve(over_unix).await.unwrap().waiting().await.unwrap();
        let over_tcp = ServerTransport::socket(tcp.accept().await.unwrap().0);
        Tools.serve(over_tcp).await.unwrap().waiting().await.unwrap();
    });
    for transport in [ClientTransport::unix(&path), ClientTransport::tcp(address)] {
        let watch = transport.watch();
        let client = ().serve(transport).await.unwrap();
        for a in 0..200 {
            let sum = call(&client, "sum", json!({ "a": a, "b": 0.5 })).await.unwrap();
            assert_eq!(sum, format!("{a}.5"));
        }
        assert!(watch.seen().is_lumen);
        client.cancel().await.unwrap();
    }
    serve.await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn the_options_arrive() {
    let folder = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    // The harness takes it for a second name of tests to run: there is none.
    let options = child("lumen").arg("a \"b\" $c").env("SOME", "thing").cwd(&folder);
    let client = ().serve(ChildTransport::spawn(options)).await.unwrap();
    let found: Value =
        serde_json::from_str(&call(&client, "surroundings", json!({})).await.unwrap()).unwrap();
    assert_eq!(found, json!({ "cwd": folder, "SOME": "thing", "last": "a \"b\" $c" }));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn every_call_in_flight_hears_that_the_server_died() {
    let transport = ChildTransport::spawn(child("lumen"));
    let watch = transport.watch();
    let client = std::sync::Arc::new(().serve(transport).await.unwrap());
    let hanging: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client, "hang", json!({})).await })
        })
        .collect();
    // An answer shows that the calls before it have been sent.
    call(&client, "sum", json!({ "a": 1, "b": 1 })).await.unwrap();
    call(&client, "die", json!({})).await.unwrap_err();
    for call in hanging {
        call.await.unwrap().unwrap_err();
    }
    let client = std::sync::Arc::into_inner(client).unwrap();
    client.waiting().await.unwrap();
    assert!(matches!(watch.seen().outcome, Some(Outcome::ServerGone(_))), "{:?}", watch.seen());
}

#[tokio::test]
async fn a_server_that_cannot_be_started_is_told() {
    let missing = ChildTransport::spawn(ChildOptions::new("/nowhere/server"));
    let watch = missing.watch();
    let error = ().serve(missing).await.unwrap_err();
    assert!(error.to_string().contains("started"), "{error}");
    assert!(matches!(watch.seen().outcome, Some(Outcome::NotStarted(_))), "{:?}", watch.seen());
}

#[tokio::test]
async fn closing_waits_for_the_server() {
    let transport = ChildTransport::spawn(child("lumen"));
    let watch = transport.watch();
    let client = ().serve(transport).await.unwrap();
    call(&client, "sum", json!({ "a": 1, "b": 1 })).await.unwrap();
    client.cancel().await.unwrap();
    let how = format!("{:?}", watch.seen().outcome);
    assert_eq!(how, "Some(Closed(Some(Exited(Code(0)))))");
}
