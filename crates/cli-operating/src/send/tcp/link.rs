// SPDX-License-Identifier: Apache-2.0
//! The packet socket of all streams: segments out, acknowledgements in, ARP answered, faults in between.
//! Promise: a payload is sent from its place in the ring; the kernel or the network card computes checksums and splits
//! long frames, unless faults must affect single segments.
//! Source: packet(7) (`PACKET_VNET_HDR`); CMS-TCP section 3.2, whose emulator lacked these offloads.

use super::board::{Board, Segments};
use super::headers::{read_too_long, Datagram, TooLong};
use super::plan::TcpPlan;
use super::resolve::Resolver;
use crate::send::faults::Faults;
use crate::send::link::{LONGEST_SLEEP, REFUSED};
use crate::send::plan::Plan;
use bytes::{Bytes, BytesMut};
use penstock_cli_common::output::screen::notify;
use penstock_ipbus::PORT;
use penstock_readout::link::{offload, Frames, Gather, Interface, PacketSocket};
use penstock_transport::simple_tcp::Outgoing;
use penstock_units::Time;
use penstock_wire::{Arp, EthernetView, Ipv4View, MacAddr, Payload, SynOptions, TcpPacket, ETHERTYPE_ARP};
use serde::Serialize;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Frames that wait for the interface; above this number no front end gets a turn.
const FULL: usize = 256;
/// Most received frames are acknowledgements; longer ones take another way.
const FRAMES: Frames = Frames { longest: 512, count: 8192 };
/// Received frames are copied into pieces of one such block.
const BLOCK: usize = 1 << 16;
/// Bytes in front of a frame's payload: header of the offloads, Ethernet, IPv4, TCP with its options.
const HEAD: usize = offload::OFFLOAD_LEN + 114;
/// The TCP header after those of Ethernet and IPv4.
const TCP_AT: usize = 34;
/// Headers of IPv4 and TCP.
const IP_HEADERS: u16 = 40;

/// Received frames that were not a segment of a stream.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct LinkCounts {
    pub arp_answered: u64,
    /// Segments of no stream of ours: other ports, other servers.
    pub strangers: u64,
    /// Frames with a wrong checksum or length.
    pub bad_frames: u64,
    /// Messages of routers that segments were too long.
    pub path_mtu_messages: u64,
    pub rx_foreign_vlan: u64,
    pub rx_dropped: u64,
    /// How often the next hop moved to another MAC, and ARP frames of others with its address that were not asked for.
    pub hop_moves: u64,
    pub hop_claims: u64,
    /// Frames that the device refused: they are lost.
    pub refused_frames: u64,
}

/// A frame on its way out.
enum Frame {
    /// Headers; the payload lies in the ring of front end `board`.
    Segment {
        board: usize,
        head: [u8; HEAD],
        head_len: usize,
        seq: u32,
        len: u32,
    },
    Whole(Bytes),
}

/// The same with its payload.
struct Pieces<'a>([&'a [u8]; 3]);

impl Gather for Pieces<'_> {
    fn pieces(&self) -> [&[u8]; 3] {
        self.0
    }
}

pub struct Link {
    socket: PacketSocket,
    mac: MacAddr,
    first_ip: Ipv4Addr,
    resolver: Resolver,
    /// Its MAC, as last seen.
    hop: Option<MacAddr>,
    /// Injected faults of frames in both directions; none: the link is left alone.
    faults: Option<Faults>,
    ack_faults: Option<Faults>,
    out: Vec<Frame>,
    block: BytesMut,
    counts: LinkCounts,
    /// Requests of IPbus, with the number of the front end.
    requests: Vec<(usize, Datagram)>,
}

impl Link {
    pub fn open(plan: &Plan, tcp: &TcpPlan) -> Result<Link, String> {
        let iface = &plan.iface;
        let fail = |what: &str, error: io::Error| format!("{iface}: {what}: {error}");
        let interface = Interface::find(iface).map_err(|error| fail("no such interface", error))?;
        let socket = PacketSocket::open_tcp((iface, &interface), plan.first_ip, plan.boards, FRAMES);
        let socket = socket.map_err(|error| fail("packet socket (it needs root or CAP_NET_RAW)", error))?;
        Ok(Link {
            socket,
            mac: MacAddr(interface.mac),
            first_ip: plan.first_ip,
            resolver: Resolver::new(tcp.server, iface),
            hop: None,
            faults: plan.faults.any().then(|| Faults::new(plan.faults, plan.seed)),
            ack_faults: plan.ack_faults.any().then(|| Faults::new(plan.ack_faults, !plan.seed)),
            out: Vec::new(),
            block: BytesMut::new(),
            counts: LinkCounts::default(),
            requests: Vec::new(),
        })
    }

    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    pub fn counts(&mut self) -> LinkCounts {
        LinkCounts {
            rx_foreign_vlan: self.socket.foreign_vlan(),
            rx_dropped: self.socket.dropped(),
            hop_moves: self.resolver.moves(),
            hop_claims: self.resolver.claims(),
            refused_frames: self.socket.refused(),
            ..self.counts
        }
    }

    /// See [`PacketSocket::refusal`].
    pub fn refusal(&self) -> Option<String> {
        self.socket.refusal()
    }

    /// Why nothing can be sent yet, if so.
    pub fn unresolved(&self) -> Option<Ipv4Addr> {
        self.resolver.mac().is_none().then(|| self.resolver.hop())
    }

    pub fn has_queued(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes what has come. Whether there was anything.
    pub fn receive(&mut self, now: Time, boards: &mut [Board]) -> bool {
        let Link { socket, mac, first_ip, resolver, ack_faults, out, block, counts, requests, .. } = self;
        let board = |ip: Ipv4Addr, boards: usize| {
            let k = ip.to_bits().wrapping_sub(first_ip.to_bits()) as usize;
            (k < boards).then_some(k)
        };
        let mut take = |frame: Bytes, has_checksum: bool| match Read::of(&frame, has_checksum) {
            Read::Arp(arp) => {
                let is_for_us = board(arp.target.1, boards.len()).is_some();
                resolver.learn(now, &arp, is_for_us);
                if !arp.is_reply && is_for_us {
                    counts.arp_answered += 1;
                    out.push(Frame::Whole(whole(&arp.answer(*mac).emit())));
                }
            }
            Read::TooLong(too_long) => {
                counts.path_mtu_messages += 1;
                let k = board(too_long.source, boards.len());
                let of_stream = |board: &&mut Board| {
                    let peers = board.peers();
                    peers.port == too_long.source_port && peers.server == too_long.destination
                };
                if let Some(board) = k.and_then(|k| boards.get_mut(k)).filter(of_stream) {
                    board.handle_path_mtu(now, too_long.seq, too_long.mtu.saturating_sub(IP_HEADERS));
                }
            }
            Read::Tcp(packet) => {
                let k = board(packet.ip_dst, boards.len());
                match k.and_then(|k| boards.get_mut(k)).filter(|board| board.peers().fits(&packet)) {
                    Some(board) => {
                        if board.handle_packet(now, &packet) {
                            resolver.confirm(now);
                        }
                    }
                    None => counts.strangers += 1,
                }
            }
            Read::Ipbus(request) => {
                requests.extend(board(*request.to.ip(), boards.len()).map(|k| (k, request)));
            }
            Read::Bad => counts.bad_frames += 1,
            Read::Other => {}
        };
        let frames = socket.receive_checked(FULL, |frame, _, has_checksum| {
            if block.capacity() < frame.len() {
                block.reserve(BLOCK);
            }
            block.extend_from_slice(frame);
            let frame = block.split().freeze();
            match ack_faults {
                None => take(frame, has_checksum),
                // What is to be damaged needs its checksum first, or the damage would not be seen.
                Some(faults) => faults.pass(with_checksum(frame, has_checksum), |frame| take(frame, true)),
            }
            true
        });
        self.resolve(now, boards);
        frames > 0
    }

    /// Requests of IPbus that have come.
    pub fn take_requests(&mut self) -> Vec<(usize, Datagram)> {
        std::mem::take(&mut self.requests)
    }

    /// Queues the answer to one; one that gets lost is asked for again.
    pub fn answer(&mut self, answer: &Datagram) {
        if self.has_room() {
            self.out.push(Frame::Whole(whole(&answer.answer(self.mac))));
        }
    }

    /// Asks for the hop's MAC if that is due.
    fn resolve(&mut self, now: Time, boards: &[Board]) {
        if boards.iter().any(Board::is_unanswered) {
            self.resolver.advise(now);
        }
        if let Some(request) = self.resolver.request(now, (self.mac, self.first_ip)) {
            self.out.push(Frame::Whole(whole(&request.emit())));
        }
        let hop = self.resolver.mac();
        if let Some((old, new)) = self.hop.zip(hop).filter(|(old, new)| old != new) {
            notify(format_args!("WARNING: {} has moved from {old} to {new}", self.resolver.hop()));
        }
        self.hop = hop;
    }

    /// Sends what is queued, as far as the interface takes it.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn flush(&mut self, now: Time, boards: &[Board]) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let pieces = |frame| match frame {
            &Frame::Segment { board, ref head, head_len, seq, len } => {
                let (first, second) = boards[board].stream().bytes(seq, len as usize);
                Pieces([&head[..head_len], first, second])
            }
            Frame::Whole(bytes) => Pieces([bytes, &[], &[]]),
        };
        let frames: Vec<Pieces> = self.out.iter().map(pieces).collect();
        let done = self.socket.send(now, &frames)?;
        drop(frames);
        self.out.drain(..done);
        Ok(())
    }

    /// When a request for the hop's MAC is due.
    pub fn next(&self, now: Time) -> Time {
        self.resolver.due().max(now)
    }

    /// Sleeps until something has come, at most for `limit`, and so that a signal is noticed soon.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let most = if self.out.is_empty() { LONGEST_SLEEP } else { REFUSED };
        self.socket.wait(limit.min(most)).or_else(|error| self.socket.outlive(error))
    }
}

impl Segments for Link {
    fn is_ready(&self) -> bool {
        self.resolver.mac().is_some()
    }

    fn has_room(&self) -> bool {
        self.out.len() < FULL
    }

    fn cuts_segments(&self) -> bool {
        self.faults.is_none()
    }

    fn queue(&mut self, k: usize, board: &Board, segment: &Outgoing, len: u32, mss: Option<u16>) {
        let Some(hop) = self.resolver.mac() else { return };
        let options = match mss {
            Some(mss) => SynOptions { mss: Some(mss), window_scale: Some(0), malformed: false },
            None => SynOptions::default(),
        };
        let packet = TcpPacket { options, payload: Payload::Virtual(len), ..board.packet(self.mac, hop, segment) };
        let out = &mut self.out;
        match &mut self.faults {
            None => {
                let mut head = [0; HEAD];
                let (before, frame) = head.split_at_mut(offload::OFFLOAD_LEN);
                let headers = packet.emit_headers(frame);
                let row = board.stream().row();
                let cut = (len > u32::from(row.mss)).then_some(row.mss);
                before.copy_from_slice(&offload::tcp(headers, TCP_AT, cut));
                let head_len = offload::OFFLOAD_LEN + headers;
                out.push(Frame::Segment { board: k, head, head_len, seq: segment.seq, len });
            }
            Some(faults) => {
                let (first, second) = board.stream().bytes(segment.seq, len as usize);
                let payload = Payload::Bytes([first, second].concat().into());
                let frame = TcpPacket { payload, ..packet }.emit();
                faults.pass(frame, |frame| out.push(Frame::Whole(whole(&frame))));
            }
        }
    }
}

/// A frame with nothing left to do.
fn whole(frame: &[u8]) -> Bytes {
    [&offload::WHOLE[..], frame].concat().into()
}

/// The same frame with its checksum.
fn with_checksum(frame: Bytes, has_checksum: bool) -> Bytes {
    match TcpPacket::parse_offloaded(&frame) {
        Ok(packet) if !has_checksum => packet.emit(),
        _ => frame,
    }
}

/// The kind of a frame.
enum Read {
    Arp(Arp),
    Tcp(TcpPacket),
    TooLong(TooLong),
    Ipbus(Datagram),
    Bad,
    Other,
}

impl Read {
    fn of(frame: &Bytes, has_checksum: bool) -> Read {
        let is_arp = EthernetView::new_checked(frame).is_ok_and(|eth| eth.ethertype() == ETHERTYPE_ARP);
        if is_arp {
            return Arp::parse(frame).map_or(Read::Other, Read::Arp);
        }
        let protocol = frame.get(14..).and_then(|ip| Ipv4View::new_checked(ip).ok()).map(|ip| ip.protocol());
        if protocol == Some(1) {
            return read_too_long(frame).map_or(Read::Other, Read::TooLong);
        }
        if protocol == Some(17) {
            return Datagram::read(frame, PORT).map_or(Read::Other, Read::Ipbus);
        }
        let parsed = if has_checksum { TcpPacket::parse(frame) } else { TcpPacket::parse_offloaded(frame) };
        parsed.map_or(Read::Bad, Read::Tcp)
    }
}
