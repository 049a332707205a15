// SPDX-License-Identifier: Apache-2.0
//! What the scheduler promises: order, window, and boards that are slow, silent, gone or wrong.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use penstock_pull::{Config, ConfigError, Fragment, Read, Refusal, Scheduler, Window};
use penstock_units::{Rate, Time};
use proptest::prelude::*;

const OVERHEAD: u32 = 100;

fn config() -> Config {
    Config {
        window: Window::Given(40_000),
        outstanding: 4,
        mtu: 4096,
        packet_overhead: OVERHEAD,
        slots: 64,
        longest: 1 << 20,
        patience: Time::from_ms(1),
    }
}

fn scheduler(config: Config, boards: usize) -> Scheduler {
    Scheduler::new(config, boards).expect("the settings are possible")
}

fn event(event: u64, length: u32) -> Fragment {
    Fragment { rank: event, event, address: event * 0x1_0000, length }
}

fn post_all(scheduler: &mut Scheduler, now: Time) -> Vec<Read> {
    std::iter::from_fn(|| scheduler.poll_read(now)).collect()
}

#[test]
fn the_oldest_event_is_read_first_and_a_window_is_never_exceeded() {
    let mut scheduler = scheduler(config(), 3);
    for number in [5, 9] {
        scheduler.announce(0, event(number, 4_000)).unwrap();
    }
    for number in [2, 7] {
        scheduler.announce(1, event(number, 4_000)).unwrap();
    }
    scheduler.announce(2, event(1, 200_000)).unwrap();
    let reads = post_all(&mut scheduler, Time::ZERO);
    let order: Vec<_> = reads.iter().map(|read| (read.board, read.event)).collect();
    // Board 2 has as many READs in flight as it may have, then the rest of the window serves the next events.
    assert_eq!(order, [(2, 1), (2, 1), (2, 1), (2, 1), (1, 2)]);
    assert!(scheduler.in_flight() <= scheduler.window());
    assert_eq!(reads[1].offset, reads[0].length);
    assert_eq!(reads[1].address, reads[0].address + u64::from(reads[0].length));
}

#[test]
fn parts_of_one_event_are_taken_from_all_boards_in_turn() {
    let mut scheduler = scheduler(config(), 4);
    for board in 0..4 {
        scheduler.announce(board, event(1, 100_000)).unwrap();
    }
    let boards: Vec<_> = post_all(&mut scheduler, Time::ZERO).iter().map(|read| read.board).collect();
    assert_eq!(&boards[..4], [0, 1, 2, 3]);
}

#[test]
fn announcements_that_cannot_be_true_are_refused_by_name_and_counted() {
    let mut scheduler = scheduler(Config { slots: 2, longest: 1_000, ..config() }, 1);
    assert_eq!(scheduler.announce(7, event(1, 1)), Err(Refusal::UnknownBoard(7)));
    scheduler.announce(0, event(4, 1_000)).unwrap();
    assert_eq!(scheduler.announce(0, event(4, 1_000)), Err(Refusal::Repeated { event: 4, last: 4 }));
    assert_eq!(scheduler.announce(0, event(3, 1_000)), Err(Refusal::Repeated { event: 3, last: 4 }));
    assert_eq!(
        scheduler.announce(0, Fragment { rank: 2, ..event(5, 10) }),
        Err(Refusal::RankFell { rank: 2, last: 4 })
    );
    assert_eq!(scheduler.announce(0, event(5, 1_001)), Err(Refusal::TooLong { length: 1_001, longest: 1_000 }));
    let address = u64::MAX - 5;
    assert_eq!(
        scheduler.announce(0, Fragment { address, ..event(5, 10) }),
        Err(Refusal::Address { address, length: 10 })
    );
    scheduler.announce(0, event(5, 0)).unwrap();
    scheduler.announce(0, event(6, 10)).unwrap();
    assert_eq!(scheduler.announce(0, event(7, 10)), Err(Refusal::TooMany(2)));
    assert_eq!((scheduler.counters().announced, scheduler.counters().refused), (3, 7));
    let events: Vec<_> = post_all(&mut scheduler, Time::ZERO).iter().map(|read| read.event).collect();
    assert_eq!(events, [4, 6], "event 5 has no data");
}

#[test]
fn settings_with_which_nothing_could_be_read_are_refused() {
    let refused = |config| Scheduler::new(config, 1).err();
    assert_eq!(refused(Config { outstanding: 0, ..config() }), Some(ConfigError::Outstanding(0)));
    assert_eq!(refused(Config { outstanding: 17, ..config() }), Some(ConfigError::Outstanding(17)));
    assert_eq!(refused(Config { mtu: 1_500, ..config() }), Some(ConfigError::Mtu(1_500)));
    for window in [0, 4_195] {
        let given = Config { window: Window::Given(window), ..config() };
        assert_eq!(refused(given), Some(ConfigError::Window { window, packet: 4_196 }));
    }
    let line = Rate::from_gbps(0);
    assert_eq!(refused(Config { window: Window::Measured { line }, ..config() }), Some(ConfigError::Line));
    assert_eq!(refused(Config { slots: 0, ..config() }), Some(ConfigError::NoSlots));
    assert_eq!(refused(Config { longest: 0, ..config() }), Some(ConfigError::NoSlots));
    assert_eq!(refused(Config { patience: Time::ZERO, ..config() }), Some(ConfigError::Patience));
}

#[test]
fn a_silent_board_gives_its_window_back_and_is_read_again_when_it_has_answered() {
    let mut scheduler = scheduler(Config { window: Window::Given(4_196 * 4), ..config() }, 2);
    for number in 0..8 {
        scheduler.announce(0, event(number, 4_096)).unwrap();
        scheduler.announce(1, event(100 + number, 4_096)).unwrap();
    }
    assert!(post_all(&mut scheduler, Time::ZERO).iter().all(|read| read.board == 0));
    let deadline = scheduler.poll_timeout().unwrap();
    assert_eq!(deadline, Time::from_ms(1));
    scheduler.handle_timeout(deadline);
    assert!(scheduler.is_silent(0));
    assert_eq!((scheduler.in_flight(), scheduler.unanswered()), (0, 4 * 4_196));
    assert!(post_all(&mut scheduler, deadline).iter().all(|read| read.board == 1));
    // It answers three of four, and is not read before the fourth.
    for number in 0..3 {
        assert_eq!(scheduler.arrive(deadline, 0).unwrap().event, number);
        assert!(scheduler.is_silent(0));
    }
    assert_eq!(scheduler.arrive(deadline, 0).unwrap().event, 3);
    assert_eq!((scheduler.is_silent(0), scheduler.unanswered()), (false, 0));
    scheduler.arrive(deadline, 1).unwrap();
    assert_eq!(scheduler.poll_read(deadline).unwrap().event, 4);
    assert_eq!(scheduler.counters().silences, 1);
}

#[test]
fn a_forgotten_board_returns_what_has_not_arrived_whole_and_may_announce_it_again() {
    let mut scheduler = scheduler(config(), 2);
    for number in 1..4 {
        scheduler.announce(0, event(number, 20_000)).unwrap();
    }
    scheduler.announce(1, event(9, 4_000)).unwrap();
    post_all(&mut scheduler, Time::ZERO);
    while !scheduler.arrive(Time::from_us(9), 0).unwrap().is_last {}
    scheduler.arrive(Time::from_us(9), 0).unwrap();
    let forgotten: Vec<_> = scheduler.forget(0).iter().map(|fragment| fragment.event).collect();
    assert_eq!(forgotten, [2, 3]);
    assert_eq!(scheduler.arrive(Time::from_us(9), 0), None);
    scheduler.announce(0, event(2, 20_000)).unwrap();
    assert_eq!(post_all(&mut scheduler, Time::from_us(9))[0].event, 2);
    assert!(scheduler.forget(5).is_empty());
}

#[test]
fn events_for_which_the_server_has_no_room_wait_at_the_boards() {
    let mut scheduler = scheduler(config(), 1);
    for number in 0..4 {
        scheduler.announce(0, event(number, 1_000)).unwrap();
    }
    scheduler.hold_from(2);
    assert_eq!(post_all(&mut scheduler, Time::ZERO).len(), 2);
    scheduler.hold_from(3);
    assert_eq!(post_all(&mut scheduler, Time::ZERO)[0].event, 2);
}

/// Ways to the server: each board's data pass its own link, then the server's, in the order in which they come to it.
struct Ways {
    line: Rate,
    line_free: Time,
    boards: Vec<Way>,
    /// READs on their way, in the order in which their data come to the server's link.
    coming: BinaryHeap<Reverse<(Time, usize)>>,
}

struct Way {
    delay: Time,
    line: Rate,
    free: Time,
    reads: VecDeque<(Read, u64)>,
}

impl Ways {
    fn new(line: Rate, boards: &[(Time, Rate)]) -> Self {
        let way = |&(delay, line): &(Time, Rate)| Way { delay, line, free: Time::ZERO, reads: VecDeque::new() };
        Self { line, line_free: Time::ZERO, boards: boards.iter().map(way).collect(), coming: BinaryHeap::new() }
    }

    fn send(&mut self, now: Time, read: Read, wire: u64) {
        let way = &mut self.boards[read.board];
        way.free = way.free.max(now + way.delay) + way.line.time_for(wire);
        way.reads.push_back((read, wire));
        self.coming.push(Reverse((way.free, read.board)));
    }

    /// The next arrival, and the bytes that its data met in the queue of the server's link.
    fn next(&mut self) -> Option<(Time, Read, u64)> {
        let Reverse((comes, board)) = self.coming.pop()?;
        let (read, wire) = self.boards[board].reads.pop_front()?;
        let queue = self.line.bytes_in(self.line_free.saturating_sub(comes)).bytes();
        self.line_free = self.line_free.max(comes) + self.line.time_for(wire);
        Some((self.line_free, read, queue))
    }
}

/// Reads without a pause from boards that always have fragments of `length` bytes. Returns the bytes a second of each
/// board, the longest queue at the server's link and the most that was in flight.
fn read_for(time: Time, line: Rate, ways: &[(Time, Rate)], length: u32) -> (Vec<f64>, u64, u64) {
    let settings = Config { window: Window::Measured { line }, outstanding: 16, ..config() };
    let mut scheduler = scheduler(settings, ways.len());
    let mut network = Ways::new(line, ways);
    let mut bytes = vec![0_u64; ways.len()];
    let (mut now, mut highest) = (Time::ZERO, 0);
    let mut next = vec![0_u64; ways.len()];
    while now < time {
        for (board, next) in next.iter_mut().enumerate() {
            while scheduler.waiting(board) < 32 {
                scheduler.announce(board, Fragment { rank: now.as_ps(), ..event(*next, length) }).unwrap();
                *next += 1;
            }
        }
        while let Some(read) = scheduler.poll_read(now) {
            network.send(now, read, settings.wire_bytes(read.length));
        }
        let (arrives, read, queue) = network.next().expect("READs are in flight");
        highest = highest.max(queue);
        now = arrives;
        if now * 2 > time {
            bytes[read.board] += settings.wire_bytes(read.length);
        }
        assert_eq!(scheduler.arrive(now, read.board), Some(read));
    }
    let seconds = time.as_secs_f64() / 2.0;
    (bytes.iter().map(|&bytes| bytes as f64 / seconds).collect(), highest, scheduler.counters().highest_in_flight)
}

#[test]
fn the_measured_window_fills_the_line_at_any_distance_and_number_of_boards() {
    let cases = [
        (10, 8, 1, 8_192),
        (10, 8, 64, 8_192),
        (10, 200, 16, 8_192),
        (100, 8, 256, 8_192),
        (100, 8, 1_000, 1_142),
        (100, 1_000, 16, 1 << 20),
        (100, 8, 1, 1 << 20),
        (1, 5, 3, 300),
    ];
    for (gbps, us, boards, length) in cases {
        let line = Rate::from_gbps(gbps);
        let ways = vec![(Time::from_us(us), line); boards];
        let (rates, highest, in_flight) = read_for(Time::from_us(us * 60 + 4_000), line, &ways, length);
        let fills = rates.iter().sum::<f64>() * 8.0 / line.bits_per_second() as f64;
        let carried = line.bytes_in(Time::from_us(us)).bytes();
        assert!(fills > 0.97, "{gbps}G, {us} us, {boards} boards: {fills}, {in_flight} in flight");
        assert!(highest <= in_flight, "{highest} of {in_flight} bytes wait");
        assert!(in_flight <= carried * 2 + 40_000, "{in_flight} bytes in flight for {carried} on the way");
    }
}

#[test]
fn boards_on_slow_lines_do_not_keep_fast_ones_from_the_server() {
    let line = Rate::from_gbps(100);
    let (fast, slow) = (Rate::from_gbps(25), Rate::from_gbps(1));
    let way = Time::from_us(10);
    let ways: Vec<_> = (0..20).map(|board| (way, if board < 4 { fast } else { slow })).collect();
    let (rates, _, _) = read_for(Time::from_ms(40), line, &ways, 8_192);
    for (board, rate) in rates.iter().enumerate() {
        // Every board could fill its line: 4 x 25 + 16 Gb/s are more than 100.
        let gbps = rate * 8.0 / 1e9;
        assert!(gbps > if board < 4 { 18.0 } else { 0.8 }, "board {board}: {gbps} Gb/s of {rates:?}");
    }
}

#[test]
fn long_ways_are_filled_within_a_few_round_trips() {
    let line = Rate::from_gbps(100);
    let ways = vec![(Time::from_us(800), Rate::from_gbps(10)); 32];
    // The second half of ten round trips.
    let (rates, _, _) = read_for(Time::from_ms(8), line, &ways, 100_000);
    let fills = rates.iter().sum::<f64>() * 8.0 / line.bits_per_second() as f64;
    assert!(fills > 0.9, "{fills}");
}

#[test]
fn boards_far_away_and_boards_nearby_fill_the_line_together() {
    let line = Rate::from_gbps(100);
    let way = |board| Time::from_us(if board < 10 { 400 } else { 4 });
    let ways: Vec<_> = (0..20).map(|board| (way(board), Rate::from_gbps(10))).collect();
    let (rates, _, _) = read_for(Time::from_ms(40), line, &ways, 100_000);
    let fills = rates.iter().sum::<f64>() * 8.0 / line.bits_per_second() as f64;
    assert!(fills > 0.8, "{fills}: {rates:?}");
}

#[test]
fn many_slow_lines_fill_a_fast_one_with_a_window_that_does_not_grow_by_itself() {
    let line = Rate::from_gbps(100);
    for length in [3_000, 60_000, 1 << 20] {
        let ways = vec![(Time::from_us(8), Rate::from_gbps(10)); 64];
        let (rates, _, in_flight) = read_for(Time::from_ms(8), line, &ways, length);
        let fills = rates.iter().sum::<f64>() * 8.0 / line.bits_per_second() as f64;
        assert!(fills > 0.97, "{length} bytes: {fills}, {in_flight} in flight");
        // Two packets of a board take 14.7 us: three halves of 184 kB at 100 Gb/s, and three packets.
        assert!(in_flight < 290_000, "{length} bytes: {in_flight} in flight");
    }
}

proptest! {
    /// Whatever is announced, arrives, falls silent or is forgotten in whatever order: no byte is read twice or never,
    /// and the window holds.
    #[test]
    fn each_byte_is_read_once_within_the_window(
        steps in prop::collection::vec((0_u8..8, 0_usize..4, 1_u32..60_000), 1..400),
        window in 4_196_u64..100_000,
    ) {
        let settings = Config { window: Window::Given(window), ..config() };
        let mut scheduler = scheduler(settings, 4);
        let mut announced: Vec<BTreeMap<u64, u32>> = vec![BTreeMap::new(); 4];
        let mut read: Vec<BTreeMap<u64, u32>> = vec![BTreeMap::new(); 4];
        let mut in_flight: Vec<VecDeque<Read>> = vec![VecDeque::new(); 4];
        let mut number = 0;
        let mut now = Time::ZERO;
        let drain = (0..100_000).map(|step| (if step % 2 == 0 { 3 } else { 5 }, step / 2 % 4, 1));
        for (what, board, size) in steps.into_iter().chain(drain) {
            if what == 3 && size == 1 && (0..4).all(|board| scheduler.waiting(board) == 0) {
                break;
            }
            now += Time::from_us(u64::from(size % 50));
            match what {
                0..=2 => {
                    number += 1;
                    if scheduler.announce(board, event(number, size)).is_ok() {
                        announced[board].insert(number, size);
                    }
                }
                3 | 4 => while let Some(posted) = scheduler.poll_read(now) {
                    prop_assert!(scheduler.in_flight() <= window);
                    in_flight[posted.board].push_back(posted);
                },
                5 | 6 => if let Some(posted) = in_flight[board].pop_front() {
                    prop_assert_eq!(scheduler.arrive(now, board), Some(posted));
                    let arrived = read[board].entry(posted.event).or_default();
                    prop_assert_eq!(*arrived, posted.offset);
                    *arrived += posted.length;
                    prop_assert_eq!(posted.is_last, *arrived == announced[board][&posted.event]);
                },
                _ if size % 4 == 0 => {
                    for fragment in scheduler.forget(board) {
                        prop_assert!(announced[board].remove(&fragment.event).is_some());
                        read[board].remove(&fragment.event);
                    }
                    in_flight[board].clear();
                }
                _ => {
                    now += Time::from_ms(1);
                    scheduler.handle_timeout(now);
                }
            }
        }
        prop_assert_eq!(scheduler.in_flight() + scheduler.unanswered(), 0);
        prop_assert_eq!(read, announced);
    }
}
