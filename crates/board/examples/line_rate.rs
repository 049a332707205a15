// SPDX-License-Identifier: Apache-2.0
//! Measures the verilated board against an ideal server: goodput on XGMII and clock cycles per second.
//!
//! One queue pair sends 100 kB messages at MTU 4096 with congestion control on and nothing congested; a
//! responder answers after 1 us. Prints one JSON object.

use bytes::Bytes;
use penstock_board::{Board, EndpointConfig, Message, QpConfig, Verb, WcStatus, CYCLE_PS, OCTET_PS};
use penstock_transport::{Access, Endpoint, Memory, MemoryRegion, Mtu, Responder, ResponderConfig};
use penstock_wire::{Ipv4Addr, MacAddr, Packet, Payload, Position, Psn, Qpn, RocePacket};
use std::time::Instant;

const MESSAGE_BYTES: usize = 100_000;
const ANSWER_CYCLES: u64 = 156;
const WARM_UP_CYCLES: u64 = 30_000;
const MEASURED_CYCLES: u64 = 400_000;
const CHUNK_CYCLES: u64 = 100;

/// Memory of a server that wants no bytes.
struct Sink;

impl Memory for Sink {
    fn write(&mut self, _va: u64, _data: &Payload) {}
}

/// Goodput over whole messages: from the start of one message's first packet to that of a later one's.
#[derive(Default)]
struct Goodput {
    first_octet: Option<u64>,
    /// Up to the latest message start: its octet time, payload bytes before it.
    whole: (u64, u64),
    bytes: u64,
}

impl Goodput {
    fn see(&mut self, start_octet: u64, packet: &RocePacket) {
        if packet.bth.opcode.position() == Position::First {
            self.first_octet.get_or_insert(start_octet);
            self.whole = (start_octet, self.bytes);
        }
        if self.first_octet.is_some() {
            self.bytes += packet.payload.len() as u64;
        }
    }

    /// Payload bits per nanosecond.
    fn gbps(&self) -> f64 {
        let octets = self.whole.0 - self.first_octet.unwrap_or(0);
        self.whole.1 as f64 * 8e3 / (octets as f64 * OCTET_PS as f64)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(0x200) };
    let peer = Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::new(0x100) };
    let region = MemoryRegion { va: 0x1000, rkey: 7, len: 1 << 20, access: Access::RemoteWrite };
    let mut responder = Responder::new(ResponderConfig::new(peer, own, Psn::new(5), Mtu::B4096).with_region(region));
    let mut board = open_board(own, peer, region.rkey)?;
    let payload = Bytes::from(vec![0x5a; MESSAGE_BYTES]);
    let mut memory = Sink;
    let mut goodput = Goodput::default();

    let mut messages = 0u32;
    let mut started = Instant::now();
    let end = WARM_UP_CYCLES + MEASURED_CYCLES;
    while board.cycle() < end {
        if board.cycle() == WARM_UP_CYCLES {
            started = Instant::now();
        }
        while board.pending_messages() < 2 {
            let (imm, tag) = (Some(messages), messages);
            board.post(Message {
                qp: 0,
                verb: Verb::Write,
                imm,
                remote_address: region.va,
                tag,
                payload: payload.clone(),
            });
            responder.post_receive(Default::default());
            messages += 1;
        }
        board.run_until(board.cycle() + CHUNK_CYCLES);
        while let Some(received) = board.poll_transmit() {
            if let Ok(Packet::Roce(packet)) = Packet::parse(received.frame) {
                if board.cycle() > WARM_UP_CYCLES {
                    goodput.see(received.start_octet, &packet);
                }
                responder.handle_packet(board.cycle() * CYCLE_PS, &packet, &mut memory);
            }
        }
        while let Some(reply) = responder.poll_transmit() {
            board.receive(board.cycle() + ANSWER_CYCLES, reply.emit(), true);
        }
        while let Some(completion) = board.poll_completion() {
            assert_eq!(completion.status, WcStatus::Success, "message {}", completion.tag);
        }
        while responder.poll_completion().is_some() {}
    }
    let wall_s = started.elapsed().as_secs_f64();
    println!(
        "{{\"goodput_gbps\": {:.4}, \"cycles_per_second\": {:.0}, \"out_of_sequence\": {}}}",
        goodput.gbps(),
        MEASURED_CYCLES as f64 / wall_s,
        responder.counters().out_of_sequence
    );
    Ok(())
}

fn open_board(own: Endpoint, peer: Endpoint, rkey: u32) -> Result<Board, Box<dyn std::error::Error>> {
    let mut board = Board::new();
    board.configure(&EndpointConfig {
        mac: own.mac,
        ip: own.ip,
        ttl: 64,
        qpn_base: own.qpn,
        obey_pause: true,
        obey_pfc: true,
        traffic_class: 3,
        congestion: Default::default(),
    })?;
    board.open_qp(
        0,
        &QpConfig {
            dst_mac: peer.mac,
            dst_ip: peer.ip,
            udp_sport: 0xc000,
            tos: 0x6a,
            dest_qpn: peer.qpn,
            rkey,
            mtu: 4096,
            ack_timeout: 9,
            retry_cnt: 7,
            rnr_retry: 7,
            init_psn: Psn::new(5),
        },
    )?;
    board.restart_time();
    Ok(board)
}
