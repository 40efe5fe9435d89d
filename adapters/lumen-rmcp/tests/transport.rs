//! The transport by itself: what rmcp relies on when it sends and receives.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use lumen_rmcp::{ClientTransport, Error, Mode, ServerConfig, ServerTransport, Target};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rmcp::{RoleClient, RoleServer};
use serde_json::json;
use tokio::net::{UnixListener, UnixStream};

/// A client of ours and what accepted it. Plain JSON, so that the other end can also be played by hand.
async fn connected(name: &str) -> (ClientTransport, UnixStream) {
    let path = std::env::temp_dir().join(format!("lumen-rmcp-{}-{name}", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    let target = Target::Unix(path.clone());
    let config = ServerConfig::new(target.behind(), Mode::Off);
    let mut client = ClientTransport::connect(target, config);
    let (stream, _) = tokio::select! {
        _ = client.receive() => panic!("nobody said anything"),
        accepted = listener.accept() => accepted.unwrap(),
    };
    std::fs::remove_file(path).unwrap();
    (client, stream)
}

fn news(number: usize, len: usize) -> TxJsonRpcMessage<RoleClient> {
    let params = json!({ "progressToken": number, "progress": 1, "message": "x".repeat(len) });
    let text = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
    serde_json::from_value(text).unwrap()
}

/// Receives so many notifications and returns their numbers.
async fn numbers(server: &mut ServerTransport, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let message = server.receive().await.expect("more of them");
        let text = serde_json::to_value(&message).unwrap();
        numbers.push(text["params"]["progressToken"].as_u64().unwrap());
    }
    numbers
}

type Sending = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Sends so many notifications of `len` bytes, and polls none of it.
fn sends<T: Transport<RoleClient, Error = Error>>(
    transport: &mut T,
    count: usize,
    len: usize,
) -> Vec<Sending> {
    let mut sends: Vec<Sending> = Vec::new();
    for number in 0..count {
        sends.push(Box::pin(transport.send(news(number, len))));
    }
    sends
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sends_keep_their_order() {
    let (mut client, stream) = connected("order").await;
    let mut server = ServerTransport::socket(stream);
    // Four times what is queued: most of them wait. They are polled in the opposite order, each in its own task.
    let mut sends = sends(&mut client, 1000, 4096);
    sends.reverse();
    let sends: Vec<_> = sends.into_iter().map(tokio::spawn).collect();
    let received = numbers(&mut server, 1000).await;
    assert_eq!(received, (0..1000).collect::<Vec<u64>>());
    for send in sends {
        send.await.unwrap().unwrap();
    }
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_send_that_is_dropped_while_it_waits_lets_the_others_by() {
    let (mut client, stream) = connected("dropped").await;
    let mut server = ServerTransport::socket(stream);
    let mut sends: Vec<_> = sends(&mut client, 1000, 4096).into_iter().map(Some).collect();
    // Those that were taken at once are sent; of those that wait each second one is given up, the first too.
    let waiting: Vec<usize> = (0..1000).filter(|at| at % 2 == 0 && *at >= 400).collect();
    for at in &waiting {
        sends[*at] = None;
    }
    let sends = tokio::spawn(async move {
        for send in sends.into_iter().flatten() {
            send.await.unwrap();
        }
    });
    let expected: Vec<u64> = (0..1000).filter(|at| !waiting.contains(at)).map(|at| at as u64).collect();
    assert_eq!(numbers(&mut server, expected.len()).await, expected);
    sends.await.unwrap();
}

#[tokio::test]
async fn a_receive_that_is_dropped_loses_nothing() {
    use tokio::io::AsyncWriteExt as _;

    let (mut client, mut stream) = connected("receive").await;
    let mut sent = String::new();
    for number in 0..200 {
        let params = json!({ "progressToken": number, "progress": 1, "message": "x".repeat(number * 7) });
        let text = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
        sent += &format!("{text}\n");
    }
    let mut received = Vec::new();
    let mut dropped = 0;
    // A few bytes at a time, and after each a receive that is polled once and dropped.
    for piece in sent.as_bytes().chunks(997) {
        stream.write_all(piece).await.unwrap();
        loop {
            // So that the runtime sees what has become readable.
            tokio::task::yield_now().await;
            match poll(pin!(Transport::<RoleClient>::receive(&mut client))) {
                Poll::Ready(message) => {
                    let text = serde_json::to_value(message.expect("more of them")).unwrap();
                    received.push(text["params"]["progressToken"].as_u64().unwrap());
                }
                Poll::Pending => {
                    dropped += 1;
                    break;
                }
            }
        }
    }
    while received.len() < 200 {
        let message = Transport::<RoleClient>::receive(&mut client).await.expect("more of them");
        let text = serde_json::to_value(message).unwrap();
        received.push(text["params"]["progressToken"].as_u64().unwrap());
    }
    assert_eq!(received, (0..200).collect::<Vec<u64>>());
    assert!(dropped > 100, "{dropped} were dropped");
}

#[tokio::test]
async fn one_sends_and_receives_at_once() {
    let (mut client, stream) = connected("both").await;
    let mut server = ServerTransport::socket(stream);
    // Neither end reads before it has sent: both pipes are full, and what waits gets through all the same.
    let to_server: Vec<_> = sends(&mut client, 500, 8192).into_iter().map(tokio::spawn).collect();
    let mut to_client = Vec::new();
    for number in 0..500 {
        let text = serde_json::to_value(news(number, 8192)).unwrap();
        let send = Transport::<RoleServer>::send(&mut server, serde_json::from_value(text).unwrap());
        to_client.push(tokio::spawn(send));
    }
    let at_client = async {
        for number in 0..500 {
            let message = Transport::<RoleClient>::receive(&mut client).await.expect("more of them");
            assert_eq!(serde_json::to_value(message).unwrap()["params"]["progressToken"], number);
        }
    };
    let (received, ()) = tokio::join!(numbers(&mut server, 500), at_client);
    assert_eq!(received, (0..500).collect::<Vec<u64>>());
    for send in to_server {
        send.await.unwrap().unwrap();
    }
    for send in to_client {
        send.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_send_is_ready_only_when_it_is_written() {
    let (mut client, stream) = connected("written").await;
    let mut send = Box::pin(client.send(news(1, 4 << 20)));
    // There is room for it in the queue, but not in the socket.
    assert!(poll(send.as_mut()).is_pending());
    let mut server = ServerTransport::socket(stream);
    let (sent, received) = tokio::join!(send, numbers(&mut server, 1));
    sent.unwrap();
    assert_eq!(received, [1]);
}

#[tokio::test]
async fn what_waits_when_the_transport_goes_is_told() {
    let (mut client, _stream) = connected("gone").await;
    let sends: Vec<_> = sends(&mut client, 1000, 4096).into_iter().map(tokio::spawn).collect();
    // Each is polled once, and most wait: whoever yields lets one of the others run at least.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(sends.iter().any(|send| !send.is_finished()));
    drop(client);
    let mut closed = 0;
    for send in sends {
        match send.await.unwrap() {
            Err(Error::Closed) => closed += 1,
            other => other.unwrap(),
        }
    }
    assert!(closed > 500, "{closed} were told");
}

#[tokio::test]
async fn what_rmcp_has_no_type_for_is_answered_and_the_session_goes_on() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut server = ServerTransport::socket(ours);
    let (read, mut write) = theirs.into_split();
    write.write_all(b"{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"ping\"}\n").await.unwrap();
    write.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n").await.unwrap();
    let next = Transport::<RoleServer>::receive(&mut server).await.unwrap();
    assert_eq!(serde_json::to_value(next).unwrap()["id"], 2);
    let answer = BufReader::new(read).lines().next_line().await.unwrap().unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("a"), &json!(-32600)));
    server.close().await.unwrap();
}
