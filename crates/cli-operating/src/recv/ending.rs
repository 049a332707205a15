// SPDX-License-Identifier: Apache-2.0
//! When a run of `penstock recv` is over, and what is done then.
//! Promise: events that have begun are completed, and acknowledged data is stored, unless a second signal gives them up.

use super::observer::{Observer, Turn};
use super::plan::{EndPlan, Plan};
use super::sink::Sink;
use penstock_cli_common::interrupt;
use penstock_cli_common::output::screen::notify;
use penstock_readout::session::{Session, SessionError};
use penstock_readout::StoreError;
use penstock_units::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A run with a limit on events or messages is given up if every board was refused and none has sent anything for this
/// time.
const REFUSED: Time = Time::from_s(10);

/// When a run is over: an event of which some fragments are here waits for the others first.
pub struct End {
    plan: EndPlan,
    bare: bool,
    interrupted: Arc<AtomicBool>,
    /// The run continues only for events that have begun.
    pub is_near: bool,
    /// It has lasted for `--seconds`.
    pub by_time: bool,
}

impl End {
    pub fn new(plan: &Plan, interrupted: Arc<AtomicBool>) -> Self {
        End { plan: plan.end, bare: plan.check.bare, interrupted, is_near: false, by_time: false }
    }

    /// True: the run is over. Begins its end as soon as it is due.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn poll(&mut self, session: &mut Session<Sink>) -> Result<bool, SessionError> {
        let counts = self.plan.events.is_some() || self.plan.messages.is_some();
        let is_in_vain = counts && session.is_refused(REFUSED);
        let is_time = is_in_vain || session.now() >= self.plan.deadline || self.interrupted.load(Ordering::Relaxed);
        if is_time && !self.is_near {
            self.is_near = true;
            self.by_time = session.now() >= self.plan.deadline;
            session.end_now()?;
        }
        let messages = session.receiver().messages_compared();
        let enough = self.plan.messages.is_some_and(|n| messages >= n) || (self.bare && is_time);
        Ok(enough || session.is_over())
    }
}

/// Reports once that events wait for a disk, and once that they wait for boards.
#[derive(Default)]
pub struct WaitNotices {
    disk_reported: bool,
    boards_reported: bool,
}

impl WaitNotices {
    fn report_disk(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.disk_reported, true) {
            notify(format_args!(
                "waiting: {error}; events are held until they can be stored, Ctrl-C twice gives them up"
            ));
        }
    }
}

impl Observer for WaitNotices {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        if !turn.is_ending {
            return Ok(());
        }
        if let Some(error) = turn.session.receiver().stalled().filter(|error| !error.is_busy()) {
            self.report_disk(error);
        }
        let boards = turn.session.out_of_reach();
        if !boards.is_empty() && !std::mem::replace(&mut self.boards_reported, true) {
            let boards = boards.join(", ");
            notify(format_args!(
                "waiting: {boards} cannot be reached; events wait for --outage seconds, Ctrl-C twice gives them up"
            ));
        }
        Ok(())
    }
}

/// Closes everything. Acknowledged data is never dropped: without disk space or file descriptors, this blocks.
/// False: a second signal has ended the wait.
///
/// # Errors
/// Those of the sink that no wait removes.
pub fn finish(session: &mut Session<Sink>, waits: &mut WaitNotices) -> Result<bool, SessionError> {
    loop {
        if interrupt::gives_up() {
            session.hang_up(Time::from_ms(200), || false)?;
            return Ok(false);
        }
        match session.finish(Time::from_s(2), interrupt::gives_up) {
            Err(SessionError::Store(error)) if error.is_retriable() => {
                waits.report_disk(&error);
                std::thread::sleep(Duration::from_millis(100));
            }
            result => return result.map(|()| true),
        }
    }
}

/// The fault of a run that a second signal has stopped.
pub fn given_up(plan: &Plan, session: &Session<Sink>) -> String {
    let receiver = session.receiver();
    let (kept, open) = (receiver.kept(), receiver.open_events() as u64);
    let unwritten = receiver.events_stored().saturating_sub(kept.events);
    let begun = format!("{open} that had begun, from event {} on", receiver.next_event());
    let events = match (unwritten, open) {
        (0, 0) => "no event was given up".to_owned(),
        (0, _) => format!("{open} events are given up: {begun}"),
        (_, 0) => format!("{unwritten} events are given up: none of these is on the disk"),
        _ => format!("{} events are given up: {unwritten} that are not on the disk and {begun}", unwritten + open),
    };
    let files = match (&plan.out, kept.unclosed) {
        (None, _) => String::new(),
        (Some(_), 0) => format!("; {} events are on the disk", kept.events),
        (Some(_), unclosed) => format!(
            "; {} events are on the disk, {unclosed} of them in a file that is not closed: `penstock check --recover` \
             completes it",
            kept.events
        ),
    };
    format!("stopped by a second signal: {events}{files}")
}

/// The fault of a run that an error ends. Events are stored in order: all before it are as they would have been.
pub fn breaks(session: &Session<Sink>, error: &SessionError) -> String {
    format!("{error}; this concerns events from {} on", session.receiver().next_event())
}
