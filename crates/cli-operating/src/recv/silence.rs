// SPDX-License-Identifier: Apache-2.0
//! Boards that are not up or send nothing: reported during the run, and a fault of a run that ends so.
//! Promise: a run whose events are rare causes a few messages only: each silence that ends by itself doubles the patience
//! with the next one.

use super::observer::{Observer, Turn};
use super::plan::Plan;
use super::tables;
use penstock_cli_common::output::screen::notify;
use penstock_readout::session::SessionError;
use penstock_units::Time;

/// Looks at the messages of all boards together.
pub struct Silence {
    patience: Time,
    messages: u64,
    since: Time,
    is_reported: bool,
}

impl Silence {
    /// Shorter silences than an event's time-out are none.
    pub fn new(event_timeout: Time) -> Silence {
        Silence { patience: event_timeout, messages: 0, since: Time::ZERO, is_reported: false }
    }

    /// The message at `now`, if there is one. `boards` are up and may send; 0 also while storage is waited for.
    fn look(&mut self, now: Time, messages: u64, boards: usize) -> Option<String> {
        let silent = now.saturating_sub(self.since);
        if messages != self.messages || boards == 0 {
            let came = messages != self.messages;
            (self.messages, self.since) = (messages, now);
            let was_reported = std::mem::take(&mut self.is_reported);
            return (was_reported && came).then(|| {
                self.patience = self.patience.max(silent.saturating_mul(2));
                format!("messages come again after {:.1} s", silent.as_secs_f64())
            });
        }
        let is_new = silent > self.patience && !std::mem::replace(&mut self.is_reported, silent > self.patience);
        is_new.then(|| self.sentence("has come", silent, boards))
    }

    /// The fault of a run that ends at `now`. One that is ended by hand may have been left without triggers before; one
    /// that lasts for a given time was to have some until then.
    pub fn fault(&self, now: Time, boards: usize, by_time: bool) -> Option<String> {
        let silent = now.saturating_sub(self.since);
        let is_fault = boards > 0 && silent > self.patience && (by_time || self.messages == 0);
        is_fault.then(|| self.sentence("came", silent, boards))
    }

    fn sentence(&self, verb: &str, silent: Time, boards: usize) -> String {
        let (s, are) = if boards == 1 { ("", "is") } else { ("s", "are") };
        let silent = silent.as_secs_f64();
        format!(
            "no message {verb} for {silent:.1} s, and {boards} board{s} {are} up: are there triggers, and does every hop \
             take the boards' longest packets?"
        )
    }
}

impl Observer for Silence {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        // Boards get no slots while storage is waited for, and a server of several may have no part of the events.
        let waits = turn.session.receiver().stalled().is_some() || turn.server.is_some();
        let may_send = if waits { 0 } else { turn.session.boards_up() };
        if let Some(message) = self.look(turn.now, turn.session.messages(), may_send).filter(|_| !turn.is_ending) {
            notify(message);
        }
        Ok(())
    }
}

/// Reports once which boards came up, and once which of those have sent nothing.
pub struct BringUp {
    boards: usize,
    time: Time,
    /// When boards that are up must have sent something; set when the boards are reported.
    silence_due: Option<Time>,
}

impl BringUp {
    pub fn new(plan: &Plan) -> BringUp {
        BringUp { boards: plan.session.boards.len(), time: plan.session.bring_up, silence_due: None }
    }
}

impl Observer for BringUp {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        match self.silence_due {
            None if turn.now > self.time || turn.session.boards_up() == self.boards => {
                tables::brought_up(&turn.session.report()).iter().for_each(notify);
                self.silence_due = Some(turn.now.saturating_add(self.time.max(Time::from_s(5))));
            }
            Some(due) if turn.now >= due => {
                tables::silent(&turn.session.report()).iter().for_each(notify);
                self.silence_due = Some(Time::MAX);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(tenths: u64) -> Time {
        Time::from_ms(100 * tenths)
    }

    #[test]
    fn a_silence_is_reported_once_and_is_a_fault_of_a_run_of_given_length_or_without_any_message() {
        let mut silence = Silence::new(s(5));
        assert_eq!(silence.look(s(1), 0, 0), None, "no board is up");
        assert_eq!(silence.look(s(6), 0, 2), None);
        let message = silence.look(s(7), 0, 2).unwrap();
        assert!(message.starts_with("no message has come for 0.6 s, and 2 boards are up"), "{message}");
        assert_eq!(silence.look(s(8), 0, 2), None, "once");
        assert!(silence.fault(s(8), 2, false).is_some(), "nothing has ever come");
        assert_eq!(silence.look(s(21), 1, 2).unwrap(), "messages come again after 2.0 s");
        assert_eq!((silence.look(s(60), 1, 2), silence.fault(s(60), 2, true)), (None, None), "events are rare");
        assert!(silence.look(s(62), 1, 2).is_some());
        assert!(silence.fault(s(62), 2, true).unwrap().starts_with("no message came for 4.1 s"));
        assert_eq!(silence.fault(s(62), 2, false), None, "the triggers may have been stopped before");
        assert_eq!(silence.fault(s(62), 0, true), None, "boards that are down are another fault");
    }
}
