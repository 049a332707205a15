// SPDX-License-Identifier: Apache-2.0
//! Many boards served by one thread: their clients, and the UDP sockets that these share.
//! Promise: a datagram from an address outside the fleet changes nothing; silent boards do not delay the others.
//! Replies fit the sockets' buffers: a socket serves few boards, and each has few packets in flight. A reply has the
//! time at which the kernel took it, however long it waited to be read.

use crate::client::{Client, Patience, RequestId};
use crate::map::{Map, BOARD};
use crate::marks::Marks;
use crate::packet::PORT;
use crate::request::{Outcome, Request};
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{recvmmsg, sendmmsg, setsockopt, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn};
use nix::sys::time::TimeSpec;
use penstock_units::Time;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

/// Boards that share a socket: Linux gives it a buffer of 208 KiB, and a reply takes 2304 bytes at most.
const BOARDS_A_SOCKET: usize = 16;
/// Datagrams of one system call.
const BATCH: usize = 32;
/// A reply is at most 1472 bytes long; what is longer is none.
const DATAGRAM: usize = 2048;

/// Where a board listens: `ADDRESS` or `ADDRESS:PORT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoardAddress(pub SocketAddrV4);

impl FromStr for BoardAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, port) = text.split_once(':').map_or((text, None), |(ip, port)| (ip, Some(port)));
        let ip = resolve(ip)?;
        let port = match port {
            None => PORT,
            Some(port) => port.parse().map_err(|_| format!("{port:?} is no UDP port; allowed are 1 to 65535"))?,
        };
        Ok(BoardAddress(SocketAddrV4::new(ip, port)))
    }
}

/// The IPv4 address that the text is, or that a host of this name has.
fn resolve(host: &str) -> Result<Ipv4Addr, String> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let is_name = host.starts_with(|c: char| c.is_ascii_alphabetic())
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    if !is_name {
        return Err(format!("{host:?} is no IPv4 address; write one as 10.0.0.2 or 10.0.0.2:50001"));
    }
    let unknown =
        |why: &dyn fmt::Display| format!("{host:?} is no IPv4 address, and no host of this name is found: {why}");
    let found = (host, PORT).to_socket_addrs().map_err(|error| unknown(&error))?;
    let v4 = |address| match address {
        SocketAddr::V4(address) => Some(*address.ip()),
        SocketAddr::V6(_) => None,
    };
    found.into_iter().find_map(v4).ok_or_else(|| unknown(&"it has IPv6 addresses alone"))
}

impl fmt::Display for BoardAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.port() == PORT {
            write!(f, "{}", self.0.ip())
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Why boards cannot be reached at all.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FleetError {
    #[error("{0} stands twice in the list of boards; each board has an address of its own")]
    Twice(BoardAddress),
    #[error("cannot open a UDP socket: {0}")]
    Socket(io::Error),
    #[error("cannot send to or receive from boards: {0}")]
    Io(io::Error),
}

struct Socket {
    socket: UdpSocket,
    out: VecDeque<(Vec<u8>, SockaddrIn)>,
}

/// Boards, by their number in the list.
pub struct Fleet {
    map: &'static Map,
    clients: Vec<Client>,
    patience: Time,
    marks: Marks,
    addresses: Vec<BoardAddress>,
    numbers: HashMap<SocketAddrV4, usize>,
    sockets: Vec<Socket>,
    /// Boards that may have something to send or to report.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    outcomes: VecDeque<(usize, RequestId, Outcome)>,
    /// When each board's last datagram came.
    last_answer: Vec<Time>,
    /// Everything that came before was taken.
    taken: Time,
    /// No client has anything due before.
    due: Time,
    start: Instant,
    gather: Time,
    buffers: Vec<[u8; DATAGRAM]>,
}

impl Fleet {
    /// Opens the sockets. `seed` distinguishes this client from others of the same boards: use a random number.
    ///
    /// # Errors
    /// An address occurs twice, or there is no socket.
    pub fn open(addresses: &[BoardAddress], patience: Patience, seed: u64) -> Result<Fleet, FleetError> {
        let mut numbers = HashMap::new();
        for (number, address) in addresses.iter().enumerate() {
            if numbers.insert(address.0, number).is_some() {
                return Err(FleetError::Twice(*address));
            }
        }
        let sockets = addresses.len().div_ceil(BOARDS_A_SOCKET);
        let sockets = (0..sockets).map(|_| Socket::open()).collect::<io::Result<_>>().map_err(FleetError::Socket)?;
        let client = |number: usize| Client::new(patience, seed.wrapping_add(number as u64));
        Ok(Fleet {
            map: &BOARD,
            clients: (0..addresses.len()).map(client).collect(),
            patience: patience.0,
            marks: Marks::default(),
            addresses: addresses.to_vec(),
            numbers,
            sockets,
            touched: Vec::new(),
            is_touched: vec![false; addresses.len()],
            outcomes: VecDeque::new(),
            last_answer: vec![Time::ZERO; addresses.len()],
            taken: Time::ZERO,
            due: Time::MAX,
            start: Instant::now(),
            gather: Time::ZERO,
            buffers: vec![[0; DATAGRAM]; BATCH],
        })
    }

    /// Time that [`Fleet::turn`] waits for others after the first reply, to take them together: with hundreds of boards
    /// this saves most system calls. Zero, unless it is set.
    pub fn gather(&mut self, time: Time) {
        self.gather = time;
    }

    /// Devices with another register map than the board's.
    #[must_use]
    pub fn with(self, map: &'static Map) -> Fleet {
        Fleet { map, ..self }
    }

    /// Shares what other fleets of this program have seen of other operators' marks.
    #[must_use]
    pub fn sharing(self, marks: Marks) -> Fleet {
        Fleet { marks, ..self }
    }

    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The time to wait for a silent board.
    pub(crate) fn patience(&self) -> Time {
        self.patience
    }

    /// The register map by which changes are planned and reported.
    pub fn map(&self) -> &'static Map {
        self.map
    }

    /// The boards in the order of their numbers.
    pub fn addresses(&self) -> &[BoardAddress] {
        &self.addresses
    }

    /// Time since the fleet was opened.
    pub fn now(&self) -> Time {
        Time::from_duration(self.start.elapsed())
    }

    /// Retransmitted packets and unexpected replies, over all boards.
    pub fn lost_and_found(&self) -> (u64, u64) {
        self.clients.iter().fold((0, 0), |(lost, strays), client| {
            let (more, unknown) = client.lost_and_found();
            (lost + more, strays + unknown)
        })
    }

    /// Adds a request of a board; [`Fleet::turn`] sends it.
    pub fn submit(&mut self, board: usize, request: &Request) -> RequestId {
        let now = self.now();
        let id = self.clients[board].submit(now, request);
        self.touch(board);
        id
    }

    /// Whether a board has nothing on its way.
    pub fn is_idle(&self, board: usize) -> bool {
        self.clients[board].is_idle()
    }

    /// When the board's last datagram came. Linux begins to note these times a few milliseconds after the first socket
    /// of the machine has asked for them; until then this is the time of the [`Fleet::turn`] that took the datagram.
    pub fn last_answer(&self, board: usize) -> Time {
        self.last_answer[board]
    }

    /// The next request that has ended.
    pub fn poll_outcome(&mut self) -> Option<(usize, RequestId, Outcome)> {
        self.outcomes.pop_front()
    }

    /// Sends what is to be sent, waits until something has come or `wait` is over, and takes what has come.
    ///
    /// # Errors
    /// The operating system refuses to send or to receive, for another reason than a board that cannot be reached.
    pub fn turn(&mut self, wait: Time) -> Result<(), FleetError> {
        self.collect();
        self.flush().map_err(FleetError::Io)?;
        let now = self.now();
        let end = if self.outcomes.is_empty() { self.due.min(now.saturating_add(wait)) } else { now };
        let mut readable = self.wait(end.saturating_sub(now)).map_err(FleetError::Io)?;
        if !readable.is_empty() && self.gather > Time::ZERO {
            std::thread::sleep(end.saturating_sub(self.now()).min(self.gather).to_duration());
            readable = self.wait(Time::ZERO).map_err(FleetError::Io)?;
        }
        for at in readable {
            self.receive(at).map_err(FleetError::Io)?;
        }
        let now = self.now();
        self.taken = now;
        if now >= self.due {
            for board in 0..self.clients.len() {
                if self.clients[board].poll_timeout().is_some_and(|due| due <= now) {
                    self.clients[board].handle_timeout(now);
                    self.touch(board);
                }
            }
            self.due = self.clients.iter().filter_map(Client::poll_timeout).min().unwrap_or(Time::MAX);
        }
        self.collect();
        self.flush().map_err(FleetError::Io)
    }

    /// Carries out one request of each of these boards, side by side; outcomes in their order.
    ///
    /// # Errors
    /// As [`Fleet::turn`].
    pub fn run(&mut self, requests: &[(usize, Request)]) -> Result<Vec<Outcome>, FleetError> {
        let mut places = HashMap::new();
        for (place, (board, request)) in requests.iter().enumerate() {
            places.insert((*board, self.submit(*board, request)), place);
        }
        let mut outcomes: Vec<Option<Outcome>> = requests.iter().map(|_| None).collect();
        while !places.is_empty() {
            self.turn(Time::from_ms(100))?;
            while let Some((board, id, outcome)) = self.poll_outcome() {
                if let Some(place) = places.remove(&(board, id)) {
                    outcomes[place] = Some(outcome);
                }
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    /// Waits; takes what comes meanwhile.
    ///
    /// # Errors
    /// As [`Fleet::turn`].
    pub(crate) fn pause(&mut self, time: Time) -> Result<(), FleetError> {
        let end = self.now().saturating_add(time);
        while self.now() < end {
            self.turn(end.saturating_sub(self.now()))?;
        }
        Ok(())
    }

    fn touch(&mut self, board: usize) {
        if !std::mem::replace(&mut self.is_touched[board], true) {
            self.touched.push(board);
        }
    }

    /// Takes from the clients what they have to send and to report.
    fn collect(&mut self) {
        for board in self.touched.drain(..) {
            self.is_touched[board] = false;
            let client = &mut self.clients[board];
            let socket = &mut self.sockets[board / BOARDS_A_SOCKET];
            let to = SockaddrIn::from(self.addresses[board].0);
            while let Some(datagram) = client.poll_transmit() {
                socket.out.push_back((datagram, to));
            }
            while let Some((id, outcome)) = client.poll_outcome() {
                self.outcomes.push_back((board, id, outcome));
            }
            self.due = self.due.min(client.poll_timeout().unwrap_or(Time::MAX));
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sockets.iter_mut().try_for_each(Socket::send)
    }

    /// Waits until a socket can be read; those that can.
    fn wait(&self, wait: Time) -> io::Result<Vec<usize>> {
        let is_full = |socket: &Socket| !socket.out.is_empty();
        let flags =
            |socket: &Socket| if is_full(socket) { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut fds: Vec<PollFd> =
            self.sockets.iter().map(|socket| PollFd::new(socket.socket.as_fd(), flags(socket))).collect();
        match ppoll(&mut fds, Some(TimeSpec::from_duration(wait.to_duration())), None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        // An error waits to be taken, too.
        let is_readable = |fd: &PollFd| fd.revents().is_some_and(|events| events.intersects(!PollFlags::POLLOUT));
        Ok(fds.iter().enumerate().filter(|(_, fd)| is_readable(fd)).map(|(at, _)| at).collect())
    }

    /// Takes all that has come to a socket.
    fn receive(&mut self, at: usize) -> io::Result<()> {
        loop {
            let now = self.now();
            let date = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            let fd = self.sockets[at].socket.as_raw_fd();
            let mut from = [None; BATCH];
            let mut lengths = [0; BATCH];
            let mut stamps = [None; BATCH];
            let mut count = 0;
            {
                let mut slices: Vec<[IoSliceMut; 1]> =
                    self.buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
                let space = nix::cmsg_space!(TimeSpec);
                let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, Some(space));
                let received = recvmmsg(fd, &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None);
                match received {
                    Ok(messages) => {
                        for message in messages {
                            (from[count], lengths[count]) = (message.address, message.bytes);
                            stamps[count] = message.cmsgs()?.find_map(stamp);
                            count += 1;
                        }
                    }
                    Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
            for message in 0..count {
                let Some(address) = from[message] else { continue };
                let Some(board) = self.numbers.get(&SocketAddrV4::new(address.ip(), address.port())).copied() else {
                    continue;
                };
                let age = stamps[message].map_or(Duration::ZERO, |stamp| date.saturating_sub(stamp));
                // A clock that was set in between does not move an arrival out of this turn.
                let arrival = now.saturating_sub(Time::from_duration(age)).max(self.taken);
                self.last_answer[board] = arrival;
                self.clients[board].handle_datagram(arrival, &self.buffers[message][..lengths[message]]);
                self.touch(board);
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }
}

/// The kernel's time of a datagram, since 1970.
fn stamp(message: ControlMessageOwned) -> Option<Duration> {
    match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time.into()),
        _ => None,
    }
}

impl Socket {
    fn open() -> io::Result<Socket> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        Ok(Socket { socket, out: VecDeque::new() })
    }

    /// Sends what waits, as far as there is room. A board that cannot be reached is one that does not answer.
    fn send(&mut self) -> io::Result<()> {
        while !self.out.is_empty() {
            let count = self.out.len().min(BATCH);
            let slices: Vec<[IoSlice; 1]> =
                self.out.iter().take(count).map(|(bytes, _)| [IoSlice::new(bytes)]).collect();
            let addresses: Vec<Option<SockaddrIn>> = self.out.iter().take(count).map(|(_, to)| Some(*to)).collect();
            let mut headers = MultiHeaders::<SockaddrIn>::preallocate(count, None);
            let fd = self.socket.as_raw_fd();
            let sent = sendmmsg(fd, &mut headers, slices.iter(), &addresses, [], MsgFlags::MSG_DONTWAIT);
            let sent = match sent {
                Ok(results) => results.count(),
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => 0,
                // No way to this address, or a filter: the first of the batch goes nowhere.
                Err(
                    Errno::EHOSTUNREACH
                    | Errno::ENETUNREACH
                    | Errno::ECONNREFUSED
                    | Errno::EPERM
                    | Errno::EINVAL
                    | Errno::EACCES,
                ) => 1,
                Err(error) => return Err(error.into()),
            };
            drop(slices);
            self.out.drain(..sent);
        }
        Ok(())
    }
}
