//! Every binding behind one blocking face, so that a story is written once, and servers to talk to.

use std::net::TcpListener;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use lumen_driver::Counters;
use lumen_proto::endpoint::{Event, Outcome, ServerConfig};
use lumen_proto::jsonrpc::Message;
use lumen_std::{Closed, CommandSpec, Error, Target};
use lumen_tests::echo::{Served, serve, serve_async};
use lumen_tests::procs::sibling;

#[derive(Clone, Copy, Debug)]
pub enum Runtime {
    Std,
    CurrentThread,
    MultiThread,
    Uring,
}

impl Runtime {
    pub fn is_here(self) -> bool {
        !matches!(self, Self::Uring) || lumen_tests::ring::is_here()
    }

    fn tokio(self) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Self::MultiThread => tokio::runtime::Builder::new_multi_thread(),
            _ => tokio::runtime::Builder::new_current_thread(),
        };
        builder.enable_all().build().unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Child,
    Unix,
    Tcp,
}

pub enum End<S, T, U> {
    Std(S),
    Tokio(T, tokio::runtime::Runtime),
    Uring(U),
}

pub type Client = End<lumen_std::Client, lumen_tokio::Client, lumen_uring::Client>;
pub type Server = End<lumen_std::Server, lumen_tokio::Server, lumen_uring::Server>;

/// Where a server runs.
pub enum Serving {
    /// It was seen to end by its client.
    Child,
    Thread(JoinHandle<Served>),
}

impl Serving {
    pub fn assert_closed(self) {
        if let Self::Thread(thread) = self {
            let closed = thread.join().unwrap().unwrap();
            assert_eq!((closed.outcome, closed.messages.len()), (Outcome::Closed(None), 0));
        }
    }

    pub fn assert_died(self) {
        if let Self::Thread(thread) = self {
            assert_eq!(thread.join().unwrap(), None);
        }
    }
}

/// Starts a server and a client to it. A child's server is of another binding than the client, one behind a Unix
/// socket runs on plain std, one behind TCP on tokio.
pub fn start(runtime: Runtime, via: Via, config: ServerConfig) -> (Client, Serving) {
    let (target, serving) = match via {
        Via::Child => {
            let other = match runtime {
                Runtime::Std => "tokio",
                Runtime::MultiThread if Runtime::Uring.is_here() => "uring",
                _ => "std",
            };
            (Target::Command(CommandSpec::new(sibling("child_peer")).arg(other)), Serving::Child)
        }
        Via::Unix => {
            let path = socket_path();
            let listener = UnixListener::bind(&path).unwrap();
            let thread = thread::spawn(move || {
                let (stream, _) = listener.accept().unwrap();
                serve(lumen_std::Server::socket(stream).unwrap())
            });
            (Target::Unix(path), Serving::Thread(thread))
        }
        Via::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let thread = thread::spawn(move || {
                let (stream, _) = listener.accept().unwrap();
                stream.set_nonblocking(true).unwrap();
                Runtime::CurrentThread.tokio().block_on(async {
                    let stream = tokio::net::TcpStream::from_std(stream).unwrap();
                    serve_async(lumen_tokio::Server::socket(stream)).await
                })
            });
            (Target::Tcp(address), Serving::Thread(thread))
        }
    };
    (Client::connect(runtime, target, config), serving)
}

fn socket_path() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("lumen-transports-{}-{count}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// What both ends have.
macro_rules! face {
    ($end:ty) => {
        impl $end {
            pub fn send(&mut self, message: Message) -> Result<(), Error> {
                match self {
                    Self::Std(end) => end.send(message),
                    Self::Uring(end) => end.send(message),
                    Self::Tokio(end, runtime) => runtime.block_on(end.send(message)),
                }
            }

            pub fn recv(&mut self) -> Option<Message> {
                match self {
                    Self::Std(end) => end.recv(),
                    Self::Uring(end) => end.recv(),
                    Self::Tokio(end, runtime) => runtime.block_on(end.recv()),
                }
            }

            pub fn flush(&mut self) -> bool {
                match self {
                    Self::Std(end) => end.flush(),
                    Self::Uring(end) => end.flush(),
                    Self::Tokio(end, runtime) => runtime.block_on(end.flush()),
                }
            }

            pub fn close(self) -> Closed {
                match self {
                    Self::Std(end) => end.close(),
                    Self::Uring(end) => end.close(),
                    Self::Tokio(end, runtime) => runtime.block_on(end.close()),
                }
            }
        }
    };
}

face!(Client);
face!(Server);

impl Client {
    pub fn connect(runtime: Runtime, target: Target, config: ServerConfig) -> Self {
        match runtime {
            Runtime::Std => Self::Std(lumen_std::Client::connect(target, config)),
            Runtime::Uring => Self::Uring(lumen_uring::Client::connect(target, config).unwrap()),
            Runtime::CurrentThread | Runtime::MultiThread => {
                let runtime = runtime.tokio();
                let client = runtime.block_on(async { lumen_tokio::Client::connect(target, config) });
                Self::Tokio(client, runtime)
            }
        }
    }

    /// Sends a request and returns the result as it is spelled. The answer is the next message.
    pub fn ask(&mut self, id: u32, method: &str, params: &str) -> String {
        self.send(request(id, method, params)).unwrap();
        let answer = self.recv().expect("an answer");
        let envelope = answer.envelope();
        assert_eq!(envelope.id.unwrap().of(answer.bytes()), id.to_string().as_bytes());
        String::from_utf8_lossy(envelope.result.expect("a result").of(answer.bytes())).into_owned()
    }

    pub fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
        match self {
            Self::Std(end) => end.on_notice(notice),
            Self::Uring(end) => end.on_notice(notice),
            Self::Tokio(end, _) => end.on_notice(notice),
        }
    }

    pub fn is_lumen(&self) -> bool {
        match self {
            Self::Std(end) => end.is_lumen(),
            Self::Uring(end) => end.is_lumen(),
            Self::Tokio(end, _) => end.is_lumen(),
        }
    }

    pub fn counters(&self) -> Counters {
        match self {
            Self::Std(end) => end.counters(),
            Self::Uring(end) => end.counters(),
            Self::Tokio(end, _) => end.counters(),
        }
    }

    pub fn stderr(&self) -> String {
        let tail = match self {
            Self::Std(end) => end.stderr_tail(),
            Self::Uring(end) => end.stderr_tail(),
            Self::Tokio(end, _) => end.stderr_tail(),
        };
        tail.unwrap().text()
    }

    pub fn open_error(&self) -> Option<&str> {
        match self {
            Self::Std(end) => end.open_error(),
            Self::Uring(end) => end.open_error(),
            Self::Tokio(end, _) => end.open_error(),
        }
    }
}

impl Server {
    pub fn socket(runtime: Runtime, stream: UnixStream) -> Self {
        match runtime {
            Runtime::Std => return Self::Std(lumen_std::Server::socket(stream).unwrap()),
            Runtime::Uring => return Self::Uring(lumen_uring::Server::socket(stream).unwrap()),
            Runtime::CurrentThread | Runtime::MultiThread => {}
        }
        let runtime = runtime.tokio();
        stream.set_nonblocking(true).unwrap();
        let server = runtime.block_on(async {
            lumen_tokio::Server::socket(tokio::net::UnixStream::from_std(stream).unwrap())
        });
        Self::Tokio(server, runtime)
    }
}

pub fn message(text: &str) -> Message {
    Message::copy_from(text.as_bytes()).unwrap()
}

pub fn request(id: u32, method: &str, params: &str) -> Message {
    message(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#))
}

pub fn is_error(answer: &Message) -> bool {
    answer.envelope().error.is_some()
}
