// SPDX-License-Identifier: Apache-2.0
//! The live view of `penstock recv`: boards, throughput, events, credits and counters, a few times per second.
//! Promise: drawn only on a terminal; fits any size of it; boards with problems come first.
//! Counters have the kernel's names in the report and short ones here.

use super::observer::{Observer, Turn};
use super::tables::{megabytes, why};
use penstock_cli_common::output::screen::Screen;
use penstock_readout::session::{BoardReport, BoardState, SessionError, SessionReport};
use std::time::{Duration, Instant};

const REDRAW: Duration = Duration::from_millis(300);
/// Messages of the log that are shown.
const MESSAGES: usize = 4;
const NAME: usize = 16;

pub struct View {
    screen: Screen,
    title: String,
    /// Events or messages that the run is to have.
    requested: Option<u64>,
    is_stored: bool,
    earlier: Option<SessionReport>,
    drawn: Option<Instant>,
}

impl View {
    /// None if it is not visible. `is_stored`: events go to files.
    pub fn open(title: String, requested: Option<u64>, is_stored: bool) -> Option<View> {
        let screen = Screen::enter()?;
        Some(View { screen, title, requested, is_stored, earlier: None, drawn: None })
    }

    /// Draws; `stalled` is why storage waits.
    fn draw(&mut self, report: SessionReport, stalled: Option<String>) {
        let (width, height) = Screen::size();
        let page = Page {
            title: &self.title,
            requested: self.requested,
            is_stored: self.is_stored,
            now: &report,
            earlier: self.earlier.as_ref().unwrap_or(&report),
            stalled,
            messages: self.screen.messages(MESSAGES),
        };
        self.screen.draw(&page.lines(width, height));
        self.earlier = Some(report);
        self.drawn = Some(Instant::now());
    }
}

impl Observer for View {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            let stalled = turn.session.receiver().stalled().map(ToString::to_string);
            self.draw(turn.session.report(), stalled);
        }
        Ok(())
    }
}

struct Page<'a> {
    title: &'a str,
    requested: Option<u64>,
    is_stored: bool,
    now: &'a SessionReport,
    /// The report with which rates are computed.
    earlier: &'a SessionReport,
    stalled: Option<String>,
    messages: Vec<String>,
}

impl Page<'_> {
    /// The page's lines: at most `height`, of at most `width` columns.
    fn lines(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = self.head(width);
        let tail: Vec<String> = self.messages.iter().flat_map(|message| message.lines().map(str::to_owned)).collect();
        let room = height.saturating_sub(lines.len() + tail.len());
        lines.extend(self.boards(room));
        lines.extend(tail);
        lines.truncate(height);
        lines.iter().map(|line| console::truncate_str(line, width, "…").into_owned()).collect()
    }

    fn head(&self, width: usize) -> Vec<String> {
        let (builder, readout) = (&self.now.readout.builder, &self.now.readout.receiver);
        let up = self.now.boards.iter().filter(|board| board.state == BoardState::Up).count();
        let all = |of: &dyn Fn(&BoardReport) -> u64| self.rate(&|report| report.boards.iter().map(of).sum());
        let (bits, messages) = (all(&|board| board.bytes) * 8.0, all(&|board| board.messages));
        let busy = 1e2 * self.per_second(self.now.cpu_seconds - self.earlier.cpu_seconds);
        let events = self.rate(&|report| report.readout.builder.events_complete);
        let counter = |name: &str| -> u64 { self.now.boards.iter().map(|board| count(board, name)).sum() };
        let total = |name: &str| self.now.counters.get(name).copied().unwrap_or(0);
        let mut lines = vec![
            format!("\x1b[1mpenstock recv\x1b[0m {:.1} s  {}", self.now.seconds, self.title),
            format!(
                "boards {up} of {} up   {:.3} Gb/s   {messages:.0} messages/s   CPU {busy:.0} %",
                self.now.boards.len(),
                bits * 1e-9
            ),
            format!(
                "events {} complete ({events:.0}/s), {} incomplete   {}",
                builder.events_complete,
                builder.events_incomplete,
                megabytes(readout.bytes_stored, self.is_stored)
            ),
            format!(
                "RNR {}   out of sequence {}   repeated {}   CNP {}   ICRC {}   CRC-32C {}",
                counter("out_of_buffer"),
                counter("out_of_sequence"),
                counter("duplicate_request"),
                counter("np_cnp_sent"),
                total("rx_icrc_encapsulated"),
                readout.fragments_crc_error
            ),
        ];
        if let Some(patterns) = &self.now.readout.pattern {
            let sum = |of: &dyn Fn(&penstock_readout::PatternReport) -> u64| patterns.iter().map(of).sum::<u64>();
            let (compared, errors, gaps) = (sum(&|b| b.messages), sum(&|b| b.errors), sum(&|b| b.gaps));
            lines.push(format!("pattern {compared} messages compared, {errors} errors, {gaps} gaps"));
        }
        if let Some(stalled) = &self.stalled {
            lines.push(format!("\x1b[33mwaiting: {stalled}\x1b[0m"));
        }
        lines.extend(self.progress(width));
        lines
    }

    fn progress(&self, width: usize) -> Option<String> {
        let requested = self.requested?.max(1);
        let builder = &self.now.readout.builder;
        let compared = self.now.readout.pattern.iter().flatten().map(|board| board.messages).sum::<u64>();
        let have = (builder.events_complete + builder.events_incomplete).max(compared).min(requested);
        let share = have as f64 / requested as f64;
        let (room, text) = (width.clamp(8, 60) - 7, (share * 100.0).floor());
        let full = (room as f64 * share) as usize;
        Some(format!("{}{} {text:3.0} %", "█".repeat(full), "░".repeat(room - full)))
    }

    /// Those with problems first; a line gives the number of boards without room.
    fn boards(&self, room: usize) -> Vec<String> {
        if room < 2 {
            return Vec::new();
        }
        let mut lines = vec![format!(
            "\x1b[7m{:NAME$} {:>8} {:>9} {:>7} {:>8}  {:8} ",
            "board", "Gb/s", "messages", "credits", "RNR", "state"
        )];
        let mut boards: Vec<(&BoardReport, &BoardReport)> = self.now.boards.iter().zip(&self.earlier.boards).collect();
        boards.sort_by_key(|(board, _)| board.state == BoardState::Up);
        let shown = if boards.len() < room { boards.len() } else { room - 2 };
        for (board, earlier) in &boards[..shown] {
            let rate = self.per_second((board.bytes.saturating_sub(earlier.bytes) * 8) as f64) * 1e-9;
            let name = console::truncate_str(&board.name, NAME, "…");
            let state = match (board.state, &board.step) {
                (BoardState::Up, _) => "up".to_owned(),
                (_, Some(step)) => format!("asked for {step}; {}", board.trouble.as_deref().unwrap_or("no answer yet")),
                (_, None) => why(board).into_owned(),
            };
            lines.push(format!(
                "{}{rate:8.3} {:>9} {:>7} {:>8}  {state}",
                console::pad_str(&name, NAME + 1, console::Alignment::Left, None),
                board.messages,
                board.credits,
                count(board, "out_of_buffer"),
            ));
        }
        if shown < boards.len() {
            lines.push(format!("and {} more", boards.len() - shown));
        }
        lines
    }

    fn rate(&self, of: &dyn Fn(&SessionReport) -> u64) -> f64 {
        self.per_second(of(self.now).saturating_sub(of(self.earlier)) as f64)
    }

    fn per_second(&self, what: f64) -> f64 {
        let seconds = self.now.seconds - self.earlier.seconds;
        if seconds > 0.0 {
            what / seconds
        } else {
            0.0
        }
    }
}

fn count(board: &BoardReport, name: &str) -> u64 {
    board.counters.get(name).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_readout::{PatternReport, ReceiverReport};

    fn board(name: &str, state: BoardState, trouble: Option<&str>) -> BoardReport {
        BoardReport {
            name: name.into(),
            ip: "10.0.0.2".into(),
            state,
            step: (state == BoardState::Opening).then(|| "OPEN_QP".into()),
            lives: 1,
            queue_pair: 0x11,
            credits: 63,
            slots: 64,
            messages: 1000,
            bytes: 1_000_000_000,
            trouble: trouble.map(str::to_owned),
            left_out: None,
            refused: None,
            events: Default::default(),
            counters: [("out_of_buffer".to_owned(), 5)].into(),
        }
    }

    fn report(boards: Vec<BoardReport>) -> SessionReport {
        SessionReport {
            backend: "packet",
            poll: "busy".into(),
            seconds: 2.0,
            readout_seconds: 1.0,
            cpu_seconds: 0.5,
            latency: None,
            boards,
            readout: ReceiverReport { pattern: Some(vec![PatternReport::default()]), ..ReceiverReport::default() },
            counters: Default::default(),
            cm_requests: 0,
            cm_refused: 0,
            cm_ignored: 0,
            cm_half_open: 0,
            cm_strangers: 0,
        }
    }

    fn page_of<'a>(now: &'a SessionReport, earlier: &'a SessionReport) -> Page<'a> {
        let messages = vec!["a line of the log that is longer than a narrow terminal has columns".to_owned()];
        let stalled = Some("the disk is full".into());
        Page { title: "veth0", requested: Some(10), is_stored: true, now, earlier, stalled, messages }
    }

    #[test]
    fn no_size_of_terminal_is_overrun() {
        let boards =
            (0..40).map(|k| board(&format!("a board with a long näme 名前 {k}"), BoardState::Up, None)).collect();
        let now = report(boards);
        for (width, height) in (1..130).step_by(3).flat_map(|width| (1..60).step_by(2).map(move |h| (width, h))) {
            let lines = page_of(&now, &now).lines(width, height);
            assert!(lines.len() <= height, "{width} x {height}");
            let widest = lines.iter().map(|line| console::measure_text_width(line)).max();
            assert!(widest.unwrap_or(0) <= width, "{width} x {height}: {widest:?}");
        }
    }

    #[test]
    fn boards_that_are_not_up_come_first_with_their_step_and_reason() {
        let mut boards = vec![board("m0", BoardState::Up, None); 50];
        boards.push(board("m50", BoardState::Opening, Some("no answer in 3 tries")));
        let (now, mut earlier) = (report(boards.clone()), report(boards));
        earlier.seconds = 1.0;
        earlier.boards.iter_mut().for_each(|board| board.bytes = 0);
        let text = page_of(&now, &earlier).lines(120, 20).join("\n");
        let first = text.lines().skip_while(|line| !line.contains("credits")).nth(1).unwrap();
        assert!(first.starts_with("m50") && first.contains("asked for OPEN_QP; no answer in 3 tries"), "{text}");
        assert!(text.contains("boards 50 of 51 up   408.000 Gb/s"), "{text}");
        assert!(text.contains("and 41 more") && text.contains("waiting: the disk is full"), "{text}");
    }
}
