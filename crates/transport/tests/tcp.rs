// SPDX-License-Identifier: Apache-2.0
//! A TCP sender and a receiver over a link with a rate, a delay, a tail-drop queue and random losses.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use penstock_transport::{TcpConfig, TcpEndpoint, TcpReceiver, TcpSender, TcpStall, TcpVariant};
use penstock_units::Time;
use penstock_wire::{MacAddr, TcpPacket};
use proptest::prelude::*;

fn end(n: u8) -> TcpEndpoint {
    TcpEndpoint { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n), port: 5000 + u16::from(n) }
}

fn config(variant: TcpVariant, sack: bool) -> TcpConfig {
    TcpConfig {
        variant,
        sack,
        iss: u32::MAX - 100_000,
        min_rto: Time::from_ms(10),
        delayed_ack: Time::from_us(500),
        ..TcpConfig::new(end(1), end(2))
    }
}

/// One way of the channel.
struct Way {
    /// The time of one byte.
    byte_time: Time,
    delay: Time,
    queue_bytes: u64,
    busy_until: Time,
    in_flight: VecDeque<(Time, TcpPacket)>,
    dropped: u64,
}

impl Way {
    fn new(byte_time: Time, delay: Time, queue_bytes: u64) -> Self {
        Way { byte_time, delay, queue_bytes, busy_until: Time::ZERO, in_flight: VecDeque::new(), dropped: 0 }
    }

    fn send(&mut self, now: Time, packet: TcpPacket, lost: bool) {
        let time = self.byte_time * packet.frame_len() as u64;
        let waiting = self.busy_until.saturating_sub(now);
        if lost || waiting / self.byte_time > self.queue_bytes {
            self.dropped += 1;
            return;
        }
        self.busy_until = self.busy_until.max(now) + time;
        self.in_flight.push_back((self.busy_until + self.delay, packet));
    }

    fn next(&self) -> Time {
        self.in_flight.front().map_or(Time::MAX, |(at, _)| *at)
    }
}

struct Run {
    sender: TcpSender,
    receiver: TcpReceiver,
    data: Way,
    acks: Way,
    now: Time,
    /// Data segments that the channel loses, by number.
    losses: Vec<u64>,
    sent: u64,
}

impl Run {
    fn new(config: TcpConfig, data: Way, acks: Way) -> Self {
        let receiver = TcpReceiver::new(config.reversed());
        Run { sender: TcpSender::new(config), receiver, data, acks, now: Time::ZERO, losses: Vec::new(), sent: 0 }
    }

    fn pump(&mut self) {
        // A host's own queue: it sends the next segment when the wire is free.
        while self.data.busy_until <= self.now || self.data.queue_bytes < u64::MAX {
            let Some(packet) = self.sender.poll_transmit(self.now) else { break };
            let lost = self.losses.contains(&self.sent);
            self.sent += 1;
            self.data.send(self.now, packet, lost);
        }
        while let Some(packet) = self.receiver.poll_transmit() {
            self.acks.send(self.now, packet, false);
        }
    }

    /// Runs until all is acknowledged or `limit`; false at the limit.
    fn until_acknowledged(&mut self, bytes: u64, limit: Time) -> bool {
        while self.sender.acknowledged() < bytes {
            self.pump();
            let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
            let timer = timers.into_iter().flatten().min().unwrap_or(Time::MAX);
            let next = self.data.next().min(self.acks.next()).min(timer);
            if next > limit {
                return false;
            }
            self.now = self.now.max(next);
            while self.data.next() <= self.now {
                let (_, packet) = self.data.in_flight.pop_front().unwrap();
                self.receiver.handle_packet(self.now, &packet);
            }
            while self.acks.next() <= self.now {
                let (_, packet) = self.acks.in_flight.pop_front().unwrap();
                self.sender.handle_packet(self.now, &packet);
            }
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
        }
        true
    }
}

const DELAY: Time = Time::from_us(100);

/// 1 Gb/s, 100 us each way, a queue of 64 segments.
fn gigabit(config: TcpConfig) -> Run {
    Run::new(config, Way::new(Time::from_ns(8), DELAY, 64 * 1500), Way::new(Time::from_ns(8), DELAY, u64::MAX >> 1))
}

const VARIANTS: [TcpVariant; 3] = [TcpVariant::NewReno, TcpVariant::Bic, TcpVariant::Cubic];

#[test]
fn a_program_that_reads_nothing_closes_the_window_and_gets_all_when_it_reads_again() {
    let (buffer, bytes, ms) = (100_000, 3_000_000, Time::from_ms(1));
    for sack in [false, true] {
        let stall = Some(TcpStall { start: ms * 5, time: ms * 100 });
        let mut run = gigabit(TcpConfig { receive_buffer: buffer, stall, ..config(TcpVariant::NewReno, sack) });
        run.sender.write(bytes);
        assert!(!run.until_acknowledged(bytes, ms * 100));
        let (read, held) = (run.receiver.delivered(), run.sender.acknowledged() - run.receiver.delivered());
        assert!(read > 0 && (buffer - 2 * 1460..=buffer).contains(&held), "{read} read, {held} held");
        assert_eq!(run.receiver.counters().duplicates, 0, "no segment but probes is sent again");
        assert!(run.until_acknowledged(bytes, Time::from_s(1)));
        assert_eq!(run.receiver.delivered(), bytes);
        assert!(run.now > ms * 105);
    }
}

#[test]
fn every_variant_fills_a_link_whose_queue_holds_a_round_trip() {
    for variant in VARIANTS {
        for sack in [false, true] {
            let bytes = 60_000_000;
            let mut run = gigabit(config(variant, sack));
            run.sender.write(bytes);
            assert!(
                run.until_acknowledged(bytes, Time::from_ms(5_000)),
                "{variant:?} sack {sack}: {:?}",
                run.sender.counters()
            );
            let goodput = bytes as f64 * 8e12 / run.now.as_ps() as f64;
            assert!(goodput > 0.85e9, "{variant:?} sack {sack}: {goodput:.3e} {:?}", run.sender.counters());
            assert!(
                run.data.dropped > 0 && run.sender.counters().recoveries > 0,
                "{variant:?}: never met the queue's end"
            );
        }
    }
}

#[test]
fn one_lost_segment_costs_one_fast_retransmit_and_no_timeout() {
    for sack in [false, true] {
        let mut run = gigabit(config(TcpVariant::NewReno, sack));
        run.losses = vec![30];
        run.sender.write(146_000);
        assert!(run.until_acknowledged(146_000, Time::from_ms(100)));
        let counters = run.sender.counters();
        assert_eq!((counters.retransmitted, counters.recoveries, counters.timeouts), (1, 1, 0), "sack {sack}");
    }
}

#[test]
fn sack_mends_many_holes_in_a_round_trip_where_new_reno_needs_one_each() {
    let mut times = Vec::new();
    for sack in [false, true] {
        let mut run = gigabit(TcpConfig { initial_window: 60, ..config(TcpVariant::NewReno, sack) });
        run.losses = vec![10, 14, 18, 22, 26, 30];
        run.sender.write(120 * 1460);
        assert!(run.until_acknowledged(120 * 1460, Time::from_ms(100)));
        assert_eq!((run.sender.counters().retransmitted, run.sender.counters().timeouts), (6, 0), "sack {sack}");
        times.push(run.now);
    }
    assert!(times[1] + Time::from_us(600) < times[0], "{times:?}");
}

#[test]
fn the_last_segment_lost_is_sent_again_after_the_timeout() {
    let mut run = gigabit(config(TcpVariant::NewReno, true));
    run.losses = vec![9];
    run.sender.write(10 * 1460);
    assert!(run.until_acknowledged(10 * 1460, Time::from_ms(2_000)));
    assert_eq!((run.sender.counters().timeouts, run.sender.counters().retransmitted), (1, 1));
}

#[test]
fn new_reno_halves_at_a_loss_bic_and_cubic_give_up_less() {
    let window_after = |variant| {
        let mut run = gigabit(TcpConfig { initial_window: 50, initial_ssthresh: 50 * 1460, ..config(variant, true) });
        run.data.queue_bytes = u64::MAX >> 1;
        run.losses = vec![0];
        run.sender.write(50 * 1460);
        assert!(run.until_acknowledged(50 * 1460, Time::from_ms(100)));
        run.sender.congestion_window() / 1460
    };
    assert_eq!(VARIANTS.map(window_after), [25, 39, 35]);
}

#[test]
fn the_window_of_the_peer_is_never_exceeded() {
    let buffer = 64 << 10;
    let mut run = gigabit(TcpConfig { receive_buffer: buffer, window_shift: 0, ..config(TcpVariant::Cubic, true) });
    run.losses = (0..500).step_by(37).collect();
    run.sender.write(3_000_000);
    assert!(run.until_acknowledged(3_000_000, Time::from_ms(5_000)));
    assert_eq!(run.receiver.counters().beyond_window, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_lost_arrives_in_the_end_once_and_in_order(
        variant in prop::sample::select(VARIANTS.to_vec()),
        sack in any::<bool>(),
        losses in prop::collection::btree_set(0..300u64, 0..80),
        bytes in 1..300_000u64,
    ) {
        let mut run = gigabit(config(variant, sack));
        run.losses = losses.into_iter().collect();
        run.sender.write(bytes);
        prop_assert!(run.until_acknowledged(bytes, Time::from_ms(600_000)), "{:?}", run.sender);
        prop_assert_eq!(run.receiver.delivered(), bytes);
    }
}
