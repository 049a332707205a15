// SPDX-License-Identifier: Apache-2.0
//! A verilated board as a sender of a laboratory (`sender = "gateware"`), set up by its registers as software would.
//! Promise: it sends the messages of the scenario's flow, in their order, none before its time.

use super::counters::{CounterError, GatewareCounters};
use crate::gateware::{Meters, Triggers, BOARD_CLOCK_HZ, ECT0, LEAD, TRIGGER_TYPE};
use penstock_board::regs::counters;
use penstock_board::{
    Board, BoardNode, DetectorEvent, EndpointConfig, EventsConfig, Feed, Message, MessageSource, MessageTally,
    QpConfig, RingTarget, Verb, CYCLE,
};
use penstock_cc::DcqcnParams;
use penstock_lab::report::FlowSummary;
use penstock_lab::{BoardFlow, BoardRequest, Lab, LabVerb, MakerError, Pace, SteadyParams, Workload};
use penstock_netsim::{Fragments, Node, Rate, SharedLedger, Time};
use penstock_wire::fragment::message_2_len;
use penstock_wire::gateware::BOARD_EVENT_BYTES;
use penstock_wire::Qpn;
use serde::Serialize;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};

/// Why a board cannot send what a scenario asks for.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("a board sends one flow, this one has {0}; let other hosts send the rest")]
    Flows(usize),
    #[error("a link of {0}; the board's is 10Gbps")]
    Rate(Rate),
    #[error("a link of {0} delay; it needs {CYCLE} at least, one clock cycle")]
    Delay(Time),
    #[error("flow {0} has no end of its own: give it a size, or a rate and a stop time")]
    Endless(String),
    #[error("flow {flow} has messages of {bytes} bytes; a board sends at most 2147483648")]
    TooLong { flow: String, bytes: u64 },
    #[error(
        "flow {flow}: a board's part of an event has {bytes} bytes; the gateware's events have at most \
         {BOARD_EVENT_BYTES}, so let more boards share them"
    )]
    EventTooLong { flow: String, bytes: usize },
    #[error(
        "flow {0} has qp.verb = \"write\"; the gateware sends events with an immediate: \"write-imm\" or \"send\""
    )]
    NoImmediate(String),
    #[error("flow {0} has cc.law = \"qcn\"; allowed for a board are \"off\" and \"dcqcn\"")]
    Qcn(String),
}

/// The node of a board; for `Lab::build`.
pub fn board(request: BoardRequest) -> Result<Box<dyn Node>, MakerError> {
    let count = request.flows.len();
    let [flow] = <[BoardFlow; 1]>::try_from(request.flows).map_err(|_| BoardError::Flows(count))?;
    let (link, qp, spec) = (request.link, &request.scenario.qp, flow.spec);
    if link.rate != Rate::from_gbps(10) {
        return Err(BoardError::Rate(link.rate).into());
    }
    if link.delay < BoardNode::MIN_LINK_DELAY {
        return Err(BoardError::Delay(link.delay).into());
    }
    let pair = &flow.queue_pair;
    let (own, peer) = (pair.local, pair.peer);
    let index = (own.qpn.value() & 0xff) as u8;
    let congestion = match spec.law {
        penstock_cc::Law::Off => DcqcnParams { law: spec.law, ..DcqcnParams::default() },
        penstock_cc::Law::Dcqcn => spec.dcqcn.at_clock(BOARD_CLOCK_HZ)?,
        penstock_cc::Law::Qcn => return Err(BoardError::Qcn(spec.name.clone()).into()),
    };
    let endpoint = EndpointConfig {
        mac: own.mac,
        ip: own.ip,
        ttl: 64,
        qpn_base: Qpn::new(own.qpn.value() & !0xff),
        obey_pause: true,
        obey_pfc: true,
        traffic_class: spec.dscp >> 3,
        congestion,
    };
    let connection = QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: pair.udp_sport,
        tos: spec.dscp << 2 | ECT0,
        dest_qpn: peer.qpn,
        rkey: flow.fragments.as_ref().map_or(0, |fragments| fragments.ring.rkey),
        mtu: qp.mtu,
        ack_timeout: qp.ack_timeout_code,
        retry_cnt: qp.retry_cnt,
        rnr_retry: qp.rnr_retry,
        init_psn: pair.first_psn,
    };
    let interval = request.scenario.trace.interval;
    let number = flow.id;
    let mut board = Board::new();
    board.configure(&endpoint)?;
    if let Some(Fragments { ring, contents }) = &flow.fragments {
        if qp.verb == LabVerb::Write {
            return Err(BoardError::NoImmediate(spec.name.clone()).into());
        }
        let ring = RingTarget { va: ring.va, slots: ring.slots, slot_bytes: ring.slot_bytes };
        board.set_ring(index, ring)?;
        board.set_events(&EventsConfig {
            by_event: false,
            qp: index,
            send: qp.verb == LabVerb::Send,
            source_id: contents.source_id(),
            inputs: contents.streams(0).len(),
        })?;
    }
    let messages = Messages::of(flow, index, qp.verb, &request.ledger)?;
    board.open_qp(index, &connection)?;
    let mut node = BoardNode::new(request.name, board, Box::new(messages), link.delay, interval)?;
    let ledger = request.ledger;
    node.at_end(move |tally| match tally.first_error {
        Some((at, completion)) => ledger.borrow_mut().failed(number, at, &completion.status.to_string()),
        None => ledger.borrow_mut().ended(number),
    });
    Ok(Box::new(node))
}

/// A flow's messages, known before the run, since the board asks for them from a thread of its own.
struct Messages {
    /// Time, bytes and event of each.
    waiting: VecDeque<(Time, u64, u64)>,
    /// What the detector gives of events, where the messages are the gateware's to make.
    fragments: Option<Fragments>,
    zeros: bytes::Bytes,
    qp: u8,
    verb: LabVerb,
    sent: u32,
}

impl Messages {
    /// Takes all messages of the flow's source and tells the ledger of them.
    fn of(mut flow: BoardFlow, qp: u8, verb: LabVerb, ledger: &SharedLedger) -> Result<Self, BoardError> {
        let endless = |steady: &SteadyParams| {
            steady.total_bytes.is_none() && (steady.stop.is_none() || steady.pace == Pace::Greedy)
        };
        if matches!(&flow.spec.workload, Workload::Steady(steady) if endless(steady)) {
            return Err(BoardError::Endless(flow.spec.name.clone()));
        }
        let mut waiting = VecDeque::new();
        let mut now = Time::ZERO;
        while let Some(mut message) = flow.source.next_message(now) {
            now = message.at;
            if let Some(fragments) = &flow.fragments {
                let streams = fragments.contents.streams(message.event);
                let payload = streams.iter().map(bytes::Bytes::len).sum();
                if payload > BOARD_EVENT_BYTES {
                    return Err(BoardError::EventTooLong { flow: flow.spec.name.clone(), bytes: payload });
                }
                message.bytes = message_2_len(payload, streams.len()) as u64;
            }
            ledger.borrow_mut().posted(flow.id, &message);
            waiting.push_back((message.at, message.bytes, message.event));
        }
        let longest = waiting.iter().map(|message| message.1).max().unwrap_or(0);
        if longest > 1 << 31 {
            return Err(BoardError::TooLong { flow: flow.spec.name.clone(), bytes: longest });
        }
        let fragments = flow.fragments;
        let zeros = vec![0; if fragments.is_some() { 0 } else { longest as usize }].into();
        Ok(Messages { waiting, fragments, zeros, qp, verb, sent: 0 })
    }
}

impl MessageSource for Messages {
    fn next_time(&self) -> Option<Time> {
        self.waiting.front().map(|message| message.0)
    }

    fn lead(&self) -> Time {
        if self.fragments.is_some() {
            LEAD
        } else {
            Time::ZERO
        }
    }

    fn take(&mut self) -> Option<Feed> {
        let (at, len, event) = self.waiting.pop_front()?;
        if let Some(Fragments { contents, .. }) = &self.fragments {
            let streams = contents.streams(event);
            let cycle = at.div_ceil(CYCLE);
            return Some(DetectorEvent { number: event, trigger_type: TRIGGER_TYPE, cycle, streams }.into());
        }
        let tag = self.sent;
        self.sent += 1;
        let message = Message {
            qp: self.qp,
            verb: if self.verb == LabVerb::Send { Verb::Send } else { Verb::Write },
            imm: (self.verb == LabVerb::WriteImm).then_some(tag),
            remote_address: 0,
            tag,
            payload: self.zeros.slice(..len as usize),
        };
        Some(message.into())
    }
}

/// What one board did.
#[derive(Debug, Serialize)]
pub struct BoardSummary {
    pub name: String,
    /// Payload that its receiver got, per second until the board's last message ended, 10^9 bit/s.
    pub goodput_gbps: f64,
    pub messages_ok: u64,
    pub messages_error: u64,
    /// Failed messages by reason.
    pub errors: BTreeMap<String, u64>,
    /// The failure that the others followed from.
    pub first_error: Option<String>,
    pub cnps: u32,
    pub retransmissions: u32,
    /// How long the other side had it paused.
    pub paused_s: f64,
    /// Every counter of the gateware.
    pub counters: BTreeMap<&'static str, u32>,
    /// What its queue pairs have measured of their packets and of the whole transfer.
    pub meters: Vec<Meters>,
    /// What became of its triggers, if it makes events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Triggers>,
}

/// Ends the boards' threads, adds what their gateware counted to the summaries of their flows, and gives theirs.
pub fn summaries(lab: Lab, flows: &mut [FlowSummary]) -> Result<Vec<BoardSummary>, CounterError> {
    let mut nodes: Vec<_> = lab.engine.into_nodes().into_iter().map(Some).collect();
    let mut boards = Vec::new();
    for (info, flow) in lab.flows.iter().zip(flows).filter(|(info, _)| info.sender_index.is_none()) {
        let node = nodes.get_mut(info.sender.index()).and_then(Option::take).map(|node| node as Box<dyn Any>);
        let Some(Ok(board)) = node.map(|node| node.downcast::<BoardNode>()) else { continue };
        let tally = board.tally().clone();
        let counted = GatewareCounters::read(&info.from, board.into_board()?)?;
        flow.failed = tally.first_error.map(|(at, completion)| format!("{} at {at}", completion.status));
        flow.cnps = counted.at(counters::RX_CNP_PACKETS).into();
        flow.packets = counted.at(counters::PACKETS_SENT).into();
        flow.retransmissions = counted.at(counters::PACKETS_RETRANSMITTED).into();
        flow.timeouts = counted.at(counters::LOCAL_ACK_TIMEOUT_ERR).into();
        flow.naks = counted.at(counters::PACKET_SEQ_ERR).into();
        flow.rnr_naks = counted.at(counters::RNR_NAK).into();
        boards.push(summary(&info.from, flow.delivered_bytes, &tally, &counted));
    }
    Ok(boards)
}

fn summary(name: &str, delivered: u64, tally: &MessageTally, counted: &GatewareCounters) -> BoardSummary {
    let active_s = tally.last.as_secs_f64().max(f64::MIN_POSITIVE);
    let first = tally.first_error;
    BoardSummary {
        name: name.to_owned(),
        goodput_gbps: delivered as f64 * 8e-9 / active_s,
        messages_ok: tally.ok,
        messages_error: tally.failed(),
        errors: tally.errors.iter().map(|(status, n)| (status.to_string(), *n)).collect(),
        first_error: first.map(|(at, completion)| format!("message {} at {at}: {}", completion.tag, completion.status)),
        cnps: counted.at(counters::RX_CNP_PACKETS),
        retransmissions: counted.at(counters::PACKETS_RETRANSMITTED),
        paused_s: f64::from(counted.at(counters::TX_PAUSE_CYCLES)) * CYCLE.as_ps() as f64 * 1e-12,
        counters: counted.by_name(),
        meters: counted.meters.clone(),
        triggers: counted.triggers.clone(),
    }
}
