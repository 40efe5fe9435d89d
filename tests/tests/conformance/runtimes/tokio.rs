//! tokio, on one thread and on several.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use lumen_os::reactor::MuxHandle;
use lumen_tokio::{Mux, MuxEvent, MuxSpec, Stream, Tokio};
use tokio::runtime::{Builder, Runtime};

use crate::over::Runs;

pub struct CurrentThread(Runtime);

pub struct MultiThread(Runtime);

impl Default for CurrentThread {
    fn default() -> Self {
        Self(Builder::new_current_thread().enable_all().build().unwrap())
    }
}

impl Default for MultiThread {
    fn default() -> Self {
        Self(Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap())
    }
}

macro_rules! runs {
    ($runtime:ident) => {
        impl Runs for $runtime {
            type Reactor = Tokio;

            const PEER: &str = "tokio";

            fn block_on<F: Future>(&self, future: F) -> F::Output {
                self.0.block_on(future)
            }

            fn unix(socket: UnixStream) -> Stream {
                socket.set_nonblocking(true).unwrap();
                tokio::net::UnixStream::from_std(socket).unwrap().into()
            }

            fn tcp(socket: TcpStream) -> Stream {
                socket.set_nonblocking(true).unwrap();
                tokio::net::TcpStream::from_std(socket).unwrap().into()
            }

            fn spawn_mux(spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
                Mux::bind(spec).unwrap().spawn(on_event)
            }
        }
    };
}

runs!(CurrentThread);
runs!(MultiThread);
