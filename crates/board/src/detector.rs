// SPDX-License-Identifier: Apache-2.0
//! The detector's side of a board: the trigger system, and digitisers that answer each accepted trigger with a fragment
//! on every input.
//! Promise: triggers are accepted at most once per event, in order, none before its time. While the gateware is busy, or
//! refuses a trigger, the event waits and its trigger is repeated; or the trigger comes all the same, and the event is
//! lost if it is refused. Triggers that the gateware has held up for too long can be held until all are shifted. The
//! gateware assigns number, type and time of an event: the fragments carry only the number from `m_axis_trigger`. The
//! tuser of an input is `fragment_t` of `rtl/event/event_pkg.sv`.

use crate::ffi::Pins;
use crate::message::word_of;
use bytes::Bytes;
use penstock_wire::gateware::BOARD_INPUTS;
use std::collections::VecDeque;

/// Bytes of `fragment_t`.
const ABOUT_BYTES: usize = 18;

/// A detector's data of one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectorEvent {
    /// Number of the trigger.
    pub number: u64,
    pub trigger_type: u16,
    /// Not before this cycle of the board's clock.
    pub cycle: u64,
    /// The raw bytes for each input from input 0 on, at most [`BOARD_INPUTS`]; later inputs get nothing.
    pub streams: Vec<Bytes>,
}

/// The fragments that one input still has to take.
#[derive(Default)]
struct Input {
    fragments: VecDeque<([u8; ABOUT_BYTES], Bytes)>,
    /// Bytes of the first one that have been taken.
    offset: usize,
}

/// Where the trigger system is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// The front end was not busy in the last cycle, or busy is not heeded: the next trigger may come.
    Ready,
    /// One was shown in the last cycle: its gate shows whether it was accepted. A trigger within the gate of an earlier
    /// one is refused.
    Shown { in_gate: bool },
    /// It waits until the front end is not busy.
    Waits,
}

/// Drives the trigger input and the streams of all inputs.
pub(crate) struct DetectorPort {
    /// Bytes of a beat.
    lanes: usize,
    honours_busy: bool,
    /// The most cycles by which a trigger may come late; none: it may come at any time.
    most_late: Option<u64>,
    /// Cycles by which all triggers come after the cycles of their events.
    shift: u64,
    trigger: Trigger,
    /// Events that were lost since [`DetectorPort::take_lost`].
    lost: usize,
    /// Events that are not triggered yet.
    waiting: VecDeque<DetectorEvent>,
    /// Events of accepted triggers not yet passed to the digitisers.
    accepted: VecDeque<DetectorEvent>,
    inputs: [Input; BOARD_INPUTS],
}

impl DetectorPort {
    pub fn new(lanes: usize) -> Self {
        Self {
            lanes,
            honours_busy: true,
            most_late: None,
            shift: 0,
            trigger: Trigger::Waits,
            lost: 0,
            waiting: VecDeque::new(),
            accepted: VecDeque::new(),
            inputs: Default::default(),
        }
    }

    /// Queues an event after earlier ones.
    ///
    /// # Panics
    /// When there are more streams than inputs.
    pub fn push(&mut self, event: DetectorEvent) {
        assert!(event.streams.len() <= BOARD_INPUTS, "{} streams for {BOARD_INPUTS} inputs", event.streams.len());
        self.waiting.push_back(event);
    }

    /// Whether triggers wait while the front end is busy. Otherwise those that it refuses are lost; it has to open a gate
    /// for those that it accepts.
    pub fn honour_busy(&mut self, honours_busy: bool) {
        self.honours_busy = honours_busy;
    }

    /// While busy is heeded, a trigger that would come later than by `most` cycles is held until [`Self::shift`]. Events
    /// pushed from here on come in their cycle.
    pub fn hold_late(&mut self, most: u64) {
        (self.most_late, self.shift) = (Some(most), 0);
    }

    /// The cycles by which the next trigger is late at this cycle, if it is held and the front end would take it.
    pub fn late(&self, cycle: u64) -> Option<u64> {
        let late = cycle.saturating_sub(self.due(self.waiting.front()?));
        (self.trigger == Trigger::Ready && self.is_too_late(late)).then_some(late)
    }

    /// All triggers that have not come, and those of later events, come so many cycles later.
    pub fn shift(&mut self, cycles: u64) {
        self.shift += cycles;
    }

    fn is_too_late(&self, late: u64) -> bool {
        self.honours_busy && self.most_late.is_some_and(|most| late > most)
    }

    fn due(&self, event: &DetectorEvent) -> u64 {
        event.cycle + self.shift
    }

    /// Events whose trigger was refused since the last call, and that are not triggered again.
    pub fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// Events that are not triggered yet.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Events of which not every beat has been taken.
    pub fn pending(&self) -> usize {
        let streaming = self.inputs.iter().map(|input| input.fragments.len()).max().unwrap_or(0);
        self.waiting.len() + self.accepted.len() + streaming
    }

    /// Nothing that is not begun is sent any more: triggers that have not come are forgotten, to those that were
    /// accepted the digitisers answer with nothing. Gives the number of events that were forgotten.
    pub fn forget(&mut self) -> usize {
        // One that was just shown may have been accepted.
        let kept = usize::from(matches!(self.trigger, Trigger::Shown { .. })).min(self.waiting.len());
        let forgotten = self.waiting.len() - kept;
        self.waiting.truncate(kept);
        let streams = self.accepted.iter_mut().flat_map(|event| &mut event.streams);
        let fragments = self.inputs.iter_mut().flat_map(|input| input.fragments.iter_mut().skip(1));
        streams.chain(fragments.map(|(_, stream)| stream)).for_each(Bytes::clear);
        forgotten
    }

    /// The front end was reset: triggers that have not come to the digitisers never will, and fragments that have not
    /// begun are of events that it no longer knows. Without a trigger it would take none of them.
    pub fn forget_all(&mut self) {
        (self.trigger, self.waiting, self.accepted) = (Trigger::Waits, VecDeque::new(), VecDeque::new());
        self.inputs.iter_mut().for_each(|input| input.fragments.truncate(usize::from(input.offset > 0)));
    }

    /// The digitiser of this input begins anew: what it has not sent in full is lost. Gives how many fragments that is.
    pub fn reset(&mut self, input: usize) -> usize {
        std::mem::take(&mut self.inputs[input]).fragments.len()
    }

    /// The digitisers' answer to an accepted trigger.
    fn digitise(&mut self, number: u64) {
        // Software that sets timing.gate to 0 hides that a trigger was accepted until it comes here. Where busy is not
        // heeded, that event counts as lost, and has no samples.
        let hidden = |waiting: &mut VecDeque<_>| if self.honours_busy { waiting.pop_front() } else { None };
        let Some(event) = self.accepted.pop_front().or_else(|| hidden(&mut self.waiting)) else { return };
        debug_assert_eq!(event.number, number, "triggers are accepted in order");
        let mut about = [0; ABOUT_BYTES];
        about[..8].copy_from_slice(&number.to_le_bytes());
        for (input, stream) in self.inputs.iter_mut().zip(event.streams) {
            input.fragments.push_back((about, stream));
        }
    }

    /// The pins of this cycle.
    pub fn drive(&mut self, cycle: u64, pins: &mut Pins) {
        pins.trigger_valid = 0;
        let is_in_time = |event: &&DetectorEvent| {
            let due = self.due(event);
            due <= cycle && !self.is_too_late(cycle - due)
        };
        if let (Trigger::Ready, Some(event)) = (self.trigger, self.waiting.front().filter(is_in_time)) {
            (pins.trigger_valid, pins.trigger_number, pins.trigger_type) = (1, event.number, event.trigger_type);
        }
        (pins.event_tvalid, pins.event_tlast) = (0, 0);
        for (i, input) in self.inputs.iter().enumerate() {
            let Some((about, stream)) = input.fragments.front() else { continue };
            let rest = &stream[input.offset..];
            let beat = &rest[..rest.len().min(self.lanes)];
            // Bytes after the last one are arbitrary: tkeep decides.
            let words = self.lanes / 8;
            for (word, bytes) in pins.event_tdata[i * words..].iter_mut().zip(beat.chunks(8)) {
                *word = word_of(bytes);
            }
            let keep = u64::MAX.checked_shr(64 - beat.len() as u32).unwrap_or(0).to_le_bytes();
            pins.event_tkeep[i * words..][..words].copy_from_slice(&keep[..words]);
            pins.event_tuser[i] = *about;
            pins.event_tvalid |= 1 << i;
            pins.event_tlast |= u8::from(beat.len() == rest.len()) << i;
        }
    }

    /// The pins at the end of this cycle. The gate is open, and the front end busy, from the cycle after an accepted
    /// trigger on.
    pub fn observe(&mut self, pins: &Pins) {
        match self.trigger {
            Trigger::Shown { in_gate: false } if pins.trigger_gate != 0 => {
                self.accepted.extend(self.waiting.pop_front());
            }
            Trigger::Shown { .. } if !self.honours_busy => {
                self.lost += usize::from(self.waiting.pop_front().is_some());
            }
            _ => {}
        }
        self.trigger = match self.trigger {
            Trigger::Ready if pins.trigger_valid != 0 => Trigger::Shown { in_gate: pins.trigger_gate != 0 },
            _ if !self.honours_busy => Trigger::Ready,
            Trigger::Ready | Trigger::Waits if pins.trigger_busy == 0 => Trigger::Ready,
            Trigger::Ready | Trigger::Shown { .. } | Trigger::Waits => Trigger::Waits,
        };
        if pins.accepted_valid != 0 {
            self.digitise(pins.accepted_number);
        }
        let taken = pins.event_tvalid & pins.event_tready;
        for (i, input) in self.inputs.iter_mut().enumerate().filter(|(i, _)| taken >> i & 1 != 0) {
            input.offset += self.lanes;
            if pins.event_tlast >> i & 1 != 0 {
                input.offset = 0;
                input.fragments.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The front end's side of the trigger input: refuses some triggers (a veto), is busy for a while after others.
    #[derive(Default)]
    struct FrontEnd {
        /// Triggers come while it is busy, too: it refuses them.
        is_ignored: bool,
        cycle: u64,
        shown: u64,
        /// Cycle and number of each trigger that it accepted.
        accepted: Vec<(u64, u64)>,
        busy_until: u64,
    }

    impl FrontEnd {
        /// The outputs of this cycle, then what its trigger does to the next.
        fn cycle(&mut self, pins: &mut Pins) {
            let last = self.accepted.last().filter(|(at, _)| at + 1 == self.cycle);
            pins.trigger_gate = u8::from(last.is_some());
            (pins.accepted_valid, pins.accepted_number) = last.map_or((0, 0), |&(_, number)| (1, number));
            pins.trigger_busy = u8::from(self.cycle < self.busy_until);
            if pins.trigger_valid != 0 {
                let is_busy = self.cycle <= self.busy_until && self.shown > 0;
                assert!(!is_busy || self.is_ignored, "a trigger while busy");
                self.shown += 1;
                if self.shown % 5 != 2 && !is_busy {
                    self.accepted.push((self.cycle, pins.trigger_number));
                    self.busy_until = self.cycle + 3 + self.shown % 5;
                }
            }
            self.cycle += 1;
        }
    }

    /// What was said to be whose bytes at an input.
    type Fragments = Vec<(u64, Vec<u8>)>;

    /// Takes every beat that is shown; gives each input's bytes and the events they were said to be of.
    fn played(port: &mut DetectorPort, lanes: usize) -> (FrontEnd, Vec<Fragments>) {
        let mut pins = Pins { event_tready: u8::MAX, ..Pins::default() };
        let mut front_end = FrontEnd { is_ignored: !port.honours_busy, ..FrontEnd::default() };
        let mut found: Vec<Fragments> = vec![Vec::new(); BOARD_INPUTS];
        let mut open = [false; BOARD_INPUTS];
        while port.pending() > 0 {
            port.drive(front_end.cycle, &mut pins);
            for i in (0..BOARD_INPUTS).filter(|i| pins.event_tvalid >> i & 1 != 0) {
                if !open[i] {
                    let about = &pins.event_tuser[i][..8];
                    found[i].push((u64::from_le_bytes(about.try_into().unwrap()), Vec::new()));
                }
                let keep: Vec<bool> =
                    (0..lanes).map(|lane| pins.event_tkeep[(i * lanes + lane) / 8] >> (lane % 8) & 1 != 0).collect();
                let words = &pins.event_tdata[i * lanes / 8..][..lanes / 8];
                let beat: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                found[i].last_mut().unwrap().1.extend(beat.iter().zip(keep).filter(|(_, kept)| *kept).map(|(b, _)| *b));
                open[i] = pins.event_tlast >> i & 1 == 0;
            }
            front_end.cycle(&mut pins);
            port.observe(&pins);
        }
        (front_end, found)
    }

    fn stream(event: u64, input: u64) -> Bytes {
        Bytes::from(vec![(event * 16 + input) as u8; (event * 37) as usize])
    }

    /// Event n at cycle 100 n.
    fn event(number: u64) -> DetectorEvent {
        let streams = (0..3).map(|input| stream(number, input)).collect();
        DetectorEvent { number, trigger_type: 1, cycle: 100 * number, streams }
    }

    #[test]
    fn each_input_gets_its_own_bytes_in_the_order_of_the_events() {
        for lanes in [8, 64] {
            let mut port = DetectorPort::new(lanes);
            (0..5).for_each(|number| port.push(event(number)));
            let (_, found) = played(&mut port, lanes);
            assert!(found[3].is_empty(), "an input without a stream");
            for (input, fragments) in found[..3].iter().enumerate() {
                let expected: Vec<_> = (0..5).map(|event| (event, stream(event, input as u64).to_vec())).collect();
                assert_eq!(*fragments, expected, "input {input}, {lanes} lanes");
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_not_triggered_and_what_was_accepted_is_answered_with_nothing() {
        let mut port = DetectorPort::new(8);
        (1..6).for_each(|number| port.push(DetectorEvent { cycle: 10, ..event(number) }));
        // No input takes anything until four triggers were accepted.
        let (mut pins, mut front_end) = (Pins::default(), FrontEnd::default());
        while front_end.accepted.len() < 4 || port.trigger != Trigger::Waits {
            port.drive(front_end.cycle, &mut pins);
            front_end.cycle(&mut pins);
            port.observe(&pins);
        }
        assert_eq!((port.forget(), port.pending()), (1, 4));
        let (_, found) = played(&mut port, 8);
        for (input, fragments) in found[..3].iter().enumerate() {
            let begun = (1, stream(1, input as u64).to_vec());
            assert_eq!(fragments[..], [begun, (2, vec![]), (3, vec![]), (4, vec![])], "input {input}");
        }
    }

    #[test]
    fn after_a_reset_of_the_front_end_digitisers_send_the_rest_of_what_has_begun_and_no_more() {
        let mut port = DetectorPort::new(8);
        (1..4).for_each(|number| port.push(DetectorEvent { cycle: 10, ..event(number) }));
        let (mut pins, mut front_end) = (Pins::default(), FrontEnd::default());
        while port.waiting() > 0 || !port.accepted.is_empty() || front_end.accepted.len() < 3 {
            port.drive(front_end.cycle, &mut pins);
            front_end.cycle(&mut pins);
            port.observe(&pins);
        }
        // Input 0 takes one beat.
        pins.event_tready = 1;
        port.drive(front_end.cycle, &mut pins);
        port.observe(&pins);
        port.push(event(4));
        port.forget_all();
        assert_eq!(port.pending(), 1);
        let (_, found) = played(&mut port, 8);
        assert_eq!(found[0], [(1, stream(1, 0)[8..].to_vec())]);
        assert!(found[1..].iter().all(Vec::is_empty));
    }

    #[test]
    fn a_digitiser_that_is_reset_loses_what_it_has_not_sent_and_answers_the_next_trigger() {
        let mut port = DetectorPort::new(8);
        (1..4).for_each(|number| port.push(DetectorEvent { cycle: 10, ..event(number) }));
        let (mut pins, mut front_end) = (Pins::default(), FrontEnd::default());
        while !port.accepted.is_empty() || port.waiting() > 0 || front_end.accepted.len() < 3 {
            port.drive(front_end.cycle, &mut pins);
            front_end.cycle(&mut pins);
            port.observe(&pins);
        }
        assert_eq!((port.reset(1), port.reset(1), port.pending()), (3, 0, 3));
        port.push(event(4));
        let (_, found) = played(&mut port, 8);
        assert_eq!(found[1], [(4, stream(4, 1).to_vec())]);
        let expected: Vec<_> = (1..5).map(|event| (event, stream(event, 2).to_vec())).collect();
        assert_eq!(found[2], expected, "another input notices nothing");
    }

    #[test]
    fn each_event_is_triggered_once_accepted_in_its_cycle_or_as_soon_as_the_front_end_takes_it() {
        let mut port = DetectorPort::new(8);
        // Four at a time: the first in its cycle, the others when it is not busy.
        (0..40).for_each(|number| port.push(DetectorEvent { cycle: 1000 * (number / 4) + 10, ..event(number) }));
        let (front_end, _) = played(&mut port, 8);
        assert!(front_end.accepted.iter().map(|(_, number)| *number).eq(0..40), "{:?}", front_end.accepted);
        assert_eq!(front_end.shown, 50, "the front end refuses the second of five triggers");
        for &(at, number) in &front_end.accepted {
            let due = 1000 * (number / 4) + 10;
            let most = if number % 4 == 0 { 1 } else { 40 };
            assert!((due..due + most).contains(&at), "trigger {number} at cycle {at}");
        }
    }

    #[test]
    fn a_trigger_that_is_too_late_is_held_until_all_are_shifted_and_then_comes_in_its_cycle() {
        let mut port = DetectorPort::new(8);
        port.hold_late(64);
        (0..3).for_each(|number| port.push(event(number)));
        let mut pins = Pins::default();
        // The cycles in which a trigger is shown; the gate opens after each.
        let mut shown = |port: &mut DetectorPort, cycles: std::ops::Range<u64>, busy: u8| -> Vec<u64> {
            cycles
                .filter(|cycle| {
                    pins.trigger_gate = pins.trigger_valid;
                    pins.trigger_busy = busy.max(pins.trigger_valid);
                    port.drive(*cycle, &mut pins);
                    port.observe(&pins);
                    pins.trigger_valid != 0
                })
                .collect()
        };
        assert_eq!((shown(&mut port, 0..300, 1), port.late(300)), (vec![], None), "it is busy");
        assert_eq!((shown(&mut port, 300..350, 0), port.late(350)), (vec![], Some(350)));
        port.shift(400);
        assert_eq!((shown(&mut port, 350..700, 0), port.late(700)), (vec![400, 500, 600], None));
    }

    #[test]
    fn where_busy_is_ignored_each_trigger_comes_in_its_cycle_and_a_refused_event_is_lost_as_a_whole() {
        let mut port = DetectorPort::new(8);
        port.honour_busy(false);
        // Of two that are due in the same cycle the second comes when the first has been answered.
        let due = |number: u64| 10 + 4 * (number / 2 * 2);
        (0..40).for_each(|number| port.push(DetectorEvent { cycle: due(number), ..event(number) }));
        let (front_end, found) = played(&mut port, 8);
        assert_eq!(front_end.shown, 40, "each trigger comes once");
        let accepted: Vec<u64> = front_end.accepted.iter().map(|(_, number)| *number).collect();
        assert!((10..30).contains(&accepted.len()), "{accepted:?}");
        assert_eq!((port.take_lost(), port.take_lost()), (40 - accepted.len(), 0));
        for &(at, number) in &front_end.accepted {
            assert_eq!(at, due(number) + 2 * (number % 2), "trigger {number}");
        }
        for (input, fragments) in found[..3].iter().enumerate() {
            let expected: Vec<_> = accepted.iter().map(|&n| (n, stream(n, input as u64).to_vec())).collect();
            assert_eq!(*fragments, expected, "input {input}");
        }
    }

    #[test]
    fn a_trigger_in_the_gate_of_another_is_refused_though_a_gate_is_open_after_it() {
        let mut port = DetectorPort::new(8);
        port.honour_busy(false);
        (0..2).for_each(|number| port.push(event(number)));
        let mut pins = Pins { trigger_gate: 1, ..Pins::default() };
        for cycle in 0..4 {
            port.drive(cycle + 100, &mut pins);
            port.observe(&pins);
        }
        assert_eq!((port.take_lost(), port.pending()), (1, 1), "the first has been refused, the second is shown next");
    }
}
