// SPDX-License-Identifier: Apache-2.0
//! The event builder under random order, loss, duplication and invalid input; and its timing, case by case.
//! Promise checked: order, exactly once, missing sources, memory bound.
//! A failing case prints its seed and input; proptest stores it next to this file.

#[path = "builder/absence.rs"]
mod absence;

use std::num::{NonZeroU16, NonZeroU64};

use penstock_readout::{BuilderConfig, EventBuilder, FragmentId, Pushed, Servers, Share, ShareError, Stray};
use penstock_units::Time;
use proptest::prelude::*;

/// What came out: event number, complete, (source, handle) of each fragment, missing sources.
type Out = (u64, bool, Vec<(u16, u32)>, Vec<u16>);

fn drain(builder: &mut EventBuilder<u32>, now: Time, out: &mut Vec<Out>) {
    drain_all(builder, now, out, &mut Vec::new());
}

/// Peeks before it takes, and must see the same.
fn drain_all(builder: &mut EventBuilder<u32>, now: Time, out: &mut Vec<Out>, rejected: &mut Vec<(u16, u32)>) {
    while let Some(seen) = builder.peek_event(now) {
        let seen: Out = (seen.number, seen.complete, seen.fragments().collect(), seen.missing().collect());
        let event = builder.poll_event(now).expect("seen above");
        out.push((event.number, event.complete, event.fragments().collect(), event.missing().collect()));
        assert_eq!(out.last(), Some(&seen));
        rejected.extend(event.rejected());
    }
}

fn config(sources: u16, window: usize) -> BuilderConfig {
    BuilderConfig {
        sources: NonZeroU16::new(sources).unwrap(),
        window,
        timeout: Time::MAX,
        outage: Time(100),
        ..Default::default()
    }
}

fn id(event: u64, source: u16) -> FragmentId {
    FragmentId { event, source, timestamp_ns: event * 100_000 }
}

/// A fragment's handle says what it is, so that a mix-up shows.
fn handle(seq: u64, source: u16) -> u32 {
    (seq as u32) << 16 | u32::from(source)
}

/// How often each (event, source) arrives (0: lost), and in which order.
fn arrivals() -> impl Strategy<Value = (u16, u64, u64, Vec<(u64, u16)>)> {
    (1u16..70, 1u64..24, 0u64..1000, 1u64..5).prop_flat_map(|(sources, events, first, stride)| {
        let copies = prop::collection::vec(
            prop_oneof![1 => Just(0u8), 8 => Just(1u8), 1 => Just(2u8)],
            events as usize * sources as usize,
        );
        let order = copies.prop_map(move |copies| {
            let each = copies.into_iter().enumerate();
            each.flat_map(|(i, n)| {
                let at = (i as u64 / u64::from(sources), (i % usize::from(sources)) as u16);
                std::iter::repeat_n(at, n.into())
            })
            .collect::<Vec<_>>()
        });
        (Just(sources), Just(first), Just(stride), order.prop_shuffle())
    })
}

proptest! {
    #[test]
    fn any_order_gives_every_event_once_in_order_and_names_who_is_missing((sources, first, stride, order) in arrivals()) {
        let config = BuilderConfig { first_event: first, stride: NonZeroU64::new(stride).unwrap(), ..config(sources, 32) };
        let (mut builder, mut out) = (EventBuilder::new(config), Vec::new());
        let mut seen = std::collections::BTreeSet::new();
        for (now, &(seq, source)) in order.iter().enumerate() {
            let pushed = builder.push(Time(now as u64), id(first + seq * stride, source), handle(seq, source));
            prop_assert_eq!(pushed == Pushed::Accepted, seen.insert((seq, source)), "{:?}", pushed);
            drain(&mut builder, Time(now as u64), &mut out);
            prop_assert!(out.iter().all(|event| event.1), "nothing times out here");
        }
        builder.flush();
        drain(&mut builder, Time(order.len() as u64), &mut out);

        let last = seen.iter().map(|(seq, _)| seq + 1).max().unwrap_or(0);
        let (there, gone): (Vec<u64>, Vec<u64>) = (0..last).map(|seq| (first + seq * stride, seq)).unzip();
        prop_assert_eq!(out.iter().map(|event| event.0).collect::<Vec<_>>(), there);
        for (seq, (_, complete, fragments, missing)) in gone.into_iter().zip(&out) {
            let expected = (0..sources).partition::<Vec<u16>, _>(|source| seen.contains(&(seq, *source)));
            let handles = expected.0.iter().map(|&source| (source, handle(seq, source))).collect::<Vec<_>>();
            prop_assert_eq!((fragments, missing, *complete), (&handles, &expected.1, expected.1.is_empty()));
        }
        prop_assert_eq!(builder.counters().fragments_accepted, seen.len() as u64);
        prop_assert_eq!(builder.open_events(), 0);
    }

    /// Arbitrary numbers, sources, timestamps and times: every handle comes back exactly once, by refusal or in an
    /// event.
    #[test]
    fn nonsense_neither_leaks_nor_grows_nor_disorders(
        arrivals in prop::collection::vec((0u64..60, 0u16..5, 0u64..3_000, 0u64..40, any::<bool>()), 0..400),
    ) {
        let config = BuilderConfig { first_event: 3, timeout: Time(100), timestamp_window_ns: 2_000, ..config(4, 8) };
        let (mut builder, mut out, mut now, mut accepted) = (EventBuilder::new(config), Vec::new(), 0, 0usize);
        let mut rejected = Vec::new();
        for (i, &(event, source, timestamp_ns, wait, far)) in arrivals.iter().enumerate() {
            now += wait;
            let event = if far { u64::MAX - event } else { builder.next_event().saturating_add(event % 12).saturating_sub(2) };
            let pushed = builder.push(Time(now), FragmentId { event, source, timestamp_ns }, i as u32);
            accepted += usize::from(pushed == Pushed::Accepted);
            prop_assert!(builder.open_events() <= 8);
            drain_all(&mut builder, Time(now), &mut out, &mut rejected);
            prop_assert!(builder.poll_timeout().is_none_or(|timeout| timeout > Time(now) && timeout <= Time(now + 100)));
            prop_assert_eq!(builder.poll_timeout().is_some(), builder.open_events() > 0);
        }
        builder.flush();
        drain_all(&mut builder, Time(now), &mut out, &mut rejected);
        let in_events = out.iter().flat_map(|event| event.2.iter());
        let mut handles: Vec<u32> = in_events.chain(&rejected).map(|fragment| fragment.1).collect();
        prop_assert_eq!(handles.len(), accepted);
        handles.sort_unstable();
        prop_assert!(handles.windows(2).all(|pair| pair[0] < pair[1]), "a handle came out twice");
        prop_assert!(out.windows(2).all(|pair| pair[0].0 < pair[1].0), "out of order");
        let counters = builder.counters();
        let over = counters.events_skipped.saturating_add(out.len() as u64);
        prop_assert_eq!(builder.next_event(), over.saturating_add(3));
        let counted = counters.fragments_accepted + counters.duplicates + counters.strays() + counters.before_begin;
        prop_assert_eq!(counted, arrivals.len() as u64);
        prop_assert_eq!(counters.events_complete + counters.events_incomplete, out.len() as u64);
    }
}

#[test]
fn at_the_end_events_that_have_begun_are_finished_and_no_other_begins() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 8) });
    let mut out = Vec::new();
    for (event, source) in [(0, 0), (0, 1), (1, 0), (2, 0)] {
        assert_eq!(builder.push(Time::ZERO, id(event, source), 0), Pushed::Accepted);
    }
    drain(&mut builder, Time::ZERO, &mut out);
    builder.end_now();
    assert!(!builder.is_over() && !builder.expects(0) && builder.expects(1));
    assert_eq!(builder.push(Time(1), id(3, 0), 0), Pushed::Stray(Stray::AfterEnd));
    for event in [1, 2] {
        assert_eq!(builder.push(Time(1), id(event, 1), 0), Pushed::Accepted);
    }
    assert!(!builder.expects(1));
    drain(&mut builder, Time(1), &mut out);
    assert!(builder.is_over() && builder.open_events() == 0);
    assert_eq!(out.iter().map(|event| (event.0, event.1)).collect::<Vec<_>>(), [(0, true), (1, true), (2, true)]);
    assert_eq!((builder.counters().after_end, builder.counters().strays()), (1, 0));

    let mut counted = EventBuilder::new(config(1, 8));
    counted.end_after(1);
    assert_eq!(
        counted.push(Time::ZERO, id(1, 0), 0),
        Pushed::Stray(Stray::AfterEnd),
        "the end is known from the beginning"
    );
    assert!(!counted.expects(0) && !counted.is_over());
}

#[test]
fn an_incomplete_event_leaves_after_its_timeout_and_not_before() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 4) });
    let mut out = Vec::new();
    assert_eq!(builder.poll_timeout(), None);
    assert_eq!(builder.push(Time(10), id(0, 1), 7), Pushed::Accepted);
    assert_eq!(builder.poll_timeout(), Some(Time(60)));
    drain(&mut builder, Time(59), &mut out);
    assert_eq!(out, []);
    drain(&mut builder, Time(60), &mut out);
    assert_eq!(out, [(0, false, vec![(1, 7)], vec![0])]);
    assert_eq!(builder.poll_timeout(), None);
    assert_eq!(builder.push(Time(61), id(0, 0), 8), Pushed::Stray(Stray::Late));
}

#[test]
fn an_event_that_never_came_is_handed_out_empty_before_the_later_one() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 4) });
    let mut out = Vec::new();
    for source in 0..2 {
        assert_eq!(builder.push(Time(10 + u64::from(source)), id(1, source), 0), Pushed::Accepted);
    }
    drain(&mut builder, Time(59), &mut out);
    assert_eq!(out, [], "event 1 is complete but event 0 may still come");
    drain(&mut builder, Time(60), &mut out);
    assert_eq!(out, [(0, false, vec![], vec![0, 1]), (1, true, vec![(0, 0), (1, 0)], vec![])]);
}

#[test]
fn strays_are_named_by_their_kind() {
    let config = BuilderConfig { first_event: 10, stride: NonZeroU64::new(2).unwrap(), ..config(2, 4) };
    let mut builder = EventBuilder::new(config);
    assert_eq!(builder.push(Time::ZERO, id(10, 2), 0), Pushed::Stray(Stray::UnknownSource));
    assert_eq!(builder.push(Time::ZERO, id(1, 0), 0), Pushed::Stray(Stray::Late));
    assert_eq!(builder.push(Time::ZERO, id(2, 0), 0), Pushed::Stray(Stray::BeforeBegin), "not all had it");
    assert_eq!(builder.push(Time::ZERO, id(11, 0), 0), Pushed::Stray(Stray::OffSequence));
    assert_eq!(builder.push(Time::ZERO, id(18, 0), 0), Pushed::Stray(Stray::Ahead));
    assert_eq!(builder.push(Time::ZERO, id(16, 0), 0), Pushed::Accepted);
    assert_eq!(builder.push(Time::ZERO, id(16, 0), 0), Pushed::Duplicate);
    assert_eq!(builder.push(Time::ZERO, id(16, 1), 0), Pushed::Accepted);
    let counters = builder.counters();
    assert_eq!((counters.strays(), counters.before_begin, counters.duplicates), (4, 1, 1));
}

#[test]
fn a_run_goes_on_where_all_sources_do_and_no_single_number_moves_it() {
    let mut builder = EventBuilder::new(config(2, 4));
    let (mut out, ahead) = (Vec::new(), Pushed::Stray(Stray::Ahead));
    (0..2).for_each(|source| assert_eq!(builder.push(Time::ZERO, id(0, source), 0), Pushed::Accepted));
    (100..110).for_each(|event| assert_eq!(builder.push(Time(1), id(event, 0), 0), ahead));
    for wrong in [1 << 40, 1 << 42] {
        assert_eq!(builder.push(Time(1), id(wrong, 1), 0), ahead);
        drain(&mut builder, Time(1), &mut out);
        assert_eq!((builder.next_event(), builder.counters().events_skipped), (1, 0), "the other may have event 1");
    }
    // It has, and sends it before it goes on further ahead, too.
    assert_eq!(builder.push(Time(2), id(1, 1), 0), Pushed::Accepted);
    drain(&mut builder, Time(2), &mut out);
    (104..106).for_each(|event| assert_eq!(builder.push(Time(2), id(event, 1), 0), ahead));
    assert_eq!((builder.next_event(), builder.counters().events_skipped), (106, 104));
    for event in [106, 107] {
        assert_eq!(builder.push(Time(3), id(event, 1), 7), Pushed::Accepted);
    }
    assert_eq!(builder.push(Time(3), id(110, 0), 0), ahead, "four events can be open");
    drain(&mut builder, Time(3), &mut out);
    let numbers: Vec<u64> = out.iter().map(|event| event.0).collect();
    assert_eq!(numbers, [0, 1, 106, 107]);
    assert_eq!(builder.push(Time(4), id(111, 0), 0), Pushed::Accepted);
}

#[test]
fn only_what_had_come_over_the_last_connection_counts_as_sent_again() {
    let mut builder = EventBuilder::new(config(2, 4));
    let mut out = Vec::new();
    let push = |event, source, out: &mut Vec<Out>, builder: &mut EventBuilder<u32>| {
        let pushed = builder.push(Time::ZERO, id(event, source), 0);
        drain(builder, Time::ZERO, out);
        pushed
    };
    for event in 0..10 {
        for source in 0..2 {
            assert_eq!(push(event, source, &mut out, &mut builder), Pushed::Accepted);
        }
    }
    assert_eq!(push(9, 1, &mut out, &mut builder), Pushed::Stray(Stray::Late), "nothing has connected again");
    builder.reconnected(1);
    builder.reconnected(77);
    assert_eq!(push(9, 1, &mut out, &mut builder), Pushed::Duplicate);
    assert_eq!(push(9, 0, &mut out, &mut builder), Pushed::Stray(Stray::Late), "another source");
    assert_eq!(push(5, 1, &mut out, &mut builder), Pushed::Stray(Stray::Late), "farther back than a window");
    let counters = builder.counters();
    assert_eq!((counters.resent_after_reconnect, counters.strays_late, out.len()), (1, 3, 10));
}

/// Timestamps of the fragments of one event, and the sources that must be rejected.
fn rejected_of(timestamps_ns: &[u64]) -> (Option<u64>, Vec<u16>) {
    let mut builder = EventBuilder::new(config(timestamps_ns.len() as u16, 4));
    for (source, &timestamp_ns) in timestamps_ns.iter().enumerate() {
        let id = FragmentId { event: 0, source: source as u16, timestamp_ns };
        assert_eq!(builder.push(Time::ZERO, id, source as u32), Pushed::Accepted);
    }
    let event = builder.poll_event(Time::ZERO).expect("all are here");
    let rejected: Vec<u16> = event.rejected().map(|(source, _)| source).collect();
    assert_eq!((event.missing().collect::<Vec<_>>(), event.complete), (rejected.clone(), rejected.is_empty()));
    let timestamp_ns = event.timestamp_ns;
    assert_eq!(builder.counters().strays_timestamp, rejected.len() as u64);
    (timestamp_ns, rejected)
}

#[test]
fn a_board_whose_clock_jumped_spoils_only_its_own_fragment_wherever_it_comes() {
    assert_eq!(rejected_of(&[5000, 5400, 5000, 4800]), (Some(5000), vec![]));
    assert_eq!(rejected_of(&[9_000_000, 5000, 5100, 5200]).1, [0]);
    assert_eq!(rejected_of(&[5000, 5100, 5200, 0]).1, [3]);
    assert_eq!(rejected_of(&[5000, u64::MAX, 5100]), (Some(5100), vec![1]));
    assert_eq!(rejected_of(&[5000, 7000]), (Some(5000), vec![1]), "of two the first one is believed");
}

#[test]
fn a_clock_that_leaps_times_nothing_out() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 4) });
    let mut out = Vec::new();
    assert_eq!(builder.push(Time::from_ns(1), id(0, 0), 1), Pushed::Accepted);
    for now in [1_000_000, 1_000_001, 5, 6, u64::MAX - 60] {
        drain(&mut builder, Time(now), &mut out);
        assert_eq!(out, [], "at {now}");
    }
    assert_eq!(builder.poll_timeout(), Some(Time(u64::MAX - 60 + 48)), "two of fifty have passed");
    assert_eq!(builder.push(Time(u64::MAX - 59), id(0, 1), 2), Pushed::Accepted);
    drain(&mut builder, Time(u64::MAX), &mut out);
    assert_eq!(out, [(0, true, vec![(0, 1), (1, 2)], vec![])]);
}

#[test]
fn while_no_messages_are_taken_no_event_waits() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 4) });
    let mut out = Vec::new();
    assert_eq!(builder.push(Time(1), id(0, 0), 1), Pushed::Accepted);
    builder.leap(Time(90));
    drain(&mut builder, Time(91), &mut out);
    assert_eq!((builder.poll_timeout(), &out[..]), (Some(Time(140)), &[][..]));
    drain(&mut builder, Time(140), &mut out);
    assert_eq!(out.len(), 1);
}

#[test]
fn patience_begins_again_when_boards_were_held_back() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(50), ..config(2, 4) });
    let mut out = Vec::new();
    assert_eq!(builder.push(Time::ZERO, id(0, 0), 1), Pushed::Accepted);
    builder.restart_patience(Time(40));
    assert_eq!(builder.poll_timeout(), Some(Time(90)));
    drain(&mut builder, Time(89), &mut out);
    assert_eq!(out, []);
    drain(&mut builder, Time(90), &mut out);
    assert_eq!(out.len(), 1);
}

/// Three servers, one taken out at event 10, in again at 25; fragments of all events in random order over all builders.
#[test]
fn servers_share_a_run_through_every_announced_change() {
    let mut servers = Servers::new(3).unwrap();
    servers.take_out(1, 10).unwrap();
    servers.put_in(1, 25).unwrap();
    for server in 0..3 {
        let mut shares = servers.shares(server);
        let first = shares.next().unwrap();
        let config = BuilderConfig { first_event: first.ours[0], stride: first.rows, ..config(2, 64) };
        let mut builder = EventBuilder::new(config);
        shares.for_each(|share| builder.change_share(share).unwrap());
        let mut out = Vec::new();
        for source in 0..2 {
            for event in (0..40).rev() {
                let mine = servers.server_of(event) == Some(server);
                let pushed = builder.push(Time::ZERO, id(event, source), 0);
                let expected = if mine { Pushed::Accepted } else { Pushed::Stray(Stray::OffSequence) };
                let early = matches!(pushed, Pushed::Stray(Stray::Late | Stray::BeforeBegin));
                assert!(pushed == expected || !mine && early, "{event}: {pushed:?}");
            }
        }
        drain(&mut builder, Time::ZERO, &mut out);
        let numbers: Vec<u64> = out.iter().map(|event| event.0).collect();
        let mine: Vec<u64> = (0..40).filter(|&event| servers.server_of(event) == Some(server)).collect();
        assert_eq!(numbers, mine);
        assert!(out.iter().all(|event| event.1));
    }
}

#[test]
fn a_change_that_comes_too_late_is_refused_and_changes_nothing() {
    let mut builder = EventBuilder::new(BuilderConfig { stride: NonZeroU64::new(2).unwrap(), ..config(1, 8) });
    assert_eq!(builder.push(Time::ZERO, id(6, 0), 0), Pushed::Accepted);
    let out_at = |from_event| Share { from_event, rows: NonZeroU64::MIN, ours: vec![] };
    let refused = builder.change_share(out_at(6)).unwrap_err();
    assert_eq!(refused, ShareError::TooLate { from_event: 6, taken: 6 });
    builder.change_share(out_at(9)).unwrap();
    assert_eq!(builder.push(Time::ZERO, id(8, 0), 0), Pushed::Accepted);
    assert_eq!(builder.push(Time::ZERO, id(10, 0), 0), Pushed::Stray(Stray::OffSequence));
}

/// Numbers of the events that are handed out at `now`, and whether they are complete.
fn poll_at(builder: &mut EventBuilder<u32>, now: Time) -> Vec<(u64, bool)> {
    let mut out = Vec::new();
    drain(builder, now, &mut out);
    out.into_iter().map(|(event, complete, ..)| (event, complete)).collect()
}

#[test]
fn a_run_ends_before_an_announced_event_whatever_it_began_with() {
    for begins in [0, 10, 11] {
        let mut builder = EventBuilder::new(config(1, 64));
        for share in Servers::of(vec![0, 1], [(20, vec![])]).unwrap().shares(1) {
            builder.change_share(share).unwrap();
        }
        builder.end_before(20);
        builder.begin_at(begins);
        assert!(!builder.is_over() && builder.is_foreign(20) && builder.is_foreign(begins + begins % 2));
        for event in (begins..20).filter(|event| event % 2 == 1) {
            assert_eq!(builder.push(Time::ZERO, id(event, 0), 0), Pushed::Accepted);
            assert_eq!(poll_at(&mut builder, Time::ZERO), [(event, true)]);
        }
        assert!(builder.is_over(), "from {begins} on");
    }
}

#[test]
fn a_run_that_ends_at_a_given_event_takes_nothing_after_it_and_what_has_begun() {
    let mut builder = EventBuilder::new(BuilderConfig { stride: NonZeroU64::new(2).unwrap(), ..config(2, 8) });
    assert_eq!((builder.newest_event(), builder.has_end()), (None, false));
    assert_eq!(builder.push(Time::ZERO, id(4, 0), 0), Pushed::Accepted);
    assert_eq!((builder.newest_event(), builder.short_of(1, Some(10)), builder.short_of(0, None)), (Some(4), 5, 0));
    builder.end_before(10);
    assert!(builder.admit(1, 8) && builder.admit(1, 7), "other servers' events are another matter");
    assert_eq!((builder.short_of_end(0), builder.short_of_end(1)), (2, 5));
    assert!(!builder.admit(1, 10) && !builder.expects(1), "it has nothing before");
    builder.end_before(2);
    assert_eq!(builder.push(Time::ZERO, id(6, 0), 0), Pushed::Stray(Stray::AfterEnd));
    assert!(builder.admit(0, 4) && !builder.expects(0), "what has begun is finished");
}
