// SPDX-License-Identifier: Apache-2.0
//! The simplified TCP sender against the standard receiver, segment by segment.

use std::net::Ipv4Addr;

use penstock_transport::{BackOff, SimpleTcpSender, TcpConfig, TcpEndpoint, TcpReceiver};
use penstock_units::Time;
use penstock_wire::{MacAddr, TcpPacket};

const MS: Time = Time::from_ms(1);
const MSS: u64 = 1000;

fn end(n: u8) -> TcpEndpoint {
    TcpEndpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n), port: 10_000 }
}

fn pair(back_off: BackOff) -> (SimpleTcpSender, TcpReceiver) {
    let config =
        TcpConfig { mss: MSS as u32, min_rto: MS * 10, delayed_ack: Time::ZERO, ..TcpConfig::new(end(1), end(2)) };
    let mut sender = SimpleTcpSender::new(config, back_off);
    sender.write(20 * MSS);
    (sender, TcpReceiver::new(config.reversed()))
}

fn send_all(sender: &mut SimpleTcpSender, now: Time) -> Vec<TcpPacket> {
    std::iter::from_fn(|| sender.poll_transmit(now)).collect()
}

fn offsets(packets: &[TcpPacket]) -> Vec<u64> {
    packets.iter().map(|packet| u64::from(packet.seq) / MSS).collect()
}

/// Gives the receiver all but the lost ones; the sender hears every ACK.
fn deliver(sender: &mut SimpleTcpSender, receiver: &mut TcpReceiver, packets: &[TcpPacket], lost: &[u64], now: Time) {
    for packet in packets.iter().filter(|packet| !lost.contains(&(u64::from(packet.seq) / MSS))) {
        receiver.handle_packet(now, packet);
        while let Some(ack) = receiver.poll_transmit() {
            sender.handle_packet(now, &ack);
        }
    }
}

#[test]
fn without_congestion_control_one_loss_costs_one_segment_and_a_timeout_all_that_is_outstanding() {
    let (mut sender, mut receiver) = pair(BackOff::Off);
    let first = send_all(&mut sender, Time::ZERO);
    assert_eq!(offsets(&first), (0..20).collect::<Vec<_>>());
    deliver(&mut sender, &mut receiver, &first, &[5, 9], MS);
    sender.write(3 * MSS);
    let again = send_all(&mut sender, MS);
    assert_eq!(offsets(&again), [5, 20, 21, 22], "and new data goes on");
    assert_eq!((sender.counters().recoveries, sender.counters().retransmitted), (1, 1));
    deliver(&mut sender, &mut receiver, &again, &[], MS * 2);
    assert_eq!(offsets(&send_all(&mut sender, MS * 2)), [], "the second hole waits for the timeout");
    sender.handle_timeout(MS * 12);
    let again = send_all(&mut sender, MS * 12);
    assert_eq!(offsets(&again), (9..23).collect::<Vec<_>>());
    deliver(&mut sender, &mut receiver, &again, &[], MS * 13);
    assert_eq!((sender.acknowledged(), receiver.delivered()), (23 * MSS, 23 * MSS));
}

#[test]
fn with_it_each_hole_costs_one_segment_and_nothing_else_is_sent_until_all_are_filled() {
    let (mut sender, mut receiver) = pair(BackOff::Exponential);
    let first = send_all(&mut sender, Time::ZERO);
    deliver(&mut sender, &mut receiver, &first, &[5, 9], MS);
    sender.write(3 * MSS);
    let hole = send_all(&mut sender, MS);
    assert_eq!(offsets(&hole), [5]);
    deliver(&mut sender, &mut receiver, &hole, &[], MS * 2);
    let hole = send_all(&mut sender, MS * 2);
    assert_eq!(offsets(&hole), [9]);
    deliver(&mut sender, &mut receiver, &hole, &[], MS * 3);
    assert_eq!(offsets(&send_all(&mut sender, MS * 3)), [20, 21, 22]);
}

#[test]
fn the_timeout_doubles_with_back_off_and_stays_without() {
    for (back_off, expected) in [(BackOff::Exponential, [10, 30, 70, 150]), (BackOff::Off, [10, 20, 30, 40])] {
        let (mut sender, _) = pair(back_off);
        send_all(&mut sender, Time::ZERO);
        let mut expiries = Vec::new();
        while expiries.len() < 4 {
            let at = sender.next_timeout().unwrap();
            expiries.push(at / MS);
            sender.handle_timeout(at);
            send_all(&mut sender, at);
        }
        assert_eq!(expiries, expected, "{back_off:?}");
    }
}

#[test]
fn the_window_of_the_peer_holds_both() {
    for back_off in [BackOff::Off, BackOff::Exponential] {
        let config = TcpConfig { receive_buffer: 4_500, mss: MSS as u32, ..TcpConfig::new(end(1), end(2)) };
        let mut sender = SimpleTcpSender::new(config, back_off);
        sender.write(20 * MSS);
        assert_eq!(send_all(&mut sender, Time::ZERO).len(), 4); // a fifth would be cut short: no silly window
    }
}

#[test]
fn fragments_are_merged_into_full_segments() {
    let (mut sender, mut receiver) = pair(BackOff::Exponential);
    let first = send_all(&mut sender, Time::ZERO);
    sender.write(300);
    assert_eq!(send_all(&mut sender, Time::ZERO).len(), 0);
    sender.write(800);
    assert_eq!(send_all(&mut sender, Time::ZERO)[0].payload.len(), 1000);
    deliver(&mut sender, &mut receiver, &first, &[], MS);
    assert_eq!(send_all(&mut sender, MS).len(), 0, "the full one is not acknowledged yet");
}
