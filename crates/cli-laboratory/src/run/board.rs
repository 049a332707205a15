// SPDX-License-Identifier: Apache-2.0
//! A verilated board as a sender of a laboratory (`sender = "gateware"`), set up by its registers as software would: a queue
//! pair, and a group of parameters, for each flow.
//! Promise: it sends the messages of the scenario's flows, those of a flow in their order, none before its time.

use super::counters::{CounterError, GatewareCounters};
use super::{pulled, stream};
use crate::gateware::{Meters, Triggers, ECT0, LEAD};
use penstock_board::regs::{self, counters, global};
use penstock_board::{
    Awaited, Board, BoardNode, Completion, DetectorEvent, EndpointConfig, EventsConfig, Feed, LineClock, Message,
    MessageSource, MessageTally, NoSuchLine, QpConfig, RegisterError, RingTarget, Top, Verb, WhileBusy,
};
use penstock_cc::{DcqcnParams, DcqcnSettings, Law, ParamError};
use penstock_lab::report::{per, FlowSummary};
use penstock_lab::{
    BoardFlow, BoardRequest, FlowInfo, FlowSpec, Lab, LabQp, LabScenario, LabVerb, MakerError, Mode, Pace,
    SteadyParams, Workload,
};
use penstock_netsim::{FlowId, Fragments, LinkParams, Node, SharedLedger, Time};
use penstock_transport::TcpConfig;
use penstock_wire::fragment::message_2_len;
use penstock_wire::gateware::BOARD_EVENT_BYTES;
use penstock_wire::Qpn;
use serde::Serialize;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Why a board cannot send the messages of a scenario.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error(
        "a board has {queue_pairs} queue pairs, so it sends as many flows at most, this one has {flows}; let other \
             hosts send the rest"
    )]
    Flows { flows: usize, queue_pairs: u32 },
    #[error("a board of a readout sends one flow, its events; this one has {0}; let other hosts send the rest")]
    Events(usize),
    #[error("flows {0} and {1} have different classes (dscp / 8); a board stops for one class only")]
    Classes(String, String),
    #[error(transparent)]
    Rate(#[from] NoSuchLine),
    #[error("a link of {0} delay; it needs {1} at least, one clock cycle")]
    Delay(Time, Time),
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
}

/// The node of a board; for `Lab::build`.
pub fn board(request: BoardRequest) -> Result<Box<dyn Node>, MakerError> {
    let BoardRequest { scenario, name, link, mut flows, ledger } = request;
    if let [flow] = &flows[..] {
        if let Some(tcp) = flow.tcp {
            return stream_board(name, link, flows, tcp, &ledger, scenario);
        }
    }
    let makes_events = flows.iter().any(|flow| flow.fragments.is_some());
    let top = match () {
        () if flows.iter().any(pulled::is_pulled) => Top::of_windows(link.rate),
        () if makes_events => Top::of_line(link.rate, scenario.qp.rings),
        () => Top::of_flows(link.rate, scenario.qp.rings),
    };
    let top = top.map_err(BoardError::Rate)?;
    let clock = top.clock();
    delay_suffices(clock, &link)?;
    let mut board = Board::of(top);
    let queue_pairs = queue_pairs(&mut board)?;
    if flows.len() > queue_pairs as usize {
        return Err(BoardError::Flows { flows: flows.len(), queue_pairs }.into());
    }
    set_up(&mut board, &flows)?;
    let messages = Messages::of(clock, &mut flows, &scenario.qp, slots(&mut board)?, &ledger)?;
    pulled::set_up(&mut board, &flows, messages.longest_pulled())?;
    for (group, flow) in (0u8..).zip(&flows) {
        set_law(&mut board, group, flow.spec)?;
    }
    if let Some((index, flow)) = flows.iter().enumerate().find(|(_, flow)| flow.fragments.is_some()) {
        if flows.len() > 1 {
            return Err(BoardError::Events(flows.len()).into());
        }
        set_events(&mut board, index as u8, flow, scenario.qp.verb)?;
    }
    for (index, flow) in (0u8..).zip(&flows) {
        board.open_qp(index, &connection(flow, &scenario.qp))?;
    }
    let counts: Vec<u64> = messages.flows.iter().map(|flow| flow.waiting.len() as u64).collect();
    let mut node =
        BoardNode::new(name, board, Box::new(messages), link.delay, scenario.trace.interval, flows.len() as u8)?;
    for ((index, flow), count) in (0u8..).zip(&flows).zip(counts) {
        match pulled::is_pulled(flow) {
            true => pulled::report(&mut node, index, flow.id, &ledger),
            false => report_at_end(&mut node, index, count, flow.id, &ledger),
        }
    }
    Ok(Box::new(node))
}

/// The node of a board whose only flow is a stream of TCP. It opens the stream when the run begins; the events of
/// triggers that come before it is open wait for it in the board.
fn stream_board(
    name: &str,
    link: LinkParams,
    mut flows: Vec<BoardFlow>,
    tcp: TcpConfig,
    ledger: &SharedLedger,
    scenario: &LabScenario,
) -> Result<Box<dyn Node>, MakerError> {
    let top = Top::of_line_tcp(link.rate).map_err(BoardError::Rate)?;
    let clock = top.clock();
    delay_suffices(clock, &link)?;
    let mut board = Board::of(top);
    set_up(&mut board, &flows)?;
    let [flow] = &flows[..] else { return Err(BoardError::Events(flows.len()).into()) };
    stream::set_up(&mut board, flow.spec, &tcp)?;
    events_of(&mut board, stream::STREAM, flow, false)?;
    let awaited = Awaited { stream: stream::STREAM, enable: stream::hold_events(&mut board)? };
    let number = flow.id;
    let messages = Messages::of(clock, &mut flows, &scenario.qp, slots(&mut board)?, ledger)?;
    let messages = Messages { awaited: Some(awaited), ..messages };
    let count = messages.flows.iter().map(|flow| flow.waiting.len() as u64).sum();
    let mut node = BoardNode::new(name, board, Box::new(messages), link.delay, scenario.trace.interval, 1)?;
    let (address, word) = stream::opening();
    node.queue_write(address, word);
    report_at_end(&mut node, 0, count, number, ledger);
    Ok(Box::new(node))
}

/// A board runs alone for as long as a frame takes to it.
fn delay_suffices(clock: LineClock, link: &LinkParams) -> Result<(), BoardError> {
    let least = BoardNode::min_link_delay(clock);
    if link.delay < least {
        return Err(BoardError::Delay(link.delay, least));
    }
    Ok(())
}

/// Tells the ledger when all `count` messages of flow `number` have ended.
fn report_at_end(node: &mut BoardNode, index: u8, count: u64, number: FlowId, ledger: &SharedLedger) {
    let ledger = Rc::clone(ledger);
    node.at_end(index, count, move |tally| match tally.first_error {
        Some((at, completion)) => ledger.borrow_mut().failed(number, at, &completion.status.to_string()),
        None => ledger.borrow_mut().ended(number),
    });
}

/// The number of queue pairs of this build.
fn queue_pairs(board: &mut Board) -> Result<u32, RegisterError> {
    Ok(global::BUILD_N_QP_BITS.of(board.read(global::BUILD)?))
}

/// Most packets of a queue pair that this build keeps.
fn slots(board: &mut Board) -> Result<u64, RegisterError> {
    board.read(global::SLOTS).map(u64::from)
}

/// What the flows have in common: the board's addresses, and the class whose pauses it obeys.
fn set_up(board: &mut Board, flows: &[BoardFlow]) -> Result<(), MakerError> {
    let [first, rest @ ..] = flows else { return Ok(()) };
    let class = |flow: &BoardFlow| flow.spec.dscp >> 3;
    if let Some(other) = rest.iter().find(|other| class(other) != class(first)) {
        return Err(BoardError::Classes(first.spec.name.clone(), other.spec.name.clone()).into());
    }
    let local = first.queue_pair.local;
    Ok(board.configure(&EndpointConfig {
        mac: local.mac,
        ip: local.ip,
        ttl: 64,
        qpn_base: Qpn::new(local.qpn.value() & !0xff),
        obey_pause: true,
        obey_pfc: true,
        traffic_class: class(first),
        congestion: DcqcnParams { law: first.spec.law, ..DcqcnParams::default() },
    })?)
}

/// Queue pair `group` follows the group of its number: its flow's law and parameters.
fn set_law(board: &mut Board, group: u8, spec: &FlowSpec) -> Result<(), MakerError> {
    let clock = board.clock();
    board.set_dcqcn(group, &dcqcn_of(spec, clock)?)?;
    if spec.law == Law::Qcn {
        board.set_qcn(group, &spec.qcn.at_clock(clock.hz)?)?;
    }
    Ok(board.choose_law(group, None, group)?)
}

/// A flow's law, and DCQCN's parameters where it is that, for a board with this clock.
pub fn dcqcn_of(spec: &FlowSpec, clock: LineClock) -> Result<DcqcnParams, ParamError> {
    match spec.law {
        Law::Dcqcn => DcqcnSettings { law: spec.law, ..spec.dcqcn }.at_clock(clock.hz),
        law => Ok(DcqcnParams { law, ..DcqcnParams::default() }),
    }
}

fn set_events(board: &mut Board, index: u8, flow: &BoardFlow, verb: LabVerb) -> Result<(), MakerError> {
    let Some(Fragments { ring, .. }) = &flow.fragments else { return Ok(()) };
    if verb == LabVerb::Write {
        return Err(BoardError::NoImmediate(flow.spec.name.clone()).into());
    }
    if !pulled::is_pulled(flow) {
        board.set_ring(index, RingTarget { va: ring.va, slots: ring.slots, slot_bytes: ring.slot_bytes })?;
    }
    events_of(board, index, flow, verb == LabVerb::Send)
}

/// Events go to queue pair or stream `index`.
fn events_of(board: &mut Board, index: u8, flow: &BoardFlow, send: bool) -> Result<(), MakerError> {
    let Some(Fragments { contents, .. }) = &flow.fragments else { return Ok(()) };
    Ok(board.set_events(&EventsConfig {
        by_event: false,
        qp: index,
        send,
        source_id: contents.source_id(),
        inputs: contents.streams(0).len(),
        while_busy: WhileBusy::Wait,
    })?)
}

fn connection(flow: &BoardFlow, qp: &LabQp) -> QpConfig {
    let pair = &flow.queue_pair;
    let peer = pair.peer;
    QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: pair.udp_sport,
        tos: flow.spec.dscp << 2 | if pulled::is_pulled(flow) { 0 } else { ECT0 },
        dest_qpn: peer.qpn,
        rkey: flow.fragments.as_ref().map_or(0, |fragments| fragments.ring.rkey),
        mtu: qp.mtu,
        ack_timeout: qp.ack_timeout_code,
        retry_cnt: qp.retry_cnt,
        rnr_retry: qp.rnr_retry,
        init_psn: pair.first_psn,
    }
}

/// The messages of a board's flows, known before the run, since the board asks for them from a thread of its own.
///
/// All queue pairs share the input of the gateware, where a message waits whose ring is full, and the others behind it. So, as
/// software should, a message is posted once its ring has room for it, or is empty.
struct Messages {
    clock: LineClock,
    flows: Vec<Waiting>,
    /// The queue pair that was served last.
    last: usize,
    mtu: u64,
    /// Packets that a ring holds.
    slots: u64,
    zeros: bytes::Bytes,
    verb: LabVerb,
    /// The stream of TCP that takes them.
    awaited: Option<Awaited>,
}

/// The messages of one flow.
struct Waiting {
    /// Time, bytes and event of each.
    waiting: VecDeque<(Time, u64, u64)>,
    /// The detector's data of events, if the gateware makes the messages.
    fragments: Option<Fragments>,
    /// Packets of each message that has been posted and has not ended.
    posted: VecDeque<u64>,
    sent: u32,
    /// The number of its event, of a message that the board keeps for its server.
    pulled: Option<pulled::Numbers>,
}

impl Messages {
    /// Takes all messages of the flows' sources and announces them to the ledger.
    fn of(
        clock: LineClock,
        flows: &mut [BoardFlow],
        qp: &LabQp,
        slots: u64,
        ledger: &SharedLedger,
    ) -> Result<Self, BoardError> {
        let mut longest = 0;
        let mut read = Vec::new();
        for flow in flows {
            let waiting = Waiting::of(flow, ledger)?;
            if waiting.fragments.is_none() {
                longest = waiting.waiting.iter().map(|message| message.1).fold(longest, u64::max);
            }
            read.push(waiting);
        }
        let (mtu, zeros) = (u64::from(qp.mtu), vec![0; longest as usize].into());
        Ok(Messages {
            clock,
            last: read.len().saturating_sub(1),
            flows: read,
            mtu,
            slots,
            zeros,
            verb: qp.verb,
            awaited: None,
        })
    }

    /// The longest message that the board keeps for its server, bytes; 0 if there is none.
    fn longest_pulled(&self) -> u64 {
        let pulled = self.flows.iter().filter(|flow| flow.pulled.is_some());
        pulled.flat_map(|flow| &flow.waiting).map(|message| message.1).max().unwrap_or(0)
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mtu).max(1)
    }

    /// The flow to be served: of those whose message is there and fits, the one that waits longest, else each in turn.
    fn next_flow(&self, now: Time) -> Option<usize> {
        let count = self.flows.len();
        let in_turn = (0..count).map(|step| (self.last + 1 + step) % count);
        let due = in_turn.filter_map(|index| {
            let flow = &self.flows[index];
            let (at, bytes, _) =
                *flow.waiting.front().filter(|message| message.0.saturating_sub(self.lead()) <= now)?;
            let kept: u64 = flow.posted.iter().sum();
            let fits = count == 1 || kept == 0 || flow.pulled.is_some() || kept + self.packets(bytes) <= self.slots;
            fits.then_some((at, index))
        });
        due.min_by_key(|(at, _)| *at).map(|(_, index)| index)
    }
}

impl Waiting {
    fn of(flow: &mut BoardFlow, ledger: &SharedLedger) -> Result<Self, BoardError> {
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
            if message.bytes > 1 << 31 {
                return Err(BoardError::TooLong { flow: flow.spec.name.clone(), bytes: message.bytes });
            }
            ledger.borrow_mut().posted(flow.id, &message);
            waiting.push_back((message.at, message.bytes, message.event));
        }
        let (fragments, pulled) = (flow.fragments.clone(), pulled::Numbers::of(flow));
        Ok(Waiting { waiting, fragments, posted: VecDeque::new(), sent: 0, pulled })
    }
}

impl MessageSource for Messages {
    fn next_time(&self) -> Option<Time> {
        self.flows.iter().filter_map(|flow| flow.waiting.front()).map(|message| message.0).min()
    }

    fn lead(&self) -> Time {
        if self.flows.iter().any(|flow| flow.fragments.is_some()) {
            LEAD
        } else {
            Time::ZERO
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.next_flow(now).is_some()
    }

    fn awaits(&self) -> Option<Awaited> {
        self.awaited
    }

    fn completed(&mut self, completion: &Completion) {
        if let Some(flow) = self.flows.get_mut(usize::from(completion.qp)) {
            flow.posted.pop_front();
        }
    }

    fn take(&mut self, now: Time) -> Option<Feed> {
        let index = self.next_flow(now)?;
        let (at, len, event) = self.flows[index].waiting.pop_front()?;
        let (clock, packets) = (self.clock, self.packets(len));
        self.last = index;
        let flow = &mut self.flows[index];
        flow.posted.push_back(packets);
        if let Some(Fragments { contents, .. }) = &flow.fragments {
            let (streams, trigger_type) = (contents.streams(event), contents.trigger_type(event));
            return Some(DetectorEvent { number: event, trigger_type, cycle: clock.cycle_from(at), streams }.into());
        }
        let tag = flow.sent;
        flow.sent += 1;
        let (verb, imm, remote_address) = match (&flow.pulled, self.verb) {
            (Some(numbers), _) => (Verb::RingWrite, None, numbers.event(tag, event)),
            (None, LabVerb::Send) => (Verb::Send, None, 0),
            (None, verb) => (Verb::Write, (verb == LabVerb::WriteImm).then_some(tag), 0),
        };
        let payload = self.zeros.slice(..len as usize);
        let message = Message { qp: index as u8, verb, imm, remote_address, tag, payload };
        Some(message.into())
    }
}

/// The result of one board.
#[derive(Debug, Serialize)]
pub struct BoardSummary {
    pub name: String,
    /// Payload that its receiver got, per second until the board's last message ended, 10^9 bit/s; until the end of the
    /// run where none ended.
    pub goodput_gbps: f64,
    pub messages_ok: u64,
    pub messages_error: u64,
    /// Failed messages by reason.
    pub errors: BTreeMap<String, u64>,
    /// The failure that the others followed from.
    pub first_error: Option<String>,
    /// "queue pair" or "stream": what carries its messages.
    #[serde(skip)]
    pub over: &'static str,
    pub cnps: u32,
    pub retransmissions: u32,
    /// How long the other side had it paused.
    pub paused_s: f64,
    /// Every counter of the gateware.
    pub counters: BTreeMap<&'static str, u32>,
    /// The measurements of its queue pairs, of packets and of the whole transfer.
    pub meters: Vec<Meters>,
    /// The outcomes of its triggers, if it makes events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<Triggers>,
}

/// Ends the boards' threads, adds what their gateware counted to the summaries of their flows, and gives theirs.
pub fn summaries(
    lab: Lab,
    scenario: &LabScenario,
    flows: &mut [FlowSummary],
) -> Result<Vec<BoardSummary>, CounterError> {
    let now = lab.now();
    let mut nodes: Vec<_> = lab.engine.into_nodes().into_iter().map(Some).collect();
    let mut boards = Vec::new();
    for (number, info) in lab.flows.iter().enumerate().filter(|(_, info)| info.sender_index.is_none()) {
        // The first flow of a board announces all of them.
        let node = nodes.get_mut(info.sender.index()).and_then(Option::take).map(|node| node as Box<dyn Any>);
        let Some(Ok(board)) = node.map(|node| node.downcast::<BoardNode>()) else { continue };
        let has_sender = |other: &FlowInfo| other.sender == info.sender;
        let of_board: Vec<usize> = (number..lab.flows.len()).filter(|other| has_sender(&lab.flows[*other])).collect();
        let tallies: Vec<_> =
            (0u8..).take(of_board.len()).map(|qp| (board.tally_of(qp).clone(), board.notifications(qp))).collect();
        let answers: Vec<u64> = of_board.iter().map(|flow| board.answers(lab.flows[*flow].ends.udp_sport)).collect();
        let mut ended = Ended::of(board.tally());
        let counted = GatewareCounters::read(&info.from, board.into_board()?)?;
        let mut delivered = 0;
        for (((qp, number), (tally, notifications)), answers) in (0u8..).zip(of_board).zip(tallies).zip(answers) {
            let flow = &mut flows[number];
            let count = |offset| counted.of_queue_pair(qp, offset).into();
            if scenario.flows[number].mode == Mode::Pull {
                ended.pulled(&tally, flow);
                delivered += flow.delivered_bytes;
                flow.paused_s = flow.paused_s.max(paused_s(&counted));
                (flow.packets, flow.retransmissions) = (answers, count(regs::qp::PACKETS_RETRANSMITTED));
                continue;
            }
            flow.failed = tally.first_error.map(|(at, completion)| format!("{} at {at}", completion.status));
            (flow.cnps, flow.feedbacks) = (notifications.cnps, notifications.feedbacks);
            delivered += flow.delivered_bytes;
            flow.paused_s = flow.paused_s.max(paused_s(&counted));
            if let Some(stream) = counted.stream {
                flow.packets = stream.segments.into();
                flow.retransmissions = stream.retransmitted.into();
                flow.timeouts = stream.timeouts.into();
                continue;
            }
            flow.packets = count(regs::qp::PACKETS_SENT);
            flow.retransmissions = count(regs::qp::PACKETS_RETRANSMITTED);
            flow.timeouts = count(regs::qp::LOCAL_ACK_TIMEOUT_ERR);
            flow.naks = count(regs::qp::PACKET_SEQ_ERR);
            flow.rnr_naks = count(regs::qp::RNR_NAK);
        }
        boards.push(summary(&info.from, delivered, now, &ended, &counted));
    }
    Ok(boards)
}

/// How long the other side had a board paused.
fn paused_s(counted: &GatewareCounters) -> f64 {
    counted.clock.picoseconds(counted.at(counters::TX_PAUSE_CYCLES).into()) * 1e-12
}

/// How the messages of a board have ended.
struct Ended {
    tally: MessageTally,
    /// The last one, s.
    last_s: f64,
}

impl Ended {
    fn of(tally: &MessageTally) -> Self {
        Ended { tally: tally.clone(), last_s: tally.last.as_secs_f64() }
    }

    /// The completions of a flow that is pulled are those of announcements; its messages are what its server has read.
    fn pulled(&mut self, announced: &MessageTally, flow: &FlowSummary) {
        self.tally.ok = self.tally.ok - announced.ok + flow.messages;
        self.last_s = self.last_s.max(flow.end_s.unwrap_or_default());
    }
}

fn summary(name: &str, delivered: u64, now: Time, ended: &Ended, counted: &GatewareCounters) -> BoardSummary {
    let Ended { tally, last_s } = ended;
    let active_s = if *last_s > 0.0 { *last_s } else { now.as_secs_f64() };
    let first = tally.first_error;
    BoardSummary {
        name: name.to_owned(),
        goodput_gbps: per(delivered as f64 * 8e-9, active_s),
        messages_ok: tally.ok,
        messages_error: tally.failed(),
        errors: tally.errors.iter().map(|(status, n)| (status.to_string(), *n)).collect(),
        first_error: first.map(|(at, completion)| format!("message {} at {at}: {}", completion.tag, completion.status)),
        cnps: counted.at(counters::RX_CNP_PACKETS),
        retransmissions: match counted.stream {
            Some(stream) => stream.retransmitted,
            None => counted.at(counters::PACKETS_RETRANSMITTED),
        },
        over: if counted.stream.is_some() { "stream" } else { "queue pair" },
        paused_s: paused_s(counted),
        counters: counted.by_name(),
        meters: counted.meters.clone(),
        triggers: counted.triggers.clone(),
    }
}
