//! Proof that the wrapper can fail: for each rule a machine, or a driver, that breaks it.

use super::*;
use crate::sim::party::{Outbox, Party};
use crate::sim::toys::{Fault, PORT, Toy};
use crate::sim::{Link, Spawned, World};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

struct Script(&'static [u8]);

impl Party for Script {
    fn on_open(&mut self, _now: Instant, out: &mut Outbox) {
        out.send(self.0);
        out.send_after(Duration::from_millis(10), &b"later\n"[..]);
        out.send_after(Duration::from_millis(20), &b"end\n"[..]);
        out.send_after(Duration::from_millis(30), &b"after the end\n"[..]);
    }

    fn on_data(&mut self, _now: Instant, _data: &[u8], _out: &mut Outbox) {}
}

struct Quiet;

impl Party for Quiet {
    fn on_data(&mut self, _now: Instant, _data: &[u8], _out: &mut Outbox) {}
}

const TEXT: &[u8] =
    b"child\nsome line that is a bit longer than others\nand one more, so that it is full\nabort\n";

fn checked(fault: Fault) -> Checked<Toy> {
    Checked::new(Toy::new(fault)).with_last(|event| event == "ended")
}

fn run(fault: Fault) {
    let link = Link { capacity: 16, ..Link::default() };
    let mut world = World::new(link, |_| Spawned::Party(Box::new(Quiet)));
    let id = world.add(checked(fault));
    world.attach(id, PORT, Script(TEXT));
    world.run_until_idle();
}

#[track_caller]
fn complaint(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it went unnoticed");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap()
}

#[track_caller]
fn complains(fault: Fault, about: &str) {
    let text = complaint(|| run(fault));
    assert!(text.contains(about), "{fault:?}: {text}");
}

#[test]
fn a_machine_that_keeps_the_contract_passes() {
    run(Fault::None);
}

#[test]
fn broken_machines_are_caught() {
    complains(Fault::Late, "broke rule 2");
    complains(Fault::Unannounced, "broke rule 2");
    complains(Fault::Early, "broke rule 3: 0.0 got ready by an early timeout");
    complains(Fault::Moves, "broke rule 3: an early timeout moved the deadline");
    complains(Fault::Due, "broke rule 3: still due");
    complains(Fault::TwoLines, "broke rule 5: 0.0 gave no single line");
    complains(Fault::Overwrites, "broke rule 5: it changed earlier bytes");
    complains(Fault::Empty, "gave More and no byte");
    complains(Fault::IdleBytes, "bytes of 0.0 with Idle");
    complains(Fault::Undead, "gave Idle after Finish");
    complains(Fault::Reads, "broke rule 8: it has ended and reads");
    complains(Fault::Hushed, "broke rule 9");
    complains(Fault::Respawns, "spawned again");
    complains(Fault::Shoots, "no living child");
    complains(Fault::AbortsTwice, "Abort of 1.0, which is not there");
    complains(Fault::Ticks, "broke rule");
}

fn drain(machine: &mut Checked<Toy>, now: Instant) {
    loop {
        while machine.poll_action().is_some() || machine.poll_event().is_some() {}
        let mut again = false;
        while machine.poll_ready().is_some() {
            again = true;
        }
        if again && machine.ports[&PORT].opened {
            while machine.poll_transmit(now, PORT, &mut BytesMut::new()) == Transmit::More {}
        }
        if !again {
            break;
        }
    }
}

fn opened(fault: Fault) -> Checked<Toy> {
    let mut machine = checked(fault);
    machine.handle_input(Instant::ZERO, Input::Opened(PORT));
    let _ = machine.poll_transmit(Instant::ZERO, PORT, &mut BytesMut::new());
    drain(&mut machine, Instant::ZERO);
    machine
}

fn send(machine: &mut Checked<Toy>, now: Instant, data: &[u8]) {
    machine.handle_input(now, Input::Data(PORT, data));
    drain(machine, now);
}

#[test]
fn a_machine_whose_clock_goes_back_is_caught() {
    let back = |fault| {
        let mut machine = opened(fault);
        machine.handle_timeout(Instant::from_millis(100));
        drain(&mut machine, Instant::from_millis(100));
        send(&mut machine, Instant::from_millis(50), b"a\n");
        let _ = machine.poll_timeout();
    };
    back(Fault::None);
    assert!(complaint(|| back(Fault::Clock)).contains("broke rule 1 or 2"));
}

#[test]
fn a_machine_that_talks_after_the_end_is_caught() {
    let after = |fault| {
        let mut machine = opened(fault);
        send(&mut machine, Instant::ZERO, b"end\n");
        let _ = machine.poll_transmit(Instant::ZERO, PORT, &mut BytesMut::new());
        drain(&mut machine, Instant::ZERO);
        machine.handle_input(Instant::ZERO, Input::Eof(PORT));
    };
    after(Fault::None);
    assert!(complaint(|| after(Fault::Talks)).contains("broke rule 8: an event came of an input"));
}

#[test]
fn broken_drivers_are_caught() {
    let driver = |about: &str, run: &dyn Fn(&mut Checked<Toy>)| {
        let text = complaint(|| run(&mut opened(Fault::None)));
        assert!(text.contains("driver broke") && text.contains(about), "{text}");
    };
    let zero = Instant::ZERO;
    driver("rule 6", &|machine| send(machine, zero, &[b'x'; 101]));
    driver("empty data", &|machine| send(machine, zero, b""));
    driver("opened twice", &|machine| machine.handle_input(zero, Input::Opened(PORT)));
    driver("Finished", &|machine| machine.handle_input(zero, Input::Finished(PORT)));
    driver("not open", &|machine| {
        machine.handle_input(zero, Input::Eof(PORT));
        drain(machine, zero);
        send(machine, zero, b"x");
    });
    driver("order", &|machine| {
        machine.handle_input(zero, Input::Lost(PORT));
        machine.handle_input(zero, Input::Lost(PORT));
    });
    driver("output when it is not open", &|machine| {
        let _ = machine.poll_transmit(zero, Port::new(9), &mut BytesMut::new());
    });
    driver("was gone", &|machine| {
        send(machine, zero, b"child\n");
        send(machine, zero, b"abort\n");
        machine.handle_input(zero, Input::Opened(Port::new(1)));
    });
}
