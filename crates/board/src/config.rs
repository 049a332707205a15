// SPDX-License-Identifier: Apache-2.0
//! The settings that software writes to a board before it can send: addresses, flow control, congestion control,
//! queue pairs and the sampling port, through the registers of `regs/penstock.rdl`.

use crate::board::{Board, RegisterError};
use penstock_cc::{DcqcnParams, Law, QcnParams};
use penstock_ipbus::dcqcn::{dcqcn_words, qcn_words};
use penstock_wire::gateware::{BOARD_EVENT_BYTES, BOARD_INPUTS};
use penstock_wire::{Ipv4Addr, MacAddr, Psn, Qpn};

pub use penstock_ipbus::regs;

/// "PSTK", what the ID register of a Penstock board reads.
const IDENTITY: u32 = 0x5053_544b;

/// Addresses and flow control of the whole board.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    pub mac: MacAddr,
    pub ip: Ipv4Addr,
    pub ttl: u8,
    /// Queue pair i answers to number `qpn_base + i`; the low 8 bits are 0.
    pub qpn_base: Qpn,
    pub obey_pause: bool,
    pub obey_pfc: bool,
    /// The traffic class whose PFC holds the transmitter, 0 to 7.
    pub traffic_class: u8,
    pub congestion: DcqcnParams,
}

/// One queue pair's peer and transport attributes (the fields of `ibv_qp_attr`).
#[derive(Debug, Clone)]
pub struct QpConfig {
    pub dst_mac: MacAddr,
    pub dst_ip: Ipv4Addr,
    pub udp_sport: u16,
    /// IPv4 TOS: DSCP in the high six bits, ECN in the low two.
    pub tos: u8,
    pub dest_qpn: Qpn,
    pub rkey: u32,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// 4.096 us * 2^code, 0 = never (IBTA 9.7.6.1.3).
    pub ack_timeout: u8,
    pub retry_cnt: u8,
    /// 7 = without end.
    pub rnr_retry: u8,
    pub init_psn: Psn,
}

/// What the peer of a queue pair may READ, or WRITE where [`Board::permit_writes`] lets it.
#[derive(Debug, Clone, Copy)]
pub struct ReadWindow {
    /// PSN of the peer's first request.
    pub psn: Psn,
    pub rkey: u32,
    /// The first address, and bytes: multiples of 64.
    pub base: u64,
    pub len: u64,
    /// READs that may be outstanding, 1 to 16; 0 serves none.
    pub depth: u8,
}

/// How a board sends the events that it makes of its detector's streams.
#[derive(Debug, Clone, Copy)]
pub struct EventsConfig {
    /// The queue pair of the ring that the messages fill, unless `by_event`.
    pub qp: u8,
    /// The destination table chooses the queue pair by the event's number.
    pub by_event: bool,
    /// SEND; else RDMA WRITE; either with the slot as immediate data.
    pub send: bool,
    /// The source of the fragments.
    pub source_id: u16,
    /// Inputs 0 .. this are in use.
    pub inputs: usize,
    pub while_busy: WhileBusy,
}

/// What becomes of a trigger that comes while the gateware is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileBusy {
    /// It waits, and is repeated if it was refused. The digitisers hold the samples as long as the store of events is
    /// full, so that the gateware is busy for want of room in its list of triggers alone.
    Wait,
    /// It is refused, and its event is lost. The gateware is busy while its store might not hold another message of
    /// `longest` bytes.
    Lose { longest: usize },
}

impl WhileBusy {
    /// Thresholds of the store (docs/fragments.md, "Triggers and busy"), in beats of `lanes` bytes: address and value.
    fn thresholds(self, lanes: usize) -> Vec<(u32, u32)> {
        use regs::timing as t;
        /// Messages that the store holds.
        const MESSAGES: usize = 16;
        match self {
            Self::Wait => vec![(t::EVENT_HIGH, u32::MAX), (t::EVENT_LOW, u32::MAX)],
            Self::Lose { longest } => {
                let store = BOARD_EVENT_BYTES / lanes;
                let size = longest.div_ceil(lanes).max(store / MESSAGES);
                let high = (store + 1).saturating_sub(size).max(1);
                let low = high.saturating_sub(size);
                [(t::EVENT_SIZE, size), (t::EVENT_HIGH, high), (t::EVENT_LOW, low)]
                    .map(|(address, beats)| (address, beats as u32))
                    .into()
            }
        }
    }
}

/// Where a slice of a stream without end ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceEnd {
    /// A pulse of the trigger input ends it.
    Mark,
    /// It ends after so many cycles.
    Period(u32),
    /// It ends after so many bytes of each input.
    Size(u32),
}

/// How a board cuts the streams of its inputs.
#[derive(Debug, Clone, Copy)]
pub struct StreamingConfig {
    pub end: SliceEnd,
    /// Most bytes of an input's slice: what is longer is cut.
    pub limit: u32,
    /// Cycles that an event waits for inputs that are late, and a slice for its next beat.
    pub timeout: u32,
}

/// A ring of slots in a peer's memory.
#[derive(Debug, Clone, Copy)]
pub struct RingTarget {
    pub va: u64,
    pub slots: u32,
    pub slot_bytes: u32,
}

/// A board that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error("the board's ID register reads {found:#010x}, a Penstock board's reads {IDENTITY:#010x}")]
    NotPenstock { found: u32 },
    #[error(
        "the gateware has {n_in} detector inputs and makes events of {event_bytes} bytes; {BOARD_INPUTS} inputs and \
         {BOARD_EVENT_BYTES} bytes are needed: build it again"
    )]
    Inputs { n_in: u32, event_bytes: u32 },
    #[error("TCP stream {index}: this build has {streams}, from 0 on")]
    NoStream { index: u8, streams: u32 },
    #[error("the gateware has no triggers (TIMING = 0): build it again")]
    NoTriggers,
    #[error("the gateware keeps no fragments for servers that read them (PULL_SLOTS = 0): build it again")]
    NoPull,
    #[error("fragments of {longest} bytes cannot be read from a board: it keeps them up to {most}")]
    LongFragments { longest: u64, most: u64 },
    #[error("the gateware cuts no streams (STREAMING = 0): build it again")]
    NoStreaming,
    #[error("mtu = {mtu}: allowed are 256, 512, 1024, 2048, 4096")]
    Mtu { mtu: u16 },
    #[error("queue pair {index} is in state {found} after the command to become ready to send (state 3)")]
    NotReady { index: u8, found: u32 },
}

/// The two registers of a MAC address: octets 0 and 1, octets 2 to 5.
fn mac_words(mac: MacAddr) -> (u32, u32) {
    let [a, b, c, d, e, f] = mac.0;
    (u32::from_be_bytes([0, 0, a, b]), u32::from_be_bytes([c, d, e, f]))
}

/// Address of one register of queue pair `index`.
pub fn qp_register(index: u8, offset: u32) -> u32 {
    regs::qp::BASE + u32::from(index) * regs::qp::STRIDE + offset
}

/// Address of one register of TCP stream `index`.
pub fn stream_register(index: u8, offset: u32) -> u32 {
    regs::stream::BASE + u32::from(index) * regs::stream::STRIDE + offset
}

/// A TCP stream's receiver, and how long the stream waits for its answers.
#[derive(Debug, Clone, Copy)]
pub struct StreamConfig {
    /// None: the gateware uses ARP.
    pub mac: Option<MacAddr>,
    pub ip: Ipv4Addr,
    pub port: u16,
    /// The first retransmission timeout, the shortest and the longest, us of the board's time.
    pub rto_us: [u32; 3],
    /// Goes into initial sequence numbers: a random number.
    pub secret: u32,
}

/// How all streams send.
#[derive(Debug, Clone, Copy)]
pub struct StreamRules {
    pub nagle: bool,
    pub back_off: bool,
    /// The timeout follows the round trip.
    pub adaptive: bool,
    /// Timeouts in a row that end a stream; 0: none do.
    pub give_up: u8,
    /// Payload bytes of a full segment, 64 to 8960.
    pub mss: u16,
    pub tos: u8,
    /// Local port of stream 0.
    pub port_base: u16,
}

impl Board {
    /// Sets the destination of TCP stream `index`; its register `command` opens it.
    ///
    /// # Errors
    /// The build has no such stream.
    pub fn set_stream(&mut self, index: u8, config: &StreamConfig) -> Result<(), SetupError> {
        use regs::{stream as s, tcp as t};
        let streams = t::BUILD_N_STREAMS_BITS.of(self.read(t::BUILD)?);
        if u32::from(index) >= streams {
            return Err(SetupError::NoStream { index, streams });
        }
        let (high, low) = config.mac.map_or((0, 0), mac_words);
        let [first, shortest, longest] = config.rto_us;
        for (address, value) in [
            (t::RTO_INITIAL, first),
            (t::RTO_MIN, shortest),
            (t::RTO_MAX, longest),
            (t::SECRET, config.secret),
            (stream_register(index, s::PEER_MAC_HI), high),
            (stream_register(index, s::PEER_MAC_LO), low),
            (stream_register(index, s::PEER_IP), u32::from(config.ip)),
            (stream_register(index, s::PEER_PORT), config.port.into()),
        ] {
            self.write(address, value)?;
        }
        Ok(())
    }

    /// Sets how all streams send; before the first is opened.
    ///
    /// # Errors
    /// The board refuses.
    pub fn set_stream_rules(&mut self, rules: &StreamRules) -> Result<(), RegisterError> {
        use regs::tcp as t;
        let control = t::CONTROL_NAGLE_BITS.at(rules.nagle)
            | t::CONTROL_BACK_OFF_BITS.at(rules.back_off)
            | t::CONTROL_ADAPTIVE_BITS.at(rules.adaptive)
            | t::CONTROL_FRAMED_BITS.mask
            | t::CONTROL_TOS_BITS.at(rules.tos)
            | t::CONTROL_GIVE_UP_BITS.at(rules.give_up);
        let kept = t::PORTS_RESET & !t::PORTS_PORT_BASE_BITS.mask;
        let ports = kept | t::PORTS_PORT_BASE_BITS.at(rules.port_base);
        for (address, value) in [(t::CONTROL, control), (t::PORTS, ports), (t::SEGMENT, rules.mss.into())] {
            self.write(address, value)?;
        }
        Ok(())
    }

    /// Checks that this is a Penstock board and writes everything that is not per queue pair.
    pub fn configure(&mut self, config: &EndpointConfig) -> Result<(), SetupError> {
        use regs::{global as g, services as s};
        let found = self.read(g::ID)?;
        if found != IDENTITY {
            return Err(SetupError::NotPenstock { found });
        }
        let (high, low) = mac_words(config.mac);
        let flow_control = g::FLOW_CONTROL_PAUSE_EN_BITS.at(config.obey_pause)
            | g::FLOW_CONTROL_PFC_EN_BITS.at(config.obey_pfc)
            | g::FLOW_CONTROL_TRAFFIC_CLASS_BITS.at(config.traffic_class);
        // The simulated network resolves no addresses, so none is announced.
        let silent = s::CONTROL_RESET & !s::CONTROL_GRATUITOUS_BITS.mask;
        for (address, value) in [
            (s::CONTROL, silent),
            (g::LOCAL_MAC_HI, high),
            (g::LOCAL_MAC_LO, low),
            (g::LOCAL_IP, u32::from(config.ip)),
            (g::IPV4, g::IPV4_TTL_BITS.at(config.ttl)),
            (g::QPN_BASE, config.qpn_base.value() & g::QPN_BASE_BASE_BITS.mask),
            (g::FLOW_CONTROL, flow_control),
        ] {
            self.write(address, value)?;
        }
        Ok(self.set_dcqcn(0, &config.congestion)?)
    }

    /// Writes DCQCN's parameters of one group of queue pairs, and the law of those that choose none.
    pub fn set_dcqcn(&mut self, group: u8, params: &DcqcnParams) -> Result<(), RegisterError> {
        dcqcn_words(group, params).into_iter().try_for_each(|(address, value)| self.write(address, value))
    }

    /// Writes QCN's parameters of one group of queue pairs.
    pub fn set_qcn(&mut self, group: u8, params: &QcnParams) -> Result<(), RegisterError> {
        qcn_words(group, params).into_iter().try_for_each(|(address, value)| self.write(address, value))
    }

    /// Puts queue pair `index` under a law, or under that of its group, with a group's parameters.
    pub fn choose_law(&mut self, index: u8, law: Option<Law>, group: u8) -> Result<(), RegisterError> {
        use regs::qp as q;
        let law = match law {
            None => 0u32,
            Some(Law::Dcqcn) => 1,
            Some(Law::Qcn) => 2,
            Some(Law::Off) => 3,
        };
        let word = q::CONGESTION_LAW_BITS.at(law) | q::CONGESTION_GROUP_BITS.at(group);
        self.write(qp_register(index, q::CONGESTION), word)
    }

    /// Has the sampling port give the rates of queue pairs `first` to `last` every `interval_cycles`;
    /// 0 = no more. [`Board::poll_rates`] returns them.
    pub fn sample_rates(&mut self, first: u8, last: u8, interval_cycles: u32) -> Result<(), RegisterError> {
        use regs::sampling;
        let range = sampling::RANGE_FIRST_BITS.at(first) | sampling::RANGE_LAST_BITS.at(last);
        self.write(sampling::RANGE, range)?;
        self.write(sampling::INTERVAL, interval_cycles)
    }

    /// Tells queue pair `index` where its messages lie in the peer's memory; they begin at slot 0. For a queue pair in
    /// reset.
    pub fn set_ring(&mut self, index: u8, ring: RingTarget) -> Result<(), RegisterError> {
        use regs::ring as r;
        let row = r::BASE + u32::from(index) * r::STRIDE;
        for (offset, value) in [
            (r::BASE_LO, ring.va as u32),
            (r::BASE_HI, (ring.va >> 32) as u32),
            (r::SLOTS, ring.slots),
            (r::SLOT_SIZE, ring.slot_bytes),
            (r::NEXT_SLOT, 0),
        ] {
            self.write(row + offset, value)?;
        }
        Ok(())
    }

    /// Opens a window of the memory to the peer of queue pair `index`; before [`Board::open_qp`].
    pub fn set_read_window(&mut self, index: u8, window: &ReadWindow) -> Result<(), RegisterError> {
        use regs::qp as q;
        for (offset, value) in [
            (q::READ_PSN, window.psn.value()),
            (q::READ_RKEY, window.rkey),
            (q::READ_BASE_LO, window.base as u32),
            (q::READ_BASE_HI, (window.base >> 32) as u32),
            (q::READ_LENGTH_LO, window.len as u32),
            (q::READ_LENGTH_HI, (window.len >> 32) as u32),
            (q::READ_DEPTH, window.depth.into()),
        ] {
            self.write(qp_register(index, offset), value)?;
        }
        Ok(())
    }

    /// Lets the peer of queue pair `index` WRITE to its window, and repeat a message that finds no room in the stream
    /// of SENDs after the time with this code (IBTA table 45: 0 is 655 ms, 1 is 10 us); before [`Board::open_qp`].
    pub fn permit_writes(&mut self, index: u8, rnr_timer: u8) -> Result<(), RegisterError> {
        use regs::qp as q;
        let word = q::RECEIVE_WRITE_BITS.at(true) | q::RECEIVE_RNR_TIMER_BITS.at(rnr_timer);
        self.write(qp_register(index, q::RECEIVE), word)
    }

    /// Lets the gateware take triggers and make messages from the data at its detector inputs ([`Board::detect`]), into
    /// the ring of a queue pair.
    pub fn set_events(&mut self, config: &EventsConfig) -> Result<(), SetupError> {
        use regs::{events as e, timing as t};
        const NEVER: u32 = u32::MAX;
        let build = self.read(e::BUILD)?;
        let n_in = e::BUILD_N_IN_BITS.of(build);
        let event_bytes = e::BUILD_EVENT_BYTES_BITS.of(build);
        if (n_in as usize, event_bytes as usize) != (BOARD_INPUTS, BOARD_EVENT_BYTES) {
            return Err(SetupError::Inputs { n_in, event_bytes });
        }
        if t::STATUS_PRESENT_BITS.of(self.read(t::STATUS)?) == 0 {
            return Err(SetupError::NoTriggers);
        }
        self.has_time = true; // it is set when the board's time begins
                              // Tags are event numbers.
        let control = e::CONTROL_QP_BITS.at(config.qp)
            | e::CONTROL_BY_EVENT_BITS.at(config.by_event)
            | e::CONTROL_VERB_BITS.at(config.send);
        let enable = (1u32 << config.inputs.min(BOARD_INPUTS)) - 1;
        self.honour_busy(config.while_busy == WhileBusy::Wait);
        for (address, value) in [
            (e::CONTROL, control),
            (e::SOURCE_ID, u32::from(config.source_id)),
            (e::COMMAND, e::COMMAND_RESYNC_BITS.mask),
            (e::ENABLE, enable),
            (t::RING_HIGH, NEVER),
            (t::RING_LOW, NEVER),
            (t::GATE, 1),
            (t::COMMAND, t::COMMAND_RESTART_BITS.mask),
            (t::CONTROL, 0),
        ] {
            self.write(address, value)?;
        }
        for (address, value) in config.while_busy.thresholds(self.lanes()) {
            self.write(address, value)?;
        }
        Ok(())
    }

    /// Has the gateware take its inputs as streams without end; [`Board::run_slices`] has it begin. After
    /// [`Board::set_events`].
    ///
    /// # Errors
    /// The build cuts no streams.
    pub fn set_streaming(&mut self, config: &StreamingConfig) -> Result<(), SetupError> {
        use regs::events as e;
        if e::STAGES_STREAMING_BITS.of(self.read(e::STAGES)?) == 0 {
            return Err(SetupError::NoStreaming);
        }
        let (mode, period, size) = match config.end {
            SliceEnd::Mark => (0u32, e::SLICE_PERIOD_RESET, e::SLICE_SIZE_RESET),
            SliceEnd::Period(cycles) => (1, cycles, e::SLICE_SIZE_RESET),
            SliceEnd::Size(bytes) => (2, e::SLICE_PERIOD_RESET, bytes),
        };
        let streaming = e::STREAMING_ENABLE_BITS.mask | e::STREAMING_MODE_BITS.at(mode);
        for (address, value) in [
            (e::LIMIT, config.limit),
            (e::TIMEOUT, config.timeout),
            (e::SLICE_PERIOD, period),
            (e::SLICE_SIZE, size),
            (e::STREAMING, streaming),
        ] {
            self.write(address, value)?;
        }
        Ok(())
    }

    /// Slices are made from here on, numbered from 0; or what has come is the last one.
    ///
    /// # Errors
    /// The board refuses.
    pub fn run_slices(&mut self, run: bool) -> Result<(), RegisterError> {
        use regs::events as e;
        let kept = self.read(e::STREAMING)? & !e::STREAMING_RUN_BITS.mask;
        self.write(e::STREAMING, kept | e::STREAMING_RUN_BITS.at(run))
    }

    /// Takes queue pair `index` through RESET with new attributes to ready-to-send.
    pub fn open_qp(&mut self, index: u8, config: &QpConfig) -> Result<(), SetupError> {
        use regs::qp as q;
        const RESET: u32 = 0;
        const READY_TO_SEND: u32 = 3;
        /// A command takes effect when the requester next visits the queue pair: of 256 one every 8 cycles.
        const SETTLE_CYCLES: u64 = 64;
        const SETTLES: u64 = 8 * 256 / SETTLE_CYCLES + 1;

        let mtu_code = match config.mtu {
            mtu @ (256 | 512 | 1024 | 2048 | 4096) => mtu.ilog2() - 7,
            mtu => return Err(SetupError::Mtu { mtu }),
        };
        let (high, low) = mac_words(config.dst_mac);
        let flow = q::FLOW_UDP_SPORT_BITS.at(config.udp_sport) | q::FLOW_TOS_BITS.at(config.tos);
        let transport = q::TRANSPORT_MTU_BITS.at(mtu_code)
            | q::TRANSPORT_ACK_TIMEOUT_BITS.at(config.ack_timeout)
            | q::TRANSPORT_RETRY_CNT_BITS.at(config.retry_cnt)
            | q::TRANSPORT_RNR_RETRY_BITS.at(config.rnr_retry);
        for (offset, value) in [
            (q::STATE, RESET),
            (q::DST_MAC_HI, high),
            (q::DST_MAC_LO, low),
            (q::DST_IP, u32::from(config.dst_ip)),
            (q::FLOW, flow),
            (q::DEST_QPN, config.dest_qpn.value()),
            (q::RKEY, config.rkey),
            (q::TRANSPORT, transport),
            (q::INIT_PSN, config.init_psn.value()),
            (q::STATE, READY_TO_SEND),
        ] {
            self.write(qp_register(index, offset), value)?;
        }
        let mut found = RESET;
        for _ in 0..SETTLES {
            self.run_until(self.cycle() + SETTLE_CYCLES);
            found = self.read(qp_register(index, q::STATE))?;
            if found == READY_TO_SEND {
                return Ok(());
            }
        }
        Err(SetupError::NotReady { index, found })
    }
}
