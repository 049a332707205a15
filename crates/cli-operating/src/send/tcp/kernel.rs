// SPDX-License-Identifier: Apache-2.0
//! The same messages over the kernel's TCP, for comparison with the emulator (CMS-TCP figure 3).
//! Promise: one write per message, as in ordinary programs; a connection that ends is a fault and is not reopened.
//! Source: socket(7), tcp(7). The kernel does not report acknowledged bytes, so the program waits for the end.

use super::plan::TcpPlan;
use super::report::{with_faults, BoardReport, Report};
use crate::send::payload::Messages;
use crate::send::plan::Plan;
use bytes::Bytes;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Registry, Token};
use penstock_cli_common::outcome::Failure;
use penstock_cli_common::output::screen::notify;
use penstock_readout::backend::SessionClock;
use penstock_units::Time;
use penstock_wire::{read_stream_refusal, stream_header, stream_padding, STREAM_HEADER_LEN, STREAM_REFUSAL_LEN};
use socket2::{Domain, Socket, Type};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Wait for a server that does not answer, or refuses, and from one attempt to the next.
const PATIENCE: Time = Time::from_s(5);
const AGAIN: Duration = Duration::from_millis(100);
/// How long an interrupted run waits for the other end to take everything.
const INTERRUPTED: Time = Time::from_ms(500);
/// Longest wait for the kernel's answer to one attempt.
const ATTEMPT: Duration = Duration::from_millis(500);

/// A message in transit: its bytes with framing, and the number of bytes written.
struct Under {
    header: [u8; STREAM_HEADER_LEN],
    message: Bytes,
    written: usize,
}

impl Under {
    fn len(&self) -> usize {
        STREAM_HEADER_LEN + self.message.len() + stream_padding(self.message.len())
    }
}

struct Sender {
    source: u16,
    ip: Ipv4Addr,
    stream: Option<TcpStream>,
    messages: Messages,
    next: u64,
    under: Option<Under>,
    bytes: u64,
    trouble: Option<String>,
    has_end: bool,
    /// Our side is shut down.
    is_shut: bool,
    /// The other end has closed the connection after ours was shut down.
    ended: bool,
}

impl Sender {
    /// The sender of front end `k`, which waits for its stream.
    fn open(
        (ip, k): (Ipv4Addr, u16),
        plan: &Plan,
        tcp: &TcpPlan,
        registry: &Registry,
        connect: impl FnOnce() -> io::Result<TcpStream>,
    ) -> io::Result<Sender> {
        let source = plan.first_source + k;
        let (stream, trouble) = match connect() {
            Ok(mut stream) => {
                registry.register(&mut stream, Token(usize::from(k)), Interest::WRITABLE | Interest::READABLE)?;
                (Some(stream), None)
            }
            Err(error) => (None, Some(format!("{ip}: {} port {}: {error}", tcp.server, tcp.port))),
        };
        Ok(Sender {
            source,
            ip,
            stream,
            messages: Messages::new(plan, None, source),
            next: 0,
            under: None,
            bytes: 0,
            trouble,
            has_end: plan.events > 0,
            is_shut: false,
            ended: false,
        })
    }

    /// Its report; `lived`: its stream was open.
    fn report(self, lived: bool) -> BoardReport {
        BoardReport {
            source: self.source,
            ip: self.ip.to_string(),
            state: if self.stream.is_some() { "established" } else { "closed" },
            lives: u32::from(lived),
            messages: self.next,
            tx_payload_bytes: self.bytes,
            trouble: self.trouble,
            ..BoardReport::default()
        }
    }

    fn is_done(&self) -> bool {
        self.has_end && !self.messages.has(self.next) && self.under.is_none()
    }

    /// Writes what is due, until the kernel takes no more. Whether anything was written.
    fn turn(&mut self, now: Time, interval: Time) -> bool {
        let mut busy = false;
        // The receiver ends the stream by FIN, and takes what comes until ours: the message in transit is written whole.
        let is_ended = self.stream.as_ref().is_some_and(|stream| matches!(stream.peek(&mut [0]), Ok(0)));
        while let Some(stream) = &mut self.stream {
            let under = match &mut self.under {
                Some(under) => under,
                None if is_ended => {
                    self.fail("closed by the receiver");
                    return busy;
                }
                None if self.messages.has(self.next)
                    && interval.saturating_mul(self.messages.events_before(self.next)) <= now =>
                {
                    let len = self.messages.message(self.next);
                    let message = self.messages.bytes(self.next);
                    self.under.insert(Under { header: stream_header(len), message, written: 0 })
                }
                None => return busy,
            };
            match write(stream, under) {
                Ok(0) => self.fail("closed by the receiver"),
                Ok(bytes) => {
                    busy = true;
                    under.written += bytes;
                    if under.written == under.len() {
                        self.bytes += under.message.len() as u64;
                        self.under = None;
                        self.next += 1;
                        self.messages.ended(self.messages.done());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return busy,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.fail(error),
            }
        }
        busy
    }

    fn fail(&mut self, why: impl std::fmt::Display) {
        let refusal = self.stream.take().and_then(|mut stream| refusal(&mut stream));
        self.trouble = Some(match refusal {
            Some(why) => refused(self.ip, &why),
            None => format!("{}: {why}", self.ip),
        });
    }

    /// Closes the sending side, and waits until the other end has taken everything.
    fn end(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        // Once: on a connection that both ends have closed in order, the kernel refuses a second shutdown. What was written
        // and not read is lost if the first fails.
        if !std::mem::replace(&mut self.is_shut, true) {
            if let Err(error) = stream.shutdown(Shutdown::Write) {
                self.ended = true;
                return self.fail(error);
            }
        }
        loop {
            let mut answer = [0; 4096];
            match stream.read(&mut answer) {
                Ok(0) => self.ended = true,
                Ok(len) => match read_stream_refusal(&answer[..len]) {
                    Some(why) => {
                        self.ended = true;
                        self.trouble = Some(refused(self.ip, why));
                    }
                    None => continue,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.ended = true;
                    self.trouble = Some(format!("{}: {error} before all was read", self.ip));
                }
            }
            return;
        }
    }
}

fn refused(ip: Ipv4Addr, why: &str) -> String {
    format!("{ip}: the server cannot take its messages: {why}")
}

/// What the server has said before it ended the connection, if it refuses the messages.
fn refusal(stream: &mut TcpStream) -> Option<String> {
    let mut answer = [0; STREAM_REFUSAL_LEN];
    let len = stream.read(&mut answer).ok()?;
    read_stream_refusal(&answer[..len]).map(str::to_owned)
}

fn write(stream: &mut TcpStream, under: &Under) -> io::Result<usize> {
    let zeros = [0; STREAM_HEADER_LEN];
    let all = [&under.header[..], &under.message, &zeros[..stream_padding(under.message.len())]];
    let mut slices = all.map(IoSlice::new);
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, under.written);
    stream.write_vectored(left)
}

fn connect(ip: Ipv4Addr, tcp: &TcpPlan) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddrV4::new(ip, 0).into())?;
    let to = SocketAddrV4::new(tcp.server, tcp.port);
    socket.connect_timeout(&to.into(), ATTEMPT)?;
    socket.set_tcp_nodelay(!tcp.parameters.nagle)?;
    socket.set_nonblocking(true)?;
    Ok(TcpStream::from_std(socket.into()))
}

/// Sends all messages of all front ends.
pub fn send(plan: &Plan, tcp: &TcpPlan, interrupted: &AtomicBool) -> Result<Report, Failure> {
    let clock = SessionClock::start();
    let fault = |error: io::Error| Failure::Fault(error.to_string());
    let mut poll = Poll::new().map_err(fault)?;
    let mut senders = Vec::new();
    for (ip, k) in plan.ips().zip(0..) {
        let sender = Sender::open((ip, k), plan, tcp, poll.registry(), || patiently(ip, tcp, &clock, interrupted));
        senders.push(sender.map_err(fault)?);
    }
    if !plan.json {
        let many = if plan.boards == 1 { "" } else { "s" };
        notify(format_args!("{} stream{many} of the kernel to {} port {}", plan.boards, tcp.server, tcp.port));
    }
    let lives: Vec<bool> = senders.iter().map(|sender| sender.stream.is_some()).collect();
    let mut events = Events::with_capacity(256);
    let mut now = clock.now();
    let goes_on = |sender: &Sender| sender.stream.is_some() && !sender.is_done();
    while !interrupted.load(Ordering::Relaxed) && now < plan.end && senders.iter().any(goes_on) {
        let busy = senders.iter_mut().fold(false, |busy, sender| sender.turn(now, plan.interval) | busy);
        if !busy {
            // Of a rate the next message may be due before the kernel has anything to say.
            let limit = if plan.interval > Time::ZERO { Duration::from_micros(50) } else { Duration::from_millis(100) };
            wait(&mut poll, &mut events, limit).map_err(fault)?;
        }
        now = clock.now();
    }
    let (mut end, mut is_hasty) = (now.saturating_add(plan.linger), false);
    senders.iter_mut().for_each(Sender::end);
    while clock.now() < end && senders.iter().any(|sender| sender.stream.is_some() && !sender.ended) {
        if interrupted.load(Ordering::Relaxed) && !std::mem::replace(&mut is_hasty, true) {
            end = end.min(clock.now().saturating_add(INTERRUPTED));
        }
        wait(&mut poll, &mut events, Duration::from_millis(10)).map_err(fault)?;
        senders.iter_mut().filter(|sender| !sender.ended).for_each(Sender::end);
    }
    let done: Vec<bool> = senders.iter().map(|s| s.is_done() && s.trouble.is_none()).collect();
    let boards: Vec<BoardReport> = senders.into_iter().zip(lives).map(|(sender, lived)| sender.report(lived)).collect();
    // Of a sender without an end every connection was to last until it is stopped; one that has a number of messages
    // there are says so board by board.
    let ended =
        boards.iter().filter(|board| plan.events == 0 && board.lives > 0).find_map(|board| board.trouble.clone());
    let ended = ended.map(|why| format!("{why}; --stack sockets opens no connection again, the emulator does"));
    Ok(with_faults("sockets", boards, &done, plan.events > 0, now, Default::default(), ended))
}

fn patiently(ip: Ipv4Addr, tcp: &TcpPlan, clock: &SessionClock, interrupted: &AtomicBool) -> io::Result<TcpStream> {
    let end = clock.now() + PATIENCE;
    while !interrupted.load(Ordering::Relaxed) {
        match connect(ip, tcp) {
            Err(_) if clock.now() < end => std::thread::sleep(AGAIN),
            result => return result,
        }
    }
    Err(io::Error::new(io::ErrorKind::Interrupted, "it was interrupted"))
}

fn wait(poll: &mut Poll, events: &mut Events, limit: Duration) -> io::Result<()> {
    match poll.poll(events, Some(limit)) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
