// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C (or SIGTERM): the first signal ends a command in an orderly way, the second makes it give up pending waits.
//! Promise: the report is printed once, even if the command hangs: the command prints it, or this module prints the
//! last known report if the command has not ended some time after the second signal, or at the third. A third signal
//! has no effect while no report is known yet, or while the command prints.

use crate::outcome::Failure;
use crate::output::screen::{leave, notify};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The time that a command which gives up still has to store its data and report.
const GRACE: Duration = Duration::from_secs(2);

/// The time that a command has for its end if nothing is left to be closed.
const HASTE: Duration = Duration::from_millis(900);

/// Nothing is left to be closed: Ctrl-C needs no words.
static QUIET: AtomicBool = AtomicBool::new(false);
static HASTY: AtomicBool = AtomicBool::new(false);
static GIVES_UP: AtomicBool = AtomicBool::new(false);
static WORDS: Mutex<Words> = Mutex::new(Words::None);

/// Who prints the report.
enum Words {
    /// There is none yet.
    None,
    /// This one, if the command does not come to print its own.
    Last(String),
    /// The command prints its own.
    ByCommand,
}

/// A flag that Ctrl-C (or SIGTERM) raises; a second one raises [`gives_up`].
pub fn on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    ctrlc::set_handler(move || {
        if raised.swap(true, Ordering::Relaxed) {
            give_up();
        } else if HASTY.load(Ordering::Relaxed) {
            std::thread::spawn(|| {
                std::thread::sleep(HASTE);
                end();
            });
        } else if !QUIET.load(Ordering::Relaxed) {
            notify("\ninterrupted: coming to its end; once more to give up what it waits for");
        }
    })
    .map_err(|error| Failure::Fault(format!("cannot watch for Ctrl-C: {error}")))?;
    Ok(flag)
}

/// From here on Ctrl-C prints nothing, and ends the process within a second, whatever it waits for.
pub fn be_hasty() {
    be_quiet();
    HASTY.store(true, Ordering::Relaxed);
}

/// From here on Ctrl-C prints nothing.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// There was a second signal: nothing is waited for any more.
pub fn gives_up() -> bool {
    GIVES_UP.load(Ordering::Relaxed)
}

/// The report as it is now, to be printed if the command cannot any more.
pub fn last_words(report: String) {
    set(Words::Last(report));
}

/// The command prints its own report, now or as soon as it can.
pub fn prints_itself() {
    set(Words::ByCommand);
}

fn set(words: Words) {
    *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

fn give_up() {
    leave();
    let is_third = GIVES_UP.swap(true, Ordering::Relaxed);
    if QUIET.load(Ordering::Relaxed) || (is_third && !prints_report()) {
        end();
    }
    if is_third {
        return; // the report is on its way; the second signal's grace bounds how long that takes
    }
    std::thread::spawn(|| {
        std::thread::sleep(GRACE);
        if prints_report() {
            std::thread::sleep(GRACE); // it prints, and has then nothing to wait for
        }
        end();
    });
}

/// Whether the command prints its own report.
fn prints_report() -> bool {
    matches!(*WORDS.lock().unwrap_or_else(PoisonError::into_inner), Words::ByCommand)
}

/// Ends the process at once, after the last words of a command that has not come to its own.
fn end() -> ! {
    let words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Words::Last(report) = &*words {
        let _ = writeln!(std::io::stdout(), "{report}");
    }
    std::process::exit(1);
}
