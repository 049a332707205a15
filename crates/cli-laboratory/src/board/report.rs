// SPDX-License-Identifier: Apache-2.0
//! The final report of `penstock board`: traffic, results of messages, the gateware's counters, slowdown against real
//! time.

use super::connections::Connection;
use super::control::Resets;
use super::destinations::{Destination, Outage};
use super::session::{Measured, Session};
use super::slices::Slices;
use super::target::stream_failure;
use crate::gateware::{Meters, Triggers};
use penstock_board::{qp_register, regs, stream_register, LineClock};
use penstock_cc::DcqcnParams;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_dashboard::Applied;
use penstock_ipbus::dcqcn::{groups, show_share, InForce};
use penstock_lab::report::per;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// How a run ends when the server is gone and no other one comes.
pub const ABANDONED: &str = "no server";
/// How it ends when the server ends each connection without taking a message.
pub const REFUSED: &str = "refused";

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Version of this layout.
const SCHEMA: u32 = 1;

/// The summary. All but `timing` depends on the wire and the flags alone where the wire's time is the board's.
#[derive(Debug, Serialize)]
pub struct BoardReport {
    schema: u32,
    /// "done", "interrupted", "time limit", "wall time limit", "no server", "refused".
    end: &'static str,
    /// How many of the messages that were to be sent have ended, and why not all; or why none could be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    frames: Frames,
    messages: Messages,
    /// Those that the messages went over, one after the other.
    connections: Vec<Connection>,
    /// The servers that share its events, and those that died.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    destinations: Vec<Destination>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outages: Vec<Outage>,
    /// The queue pairs that are not in RESET.
    queue_pairs: Vec<QueuePair>,
    /// The streams of TCP that have been opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    streams: Vec<Stream>,
    /// Each group of parameters, as its registers are at the end.
    congestion: Vec<Congestion>,
    /// Frames in the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    captured: Option<u64>,
    /// The emulated switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<Switch>,
    /// R_C, R_T and alpha of the sampled queue pair, wherever they changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rates: Vec<Rates>,
    /// The changes made from the live page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Applied>,
    /// The outcomes of its detector's triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    triggers: Option<Triggers>,
    /// Counts of the standard connection manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma_cm: Option<BTreeMap<String, u64>>,
    /// Resets commanded by `--control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resets: Option<Resets>,
    /// Streams without triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<Slices>,
    /// Counters of the gateware.
    counters: BTreeMap<&'static str, u32>,
    time: BoardTime,
    timing: Timing,
}

#[derive(Debug, Serialize)]
struct Frames {
    sent: u64,
    sent_bytes: u64,
    received: u64,
    received_bytes: u64,
    /// Sent while there was no peer.
    lost: u64,
    /// Cut short by the board.
    bad_fcs: u64,
}

#[derive(Debug, Serialize)]
struct Messages {
    ok: u64,
    /// Messages that failed for good; those that were sent again over the next connection count as `sent_again`, with
    /// their errors.
    failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    sent_again: u64,
    errors: BTreeMap<String, u64>,
    first_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct QueuePair {
    index: u8,
    /// The state as a number of `enum ibv_qp_state`.
    state: u32,
    bytes_acked: u64,
    packets_sent: u32,
    packets_retransmitted: u32,
    cnps_handled: u32,
    /// Meters of the last series of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    meters: Option<Meters>,
}

#[derive(Debug, Serialize)]
struct Stream {
    index: u8,
    /// 0 closed, 1 SYN sent, 2 established.
    state: u32,
    /// The reason of its last end.
    ended: &'static str,
    bytes_acked: u64,
    segments: u32,
    retransmitted: u32,
    timeouts: u32,
    /// How often the receiver closed its window.
    window_closed: u32,
    /// Meters of the last series of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    meters: Option<Meters>,
}

#[derive(Debug, Serialize)]
struct Congestion {
    group: u32,
    /// "off", "dcqcn", "qcn".
    law: &'static str,
    /// "advcam", "zhu", "ns3", "penstock"; "custom": DCQCN's registers hold no set that has a name.
    profile: &'static str,
    /// The share of a server's line that "penstock" follows from, as in "39Mbps".
    share: Option<String>,
}

#[derive(Debug, Serialize)]
struct Rates {
    at_us: f64,
    qp: u8,
    current_gbps: f64,
    target_gbps: f64,
    alpha: f64,
}

#[derive(Debug, Serialize)]
struct Switch {
    /// CNPs it has sent, and those that it could not address.
    notifications: Vec<Notified>,
    unaddressed: u64,
    /// Falls of R_C.
    cuts: Vec<Cut>,
    /// Payload over the window, and what was allowed, every 10 us.
    measured: Vec<MeasuredAt>,
}

#[derive(Debug, Serialize)]
struct Notified {
    at_us: f64,
    measured_gbps: f64,
    threshold_gbps: f64,
}

#[derive(Debug, Serialize)]
struct Cut {
    at_us: f64,
    /// Alpha before it; all but `after_gbps` are values before it.
    alpha: f64,
    before_gbps: f64,
    after_gbps: f64,
}

#[derive(Debug, Serialize)]
struct MeasuredAt {
    at_us: f64,
    throughput_gbps: f64,
    threshold_gbps: Option<f64>,
}

/// The board's own time.
#[derive(Debug, Serialize)]
struct BoardTime {
    simulated_s: f64,
    /// Clock cycles with work, cycles in which only the peer could go on, cycles with nothing to do.
    running_cycles: u64,
    waiting_cycles: u64,
    idle_cycles: u64,
}

/// The machine-dependent values.
#[derive(Debug, Serialize)]
struct Timing {
    /// Time of the machine for a second of the board's, while the board had work.
    slowdown: f64,
    running_s: f64,
    slept_s: f64,
    /// A full wire held the clock for so long.
    blocked_s: f64,
    cycles_per_s: f64,
}

impl BoardReport {
    /// Requests the board's counters.
    pub fn new(mut session: Session, end: &'static str, captured: Option<u64>) -> Result<Self, Failure> {
        let (stats, clock) = (session.board.stats().clone(), session.board.clock());
        let counters = regs::counters::ALL
            .iter()
            .map(|&(name, address)| Ok((name, session.board.read(address)?)))
            .collect::<Result<_, Failure>>()?;
        let unfinished = match end {
            REFUSED => Some(session.refused()),
            _ => session.unfinished(),
        };
        let errors = stats.messages.errors.iter().map(|(status, count)| (status.to_string(), *count)).collect();
        let seconds = |time: Duration| time.as_secs_f64();
        Ok(Self {
            schema: SCHEMA,
            end,
            unfinished,
            frames: Frames {
                sent: stats.tx_frames,
                sent_bytes: stats.tx_bytes,
                received: stats.rx_frames,
                received_bytes: stats.rx_bytes,
                lost: stats.lost_frames,
                bad_fcs: stats.tx_bad_fcs,
            },
            messages: Messages {
                ok: stats.messages.ok,
                failed: stats.messages.failed() - session.again,
                sent_again: session.again,
                errors,
                first_error: stats
                    .messages
                    .first_error
                    .map(|(at, completion)| format!("{} at {at}", completion.status)),
            },
            connections: session.connections.all().to_vec(),
            destinations: session.destinations.all().to_vec(),
            outages: session.destinations.outages().to_vec(),
            queue_pairs: queue_pairs(&mut session)?,
            streams: streams(&mut session)?,
            congestion: congestion(&mut session)?,
            captured,
            switch: switch(&session),
            rates: session.rates.iter().map(|sample| rates(clock, sample)).collect(),
            steered: Vec::new(),
            triggers: Triggers::read(clock, |address| session.board.read(address))?,
            rdma_cm: None,
            resets: None,
            slices: if session.has_slices() { Some(Slices::read(&mut session.board)?) } else { None },
            counters,
            time: BoardTime {
                simulated_s: session.board.now().as_secs_f64(),
                running_cycles: stats.running_cycles,
                waiting_cycles: stats.waiting_cycles,
                idle_cycles: stats.idle_cycles,
            },
            timing: Timing {
                slowdown: stats.slowdown(clock),
                running_s: seconds(stats.running),
                slept_s: seconds(stats.slept),
                blocked_s: seconds(stats.blocked),
                cycles_per_s: per(stats.running_cycles as f64, seconds(stats.running)),
            },
        })
    }

    /// How it ended.
    pub fn end(&self) -> &'static str {
        self.end
    }

    /// A fault: a message failed or was not sent for want of a server or of time, a frame was cut, a queue pair is in
    /// error, or slices lack data.
    pub fn verdict(&self) -> Verdict {
        const ERROR: u32 = 6;
        let broken = self.queue_pairs.iter().any(|pair| pair.state == ERROR);
        let whole = self.slices.as_ref().is_none_or(Slices::are_whole);
        let finished = self.unfinished.is_none() && self.end != ABANDONED;
        // A reset cuts the frame that is on the line.
        let cut = self.resets.as_ref().map_or(0, |resets| resets.front_end);
        match self.messages.failed == 0 && self.frames.bad_fcs <= cut && !broken && whole && finished {
            true => Verdict::Verified,
            false => Verdict::Fault,
        }
    }
}

fn queue_pairs(session: &mut Session) -> Result<Vec<QueuePair>, Failure> {
    use regs::qp as q;
    let board = &mut session.board;
    let mut pairs = Vec::new();
    for index in 0..board.queue_pairs() {
        let mut read = |offset| board.read(qp_register(index, offset));
        let state = q::STATE_BITS.of(read(q::STATE)?);
        if state == 0 {
            continue;
        }
        pairs.push(QueuePair {
            index,
            state,
            bytes_acked: u64::from(read(q::BYTES_ACKED_HI)?) << 32 | u64::from(read(q::BYTES_ACKED_LO)?),
            packets_sent: read(q::PACKETS_SENT)?,
            packets_retransmitted: read(q::PACKETS_RETRANSMITTED)?,
            cnps_handled: read(q::RP_CNP_HANDLED)?,
            meters: Meters::read(board.clock(), index, |address| board.read(address))?,
        });
    }
    Ok(pairs)
}

fn streams(session: &mut Session) -> Result<Vec<Stream>, Failure> {
    use regs::stream as s;
    let board = &mut session.board;
    let mut streams = Vec::new();
    for index in 0..board.streams() {
        let mut read = |offset| board.read(stream_register(index, offset));
        let segments = read(s::SEGMENTS)?;
        if segments == 0 {
            continue;
        }
        let state = read(s::STATE)?;
        streams.push(Stream {
            index,
            state: s::STATE_BITS.of(state),
            ended: stream_failure(s::STATE_ENDED_BITS.of(state)),
            bytes_acked: u64::from(read(s::BYTES_ACKED_HI)?) << 32 | u64::from(read(s::BYTES_ACKED_LO)?),
            segments,
            retransmitted: read(s::RETRANSMITTED)?,
            timeouts: read(s::TIMEOUTS)?,
            window_closed: read(s::WINDOW_CLOSED)?,
            meters: Meters::of_stream(board.clock(), board.queue_pairs(), index, |address| board.read(address))?,
        });
    }
    Ok(streams)
}

fn congestion(session: &mut Session) -> Result<Vec<Congestion>, Failure> {
    let board = &mut session.board;
    let khz = (board.clock().hz / 1000) as u32;
    let count = groups(board.queue_pairs().into());
    let group = |group| {
        let base = regs::cc::BASE + group * regs::cc::STRIDE;
        let words =
            (0..DcqcnParams::WORDS as u32).map(|word| board.read(base + 4 * word)).collect::<Result<Vec<_>, _>>()?;
        let read = InForce::read(&words, khz);
        let share = read.share.map(|share| show_share(share, khz));
        Ok(Congestion { group, law: read.law, profile: read.profile_name(), share })
    };
    (0..count).map(group).collect()
}

fn gbps(rate: penstock_netsim::Rate) -> f64 {
    rate.bits_per_second() as f64 * 1e-9
}

fn switch(session: &Session) -> Option<Switch> {
    let switch = session.board.switch()?;
    let notified = |n: &penstock_netsim::Notification| Notified {
        at_us: n.at.as_ps() as f64 * 1e-6,
        measured_gbps: gbps(n.measured),
        threshold_gbps: gbps(n.threshold),
    };
    let samples: Vec<Rates> = session.rates.iter().map(|sample| rates(session.board.clock(), sample)).collect();
    let falls = samples.windows(2).filter(|pair| pair[1].current_gbps < pair[0].current_gbps);
    let cut = |pair: &[Rates]| Cut {
        at_us: pair[1].at_us,
        alpha: pair[0].alpha,
        before_gbps: pair[0].current_gbps,
        after_gbps: pair[1].current_gbps,
    };
    let measured = |m: &Measured| MeasuredAt {
        at_us: m.at.as_ps() as f64 * 1e-6,
        throughput_gbps: gbps(m.throughput),
        threshold_gbps: m.threshold.map(gbps),
    };
    Some(Switch {
        notifications: switch.notifications().iter().map(notified).collect(),
        unaddressed: switch.unaddressed(),
        cuts: falls.map(cut).collect(),
        measured: session.measured.iter().map(measured).collect(),
    })
}

fn rates(clock: LineClock, sample: &penstock_board::RateSample) -> Rates {
    // Q8.24 bytes per cycle
    let gbps =
        |rate: penstock_cc::CycleRate| f64::from(rate.0) / f64::from(1 << 24) * 8.0 / (clock.picoseconds(1.0) * 1e-3);
    Rates {
        at_us: clock.picoseconds(sample.cycle as f64) * 1e-6,
        qp: sample.qp,
        current_gbps: gbps(sample.current),
        target_gbps: gbps(sample.target),
        alpha: f64::from(sample.alpha) / 65536.0,
    }
}

/// One line where all groups are the same.
fn congestion_lines(groups: &[Congestion]) -> Vec<String> {
    let text = |group: &Congestion| match (group.law, &group.share) {
        ("dcqcn", Some(share)) => format!("dcqcn, profile {}, share {share}", group.profile),
        ("dcqcn", None) => format!("dcqcn, profile {}", group.profile),
        (law, _) => law.to_owned(),
    };
    let all: Vec<String> = groups.iter().map(text).collect();
    match all.split_first() {
        Some((first, rest)) if rest.iter().all(|other| other == first) => vec![format!("congestion   {first}")],
        _ => {
            groups.iter().zip(all).map(|(group, text)| format!("congestion   group {}: {text}", group.group)).collect()
        }
    }
}

/// The summary for people.
pub fn text(report: &BoardReport) -> String {
    let BoardReport { frames, messages, time, timing, .. } = report;
    let mut lines = vec![
        format!("end          {}", report.end),
        format!(
            "frames       {} sent ({} bytes), {} received ({} bytes), {} lost",
            frames.sent, frames.sent_bytes, frames.received, frames.received_bytes, frames.lost
        ),
        format!("messages     {} ok, {} failed, {} sent again", messages.ok, messages.failed, messages.sent_again),
    ];
    lines.extend(report.unfinished.iter().map(|why| format!("unfinished   {why}")));
    lines.extend(report.connections.iter().map(|connection| format!("connection   {}", connection.text())));
    lines.extend(report.destinations.iter().map(|destination| format!("server       {}", destination.text())));
    lines.extend(report.outages.iter().map(|outage| format!("outage       {}", outage.text())));
    lines.extend(messages.first_error.iter().map(|error| format!("first error  {error}")));
    for pair in &report.queue_pairs {
        lines.push(format!(
            "queue pair {} state {}, {} bytes acknowledged, {} packets ({} again), {} CNPs",
            pair.index, pair.state, pair.bytes_acked, pair.packets_sent, pair.packets_retransmitted, pair.cnps_handled
        ));
        lines.extend(pair.meters.iter().map(|meters| format!("             {meters}")));
    }
    for stream in &report.streams {
        lines.push(format!(
            "stream {}     state {}, {} bytes acknowledged, {} segments ({} again), {} timeouts, {}",
            stream.index,
            stream.state,
            stream.bytes_acked,
            stream.segments,
            stream.retransmitted,
            stream.timeouts,
            stream.ended
        ));
        lines.extend(stream.meters.iter().map(|meters| format!("             {meters}")));
    }
    lines.extend(report.triggers.iter().map(|triggers| format!("triggers     {triggers}")));
    lines.extend(report.slices.iter().map(|slices| format!("slices       {slices}")));
    if !report.congestion.is_empty() {
        lines.extend(congestion_lines(&report.congestion));
    }
    for cut in report.switch.iter().flat_map(|switch| &switch.cuts) {
        lines.push(format!(
            "R_C          {:.3} to {:.3} Gb/s at {:.1} us, alpha {:.3}",
            cut.before_gbps, cut.after_gbps, cut.at_us, cut.alpha
        ));
    }
    lines.extend(report.captured.map(|count| format!("captured     {count} frames")));
    lines.push(format!(
        "time         {:.3} ms of the board's, {:.0} times slower than real time ({:.0} kHz) while it had work",
        time.simulated_s * 1e3,
        timing.slowdown,
        timing.cycles_per_s * 1e-3
    ));
    lines.join("\n")
}
