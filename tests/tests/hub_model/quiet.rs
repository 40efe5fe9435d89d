//! Times of quiet: faults end, everybody answers, and then nothing may be left.

use std::time::Duration;

use lumen_proto::Machine;
use lumen_proto::endpoint::Hub;

use super::model::{Asked, Withdrawn};
use super::world::World;

impl World {
    /// Lets everything that is under way come to its end.
    pub fn come_to_rest(&mut self) {
        self.note("rest".to_owned());
        self.calm = true;
        for round in 0.. {
            self.unstall();
            self.oblige();
            self.settle();
            if self.is_at_rest() {
                break;
            }
            assert!(round < 400, "it does not come to rest: {}", self.left());
            self.pass(Duration::from_millis(if round % 10 == 9 { 31_000 } else { 1_000 }));
        }
        let listens = self.listens();
        let mux = self.hub.inner().mux();
        assert_eq!(mux.in_flight(), listens, "in flight, and only {listens} subscriptions are open");
        for job in self.model.children.iter().filter(|child| child.is_open()).flat_map(|child| &child.jobs) {
            let tag = job.tag.expect("a client's");
            let client = &self.model.clients[self.model.tags[&tag].client];
            let wanted = |asked: &Asked| asked.tag == tag && asked.withdrawn == Withdrawn::No;
            assert!(
                !client.gone && client.asked.iter().any(wanted),
                "nobody listens to {job:?}, and it goes on"
            );
        }
        assert_eq!(self.hub.inner().queued(), 0, "something waits for clients that read");
        self.calm = false;
    }

    /// Everybody answers what it was asked, and late starts come to be.
    fn oblige(&mut self) {
        for at in 0..self.model.children.len() {
            let child = &self.model.children[at];
            if !child.opened && !child.failed && !child.aborted {
                self.open_child(at);
            }
            let child = &self.model.children[at];
            if (child.exited || child.eof || child.finished) && !child.aborted && !child.failed {
                self.die(at, lumen_proto::Exit::Code(0));
            }
            while self.model.children[at].is_open() {
                let jobs = &self.model.children[at].jobs;
                let next = jobs.iter().position(|job| job.cancelled || job.method != "subscriptions/listen");
                let Some(next) = next else { break };
                if self.model.children[at].jobs[next].cancelled {
                    let job = self.model.children[at].jobs.remove(next);
                    self.model.children[at].done.push(job);
                    continue;
                }
                self.answer_job(at, next);
                self.settle();
            }
        }
        for number in 0..self.model.clients.len() {
            let client = &mut self.model.clients[number];
            if client.gone || client.eof || client.deaf || client.poisoned {
                continue;
            }
            let asks = std::mem::take(&mut client.asks);
            for (id, mark) in asks {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"mark":{mark},"from":{number}}}}}"#);
                self.model.clients[number].stream.send(&text, super::model::Said::Nothing);
            }
        }
    }

    fn is_at_rest(&self) -> bool {
        let clients = self.model.clients.iter().filter(|client| !client.gone);
        let servers = self.model.children.iter().filter(|child| child.is_open() && !child.finished);
        let mut asked = clients.clone().flat_map(|client| &client.asked);
        !asked.any(|asked| asked.withdrawn == Withdrawn::No && !asked.is_listen())
            && clients.clone().all(|client| !client.eof && !client.deaf && !client.stream.has_output())
            && servers.clone().all(|child| !child.stream.has_output())
            && servers.clone().flat_map(|child| &child.questions).all(|question| question.withdrawn)
            && servers.clone().all(|child| {
                child.jobs.iter().all(|job| job.method == "subscriptions/listen" && !job.cancelled)
            })
            && self.hub.inner().mux().in_flight() == self.listens()
    }

    fn listens(&self) -> usize {
        let clients = self.model.clients.iter().filter(|client| !client.gone);
        let asked = clients.flat_map(|client| &client.asked);
        asked.filter(|asked| asked.is_listen() && asked.withdrawn == Withdrawn::No).count()
    }

    fn left(&self) -> String {
        let clients = self.model.clients.iter().filter(|client| !client.gone).map(|client| {
            format!(
                "client {} eof {} deaf {} out {} paused {} asks {:?}",
                client.number,
                client.eof,
                client.deaf,
                client.stream.len(),
                client.paused,
                client.asked.iter().filter(|asked| asked.withdrawn == Withdrawn::No).collect::<Vec<_>>()
            )
        });
        let servers =
            self.model.children.iter().enumerate().filter(|(_, child)| child.is_open()).map(|(at, child)| {
                format!("server {at} has {:?} and asks {:?}", child.jobs, child.questions)
            });
        let flight = self.hub.inner().mux().in_flight();
        let lines: Vec<String> = clients.chain(servers).collect();
        format!("in flight {flight}, listens {}\n{}", self.listens(), lines.join("\n"))
    }

    /// Everybody goes, and nothing is left; or the hub is told to end first.
    pub fn end(&mut self) {
        self.calm = true;
        if self.rng.percent(50) {
            self.model.ending = true;
            self.note("the hub is told to end".to_owned());
            self.hub.with(self.now, |hub: &mut Hub| hub.shut_down(lumen_proto::Instant::ZERO));
            self.settle();
            for _ in 0..40 {
                self.unstall();
                self.pass(Duration::from_millis(500));
            }
            assert!(self.ended, "it was told to end, and does not: {}", self.left());
            assert_eq!(self.hub.poll_timeout(), None);
        } else {
            self.come_to_rest();
            for number in 0..self.model.clients.len() {
                if self.rng.percent(50) { self.vanish(number) } else { self.half_close(number) }
            }
            for _ in 0..100 {
                self.oblige();
                self.pass(Duration::from_millis(1000));
            }
            assert_eq!(self.hub.inner().clients(), 0, "all clients are gone: {}", self.left());
        }
        assert!(self.hub.inner().mux().is_empty(), "nobody is there: {}", self.left());
    }
}
