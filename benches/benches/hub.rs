//! One request and its answer through a hub, without any I/O: what it costs, and that idle clients cost nothing.

use std::hint::black_box;

use bytes::BytesMut;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lumen_proto::endpoint::{Hub, HubConfig, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;
use lumen_proto::{Action, Input, Instant, Machine, Port, Transmit};

const INITIALIZE: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
    "\n"
)
.as_bytes();
const REQUEST: &[u8] = concat!(
    r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search_documents","#,
    r#""arguments":{"query":"state machines","limit":20,"offset":0},"_meta":{"progressToken":17}}}"#,
    "\n"
)
.as_bytes();

/// A hub with a server that is played here.
struct Rig {
    hub: Hub,
    out: BytesMut,
    server: Port,
}

impl Rig {
    /// Makes one with so many clients, all greeted; returns one of them.
    fn new(clients: usize) -> (Self, Port) {
        let mut hub = Hub::new(HubConfig::new(ServerConfig::new(Behind::Process, Mode::Off)));
        let mut first = None;
        for _ in 0..clients {
            let port = hub.try_accept().expect("room");
            hub.handle_input(Instant::ZERO, Input::Opened(port));
            hub.handle_input(Instant::ZERO, Input::Data(port, INITIALIZE));
            first.get_or_insert(port);
        }
        let Some(Action::Spawn(server)) = hub.poll_action() else { panic!("no server is wanted") };
        let mut rig = Self { hub, out: BytesMut::new(), server };
        rig.hub.handle_input(Instant::ZERO, Input::Opened(server));
        rig.drain();
        let hello =
            br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let mut hello = hello.to_vec();
        // The handshake's wire id comes after those of the clients that wait for it.
        let id = (clients + 1).to_string();
        let at = hello.windows(6).position(|six| six == b"\"id\":1").expect("an id") + 5;
        hello.splice(at..=at, id.bytes());
        hello.push(b'\n');
        rig.hub.handle_input(Instant::ZERO, Input::Data(server, &hello));
        rig.drain();
        (rig, first.expect("a client"))
    }

    /// Takes what the hub has for anybody; returns what it was for the server.
    fn drain(&mut self) -> BytesMut {
        let mut to_server = BytesMut::new();
        while let Some(port) = self.hub.poll_ready() {
            self.out.clear();
            while self.hub.poll_transmit(Instant::ZERO, port, &mut self.out) == Transmit::More {}
            if port == self.server {
                to_server.extend_from_slice(&self.out);
            }
        }
        while self.hub.poll_event().is_some() {}
        to_server
    }

    /// One request and its answer; returns the bytes that the client got.
    fn round(&mut self, client: Port) -> usize {
        self.hub.handle_input(Instant::ZERO, Input::Data(client, REQUEST));
        let request = self.drain();
        let start = request.windows(5).position(|five| five == b"\"id\":").expect("an id") + 5;
        let id: Vec<u8> = request[start..].iter().copied().take_while(u8::is_ascii_digit).collect();
        let mut answer = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
        answer.extend_from_slice(&id);
        answer.extend_from_slice(
            b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"12 documents\"}]}}\n",
        );
        self.hub.handle_input(Instant::ZERO, Input::Data(self.server, &answer));
        self.drain();
        self.out.len()
    }
}

fn round_trip(c: &mut Criterion) {
    let mut group = c.benchmark_group("hub/round");
    for clients in [1, 64, 1000] {
        let (mut rig, client) = Rig::new(clients);
        assert!(rig.round(client) > 60, "the answer came");
        group.bench_function(BenchmarkId::from_parameter(clients), |b| {
            b.iter(|| black_box(rig.round(client)));
        });
    }
    group.finish();
}

criterion_group!(benches, round_trip);
criterion_main!(benches);
