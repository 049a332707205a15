// SPDX-License-Identifier: Apache-2.0
//! The simplified TCP with real bytes through a bad network, and under forged segments.
//! Promise: every byte arrives in order although segments are lost, doubled, reordered and damaged; no byte is sent
//! outside the window; an attacker who cannot see the stream changes nothing, also one who knows what is acknowledged.
//! PENSTOCK_SEED replays one seed; PENSTOCK_SEEDS is the number of seeds otherwise.

use std::collections::BTreeMap;

use penstock_transport::simple_tcp::{
    step, Arrival, Counts, End, Event, MessageEnd, Outgoing, Parameters, Row, State, Stream, WriteError,
};
use penstock_units::Time;
use penstock_wire::{SynOptions, TcpFlags};
use proptest::prelude::*;

const RING: usize = 1 << 14;
const MSS: u16 = 700;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Draw(u64);

impl Draw {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }
}

/// A receiver as an RFC 9293 one behaves, written for this test: it keeps what comes out of order, and its user reads at
/// whim, so that the window closes, opens and shrinks.
#[derive(Default)]
struct Host {
    irs: u32,
    rcv_nxt: u32,
    iss: u32,
    up: bool,
    got: Vec<u8>,
    ahead: BTreeMap<u32, Vec<u8>>,
    window: u16,
    edge: u32,
}

impl Host {
    fn take(&mut self, segment: &Outgoing, bytes: &[u8], draw: &mut Draw) -> Option<Arrival> {
        if segment.flags.contains(TcpFlags::SYN) {
            if self.up {
                return None;
            }
            self.irs = segment.seq;
            self.rcv_nxt = segment.seq.wrapping_add(1);
            self.edge = self.rcv_nxt.wrapping_add(2000);
            let options = SynOptions { mss: Some(MSS), window_scale: Some(0), malformed: false };
            let flags = TcpFlags::SYN.with(TcpFlags::ACK);
            return Some(Arrival { seq: self.iss, ack: self.rcv_nxt, flags, window: 2000, len: 0, options });
        }
        self.up = true;
        if bytes.is_empty() {
            return None;
        }
        let ahead = segment.seq.wrapping_sub(self.rcv_nxt) as i32;
        let fits = segment.seq.wrapping_add(u32::from(segment.len)).wrapping_sub(self.edge) as i32 <= 0;
        assert!(fits || segment.len == 1, "{} bytes beyond a window that never shrinks", segment.len);
        if ahead > 0 && fits {
            self.ahead.insert(segment.seq.wrapping_sub(self.irs), bytes.to_vec());
        } else if fits {
            self.append(segment.seq, bytes);
            while let Some(first) = self.ahead.first_entry() {
                let seq = first.key().wrapping_add(self.irs);
                if (seq.wrapping_sub(self.rcv_nxt) as i32) > 0 {
                    break;
                }
                let bytes = first.remove();
                self.append(seq, &bytes);
            }
        }
        Some(self.ack(draw))
    }

    fn append(&mut self, seq: u32, bytes: &[u8]) {
        let overlap = self.rcv_nxt.wrapping_sub(seq) as usize;
        if let Some(new) = bytes.get(overlap..) {
            self.got.extend_from_slice(new);
            self.rcv_nxt = self.rcv_nxt.wrapping_add(new.len() as u32);
        }
    }

    fn ack(&mut self, draw: &mut Draw) -> Arrival {
        // Its right edge never moves back.
        let least = self.edge.wrapping_sub(self.rcv_nxt);
        let size = [0, 1, 300, 2000, 9000][draw.below(5) as usize].max(least);
        self.edge = self.rcv_nxt.wrapping_add(size);
        self.window = size as u16;
        let seq = self.iss.wrapping_add(1);
        Arrival { seq, ack: self.rcv_nxt, flags: TcpFlags::ACK, window: self.window, ..Arrival::default() }
    }
}

#[derive(Clone)]
enum OnWire {
    Segment(Outgoing, Vec<u8>),
    Answer(Arrival),
}

/// What is under way in both directions, with the time of its arrival.
struct Wire(Vec<(u64, OnWire)>);

impl Wire {
    /// Loses, doubles and delays it.
    fn send(&mut self, now: u64, what: &OnWire, draw: &mut Draw) {
        for _ in 0..copies(draw) {
            self.0.push((now + 50 + reordering(draw), what.clone()));
        }
    }

    fn arrived(&mut self, now: u64) -> Vec<OnWire> {
        self.0.extract_if(.., |(when, _)| *when <= now).map(|(_, what)| what).collect()
    }
}

/// A forger who has all of the stream but the receiver's next sequence number: he claims that everything has arrived,
/// or some of it, and that no more may be sent.
fn forged(stream: &Stream, host: &Host, draw: &mut Draw) -> Arrival {
    let ahead = 1 + draw.below(65_534) as u32;
    let acked = draw.below(u64::from(stream.row().outstanding()) + 1) as u32;
    let window = [0, 0, 1, u16::MAX][draw.below(4) as usize];
    let (seq, ack) = (host.iss.wrapping_add(1 + ahead), stream.row().una.wrapping_add(acked));
    Arrival { seq, ack, flags: TcpFlags::ACK, window, ..Arrival::default() }
}

/// Sends 200 messages through 5 % of each fault in both directions, and forged segments; panics unless all arrive.
fn campaign(seed: u64) {
    let mut draw = Draw(seed);
    let parameters = Parameters {
        mss: MSS,
        nagle: draw.below(2) == 0,
        back_off: draw.below(2) == 0,
        adaptive: draw.below(2) == 0,
        rto_initial: 3000,
        rto_min: 1000,
        rto_max: 50_000,
        give_up: 0,
        ..Parameters::default()
    };
    let mut stream = Stream::new(parameters, RING).unwrap();
    let mut host = Host { iss: draw.word() as u32, ..Host::default() };
    let mut wire = Wire(Vec::new());
    let (mut sent, mut written, mut done) = (Vec::new(), 0, 0);
    let mut now = 0;
    // Every other seed begins close to the end of the sequence numbers.
    stream.open(
        Time::ZERO,
        if seed.is_multiple_of(2) { u32::MAX - draw.below(50_000) as u32 } else { draw.word() as u32 },
    );
    while done < 200 {
        now += 1 + draw.below(20);
        let at = Time::from_us(now);
        assert!(now < 600_000_000, "seed {seed}: {done} of 200 messages; {:?}", stream.row());
        if written < 200 && draw.below(3) == 0 {
            let message: Vec<u8> = (0..draw.below(3000)).map(|_| draw.word() as u8).collect();
            let (first, second) = message.split_at(message.len() / 3);
            match stream.write(at, written, &[first, second]) {
                Ok(()) => {
                    sent.extend_from_slice(&message);
                    written += 1;
                }
                Err(error) => assert!(matches!(error, WriteError::Full { .. }), "{error}"),
            }
        }
        if stream.state() == State::Established && draw.below(100) == 0 {
            stream.handle_segment(at, &forged(&stream, &host, &mut draw));
        }
        if stream.next_timeout().is_some_and(|due| due <= at) {
            stream.handle_timeout(at);
        }
        while let Some(segment) = stream.poll_transmit(at) {
            let (first, second) = stream.payload(&segment);
            let bytes = [first, second].concat();
            wire.send(now, &OnWire::Segment(segment, bytes), &mut draw);
        }
        for what in wire.arrived(now) {
            match what {
                OnWire::Segment(segment, bytes) => {
                    if let Some(answer) = host.take(&segment, &bytes, &mut draw) {
                        wire.send(now, &OnWire::Answer(answer), &mut draw);
                    }
                }
                OnWire::Answer(answer) => stream.handle_segment(at, &answer),
            }
        }
        while let Some(end) = stream.poll_message() {
            assert_eq!(end, MessageEnd { id: done, failed: None }, "seed {seed}");
            done += 1;
        }
    }
    assert!(host.got == sent, "seed {seed}: {} bytes of {}", host.got.len(), sent.len());
    assert!(host.up && stream.unfinished() == 0 && stream.row().held() == 0);
    assert!(!stream.row().timer_on, "seed {seed}: nothing is waited for");
}

/// How often a segment arrives: damaged ones, which the checksum finds, are lost.
fn copies(draw: &mut Draw) -> u64 {
    match draw.below(100) {
        0..10 => 0,
        10..15 => 2,
        _ => 1,
    }
}

fn reordering(draw: &mut Draw) -> u64 {
    if draw.below(20) == 0 {
        draw.below(2000)
    } else {
        0
    }
}

#[test]
fn every_byte_arrives_through_loss_duplication_reordering_and_forgery() {
    let seeds = std::env::var("PENSTOCK_SEEDS").ok();
    match std::env::var("PENSTOCK_SEED") {
        Ok(seed) => campaign(seed.parse().expect("PENSTOCK_SEED is a number")),
        Err(_) => (0..seeds.map_or(60, |seeds| seeds.parse().expect("PENSTOCK_SEEDS is a number"))).for_each(campaign),
    }
}

/// A stream in ESTABLISHED with data under way: `una` and `rcv_nxt` are any.
fn row_under_way(una: u32, rcv_nxt: u32, held: u32, window: u32) -> Row {
    let row = Row { rcv_nxt, ..Row::established(una, MSS, window, 0) };
    let mut row = step(&row, &Parameters::default(), 5, Event::Written { bytes: held }).0;
    for _ in 0..3 {
        row = step(&row, &Parameters::default(), 5, Event::Transmit).0;
    }
    row
}

/// The row without the note that a challenge ACK was sent.
fn without_challenge(row: &Row) -> Row {
    Row { ack_due: false, challenge_held: false, challenge_at: 0, ..*row }
}

proptest! {
    /// RFC 5961: a stranger does not know `rcv_nxt` to the number, or does not know what is under way.
    #[test]
    fn blind_segments_change_nothing(
        (una, rcv_nxt, held, window) in (any::<u32>(), any::<u32>(), 1..50_000u32, 0..60_000u32),
        (seq, ack, flags, header_window, len) in (any::<u32>(), any::<u32>(), any::<u8>(), any::<u16>(), 0..1460u16),
        (is_near, acks) in any::<(bool, bool)>(),
    ) {
        let row = row_under_way(una, rcv_nxt, held, window);
        let seq = if is_near { rcv_nxt.wrapping_add(seq % 65_535) } else { seq };
        let ack = if acks { una.wrapping_add(ack % (row.outstanding() + 1)) } else { ack };
        let segment =
            Arrival { seq, ack, flags: TcpFlags(flags), window: header_window, len, options: SynOptions::default() };
        let before = rcv_nxt.wrapping_sub(seq);
        let in_order = before == 0 || before <= u32::from(len) + 1;
        let valid_ack = ack.wrapping_sub(una.wrapping_sub(window)) <= window + row.outstanding();
        let resets = flags & 4 != 0 && seq == rcv_nxt;
        prop_assume!(!(in_order && valid_ack || resets));
        let (after, actions) = step(&row, &Parameters::default(), 9, Event::Segment(segment));
        prop_assert_eq!(without_challenge(&after), without_challenge(&row));
        prop_assert!(actions.ended.is_none() && actions.acknowledged == 0);
        prop_assert_ne!(actions.counts, Counts::default(), "it is counted");
    }

    #[test]
    fn a_reset_or_a_syn_anywhere_but_at_the_next_number_changes_nothing(
        (una, rcv_nxt) in any::<(u32, u32)>(), ahead in 1..u32::MAX, syn in any::<bool>(),
    ) {
        let row = row_under_way(una, rcv_nxt, 5000, 5000);
        let flags = if syn { TcpFlags::SYN } else { TcpFlags::RST };
        let segment = Arrival { seq: rcv_nxt.wrapping_add(ahead), ack: una, flags, ..Arrival::default() };
        let (after, _) = step(&row, &Parameters::default(), 9, Event::Segment(segment));
        prop_assert_eq!(without_challenge(&after), without_challenge(&row));
    }
}

#[test]
fn each_message_fails_once_when_the_connection_ends() {
    let mut stream = Stream::new(Parameters::default(), RING).unwrap();
    let at = Time::from_us(1);
    assert_eq!(stream.write(at, 0, &[b"early"]), Err(WriteError::Closed));
    stream.open(at, 77);
    assert_eq!(stream.write(at, 7, &[&[0; RING + 1]]), Err(WriteError::TooLong { bytes: RING + 1, ring: RING }));
    for id in 0..3 {
        stream.write(at, id, &[&[id as u8; 100]]).unwrap();
    }
    assert_eq!(stream.write(at, 3, &[&[0; RING]]), Err(WriteError::Full { bytes: RING, room: RING - 300 }));
    let segment = |seq: u32, ack: u32, flags: TcpFlags| Arrival { seq, ack, flags, window: 9000, ..Arrival::default() };
    stream.handle_segment(at, &segment(5, 78, TcpFlags::SYN.with(TcpFlags::ACK)));
    assert_eq!(stream.state(), State::Established);
    assert_eq!(stream.poll_transmit(at).map(|segment| segment.len), Some(300));
    stream.handle_segment(at, &segment(6, 178, TcpFlags::ACK));
    stream.handle_segment(at, &segment(6, 178, TcpFlags::FIN.with(TcpFlags::ACK)));
    let ends: Vec<MessageEnd> = std::iter::from_fn(|| stream.poll_message()).collect();
    let failed = Some(End::Finished);
    assert_eq!(ends, [(0, None), (1, failed), (2, failed)].map(|(id, failed)| MessageEnd { id, failed }));
    assert_eq!((stream.state(), stream.last_end(), stream.room()), (State::Closed, failed, RING));
    // The next life begins with an RST for the old one and new data.
    stream.open(at, 1 << 31);
    stream.write(at, 9, &[b"new"]).unwrap();
    let flags = |stream: &mut Stream| stream.poll_transmit(at).map(|segment| segment.flags);
    assert_eq!(flags(&mut stream), Some(TcpFlags::RST.with(TcpFlags::ACK)));
    assert_eq!(flags(&mut stream), Some(TcpFlags::SYN));
    stream.handle_segment(at, &segment(90, (1 << 31) + 1, TcpFlags::SYN.with(TcpFlags::ACK)));
    let sent = stream.poll_transmit(at).unwrap();
    assert_eq!(stream.payload(&sent), (&b"new"[..], &[][..]));
}

/// A stream with 1460 bytes in each segment and 14,600 of them on their way, from number 78 on.
fn with_data_under_way(at: Time) -> (Stream, Vec<u32>) {
    let mut stream = Stream::new(Parameters::default(), RING).unwrap();
    stream.open(at, 77);
    stream.write(at, 0, &[&[1; 14_600]]).unwrap();
    let options = SynOptions { mss: Some(1460), window_scale: Some(0), malformed: false };
    let flags = TcpFlags::SYN.with(TcpFlags::ACK);
    stream.handle_segment(at, &Arrival { seq: 5, ack: 78, flags, window: 60_000, len: 0, options });
    let sent: Vec<_> = std::iter::from_fn(|| stream.poll_transmit(at)).filter(|segment| segment.len > 0).collect();
    assert!(sent.iter().all(|segment| segment.len == 1460) && sent.len() == 10, "{sent:?}");
    (stream, sent.iter().map(|segment| segment.seq).collect())
}

#[test]
fn a_forged_path_mtu_changes_nothing_while_its_segment_is_acknowledged() {
    let at = Time::from_us(1);
    let (mut stream, numbers) = with_data_under_way(at);
    let ack = |ack: u32| Arrival { seq: 6, ack, flags: TcpFlags::ACK, window: 60_000, ..Arrival::default() };
    for seq in numbers {
        stream.handle_path_mtu(at, seq, 600);
        stream.handle_segment(at, &ack(seq + 1460));
    }
    let due = stream.next_timeout().map_or(at, |due| due + Time::from_s(1));
    stream.handle_timeout(due);
    assert_eq!((stream.row().mss, stream.counters().of(Counts::IGNORED)), (1460, 10));
    // Nor one about a probe of a closed window, which waits for an answer by nature.
    stream.write(due, 1, &[&[2; 5000]]).unwrap();
    stream.handle_segment(due, &Arrival { window: 0, ..ack(14_678) });
    for probe in 0..3 {
        let due = stream.next_timeout().unwrap();
        stream.handle_timeout(due);
        let sent = stream.poll_transmit(due).unwrap();
        assert!(sent.len <= 1, "{probe}: {sent:?}");
        stream.handle_path_mtu(due, sent.seq, 600);
    }
    assert_eq!((stream.row().mss, stream.counters().of(Counts::PATH_MTU)), (1460, 0));
}

#[test]
fn a_path_mtu_is_accepted_after_a_timeout_never_below_what_every_host_takes_and_for_ten_minutes() {
    let at = Time::from_us(1);
    let (mut stream, numbers) = with_data_under_way(at);
    for forged in [0, 63, 64, 535, 1460, 1500, u16::MAX] {
        stream.handle_path_mtu(at, numbers[0], forged);
    }
    for not_under_way in [77, numbers[9] + 1460, 1 << 31] {
        stream.handle_path_mtu(at, not_under_way, 600);
    }
    assert_eq!(stream.counters().of(Counts::IGNORED), 10);
    stream.handle_path_mtu(at, numbers[0], 600);
    assert_eq!(stream.row().mss, 1460);
    let due = stream.next_timeout().unwrap();
    stream.handle_timeout(due);
    assert_eq!((stream.row().mss, stream.counters().of(Counts::PATH_MTU)), (600, 1));
    assert_eq!(stream.poll_transmit(due).map(|segment| (segment.seq, segment.len)), Some((numbers[0], 600)));
    let ack = Arrival { seq: 6, ack: 14_678, flags: TcpFlags::ACK, window: 60_000, ..Arrival::default() };
    stream.handle_segment(due, &ack);
    for (passed, len) in [(603, 600), (622, 1460)] {
        let later = due + Time::from_s(passed);
        while let Some(timeout) = stream.next_timeout().filter(|timeout| *timeout <= later) {
            stream.handle_timeout(timeout);
        }
        stream.write(later, 1, &[&[2; 5000]]).unwrap();
        let first = stream.poll_transmit(later).unwrap();
        assert_eq!(first.len, len, "after {passed} s");
        while stream.poll_transmit(later).is_some() {}
        let end = stream.row().max;
        stream.handle_segment(later, &Arrival { ack: end, ..ack });
    }
}
