//! What goes wrong, at random, and time.

use std::time::Duration;

use lumen_proto::{Exit, Input, Machine};

use super::model::Said;
use super::stream::Carrier;
use super::world::World;

impl World {
    pub fn pass_some(&mut self) {
        let time = *self.rng.pick(&[0, 5, 200, 1000, 3000, 3000, 10_000, 31_000]);
        self.note(format!("{time} ms pass"));
        self.pass(Duration::from_millis(time));
    }

    /// What was late or slow comes round.
    pub fn catch_up(&mut self) {
        if let Some(at) =
            self.model.children.iter().position(|child| !child.opened && !child.failed && !child.aborted)
        {
            return self.open_child(at);
        }
        self.unstall();
    }

    pub fn unstall(&mut self) {
        for number in 0..self.model.clients.len() {
            let client = &mut self.model.clients[number];
            client.stalled = false;
            if std::mem::take(&mut client.blocked) {
                let port = client.port;
                self.transmit(port);
            }
        }
        for at in 0..self.model.children.len() {
            let child = &mut self.model.children[at];
            child.deaf = false;
            if std::mem::take(&mut child.blocked) {
                let port = child.port;
                self.transmit(port);
            }
        }
        self.settle();
    }

    pub fn client_fault(&mut self) {
        let Some(number) = self.live() else { return };
        match self.rng.below(10) {
            0 => self.half_close(number),
            1 => self.vanish(number),
            2..=4 => {
                self.note(format!("client {number} stops reading"));
                self.model.clients[number].stalled = true;
            }
            5 => {
                // The end of its input in the middle of a message.
                self.model.clients[number].stream.send_raw(b"{\"jsonrpc\":", Said::Garbage(1));
                self.settle();
                self.half_close(number);
            }
            _ => {
                let time = if self.rng.percent(20) { 301_000 } else { 31_000 };
                self.note(format!("{time} ms pass"));
                self.pass(Duration::from_millis(time));
            }
        }
    }

    pub fn half_close(&mut self, number: usize) {
        self.note(format!("client {number} says no more"));
        let client = &mut self.model.clients[number];
        if client.stream.has_output() || client.eof || client.gone || client.deaf {
            return;
        }
        client.eof = true;
        let port = client.port;
        self.hub.handle_input(self.now, Input::Eof(port));
        self.settle();
    }

    pub fn vanish(&mut self, number: usize) {
        self.note(format!("client {number} vanishes"));
        let client = &mut self.model.clients[number];
        let port = client.port;
        if client.gone || client.deaf || client.finished {
            return;
        }
        client.deaf = true;
        client.asks.clear();
        self.hub.handle_input(self.now, Input::Lost(port));
        self.settle();
    }

    pub fn server_fault(&mut self) {
        let Some(at) = self.server() else { return self.pass_some() };
        match self.rng.below(10) {
            0..=2 => {
                self.note(format!("server {at} crashes"));
                self.die(at, Exit::Code(1));
            }
            3 => {
                self.note(format!("server {at} crashes in the middle of a message"));
                self.model.children[at].stream.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1", ());
                self.settle();
                self.die(at, Exit::Signal(11));
            }
            4 => {
                self.note(format!("server {at} exits, its output stays open"));
                self.exit(at, Exit::Code(1));
            }
            5 => {
                self.note(format!("server {at} closes its output"));
                self.end_output(at);
            }
            6 => {
                let port = self.model.children[at].port;
                if !self.model.children[at].blocked && !self.model.children[at].finished {
                    self.note(format!("server {at} cannot be written to"));
                    self.model.children[at].finished = true;
                    self.model.children[at].lost = true;
                    self.hub.handle_input(self.now, Input::Lost(port));
                }
            }
            _ => {
                self.note(format!("server {at} goes deaf"));
                self.model.children[at].deaf = true;
            }
        }
    }

    pub fn garbage(&mut self) {
        if self.rng.percent(40) {
            let Some(at) = self.server() else { return };
            let junk = *self.rng.pick(&[
                &b"noise on stdout\n"[..],
                b"{\"jsonrpc\":\"2.0\",\"result\":{}}\n",
                b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"result\":{}}\n",
                b"{\"half\":\n",
                b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"Parse error\"}}\n",
                b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"x\"}}\n",
                b"{\"jsonrpc\":\"2.0\",\"method\":7}\n",
                b"{\"jsonrpc\":\"2.0\",\"id\":\"junk\",\"method\":\"\xff\"}\n",
                b"\r\n",
            ]);
            self.note(format!("server {at} says {:?}", junk.escape_ascii().to_string()));
            if self.model.children[at].stream.carrier == Carrier::Line {
                self.model.children[at].stream.send_raw(junk, ());
            }
            return;
        }
        let Some(number) = self.live() else { return };
        let junk = *self.rng.pick(&[
            &b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/call\"}\n"[..],
            b"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"tools/call\"}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"tools/call\"}\n",
            b"{\"half\":\n",
            b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n",
            b"[]\n",
            b"{}\n",
            b"[1,2]\n",
            b"what is this\n",
        ]);
        self.note(format!("client {number} says {:?}", junk.escape_ascii().to_string()));
        if self.model.clients[number].stream.carrier == Carrier::Line {
            self.model.clients[number].stream.send_raw(junk, Said::Garbage(2));
        }
    }
}
