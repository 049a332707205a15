// SPDX-License-Identifier: Apache-2.0
//! The back end over the kernel's TCP: boards that speak the simplified TCP, or any program that writes the same bytes.
//! Promise: needs no privileges; accepts only the addresses of boards; a board without a free slot waits and does not
//! delay others; boards may disconnect and reconnect; connections of one address keep out no other address; a message
//! that no slot takes ends its stream, with the reason at both ends; what the kernel has acknowledged is not lost when a
//! board reconnects or a run ends.
//! Source: CMS-TCP section 3.1 (an ordinary host receives); docs/fragments.md, "In a TCP stream".

mod connection;
mod deframer;
mod ending;
mod in_process;
mod kept;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use penstock_transport::{Memory, RecvWr};
use penstock_units::Time;
use penstock_wire::{stream_refusal, Ipv4Addr, MacAddr, Psn, Qpn};
use socket2::SockRef;

use super::{
    Backend, BackendError, Completion, Counters, LinkChange, LocalAddress, LocalQp, PollMode, QpSpec, SessionClock,
};
use crate::sys::time_since_arrival;
use connection::{keep_alive, Connection, Introduced, Stream, Turn};
use deframer::DeframerCounts;
pub use in_process::TcpInProcess;
use kept::Kept;

/// Token of the listening socket.
const LISTENER: Token = Token(usize::MAX);
/// Connections of one address that have not said whose they are, next to one for each board of it.
const SILENT: usize = 8;
/// The time within which a connection must identify its board.
const PATIENCE: Time = Time::from_s(10);
/// Connections of one board of which something waits: one that reconnects again and again gets no more.
const WAITING: usize = 8;
/// Bytes read at a time: the stage of all connections.
const STAGE: usize = 256 << 10;

/// The addresses to listen on, and the allowed peers.
#[derive(Debug, Clone)]
pub struct TcpConfig {
    /// 0.0.0.0: all addresses of this machine.
    pub ip: Ipv4Addr,
    pub port: u16,
    /// Address of board i, which is source i. Others are refused.
    pub boards: Vec<Ipv4Addr>,
    /// Messages are no fragments and do not name their source: a connection is the first free board's of its address.
    pub bare: bool,
    /// What boards had acknowledged after the end of a run waits here for the next one; none: it is counted.
    pub kept: Option<PathBuf>,
}

/// The state of a board over all its connections.
#[derive(Default)]
struct End {
    slots: VecDeque<RecvWr>,
    slot_bytes: u32,
    /// The one that is read, and those that have come since: each is read to its end before the next.
    connections: VecDeque<usize>,
    /// What the last run has left of it, until that is read.
    kept: Option<Kept>,
    /// Counts of closed connections.
    before: DeframerCounts,
    cut: u64,
    /// Messages of the last run that were taken, messages for the next one, and messages that are in no run.
    kept_before: u64,
    kept_after: u64,
    between_runs: u64,
}

impl End {
    fn connection(&self) -> Option<usize> {
        self.connections.front().copied()
    }
}

/// Listens, accepts, reads.
pub struct TcpBackend {
    config: TcpConfig,
    clock: SessionClock,
    poll: Poll,
    events: Events,
    /// None: the run is over.
    listener: Option<TcpListener>,
    accepts: bool,
    ends: Vec<End>,
    connections: Vec<Option<Connection>>,
    changes: VecDeque<(u16, LinkChange)>,
    stage: Box<[u8]>,
    accepted: u64,
    refused: u64,
    last_refused: Option<Ipv4Addr>,
}

impl TcpBackend {
    /// # Errors
    /// The port cannot be listened at.
    pub fn open(config: &TcpConfig, clock: SessionClock) -> Result<TcpBackend, BackendError> {
        let at = SocketAddr::from((config.ip, config.port));
        let fail = |source: io::Error| {
            let advice = match source.kind() {
                io::ErrorKind::AddrInUse => "; another program listens there: give another --port",
                io::ErrorKind::AddrNotAvailable => {
                    "; this machine has no such address: leave --ip out for all of its own"
                }
                io::ErrorKind::PermissionDenied => "; ports below 1024 are root's: give another --port",
                _ => "",
            };
            BackendError::Unavailable(format!("TCP port {} of {}: {source}{advice}", config.port, config.ip))
        };
        let io = |source| BackendError::Io { action: "epoll".into(), source };
        let poll = Poll::new().map_err(io)?;
        let mut listener = TcpListener::bind(at).map_err(fail)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE).map_err(io)?;
        let left = |ip: &Ipv4Addr, board: u16| match &config.kept {
            Some(folder) if !config.bare => Kept::find(folder, *ip, board).map_err(|source| BackendError::Io {
                action: format!("reading what the last run has left of {ip} in {}", folder.display()).into(),
                source,
            }),
            _ => Ok(None),
        };
        let boards = config.boards.iter().zip(0..);
        let ends = boards.map(|(ip, board)| Ok(End { kept: left(ip, board)?, ..End::default() }));
        let ends = ends.collect::<Result<_, BackendError>>()?;
        Ok(TcpBackend {
            config: config.clone(),
            clock,
            poll,
            events: Events::with_capacity(1024),
            listener: Some(listener),
            accepts: true,
            ends,
            connections: Vec::new(),
            changes: VecDeque::new(),
            stage: vec![0; STAGE].into(),
            accepted: 0,
            refused: 0,
            last_refused: None,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn listens_at(&self) -> io::Result<SocketAddr> {
        self.listener.as_ref().ok_or(io::ErrorKind::NotConnected)?.local_addr()
    }

    fn accept(&mut self) {
        while let Some(listener) = self.listener.as_ref().filter(|_| self.accepts) {
            match listener.accept() {
                Ok((stream, from)) => self.take(stream, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.accepts = false,
                // One that was gone before it was taken; no more descriptors: it is tried again at the next turn.
                Err(_) => return,
            }
        }
    }

    /// A connection has come: it stays if it is from a board.
    fn take(&mut self, mut stream: TcpStream, from: SocketAddr) {
        let SocketAddr::V4(from) = from else { return };
        let ip = *from.ip();
        let boards = self.config.boards.iter().filter(|board| **board == ip).count();
        if boards == 0 {
            self.refused += 1;
            if self.last_refused != Some(ip) {
                tracing::warn!("connection from {from} refused: no board has this address");
                self.last_refused = Some(ip);
            }
            return;
        }
        self.make_room(ip, boards + SILENT);
        let at = self.place();
        if self.poll.registry().register(&mut stream, Token(at), Interest::READABLE).is_err() {
            return;
        }
        self.accepted += 1;
        let longest = self.ends.iter().map(|end| end.slot_bytes).max().unwrap_or(0);
        self.connections[at] = Some(Connection::new(Stream::Socket(stream), ip, self.clock.now(), longest));
    }

    fn place(&mut self) -> usize {
        let free = self.connections.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        })
    }

    /// Closes the oldest of too many connections of an address that have not introduced themselves.
    fn make_room(&mut self, ip: Ipv4Addr, most: usize) {
        let is_silent = |connection: &Connection| connection.ip == ip && connection.board.is_none();
        loop {
            let silent = self.connections.iter().enumerate().filter_map(|(at, connection)| {
                connection.as_ref().filter(|connection| is_silent(connection)).map(|connection| (connection.since, at))
            });
            let silent: Vec<(Time, usize)> = silent.collect();
            let Some((_, at)) = silent.iter().min().filter(|_| silent.len() >= most).copied() else { return };
            // What it has sent since it was accepted may not have been read yet.
            self.connections[at].iter_mut().for_each(Connection::became_readable);
            self.introduce(at, self.clock.now());
            if self.connections[at].as_ref().is_some_and(is_silent) {
                let is_repeated = self.last_refused.replace(ip) == Some(ip);
                self.dismiss(
                    at,
                    if is_repeated {
                        ""
                    } else {
                        "too many connections of this address have not introduced themselves"
                    },
                );
            }
        }
    }

    /// Identifies the board of a new connection.
    fn introduce(&mut self, at: usize, now: Time) {
        let Some(connection) = self.connections[at].as_mut() else { return };
        let ip = connection.ip;
        let board = match connection.introduce() {
            Ok(Introduced::NotYet) if now < connection.since + PATIENCE => return,
            Ok(Introduced::NotYet) => return self.dismiss(at, "it has not introduced itself"),
            Err(_) => return self.dismiss(at, ""),
            Ok(Introduced::As(source, event)) if !self.config.bare => Some((source, event)),
            Ok(_) => None,
        };
        let event = board.and_then(|(_, event)| event);
        let is_its = |board: &u16| self.config.boards.get(usize::from(*board)) == Some(&ip);
        let board = match board {
            Some((source, _)) => match is_its(&source) {
                true => source,
                false => {
                    return self.dismiss(at, &format!("its first fragment is of source {source}, which is not there"))
                }
            },
            // What is damaged or bare has no source: the first board of this address that has no connection.
            None => {
                let is_free = |k: &usize| self.config.boards[*k] == ip && self.ends[*k].connections.is_empty();
                let free = (0..self.ends.len()).find(is_free);
                match free {
                    Some(board) => board as u16,
                    None => return self.dismiss(at, "all boards of this address are connected"),
                }
            }
        };
        if self.ends[usize::from(board)].connections.len() >= WAITING {
            return self.dismiss(at, "its connections before this one are not read yet");
        }
        if let Some(connection) = self.connections[at].as_mut() {
            connection.board = Some(board);
            connection.stream.socket().into_iter().for_each(|stream| keep_alive(stream));
        }
        self.take_up(board, event);
        let end = &mut self.ends[usize::from(board)];
        end.connections.push_back(at);
        match end.connection() {
            Some(old) if old != at => {
                // Of one whose board is gone nothing more comes: what is there is all.
                self.connections[old].iter_mut().for_each(Connection::became_readable);
            }
            _ => self.changes.push_back((board, LinkChange::Up)),
        }
    }

    /// What the last run has left of a board comes before what it sends now, from this event on if that is known. It is
    /// of no use if the board has begun again.
    fn take_up(&mut self, board: u16, event: Option<u64>) {
        let ip = self.config.boards[usize::from(board)];
        let end = &mut self.ends[usize::from(board)];
        let Some(kept) = end.kept.take_if(|_| end.connections.is_empty()) else { return };
        let messages = kept.messages;
        if !kept.goes_on_at(event) {
            let event = event.unwrap_or_default();
            tracing::warn!(
                "{ip}: what the last run has left of it, {messages}, is in no run: it begins at event {event}"
            );
            end.between_runs += messages.count;
            return kept.remove();
        }
        match kept.open() {
            Ok(bytes) => {
                let (at, longest) = (self.place(), self.ends[usize::from(board)].slot_bytes);
                let mut connection = Connection::new(Stream::Kept(bytes), ip, self.clock.now(), longest);
                connection.board = Some(board);
                self.connections[at] = Some(connection);
                let end = &mut self.ends[usize::from(board)];
                end.kept = Some(kept);
                end.connections.push_back(at);
                self.changes.push_back((board, LinkChange::Up));
            }
            Err(error) => tracing::warn!("{ip}: what the last run has left of it, {messages}, cannot be read: {error}"),
        }
    }

    fn dismiss(&mut self, at: usize, why: &str) {
        if let Some(mut connection) = self.connections[at].take() {
            self.refused += 1;
            connection.stream.socket().map(|stream| self.poll.registry().deregister(stream));
            if !why.is_empty() {
                tracing::warn!("connection from {} refused: {why}", connection.ip);
            }
        }
    }

    /// The next message of a board's stream has `len` bytes, none or more than a slot: the stream ends at both ends with
    /// the reason. A board that cannot read it sees the RST.
    fn refuse(&mut self, at: usize, len: u32) {
        let Some(connection) = self.connections[at].as_mut() else { return };
        let slot = connection.board.map_or(0, |board| self.ends[usize::from(board)].slot_bytes);
        let why = match len {
            0 => "a message of no bytes".to_owned(),
            _ => format!(
                "a message of {len} bytes, and slots of {slot}: `penstock recv --slot-size {len}`, or shorter messages"
            ),
        };
        if let Some(stream) = connection.stream.socket() {
            let refusal: Vec<u8> = stream_refusal(&why).collect();
            // Best effort: a peer that does not read loses the reason and not the end.
            let _ = stream.write(&refusal);
            let _ = SockRef::from(&*stream).set_linger(Some(Duration::ZERO));
        }
        self.over(at, LinkChange::Refused(why));
    }

    /// The connection that is read of a board is over: the next one has its turn.
    fn over(&mut self, at: usize, change: LinkChange) {
        let Some(mut connection) = self.connections[at].take() else { return };
        connection.stream.socket().map(|stream| self.poll.registry().deregister(stream));
        let Some(board) = connection.board else { return };
        let end = &mut self.ends[usize::from(board)];
        // The slot is filled by the board's next message.
        if let Some(slot) = connection.take_slot() {
            end.slots.push_front(slot);
        }
        end.cut += u64::from(connection.is_cut());
        end.before = sum(end.before, connection.counts());
        end.connections.retain(|one| *one != at);
        let next = end.connection().and_then(|next| self.connections[next].as_mut());
        let is_kept = matches!(connection.stream, Stream::Kept(_));
        if let Some(kept) = end.kept.take_if(|_| is_kept) {
            end.kept_before += connection.messages;
            let is_refused = matches!(change, LinkChange::Refused(_));
            // One that cannot be read stays.
            if kept.messages.count == connection.messages {
                kept.remove();
            }
            if let Some(next) = next.filter(|_| !is_refused) {
                // For the session it is one connection.
                (next.announced, next.received_up_to) = (true, kept.messages.events.map(|(_, last)| last));
                return;
            }
        }
        self.changes.push_back((board, change));
        if self.ends[usize::from(board)].connection().is_some() {
            self.changes.push_back((board, LinkChange::Up));
        }
    }

    /// One look at everything that may have something. Whether anything was done.
    fn look(&mut self, memory: &mut dyn Memory, out: &mut Vec<Completion>) -> bool {
        self.accept();
        let now = self.clock.now();
        let mut busy = false;
        for at in 0..self.connections.len() {
            let Some(connection) = self.connections[at].as_mut() else { continue };
            let Some(board) = connection.board else {
                self.introduce(at, now);
                continue;
            };
            let end = &mut self.ends[usize::from(board)];
            if end.connection() != Some(at) {
                continue;
            }
            let was_held_back = connection.is_held_back();
            if connection.has_work(&end.slots) {
                match connection.turn(board, &mut end.slots, memory, &mut self.stage, out) {
                    Turn::Over(why) => self.over(at, LinkChange::Down(why)),
                    Turn::Refused(len) => self.refuse(at, len),
                    // Asking again whether a message may be taken is no work.
                    Turn::Waits if was_held_back && connection.is_held_back() => continue,
                    Turn::Waits | Turn::Busy => {}
                }
                busy = true;
            } else if connection.is_empty() && connection.announced && end.connections.len() > 1 {
                let why = format!("{}: it has opened another connection", connection.ip);
                self.over(at, LinkChange::Down(why));
                busy = true;
            }
        }
        busy
    }

    /// Gets arrived data from the kernel; sleeps for up to `limit`.
    fn listen(&mut self, limit: Duration) -> Result<bool, BackendError> {
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(BackendError::Io { action: "epoll".into(), source: error });
            }
            _ => {}
        }
        let mut any = false;
        for event in &self.events {
            any = true;
            match event.token() {
                LISTENER => self.accepts = true,
                Token(at) => {
                    if let Some(Some(connection)) = self.connections.get_mut(at) {
                        connection.became_readable();
                    }
                }
            }
        }
        Ok(any)
    }
}

fn sum(a: DeframerCounts, b: DeframerCounts) -> DeframerCounts {
    DeframerCounts {
        resynchronised: a.resynchronised + b.resynchronised,
        bytes_skipped: a.bytes_skipped + b.bytes_skipped,
        messages_refused: a.messages_refused + b.messages_refused,
    }
}

impl Backend for TcpBackend {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn address(&self) -> LocalAddress {
        LocalAddress::of_ip(self.config.ip, MacAddr::default())
    }

    fn notice(&self) -> Option<String> {
        let left = || self.ends.iter().filter_map(|end| end.kept.as_ref());
        let (boards, messages) = (left().count(), left().map(|kept| kept.messages.count).sum::<u64>());
        let folder = self.config.kept.as_ref().filter(|_| boards > 0)?;
        Some(format!(
            "{messages} messages of {boards} boards came after the last run's end; they are in this one when their boards \
             connect ({})",
            folder.display()
        ))
    }

    fn connects_itself(&self) -> bool {
        true
    }

    fn poll_link(&mut self) -> Option<(u16, LinkChange)> {
        let (board, change) = self.changes.pop_front()?;
        if matches!(change, LinkChange::Up) {
            let at = self.ends[usize::from(board)].connection();
            if let Some(connection) = at.and_then(|at| self.connections[at].as_mut()) {
                connection.announced = true;
            }
        }
        Some((board, change))
    }

    fn silent_for(&self, board: u16) -> Option<Time> {
        let at = self.ends.get(usize::from(board))?.connections.back()?;
        let Stream::Socket(stream) = &self.connections[*at].as_ref()?.stream else { return None };
        time_since_arrival(stream).ok().map(Time::from_duration)
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        let end = self.ends.get_mut(usize::from(spec.board)).ok_or(BackendError::NoQp { board: spec.board })?;
        end.slot_bytes = (spec.len / spec.max_receives.max(1) as usize) as u32;
        let ring = spec.memory.addr();
        Ok(LocalQp { qpn: Qpn::new(0), psn: Psn::new(0), rkey: 0, base: ring, ring, ip: self.config.ip })
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        let end = self.ends.get_mut(usize::from(board)).ok_or(BackendError::NoQp { board })?;
        end.slots.extend(receives.iter().filter(|slot| slot.len > 0));
        Ok(())
    }

    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        let begun = self.clock.now();
        loop {
            self.listen(Duration::ZERO)?;
            let busy = self.look(memory, out);
            let now = self.clock.now();
            if busy || !out.is_empty() || !self.changes.is_empty() || now >= deadline {
                return Ok(());
            }
            let spins = mode.spin().is_none_or(|spin| now < begun + Time::from_duration(spin));
            if !spins && self.listen(self.clock.until(deadline))? {
                continue;
            }
        }
    }

    fn hang_up(&mut self, memory: &mut dyn Memory, limit: Time) -> Result<(), BackendError> {
        self.end_streams(memory, limit)
    }

    fn close_qp(&mut self, board: u16, _out: &mut Vec<Completion>) -> Result<(), BackendError> {
        while let Some(at) = self.ends.get(usize::from(board)).and_then(End::connection) {
            self.over(at, LinkChange::Down("closed by this server".to_owned()));
        }
        Ok(())
    }

    fn counters(&mut self) -> Counters {
        vec![("connections_accepted".into(), self.accepted), ("connections_refused".into(), self.refused)]
    }

    fn board_counters(&self, board: u16) -> Counters {
        let Some(end) = self.ends.get(usize::from(board)) else { return Vec::new() };
        let now = end.connection().and_then(|at| self.connections[at].as_ref()).map(Connection::counts);
        let all = sum(end.before, now.unwrap_or_default());
        vec![
            ("resynchronised".into(), all.resynchronised),
            ("bytes_skipped".into(), all.bytes_skipped),
            ("messages_refused".into(), all.messages_refused),
            ("messages_cut".into(), end.cut),
            ("messages_of_last_run".into(), end.kept_before),
            ("messages_for_next_run".into(), end.kept_after),
            ("messages_between_runs".into(), end.between_runs),
        ]
    }
}
