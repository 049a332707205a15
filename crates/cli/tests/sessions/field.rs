// SPDX-License-Identifier: Apache-2.0
//! A whole session in one process: `Session` as `penstock recv` runs it, front ends of both kinds, strangers and a link
//! with faults, with one clock. Promise: one seed gives one run.
//! The parts under test are session, connection manager, requester, responder, receiver and, where boards are
//! verilated, the gateware.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use penstock_readout::backend::*;
use penstock_readout::session::{BoardSpec, BoardState, CmPort, Opens, Session, SessionConfig, SessionReport};
use penstock_readout::BuilderConfig;
use penstock_transport::{CmOpenerConfig, Memory, Mtu, RecvWr, Window};
use penstock_units::Time;
use penstock_wire::{CmMessage, Ipv4Addr, MacAddr, Payload, RnrTimer};

use super::ledger::{Ledger, Stored};
use super::production::{event_at, Production, PERIOD};
use super::stranger::{self, Targets};
use super::wire::{mac, Faults, Parcel, Random, Wire};

pub const TICK: Time = Time::from_us(100);
pub const MTU: Mtu = Mtu::B256;
pub const SLOTS: u32 = 16;
pub const SLOT_BYTES: u32 = 768;
/// 1.05 ms: five round trips.
pub const ACK_TIMEOUT: u8 = 8;
/// A hundredth of what a session's defaults are, as all times here.
pub const CM: CmOpenerConfig =
    CmOpenerConfig { timeout: Time::from_ms(10), retries: 5, keep_alive: Some(Time::from_ms(30)) };
/// How long an event waits: until a board has delivered its fragment or its queue pair has failed.
const EVENT_TIMEOUT: Time = Time::from_ms(10);
/// How long events wait for a board that cannot be reached.
const OUTAGE: Time = Time::from_ms(60);
/// A run that is not whole again by then is stuck.
const PATIENCE_TICKS: u64 = 20_000;
/// Events that may be under way where all is well.
const NEAR: u64 = 64;

/// A front end of either kind.
pub trait FrontEnd {
    fn production(&mut self) -> &mut Production;
    /// Its connection is gone, and its next one has another queue pair or at least other numbers.
    fn power_cycle(&mut self, server: Ipv4Addr);
    /// The server is at another address, and the boards that open connections are configured with it.
    fn move_server(&mut self, server: Ipv4Addr);
    /// The server has another MAC from now on, which ARP announces; a connection keeps that of its beginning.
    fn learn_mac(&mut self, server: Ipv4Addr, mac: MacAddr);
    fn receive(&mut self, now: Time, parcel: Parcel, out: &mut Vec<Parcel>);
    fn turn(&mut self, now: Time, out: &mut Vec<Parcel>);
}

/// A front end with its place in the field.
pub struct Place {
    pub ip: Ipv4Addr,
    pub opens: Opens,
    pub front_end: Box<dyn FrontEnd>,
    /// It has no power: nothing reaches it.
    pub is_dark: bool,
}

pub fn board_ip(board: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, board as u8)
}

/// The session's NIC, of which the field keeps the cable. Every other one acknowledges by itself.
struct Nic(Rc<RefCell<InProcess>>, bool);

/// Memory that is written and not asked.
struct Written<'a>(&'a mut dyn Memory);

impl Memory for Written<'_> {
    fn write(&mut self, va: u64, data: &Payload) {
        self.0.write(va, data);
    }
    fn refuses(&self, va: u64, len: u32) -> Option<Window> {
        self.0.refuses(va, len)
    }
    fn message_ended(&mut self, region: u64) {
        self.0.message_ended(region);
    }
}

impl Backend for Nic {
    fn name(&self) -> &'static str {
        "in-process"
    }
    fn address(&self) -> LocalAddress {
        self.0.borrow().address()
    }
    fn admits_before_ack(&self) -> bool {
        self.1
    }
    fn share_receives(&mut self, pool: &PoolSpec) -> Result<u64, BackendError> {
        self.0.borrow_mut().share_receives(pool)
    }
    fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.0.borrow_mut().post_shared(receives)
    }
    fn ran_low(&mut self) -> u64 {
        self.0.borrow_mut().ran_low()
    }
    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        self.0.borrow_mut().create_qp(spec)
    }
    fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        self.0.borrow_mut().connect(board, peer)
    }
    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.0.borrow_mut().post_receives(board, receives)
    }
    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        match self.1 {
            true => self.0.borrow_mut().poll(memory, mode, deadline, out),
            false => self.0.borrow_mut().poll(&mut Written(memory), mode, deadline, out),
        }
    }
    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        self.0.borrow_mut().close_qp(board, out)
    }
    fn fault(&self, board: u16) -> Option<String> {
        self.0.borrow().fault(board)
    }
    fn counters(&mut self) -> Counters {
        self.0.borrow_mut().counters()
    }
    fn board_counters(&self, board: u16) -> Counters {
        self.0.borrow().board_counters(board)
    }
}

/// Messages of the server's connection manager, in and out.
#[derive(Default)]
struct Mail {
    came: VecDeque<(Ipv4Addr, CmMessage)>,
    sent: Vec<(Ipv4Addr, CmMessage)>,
}

struct Post(Rc<RefCell<Mail>>);

impl CmPort for Post {
    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        self.0.borrow_mut().came.pop_front()
    }
    fn send(&mut self, to: Ipv4Addr, _port: u16, message: &CmMessage) -> io::Result<()> {
        self.0.borrow_mut().sent.push((to, *message));
        Ok(())
    }
}

/// One life of the server's process.
struct Server {
    ip: Ipv4Addr,
    /// Frames to another one are not its.
    mac: MacAddr,
    nic: Rc<RefCell<InProcess>>,
    mail: Rc<RefCell<Mail>>,
    session: Session<Stored>,
    /// Packets that came to a MAC that it had before.
    misled: u64,
}

/// All of it.
pub struct Field {
    server: Server,
    pub places: Vec<Place>,
    pub wire: Wire,
    pub random: Random,
    pub now: Time,
    hand: ClockHand,
    pub ledger: Rc<RefCell<Ledger>>,
    /// The disk has no room.
    pub full: Rc<Cell<bool>>,
    lives: u8,
    /// Chance per million that a stranger does something in a tick.
    pub strangers: u64,
    /// The gateware takes an OPEN_QP in its server's name for the server's next life at once, where software first
    /// waits until the connection is quiet: with boards of that kind such forgeries belong to storms, and cost events.
    pub is_gateware_there: bool,
    is_calm: bool,
}

impl Field {
    /// Front ends are made by `make`, of a board's number and its server (none: a server asks it) and a seed.
    pub fn new(
        boards: u16,
        faults: Faults,
        seed: u64,
        make: impl Fn(u16, Option<Ipv4Addr>, u64) -> Box<dyn FrontEnd>,
    ) -> Field {
        println!("seed {seed}");
        let mut random = Random(seed);
        let (ledger, full) = (Rc::new(RefCell::new(Ledger::default())), Rc::new(Cell::new(false)));
        let hand = ClockHand::default();
        let first = server_ip(0);
        let place = |board: u16| {
            let opens = if board % 2 == 1 { Opens::Board } else { Opens::We };
            let server = (opens == Opens::Board).then_some(first);
            Place { ip: board_ip(board), opens, front_end: make(board, server, random.next()), is_dark: false }
        };
        let places: Vec<Place> = (0..boards).map(place).collect();
        let wire = Wire::new(faults);
        let server = Server::new(0, &places, &hand, Stored::new(ledger.clone(), full.clone()), random.next());
        let now = Time::ZERO;
        Field {
            server,
            places,
            wire,
            random,
            now,
            hand,
            ledger,
            full,
            lives: 1,
            strangers: 200_000,
            is_gateware_there: false,
            is_calm: false,
        }
    }

    pub fn boards(&self) -> u16 {
        self.places.len() as u16
    }

    pub fn server_ip(&self) -> Ipv4Addr {
        self.server.ip
    }

    pub fn report(&mut self) -> SessionReport {
        self.server.session.report()
    }

    pub fn send(&mut self, parcel: Parcel) {
        self.wire.send(parcel, &mut self.random);
    }

    /// A step of the session, and of everything around it.
    pub fn tick(&mut self) {
        self.now += TICK;
        self.hand.set(self.now);
        let mut out = Vec::new();
        for parcel in self.wire.arrived() {
            let to = parcel.to();
            if to == self.server.ip {
                self.server.takes(self.now, parcel);
            } else if let Some(place) = self.places.iter_mut().find(|place| place.ip == to && !place.is_dark) {
                place.front_end.receive(self.now, parcel, &mut out);
            }
        }
        self.server.session.step(Time::ZERO).expect("nothing can fail for good");
        self.server.gives(&mut out);
        for (board, place) in (0..).zip(&mut self.places).filter(|(_, place)| !place.is_dark) {
            place.front_end.turn(self.now, &mut out);
            let done = place.front_end.production().take_done();
            done.into_iter().for_each(|event| self.ledger.borrow_mut().acknowledged(board, event));
        }
        if self.random.happens(self.strangers) {
            let boards: Vec<Ipv4Addr> = self.places.iter().map(|place| place.ip).collect();
            let spares_server = self.is_gateware_there && self.is_calm;
            let seen = self.wire.seen.as_ref();
            let targets = Targets { server: self.server.ip, boards: &boards, spares_server, seen };
            out.push(stranger::act(&mut self.random, &targets));
        }
        for parcel in out {
            self.wire.send(parcel, &mut self.random);
        }
    }

    pub fn ticks(&mut self, ticks: u64) {
        (0..ticks).for_each(|_| self.tick());
    }

    /// Runs until the session's report meets a condition.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&SessionReport) -> bool) {
        for tick in 0..PATIENCE_TICKS {
            self.tick();
            if tick % 16 == 0 && is_so(&self.report()) {
                return;
            }
        }
        let boards = self.report().boards;
        panic!("not {what} at {} in {PATIENCE_TICKS} ticks: {boards:#?}", self.now);
    }

    /// Runs until every board is up, waited for, and the run is at the event that is due.
    pub fn heal(&mut self) {
        self.is_calm = true;
        for tick in 0..PATIENCE_TICKS {
            self.tick();
            if tick % 16 == 0 {
                let due = event_at(self.now);
                let near = self.server.session.receiver().next_event() + NEAR >= due;
                let mut boards = self.places.iter_mut().map(|place| place.front_end.production());
                let near = near && boards.all(|board| board.unacknowledged().is_some_and(|event| event + NEAR >= due));
                let is_well = |report: SessionReport| {
                    report.boards.iter().all(|board| board.state == BoardState::Up && board.left_out.is_none())
                };
                if near && is_well(self.report()) {
                    return;
                }
            }
        }
        let next = self.server.session.receiver().next_event();
        let due = event_at(self.now);
        panic!("the run is not whole again: next event {next}, due {due}: {:#?}", self.report().boards);
    }

    /// So many events without anything but the wire's faults and strangers: each is whole.
    pub fn calm(&mut self, events: u64) {
        let from = event_at(self.now) + NEAR;
        let until = from + events;
        let mut ticks = 0;
        self.is_calm = true;
        while self.server.session.receiver().next_event() < until {
            self.tick();
            ticks += 1;
            assert!(ticks < PATIENCE_TICKS, "the run is stuck: {:#?}", self.report().boards);
        }
        self.is_calm = false;
        let incomplete = self.ledger.borrow().incomplete(from, until);
        let first = &incomplete[..incomplete.len().min(8)];
        assert!(first.is_empty(), "of events {from}..{until} {} are not whole: {first:?}...", incomplete.len());
    }

    /// The process is killed, and another one begins at another address, without its state.
    pub fn kill_server(&mut self) {
        let server = self.next_server();
        let mut dead = std::mem::replace(&mut self.server, server);
        let report = dead.session.report();
        self.ledger.borrow_mut().close(&report, dead.session.receiver().sink(), true);
        self.announce_server();
    }

    /// The first signal: the run ends with the last event that has begun, in whatever state the boards are, and another
    /// process begins. `patience`: ticks until the second signal, which ends it as it is.
    pub fn signal_server(&mut self, patience: u64) {
        self.server.session.end_now().expect("the sink takes all");
        let mut ticks = 0;
        while !self.server.session.is_over() && ticks < patience {
            self.tick();
            ticks += 1;
        }
        self.full.set(false);
        // What `Session::finish` does after the last step: it is not the field's time that passes there.
        self.server.session.store_rest().expect("the sink takes all");
        let server = self.next_server();
        let mut old = std::mem::replace(&mut self.server, server);
        let report = old.session.report();
        self.ledger.borrow_mut().close(&report, old.session.receiver().sink(), false);
        self.announce_server();
    }

    fn next_server(&mut self) -> Server {
        let life = self.lives;
        self.lives = self.lives.wrapping_add(1);
        let stored = Stored::new(self.ledger.clone(), self.full.clone());
        Server::new(life, &self.places, &self.hand, stored, self.random.next())
    }

    fn announce_server(&mut self) {
        let (ip, mac) = (self.server.ip, self.server.mac);
        self.places.iter_mut().for_each(|place| {
            place.front_end.learn_mac(ip, mac);
            place.front_end.move_server(ip);
        });
    }

    /// The server's interface is replaced by one with another MAC. `misled` packets still go to the former one.
    pub fn move_mac(&mut self) {
        let bits = self.random.next().to_le_bytes();
        self.server.mac = MacAddr([2, bits[0], bits[1], bits[2], bits[3], bits[4]]);
        let (ip, mac) = (self.server.ip, self.server.mac);
        self.places.iter_mut().for_each(|place| place.front_end.learn_mac(ip, mac));
    }

    /// Packets that came to a MAC that the server had before.
    pub fn misled(&self) -> u64 {
        self.server.misled
    }

    /// Ends the run and closes the books.
    pub fn finish(mut self) -> (Ledger, Wire) {
        self.server.session.store_rest().expect("the sink takes all");
        let report = self.server.session.report();
        self.ledger.borrow_mut().close(&report, self.server.session.receiver().sink(), false);
        let boards = self.places.len() as u16;
        drop(self.server);
        let ledger = Rc::try_unwrap(self.ledger).unwrap_or_else(|_| panic!("the servers are gone")).into_inner();
        ledger.check(boards);
        (ledger, self.wire)
    }
}

fn server_ip(life: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + life % 200)
}

impl Server {
    fn new(life: u8, places: &[Place], hand: &ClockHand, stored: Stored, seed: u64) -> Server {
        let (ip, mut random) = (server_ip(life), Random(seed));
        let nic = InProcess::new(ip, mac(ip), Box::new(move || random.next() as u32));
        let (nic, mail) = (Rc::new(RefCell::new(nic)), Rc::new(RefCell::new(Mail::default())));
        let spec = |(place, board): (&Place, u16)| {
            let (name, opens) = (format!("board{board}"), place.opens);
            BoardSpec { name, ip: place.ip, opens }
        };
        let config = SessionConfig {
            boards: places.iter().zip(0..).map(spec).collect(),
            slots: SLOTS,
            slot_bytes: SLOT_BYTES,
            builder: BuilderConfig {
                timeout: EVENT_TIMEOUT,
                outage: OUTAGE,
                window: NEAR as usize,
                ..BuilderConfig::default()
            },
            mtu: MTU,
            rnr_timer: RnrTimer::from_code(1),
            cm: CM,
            reopen: Time::from_ms(20),
            bring_up: Time::from_ms(50),
            ..SessionConfig::default()
        };
        let (backend, port) = (Box::new(Nic(nic.clone(), life.is_multiple_of(2))), Box::new(Post(mail.clone())));
        let session = Session::with_port(config, backend, port, hand.clock(), stored).expect("a session");
        Server { ip, mac: mac(ip), nic, mail, session, misled: 0 }
    }

    fn takes(&mut self, now: Time, parcel: Parcel) {
        match parcel {
            Parcel::Data(packet) if packet.eth_dst != self.mac => self.misled += 1,
            Parcel::Data(packet) => self.nic.borrow_mut().arrive(now, packet),
            Parcel::Message { from, message, .. } => self.mail.borrow_mut().came.push_back((from, message)),
        }
    }

    fn gives(&mut self, out: &mut Vec<Parcel>) {
        out.extend(std::iter::from_fn(|| self.nic.borrow_mut().take_reply()).map(Parcel::Data));
        let sent = self.mail.borrow_mut().sent.drain(..).collect::<Vec<_>>();
        let from = self.ip;
        out.extend(sent.into_iter().map(|(to, message)| Parcel::Message { from, to, message }));
    }
}

/// The time of so many events.
pub fn span(events: u64) -> u64 {
    events * PERIOD.as_ps() / TICK.as_ps()
}
