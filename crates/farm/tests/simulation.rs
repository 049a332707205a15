// SPDX-License-Identifier: Apache-2.0
//! The coordinator against boards that lose, delay, reset and vanish, servers that die and come back, and its own death.
//! The boards follow rtl/roce/destination.sv, rule by rule. One seed is one run; a failing one is printed.

use penstock_farm::{
    Action, BoardView, Change, Coordinator, FarmConfig, Notice, QueuePair, Request, ServerConfig, ServerView, Tables,
    IN_ERROR, READY_TO_SEND,
};
use penstock_units::Time;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const OWNER: u16 = 7;
const QPS: usize = 6;

/// SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }
}

fn address(server: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, server as u8 + 1)
}

#[derive(Clone, Default)]
struct Table {
    first: u64,
    rows: Vec<u8>,
}

/// A board's gateware and its queue pairs.
struct Board {
    owner: u16,
    edited: Vec<u8>,
    older: Table,
    newer: Table,
    staged: Option<Table>,
    pending: bool,
    last: Option<u64>,
    qps: Vec<QueuePair>,
    held: bool,
    waits: bool,
    /// The next event that it has, and where each that has gone went; none: flushed without a server.
    event: u64,
    went: BTreeMap<u64, Option<Ipv4Addr>>,
    flushed: u64,
    /// The youngest coordinator that has written.
    epoch: u64,
    refused: bool,
    silent_until: u64,
    /// Without power.
    is_off: bool,
}

impl Board {
    fn new(event: u64) -> Self {
        let qps = vec![QueuePair { state: 0, peer: Ipv4Addr::UNSPECIFIED }; QPS];
        Board {
            owner: 0,
            edited: vec![],
            older: Table::default(),
            newer: Table::default(),
            staged: None,
            pending: false,
            last: None,
            qps,
            held: false,
            waits: false,
            event,
            went: BTreeMap::new(),
            flushed: 0,
            epoch: 0,
            refused: false,
            silent_until: 0,
            is_off: false,
        }
    }

    /// Sends the next event, if it may.
    fn send(&mut self, waits_for_server: bool) -> bool {
        let event = self.event;
        (self.held, self.waits) = (false, false);
        if self.staged.as_ref().is_some_and(|staged| event >= staged.first) {
            self.held = true;
            return false;
        }
        let is_new = event >= self.newer.first;
        let rows = if is_new { &self.newer.rows } else { &self.older.rows };
        let may_wait = waits_for_server && is_new && self.staged.is_none();
        let qp = (!rows.is_empty()).then(|| rows[(event % rows.len() as u64) as usize]);
        let is_ready = qp.is_some_and(|qp| self.qps.get(usize::from(qp)).is_none_or(|qp| qp.state == READY_TO_SEND));
        if may_wait && !is_ready {
            self.waits = true;
            return false;
        }
        self.pending &= !is_new;
        self.last = Some(self.last.map_or(event, |last| last.max(event)));
        let sent = qp.and_then(|qp| self.qps.get(usize::from(qp))).filter(|qp| qp.state == READY_TO_SEND);
        self.flushed += u64::from(sent.is_none());
        self.went.insert(event, sent.map(|qp| qp.peer));
        self.event += 1;
        true
    }

    fn has_gone(&self, event: u64) -> bool {
        self.last.is_some_and(|last| event <= last)
    }

    fn put_into_force(&mut self, table: Table) {
        if !self.pending {
            self.older = std::mem::take(&mut self.newer);
        }
        self.pending = table.first != 0;
        self.newer = table;
    }

    fn commit(&mut self, first: u64, rows: &[u8]) {
        self.edited = rows.to_vec();
        if self.staged.is_some() || (first != 0 && self.has_gone(first)) {
            return;
        }
        self.put_into_force(Table { first, rows: rows.to_vec() });
        if first == 0 {
            self.last = None;
        }
    }

    fn carry_out(&mut self, owner: u16, request: &Request) -> BoardView {
        let may = self.owner == owner;
        match request {
            Request::Look => {}
            Request::Claim => self.owner = owner,
            Request::SetUp { before, first, rows } if may => {
                if *first > 0 {
                    self.commit(0, before);
                }
                self.commit(*first, rows);
            }
            Request::Prepare { first, rows } => {
                self.edited = rows.clone();
                self.refused = true;
                if may && self.staged.is_none() && (!self.pending || self.waits) && !self.has_gone(*first) {
                    self.staged = Some(Table { first: *first, rows: rows.clone() });
                    self.refused = false;
                }
            }
            Request::Confirm if may => {
                if let Some(table) = self.staged.take() {
                    self.pending = false; // else it waits, and its events with it
                    self.put_into_force(table);
                }
            }
            Request::Cancel { rows } => {
                self.edited = rows.clone();
                if may {
                    self.staged = None;
                }
            }
            _ => {}
        }
        BoardView {
            owner: self.owner,
            next_event: self.last.map_or(0, |last| last + 1),
            announced: self.staged.as_ref().map_or(self.newer.first, |staged| staged.first),
            live: self.newer.rows.len() as u8,
            prepared: self.staged.is_some(),
            pending: self.pending,
            busy: false,
            refused: self.refused,
            held: self.held,
            waits: self.waits,
            rows: self.edited.clone(),
            queue_pairs: self.qps.clone(),
        }
    }

    /// A server's `recv` opens its queue pair.
    fn open(&mut self, server: u16, at: usize) {
        for qp in self.qps.iter_mut().filter(|qp| qp.peer == address(server)) {
            qp.state = if qp.state == READY_TO_SEND { IN_ERROR } else { qp.state };
        }
        self.qps[at] = QueuePair { state: READY_TO_SEND, peer: address(server) };
    }
}

struct Server {
    is_alive: bool,
    tables_read: u64,
    hears: bool,
}

enum Message {
    ToBoard { epoch: u64, board: usize, request: Request },
    Answer { epoch: u64, board: usize, answer: Result<BoardView, String> },
}

struct World {
    random: Random,
    now: u64,
    boards: Vec<Board>,
    servers: Vec<Server>,
    log: Vec<Change>,
    /// The log as the coordinator last saw it.
    coordinator: Option<Coordinator>,
    epoch: u64,
    wire: Vec<(u64, Message)>,
    notices: Vec<Notice>,
    loss: u64,
    delay: u64,
    /// Milliseconds from a server's death to a board's queue pair in error.
    detection: u64,
    dies_with_log: bool,
    owner: u16,
}

impl World {
    fn new(seed: u64, boards: usize, servers: u16) -> Self {
        World {
            random: Random(seed),
            now: 0,
            boards: (0..boards).map(|_| Board::new(0)).collect(),
            servers: (0..servers).map(|_| Server { is_alive: true, tables_read: 1, hears: true }).collect(),
            log: vec![Change { first: 0, live: (0..servers).collect() }],
            coordinator: None,
            epoch: 0,
            wire: Vec::new(),
            notices: Vec::new(),
            loss: 0,
            delay: 2,
            detection: 200,
            dies_with_log: false,
            owner: OWNER,
        }
    }

    fn tables(&self) -> Tables {
        let mut tables = Tables::new(self.log[0].live.clone());
        assert!(self.log[1..].iter().all(|change| tables.announce(change.clone())), "the log is in order");
        tables
    }

    fn start(&mut self) {
        let servers = (0..self.servers.len() as u16)
            .map(|number| ServerConfig { number, address: address(number), has_heartbeat: true })
            .collect();
        let boards = (0..self.boards.len()).map(|at| format!("board {at}")).collect();
        let config = FarmConfig { settle: Time::from_ms(300), ..FarmConfig::new(self.owner, boards, servers) };
        self.epoch += 1;
        self.coordinator = Some(Coordinator::new(config, self.tables(), Time::from_ms(self.now)));
    }

    fn kill_coordinator(&mut self) {
        self.coordinator = None;
    }

    fn open_all(&mut self) {
        for board in &mut self.boards {
            for server in (0..self.servers.len()).filter(|at| self.servers[*at].is_alive) {
                board.open(server as u16, server);
            }
        }
    }

    fn kill_server(&mut self, server: u16) {
        self.servers[usize::from(server)].is_alive = false;
    }

    fn revive_server(&mut self, server: u16) {
        let at = usize::from(server);
        self.servers[at] = Server { is_alive: true, tables_read: 0, hears: true };
        for board in &mut self.boards {
            let place = (at + self.random.below(2) as usize * 3) % QPS;
            board.open(server, place);
        }
    }

    fn reset_board(&mut self, at: usize) {
        let (event, went, flushed) = {
            let old = &mut self.boards[at];
            (old.event, std::mem::take(&mut old.went), old.flushed)
        };
        self.boards[at] = Board { went, flushed, ..Board::new(event) };
    }

    /// One millisecond: dead queue pairs are found, events flow, messages arrive, the coordinator acts.
    fn step(&mut self, events: u64) {
        self.now += 1;
        let now = Time::from_ms(self.now);
        for at in 0..self.servers.len() {
            let server = address(at as u16);
            if !self.servers[at].is_alive {
                for board in &mut self.boards {
                    if self.random.happens(2000 / self.detection) {
                        for qp in board.qps.iter_mut().filter(|qp| qp.peer == server && qp.state == READY_TO_SEND) {
                            qp.state = IN_ERROR;
                        }
                    }
                }
            } else if self.servers[at].hears && self.now % 100 == at as u64 {
                self.servers[at].tables_read = self.log.len() as u64;
                let names = (0..self.boards.len()).map(|b| (format!("board {b}"), !self.boards[b].is_off));
                let view = ServerView { tables_read: Some(self.log.len() as u64), boards_up: names.collect() };
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.handle_server(now, at as u16, view);
                }
            }
        }
        for board in self.boards.iter_mut().filter(|board| !board.is_off) {
            for _ in 0..events + self.random.below(2) {
                if !board.send(true) {
                    break;
                }
            }
        }
        let due: Vec<usize> = (0..self.wire.len()).filter(|at| self.wire[*at].0 <= self.now).rev().collect();
        let arrived: Vec<Message> = due.into_iter().map(|at| self.wire.swap_remove(at).1).collect();
        for message in arrived {
            self.deliver(now, message);
        }
        if let Some(coordinator) = &mut self.coordinator {
            if coordinator.poll_timeout() <= now || self.now % 10 == 0 {
                coordinator.handle_timeout(now);
            }
        }
        self.act(now);
    }

    fn deliver(&mut self, now: Time, message: Message) {
        match message {
            Message::ToBoard { epoch, board, request } => {
                let silent = self.boards[board].is_off || self.boards[board].silent_until > self.now;
                let is_write = request != Request::Look;
                // IPbus packet ids: what comes behind a later client's write is not carried out any more.
                let is_late = epoch < self.boards[board].epoch && is_write;
                let lost = self.random.happens(self.loss);
                let answer = if silent || is_late || lost {
                    Err("no answer".to_owned())
                } else {
                    if is_write {
                        self.boards[board].epoch = epoch;
                    }
                    let view = self.boards[board].carry_out(self.owner, &request);
                    if self.random.happens(self.loss) {
                        Err("no answer".to_owned())
                    } else {
                        Ok(view)
                    }
                };
                let wait = if answer.is_err() { 200 } else { 1 + self.random.below(self.delay) };
                self.wire.push((self.now + wait, Message::Answer { epoch, board, answer }));
            }
            Message::Answer { epoch, board, answer } => {
                if let Some(coordinator) = self.coordinator.as_mut().filter(|_| epoch == self.epoch) {
                    coordinator.handle_board(now, board, answer);
                }
            }
        }
    }

    fn act(&mut self, now: Time) {
        while let Some(action) = self.coordinator.as_mut().and_then(Coordinator::poll) {
            match action {
                Action::Ask { board, request } => {
                    let due = self.now + self.random.below(self.delay);
                    self.wire.push((due, Message::ToBoard { epoch: self.epoch, board, request }));
                }
                Action::Log(change) => {
                    let survives = !self.dies_with_log || self.random.happens(500);
                    if survives {
                        self.log.push(change);
                    }
                    if self.dies_with_log {
                        self.dies_with_log = false;
                        return self.kill_coordinator();
                    }
                    if let Some(coordinator) = &mut self.coordinator {
                        coordinator.handle_logged(now, Ok(()));
                    }
                }
                Action::Say(notice) => self.notices.push(notice),
            }
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step(1);
        }
    }

    /// Each event went to the server that the log says, at every board, and none was left out.
    fn check(&self, seed: u64) {
        let tables = self.tables();
        for (at, board) in self.boards.iter().enumerate() {
            assert_eq!(board.went.len() as u64, board.event, "seed {seed}: board {at} has left out events");
            for (event, server) in &board.went {
                if let Some(server) = server {
                    let right = address(tables.server_of(*event));
                    assert_eq!(
                        *server, right,
                        "seed {seed}: board {at} sent event {event} elsewhere: {:?}",
                        self.notices
                    );
                }
            }
        }
    }

    fn flows_to(&mut self, seed: u64, live: &[u16]) {
        let before: Vec<u64> = self.boards.iter().map(|board| board.event).collect();
        self.run(300);
        let coordinator = self.coordinator.as_ref().unwrap();
        assert_eq!(coordinator.log().live(), live, "seed {seed}: {:#?}", self.notices);
        assert_eq!(coordinator.boards_in_force(), self.boards.len(), "seed {seed}: {:#?}", self.notices);
        for (board, before) in self.boards.iter().zip(before) {
            assert!(board.event > before + 100, "seed {seed}: it does not send: {:#?}", self.notices);
        }
    }
}

#[test]
fn a_dead_server_is_taken_out_at_one_event_and_comes_back() {
    for seed in 0..20 {
        let mut world = World::new(seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.kill_server(1);
        world.run(2000);
        world.flows_to(seed, &[0]);
        let lost: Vec<u64> = world.boards.iter().map(|board| board.flushed).collect();
        world.revive_server(1);
        world.run(2000);
        world.flows_to(seed, &[0, 1]);
        world.check(seed);
        assert_eq!(lost, world.boards.iter().map(|board| board.flushed).collect::<Vec<_>>(), "seed {seed}");
        assert!(!world.notices.iter().any(Notice::is_fault), "seed {seed}: {:?}", world.notices);
    }
}

#[test]
fn whatever_is_lost_delayed_reset_or_killed_no_event_is_split() {
    for seed in 0..60 {
        let mut world = World::new(seed, 3, 3);
        (world.loss, world.delay) = (world.random.below(150), 1 + world.random.below(40));
        world.open_all();
        world.start();
        world.run(400);
        for _ in 0..12 {
            match world.random.below(7) {
                0 => world.kill_server(1),
                1 => world.revive_server(1),
                2 => world.kill_server(2),
                3 => world.revive_server(2),
                4 => {
                    world.dies_with_log = world.random.happens(500);
                    if !world.dies_with_log {
                        world.kill_coordinator();
                    }
                }
                5 => {
                    let at = world.random.below(3) as usize;
                    world.reset_board(at);
                    world.run(20);
                    for server in (0..3).filter(|server| world.servers[*server].is_alive) {
                        world.boards[at].open(server as u16, server);
                    }
                }
                _ => {
                    let (at, ms) = (world.random.below(3) as usize, world.random.below(900));
                    // Its slow control alone is cut off: it goes on sending.
                    world.boards[at].silent_until = world.now + ms;
                }
            }
            let wait = world.random.below(900);
            world.run(wait);
            if world.coordinator.is_none() {
                world.start();
            }
        }
        world.loss = 0;
        world.dies_with_log = false;
        for server in 0..3 {
            world.revive_server(server);
        }
        if world.coordinator.is_none() {
            world.start();
        }
        world.run(15_000);
        world.flows_to(seed, &[0, 1, 2]);
        world.check(seed);
    }
}

#[test]
fn a_second_coordinator_is_told_and_does_nothing_and_one_that_takes_over_stops_the_first() {
    let mut world = World::new(1, 2, 2);
    world.open_all();
    world.start();
    world.run(300);
    let config = |owner, take_over| FarmConfig {
        take_over,
        ..FarmConfig::new(
            owner,
            vec!["board 0".into(), "board 1".into()],
            (0..2).map(|number| ServerConfig { number, address: address(number), has_heartbeat: false }).collect(),
        )
    };
    let now = Time::from_ms(world.now);
    let mut second = Coordinator::new(config(9, false), world.tables(), now);
    let view = world.boards[0].carry_out(9, &Request::Look);
    second.handle_board(now, 0, Ok(view.clone()));
    assert!(second.is_over());
    let mut asked = Vec::new();
    while let Some(action) = second.poll() {
        match action {
            Action::Say(Notice::Taken { owner, .. }) => asked.push(owner),
            Action::Ask { request, .. } => assert_eq!(request, Request::Look),
            _ => {}
        }
    }
    assert_eq!(asked, [OWNER]);

    let mut third = Coordinator::new(config(9, true), world.tables(), now);
    third.handle_board(now, 0, Ok(view));
    let claims = std::iter::from_fn(|| third.poll()).any(|a| matches!(a, Action::Ask { request: Request::Claim, .. }));
    assert!(claims && !third.is_over());
    world.boards[0].carry_out(9, &Request::Claim);
    world.run(100);
    assert!(world.coordinator.as_ref().unwrap().is_over());
    assert!(world.notices.contains(&Notice::Taken { board: "board 0".into(), owner: 9 }));
}

#[test]
fn a_heartbeat_of_a_server_that_the_boards_cannot_reach_keeps_nobody_in_the_table() {
    let mut world = World::new(3, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    for board in &mut world.boards {
        board.qps[1].state = IN_ERROR;
    }
    world.run(800);
    assert!(world.servers[1].is_alive, "its heartbeat goes on");
    world.flows_to(3, &[0]);
    world.check(3);
}

#[test]
fn a_server_without_a_heartbeat_is_taken_out_after_patience_and_one_board_without_servers_has_no_say() {
    let mut world = World::new(4, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    world.servers[1].hears = false; // its process hangs, its queue pairs live
    world.run(1500);
    assert_eq!(world.tables().live(), [0, 1], "patience");
    world.run(1500);
    world.flows_to(4, &[0]);
    world.servers[1].hears = true;
    world.run(1500);
    world.flows_to(4, &[0, 1]);
    for at in 0..2 {
        world.boards[2].qps[at].state = IN_ERROR;
    }
    world.run(1500);
    assert_eq!(world.tables().live(), [0, 1]);
    assert!(world.notices.contains(&Notice::BoardCutOff { board: "board 2".into() }));
    world.check(4);
}

#[test]
fn a_server_that_does_not_read_the_log_is_told_of_and_holds_events_no_longer_than_patience() {
    let mut world = World::new(5, 2, 3);
    world.open_all();
    world.start();
    world.run(500);
    world.kill_server(1);
    world.run(100);
    world.servers[2].hears = false;
    let stale = ServerView { tables_read: Some(1), boards_up: BTreeMap::new() };
    for _ in 0..60 {
        let now = Time::from_ms(world.now);
        world.coordinator.as_mut().unwrap().handle_server(now, 2, stale.clone());
        world.run(100);
    }
    let unread = |notice: &Notice| matches!(notice, Notice::Unread { server: 2, .. });
    assert_eq!(world.notices.iter().filter(|notice| unread(notice)).count(), 1, "{:#?}", world.notices);
    world.check(5);
}

#[test]
fn a_board_that_nobody_hears_of_holds_up_no_change_and_is_set_up_anew_when_it_is_back() {
    let mut world = World::new(6, 3, 2);
    world.open_all();
    world.start();
    world.run(500);
    world.boards[2].is_off = true;
    world.run(100);
    world.kill_server(1);
    world.run(2500);
    assert_eq!(world.tables().live(), [0], "{:#?}", world.notices);
    assert!(world.notices.contains(&Notice::BoardGone { board: "board 2".into() }));
    world.reset_board(2);
    world.boards[2].event = world.boards[0].event;
    let skipped: Vec<u64> = (0..world.boards[2].event).filter(|e| !world.boards[2].went.contains_key(e)).collect();
    world.boards[2].went.extend(skipped.into_iter().map(|event| (event, None)));
    world.run(20);
    world.boards[2].open(0, 0);
    world.run(500);
    world.flows_to(6, &[0]);
    world.check(6);
}

#[test]
fn a_prepared_board_that_vanishes_is_confirmed_when_it_is_back_and_holds_its_events_until_then() {
    for seed in 0..20 {
        let mut world = World::new(100 + seed, 3, 2);
        world.open_all();
        world.start();
        world.run(500);
        world.kill_server(1);
        while world.log.len() == 1 {
            world.run(1);
        }
        world.boards[1].silent_until = world.now + 1500;
        let first = world.log[1].first;
        world.run(1200);
        assert!(world.boards[1].event <= first && world.boards[1].held, "it waits at the change");
        assert!(world.boards[0].event > first, "the others go on");
        world.run(1500);
        world.flows_to(seed, &[0]);
        world.check(seed);
    }
}
