// SPDX-License-Identifier: Apache-2.0
//! The back end over the kernel's TCP: boards that speak the simplified TCP, or any program that writes the same bytes.
//! Promise: needs no privileges; accepts only the addresses of boards; a board without a free slot waits and does not
//! delay others; boards may disconnect and reconnect; connections of one address keep out no other address; a message
//! that no slot takes ends its stream, with the reason at both ends.
//! Source: CMS-TCP section 3.1 (an ordinary host receives); docs/fragments.md, "In a TCP stream".

mod connection;
mod deframer;
mod in_process;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use penstock_transport::{Memory, RecvWr};
use penstock_units::Time;
use penstock_wire::{stream_refusal, Ipv4Addr, MacAddr, Psn, Qpn};
use socket2::SockRef;

use super::{
    Backend, BackendError, Completion, Counters, LinkChange, LocalAddress, LocalQp, PeerQp, PollMode, PoolSpec, QpSpec,
    SessionClock,
};
use crate::sys::heard_ago;
use connection::{keep_alive, Connection, Introduced, Turn};
use deframer::DeframerCounts;
pub use in_process::TcpInProcess;

/// Of the listening socket.
const LISTENER: Token = Token(usize::MAX);
/// Connections of one address that have not said whose they are, next to one for each board of it.
const SILENT: usize = 8;
/// The time within which a connection must identify its board.
const PATIENCE: Time = Time::from_s(10);
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
    /// Messages are no fragments and do not tell their source: a connection is the first free board's of its address.
    pub bare: bool,
}

/// The state of a board over all its connections.
#[derive(Default)]
struct End {
    slots: VecDeque<RecvWr>,
    slot_bytes: u32,
    connection: Option<usize>,
    /// Of connections that are over.
    before: DeframerCounts,
    cut: u64,
}

/// Listens, accepts, reads.
pub struct TcpBackend {
    config: TcpConfig,
    clock: SessionClock,
    poll: Poll,
    events: Events,
    listener: TcpListener,
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
        let ends = config.boards.iter().map(|_| End::default()).collect();
        Ok(TcpBackend {
            config: config.clone(),
            clock,
            poll,
            events: Events::with_capacity(1024),
            listener,
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
        self.listener.local_addr()
    }

    fn accept(&mut self) {
        while self.accepts {
            match self.listener.accept() {
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
        let free = self.connections.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        if self.poll.registry().register(&mut stream, Token(at), Interest::READABLE).is_err() {
            return;
        }
        self.accepted += 1;
        let longest = self.ends.iter().map(|end| end.slot_bytes).max().unwrap_or(0);
        self.connections[at] = Some(Connection::new(stream, ip, self.clock.now(), longest));
    }

    /// Of too many connections of an address that have not said whose they are the oldest gives way.
    fn make_room(&mut self, ip: Ipv4Addr, most: usize) {
        let is_silent = |connection: &Connection| connection.ip == ip && connection.board.is_none();
        let silent = self.connections.iter().enumerate().filter_map(|(at, connection)| {
            connection.as_ref().filter(|connection| is_silent(connection)).map(|connection| (connection.since, at))
        });
        let silent: Vec<(Time, usize)> = silent.collect();
        let oldest = silent.iter().min().filter(|_| silent.len() >= most);
        if let Some((_, at)) = oldest {
            let is_known = self.last_refused.replace(ip) == Some(ip);
            self.dismiss(*at, if is_known { "" } else { "too many of this address have not said whose they are" });
        }
    }

    /// Identifies the board of a new connection.
    fn introduce(&mut self, at: usize, now: Time) {
        let Some(connection) = self.connections[at].as_mut() else { return };
        let ip = connection.ip;
        let board = match connection.introduce() {
            Ok(Introduced::NotYet) if now < connection.since + PATIENCE => return,
            Ok(Introduced::NotYet) => return self.dismiss(at, "it has not said whose it is"),
            Err(_) => return self.dismiss(at, ""),
            Ok(Introduced::As(source)) if !self.config.bare => Some(source),
            Ok(_) => None,
        };
        let is_its = |board: &u16| self.config.boards.get(usize::from(*board)) == Some(&ip);
        let board = match board {
            Some(source) => match is_its(&source) {
                true => source,
                false => {
                    return self.dismiss(at, &format!("its first fragment is of source {source}, which is not there"))
                }
            },
            // What is damaged or bare tells no source: the first board of this address that has no connection.
            None => {
                let free =
                    (0..self.ends.len()).find(|k| self.config.boards[*k] == ip && self.ends[*k].connection.is_none());
                match free {
                    Some(board) => board as u16,
                    None => return self.dismiss(at, "all boards of this address are connected"),
                }
            }
        };
        if let Some(old) = self.ends[usize::from(board)].connection {
            self.over(old, LinkChange::Down(format!("{ip}: it has opened another connection")));
        }
        self.ends[usize::from(board)].connection = Some(at);
        if let Some(connection) = self.connections[at].as_mut() {
            connection.board = Some(board);
            keep_alive(&connection.stream);
        }
        self.changes.push_back((board, LinkChange::Up));
    }

    fn dismiss(&mut self, at: usize, why: &str) {
        if let Some(mut connection) = self.connections[at].take() {
            self.refused += 1;
            let _ = self.poll.registry().deregister(&mut connection.stream);
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
        let refusal: Vec<u8> = stream_refusal(&why).collect();
        // Best effort: a peer that does not read loses the reason and not the end.
        let _ = connection.stream.write(&refusal);
        let _ = SockRef::from(&connection.stream).set_linger(Some(Duration::ZERO));
        self.over(at, LinkChange::Refused(why));
    }

    /// The connection of a board is over.
    fn over(&mut self, at: usize, change: LinkChange) {
        let Some(mut connection) = self.connections[at].take() else { return };
        let _ = self.poll.registry().deregister(&mut connection.stream);
        let Some(board) = connection.board else { return };
        let end = &mut self.ends[usize::from(board)];
        // The slot is filled by the board's next message.
        if let Some(slot) = connection.take_slot() {
            end.slots.push_front(slot);
        }
        end.cut += u64::from(connection.is_cut());
        end.before = sum(end.before, connection.counts());
        if end.connection == Some(at) {
            end.connection = None;
        }
        self.changes.push_back((board, change));
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
            if !connection.has_work(&end.slots) {
                continue;
            }
            busy = true;
            match connection.turn(board, &mut end.slots, memory, &mut self.stage, out) {
                Turn::Over(why) => self.over(at, LinkChange::Down(why)),
                Turn::Refused(len) => self.refuse(at, len),
                Turn::Waits | Turn::Busy => {}
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

    fn connects_itself(&self) -> bool {
        true
    }

    fn poll_link(&mut self) -> Option<(u16, LinkChange)> {
        let (board, change) = self.changes.pop_front()?;
        if matches!(change, LinkChange::Up) {
            let at = self.ends[usize::from(board)].connection;
            if let Some(connection) = at.and_then(|at| self.connections[at].as_mut()) {
                connection.announced = true;
            }
        }
        Some((board, change))
    }

    fn heard(&self, board: u16) -> Option<Time> {
        let at = self.ends.get(usize::from(board))?.connection?;
        heard_ago(&self.connections[at].as_ref()?.stream).ok().map(Time::from_duration)
    }

    fn share_receives(&mut self, _pool: &PoolSpec) -> Result<u64, BackendError> {
        Err(BackendError::Unavailable("--srq: each stream has a ring of its own over TCP; leave it out".to_owned()))
    }

    fn post_shared(&mut self, _receives: &[RecvWr]) -> Result<(), BackendError> {
        Err(BackendError::NoPool)
    }

    fn ran_low(&mut self) -> u64 {
        0
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        let end = self.ends.get_mut(usize::from(spec.board)).ok_or(BackendError::NoQp { board: spec.board })?;
        end.slot_bytes = (spec.len / spec.max_receives.max(1) as usize) as u32;
        Ok(LocalQp { qpn: Qpn::new(0), psn: Psn::new(0), rkey: 0, base: spec.memory.addr(), ip: self.config.ip })
    }

    fn connect(&mut self, _board: u16, _peer: &PeerQp) -> Result<(), BackendError> {
        Ok(())
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

    fn close_qp(&mut self, board: u16, _out: &mut Vec<Completion>) -> Result<(), BackendError> {
        if let Some(at) = self.ends.get(usize::from(board)).and_then(|end| end.connection) {
            self.over(at, LinkChange::Down("closed by this server".to_owned()));
        }
        Ok(())
    }

    fn fault(&self, _board: u16) -> Option<String> {
        None
    }

    fn counters(&mut self) -> Counters {
        vec![("connections_accepted".into(), self.accepted), ("connections_refused".into(), self.refused)]
    }

    fn board_counters(&self, board: u16) -> Counters {
        let Some(end) = self.ends.get(usize::from(board)) else { return Vec::new() };
        let now = end.connection.and_then(|at| self.connections[at].as_ref()).map(Connection::counts);
        let all = sum(end.before, now.unwrap_or_default());
        vec![
            ("resynchronised".into(), all.resynchronised),
            ("bytes_skipped".into(), all.bytes_skipped),
            ("messages_refused".into(), all.messages_refused),
            ("messages_cut".into(), end.cut),
        ]
    }
}
