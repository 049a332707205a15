// SPDX-License-Identifier: Apache-2.0
//! What a port has been told by pause and PFC frames: which classes must be silent, and until when.
//! Promise: a class is paused from the receipt of the frame until its quanta have passed or quanta 0 arrives.
//! Source: IEEE 802.3 annex 31B (pause, one quantum is 512 bit times), IEEE 802.1Qbb (PFC).

use penstock_wire::MacControl;

use crate::units::{Rate, Time};

pub(crate) const CLASSES: usize = 8;

/// Bits of one pause quantum.
const QUANTUM_BITS: u64 = 512;

/// How long `quanta` last on a link of this rate.
pub(crate) fn quanta_time(quanta: u16, rate: Rate) -> Time {
    rate.time_for(u64::from(quanta) * QUANTUM_BITS / 8)
}

/// Pause received at one port.
#[derive(Debug, Clone, Default)]
pub(crate) struct PauseState {
    until: [Time; CLASSES],
    /// The last of `until`, so that a port which nobody pauses asks one question only.
    latest: Time,
    /// Since when a class that is paused has been so without a gap.
    since: [Time; CLASSES],
    /// Up to where the pause has been added to `total`.
    settled: [Time; CLASSES],
    total: [Time; CLASSES],
    /// When the caller's timer for the next end of a pause will fire.
    armed: Option<Time>,
    /// Pause and PFC frames received.
    pub(crate) frames: u64,
}

impl PauseState {
    /// Takes a control frame in. `Some`: the caller shall set a timer for this time and call `wake` when it fires.
    pub(crate) fn receive(&mut self, now: Time, control: &MacControl, rate: Rate) -> Option<Time> {
        self.frames += 1;
        let (mut named, quanta) = match control {
            MacControl::Pause { quanta } => (u8::MAX, [*quanta; CLASSES]),
            MacControl::Pfc { enabled, quanta } => (*enabled, *quanta),
        };
        while named != 0 {
            let class = named.trailing_zeros() as usize;
            named &= named - 1;
            self.settle(class, now);
            if !self.is_paused(class, now) {
                self.since[class] = now;
            }
            self.until[class] = now + quanta_time(quanta[class], rate);
        }
        self.latest = self.until.into_iter().max().unwrap_or_default();
        self.arm(now)
    }

    /// The timer fired. `Some`: set it again for this time.
    pub(crate) fn wake(&mut self, now: Time) -> Option<Time> {
        if self.armed == Some(now) {
            self.armed = None;
        }
        self.arm(now)
    }

    /// One timer at a time, at the first end of a pause, however many frames arrive.
    fn arm(&mut self, now: Time) -> Option<Time> {
        let end = self.until.iter().copied().filter(|until| *until > now).min()?;
        if self.armed.is_some_and(|armed| armed <= end) {
            return None;
        }
        self.armed = Some(end);
        self.armed
    }

    pub(crate) fn is_paused(&self, class: usize, now: Time) -> bool {
        self.any_paused(now) && now < self.until[class]
    }

    pub(crate) fn any_paused(&self, now: Time) -> bool {
        now < self.latest
    }

    /// The paused classes, bit i for class i.
    pub(crate) fn paused_mask(&self, now: Time) -> u8 {
        if !self.any_paused(now) {
            return 0;
        }
        (0..CLASSES).fold(0, |mask, class| mask | u8::from(self.is_paused(class, now)) << class)
    }

    /// When the last pause of any class ends or has ended.
    pub(crate) fn latest(&self) -> Time {
        self.latest
    }

    /// When the pause of a class ends or has ended.
    pub(crate) fn until(&self, class: usize) -> Time {
        self.until[class]
    }

    /// Since when a class has been paused without a gap; `None` if it is not.
    pub(crate) fn paused_since(&self, class: usize, now: Time) -> Option<Time> {
        self.is_paused(class, now).then(|| self.since[class])
    }

    fn settle(&mut self, class: usize, now: Time) {
        let end = self.until[class].min(now);
        self.total[class] += end.saturating_sub(self.settled[class]);
        self.settled[class] = now;
    }

    /// How long each class has been paused so far.
    pub(crate) fn paused_for(&self, now: Time) -> [Time; CLASSES] {
        let mut state = self.clone();
        (0..CLASSES).for_each(|class| state.settle(class, now));
        state.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_gbps(10);

    fn pfc(class: usize, quanta: u16) -> MacControl {
        let mut all = [0; CLASSES];
        all[class] = quanta;
        MacControl::Pfc { enabled: 1 << class, quanta: all }
    }

    #[test]
    fn a_pause_lasts_its_quanta_and_only_for_its_class() {
        let mut state = PauseState::default();
        let until = state.receive(Time::from_us(1), &pfc(3, 10), RATE);
        assert_eq!(until, Some(Time::from_us(1) + Time::from_ns(512)));
        assert!(state.is_paused(3, Time(1_511_999)));
        assert!(!state.is_paused(3, Time(1_512_000)));
        assert!(!state.is_paused(4, Time::from_us(1)));
        assert_eq!(state.paused_for(Time::from_us(9))[3], Time::from_ns(512));
    }

    #[test]
    fn quanta_zero_ends_a_pause_and_only_the_time_paused_is_counted() {
        let mut state = PauseState::default();
        state.receive(Time::from_us(1), &pfc(3, 0xFFFF), RATE);
        state.receive(Time::from_us(3), &pfc(3, 0), RATE);
        assert!(!state.is_paused(3, Time::from_us(3)));
        state.receive(Time::from_us(10), &MacControl::Pause { quanta: 0xFFFF }, RATE);
        state.receive(Time::from_us(11), &MacControl::Pause { quanta: 0 }, RATE);
        assert_eq!(state.paused_for(Time::from_us(20))[3], Time::from_us(3));
        assert_eq!(state.paused_for(Time::from_us(20))[0], Time::from_us(1));
    }
}
