//! A small server over the transports of each binding, for a child program or a thread.
//!
//! Every request is answered with its `params`, except by its method: `env` tells the working directory and the
//! variable `LUMEN_ECHO`, `say` writes `params` to standard error first, and at `die` the server is gone without an
//! answer.

use lumen_os::engine::{Engine, Server};
use lumen_os::reactor::{self, Reactor};
use lumen_proto::jsonrpc::{Kind, Message};

/// How a served session ended: by its client, or by `die`.
pub type Served = Option<lumen_std::Closed>;

/// Serves with [`lumen_std`], [`lumen_uring`] and their like.
///
/// # Panics
/// If an answer cannot be sent while the client is there.
pub fn serve<E: Engine>(mut server: Server<E>) -> Served {
    while let Some(message) = server.recv() {
        if message.kind() == Kind::Request {
            server.send(answer(&message)?).expect("the client is there");
        }
    }
    Some(server.close())
}

/// Serves with [`lumen_tokio`], [`lumen_futures`] and their like.
///
/// # Panics
/// If an answer cannot be sent while the client is there.
pub async fn serve_async<R: Reactor>(mut server: reactor::Server<R>) -> Served {
    while let Some(message) = server.recv().await {
        if message.kind() == Kind::Request {
            server.send(answer(&message)?).await.expect("the client is there");
        }
    }
    Some(server.close().await)
}

/// `None` at `die`.
fn answer(request: &Message) -> Option<Message> {
    let params = String::from_utf8_lossy(request.params().unwrap_or(b"null"));
    let result = if request.method_is("die") {
        return None;
    } else if request.method_is("env") {
        let var = std::env::var("LUMEN_ECHO").unwrap_or_default();
        let cwd = std::env::current_dir().expect("there is one");
        format!(r#"{{"cwd":{cwd:?},"var":{var:?}}}"#)
    } else {
        if request.method_is("say") {
            eprintln!("{params}");
        }
        params.into_owned()
    };
    let id = String::from_utf8_lossy(request.id().expect("a request has one"));
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    Some(Message::parse(text.into()).expect("an answer is a message"))
}
