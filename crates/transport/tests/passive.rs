// SPDX-License-Identifier: Apache-2.0
//! `TcpPassive` against the simplified sender of a front end, over a channel that loses, repeats and turns around.

use penstock_transport::simple_tcp::{Arrival, End, Parameters, State, Stream};
use penstock_transport::{PassiveChange, TcpConfig, TcpEndpoint, TcpPassive};
use penstock_units::Time;
use penstock_wire::{MacAddr, Payload, SynOptions, TcpFlags, TcpPacket};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

fn end(n: u8) -> TcpEndpoint {
    TcpEndpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n), port: 5000 + u16::from(n) }
}

const ISS: u32 = u32::MAX - 3000;

/// The configuration as the passive side sees it.
fn config(receive_buffer: u64) -> TcpConfig {
    TcpConfig { iss: u32::MAX, receive_buffer, delayed_ack: Time::from_us(300), ..TcpConfig::new(end(2), end(1)) }
}

/// Both ends, and what is on its way between them.
struct Run {
    now: Time,
    sender: Stream,
    passive: TcpPassive,
    there: VecDeque<TcpPacket>,
    back: VecDeque<TcpPacket>,
    taken: Vec<u8>,
    reads: bool,
    changes: Vec<PassiveChange>,
}

impl Run {
    fn new(receive_buffer: u64) -> Self {
        let parameters = Parameters { rto_initial: 2000, rto_min: 1000, give_up: 0, ..Parameters::default() };
        let mut sender = Stream::new(parameters, 1 << 16).unwrap();
        sender.open(Time::ZERO, ISS);
        Run {
            now: Time::ZERO,
            sender,
            passive: TcpPassive::new(config(receive_buffer)),
            there: VecDeque::new(),
            back: VecDeque::new(),
            taken: Vec::new(),
            reads: true,
            changes: Vec::new(),
        }
    }

    /// Whatever the sender sends now.
    fn send(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            let (first, second) = self.sender.payload(&segment);
            let payload: Vec<u8> = [first, second].concat();
            let options = match segment.flags.contains(TcpFlags::SYN) {
                true => SynOptions { mss: Some(1460), window_scale: Some(0), malformed: false },
                false => SynOptions::default(),
            };
            self.there.push_back(TcpPacket {
                seq: segment.seq,
                ack: segment.ack,
                flags: segment.flags,
                options,
                payload: Payload::Bytes(payload.into()),
                ..config(1 << 16).reversed().empty_segment()
            });
        }
    }

    fn receive(&mut self, packet: &TcpPacket) {
        self.changes.extend(self.passive.handle_packet(self.now, packet));
        self.read();
    }

    fn read(&mut self) {
        self.passive.set_reading(self.now, self.reads);
        while let Some(bytes) = self.passive.take() {
            self.taken.extend_from_slice(&bytes);
        }
        while let Some(answer) = self.passive.poll_transmit() {
            self.back.push_back(answer);
        }
    }

    fn answer(&mut self, packet: &TcpPacket) {
        self.sender.handle_segment(self.now, &Arrival::of(packet));
    }

    /// Time goes on to the next timer of either end.
    fn wait(&mut self) {
        let timers = [self.sender.next_timeout(), self.passive.next_timeout()];
        self.now = timers.into_iter().flatten().min().unwrap_or(self.now).max(self.now + Time::from_us(1));
        self.sender.handle_timeout(self.now);
        self.passive.handle_timeout(self.now);
        self.read();
    }

    /// Everything arrives, in order, until nothing is on its way.
    fn settle(&mut self) {
        self.send();
        while !self.there.is_empty() || !self.back.is_empty() {
            while let Some(packet) = self.there.pop_front() {
                self.receive(&packet);
            }
            while let Some(packet) = self.back.pop_front() {
                self.answer(&packet);
            }
            self.send();
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn the_handshake_negotiates_and_bytes_come_in_order() {
    let mut run = Run::new(100_000);
    run.settle();
    assert_eq!((run.sender.state(), &run.changes[..]), (State::Established, &[PassiveChange::Opened][..]));
    // A window of more than 2^16 bytes needs the scale of both SYNs.
    assert_eq!(run.sender.row().shift, 8);
    let sent = pattern(50_000);
    run.sender.write(run.now, 1, &[&sent]).unwrap();
    while run.sender.unfinished() > 0 {
        run.settle();
        run.wait();
    }
    assert_eq!(run.taken, sent);
    assert_eq!(run.passive.counters().beyond_window, 0);
}

#[test]
fn a_program_that_does_not_read_closes_the_window_and_nothing_is_lost() {
    let mut run = Run::new(4096);
    run.settle();
    run.reads = false;
    run.read();
    let sent = pattern(30_000);
    run.sender.write(run.now, 1, &[&sent]).unwrap();
    for _ in 0..20 {
        run.settle();
        run.wait();
    }
    assert!(run.taken.is_empty() && run.sender.unfinished() == 1);
    run.reads = true;
    run.read();
    while run.sender.unfinished() > 0 {
        run.settle();
        run.wait();
    }
    assert_eq!(run.taken, sent);
}

#[test]
fn a_segment_of_no_connection_is_reset_and_so_is_a_connection_by_its_peer() {
    let mut run = Run::new(65_535);
    let stray = TcpPacket { seq: 5, ack: 77, ..config(0).reversed().empty_segment() };
    run.receive(&stray);
    let answer = run.back.pop_front().unwrap();
    assert_eq!((answer.flags, answer.seq), (TcpFlags::RST, 77));
    run.settle();
    // Not at the next sequence number: a stranger's.
    let forged = TcpPacket { seq: ISS.wrapping_add(2), flags: TcpFlags::RST, ..stray.clone() };
    run.receive(&forged);
    assert_eq!(run.changes, [PassiveChange::Opened]);
    run.sender.abort(run.now);
    run.settle();
    assert_eq!(run.changes, [PassiveChange::Opened, PassiveChange::Reset]);
    assert_eq!(run.sender.last_end(), Some(End::Aborted));
    // The next connection begins with a clean stream.
    run.sender.open(run.now, 1234);
    run.settle();
    run.sender.write(run.now, 2, &[b"again"]).unwrap();
    while run.sender.unfinished() > 0 {
        run.settle();
        run.wait();
    }
    assert_eq!(run.taken, b"again");
}

proptest! {
    #[test]
    fn any_order_of_losses_and_repetitions_costs_time_and_no_byte(
        fates in prop::collection::vec(0_u8..8, 1..200),
        buffer in 1500_u64..20_000,
        sizes in prop::collection::vec(1_usize..6000, 1..8),
    ) {
        let mut run = Run::new(buffer);
        let mut fates = fates.into_iter();
        let sent = pattern(sizes.iter().sum());
        let (mut at, mut waiting) = (0, sizes.into_iter());
        let mut rounds = 0;
        while run.taken.len() < sent.len() || run.sender.unfinished() > 0 || waiting.len() > 0 {
            rounds += 1;
            prop_assert!(rounds < 20_000, "{} of {} bytes", run.taken.len(), sent.len());
            if run.sender.state() == State::Established {
                if let Some(size) = waiting.next() {
                    run.sender.write(run.now, rounds, &[&sent[at..at + size]]).unwrap();
                    at += size;
                }
            }
            run.send();
            for forward in [true, false] {
                let way = if forward { &mut run.there } else { &mut run.back };
                let Some(packet) = way.pop_front() else { continue };
                match fates.next() {
                    Some(0) => continue,
                    Some(1) => way.push_front(packet.clone()),
                    Some(2) => {
                        way.push_back(packet);
                        continue;
                    }
                    _ => {}
                }
                if forward { run.receive(&packet) } else { run.answer(&packet) }
            }
            if run.there.is_empty() && run.back.is_empty() {
                run.wait();
            }
        }
        prop_assert_eq!(&run.taken, &sent);
    }
}
