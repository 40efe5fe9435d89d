//! The world itself, with toys in it.

use super::*;
use crate::sim::toys::{DELAY, Fault, PORT, Toy};
use crate::sim::{Checked, Chop};

use std::cell::RefCell;
use std::rc::Rc;

/// Sends everything at once, keeps what comes back, closes when told to.
struct Sender {
    text: Vec<u8>,
    got: Rc<RefCell<Vec<u8>>>,
    close: bool,
}

impl Party for Sender {
    fn on_open(&mut self, _now: Instant, out: &mut Outbox) {
        out.send(self.text.clone());
        if self.close {
            out.close_after(Duration::from_secs(1));
        }
    }

    fn on_data(&mut self, _now: Instant, data: &[u8], _out: &mut Outbox) {
        self.got.borrow_mut().extend_from_slice(data);
    }
}

/// A child that says a word and then ends as told.
struct Child(Hold);

impl Party for Child {
    fn on_open(&mut self, _now: Instant, out: &mut Outbox) {
        out.send(&b"x"[..]);
        out.exit_after(Duration::from_millis(1), Exit::Code(3), self.0);
    }

    fn on_data(&mut self, _now: Instant, _data: &[u8], _out: &mut Outbox) {}
}

type Toys = World<Checked<Toy>>;

fn world(link: Link, fault: Fault, text: &[u8], close: bool) -> (Toys, Rc<RefCell<Vec<u8>>>) {
    let got = Rc::default();
    let mut world = World::new(link, |_| Spawned::Party(Box::new(Child(Hold::No))));
    let id = world.add(Checked::new(Toy::new(fault)).with_last(|event| event == "ended"));
    world.attach(id, PORT, Sender { text: text.to_vec(), got: Rc::clone(&got), close });
    (world, got)
}

#[test]
fn an_echo_comes_back_over_every_chopping_and_through_tiny_pipes() {
    let text: Vec<u8> = (0..200).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    for capacity in [1, 7, 64 * 1024] {
        for chop in [Chop::Whole, Chop::OneByte, Chop::Seeded(7)] {
            let (mut world, got) = world(Link { capacity, latency: 10, chop }, Fault::None, &text, true);
            world.run_until_idle();
            assert_eq!(*got.borrow(), text, "{capacity} {chop:?}");
            assert_eq!(world.transcript(0, PORT), (&text[..], &text[..]));
            assert_eq!(world.events(0).map(|(_, event)| event.as_str()).collect::<Vec<_>>(), ["ended"]);
            assert_eq!(world.times(0, What::Finish).len(), 1);
        }
    }
}

#[test]
fn time_jumps_to_what_is_next_and_nowhere_else() {
    let (mut world, got) = world(Link::default(), Fault::None, b"a\n", false);
    world.run_for(Duration::from_micros(10) + DELAY);
    assert!(got.borrow().is_empty());
    world.run_until_idle();
    assert_eq!(*got.borrow(), b"a\n");
    assert_eq!(world.now(), Instant::ZERO + DELAY + Duration::from_micros(20));
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.now(), Instant::ZERO + DELAY + Duration::from_micros(20) + Duration::from_secs(5));
}

#[test]
fn a_child_opens_and_exits_and_its_output_ends_apart_from_it() {
    let (mut world, _) = world(Link::default(), Fault::None, b"child\n", false);
    world.run_until_idle();
    let seen: Vec<What> = world.log().iter().filter(|e| e.port == Port::new(1)).map(|e| e.what).collect();
    // The toy wants nothing from its child, so the end of its output is not read.
    assert_eq!(seen, [What::Spawn, What::Opened, What::Exited(Exit::Code(3))]);
}

#[test]
#[should_panic(expected = "the timer of machine 0")]
fn a_timer_that_never_rests_is_named() {
    let (mut world, _) = world(Link::default(), Fault::Ticks, b"", false);
    world.with(0, |_, _| {});
    // Checked would catch it first as a deadline that an early timeout moves; so look at it bare.
    let mut bare: World<Toy> = World::new(Link::default(), |_| unreachable!());
    bare.add(Toy::new(Fault::Ticks));
    bare.run_until_idle();
}

#[test]
#[should_panic(expected = "port 0.0 of machine 0 spins")]
fn a_port_that_is_always_ready_is_named() {
    let mut bare: World<Toy> = World::new(Link::default(), |_| unreachable!());
    bare.add(Toy::new(Fault::Ready));
    bare.run_until_idle();
}
