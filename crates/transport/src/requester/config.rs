// SPDX-License-Identifier: Apache-2.0
//! The settings of a requester, fixed when its queue pair enters RTS.
//! `RequesterConfig::new` takes the settings that have no default and fills in the rest.
//! Source: IBTA vol. 1, clauses 9.7.6.1.3 (ACK timer) and 11.2.5 (queue pair attributes).

use crate::config::{Endpoint, Mtu};
use penstock_units::Time;
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Ecn, Psn, DEFAULT_PKEY};

/// How often the peer and the network may fail before the queue pair gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// Code of the ACK timer, 4.096 us * 2^code; 0: it never expires. More than 31 counts as 31.
    pub ack_timeout: u8,
    /// Timeouts and sequence NAKs in a row without progress, 0 .. 7. More counts as 7.
    pub retry_cnt: u8,
    /// RNR NAKs in a row without progress, 0 .. 6; 7 and more: without end.
    pub rnr_retry: u8,
}

impl RetryLimits {
    /// The code of `rnr_retry` that means "without end".
    pub const ENDLESS: u8 = 7;
    const UNIT: Time = Time::from_ns(4_096);

    /// The ACK timer; `None`: it never expires.
    pub const fn ack_timeout(&self) -> Option<Time> {
        match self.ack_timeout {
            0 => None,
            code if code < 31 => Some(Time(Self::UNIT.0 << code)),
            _ => Some(Time(Self::UNIT.0 << 31)),
        }
    }
}

impl Default for RetryLimits {
    /// 67 ms, 7 retries, RNR without end: what `ib_send_bw` and most applications set.
    fn default() -> Self {
        RetryLimits { ack_timeout: 14, retry_cnt: 7, rnr_retry: Self::ENDLESS }
    }
}

/// How request packets are marked in the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestMarking {
    /// DSCP.
    pub dscp: u8,
    /// Congestion notification: ECT(0), or not capable.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
    /// UDP source port, the flow's label for equal-cost multipath.
    pub udp_sport: u16,
    /// Flow ID of the CN-TAG of every packet; `None`: no tag.
    pub cn_tag: Option<u16>,
}

impl Default for RequestMarking {
    /// DSCP 26 and ECT(0), as the responder's replies expect it.
    fn default() -> Self {
        RequestMarking { dscp: 26, ecn: Ecn::Ect0, ttl: 64, udp_sport: FIRST_UDP_SPORT, cn_tag: None }
    }
}

/// All settings of a requester.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequesterConfig {
    /// This end.
    pub local: Endpoint,
    /// The other end; packets of others are dropped.
    pub peer: Endpoint,
    /// PSN of the first packet.
    pub init_psn: Psn,
    /// Path MTU.
    pub mtu: Mtu,
    /// Partition key.
    pub pkey: u16,
    /// ACK timer and retries.
    pub limits: RetryLimits,
    /// A packet has AckReq if its PSN is the last of this many, in addition to other reasons; 0: no such
    /// packet. Default 16, as the gateware.
    pub ack_every: u32,
    /// Most packets without an ACK. Default 4096; more than 2^22 counts as 2^22, as PSNs must stay in order. A READ
    /// counts with one packet for each of its responses; the last one begun may reach beyond the window.
    pub window: u32,
    /// READs outstanding at most, as the peer's responder resources permit. Default 16; 0: READs are refused.
    pub initiator_depth: u8,
    /// IP marking of requests.
    pub marking: RequestMarking,
}

impl RequesterConfig {
    /// A configuration with the defaults named at the fields.
    pub fn new(local: Endpoint, peer: Endpoint, init_psn: Psn, mtu: Mtu) -> Self {
        RequesterConfig {
            local,
            peer,
            init_psn,
            mtu,
            pkey: DEFAULT_PKEY,
            limits: RetryLimits::default(),
            ack_every: 16,
            window: 4096,
            initiator_depth: 16,
            marking: RequestMarking::default(),
        }
    }
}
