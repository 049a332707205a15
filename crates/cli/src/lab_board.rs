// SPDX-License-Identifier: Apache-2.0
//! A verilated board as a sender of a laboratory (`sender = "gateware"`), set up by its registers as software would.
//! Promise: it sends the messages of the scenario's flow, in their order, none before its time.

use crate::simulation::{GatewareCounters, BOARD_CLOCK_HZ, ECT0};
use penstock_board::regs::counters;
use penstock_board::{Board, BoardNode, EndpointConfig, Message, MessageSource, QpConfig, Verb, CYCLE_PS};
use penstock_cc::DcqcnParams;
use penstock_netsim::lab::{BoardFlow, BoardRequest, Lab, LabVerb, Workload};
use penstock_netsim::report::FlowSummary;
use penstock_netsim::workload::{Pace, SteadyParams};
use penstock_netsim::{Ledger, Node, Rate, Time};
use penstock_wire::Qpn;
use std::any::Any;
use std::collections::VecDeque;

/// Why a board cannot send what a scenario asks for.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("a board sends one flow, this one has {0}; let other hosts send the rest")]
    Flows(usize),
    #[error("a link of {0}; the board's is 10Gbps")]
    Rate(Rate),
    #[error("a link of {0} delay; it needs {CYCLE_PS} ps at least, one clock cycle")]
    Delay(Time),
    #[error("flow {0} has no end of its own: give it a size, or a rate and a stop time")]
    Endless(String),
    #[error("flow {flow} has messages of {bytes} bytes; a board sends at most 2147483648")]
    TooLong { flow: String, bytes: u64 },
    #[error("flow {0} has cc.law = \"qcn\"; allowed for a board are \"off\" and \"dcqcn\"")]
    Qcn(String),
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The node of a board; for `Lab::build`.
pub fn board(request: BoardRequest) -> Result<Box<dyn Node>, AnyError> {
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
        rkey: 0,
        mtu: qp.mtu,
        ack_timeout: qp.ack_timeout_code,
        retry_cnt: qp.retry_cnt,
        rnr_retry: qp.rnr_retry,
        init_psn: pair.first_psn,
    };
    let interval = request.scenario.trace.interval;
    let messages = Messages::of(flow, index, qp.verb, &mut request.ledger.borrow_mut())?;
    let mut board = Board::new();
    board.configure(&endpoint)?;
    board.open_qp(index, &connection)?;
    Ok(Box::new(BoardNode::new(request.name, board, Box::new(messages), link.delay, interval)?))
}

/// A flow's messages, known before the run, since the board asks for them from a thread of its own.
struct Messages {
    /// Time and bytes of each.
    waiting: VecDeque<(Time, u64)>,
    zeros: bytes::Bytes,
    qp: u8,
    verb: LabVerb,
    sent: u32,
}

impl Messages {
    /// Takes all messages of the flow's source and tells the ledger of them.
    fn of(mut flow: BoardFlow, qp: u8, verb: LabVerb, ledger: &mut Ledger) -> Result<Self, BoardError> {
        let endless = |steady: &SteadyParams| {
            steady.total_bytes.is_none() && (steady.stop.is_none() || steady.pace == Pace::Greedy)
        };
        if matches!(&flow.spec.workload, Workload::Steady(steady) if endless(steady)) {
            return Err(BoardError::Endless(flow.spec.name.clone()));
        }
        let mut waiting = VecDeque::new();
        let mut now = Time::ZERO;
        while let Some(message) = flow.source.next_message(now) {
            now = message.at;
            ledger.posted(flow.id, &message);
            waiting.push_back((message.at, message.bytes));
        }
        ledger.ended(flow.id);
        let longest = waiting.iter().map(|message| message.1).max().unwrap_or(0);
        if longest > 1 << 31 {
            return Err(BoardError::TooLong { flow: flow.spec.name.clone(), bytes: longest });
        }
        Ok(Messages { waiting, zeros: vec![0; longest as usize].into(), qp, verb, sent: 0 })
    }
}

impl MessageSource for Messages {
    fn next_time_ps(&self) -> Option<u64> {
        self.waiting.front().map(|message| message.0.as_ps())
    }

    fn take(&mut self) -> Option<Message> {
        let (_, len) = self.waiting.pop_front()?;
        let tag = self.sent;
        self.sent += 1;
        Some(Message {
            qp: self.qp,
            verb: if self.verb == LabVerb::Send { Verb::Send } else { Verb::Write },
            imm: (self.verb == LabVerb::WriteImm).then_some(tag),
            remote_address: 0,
            tag,
            payload: self.zeros.slice(..len as usize),
        })
    }
}

/// Ends the boards' threads and adds what their gateware counted to the summaries of their flows.
pub fn add_counters(lab: Lab, flows: &mut [FlowSummary]) -> Result<(), crate::simulation::SimulationError> {
    let mut nodes: Vec<_> = lab.engine.into_nodes().into_iter().map(Some).collect();
    for (info, summary) in lab.flows.iter().zip(flows).filter(|(info, _)| info.sender_index.is_none()) {
        let node = nodes.get_mut(info.sender.index()).and_then(Option::take).map(|node| node as Box<dyn Any>);
        let Some(Ok(board)) = node.map(|node| node.downcast::<BoardNode>()) else { continue };
        let first_error = board.tally().first_error;
        summary.failed = first_error.map(|(at, completion)| format!("{} at {at}", completion.status));
        let counted = GatewareCounters::read(&info.from, board.into_board()?)?;
        summary.cnps = counted.at(counters::RX_CNP_PACKETS).into();
        summary.packets = counted.at(counters::PACKETS_SENT).into();
        summary.retransmissions = counted.at(counters::PACKETS_RETRANSMITTED).into();
        summary.timeouts = counted.at(counters::LOCAL_ACK_TIMEOUT_ERR).into();
        summary.naks = counted.at(counters::PACKET_SEQ_ERR).into();
        summary.rnr_naks = counted.at(counters::RNR_NAK).into();
    }
    Ok(())
}
