// SPDX-License-Identifier: Apache-2.0
//! The back end without an RDMA NIC: our responder on AF_XDP or a packet socket of any Ethernet
//! interface.
//! Promise: ICRC is checked and computed; packets are handled as by a NIC. The kernel keeps ARP and all other traffic
//! of the interface, and is prevented from refusing port 4791.
//! Source: IBTA annex A17 (RoCEv2) through `penstock_transport`; packet(7).

use std::borrow::Cow;
use std::io;
use std::net::UdpSocket;
use std::time::SystemTime;

use bytes::{Buf, Bytes, BytesMut};
use penstock_transport::{Memory, Mtu, RdmaCmInbox, RecvWr};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, ParseError, RdmaCmMad, RocePacket, GSI_QPN, UDP_PORT_ROCE};

use super::claims::Claims;
use super::frame_socket::{FrameSocket, OpenError, SocketChoice, FOREIGN_VLAN};
use super::pull::PullSettings;
use super::responders::Responders;
use super::{
    Backend, BackendError, Completion, Counters, Latencies, LocalAddress, LocalQp, PeerQp, PollMode, PoolSpec, QpSpec,
    SessionClock,
};
use crate::poll::no_latencies;
use crate::sys::{drop_all, has_address, Frames, Interface, Watch};

/// Frames between two looks at what else there is to do.
const BATCH: usize = 256;
/// Completions after which the caller has its turn, so that it can post receives again.
const ENOUGH: usize = 16;
/// Frames are copied out of the shared ring into pieces of one such block, which is used again when all are gone.
const BLOCK: usize = 1 << 20;

/// Headers, padding and ICRC around the payload of a packet, at most.
const AROUND: usize = 81;
/// The same without the Ethernet header, and some room for what the network adds.
const BESIDE: usize = 80;
/// How often the interface is looked after.
const LOOK: Time = Time::from_ms(100);
/// What one board may have under way while this process is not looking, and bounds of all together: kernel memory.
const BYTES_A_BOARD: usize = 1 << 20;
const BYTES: std::ops::RangeInclusive<usize> = 32 << 20..=512 << 20;

/// The device or socket to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketConfig {
    /// Name of the interface.
    pub iface: String,
    /// Our address; none: the interface's first.
    pub ip: Option<Ipv4Addr>,
    /// Boards that will send, and the path MTU they use: they give the size of the socket's ring, 1 MiB a board, 32 MiB
    /// at least and 512 MiB at most.
    pub boards: usize,
    pub mtu: Mtu,
    /// Where frames come in.
    pub socket: SocketChoice,
    /// Boards announce, and are read; none: they send.
    pub pull: Option<PullSettings>,
}

impl PacketConfig {
    fn ring(&self) -> Frames {
        let bytes = self.boards.saturating_mul(BYTES_A_BOARD).clamp(*BYTES.start(), *BYTES.end());
        // Small packets are many, and one may be longer than the path MTU.
        let longest = Mtu::B4096.bytes() + AROUND;
        Frames { longest, count: (bytes / self.mtu.bytes()).min(*BYTES.end() / longest) }
    }
}

/// The RC responders of one address on one interface.
pub struct PacketBackend {
    interface: (String, Watch),
    address: LocalAddress,
    warning: Option<String>,
    /// Which socket it is, and why not another.
    notice: String,
    clock: SessionClock,
    socket: FrameSocket,
    /// Holds the port.
    _port: UdpSocket,
    responders: Responders,
    /// Packets to queue pair 1; none where another connection manager is used.
    management: Option<RdmaCmInbox>,
    block: BytesMut,
    replies: Vec<Bytes>,
    last_frame_at: Time,
    /// Latency of every message: from its last frame's arrival at the interface until it is handed out.
    latencies: Latencies,
    /// When the last frames came of messages that are about to be handed out.
    arrivals: Vec<SystemTime>,
    received: u64,
    bad_icrc: u64,
    malformed: u64,
    /// Tags in frames that came with them; the ring counts its frames.
    foreign_vlan: u64,
    send_err: u64,
    link_downed: u64,
    address_lost: u64,
    has_address: bool,
    /// None where the kernel has no more sockets: it is a help and no part of receiving.
    claims: Option<Claims>,
    /// The interface was taken down and has not been seen up again. Frames are no sign: those from before may still lie
    /// in the ring.
    is_down: bool,
    /// When it is looked after next.
    next_look: Time,
}

impl PacketBackend {
    /// Opens an interface.
    ///
    /// # Errors
    /// `Unavailable`, with what to do.
    pub fn open(config: &PacketConfig, clock: SessionClock) -> Result<PacketBackend, BackendError> {
        let name = &config.iface;
        let unavailable = |what: &str, error: io::Error| {
            let hint = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => "; run as root or give the command CAP_NET_RAW",
                Some(libc::ENODEV | libc::ENXIO) => "; `ip link` lists the interfaces",
                Some(libc::EADDRINUSE) => "; another receiver or rdma_rxe has it: `ss -ulnp | grep 4791`, `rdma link`",
                Some(libc::EMFILE) => "; the process may open no more files: `ulimit -n 1024`",
                Some(libc::EADDRNOTAVAIL) => "; the interface must have this address: `ip addr`",
                _ => "",
            };
            BackendError::Unavailable(format!("{name}: {what}: {error}{hint}"))
        };
        let interface = Interface::find(name).map_err(|e| unavailable("no such interface", e))?;
        let missing =
            || BackendError::Unavailable(format!("{name} has no IPv4 address: ip addr add A.B.C.D/24 dev {name}"));
        let ip = config.ip.or(interface.ip).ok_or_else(missing)?;
        let watch = Watch::open(name, &interface).map_err(|e| unavailable("looking after it", e))?;
        let port = UdpSocket::bind((ip, UDP_PORT_ROCE)).and_then(|socket| drop_all(&socket).map(|()| socket));
        let port = port.map_err(|e| unavailable(&format!("UDP port {UDP_PORT_ROCE} of {ip}"), e))?;
        let opened =
            FrameSocket::open(config.socket, (name, &interface), ip, config.ring(), config.mtu.bytes() + AROUND);
        let (socket, notice) = opened.map_err(|error| match error {
            OpenError::Ring(error) => unavailable("packet socket", error),
            OpenError::Xdp(error) => BackendError::Unavailable(format!("{name}: no AF_XDP: {error}")),
        })?;
        let mac = MacAddr(interface.mac);
        let mut responders = Responders::new(ip, mac, random_words()?);
        config.pull.iter().try_for_each(|settings| responders.pull(settings))?;
        Ok(PacketBackend {
            notice: format!("{name}: {notice}"),
            warning: mtu_warning(name, interface.mtu, config.mtu),
            address: LocalAddress::of_ip(ip, mac),
            interface: (name.clone(), watch),
            clock,
            socket,
            _port: port,
            responders,
            management: None,
            block: BytesMut::with_capacity(BLOCK),
            replies: Vec::new(),
            last_frame_at: Time::ZERO,
            latencies: no_latencies(),
            arrivals: Vec::new(),
            received: 0,
            bad_icrc: 0,
            malformed: 0,
            foreign_vlan: 0,
            send_err: 0,
            link_downed: 0,
            address_lost: 0,
            has_address: true,
            claims: Claims::open((name, &interface), ip).ok(),
            is_down: false,
            next_look: Time::ZERO,
        })
    }

    fn mac(&self) -> MacAddr {
        self.address.mac.unwrap_or(MacAddr([0; 6]))
    }

    /// Takes what is there, up to a batch. Whether anything was.
    fn take(&mut self, memory: &mut dyn Memory, out: &mut Vec<Completion>) -> bool {
        let now = self.clock.now();
        let (responders, management, block) = (&mut self.responders, &mut self.management, &mut self.block);
        let (bad_icrc, malformed) = (&mut self.bad_icrc, &mut self.malformed);
        let foreign_vlan = &mut self.foreign_vlan;
        let arrivals = &mut self.arrivals;
        let frames = self.socket.receive(BATCH, |pieces, arrived| {
            let before = out.len();
            pieces.iter().for_each(|piece| block.extend_from_slice(piece));
            let mut frame = block.split();
            if let Some(vlan) = take_tag_off(&mut frame) {
                if vlan != 0 {
                    *foreign_vlan += 1;
                    return true;
                }
            }
            match RocePacket::parse(&frame.freeze()) {
                Ok(packet) => match management.as_mut().filter(|_| packet.bth.dest_qpn == GSI_QPN) {
                    Some(inbox) => inbox.push(&packet),
                    None => responders.handle(now, &packet, memory, out),
                },
                Err(ParseError::BadIcrc { .. }) => *bad_icrc += 1,
                Err(_) => *malformed += 1,
            }
            arrivals.extend((before..out.len()).filter_map(|_| arrived));
            out.len() < ENOUGH
        });
        self.received += frames as u64;
        if frames == 0 {
            return false;
        }
        self.last_frame_at = now;
        self.block.reserve(BLOCK / 2);
        self.responders.take_replies(memory, |reply| self.replies.push(reply.emit()));
        self.responders.request(now, memory, |request| self.replies.push(request.emit()));
        self.send(now);
        if !self.arrivals.is_empty() {
            let now = SystemTime::now();
            for arrived in self.arrivals.drain(..) {
                // A clock that was set back since makes it nothing.
                let waited = now.duration_since(arrived).map_or(0, |waited| waited.as_nanos() as u64);
                self.latencies.saturating_record(waited);
            }
        }
        true
    }

    /// Sends what is to be sent. A reply that is not sent is lost like any other packet: the peer repeats its request. A
    /// request is repeated by its timer.
    fn send(&mut self, now: Time) {
        self.send_err += self.socket.send(now, &self.replies);
        self.replies.clear();
    }

    /// Requests what boards have announced, without a frame that has come.
    fn request(&mut self, now: Time, memory: &mut dyn Memory) {
        self.responders.request(now, memory, |request| self.replies.push(request.emit()));
        self.send(now);
    }
}

impl PacketBackend {
    /// Asks the socket for errors, which one that never sleeps does not hear of, and whether an interface that is down
    /// is still there: one that is deleted goes down first, and then the kernel says no more of it.
    fn look_after_interface(&mut self) -> Result<(), BackendError> {
        self.socket.take_error().or_else(|error| self.went_down(error))?;
        self.look_after_address();
        if let Some(claims) = &mut self.claims {
            claims.look(&self.interface.0);
        }
        if self.is_down {
            self.is_down = !self.interface.1.is_up().map_err(|error| self.is_gone(error))?;
        }
        Ok(())
    }

    /// Frames arrive by their address even if the interface lost it, but boards find us by ARP: without the address
    /// they fall silent, one by one.
    fn look_after_address(&mut self) {
        let (name, ip) = (&self.interface.0, self.address.ip);
        // A process that may open no more files cannot find out.
        let has = has_address(ip).unwrap_or(true);
        match (std::mem::replace(&mut self.has_address, has), has) {
            (true, false) => {
                self.address_lost += 1;
                tracing::warn!("{name} has lost the address {ip}; boards lose this server until it has it again");
            }
            (false, true) => tracing::warn!("{name} has the address {ip} again"),
            _ => {}
        }
    }

    /// An interface that was taken down is waited for: the socket outlives that, and boards send again what they must.
    /// One that is gone, or another of the same name, ends the session.
    fn went_down(&mut self, error: io::Error) -> Result<(), BackendError> {
        if error.raw_os_error() != Some(libc::ENETDOWN) || !self.is_there() {
            return Err(self.is_gone(error));
        }
        self.is_down = true;
        self.link_downed += 1;
        tracing::warn!("{} is down; boards wait until it is up again", self.interface.0);
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.interface.1.is_up().is_ok()
    }

    fn is_gone(&self, source: io::Error) -> BackendError {
        BackendError::Io { action: Cow::Owned(format!("{}: waiting for frames", self.interface.0)), source }
    }
}

/// Removes a VLAN tag from a frame and returns its VLAN; none without a tag (IEEE 802.1Q 9.6).
fn take_tag_off(frame: &mut BytesMut) -> Option<u16> {
    let is_tagged = frame.get(12..14) == Some(&0x8100_u16.to_be_bytes()[..]) && frame.len() >= 16;
    if !is_tagged {
        return None;
    }
    let vlan = u16::from_be_bytes([frame[14], frame[15]]) & 0x0fff;
    frame.copy_within(0..12, 4);
    frame.advance(4);
    Some(vlan)
}

/// A NIC silently drops frames that are too long for its interface.
fn mtu_warning(name: &str, has: usize, mtu: Mtu) -> Option<String> {
    let needs = mtu.bytes() + BESIDE;
    (has < needs).then(|| {
        let fits = Mtu::ALL.into_iter().rev().find(|mtu| mtu.bytes() + BESIDE <= has).unwrap_or(Mtu::B256);
        format!(
            "{name} has MTU {has}, a path MTU of {} needs {needs}: full packets will be lost; ip link set {name} mtu \
             {}, or --mtu {} here and at the boards",
            mtu.bytes(),
            if needs <= 1500 { 1500 } else { 9000 },
            fits.bytes()
        )
    })
}

/// Words of the kernel's random source.
pub(crate) fn random_words() -> Result<Box<dyn FnMut() -> u32 + Send>, BackendError> {
    let error = |e: getrandom::Error| BackendError::Unavailable(format!("the kernel gives no random numbers: {e}"));
    let mut pool = vec![0; 1024];
    getrandom::fill(&mut pool).map_err(error)?;
    let mut at = 0;
    Ok(Box::new(move || {
        if at == pool.len() {
            // It gave some when we began; without any more, no number may be handed out again.
            getrandom::fill(&mut pool).expect("the kernel's random source does not dry up");
            at = 0;
        }
        at += 4;
        u32::from_ne_bytes([pool[at - 4], pool[at - 3], pool[at - 2], pool[at - 1]])
    }))
}

impl Backend for PacketBackend {
    fn name(&self) -> &'static str {
        "packet"
    }

    fn address(&self) -> LocalAddress {
        self.address
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    fn notice(&self) -> Option<String> {
        Some(self.notice.clone())
    }

    fn admits_before_ack(&self) -> bool {
        true
    }

    fn open_management(&mut self, inbox: RdmaCmInbox) -> bool {
        self.management = Some(inbox);
        self.responders.begin_as_peers_expect();
        true
    }

    fn outstanding_reads(&self) -> u8 {
        self.responders.outstanding_reads()
    }

    fn management(&mut self) -> Option<&mut RdmaCmInbox> {
        self.management.as_mut()
    }

    fn send_mad(&mut self, to: (MacAddr, Ipv4Addr), mad: &RdmaCmMad) {
        let LocalAddress { ip, .. } = self.address;
        let packet = mad.to_packet((self.mac(), ip), to);
        self.send_err += self.socket.send(self.clock.now(), &[packet.emit()]);
    }

    fn share_receives(&mut self, pool: &PoolSpec) -> Result<u64, BackendError> {
        Ok(self.responders.share(pool))
    }

    fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.responders.post_shared(receives)
    }

    fn ran_low(&mut self) -> u64 {
        self.responders.ran_low()
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        self.responders.create(spec)
    }

    fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        self.responders.connect(board, peer)
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.responders.post(board, receives)
    }

    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        // The caller may have posted receives, or may take events that it did not take before.
        self.request(self.clock.now(), memory);
        loop {
            if self.take(memory, out) && !out.is_empty() {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= deadline {
                return Ok(());
            }
            if now >= self.responders.request_due() {
                self.request(now, memory);
            }
            if now >= self.next_look {
                self.next_look = now + LOOK;
                self.look_after_interface()?;
            }
            let idle = now.saturating_sub(self.last_frame_at);
            if mode.spin().is_some_and(|spin| idle >= Time::from_duration(spin)) {
                let deadline = deadline.min(self.responders.request_due());
                let waited = self.socket.wait(self.clock.until(deadline));
                waited.or_else(|error| self.went_down(error))?;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        self.responders.close(board, out);
        Ok(())
    }

    fn fault(&self, board: u16) -> Option<String> {
        self.responders.fault(board)
    }

    fn is_unanswered(&self, board: u16) -> bool {
        self.responders.is_unanswered(board)
    }

    fn is_settled(&self) -> bool {
        self.responders.is_settled()
    }

    fn counters(&mut self) -> Counters {
        let mut counters = self.socket.counters();
        match counters.iter_mut().find(|(name, _)| name == FOREIGN_VLAN) {
            Some((_, of_ring)) => *of_ring += self.foreign_vlan,
            None => counters.push((FOREIGN_VLAN.into(), self.foreign_vlan)),
        }
        counters.extend([
            ("rx_packets".into(), self.received),
            ("rx_icrc_encapsulated".into(), self.bad_icrc),
            ("rx_malformed".into(), self.malformed),
            ("send_err".into(), self.send_err),
            ("link_downed".into(), self.link_downed),
            ("address_lost".into(), self.address_lost),
            ("address_claimed".into(), self.claims.as_ref().map_or(0, Claims::count)),
        ]);
        counters.extend(self.responders.totals());
        counters
    }

    fn board_counters(&self, board: u16) -> Counters {
        self.responders.counters(board)
    }

    fn latencies(&self) -> Option<&Latencies> {
        Some(&self.latencies)
    }
}
