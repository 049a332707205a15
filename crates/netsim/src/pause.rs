// SPDX-License-Identifier: Apache-2.0
//! The pause state of a port from received pause and PFC frames: which classes are paused, and until when.
//! Promise: a class is paused from the receipt of the frame until its quanta have passed or a frame with 0 quanta
//! arrives.
//! Source: IEEE 802.3 annex 31B (pause, one quantum is 512 bit times), IEEE 802.1Qbb (PFC).

use penstock_wire::MacControl;

use crate::units::Time;

pub(crate) const CLASSES: usize = 8;

/// Bits of one pause quantum.
const QUANTUM_BITS: u64 = 512;

/// The bytes whose wire time equals `quanta`.
pub(crate) fn quanta_bytes(quanta: u16) -> u64 {
    u64::from(quanta) * QUANTUM_BITS / 8
}

/// Pause received at one port.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct PauseState {
    /// The maximum of all `until`, so that a port without pauses needs only one comparison.
    latest: Time,
    /// When the caller's timer for the next end of a pause will fire.
    armed: Option<Time>,
    /// Pause and PFC frames received.
    pub frames: u64,
    /// Pauses that were sent by `renew`.
    pub(crate) renewals: u64,
    /// The classes that have ever been named, bit i for class i: mostly one.
    named: u8,
    classes: [Paused; CLASSES],
}

/// Pause of one class.
#[derive(Debug, Clone, Copy, Default)]
struct Paused {
    until: Time,
    /// Time since when a class that is paused has been so without a gap.
    since: Time,
    /// Up to where the pause has been added to `total`.
    settled: Time,
    total: Time,
}

/// The classes of a mask, lowest first.
#[inline]
pub(crate) fn classes_in(mask: u8) -> Classes {
    Classes(mask)
}

/// See [`classes_in`].
pub(crate) struct Classes(u8);

impl Iterator for Classes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let class = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (class < CLASSES).then_some(class)
    }
}

impl PauseState {
    /// Processes a control frame; `time_of` gives the duration of quanta. `Some`: the caller must set a timer
    /// for this time and call `wake` when it fires.
    pub fn receive(&mut self, now: Time, control: &MacControl, time_of: impl Fn(u16) -> Option<Time>) -> Option<Time> {
        self.frames += 1;
        let (named, quanta) = match control {
            MacControl::Pause { quanta } => (u8::MAX, [*quanta; CLASSES]),
            MacControl::Pfc { enabled, quanta } => (*enabled, *quanta),
        };
        self.named |= named;
        for class in classes_in(named) {
            self.settle(class, now);
            let paused = &mut self.classes[class];
            if now >= paused.until {
                paused.since = now;
            }
            paused.until = now + time_of(quanta[class]).unwrap_or(Time::ZERO);
        }
        self.latest = self.ends().max().unwrap_or_default();
        self.arm(now)
    }

    /// This number of PFC frames has renewed all paused classes; the last pause ends at `until`, or with the next
    /// call where that is `Time::MAX`.
    pub(crate) fn renewed(&mut self, frames: u64, until: Time) {
        let before = std::mem::replace(&mut self.latest, until);
        for class in classes_in(self.named) {
            // each of them names all classes that are paused, so that they end together
            let paused = &mut self.classes[class];
            if paused.until == before {
                paused.until = self.latest;
            }
        }
        self.frames += frames;
        self.renewals += frames;
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
        if now >= self.latest {
            return None;
        }
        let end = self.ends().filter(|until| (now < *until) && *until < Time::MAX).min()?;
        if self.armed.is_some_and(|armed| armed <= end) {
            return None;
        }
        self.armed = Some(end);
        self.armed
    }

    fn ends(&self) -> impl Iterator<Item = Time> + '_ {
        classes_in(self.named).map(|class| self.classes[class].until)
    }

    pub(crate) fn is_paused(&self, class: usize, now: Time) -> bool {
        self.any_paused(now) && now < self.classes[class].until
    }

    pub fn any_paused(&self, now: Time) -> bool {
        now < self.latest
    }

    /// The paused classes, bit i for class i.
    pub fn paused_mask(&self, now: Time) -> u8 {
        if !self.any_paused(now) {
            return 0;
        }
        classes_in(self.named).fold(0, |mask, class| mask | u8::from(self.is_paused(class, now)) << class)
    }

    /// When the last pause of any class ends or has ended.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// When the pause of a class ends or has ended.
    pub(crate) fn until(&self, class: usize) -> Time {
        self.classes[class].until
    }

    /// The time since when a class has been paused without a gap; `None` if it is not.
    pub(crate) fn paused_since(&self, class: usize, now: Time) -> Option<Time> {
        self.is_paused(class, now).then(|| self.classes[class].since)
    }

    fn settle(&mut self, class: usize, now: Time) {
        let paused = &mut self.classes[class];
        let end = paused.until.min(now);
        paused.total += end.saturating_sub(paused.settled);
        paused.settled = now;
    }

    /// How long each class has been paused so far.
    pub fn paused_for(&self, now: Time) -> [Time; CLASSES] {
        let mut state = self.clone();
        (0..CLASSES).for_each(|class| state.settle(class, now));
        state.classes.map(|paused| paused.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    const RATE: Rate = Rate::from_gbps(10);

    fn quanta_time(quanta: u16, rate: Rate) -> Time {
        rate.time_for(quanta_bytes(quanta))
    }

    fn time_of(quanta: u16) -> Option<Time> {
        Some(quanta_time(quanta, RATE))
    }

    fn pfc(class: usize, quanta: u16) -> MacControl {
        let mut all = [0; CLASSES];
        all[class] = quanta;
        MacControl::Pfc { enabled: 1 << class, quanta: all }
    }

    #[test]
    fn a_pause_lasts_its_quanta_and_only_for_its_class() {
        let mut state = PauseState::default();
        let until = state.receive(Time::from_us(1), &pfc(3, 10), time_of);
        assert_eq!(until, Some(Time::from_us(1) + Time::from_ns(512)));
        assert!(state.is_paused(3, Time(1_511_999)));
        assert!(!state.is_paused(3, Time(1_512_000)));
        assert!(!state.is_paused(4, Time::from_us(1)));
        assert_eq!(state.paused_for(Time::from_us(9))[3], Time::from_ns(512));
    }

    #[test]
    fn quanta_zero_ends_a_pause_and_only_the_time_paused_is_counted() {
        let mut state = PauseState::default();
        state.receive(Time::from_us(1), &pfc(3, 0xFFFF), time_of);
        state.receive(Time::from_us(3), &pfc(3, 0), time_of);
        assert!(!state.is_paused(3, Time::from_us(3)));
        state.receive(Time::from_us(10), &MacControl::Pause { quanta: 0xFFFF }, time_of);
        state.receive(Time::from_us(11), &MacControl::Pause { quanta: 0 }, time_of);
        assert_eq!(state.paused_for(Time::from_us(20))[3], Time::from_us(3));
        assert_eq!(state.paused_for(Time::from_us(20))[0], Time::from_us(1));
    }
}
