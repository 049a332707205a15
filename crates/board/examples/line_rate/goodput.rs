// SPDX-License-Identifier: Apache-2.0
//! The share of the line that a front end fills, relative to the packets that its messages need.

use crate::station::{Failure, Station, REGION};
use crate::stopwatch::Stopwatch;
use bytes::Bytes;
use penstock_board::{regs::source, Message, Top, Verb};
use penstock_wire::{Position, RocePacket};
use std::collections::HashMap;

/// Octets on the wire with every packet of a WRITE: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4,
/// gap 12.
const PACKET_OVERHEAD: u64 = 82;
/// The first packet of a WRITE carries a RETH, too.
const RETH: u64 = 16;
/// Messages of software at the input.
const AHEAD: usize = 2;
const WARM_UP_CYCLES: u64 = 80_000;
/// Counted is from the start of the first packet to that of the last, and that is to be at least 1 ms: two packets
/// more.
const MEASURED_US: f64 = 1010.0;

/// Line rate of a front end, 10^9 bit/s.
pub fn gbps(top: Top) -> f64 {
    top.clock().rate().bits_per_second() as f64 * 1e-9
}

/// Clock cycles of a front end in this time, rounded up.
pub fn cycles_in(top: Top, us: f64) -> u64 {
    (us * top.clock().hz as f64 * 1e-6).ceil() as u64
}

/// Messages of one size, which the queue pairs send in turn.
#[derive(Clone, Copy)]
pub struct Load {
    pub message_bytes: u32,
    pub mtu: u16,
    pub queue_pairs: u8,
    /// How long a server takes to answer: what has been sent by then waits in the rings.
    pub answer_us: f64,
}

impl Load {
    /// Payload bytes of the packet that begins at this byte of a message.
    fn payload_at(&self, offset: u32) -> u32 {
        (self.message_bytes - offset).min(self.mtu.into())
    }

    /// Line time, in octets, of the packet that begins at this byte of a message; the payload is padded to 32 bits.
    fn octets_at(&self, offset: u32) -> u64 {
        let reth = if offset == 0 { RETH } else { 0 };
        PACKET_OVERHEAD + reth + u64::from(self.payload_at(offset).next_multiple_of(4))
    }

    /// The physical limit: payload's share of the line time that the packets of a message need.
    pub fn payload_share(&self) -> f64 {
        let octets: u64 = (0..self.message_bytes).step_by(self.mtu.into()).map(|offset| self.octets_at(offset)).sum();
        f64::from(self.message_bytes) / octets as f64
    }
}

/// What was measured.
pub struct Goodput {
    /// Goodput by its physical limit.
    pub share: f64,
    /// Simulated clock cycles in a second of this machine's processor.
    pub cycles_per_second: f64,
}

/// Has the front end's own source send for [`MEASURED_US`].
pub fn measure(top: Top, load: Load) -> Result<Goodput, Failure> {
    let answer_cycles = cycles_in(top, load.answer_us);
    let mut station = Station::open(top, load.queue_pairs, load.mtu, answer_cycles)?;
    start_source(&mut station, load)?;
    of_station(top, station, load)
}

/// Has it send messages of software, as a board of a simulation does; all of the first queue pair.
pub fn measure_posted(top: Top, load: Load) -> Result<Goodput, Failure> {
    let mut station = Station::open(top, 1, load.mtu, cycles_in(top, load.answer_us))?;
    let payload = Bytes::from(vec![0x5a; load.message_bytes as usize]);
    station.feed = Some(Box::new(move |board| {
        while board.pending_messages() < AHEAD {
            let (verb, remote_address, payload) = (Verb::Write, REGION.va, payload.clone());
            board.post(Message { qp: 0, verb, imm: None, remote_address, tag: 0, payload });
        }
    }));
    of_station(top, station, load)
}

/// The goodput of a front end that sends such messages without a pause.
pub fn of_station(top: Top, mut station: Station, load: Load) -> Result<Goodput, Failure> {
    let mut meter = Meter::new(load);
    station.board.restart_time()?;
    station.run_until(WARM_UP_CYCLES, |_, packet| {
        meter.follow(packet);
    })?;
    let (started, cycles) = (Stopwatch::start(), cycles_in(top, MEASURED_US));
    station.run_until(WARM_UP_CYCLES + cycles, |start_octet, packet| meter.see(start_octet, packet))?;
    let cycles_per_second = cycles as f64 / started.seconds();

    match station.repeated_packets() {
        0 => Ok(Goodput { share: meter.share(), cycles_per_second }),
        repeated => Err(format!("{repeated} packets were sent again or out of order on a link that loses none").into()),
    }
}

/// WRITEs to the same place, one after another without end, one queue pair after another.
fn start_source(station: &mut Station, load: Load) -> Result<(), Failure> {
    let last_qp = u32::from(load.queue_pairs - 1);
    for (register, value) in [
        (source::QP_RANGE, source::QP_RANGE_QP_LAST_BITS.at(last_qp)),
        (source::LENGTH_MIN, load.message_bytes),
        (source::RADDR_LO, REGION.va as u32),
        (source::COMMAND, source::COMMAND_START_BITS.mask),
    ] {
        station.board.write(register, value)?;
    }
    Ok(())
}

/// Adds up the line time that the packets need, from the start of one to the start of a later one.
struct Meter {
    load: Load,
    /// Where the next packet of each queue pair's message begins, by destination.
    offsets: HashMap<u32, u32>,
    first_octet: Option<u64>,
    /// Start of the latest packet.
    latest_octet: u64,
    /// Line time of the packets before the latest, and with it.
    needed_before: u64,
    needed: u64,
}

impl Meter {
    fn new(load: Load) -> Self {
        Self { load, offsets: HashMap::new(), first_octet: None, latest_octet: 0, needed_before: 0, needed: 0 }
    }

    /// Where in its message a packet begins.
    ///
    /// # Panics
    /// When the packet is none that the message needs.
    fn follow(&mut self, packet: &RocePacket) -> u32 {
        let next = self.offsets.entry(packet.bth.dest_qpn.value()).or_default();
        let offset = std::mem::take(next);
        let (position, end) = (packet.bth.opcode.position(), offset + packet.payload.len() as u32);
        assert_eq!(packet.payload.len() as u32, self.load.payload_at(offset), "payload at byte {offset} of a message");
        assert_eq!(matches!(position, Position::First | Position::Only), offset == 0, "{position:?} at byte {offset}");
        assert_eq!(matches!(position, Position::Last | Position::Only), end == self.load.message_bytes);
        if end < self.load.message_bytes {
            *next = end;
        }
        offset
    }

    fn see(&mut self, start_octet: u64, packet: &RocePacket) {
        let offset = self.follow(packet);
        self.first_octet.get_or_insert(start_octet);
        self.latest_octet = start_octet;
        self.needed_before = self.needed;
        self.needed += self.load.octets_at(offset);
    }

    fn share(&self) -> f64 {
        let octets = self.latest_octet - self.first_octet.unwrap_or(0);
        self.needed_before as f64 / octets as f64
    }
}
