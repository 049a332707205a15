// SPDX-License-Identifier: Apache-2.0
//! Frames that a device refuses: whether one is tried again, or lost.
//! Promise: a frame is tried again for a bounded time. Then it is lost, as on the way, so that the timers of its
//! connection act. A device that drops frames for good delays the frames after them by a hundredth of the time at most.
//! Source: send(2), packet(7). `ENOBUFS` has two meanings, the same to a sender: a queue was full, or something
//! after it takes no such frame (`net_xmit_errno` of Linux).

use penstock_units::Time;

/// How long a device may take no frame at all.
const FULL: Time = Time::from_s(1);
/// How long a frame is tried again that the device drops, and the time after it in which no other one is.
const DROPPED: Time = Time::from_ms(10);
const IMPATIENT: Time = Time::from_s(1);

/// What a device says of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameRefusal {
    /// It takes none now (`EAGAIN`).
    Full,
    /// It has dropped this one (`ENOBUFS`).
    Dropped,
    /// It never takes this one: too long, or the interface is down.
    Never,
}

/// The refusals of one device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refusals {
    full_since: Option<Time>,
    dropped_since: Option<Time>,
    impatient_until: Time,
    lost: u64,
    reported: Vec<i32>,
}

impl Refusals {
    /// The device has taken a frame.
    pub fn accepted(&mut self) {
        (self.full_since, self.dropped_since) = (None, None);
    }

    /// The device has refused a frame. True: it is lost; false: it is to be tried again soon, before all later ones.
    pub fn refused(&mut self, now: Time, refusal: FrameRefusal) -> bool {
        let is_lost = match refusal {
            FrameRefusal::Never => true,
            FrameRefusal::Full => now >= self.full_since.get_or_insert(now).saturating_add(FULL),
            FrameRefusal::Dropped if now < self.impatient_until => true,
            FrameRefusal::Dropped => {
                let is_over = now >= self.dropped_since.get_or_insert(now).saturating_add(DROPPED);
                if is_over {
                    self.impatient_until = now.saturating_add(IMPATIENT);
                }
                is_over
            }
        };
        if is_lost {
            self.dropped_since = None;
            self.lost += 1;
        }
        is_lost
    }

    /// Frames that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether this error number has not been reported yet; it counts as reported from now on.
    pub fn report_once(&mut self, errno: i32) -> bool {
        let is_news = !self.reported.contains(&errno);
        if is_news {
            self.reported.push(errno);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers frames every 50 us for `span`; `takes` says which. How many were lost, and the longest time that one
    /// stood before all others.
    fn offer(rules: &mut Refusals, span: Time, takes: impl Fn(Time, u64) -> Result<(), FrameRefusal>) -> (u64, Time) {
        let (mut now, mut frame, mut since, mut longest) = (Time::ZERO, 0, Time::ZERO, Time::ZERO);
        while now < span {
            let is_done = match takes(now, frame) {
                Ok(()) => {
                    rules.accepted();
                    true
                }
                Err(refusal) => rules.refused(now, refusal),
            };
            longest = longest.max(now - since);
            if is_done {
                (frame, since) = (frame + 1, now);
            } else {
                now += Time::from_us(50);
            }
            if is_done && frame % 16 == 0 {
                now += Time::from_us(50);
            }
        }
        (rules.lost(), longest)
    }

    #[test]
    fn a_queue_that_drains_loses_nothing() {
        // It has room every 3 ms, then every 300 ms.
        for (every, refusal) in [(3, FrameRefusal::Dropped), (300, FrameRefusal::Full)] {
            let mut rules = Refusals::default();
            let room = |now: Time, _| (now.as_ps() / Time::from_us(50).as_ps()).is_multiple_of(every * 20);
            let lost = offer(&mut rules, Time::from_s(5), |now, frame| match room(now, frame) {
                true => Ok(()),
                false => Err(refusal),
            });
            assert_eq!(lost.0, 0, "{refusal:?}");
        }
    }

    #[test]
    fn frames_that_are_dropped_for_good_are_lost_and_hold_others_up_for_a_hundredth_of_the_time() {
        let mut rules = Refusals::default();
        // Of sixteen frames one is taken.
        let (lost, longest) = offer(&mut rules, Time::from_s(10), |_, frame| match frame % 16 {
            0 => Ok(()),
            _ => Err(FrameRefusal::Dropped),
        });
        assert!(longest <= DROPPED + Time::from_us(100), "{longest}");
        // Sixteen frames in 50 us but for ten times 10 ms.
        let most = 10_000_000 / 50 * 15;
        assert!(lost > most * 98 / 100 && lost <= most, "{lost} of {most}");
    }

    #[test]
    fn a_device_that_takes_nothing_is_waited_for_once_and_again_after_it_has_taken_something() {
        let mut rules = Refusals::default();
        let (first, back, second) = (Time::from_s(1), Time::from_s(3), Time::from_s(4));
        assert!(!rules.refused(Time::ZERO, FrameRefusal::Full) && !rules.refused(first - Time(1), FrameRefusal::Full));
        assert!(rules.refused(first, FrameRefusal::Full) && rules.refused(first, FrameRefusal::Full));
        rules.accepted();
        assert!(!rules.refused(back, FrameRefusal::Full) && rules.refused(second, FrameRefusal::Full));
        assert_eq!(rules.lost(), 3);
    }

    #[test]
    fn what_a_device_never_takes_is_lost_at_once_and_each_reason_is_reported_once() {
        let mut rules = Refusals::default();
        assert!(rules.refused(Time::ZERO, FrameRefusal::Never));
        assert!(rules.report_once(90) && !rules.report_once(90) && rules.report_once(105));
    }
}
