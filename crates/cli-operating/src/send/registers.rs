// SPDX-License-Identifier: Apache-2.0
//! The registers of front ends over IPbus, one port per address: settings of congestion control from a server or
//! operator, and the registers that `penstock ctl` reads.
//! Promise: the map is the gateware's, of a build with one queue pair, or several with `--by-event`; `cc[0]` governs the limiter from the next packet
//! on. What is read is the front end's state now. A register without a function here is refused, like one that does not
//! exist; counters of parts that this front end has not, as a MAC, read 0.

use super::destination;
use super::front_end::FrontEnd;
use super::lane::Lane;
use super::plan::Plan;
use penstock_cc::{CycleRate, DcqcnParams};
use penstock_cli_common::arguments::allowed::{admits, Allowed};
use penstock_ipbus::map::{Build, MAP_HASH};
use penstock_ipbus::regs::{cc, counters, events, global, latency, meter, port, qp, source, tcp, timing};
use penstock_ipbus::{Responder, ResponderConfig, PORT};
use penstock_transport::{RequestMarking, RetryLimits};
use penstock_units::Time;
use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
use penstock_wire::{MacAddr, Psn};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::LazyLock;

/// Datagrams that one front end takes in a turn.
const MOST: usize = 16;
const LONGEST: usize = 2048;
const CLOCK_KHZ: u32 = (BOARD_CLOCK_HZ / 1000) as u32;

/// The writable registers: the parameters of the single queue pair's group, and the operators' counts.
const WRITES: &[Range<u32>] =
    &[cc::BASE..cc::BASE + 4 * DcqcnParams::WORDS as u32, global::OPERATOR_IP..global::OPERATOR_ENDED + 4];

/// The registers of every software front end that can be read: what the build is, the counters, and those of parts that
/// are not there, of which software asks whether they are.
pub const OF_EVERY: &[Range<u32>] = &[
    global::ID..global::MAP_HASH + 4,
    global::LOCAL_MAC_HI..global::LOCAL_IP + 4,
    global::LINK_STATUS..global::LINK_STATUS + 4,
    global::OPTIONS..global::OPTIONS + 4,
    tcp::BUILD..tcp::BUILD + 4,
    events::BUILD..events::BUILD + 4,
    events::STAGES..events::STAGES + 4,
    timing::STATUS..timing::STATUS + 4,
    port::LINK..port::LINK + 4,
    source::STATUS..source::STATUS + 4,
    counters::ALL[0].1..counters::ALL[0].1 + 4 * counters::ALL.len() as u32,
];

/// Registers of a queue pair that can be read.
const OF_QUEUE_PAIR: &[Range<u32>] = &[
    qp::BASE..qp::BASE + qp::STRIDE,
    meter::BASE..meter::BASE + meter::STRIDE,
    latency::BASE..latency::BASE + latency::STRIDE,
];

static READS: LazyLock<Vec<Range<u32>>> = LazyLock::new(|| [OF_EVERY, OF_QUEUE_PAIR].concat());
static SHARED_READS: LazyLock<Vec<Range<u32>>> =
    LazyLock::new(|| OF_EVERY.iter().cloned().chain(destination::reads()).collect());
static SHARED_WRITES: LazyLock<Vec<Range<u32>>> =
    LazyLock::new(|| WRITES.iter().cloned().chain(destination::writes()).collect());

struct Port {
    socket: UdpSocket,
    board: Responder,
    by_event: bool,
}

/// Those of all front ends.
pub struct Registers {
    ports: Vec<Port>,
    allow: Vec<Allowed>,
    strangers: u64,
}

impl Registers {
    pub fn bind(plan: &Plan, mac: MacAddr) -> Result<Registers, String> {
        let ports = plan.ips().map(|ip| Port::bind(ip, mac, plan)).collect::<Result<_, _>>()?;
        Ok(Registers { ports, allow: plan.allow.clone(), strangers: 0 })
    }

    /// Datagrams of addresses that may not ask: not answered.
    pub fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Answers what has come.
    pub fn serve(&mut self, now: Time, front_ends: &mut [FrontEnd]) {
        let mut data = [0; LONGEST];
        for (port, front_end) in self.ports.iter_mut().zip(front_ends) {
            for _ in 0..MOST {
                let Ok((len, from)) = port.socket.recv_from(&mut data) else { break };
                if !matches!(from, SocketAddr::V4(from) if admits(&self.allow, *from.ip())) {
                    self.strangers += 1;
                    continue;
                }
                port.show(now, front_end);
                if let Some(answer) = port.board.handle(&data[..len]) {
                    // A lost message is requested again.
                    let _ = port.socket.send_to(&answer, from);
                }
                port.apply_settings(now, front_end);
            }
        }
    }
}

impl Port {
    fn bind(ip: Ipv4Addr, mac: MacAddr, plan: &Plan) -> Result<Port, String> {
        let bound = UdpSocket::bind((ip, PORT)).and_then(|s| s.set_nonblocking(true).map(|()| s));
        let socket = bound.map_err(|error| format!("UDP port {PORT} of {ip} (IPbus): {error}"))?;
        let board = registers(ip, mac, plan.queue_pairs(), &plan.cc);
        Ok(Port { socket, board, by_event: plan.by_event })
    }

    /// The state of the front end, for the readable registers.
    fn show(&mut self, now: Time, front_end: &mut FrontEnd) {
        for (lane, row) in front_end.lanes_mut().iter_mut().zip((qp::BASE..).step_by(qp::STRIDE as usize)) {
            self.show_queue_pair(now, lane, row);
        }
        if self.by_event {
            destination::show(&mut self.board, front_end);
        }
        let (c, messages) = (front_end.counters(), front_end.messages_done() + front_end.messages_lost());
        let cm = front_end.cm_counters();
        for (address, count) in [
            (counters::TX_FRAMES, c.sent_pkts),
            (counters::RX_FRAMES, c.rcvd_pkts),
            (counters::RX_ROCE_PACKETS, c.rcvd_pkts),
            (counters::RX_CNP_PACKETS, c.rp_cnp_received),
            (counters::PACKETS_SENT, c.sent_pkts),
            (counters::PACKETS_RETRANSMITTED, c.retransmitted_pkts),
            (counters::PACKET_SEQ_ERR, c.packet_seq_err),
            (counters::RNR_NAK, c.rnr_nak),
            (counters::LOCAL_ACK_TIMEOUT_ERR, c.local_ack_timeout_err),
            (counters::STALE_ACKS, c.stale_acks),
            (counters::MESSAGES_DONE, messages),
            (counters::IPBUS_PACKETS, self.board.carried_out()),
            (counters::CM_REQUESTS, cm.requests),
            (counters::CM_REFUSED, cm.refused),
            (counters::CM_IGNORED, cm.ignored),
        ] {
            self.board.set(address, count as u32);
        }
        self.board.set(source::STATUS, u32::from(front_end.is_connected() && !front_end.is_done()));
    }

    /// A queue pair's row.
    fn show_queue_pair(&mut self, now: Time, lane: &mut Lane, row: u32) {
        let (c, flow) = (lane.counters(), lane.limiter(now));
        self.show_connection(lane, row);
        let stage = u32::from(flow.stage_timer.max(flow.stage_bytes))
            | qp::STAGE_TIMER_BITS.at(flow.stage_timer)
            | qp::STAGE_BYTES_BITS.at(flow.stage_bytes)
            | qp::STAGE_LIMITED_BITS.at(flow.limited);
        for (offset, word) in [
            (qp::STATE, lane.state().into()),
            (qp::PACKETS_SENT, c.sent_pkts as u32),
            (qp::PACKETS_RETRANSMITTED, c.retransmitted_pkts as u32),
            (qp::PACKET_SEQ_ERR, c.packet_seq_err as u32),
            (qp::RNR_NAK, c.rnr_nak as u32),
            (qp::LOCAL_ACK_TIMEOUT_ERR, c.local_ack_timeout_err as u32),
            (qp::STALE_ACKS, c.stale_acks as u32),
            (qp::MESSAGES_OK, lane.messages_ok as u32),
            (qp::MESSAGES_ERR, c.messages_err as u32),
            (qp::BYTES_ACKED_LO, lane.bytes_acked as u32),
            (qp::BYTES_ACKED_HI, (lane.bytes_acked >> 32) as u32),
            (qp::RATE_CURRENT, flow.rate_current.0),
            (qp::RATE_TARGET, flow.rate_target.0),
            (qp::ALPHA, flow.alpha()),
            (qp::STAGE, stage),
            (qp::RP_CNP_HANDLED, flow.cnp_handled),
        ] {
            self.board.set(row + offset, word);
        }
    }

    /// Who the peer is, and what lies between; of the last connection if there is none.
    fn show_connection(&mut self, lane: &Lane, row: u32) {
        let Some(requester) = lane.requester() else { return };
        let config = requester.config();
        let MacAddr([a, b, c, d, e, f]) = config.peer.mac;
        let (una, sent) = (requester.una().value(), requester.outstanding_packets() as u32);
        let next = Psn::new(una.wrapping_add(sent)).value();
        // Nothing is kept ahead of what is sent, but a message that is posted has a packet.
        let is_kept = sent == 0 && requester.outstanding_messages() > 0;
        let end = Psn::new(next.wrapping_add(is_kept.into())).value();
        let RetryLimits { ack_timeout, retry_cnt, rnr_retry } = config.limits;
        let RequestMarking { dscp, ecn, udp_sport, .. } = config.marking;
        let tos = u32::from(dscp) << 2 | u32::from(ecn.bits());
        let transport = (config.mtu.bytes().ilog2() - 7)
            | qp::TRANSPORT_ACK_TIMEOUT_BITS.at(ack_timeout)
            | qp::TRANSPORT_RETRY_CNT_BITS.at(retry_cnt)
            | qp::TRANSPORT_RNR_RETRY_BITS.at(rnr_retry);
        for (offset, word) in [
            (qp::DST_MAC_HI, u32::from_be_bytes([0, 0, a, b])),
            (qp::DST_MAC_LO, u32::from_be_bytes([c, d, e, f])),
            (qp::DST_IP, config.peer.ip.to_bits()),
            (qp::FLOW, u32::from(udp_sport) | qp::FLOW_TOS_BITS.at(tos)),
            (qp::DEST_QPN, config.peer.qpn.value()),
            (qp::RKEY, lane.peer().rkey),
            (qp::TRANSPORT, transport),
            (qp::INIT_PSN, config.init_psn.value()),
            (qp::UNA_PSN, una),
            (qp::NXT_PSN, next),
            (qp::WR_PSN, end),
        ] {
            self.board.set(row + offset, word);
        }
    }

    /// Takes the parameters over, if they are others now.
    fn apply_settings(&mut self, now: Time, front_end: &mut FrontEnd) {
        let words: Vec<u32> = (0..DcqcnParams::WORDS as u32).map(|word| self.board.get(cc::BASE + 4 * word)).collect();
        let params = DcqcnParams::from_words(&words);
        if params != *front_end.cc() {
            front_end.set_cc(now, params);
        }
        if self.by_event {
            destination::act(&self.board, front_end);
        }
    }
}

/// A front end of this many streams, with the registers that can be written and read.
pub fn of_front_end(streams: u32, writes: &'static [Range<u32>], reads: &'static [Range<u32>]) -> ResponderConfig {
    ResponderConfig {
        build: Build { queue_pairs: 0, clock_khz: CLOCK_KHZ },
        map_hash: MAP_HASH,
        options: global::OPTIONS_SERVICES_BITS.mask,
        streams,
        inputs: 0,
        writes: Some(writes),
        reads: Some(reads),
    }
}

/// Its addresses.
pub fn place(board: &mut Responder, ip: Ipv4Addr, mac: MacAddr) {
    let MacAddr([a, b, c, d, e, f]) = mac;
    board.set(global::LOCAL_MAC_HI, u32::from_be_bytes([0, 0, a, b]));
    board.set(global::LOCAL_MAC_LO, u32::from_be_bytes([c, d, e, f]));
    board.set(global::LOCAL_IP, ip.to_bits());
}

/// A board with these queue pairs; its reset values are the settings with which this process was started.
fn registers(ip: Ipv4Addr, mac: MacAddr, queue_pairs: u32, params: &DcqcnParams) -> Responder {
    let lists: (&[_], &[_]) = if queue_pairs == 1 { (WRITES, &READS) } else { (&SHARED_WRITES, &SHARED_READS) };
    let config = ResponderConfig {
        build: Build { queue_pairs, clock_khz: CLOCK_KHZ },
        options: global::OPTIONS_SERVICES_BITS.mask | global::OPTIONS_RETRANSMIT_BITS.mask,
        ..of_front_end(0, lists.0, lists.1)
    };
    let mut board = Responder::new(config);
    place(&mut board, ip, mac);
    // Bits a cycle, so that a client knows the line rate.
    let width = (params.rate_line.0 >> (CycleRate::FRACTION_BITS - 3)).clamp(64, 512);
    let built = global::BUILD_DATA_W_BITS.at(width) | global::BUILD_N_QP_BITS.at(queue_pairs);
    let groups = if queue_pairs == 1 { 1 } else { cc::COUNT };
    let words = |group: u32| (cc::BASE + group * cc::STRIDE..).step_by(4).zip(params.words());
    let parameters = (0..groups).flat_map(words);
    parameters.chain([(global::BUILD, built)]).for_each(|(address, word)| board.set(address, word));
    board
}

#[cfg(test)]
mod tests {
    use super::*;

    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn reset_values_are_the_command_line_s_and_only_what_acts_can_be_written() {
        let params = DcqcnParams::default();
        let mut board = registers(IP, MacAddr([2, 0, 10, 0, 0, 2]), 1, &params);
        let words: Vec<u32> = (0..DcqcnParams::WORDS as u32).map(|word| board.get(cc::BASE + 4 * word)).collect();
        assert_eq!(DcqcnParams::from_words(&words), params);
        assert_eq!(board.get(global::LOCAL_MAC_LO), 0x0A00_0002);
        let mut id = 0;
        let answer = |board: &mut Responder, address: u32| {
            // IPbus 2.0: a control packet, one read of one word.
            let request: Vec<u8> =
                [0x2000_00F0, 0x2001_010F, address / 4].into_iter().flat_map(u32::to_be_bytes).collect();
            board.handle(&request).unwrap()[7] & 0xF
        };
        for (address, shown) in [
            (qp::BASE + qp::BYTES_ACKED_LO, true),
            (cc::BASE + cc::RATE_MIN, true),
            (global::MAP_HASH, true),
            (global::QPN_BASE, false),
            (qp::BASE + qp::STRIDE + qp::STATE, false),
            (source::LENGTH_MIN, false),
        ] {
            assert_eq!(answer(&mut board, address) == 0, shown, "{address:#x}");
        }
        for (address, taken) in [
            (cc::BASE + cc::RATE_MIN, true),
            (global::OPERATOR_BEGUN, true),
            (source::COMMAND, false),
            (cc::BASE + cc::STRIDE, false),
        ] {
            // IPbus 2.0: a control packet, one write of one word; the answer's low bits are the code, 0 for good.
            id += 1;
            let words = [0x2000_00F0 | id << 8, 0x2001_011F, address / 4, 5];
            let request: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
            let answer = board.handle(&request).unwrap();
            assert_eq!(answer[7] & 0xF == 0, taken, "{address:#x}: {answer:02x?}");
        }
        assert_eq!(board.get(cc::BASE + cc::RATE_MIN), 5);
    }
}
