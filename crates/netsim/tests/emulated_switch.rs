// SPDX-License-Identifier: Apache-2.0
//! The emulated switch alone: its measurement, and the destinations and times of its notifications.

use bytes::Bytes;
use etherparse::{SlicedPacket, TransportSlice};
use penstock_netsim::{EmulatedSwitch, EmulatedSwitchParams, Rate, Stream, SwitchedFlow, ThresholdStep, Time};
use penstock_wire::{
    AethRepr, BthRepr, Credits, Ecn, Ipv4Addr, MacAddr, Opcode, Payload, Psn, Qpn, RocePacket, Syndrome,
};

const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOARD_QPN: Qpn = Qpn::new(0x201);
const OCTET_PS: u64 = 800;

fn packet(psn: u32, payload: usize) -> RocePacket {
    RocePacket {
        eth_dst: MacAddr([2, 0, 0, 0, 0, 1]),
        eth_src: MacAddr([2, 0, 0, 0, 0, 2]),
        cn_tag: None,
        ip_src: BOARD,
        ip_dst: SERVER,
        dscp: 26,
        ecn: Ecn::Ect0,
        ttl: 64,
        udp_sport: 0xc123,
        bth: BthRepr::new(Opcode::WriteMiddle, Qpn::new(0x11), Psn::new(psn)),
        reth: None,
        aeth: None,
        imm: None,
        payload: Payload::Bytes(vec![0; payload].into()),
    }
}

fn acknowledgement(psn: u32) -> Bytes {
    let aeth = AethRepr { syndrome: Syndrome::Ack(Credits::UNLIMITED), msn: 0 };
    let bth = BthRepr::new(Opcode::Acknowledge, BOARD_QPN, Psn::new(psn));
    let (ip_src, ip_dst) = (SERVER, BOARD);
    RocePacket { ip_src, ip_dst, bth, aeth: Some(aeth), payload: Payload::EMPTY, ..packet(psn, 0) }.emit()
}

fn switch(steps: Vec<ThresholdStep>, cooldown: Time) -> EmulatedSwitch {
    EmulatedSwitch::new(EmulatedSwitchParams { steps, cooldown, ..EmulatedSwitchParams::advcam() })
}

#[test]
fn the_rate_falls_to_nothing_when_nothing_is_sent_any_more() {
    let mut switch = switch(Vec::new(), Time::from_us(1));
    line_rate(&mut switch, Time::ZERO, 200);
    let window = switch.params().window;
    let end = Time::from_ps(200 * (packet(0, 1024).emit().len() as u64 + 24) * OCTET_PS);
    assert_eq!(switch.measured_until(end), switch.measured());
    let half = switch.measured_until(end + window / 2);
    assert!(half > Rate(0) && half < switch.measured(), "{half}");
    assert_eq!(switch.measured_until(end + window), Rate(0));
}

fn allowed(at: Time, gbps: u64) -> ThresholdStep {
    ThresholdStep { at, threshold: Some(Rate::from_gbps(gbps)) }
}

/// Sends packets back to back from `from`; gives the CNPs with the end of the packet that caused each.
fn line_rate(switch: &mut EmulatedSwitch, from: Time, packets: u32) -> Vec<(u64, Bytes)> {
    let mut out = Vec::new();
    let mut at = from.as_ps();
    for psn in 0..packets {
        let frame = packet(psn, 1024).emit();
        let octets = frame.len() as u64 + 24;
        let cnp = switch.on_frame(Time::from_ps(at), &frame);
        at += octets * OCTET_PS;
        out.extend(cnp.map(|cnp| (at, cnp)));
        switch.on_reply(&acknowledgement(psn));
    }
    out
}

#[test]
fn the_measured_throughput_is_that_of_the_cocotb_switch() {
    let mut rng = Stream::new(7, "emulated switch");
    let mut switch = switch(vec![], Time::ZERO);
    let (mut at, mut seen) = (0f64, Vec::new());
    for psn in 0..300 {
        let payload = 256 << (rng.next_u32() % 5);
        let frame = packet(psn, payload).emit();
        let wire = (frame.len() + 24) as f64 * OCTET_PS as f64;
        switch.on_frame(Time::from_ps(at as u64), &frame);
        seen.push((at, at + wire, payload as f64));
        // As in tb/lib/emulated_switch.py: each packet spread evenly over its time.
        let (begin, end) = (at + wire - 32e6, at + wire);
        let inside = |&(start, stop, octets): &(f64, f64, f64)| {
            octets * (stop.min(end) - start.max(begin)).max(0.0) / (stop - start)
        };
        let gbps = 8e3 * seen.iter().map(inside).sum::<f64>() / 32e6;
        let measured = switch.measured().bits_per_second() as f64 * 1e-9;
        assert!((measured - gbps).abs() < 1e-3, "packet {psn}: {measured} Gb/s, {gbps} expected");
        at = end + f64::from(rng.next_u32() % 4000) * 800.0;
    }
}

#[test]
fn a_cnp_goes_back_the_way_of_the_packet_to_the_queue_pair_of_the_board() {
    let mut switch = switch(vec![allowed(Time::ZERO, 5)], Time::from_ms(1));
    let cnps = line_rate(&mut switch, Time::ZERO, 100);
    let [(_, cnp)] = &cnps[..] else { panic!("one CNP in the cooldown, not {}", cnps.len()) };
    let headers = SlicedPacket::from_ethernet(cnp).unwrap();
    let ip = headers.net.unwrap();
    let ip = ip.ipv4_ref().unwrap().header();
    assert_eq!((ip.source_addr(), ip.destination_addr(), ip.ttl()), (SERVER, BOARD, 64));
    let Some(TransportSlice::Udp(udp)) = headers.transport else { panic!("UDP") };
    assert_eq!(udp.destination_port(), 4791);
    let bth = udp.payload();
    assert_eq!((bth[0], bth[4], &bth[5..8]), (0x81, 0x40, &[0, 2, 1][..]), "opcode CNP, BECN, the board's queue pair");
    assert_eq!(cnp[..12], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    assert!(RocePacket::parse(cnp).is_ok(), "its ICRC is right");
}

#[test]
fn cnps_keep_their_cooldown_and_steps_their_times() {
    let steps = vec![
        ThresholdStep { at: Time::ZERO, threshold: None },
        allowed(Time::from_us(100), 2),
        allowed(Time::from_us(200), 20),
    ];
    let mut switch = switch(steps, Time::from_us(30));
    let at: Vec<u64> = line_rate(&mut switch, Time::ZERO, 400).into_iter().map(|cnp| cnp.0).collect();
    assert_eq!(at.len(), 4, "{at:?}");
    assert!(at[0] >= 100_000_000 && at[0] < 102_000_000 && at[3] < 200_000_000, "{at:?}");
    assert!(at.windows(2).all(|pair| pair[1] - pair[0] >= 30_000_000), "{at:?}");
}

#[test]
fn a_flow_that_nobody_has_acknowledged_gets_no_cnp_unless_it_was_configured() {
    let mut unknown = switch(vec![allowed(Time::ZERO, 1)], Time::ZERO);
    let mut connected = unknown.clone();
    connected.connect(SwitchedFlow { from: BOARD, to: SERVER, to_qpn: Qpn::new(0x11) }, BOARD_QPN);
    let frame = packet(0, 4096).emit();
    assert_eq!(unknown.on_frame(Time::ZERO, &frame), None);
    assert_eq!((unknown.unaddressed(), unknown.notifications().len()), (1, 0));
    assert!(connected.on_frame(Time::ZERO, &frame).is_some());
}
