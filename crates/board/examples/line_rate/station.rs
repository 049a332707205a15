// SPDX-License-Identifier: Apache-2.0
//! A verilated front end and, at the far end of an ideal link, a server for each of its queue pairs.

use penstock_board::{Board, EndpointConfig, QpConfig, Received, Top, WcStatus};
use penstock_cc::{CycleRate, DcqcnParams};
use penstock_transport::{Access, Endpoint, Memory, MemoryRegion, Mtu, RecvWr, Responder, ResponderConfig};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, Packet, Payload, Psn, Qpn, RocePacket};

pub type Failure = Box<dyn std::error::Error>;

/// Memory of every server that a message may be written to.
pub const REGION: MemoryRegion = MemoryRegion { va: 0x1000, rkey: 7, len: 1 << 20, access: Access::RemoteWrite };

/// A message of an event ends with an immediate and needs one; a server has never fewer than it had at first.
const RECEIVE: RecvWr = RecvWr { wr_id: 0, va: REGION.va, len: 0 };
const RECEIVES: usize = 64;

const INITIAL_PSN: u32 = 0xff_fff0;
const BOARD_QPN: u32 = 0x200;
const SERVER_QPN: u32 = 0x300;
/// How long the board runs before what it has sent is looked at; shorter than any answer takes.
const CHUNK_CYCLES: u64 = 50;
/// Preamble and start of frame, which precede a frame, and the FCS, which follows it.
const PREAMBLE_AND_FCS: u64 = 12;

/// Memory that forgets.
struct Nowhere;

impl Memory for Nowhere {
    fn write(&mut self, _va: u64, _data: &Payload) {}
}

pub struct Station {
    pub board: Board,
    /// Keeps messages or events at its inputs, if anything does.
    pub feed: Option<Box<dyn FnMut(&mut Board)>>,
    servers: Vec<Responder>,
    answer_cycles: u64,
}

impl Station {
    /// Opens `queue_pairs` connections to servers that answer after `answer_cycles`. DCQCN is on and hears nothing.
    pub fn open(top: Top, queue_pairs: u8, mtu: u16, answer_cycles: u64) -> Result<Self, Failure> {
        assert!(answer_cycles >= CHUNK_CYCLES, "answers after {answer_cycles} cycles come too early");
        let code = Mtu::from_bytes(mtu.into()).ok_or_else(|| format!("mtu = {mtu}"))?;
        let mut station = Self { board: Board::of(top), feed: None, servers: Vec::new(), answer_cycles };
        station.board.configure(&EndpointConfig {
            mac: board_end(0).mac,
            ip: board_end(0).ip,
            ttl: 64,
            qpn_base: board_end(0).qpn,
            obey_pause: true,
            obey_pfc: true,
            traffic_class: 3,
            congestion: congestion_control(top),
        })?;
        for index in 0..queue_pairs {
            let (local, peer) = (board_end(index), server_end(index));
            station.board.open_qp(index, &qp_config(peer, mtu))?;
            let config = ResponderConfig::new(peer, local, Psn::new(INITIAL_PSN), code).with_region(REGION);
            let mut server = Responder::new(config);
            (0..RECEIVES).for_each(|_| server.post_receive(RECEIVE));
            station.servers.push(server);
        }
        Ok(station)
    }

    /// Runs up to `cycle` and shows every packet that the board sends, with the octet time at which it begins.
    pub fn run_until(&mut self, cycle: u64, mut see: impl FnMut(u64, &RocePacket)) -> Result<(), Failure> {
        while self.board.cycle() < cycle {
            if let Some(feed) = &mut self.feed {
                feed(&mut self.board);
            }
            self.board.run_until(cycle.min(self.board.cycle() + CHUNK_CYCLES));
            while let Some(received) = self.board.poll_transmit() {
                let arrival = self.answer_at(&received);
                if !received.fcs_ok {
                    return Err(format!("frame at octet {}: bad FCS or underrun", received.start_octet).into());
                }
                let Packet::Roce(packet) = Packet::parse(received.frame)? else { continue };
                see(received.start_octet, &packet);
                self.answer(arrival, &packet)?;
            }
            while let Some(completion) = self.board.poll_completion() {
                if completion.status != WcStatus::Success {
                    return Err(format!("message {}: {}", completion.tag, completion.status).into());
                }
            }
        }
        Ok(())
    }

    /// Packets that a server had seen before or missed one in front of: an ideal link has none.
    pub fn repeated_packets(&self) -> u64 {
        let counters = self.servers.iter().map(Responder::counters);
        counters.map(|c| c.duplicate_request + c.out_of_sequence).sum()
    }

    /// The cycle in which the answer to a frame begins to arrive.
    fn answer_at(&self, received: &Received) -> u64 {
        let (octets, cycles) = self.board.clock().octets_per_cycle;
        let end = received.start_octet + PREAMBLE_AND_FCS + received.frame.len() as u64;
        (end * cycles).div_ceil(octets) + self.answer_cycles
    }

    fn answer(&mut self, at: u64, packet: &RocePacket) -> Result<(), Failure> {
        let index = packet.bth.dest_qpn.value().wrapping_sub(SERVER_QPN) as usize;
        let qpn = packet.bth.dest_qpn;
        let server = self.servers.get_mut(index).ok_or_else(|| format!("a packet for {qpn:?}: no server has it"))?;
        server.handle_packet(Time::ZERO, packet, &mut Nowhere);
        while server.poll_completion().is_some() {
            server.post_receive(RECEIVE);
        }
        while let Some(reply) = server.poll_transmit(&mut Nowhere) {
            self.board.receive(at, reply.emit(), true);
        }
        Ok(())
    }
}

fn board_end(index: u8) -> Endpoint {
    let qpn = Qpn::new(BOARD_QPN + u32::from(index));
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn }
}

fn server_end(index: u8) -> Endpoint {
    let qpn = Qpn::new(SERVER_QPN + u32::from(index));
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn }
}

fn congestion_control(top: Top) -> DcqcnParams {
    let (octets, cycles) = top.clock().octets_per_cycle;
    let rate_line = CycleRate(((octets << 24) / cycles) as u32);
    DcqcnParams { rate_line, ..Default::default() }
}

fn qp_config(peer: Endpoint, mtu: u16) -> QpConfig {
    QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: 0xc000,
        tos: 0x6a,
        dest_qpn: peer.qpn,
        rkey: REGION.rkey,
        mtu,
        ack_timeout: 9,
        retry_cnt: 7,
        rnr_retry: 7,
        init_psn: Psn::new(INITIAL_PSN),
    }
}
