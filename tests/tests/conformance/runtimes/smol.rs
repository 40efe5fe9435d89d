//! smol.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use lumen_futures::smol::{Mux, Stream};
use lumen_futures::{AsyncIo, MuxEvent, MuxHandle, MuxSpec};

use crate::over::Runs;

#[derive(Default)]
pub struct Smol;

impl Runs for Smol {
    type Reactor = AsyncIo;

    const PEER: &str = "smol";

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        smol::block_on(future)
    }

    fn unix(socket: UnixStream) -> Stream {
        smol::net::unix::UnixStream::from(smol::Async::new(socket).unwrap()).into()
    }

    fn tcp(socket: TcpStream) -> Stream {
        smol::net::TcpStream::from(smol::Async::new(socket).unwrap()).into()
    }

    fn spawn_mux(spec: MuxSpec, on_event: impl FnMut(&MuxEvent) + Send + 'static) -> MuxHandle {
        Mux::bind(spec).unwrap().spawn(on_event)
    }
}
