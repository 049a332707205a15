// SPDX-License-Identifier: Apache-2.0
//! The event builder with sources that are slow, lost, out of reach or dead: how long events wait for them.

use super::{config, drain, id, poll_at, Out};
use penstock_readout::{BuilderConfig, EventBuilder, Pushed, Servers, Standing, Stray};
use penstock_units::Time;

/// Sources 0 and 1 send events 0 to 3 at once, source 2 those named; what is handed out at the timeout and after it,
/// when source 2 has sent event 3.
fn after_a_stall(of_source_2: &[u64]) -> [Vec<(u64, bool)>; 2] {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
    let all = [0, 1].iter().flat_map(|source| (0..4).map(|event| (event, *source)));
    for (event, source) in all.chain(of_source_2.iter().map(|event| (*event, 2))) {
        assert_eq!(builder.push(Time::ZERO, id(event, source), 0), Pushed::Accepted);
    }
    let mut out = Vec::new();
    drain(&mut builder, Time(100), &mut out);
    let at_once = out.drain(..).map(|(event, complete, ..)| (event, complete)).collect();
    let _ = builder.push(Time(150), id(3, 2), 0);
    drain(&mut builder, Time(150), &mut out);
    [at_once, out.drain(..).map(|(event, complete, ..)| (event, complete)).collect()]
}

#[test]
fn a_source_that_an_incomplete_event_held_back_has_its_time_again_and_a_dead_one_has_not() {
    // Its fragment of event 0 was damaged; its ring was full behind events 1 and 2.
    assert_eq!(after_a_stall(&[1, 2]), [vec![(0, false), (1, true), (2, true)], vec![(3, true)]]);
    assert_eq!(after_a_stall(&[]), [vec![(0, false), (1, false), (2, false), (3, false)], vec![]]);
    // It sends on: what is behind event 0 was not held back.
    assert_eq!(after_a_stall(&[1, 3]), [vec![(0, false), (1, true), (2, false), (3, true)], vec![]]);
}

#[test]
fn a_source_that_answers_and_sends_nothing_is_not_waited_for_however_often_it_answers() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(80), outage: Time(1000), ..config(3, 8) });
    for (event, source) in (0..3).flat_map(|event| [(event, 0), (event, 1)]) {
        assert_eq!(builder.push(Time::ZERO, id(event, source), 0), Pushed::Accepted);
    }
    let mut out = Vec::new();
    for now in (4..=100).step_by(4) {
        builder.alive(Time(now), 2, false);
        drain(&mut builder, Time(now), &mut out);
        // The time of events, and an eighth of it from the answer at 80 on.
        assert_eq!(out.len(), if now < 90 { 0 } else { 3 }, "at {now}");
    }
}

#[test]
fn a_slow_source_is_waited_for_as_long_as_it_sends_and_one_that_stops_is_not() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
    for (event, source) in (0..8).flat_map(|event| [(event, 0), (event, 1)]) {
        assert_eq!(builder.push(Time::ZERO, id(event, source), 0), Pushed::Accepted);
    }
    let mut out = Vec::new();
    for event in 0..4 {
        let now = 90 * (event + 1);
        assert_eq!(builder.poll_timeout().filter(|at| *at <= Time(now)), None, "nothing is due before {now}");
        drain(&mut builder, Time(now), &mut out);
        assert_eq!(builder.push(Time(now), id(event, 2), 0), Pushed::Accepted);
        drain(&mut builder, Time(now), &mut out);
    }
    let events = |out: &mut Vec<Out>| out.drain(..).map(|(event, complete, ..)| (event, complete)).collect::<Vec<_>>();
    assert_eq!(events(&mut out), [(0, true), (1, true), (2, true), (3, true)]);
    assert_eq!(builder.poll_timeout(), Some(Time(460)));
    drain(&mut builder, Time(459), &mut out);
    assert_eq!(events(&mut out), []);
    drain(&mut builder, Time(460), &mut out);
    assert_eq!(events(&mut out), [(4, false), (5, false), (6, false), (7, false)], "it is dead, for all of them");
}

#[test]
fn a_source_that_is_lost_is_waited_for_once_and_again_when_it_is_back() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
    let send = |builder: &mut EventBuilder<u32>, now, event, sources: std::ops::Range<u16>| {
        sources.for_each(|source| assert_eq!(builder.push(now, id(event, source), 0), Pushed::Accepted));
        poll_at(builder, now)
    };
    assert_eq!(send(&mut builder, Time::ZERO, 0, 0..3), [(0, true)]);
    builder.lost(Time(20), 2);
    builder.lost(Time(90), 2);
    assert_eq!(send(&mut builder, Time(90), 1, 0..2), [], "it may come back and send it");
    assert_eq!((builder.poll_timeout(), poll_at(&mut builder, Time(119))), (Some(Time(120)), vec![]));
    assert_eq!(poll_at(&mut builder, Time(120)), [(1, false)]);
    assert_eq!(send(&mut builder, Time(121), 2, 0..2), [(2, false)], "at once");
    assert_eq!(send(&mut builder, Time(130), 3, 0..1), [], "source 1 is there");
    assert_eq!(send(&mut builder, Time(140), 3, 1..2), [(3, false)]);
    // What it sends of events that are over is late, and shows nothing.
    assert_eq!(builder.push(Time(141), id(3, 2), 0), Pushed::Stray(Stray::Late));
    assert_eq!(send(&mut builder, Time(142), 4, 0..2), [(4, false)]);
    builder.back(Time(142), 2);
    assert_eq!(send(&mut builder, Time(150), 5, 0..2), [(5, false)], "it has sent nothing over its connection yet");
    assert_eq!(builder.push(Time(151), id(5, 2), 0), Pushed::Stray(Stray::Late));
    assert_eq!(send(&mut builder, Time(160), 6, 0..2), []);
    assert_eq!(send(&mut builder, Time(250), 6, 2..3), [(6, true)]);
    let counters = builder.counters();
    assert_eq!((counters.events_complete, counters.events_incomplete, counters.strays_late), (2, 5, 2));
}

#[test]
fn what_a_lost_source_has_passed_is_not_waited_for_and_what_it_still_has_is() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
    let send = |builder: &mut EventBuilder<u32>, now, event, sources: std::ops::Range<u16>| {
        sources.for_each(|source| assert_eq!(builder.push(now, id(event, source), 0), Pushed::Accepted));
        poll_at(builder, now)
    };
    builder.set_outage(2, Time(10_000));
    assert_eq!(send(&mut builder, Time::ZERO, 0, 0..3), [(0, true)]);
    builder.lost(Time(20), 2);
    assert!((1..6).all(|event| send(&mut builder, Time(30), event, 0..2).is_empty()));
    assert_eq!(poll_at(&mut builder, Time(5_000)), [], "it may still hold all of them");
    // Events 1 and 2 were under way when its connection was lost.
    assert_eq!(builder.passed(2, 2), 2);
    assert_eq!(poll_at(&mut builder, Time(5_000)), [(1, false), (2, false)]);
    builder.reconnected(2);
    builder.back(Time(5_100), 2);
    assert_eq!(poll_at(&mut builder, Time(5_199)), []);
    assert_eq!(send(&mut builder, Time(5_199), 3, 2..3), [(3, true)]);
    // It sends something that it was said to have passed: that is waited for again.
    builder.passed(2, 100);
    assert_eq!(send(&mut builder, Time(5_200), 5, 2..3), [(4, false), (5, true)]);
    assert_eq!(send(&mut builder, Time(5_210), 6, 0..2), []);
    assert_eq!(send(&mut builder, Time(5_220), 6, 2..3), [(6, true)]);
}

#[test]
fn a_source_has_passed_no_event_of_a_table_that_was_announced_after_its_report() {
    let mut builder = EventBuilder::new(config(2, 8));
    builder.lost(Time::ZERO, 1);
    builder.passed(1, 9);
    // Of events 0 to 9 the last three are another server's.
    for share in Servers::of(vec![0], [(7, vec![1]), (20, vec![0])]).unwrap().shares(0).skip(1) {
        builder.change_share(share).unwrap();
    }
    for event in (0..7).chain([20]) {
        assert_eq!(builder.push(Time(1), id(event, 0), 0), Pushed::Accepted);
    }
    assert_eq!(poll_at(&mut builder, Time(2)).len(), 7, "event 20 is still to come");
}

#[test]
fn a_source_that_is_back_at_a_later_event_is_not_waited_for_before_it_and_is_from_there_on() {
    // 6 lies in the window; 60 lies beyond it, and so does what follows: it is refused, and no event waits for it.
    for (begins, beyond) in [(6, false), (60, true)] {
        let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
        let event = |builder: &mut EventBuilder<u32>, now, number, sources: std::ops::Range<u16>| {
            sources.for_each(|source| assert_eq!(builder.push(now, id(number, source), 0), Pushed::Accepted));
            poll_at(builder, now)
        };
        assert_eq!(event(&mut builder, Time::ZERO, 0, 0..3), [(0, true)]);
        builder.lost(Time::ZERO, 2);
        assert_eq!(event(&mut builder, Time(50), 1, 0..2), [], "it may come back and send it");
        builder.reconnected(2);
        builder.back(Time(60), 2);
        assert_eq!(poll_at(&mut builder, Time(60)), [], "it may still send it");
        let first = if beyond { Pushed::Stray(Stray::Ahead) } else { Pushed::Accepted };
        assert_eq!(builder.push(Time(70), id(begins, 2), 0), first);
        assert_eq!(poll_at(&mut builder, Time(70)), [(1, false)], "it does not");
        for number in 2..6 {
            assert_eq!(event(&mut builder, Time(80), number, 0..2), [(number, false)]);
        }
        if beyond {
            for number in 6..70 {
                assert_eq!(builder.push(Time(80), id(number + 60, 2), 0), Pushed::Stray(Stray::Ahead));
                assert_eq!(event(&mut builder, Time(80), number, 0..2), [(number, false)]);
            }
            // It was a number that was wrong: from where it goes on with right ones it is waited for.
            assert_eq!(event(&mut builder, Time(80), 71, 2..3), []);
            assert_eq!(event(&mut builder, Time(80), 70, 0..2), [(70, false)]);
            assert_eq!(event(&mut builder, Time(80), 71, 0..2), [(71, true)]);
        } else {
            assert_eq!(event(&mut builder, Time(80), 6, 0..2), [(6, true)]);
            assert_eq!(event(&mut builder, Time(80), 7, 0..2), [], "it is waited for");
            assert_eq!(event(&mut builder, Time(170), 7, 2..3), [(7, true)]);
        }
    }
}

#[test]
fn a_source_that_is_back_after_the_end_of_the_run_is_not_waited_for_at_the_end() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(2, 8) });
    builder.lost(Time::ZERO, 1);
    assert_eq!(builder.push(Time::ZERO, id(0, 0), 0), Pushed::Accepted);
    builder.reconnected(1);
    builder.back(Time(10), 1);
    builder.end_before(1);
    assert_eq!(poll_at(&mut builder, Time(10)), [], "it may still send it");
    assert!(!builder.admit(1, 7));
    assert_eq!(poll_at(&mut builder, Time(20)), [(0, false)], "it sends in order");
    assert!(builder.is_over());
}

#[test]
fn a_source_that_is_lost_and_delivers_none_the_less_is_waited_for_from_there_on() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(2, 8) });
    builder.lost(Time::ZERO, 1);
    assert_eq!(builder.push(Time(100), id(0, 0), 0), Pushed::Accepted);
    assert_eq!(poll_at(&mut builder, Time(100)), [(0, false)]);
    assert_eq!(builder.push(Time(110), id(1, 1), 0), Pushed::Accepted);
    assert_eq!(builder.push(Time(110), id(1, 0), 0), Pushed::Accepted);
    assert_eq!(poll_at(&mut builder, Time(110)), [(1, true)]);
    assert_eq!(builder.push(Time(120), id(2, 0), 0), Pushed::Accepted);
    assert_eq!((poll_at(&mut builder, Time(209)), poll_at(&mut builder, Time(210))), (vec![], vec![(2, false)]));
}

#[test]
fn where_nothing_is_sent_again_a_lost_source_is_waited_for_no_longer_than_an_outage() {
    let config = BuilderConfig { timeout: Time(60_000), outage: Time(30), ..config(2, 8) };
    let mut builder = EventBuilder::new(config);
    assert_eq!(builder.push(Time::ZERO, id(0, 0), 0), Pushed::Accepted);
    (0..2).for_each(|source| builder.lost(Time::ZERO, source));
    assert_eq!(poll_at(&mut builder, Time(29)), []);
    assert_eq!(poll_at(&mut builder, Time(30)), [(0, false)]);
}

#[test]
fn beside_a_source_that_is_gone_a_slow_one_is_waited_for_as_long_as_it_sends() {
    let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(3, 8) });
    builder.lost(Time::ZERO, 2);
    assert_eq!(poll_at(&mut builder, Time(100)), []);
    for event in 0..8 {
        assert_eq!(builder.push(Time(100), id(event, 0), 0), Pushed::Accepted);
    }
    for event in 0..4 {
        let now = 190 + 90 * event;
        assert_eq!(poll_at(&mut builder, Time(now)), [], "event {event}");
        assert_eq!(builder.push(Time(now), id(event, 1), 0), Pushed::Accepted);
        assert_eq!(poll_at(&mut builder, Time(now)), [(event, false)]);
    }
    assert_eq!(builder.poll_timeout(), Some(Time(560)));
}

#[test]
fn sources_that_are_gone_are_those_of_any_word_of_bits() {
    for sources in [1, 63, 64, 65, 128, 200] {
        let mut builder = EventBuilder::new(BuilderConfig { timeout: Time(100), ..config(sources, 8) });
        let gone = |source: u16| source.is_multiple_of(3) || source == sources - 1;
        (0..sources).filter(|source| gone(*source)).for_each(|source| builder.lost(Time::ZERO, source));
        let there: Vec<u16> = (0..sources).filter(|source| !gone(*source)).collect();
        assert_eq!(poll_at(&mut builder, Time(100)), [], "{sources} sources, of which nothing came");
        for (k, source) in there.iter().enumerate() {
            assert_eq!(poll_at(&mut builder, Time(100)), [], "{sources} sources, {k} came");
            assert_eq!(builder.push(Time(100), id(0, *source), 0), Pushed::Accepted);
        }
        let expected = if there.is_empty() { vec![] } else { vec![(0, false)] };
        assert_eq!(poll_at(&mut builder, Time(100)), expected, "{sources} sources");
    }
}

/// Pushes fragments of one event and takes what is due.
fn step(builder: &mut EventBuilder<u32>, now_ps: u64, event: u64, sources: &[u16]) -> Vec<(u64, bool)> {
    for &source in sources {
        let _ = builder.push(Time(now_ps), id(event, source), 0);
    }
    poll_at(builder, Time(now_ps))
}

#[test]
fn a_source_that_has_a_connection_and_sends_nothing_slows_the_run_down_for_a_bounded_time() {
    let mut builder = EventBuilder::<u32>::new(BuilderConfig { timeout: Time(100), ..config(3, 64) });
    // An event every 10 ps, none from source 2 after the first: the rest of the run must not wait for it.
    assert_eq!(step(&mut builder, 0, 0, &[0, 1, 2]), [(0, true)]);
    let mut waited = Vec::new();
    for event in 1..100 {
        let now = event * 10;
        for (number, _) in step(&mut builder, now, event, &[0, 1]) {
            waited.push(now - number * 10);
        }
    }
    let prompt = waited.iter().rev().take_while(|waited| **waited == 0).count();
    assert!(prompt > 50, "it is waited for all along: {waited:?}");
    let notice = builder.poll_notice().expect("it is said");
    assert_eq!((notice.source, notice.standing), (2, Standing::Silent));
    assert_eq!((builder.poll_notice(), builder.source_counters()[2].events_missing), (None, waited.len() as u64));

    // It sends again, and is waited for from there on.
    assert_eq!(step(&mut builder, 1000, 100, &[0, 2]), []);
    assert_eq!(builder.poll_notice().map(|notice| notice.standing), Some(Standing::InStep));
    assert_eq!(step(&mut builder, 1010, 100, &[1]), [(100, true)]);
    assert_eq!(step(&mut builder, 1010, 101, &[0, 1]), []);
}

#[test]
fn a_source_far_behind_the_run_is_left_out_at_once_named_and_counted() {
    let mut builder = EventBuilder::<u32>::new(BuilderConfig { timeout: Time(100), ..config(3, 64) });
    builder.begin_at(100_000);
    for event in 0..20 {
        let stray = builder.push(Time(event), id(event, 2), 0);
        assert_eq!(stray, Pushed::Stray(Stray::Late));
        let number = 100_000 + event;
        assert_eq!(step(&mut builder, event, number, &[0, 1]), [(number, false)], "nothing waits for it");
    }
    let notice = builder.poll_notice().expect("it is said");
    assert_eq!((notice.source, notice.standing, notice.event, notice.head), (2, Standing::Behind, 0, 100_000));
    assert_eq!((builder.poll_notice(), builder.source_counters()[2].strays_late), (None, 20));
    assert_eq!(step(&mut builder, 50, 100_020, &[0, 2]), [], "it has caught up");
    assert_eq!(step(&mut builder, 50, 100_020, &[1]), [(100_020, true)]);
    assert_eq!(builder.poll_notice().map(|notice| notice.standing), Some(Standing::InStep));
}

/// Nothing is handed out for a while.
fn nothing_until(builder: &mut EventBuilder<u32>, now: std::ops::RangeInclusive<u64>) {
    now.step_by(50).for_each(|now| assert_eq!(poll_at(builder, Time(now)), [], "at {now}"));
}

#[test]
fn no_event_is_given_up_for_a_source_that_may_be_out_of_reach_before_the_time_of_an_outage() {
    let outage = Time(1000);
    let mut builder = EventBuilder::<u32>::new(BuilderConfig { timeout: Time(100), outage, ..config(2, 64) });
    (0..2).for_each(|source| builder.alive(Time::ZERO, source, false));
    assert_eq!(step(&mut builder, 0, 0, &[0, 1]), [(0, true)]);
    // Source 1 is silent. Whether it is there is asked when the time is over. The answer ends the wait, but for what
    // may come right behind it.
    assert_eq!(step(&mut builder, 10, 1, &[0]), []);
    assert_eq!((poll_at(&mut builder, Time(100)), builder.suspects()), (vec![], &[][..]));
    assert_eq!((poll_at(&mut builder, Time(110)), builder.suspects()), (vec![], &[1][..]));
    assert_eq!(builder.poll_timeout(), Some(Time(1000)), "its last sign of life was at 0");
    builder.alive(Time(112), 1, false);
    assert_eq!((poll_at(&mut builder, Time(112)), builder.suspects()), (vec![], &[][..]));
    assert_eq!((builder.poll_timeout(), builder.out_of_reach()), (Some(Time(124)), &[][..]));
    assert_eq!(poll_at(&mut builder, Time(124)), [(1, false)]);
    // It does not answer for long: what it holds comes after its answer, and has its time then.
    assert_eq!(step(&mut builder, 130, 2, &[0]), []);
    nothing_until(&mut builder, 150..=900);
    builder.alive(Time(900), 1, true);
    assert_eq!(poll_at(&mut builder, Time(999)), []);
    assert_eq!(step(&mut builder, 999, 2, &[1]), [(2, true)]);
    // Its connection is lost, and comes back in time; then it stays away.
    assert_eq!(step(&mut builder, 1010, 3, &[0]), []);
    builder.lost(Time(1050), 1);
    nothing_until(&mut builder, 1050..=1998);
    assert_eq!((poll_at(&mut builder, Time(1998)), builder.suspects()), (vec![], &[][..]), "nothing to ask");
    builder.back(Time(1998), 1);
    assert_eq!(poll_at(&mut builder, Time(2097)), []);
    assert_eq!(step(&mut builder, 2097, 3, &[1]), [(3, true)]);
    assert_eq!(step(&mut builder, 2100, 4, &[0]), []);
    builder.lost(Time(2150), 1);
    nothing_until(&mut builder, 2150..=3096);
    assert_eq!(poll_at(&mut builder, Time(3096)), []);
    assert_eq!(poll_at(&mut builder, Time(3097)), [(4, false)], "an outage after its last fragment");
    assert_eq!(step(&mut builder, 3098, 5, &[0]), [(5, false)], "it is waited for once");
}

#[test]
fn a_source_that_can_be_reached_again_may_take_as_long_again_to_send_what_it_holds() {
    let mut builder =
        EventBuilder::<u32>::new(BuilderConfig { timeout: Time(100), outage: Time(1000), ..config(2, 64) });
    (0..2).for_each(|source| builder.alive(Time::ZERO, source, false));
    assert_eq!(step(&mut builder, 10, 0, &[0]), []);
    nothing_until(&mut builder, 50..=900);
    builder.reached(Time(900), 1);
    nothing_until(&mut builder, 950..=1899);
    assert_eq!(step(&mut builder, 1899, 0, &[1]), [(0, true)]);
    // Its connection ends after that: it is gone an outage later.
    assert_eq!(step(&mut builder, 2000, 1, &[0]), []);
    nothing_until(&mut builder, 2050..=2800);
    builder.reached(Time(2800), 1);
    builder.lost(Time(2850), 1);
    nothing_until(&mut builder, 2900..=3799);
    assert_eq!(poll_at(&mut builder, Time(3800)), [(1, false)]);
}

#[test]
fn a_source_that_never_answers_is_waited_for_as_for_one_outage_and_no_more() {
    let mut builder =
        EventBuilder::<u32>::new(BuilderConfig { timeout: Time(100), outage: Time(1000), ..config(2, 64) });
    builder.alive(Time::ZERO, 1, false);
    let mut waited = Vec::new();
    for event in 0..200 {
        waited.extend(step(&mut builder, event * 10, event, &[0]).into_iter().map(|(number, _)| event - number));
    }
    assert_eq!(waited[0], 100, "the first for the whole time");
    assert_eq!(waited.last(), Some(&0), "{waited:?}");
}
