// SPDX-License-Identifier: Apache-2.0
//! The terminal as a page that is redrawn repeatedly, with the log messages of that time.
//! Promise: unless the process is killed by SIGKILL, the terminal is restored at its end; messages logged meanwhile are
//! printed then.
//! Source: ECMA-48 and xterm's control sequences (alternate screen 1049, cursor 25, line wrap 7).

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// The number of messages that are kept.
const KEPT: usize = 1000;

/// The messages of the time while a page is shown; none while no page is shown.
static PENDING: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn messages_below() -> MutexGuard<'static, Option<Vec<String>>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page on standard error.
pub struct Screen(());

impl Screen {
    /// None where standard error is no terminal, or one that cannot do it.
    pub fn enter() -> Option<Screen> {
        let capable = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        if !capable || !io::stderr().is_terminal() {
            return None;
        }
        *messages_below() = Some(Vec::new());
        let screen = Screen(());
        io::stderr().write_all(ENTER.as_bytes()).ok()?;
        Some(screen)
    }

    /// Columns and rows, as they are now.
    pub fn size() -> (usize, usize) {
        let (rows, columns) = console::Term::stderr().size();
        (usize::from(columns).max(1), usize::from(rows).max(1))
    }

    /// The last messages, newest last.
    pub fn messages(&self, count: usize) -> Vec<String> {
        let messages_below = messages_below();
        let all = messages_below.as_deref().unwrap_or_default();
        all[all.len().saturating_sub(count)..].to_vec()
    }

    /// Draws the lines over what is there; each fits the width, all fit the height.
    pub fn draw(&self, lines: &[String]) {
        let mut page = String::from("\x1b[H");
        for (i, line) in lines.iter().enumerate() {
            page += if i > 0 { "\r\n" } else { "" };
            page += line;
            page += "\x1b[0m\x1b[K";
        }
        page += "\x1b[J";
        // A terminal that is gone is no reason to end a run.
        let _ = io::stderr().write_all(page.as_bytes());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Gives the terminal back, if a page is shown; also for a process that ends at once.
pub fn leave() {
    let Some(messages) = messages_below().take() else { return };
    let _ = io::stderr().write_all(LEAVE.as_bytes());
    messages.iter().for_each(print_message);
}

/// Prints to standard error: now, or when the page is closed. A run continues if standard error is closed.
pub fn notify(message: impl Display) {
    match messages_below().as_mut() {
        Some(messages) => {
            if messages.len() == KEPT {
                messages.remove(0);
            }
            messages.push(message.to_string());
        }
        None => print_message(message),
    }
}

/// One write a message, so that those of several threads do not mix.
fn print_message(message: impl Display) {
    let _ = io::stderr().write_all(format!("{message}\n").as_bytes());
}

/// Where the log goes: each event is one write.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        notify(String::from_utf8_lossy(bytes).trim_end_matches('\n'));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
