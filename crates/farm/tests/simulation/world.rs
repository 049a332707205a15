// SPDX-License-Identifier: Apache-2.0
//! Boards, servers, the network between them, the log, and a coordinator that may die.

use crate::board::{address, Board, Random, QPS};
use penstock_farm::{
    Action, BoardAtServer, BoardView, Change, Coordinator, FarmConfig, Notice, QueuePair, Request, ServerConfig,
    ServerView, Tables, CLOSED, IN_ERROR, READY_TO_SEND,
};
use penstock_units::Time;
use std::collections::BTreeSet;

pub const OWNER: u16 = 7;

pub struct Server {
    pub is_alive: bool,
    pub tables_read: u64,
    pub is_running: bool,
    /// When its process began, and how often it has come round.
    pub started: u64,
    pub turns: u64,
    /// Receives that are posted, of 16.
    pub credits: u64,
    /// Queue pairs that had been opened at each board when its process began.
    pub before: Vec<u32>,
}

impl Server {
    pub fn new(now: u64, tables_read: u64) -> Server {
        Server {
            is_alive: true,
            tables_read,
            is_running: true,
            started: now,
            turns: 0,
            credits: SLOTS,
            before: Vec::new(),
        }
    }
}

/// So many seeds from `PENSTOCK_SEED` on, times `PENSTOCK_FARMS` for a longer campaign.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let of = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let first = of("PENSTOCK_SEED", 0);
    first..first + count * of("PENSTOCK_FARMS", 1)
}

pub const SLOTS: u64 = 16;
pub const RUN: &str = "run";

enum Message {
    ToBoard { epoch: u64, board: usize, request: Request },
    Answer { epoch: u64, board: usize, answer: Result<BoardView, String> },
}

pub struct World {
    seed: u64,
    pub random: Random,
    pub now: u64,
    pub boards: Vec<Board>,
    pub servers: Vec<Server>,
    pub log: Vec<Change>,
    /// The log as the coordinator last saw it.
    pub coordinator: Option<Coordinator>,
    pub epoch: u64,
    wire: Vec<(u64, Message)>,
    pub notices: Vec<Notice>,
    pub loss: u64,
    pub delay: u64,
    /// Milliseconds from a server's death to a board's queue pair in error.
    pub detection: u64,
    pub dies_with_log: bool,
    pub owner: u16,
    pub weights: Vec<u8>,
    /// What a board says instead of the truth.
    pub lies: Vec<Option<fn(&mut BoardView)>>,
    /// Servers that want a queue pair of a board, and which one they would get if it is not as the gateware has it.
    pub requesting: Vec<(u16, usize, Option<usize>)>,
    /// Coordinators begin a run.
    pub begins: bool,
    /// Servers that take nothing, and those that do nothing at all; the others ask again for queue pairs that they lack.
    pub full: BTreeSet<u16>,
    pub suspended: BTreeSet<u16>,
    pub repeats_requests: bool,
    /// Servers refuse events of others; how many they have refused.
    pub refusals: Option<u64>,
    /// The detector has no later event for now.
    pub rests_at: Option<u64>,
    /// The coordinator's; none: its default.
    pub board_patience: Option<Time>,
}

impl World {
    pub fn new(seed: u64, boards: usize, servers: u16) -> Self {
        World {
            seed,
            random: Random(seed),
            now: 0,
            boards: (0..boards).map(|_| Board::new(0)).collect(),
            servers: (0..servers).map(|_| Server::new(0, 1)).collect(),
            log: vec![Change::new(0, (0..servers).collect())],
            coordinator: None,
            epoch: 0,
            wire: Vec::new(),
            notices: Vec::new(),
            loss: 0,
            delay: 2,
            detection: 200,
            dies_with_log: false,
            owner: OWNER,
            weights: vec![1; servers.into()],
            lies: vec![None; boards],
            requesting: Vec::new(),
            begins: false,
            full: BTreeSet::new(),
            suspended: BTreeSet::new(),
            repeats_requests: false,
            refusals: None,
            rests_at: None,
            board_patience: None,
        }
    }

    pub fn tables(&self) -> Tables {
        let mut tables = Tables::new(RUN.into(), self.log[0].live.clone());
        assert!(self.log[1..].iter().all(|change| tables.announce(change.clone())), "the log is in order");
        tables
    }

    pub fn start(&mut self) {
        let servers = (0..self.servers.len() as u16)
            .map(|number| ServerConfig {
                number,
                address: address(number),
                has_heartbeat: true,
                weight: self.weights[usize::from(number)],
            })
            .collect();
        let boards = (0..self.boards.len()).map(|at| format!("board {at}")).collect();
        let usual = FarmConfig::new(self.owner, boards, servers);
        let config = FarmConfig {
            settle: Time::from_ms(300),
            begin: self.begins,
            board_patience: self.board_patience.unwrap_or(usual.board_patience),
            ..usual
        };
        self.epoch += 1;
        self.coordinator = Some(Coordinator::new(config, self.tables(), Time::from_ms(self.now)));
    }

    /// Ends it as Ctrl-C does: it gives the boards back.
    pub fn stop_coordinator(&mut self) {
        self.coordinator.as_mut().unwrap().leave(false);
        self.until("boards are given back", |world| world.has_left());
        self.coordinator = None;
    }

    /// The run is to end.
    pub fn end(&mut self) {
        self.coordinator.as_mut().unwrap().end(Time::from_ms(self.now));
    }

    pub fn has_left(&self) -> bool {
        self.coordinator.as_ref().unwrap().boards_kept().next().is_none()
    }

    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&World) -> bool) {
        let begun = self.now;
        while !is_so(self) {
            self.step(1);
            assert!(self.now - begun < 20_000, "seed {}: {what}: {:#?}", self.seed, self.notices);
        }
    }

    pub fn kill_coordinator(&mut self) {
        self.coordinator = None;
    }

    pub fn open_all(&mut self) {
        for board in &mut self.boards {
            for server in (0..self.servers.len()).filter(|at| self.servers[*at].is_alive) {
                board.open(server as u16, server);
            }
        }
    }

    pub fn kill_server(&mut self, server: u16) {
        self.servers[usize::from(server)].is_alive = false;
        self.requesting.retain(|(other, ..)| *other != server);
    }

    pub fn revive_server(&mut self, server: u16) {
        let at = usize::from(server);
        let place = (at + self.random.below(2) as usize * 3) % QPS;
        self.start_server(server, Some(place));
    }

    /// Its `recv` begins anew; which queue pair it gets, as in [`Board::give_queue_pair`].
    pub fn start_server(&mut self, server: u16, place: Option<usize>) {
        self.begin_process(server);
        self.requesting.retain(|(other, ..)| *other != server);
        for (at, board) in self.boards.iter_mut().enumerate() {
            // It closes its queue pair of before, or the board looks for one that asks, and fails it.
            let state = if place.is_none() && self.random.happens(700) { CLOSED } else { IN_ERROR };
            let is_old = |qp: &&mut QueuePair| qp.peer == address(server) && qp.state == READY_TO_SEND;
            board.qps.iter_mut().filter(is_old).for_each(|qp| qp.state = state);
            self.requesting.push((server, at, place));
        }
    }

    /// Its `recv` begins anew, knows nothing of the queue pairs before, and no board has noticed that they are dead.
    pub fn start_unaware(&mut self, server: u16) {
        self.begin_process(server);
        self.requesting.retain(|(other, ..)| *other != server);
        self.requesting.extend((0..self.boards.len()).map(|at| (server, at, None)));
    }

    fn begin_process(&mut self, server: u16) {
        let before = self.boards.iter().map(|board| board.opened).collect();
        self.servers[usize::from(server)] = Server { before, ..Server::new(self.now, 0) };
    }

    pub fn reset_board(&mut self, at: usize) {
        let (event, went, flushed) = {
            let old = &mut self.boards[at];
            (old.event, std::mem::take(&mut old.went), old.flushed)
        };
        self.boards[at] = Board { went, flushed, ..Board::new(event) };
    }

    /// One millisecond: dead queue pairs are found, events flow, messages arrive, the coordinator acts.
    pub fn step(&mut self, events: u64) {
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
            } else if self.servers[at].is_running && self.now % 100 == at as u64 {
                self.servers[at].tables_read = self.log.len() as u64;
                let view = self.heartbeat(at as u16);
                if let Some(coordinator) = &mut self.coordinator {
                    coordinator.handle_server(now, at as u16, Some(view));
                }
            }
        }
        self.incidents();
        for _ in 0..self.requesting.len() {
            let at = self.random.below(self.requesting.len() as u64) as usize;
            let (server, board, place) = self.requesting[at];
            if self.boards[board].give_queue_pair(server, place) {
                self.requesting.swap_remove(at);
            }
            if self.requesting.is_empty() {
                break;
            }
        }
        for board in self.boards.iter_mut().filter(|board| !board.is_off && !board.is_idle) {
            for _ in 0..events + self.random.below(2) {
                if self.rests_at.is_some_and(|rests| board.event >= rests) || !board.send() {
                    break;
                }
                if self.refusals.is_some() {
                    let event = board.event - 1;
                    let table = self.log.iter().rev().find(|change| change.first <= event).unwrap_or(&self.log[0]);
                    let row = event.checked_rem(table.live.len() as u64);
                    let owner = row.map(|row| address(table.live[row as usize]));
                    if board.went[&event].is_some_and(|went| Some(went) != owner) {
                        board.refused(event);
                        self.refusals = self.refusals.map(|count| count + 1);
                    }
                }
            }
        }
        let due: Vec<usize> = (0..self.wire.len()).filter(|at| self.wire[*at].0 <= self.now).rev().collect();
        let arrived: Vec<Message> = due.into_iter().map(|at| self.wire.swap_remove(at).1).collect();
        for message in arrived {
            self.deliver(now, message);
        }
        if let Some(coordinator) = &mut self.coordinator {
            if coordinator.poll_timeout() <= now || self.now.is_multiple_of(10) {
                coordinator.handle_timeout(now);
            }
        }
        self.act(now);
    }

    /// What servers in trouble do to boards, and what the others ask for.
    fn incidents(&mut self) {
        for (at, board) in self.boards.iter_mut().enumerate() {
            for number in 0..self.servers.len() as u16 {
                let (is_full, is_still) = (self.full.contains(&number), self.suspended.contains(&number));
                let is_its = |qp: &QueuePair| qp.peer == address(number) && qp.state == READY_TO_SEND;
                if is_full {
                    let its = (0..QPS).filter(|qp| is_its(&board.qps[*qp])).collect::<Vec<_>>();
                    its.into_iter().for_each(|qp| _ = board.room.entry(qp as u8).or_insert(3));
                }
                let requests =
                    self.repeats_requests && self.servers[usize::from(number)].is_alive && !is_full && !is_still;
                let is_requesting = self.requesting.iter().any(|(other, place, _)| (*other, *place) == (number, at));
                // Who has refused an event asks again a second later.
                let is_off = board.refused_by == Some(address(number));
                let requests = requests && (!is_off || self.now.is_multiple_of(1000));
                if requests && !is_requesting && !board.qps.iter().any(is_its) {
                    self.requesting.push((number, at, None));
                    board.refused_by = board.refused_by.filter(|by| *by != address(number));
                }
            }
        }
    }

    /// Its disk has room again.
    pub fn free(&mut self, server: u16) {
        self.full.remove(&server);
        self.servers[usize::from(server)].credits = SLOTS;
        for board in &mut self.boards {
            let qps = &board.qps;
            board.room.retain(|qp, _| qps[usize::from(*qp)].peer != address(server));
        }
    }

    /// The boards' queue pairs to a server fail.
    pub fn cut(&mut self, server: u16, boards: impl IntoIterator<Item = usize>) {
        for at in boards {
            let is_its = |qp: &&mut QueuePair| qp.peer == address(server) && qp.state == READY_TO_SEND;
            self.boards[at].qps.iter_mut().filter(is_its).for_each(|qp| qp.state = IN_ERROR);
        }
    }

    /// The next one of a server.
    pub fn heartbeat(&mut self, number: u16) -> ServerView {
        let tables = self.tables();
        let server = &mut self.servers[usize::from(number)];
        server.turns += 1;
        let boards = self.boards.iter().enumerate().map(|(at, board)| {
            let before = server.before.get(at).copied().unwrap_or(0);
            let its = board.qps.iter().filter(|qp| qp.peer == address(number)).map(|qp| qp.number);
            // No queue pair has the number 0.
            let queue_pair = Some(its.max().filter(|opened| *opened > before).unwrap_or(0));
            let seen = BoardAtServer { is_up: !board.is_off, credits: server.credits, slots: SLOTS, queue_pair };
            (format!("board {at}"), seen)
        });
        ServerView {
            server: Some(number),
            tables_read: server.tables_read,
            tables_digest: tables.digest(server.tables_read).unwrap_or(0),
            started: server.started,
            turns: server.turns,
            boards: boards.collect(),
        }
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
                    let rests = self.rests_at.is_some_and(|rests| self.boards[board].event >= rests);
                    self.boards[board].rests = rests || self.boards[board].is_idle;
                    let mut view = self.boards[board].carry_out(self.owner, &request);
                    if let Some(lie) = self.lies[board] {
                        lie(&mut view);
                    }
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
                Action::Request { board, request } => {
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
                Action::Notify(notice) => self.notices.push(notice),
            }
        }
    }

    pub fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step(1);
        }
    }

    /// Each event went to the server that the log says, at every board, and none was left out.
    pub fn check(&self, seed: u64) {
        let tables = self.tables();
        for (at, board) in self.boards.iter().enumerate() {
            assert_eq!(board.went.len() as u64, board.event, "seed {seed}: board {at} has left out events");
            for (event, server) in &board.went {
                if let Some(server) = server {
                    let right = tables.server_of(*event).map(address);
                    assert_eq!(
                        Some(*server),
                        right,
                        "seed {seed}: board {at} sent event {event} elsewhere: {:?}",
                        self.notices
                    );
                }
            }
        }
    }

    pub fn flows_to(&mut self, seed: u64, live: &[u16]) {
        let before: Vec<u64> = self.boards.iter().map(|board| board.event).collect();
        self.run(300);
        let coordinator = self.coordinator.as_ref().unwrap();
        assert_eq!(coordinator.log().live(), live, "seed {seed}: {:#?}", self.notices);
        assert_eq!(coordinator.boards_in_force(), self.boards.len(), "seed {seed}: {:#?}", self.notices);
        for (board, before) in self.boards.iter().zip(before) {
            assert!(
                board.event > before + 100,
                "seed {seed}: it does not send: {:?} {:?} {} {:#?}",
                board.table.rows(),
                board.qps,
                board.table.view().waits,
                self.notices
            );
        }
    }
}
