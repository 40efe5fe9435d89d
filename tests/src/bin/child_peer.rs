//! A server on standard input and output that speaks LUMEN: `child_peer [std|tokio|smol|async-std|uring]`. It
//! serves as [`lumen_tests::echo`] says, and exits with 0 when its client has closed its input, with 3 at `die`.

use lumen_proto::endpoint::Outcome;
use lumen_tests::echo::{serve, serve_async};

fn main() {
    let served = match std::env::args().nth(1).as_deref() {
        Some("tokio") => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                serve_async(lumen_tokio::Server::stdio().expect("standard streams")).await
            })
        }
        Some("smol") => {
            smol::block_on(serve_async(lumen_futures::Server::stdio().expect("standard streams")))
        }
        Some("async-std") => {
            let server = lumen_futures::Server::stdio().expect("standard streams");
            async_std::task::block_on(serve_async(server))
        }
        Some("uring") => serve(lumen_uring::Server::stdio().expect("standard streams and a ring")),
        _ => serve(lumen_std::Server::stdio().expect("standard streams")),
    };
    std::process::exit(match served {
        Some(closed) if closed.outcome == Outcome::Closed(None) && closed.messages.is_empty() => 0,
        Some(_) => 1,
        None => 3,
    });
}
