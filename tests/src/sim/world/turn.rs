//! How the world moves: one instant, one machine, one party at a time.

use super::*;

/// Rounds of one drain, or timeouts at one instant, before a machine counts as spinning.
const MAX_ROUNDS: usize = 100_000;

impl<M: Machine> World<M>
where
    M::Event: Debug,
{
    /// Does everything that is due at this instant.
    pub(super) fn settle(&mut self) {
        loop {
            let mut moved = self.run_agenda();
            for machine in 0..self.nodes.len() {
                moved |= self.run_timeout(machine);
                moved |= self.run_node(machine);
            }
            for actor in 0..self.actors.len() {
                moved |= self.run_actor(actor);
            }
            if !moved {
                break;
            }
        }
    }

    pub(super) fn next_wake(&self) -> Option<(Instant, String)> {
        let mut wakes = Vec::new();
        if let Some((&(at, _), _)) = self.agenda.first_key_value() {
            wakes.push((at, "the agenda of openings and exits".to_owned()));
        }
        for (id, node) in self.nodes.iter().enumerate() {
            if node.ended {
                continue;
            }
            if let Some(at) = node.machine.poll_timeout() {
                wakes.push((at, format!("the timer of machine {id}")));
            }
            for (port, slot) in node.slots.iter().filter(|(_, slot)| slot.reads()) {
                if let Some(at) = self.pipes[slot.read].next_due() {
                    wakes.push((at, format!("input of port {port} of machine {id}")));
                }
            }
        }
        for actor in self.actors.iter().filter(|actor| !actor.gone) {
            let name = actor.party.name();
            if actor.partial.is_empty()
                && let Some((&(at, _), _)) = actor.outbox.deeds.first_key_value()
            {
                wakes.push((at, format!("what {name} does next")));
            }
            if let Some(at) = actor.outbox.wake {
                wakes.push((at, format!("the timer of {name}")));
            }
            if actor.reads()
                && let Some(at) = self.pipes[actor.read].next_due()
            {
                wakes.push((at, format!("input of {name}")));
            }
        }
        wakes.into_iter().min()
    }

    /// Takes everything a machine has, in the driver's order.
    pub(super) fn drain(&mut self, id: usize) {
        let now = self.now();
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < MAX_ROUNDS, "machine {id} is never drained: spinning at {now:?}");
            let mut progress = false;
            while let Some(action) = self.nodes[id].machine.poll_action() {
                self.act(id, action);
                progress = true;
                rounds += 1;
                assert!(rounds < MAX_ROUNDS, "machine {id} never ends its actions, the last is {action:?}");
            }
            while let Some(port) = self.nodes[id].machine.poll_ready() {
                if let Some(slot) = self.nodes[id].slots.get_mut(&port) {
                    slot.ready = true;
                    slot.stalled = false;
                }
                progress = true;
                rounds += 1;
                assert!(rounds < MAX_ROUNDS, "port {port} of machine {id} spins: ready without end");
            }
            let ports: Vec<Port> = self.nodes[id].slots.keys().copied().collect();
            for port in ports {
                progress |= self.transmit(id, port);
            }
            while let Some(event) = self.nodes[id].machine.poll_event() {
                if let Some(exit) = (self.exit)(&event) {
                    self.nodes[id].ending = Some(exit);
                }
                self.events.push((now, id, event));
                progress = true;
                rounds += 1;
                assert!(rounds < MAX_ROUNDS, "machine {id} never ends its events");
            }
            if !progress {
                break;
            }
        }
        self.end_if_done(id);
    }

    /// Moves output of one port into its pipe while there is room.
    fn transmit(&mut self, id: usize, port: Port) -> bool {
        let now = self.now();
        let node = &mut self.nodes[id];
        let Some(slot) = node.slots.get_mut(&port) else { return false };
        let pipe = &mut self.pipes[slot.write];
        let mut progress = false;
        while !slot.shut {
            if !slot.pending.is_empty() {
                match pipe.write(now, &slot.pending) {
                    Ok(0) => break,
                    Ok(count) => slot.pending.advance(count),
                    Err(_) => {
                        slot.shut = true;
                        slot.pending.clear();
                        self.note(id, port, What::Lost);
                        self.nodes[id].machine.handle_input(now, Input::Lost(port));
                        return true;
                    }
                }
            } else if slot.ready && (pipe.room() > 0 || pipe.is_broken()) {
                progress = true;
                match node.machine.poll_transmit(now, port, &mut slot.pending) {
                    Transmit::More => {}
                    Transmit::Idle => slot.ready = false,
                    Transmit::Finish => {
                        slot.shut = true;
                        pipe.close(now);
                        self.note(id, port, What::Finish);
                        self.note(id, port, What::Finished);
                        self.nodes[id].machine.handle_input(now, Input::Finished(port));
                        return true;
                    }
                }
            } else {
                break;
            }
        }
        progress
    }

    fn act(&mut self, id: usize, action: Action) {
        match action {
            Action::Spawn(port) => {
                self.note(id, port, What::Spawn);
                let nth = self.nodes[id].spawned;
                self.nodes[id].spawned += 1;
                let request = Spawn { machine: id, port, nth, now: self.now() };
                let spawned = (self.spawn)(request);
                let (delay, spawned) = match spawned {
                    Spawned::Slow(delay, party) => (delay, Spawned::Party(party)),
                    other => (Duration::ZERO, other),
                };
                self.push(delay + Duration::from_micros(1), Due::Open(id, port, spawned));
            }
            Action::Signal(port, signal) => {
                self.note(id, port, What::Signal(signal));
                let Some(peer) = self.nodes[id].slots.get(&port).map(|slot| slot.peer) else { return };
                self.signal(peer, signal);
            }
            Action::Abort(port) => {
                self.note(id, port, What::Abort);
                self.drop_port(id, port);
            }
        }
    }

    fn signal(&mut self, peer: Peer, signal: Signal) {
        let now = self.now();
        match (peer, signal) {
            (Peer::Actor(id), Signal::Terminate) => {
                let actor = &mut self.actors[id];
                if !actor.gone {
                    actor.outbox.now = now;
                    actor.party.on_terminate(now, &mut actor.outbox);
                }
            }
            (Peer::Actor(id), Signal::Kill) => self.end_actor(id, Some(Exit::Signal(9)), Hold::No),
            (Peer::Node(id), Signal::Terminate) => {
                if !self.nodes[id].ended {
                    (self.terminate)(&mut self.nodes[id].machine, now);
                    self.drain(id);
                }
            }
            (Peer::Node(id), Signal::Kill) => self.end_node(id, Exit::Signal(9)),
        }
    }

    /// Takes a port out of the world, and whatever is behind it.
    fn drop_port(&mut self, id: usize, port: Port) {
        let now = self.now();
        let Some(slot) = self.nodes[id].slots.get_mut(&port) else { return };
        slot.eof = true;
        slot.shut = true;
        slot.pending.clear();
        let (peer, read, write) = (slot.peer, slot.read, slot.write);
        self.pipes[read].break_off();
        self.pipes[write].close(now);
        let child = self.log.iter().any(|e| e.machine == id && e.port == port && e.what == What::Spawn);
        match peer {
            Peer::Actor(actor) if child => self.end_actor(actor, None, Hold::No),
            Peer::Node(node) if child => self.end_node(node, Exit::Signal(9)),
            Peer::Actor(_) | Peer::Node(_) => {}
        }
    }

    /// A machine's process ends: with it all its ports, and the trees behind them.
    fn end_node(&mut self, id: usize, exit: Exit) {
        let now = self.now();
        if std::mem::replace(&mut self.nodes[id].ended, true) {
            return;
        }
        let ports: Vec<Port> = self.nodes[id].slots.keys().copied().collect();
        for port in ports {
            let slot = &self.nodes[id].slots[&port];
            self.pipes[slot.write].close(now);
            self.drop_port(id, port);
        }
        if let Some((parent, port)) = self.nodes[id].parent {
            self.push(Duration::from_micros(1), Due::Exited(parent, port, exit));
        }
    }

    fn end_if_done(&mut self, id: usize) {
        let node = &self.nodes[id];
        let written = node.slots.values().all(|slot| slot.shut || (slot.pending.is_empty() && !slot.ready));
        if let Some(exit) = node.ending
            && written
        {
            self.end_node(id, exit);
        }
    }

    fn run_agenda(&mut self) -> bool {
        let now = self.now();
        let mut moved = false;
        while let Some(first) = self.agenda.first_entry() {
            if first.key().0 > now {
                break;
            }
            let due = first.remove();
            moved = true;
            match due {
                Due::Open(id, port, spawned) => self.open(id, port, spawned),
                Due::Exited(id, port, exit) => {
                    if !self.is_aborted(id, port) && !self.nodes[id].ended {
                        self.note(id, port, What::Exited(exit));
                        self.input(id, Input::Child(port, ChildEvent::Exited(exit)));
                    }
                }
                Due::Release(actor) => self.pipes[self.actors[actor].write].close(now),
            }
        }
        moved
    }

    fn is_aborted(&self, id: usize, port: Port) -> bool {
        self.log.iter().any(|e| e.machine == id && e.port == port && e.what == What::Abort)
    }

    fn open(&mut self, id: usize, port: Port, spawned: Spawned<M>) {
        if self.is_aborted(id, port) || self.nodes[id].ended {
            return;
        }
        match spawned {
            Spawned::Party(party) | Spawned::Slow(_, party) => self.attach_by(self.link, id, port, party),
            Spawned::Machine(machine, own) => {
                let child = self.add(machine);
                self.nodes[child].parent = Some((id, port));
                let (down, up) = (self.pipe(self.link), self.pipe(self.link));
                self.open_slot(id, port, Peer::Node(child), up, down);
                self.open_slot(child, own, Peer::Node(id), down, up);
            }
            Spawned::Fails(error) => {
                self.note(id, port, What::Failed);
                self.input(id, Input::Child(port, ChildEvent::Failed(error)));
            }
        }
    }

    fn run_timeout(&mut self, id: usize) -> bool {
        let now = self.now();
        for round in 0.. {
            let node = &mut self.nodes[id];
            if node.ended || node.machine.poll_timeout().is_none_or(|due| due > now) {
                return round > 0;
            }
            assert!(round < MAX_ROUNDS, "the timer of machine {id} spins: due again and again at {now:?}");
            node.machine.handle_timeout(now);
            self.drain(id);
        }
        false
    }

    /// Gives every machine a timeout that is too early, which must do nothing.
    pub(super) fn disturb(&mut self) {
        let now = self.now();
        for id in 0..self.nodes.len() {
            let node = &mut self.nodes[id];
            if !node.ended && node.machine.poll_timeout().is_none_or(|due| due > now) {
                node.machine.handle_timeout(now);
                self.drain(id);
            }
        }
    }

    /// Gives a machine what has arrived for it, and drains it.
    fn run_node(&mut self, id: usize) -> bool {
        let now = self.now();
        let mut moved = false;
        let ports: Vec<Port> = self.nodes[id].slots.keys().copied().collect();
        for port in ports {
            if self.transmit(id, port) {
                self.drain(id);
                moved = true;
            }
            self.end_if_done(id);
            loop {
                let node = &mut self.nodes[id];
                let Some(slot) = node.slots.get_mut(&port).filter(|slot| slot.reads()) else { break };
                if node.ended {
                    break;
                }
                // Asked before anything is there, as a driver does that keeps a read in flight.
                let wants = node.machine.wants_input(port).min(limits::READ_CHUNK);
                if wants == 0 {
                    slot.stalled = true;
                    break;
                }
                match self.pipes[slot.read].read(now, wants) {
                    Read::Data(data) => self.input(id, Input::Data(port, &data)),
                    Read::Eof => {
                        slot.eof = true;
                        self.note(id, port, What::Eof);
                        self.input(id, Input::Eof(port));
                    }
                    Read::Pending => break,
                }
                moved = true;
            }
        }
        moved
    }

    fn run_actor(&mut self, id: usize) -> bool {
        let now = self.now();
        let mut moved = self.run_deeds(id);
        let actor = &mut self.actors[id];
        if actor.gone {
            return moved;
        }
        actor.outbox.now = now;
        if actor.outbox.wake.is_some_and(|at| at <= now) {
            actor.outbox.wake = None;
            actor.party.on_tick(now, &mut actor.outbox);
            moved = true;
        }
        while actor.reads() && actor.outbox.dead.is_none() {
            match self.pipes[actor.read].read(now, limits::READ_CHUNK) {
                Read::Data(data) => actor.party.on_data(now, &data, &mut actor.outbox),
                Read::Eof => {
                    actor.eof = true;
                    actor.party.on_eof(now, &mut actor.outbox);
                }
                Read::Pending => break,
            }
            moved = true;
        }
        moved | self.run_deeds(id)
    }

    /// Lets a party do what it has decided on, as far as its time has come and its output takes it.
    fn run_deeds(&mut self, id: usize) -> bool {
        let now = self.now();
        let mut moved = false;
        loop {
            let actor = &mut self.actors[id];
            if actor.gone {
                return moved;
            }
            actor.outbox.now = now;
            if let Some(exit) = actor.outbox.dead.take() {
                self.end_actor(id, Some(exit), Hold::No);
                return true;
            }
            if std::mem::take(&mut actor.outbox.deaf) {
                self.pipes[actor.read].break_off();
                actor.eof = true;
            }
            if !actor.partial.is_empty() {
                if actor.broken || actor.closed {
                    actor.partial.clear();
                    continue;
                }
                match self.pipes[actor.write].write(now, &actor.partial) {
                    Ok(0) => return moved,
                    Ok(count) => actor.partial.advance(count),
                    Err(_) => {
                        actor.broken = true;
                        actor.party.on_broken(now, &mut actor.outbox);
                    }
                }
                moved = true;
                continue;
            }
            let Some(first) = actor.outbox.deeds.first_entry().filter(|first| first.key().0 <= now) else {
                return moved;
            };
            moved = true;
            match first.remove() {
                Deed::Write(bytes) => actor.partial = BytesMut::from(&bytes[..]),
                Deed::Resume => actor.outbox.paused = false,
                Deed::Close => {
                    actor.closed = true;
                    self.pipes[actor.write].close(now);
                }
                Deed::Exit(exit, hold) => self.end_actor(id, Some(exit), hold),
            }
        }
    }

    /// A party ends. `exit` is reported to the machine if the party is its child; `None`: the machine dropped it.
    fn end_actor(&mut self, id: usize, exit: Option<Exit>, hold: Hold) {
        let now = self.now();
        let actor = &mut self.actors[id];
        let (read, write, (owner, port)) = (actor.read, actor.write, actor.owner);
        let was_gone = std::mem::replace(&mut actor.gone, true);
        match hold {
            Hold::No => self.pipes[write].close(now),
            Hold::For(time) if !was_gone => self.push(time, Due::Release(id)),
            Hold::For(_) | Hold::Forever => {}
        }
        self.pipes[read].break_off();
        let child = self.log.iter().any(|e| e.machine == owner && e.port == port && e.what == What::Spawn);
        if let Some(exit) = exit
            && child
            && !was_gone
        {
            self.push(Duration::from_micros(1), Due::Exited(owner, port, exit));
        }
    }
}

impl Slot {
    fn reads(&self) -> bool {
        !self.eof && !self.stalled
    }
}

impl Actor {
    fn reads(&self) -> bool {
        !self.gone && !self.eof && !self.outbox.paused
    }
}
