// SPDX-License-Identifier: Apache-2.0
//! The share of the line that a front end with TCP fills, relative to segments of the longest size without end.

use crate::goodput::cycles_in;
use crate::station::Failure;
use bytes::Bytes;
use penstock_board::regs::{source, stream, tcp};
use penstock_board::{stream_register, Board, EndpointConfig, Received, StreamConfig, Top, WcStatus};
use penstock_wire::{Ecn, Ipv4Addr, MacAddr, Payload, Qpn, SackBlocks, SynOptions, TcpFlags, TcpPacket};

/// Octets on the wire with the payload of every segment: preamble 8, Ethernet 14, IPv4 20, TCP 20, FCS 4, gap 12.
const SEGMENT_OVERHEAD: u64 = 78;
/// Preamble and start of frame, which precede a frame, and the FCS, which follows it.
const PREAMBLE_AND_FCS: u64 = 12;
/// How long the board runs before what it has sent is looked at; shorter than any answer takes.
const CHUNK_CYCLES: u64 = 50;
const OPENING_CYCLES: u64 = 4_000_000;
/// Cycles between the openings of two streams.
const APART_CYCLES: u64 = 500;
/// What the build keeps of each of its streams.
const RING_BYTES: usize = 1 << 18;
const STREAMS: usize = 16;
/// The header before each message in its stream (docs/fragments.md); after it, zeros up to a multiple of the same.
const FRAMING: u32 = 8;
const WARM_UP_CYCLES: u64 = 80_000;
/// Counted is from the start of the first segment to that of the last, and that is to be at least 1 ms.
const MEASURED_US: f64 = 1010.0;
const BOARD: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 2));
const HOST: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 1));
const FIRST_PORT: u16 = 10_000;
/// The scale of the host's windows: 65535 times 2^8 is more than any ring.
const WINDOW_SCALE: u8 = 8;
const HOST_ISS: u32 = 0xffff_ff00;

/// Messages of one size, which the streams send in turn.
#[derive(Clone, Copy)]
pub struct Load {
    pub message_bytes: u32,
    pub mss: u16,
    pub streams: u8,
    /// How long the host takes to answer: what has been sent by then waits in the rings.
    pub answer_us: f64,
}

impl Load {
    /// The physical limit: payload's share of the line time of a full segment.
    pub fn payload_share(&self) -> f64 {
        f64::from(self.mss) / (u64::from(self.mss) + SEGMENT_OVERHEAD) as f64
    }
}

/// Has the front end's own source send for [`MEASURED_US`]; returns the share of the physical limit that it sustains:
/// the share that full rings send, or the one that messages enter empty rings with, if that is less.
pub fn measure(top: Top, load: Load) -> Result<f64, Failure> {
    let answer_cycles = cycles_in(top, load.answer_us);
    let mut host = Host::open(top, load, answer_cycles)?;
    for (register, value) in [
        (source::QP_RANGE, source::QP_RANGE_QP_LAST_BITS.at(load.streams - 1)),
        (source::LENGTH_MIN, load.message_bytes),
        (source::COMMAND, source::COMMAND_START_BITS.mask),
    ] {
        host.board.write(register, value)?;
    }
    // No window is open yet: the messages enter the rings until those are full.
    let entering = host.entering(load.message_bytes, RING_BYTES as u64 * 3 / 4)?;
    host.run_until(host.board.cycle() + (STREAMS * RING_BYTES / top.lanes()) as u64, |_, _| ())?;
    host.open_windows();
    let begin = host.board.cycle() + WARM_UP_CYCLES;
    host.run_until(begin, |_, _| ())?;
    let (mut first, mut last, mut before, mut payload) = (None, 0, 0, 0);
    host.run_until(begin + cycles_in(top, MEASURED_US), |octet, bytes| {
        first.get_or_insert(octet);
        (last, before) = (octet, payload);
        payload += bytes;
    })?;
    let octets = last - first.ok_or("no segment was sent")?;
    Ok(entering.min(before as f64 / octets as f64) / load.payload_share())
}

/// A verilated front end and, at the far end of an ideal link, a host that takes all of it.
struct Host {
    top: Top,
    board: Board,
    answer_cycles: u64,
    /// The next sequence number of each stream.
    next: Vec<Option<u32>>,
    ports: u16,
}

impl Host {
    fn open(top: Top, load: Load, answer_cycles: u64) -> Result<Self, Failure> {
        let mut host =
            Self { top, board: Board::of(top), answer_cycles, next: vec![None; load.streams.into()], ports: 0 };
        host.board.configure(&EndpointConfig {
            mac: BOARD.0,
            ip: BOARD.1,
            ttl: 64,
            qpn_base: Qpn::new(0),
            obey_pause: true,
            obey_pfc: true,
            traffic_class: 3,
            congestion: Default::default(),
        })?;
        host.ports = (host.board.read(tcp::PORTS)? & tcp::PORTS_PORT_BASE_BITS.mask) as u16;
        host.board.write(tcp::SEGMENT, load.mss.into())?;
        for index in 0..load.streams {
            let (port, rto_us) = (FIRST_PORT + u16::from(index), [100_000, 100_000, 1_000_000]);
            host.board.set_stream(index, &StreamConfig { mac: Some(HOST.0), ip: HOST.1, port, rto_us, secret: 1 })?;
            host.board.write(stream_register(index, stream::COMMAND), stream::COMMAND_OPEN_BITS.mask)?;
            // The gateware reads the options of one answer at a time, so these do not arrive at once.
            host.run_until(host.board.cycle() + APART_CYCLES, |_, _| ())?;
        }
        let limit = host.board.cycle() + OPENING_CYCLES;
        for index in 0..load.streams {
            while host.board.read(stream_register(index, stream::STATE))? & stream::STATE_BITS.mask != 2 {
                if host.board.cycle() > limit {
                    return Err(format!("stream {index} does not open").into());
                }
                host.run_until(host.board.cycle() + CHUNK_CYCLES, |_, _| ())?;
            }
        }
        host.board.restart_time()?;
        Ok(host)
    }

    /// Runs up to `cycle` and shows the octet time at which every segment begins, and its payload bytes.
    fn run_until(&mut self, cycle: u64, mut see: impl FnMut(u64, u64)) -> Result<(), Failure> {
        while self.board.cycle() < cycle {
            self.board.run_until(cycle.min(self.board.cycle() + CHUNK_CYCLES));
            while let Some(received) = self.board.poll_transmit() {
                if !received.fcs_ok {
                    return Err(format!("frame at octet {}: bad FCS or underrun", received.start_octet).into());
                }
                let segment = TcpPacket::parse(&received.frame)?;
                see(received.start_octet, segment.payload.len() as u64);
                self.answer(&received, &segment)?;
            }
            while let Some(completion) = self.board.poll_completion() {
                if completion.status != WcStatus::Success {
                    return Err(format!("message {}: {}", completion.tag, completion.status).into());
                }
            }
        }
        Ok(())
    }

    /// Acknowledges every segment; an ideal link loses, repeats and reorders none.
    fn answer(&mut self, received: &Received, segment: &TcpPacket) -> Result<(), Failure> {
        let index = segment.src_port.wrapping_sub(self.ports);
        let next = self.next.get_mut(usize::from(index)).ok_or_else(|| format!("a segment of stream {index}"))?;
        let opens = segment.flags.contains(TcpFlags::SYN);
        let len = segment.payload.len() as u32 + u32::from(opens);
        if len == 0 {
            return Ok(());
        }
        if !opens && *next != Some(segment.seq) {
            return Err(format!("stream {index}: sequence number {}, expected {next:?}", segment.seq).into());
        }
        let ack = segment.seq.wrapping_add(len);
        *next = Some(ack);
        let (octets, cycles) = self.top.clock().octets_per_cycle;
        let end = received.start_octet + PREAMBLE_AND_FCS + received.frame.len() as u64;
        let at = (end * cycles).div_ceil(octets) + self.answer_cycles;
        self.board.receive(at, acknowledgement(segment.src_port, segment.dst_port, ack, opens).emit(), true);
        Ok(())
    }

    /// Bytes of streams that messages of one size bring in an octet time of the line, while `bytes` of them enter.
    fn entering(&mut self, message_bytes: u32, bytes: u64) -> Result<f64, Failure> {
        let (begin, before) = (self.board.cycle(), self.board.read(source::BYTES_LO)?);
        self.run_until(begin + bytes / self.top.lanes() as u64, |_, _| ())?;
        let (end, after) = (self.board.cycle(), self.board.read(source::BYTES_LO)?);
        let (octets, cycles) = self.top.clock().octets_per_cycle;
        let framed = (message_bytes.next_multiple_of(FRAMING) + FRAMING) as f64 / f64::from(message_bytes);
        Ok(f64::from(after - before) * framed / ((end - begin) * octets) as f64 * cycles as f64)
    }

    /// The windows, closed at first, open.
    fn open_windows(&mut self) {
        for (index, next) in (0..).zip(&self.next) {
            let update = acknowledgement(self.ports + index, FIRST_PORT + index, next.unwrap_or(0), false);
            self.board.receive(self.board.cycle(), update.emit(), true);
        }
    }
}

/// What the host answers; its first answer opens a stream with a closed window.
fn acknowledgement(board_port: u16, host_port: u16, ack: u32, opens: bool) -> TcpPacket {
    let scaled = SynOptions { mss: Some(8960), window_scale: Some(WINDOW_SCALE), malformed: false };
    TcpPacket {
        eth_dst: BOARD.0,
        eth_src: HOST.0,
        ip_src: HOST.1,
        ip_dst: BOARD.1,
        dscp: 0,
        ecn: Ecn::NotEct,
        ttl: 64,
        src_port: host_port,
        dst_port: board_port,
        seq: HOST_ISS.wrapping_add(u32::from(!opens)),
        ack,
        flags: if opens { TcpFlags::SYN.with(TcpFlags::ACK) } else { TcpFlags::ACK },
        window: if opens { 0 } else { u16::MAX },
        options: if opens { scaled } else { SynOptions::default() },
        sack: SackBlocks::default(),
        payload: Payload::Bytes(Bytes::new()),
    }
}
