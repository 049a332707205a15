// SPDX-License-Identifier: Apache-2.0
//! `[qp]` and `[tcp]`: the common settings of all queue pairs and of all TCP connections of a scenario.

use penstock_netsim::LimiterQueue;
use penstock_transport::{TcpStall, TcpVariant};
use penstock_wire::gateware::{self, Rings};

use super::mode::Mode;
use crate::units::{ByteSize, Frequency, Rate, Time};

/// `[qp]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabQp {
    /// 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Code of the local ACK timer, 4.096 us * 2^code; 0: never.
    pub ack_timeout_code: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub dscp: u8,
    pub cnp_dscp: u8,
    /// Software senders under QCN send CN-TAGs.
    pub cn_tag: bool,
    /// One packet in this number requests an acknowledgement, in addition to those that end a message.
    pub ack_every: u32,
    /// Most packets without an acknowledgement.
    pub window: u32,
    /// Where the rings of verilated boards are.
    pub rings: Rings,
    pub verb: LabVerb,
    /// The mode of flows that have none.
    pub mode: Mode,
    /// READs that a queue pair may have outstanding, 1 to 16.
    pub responder_resources: u8,
    /// Clock of the senders' rate limiters; `None`: by the rate of the link.
    pub clock: Option<Frequency>,
    /// Time from a packet's last bit to the first of its answer.
    pub ack_delay: Time,
    /// The interval in which a queue pair gets one CNP at most.
    pub cnp_interval: Time,
    /// The interval in which all queue pairs of a receiving host send one CNP at most; `None`: no such limit.
    pub cnp_port_interval: Option<Time>,
    /// Receivers also send CNPs while their payload exceeds this rate over this window; `None`: for marked packets only.
    pub cnp_above: Option<(Rate, Time)>,
    /// The wait time in RNR NAKs, sent when no receive is posted.
    pub rnr_delay: Time,
    /// A receiver that takes messages at this rate out of this number of slots; `None`: at once.
    pub consumer: Option<(Rate, u32)>,
}

/// `[pull]`: the flows that their receivers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabPull {
    /// Bytes on the wire that a host may have requested; `None`: by its line and the round trips.
    pub window: Option<ByteSize>,
    /// Messages that a board holds for each receiver.
    pub slots: u32,
    /// A board that is silent for longer gives its part of the window to the others; `None`: by the links' delays.
    pub patience: Option<Time>,
}

/// The operation that carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabVerb {
    WriteImm,
    Write,
    Send,
    /// The receiving host reads every message.
    Read,
}

impl LabQp {
    /// The traffic class of data.
    pub fn class(&self) -> u8 {
        self.dscp >> 3
    }

    /// The clock of a sender's rate limiter on a link of this rate: those of the gateware.
    pub fn clock_hz(&self, rate: Rate) -> u64 {
        match self.clock {
            Some(clock) => clock.0 / 1_000,
            None if rate <= Rate::from_gbps(10) => gateware::CLOCK_HZ,
            None if rate <= Rate::from_gbps(25) => gateware::CLOCK_25G_HZ,
            None => gateware::CLOCK_100G_HZ,
        }
    }
}

/// `[tcp]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabTcp {
    pub variant: TcpVariant,
    pub sack: bool,
    /// Payload of a full segment.
    pub mss: u32,
    /// Segments before the first ACK.
    pub initial_window: u32,
    pub receive_buffer: ByteSize,
    /// When the receiver's program reads nothing.
    pub stall: Option<TcpStall>,
    /// The smallest timeout; of the simplified sender the only one, before it backs off.
    pub min_rto: Time,
    /// The maximum unacknowledged data of a source with its own rate; a message without room is lost.
    pub send_buffer: Option<ByteSize>,
    /// The queue between the host's stack and the rate limiter; `None`: one frame waits there.
    pub limiter_queue: Option<LimiterQueue>,
    pub delayed_ack: Time,
    /// Whether the simplified sender has its congestion control.
    pub back_off: bool,
    /// Whether its short segments wait for more data or for the acknowledgement of all.
    pub nagle: bool,
    pub dscp: u8,
}
