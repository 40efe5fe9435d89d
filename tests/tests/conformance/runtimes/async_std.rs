//! async-std.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use lumen_futures::async_std::{Mux, Stream};
use lumen_futures::{AsyncIo, MuxEvent, MuxHandle, MuxSpec};

use crate::over::Runs;

#[derive(Default)]
pub struct AsyncStd;

impl Runs for AsyncStd {
    type Reactor = AsyncIo;

    const PEER: &str = "async-std";

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        async_std::task::block_on(future)
    }

    fn unix(socket: UnixStream) -> Stream {
        async_std::os::unix::net::UnixStream::from(socket).into()
    }

    fn tcp(socket: TcpStream) -> Stream {
        async_std::net::TcpStream::from(socket).into()
    }

    fn spawn_mux(spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        Mux::bind(spec).unwrap().spawn(on_event)
    }
}
