// SPDX-License-Identifier: Apache-2.0
//! The settings of a queue pair's responder, fixed when the queue pair is opened.
//! `ResponderConfig::new` takes the settings that have no default and fills in the rest.
//! Source: IBTA vol. 1, clause 11.2.5 (queue pair attributes).

use crate::memory::MemoryRegion;
use penstock_cc::NotificationPoint;
use penstock_units::Time;
use penstock_wire::gateware::FIRST_UDP_SPORT;
use penstock_wire::{Ecn, Ipv4Addr, MacAddr, Psn, Qpn, RnrTimer, DEFAULT_PKEY};

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoint {
    /// Its MAC; of the peer, that of the next hop.
    pub mac: MacAddr,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its queue pair.
    pub qpn: Qpn,
}

/// Path MTU: the payload of every packet but the last of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1024 bytes.
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

impl Mtu {
    /// All of them, smallest first.
    pub const ALL: [Mtu; 5] = [Mtu::B256, Mtu::B512, Mtu::B1024, Mtu::B2048, Mtu::B4096];

    /// Payload bytes.
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// The code of IBTA 11.2.5 and of `enum ibv_mtu`: 1 .. 5.
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The MTU of exactly `bytes`; `None` when there is no such.
    pub fn from_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }
}

/// The posted receives as reported in ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CreditPolicy {
    /// Nothing: the requester may send without limit and learns of a full ring by RNR NAK.
    /// What `rdma_rxe` and most NICs do.
    #[default]
    Unlimited,
    /// How many are posted, rounded down to a credit code (IBTA 9.7.7.2).
    Posted,
}

/// How replies are marked in the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReplyMarking {
    /// DSCP of ACKs, NAKs and READ responses.
    pub ack_dscp: u8,
    /// DSCP of CNPs, a traffic class of their own.
    pub cnp_dscp: u8,
    /// Time to live.
    pub ttl: u8,
    /// UDP source port.
    pub udp_sport: u16,
    /// Congestion notification of READ responses. Default: not capable; ECT(0) if the owner paces them and reacts to CNPs.
    pub response_ecn: Ecn,
}

impl Default for ReplyMarking {
    /// DSCP 26 for RoCE and 48 for CNPs, as common NIC and switch guides set them.
    fn default() -> Self {
        let response_ecn = Ecn::NotEct;
        ReplyMarking { ack_dscp: 26, cnp_dscp: 48, ttl: 64, udp_sport: FIRST_UDP_SPORT, response_ecn }
    }
}

/// All settings of a responder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResponderConfig {
    /// This end.
    pub local: Endpoint,
    /// The other end; packets of others are dropped.
    pub peer: Endpoint,
    /// UDP source port the peer must use; `None` (the default) takes any, as the standard demands
    /// of a responder: the port is only a label for load balancing.
    pub peer_udp_sport: Option<u16>,
    /// PSN of the peer's first packet.
    pub expected_psn: Psn,
    /// Path MTU.
    pub mtu: Mtu,
    /// Memory the peer may access.
    pub regions: Vec<MemoryRegion>,
    /// READs that the peer may have outstanding: its initiator depth at least. Default 0: READ is an invalid request.
    pub responder_resources: u8,
    /// Partition key.
    pub pkey: u16,
    /// Wait time in RNR NAKs; default code 12, 0.64 ms.
    pub rnr_timer: RnrTimer,
    /// Least time between two CNPs; default 50 us.
    pub cnp_interval: Time,
    /// Credits in ACKs.
    pub credits: CreditPolicy,
    /// Says NAK once more when a peer has gone back and the packet asked for was lost again, so that the peer need not
    /// wait for its ACK timer. Default false: the standard has one NAK for each gap, as NICs do. A network that
    /// reorders makes a peer go back more often by it.
    pub nak_again: bool,
    /// IP marking of replies.
    pub marking: ReplyMarking,
}

impl ResponderConfig {
    /// A configuration with the defaults named at the fields, and no memory region yet.
    pub fn new(local: Endpoint, peer: Endpoint, expected_psn: Psn, mtu: Mtu) -> Self {
        ResponderConfig {
            local,
            peer,
            peer_udp_sport: None,
            expected_psn,
            mtu,
            regions: Vec::new(),
            responder_resources: 0,
            pkey: DEFAULT_PKEY,
            rnr_timer: RnrTimer::from_code(12),
            cnp_interval: NotificationPoint::DEFAULT_INTERVAL,
            credits: CreditPolicy::default(),
            nak_again: false,
            marking: ReplyMarking::default(),
        }
    }

    /// Adds a memory region.
    pub fn with_region(mut self, region: MemoryRegion) -> Self {
        self.regions.push(region);
        self
    }
}

/// Keys match in their low 15 bits, and at least one of the two is a full member (IBTA 10.9.3).
pub(crate) fn pkeys_match(a: u16, b: u16) -> bool {
    a & 0x7FFF == b & 0x7FFF && (a | b) & 0x8000 != 0
}
