// SPDX-License-Identifier: Apache-2.0
//! Events through the gateware's fragment builder: all inputs of a detector, driven at full speed.

use crate::detector::Detector;
use crate::goodput::{self, cycles_in, Goodput, Load};
use crate::station::{Failure, Station, REGION};
use penstock_board::regs::global;
use penstock_board::{EventsConfig, RingTarget, Top, WhileBusy};

const MTU: u16 = 4096;
const ANSWER_US: f64 = 1.0;
const ANSWER_CYCLES: u64 = 156;
/// Cycles from a trigger to the samples: it is accepted, and the digitisers answer in the cycle after that.
const ANSWERS_CYCLES: u64 = 2;
/// Longer than an event of the latency's rows takes, and its answer.
const PAUSE_CYCLES: u64 = 4_000;

/// Directs the events of all inputs into the one slot of a ring.
fn set_up(station: &mut Station, inputs: usize) -> Result<(), Failure> {
    let while_busy = WhileBusy::Wait;
    let config = EventsConfig { qp: 0, by_event: false, send: false, source_id: 1, inputs, while_busy };
    let ring = RingTarget { va: REGION.va, slots: 1, slot_bytes: REGION.len as u32 };
    station.board.set_ring(0, ring)?;
    Ok(station.board.set_events(&config)?)
}

/// What a line carries of the messages of events with this payload.
pub fn load(payload: usize) -> Load {
    let message_bytes = Detector::new(payload).message_bytes();
    Load { message_bytes, mtu: MTU, queue_pairs: 1, answer_us: ANSWER_US }
}

/// Events without a pause.
pub fn goodput(top: Top, payload: usize) -> Result<Goodput, Failure> {
    let answer_cycles = cycles_in(top, ANSWER_US);
    let mut station = Station::open(top, 1, MTU, answer_cycles)?;
    let mut detector = Detector::new(payload);
    set_up(&mut station, detector.streams.len())?;
    station.feed = Some(Box::new(move |board| detector.refill(board)));
    goodput::of_station(top, station, load(payload))
}

/// The most cycles from the one in which the first samples are offered to that of the message's first octet on the
/// wire.
pub fn latency(top: Top, payload: usize, cut_through: bool) -> Result<f64, Failure> {
    let mut station = Station::open(top, 1, MTU, ANSWER_CYCLES)?;
    station.board.write(global::REQUESTER, global::REQUESTER_CUT_THROUGH_BITS.at(cut_through))?;
    let mut detector = Detector::new(payload);
    set_up(&mut station, detector.streams.len())?;
    let (octets, cycles) = top.clock().octets_per_cycle;
    let mut worst = 0;
    for number in 0..8 {
        let triggered = station.board.cycle() + PAUSE_CYCLES + number;
        let offered = triggered + ANSWERS_CYCLES;
        station.run_until(triggered, |_, _| ())?;
        station.board.detect(detector.event());
        let mut start_cycle: Option<u64> = None;
        station.run_until(offered + PAUSE_CYCLES, |octet, _| {
            start_cycle.get_or_insert(octet * cycles / octets);
        })?;
        worst = worst.max(start_cycle.ok_or("an event was not sent")? - offered);
    }
    Ok(worst as f64)
}
