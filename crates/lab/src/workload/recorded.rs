// SPDX-License-Identifier: Apache-2.0
//! Recorded events: a time, and the size of the fragment of every board.
//! Promise: a table is complete and in order of time, or refused with the line.
//! Source: RFC 4180 for the table; `penstock_recorded` for camera events.

use penstock_recorded::Dataset;

use crate::units::Time;

/// Recorded events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedEvents {
    boards: Vec<String>,
    times: Vec<Time>,
    /// Event by event, board by board; where there are more times, the events repeat.
    bytes: Vec<u32>,
}

/// A table that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordedError {
    #[error(
        "line 1 is `{0}`: allowed is time_us (or time_ps, time_ns, time_ms, time_s), then the name of one board a column"
    )]
    Header(String),
    #[error("line {line} has {found} columns, the first line has {expected}")]
    Columns { line: usize, found: usize, expected: usize },
    #[error("line {line}, {column}: `{value}` is no whole number of {unit}; allowed are {low} to {high}")]
    Number { line: usize, column: String, value: String, unit: &'static str, low: u64, high: u64 },
    #[error("line {line}: the event at {at} comes before that at {last}; sort the table by time")]
    Order { line: usize, at: Time, last: Time },
    #[error("event {event}, recorded at {at_ns} ns, comes before the one ahead of it, at {last_ns} ns")]
    Backwards { event: usize, at_ns: u64, last_ns: u64 },
    #[error("{modules} modules cannot be dealt out to {boards} hosts; name 1 to {modules}")]
    Boards { boards: usize, modules: usize },
    #[error(
        "host {board} of {boards} has no byte of event {event}, and the gateware makes no message of none; name fewer \
         hosts, leave such events out of the file, or set sender = \"software\""
    )]
    Without { event: usize, board: usize, boards: usize },
    #[error("host {board} has a fragment of {bytes} bytes in event {event}; allowed are fewer than 2^32")]
    TooLong { event: usize, board: usize, bytes: u64 },
    #[error("there are no events in the table")]
    Empty,
    #[error("no board sends a byte in any of the {events} events")]
    Silent { events: usize },
}

impl RecordedEvents {
    /// Reads a table of comma-separated values: a header `time_us,board0,board1,...`, then for every event its time and
    /// the bytes of each board, 0 for a board that sends nothing of it (zero suppression).
    ///
    /// # Errors
    /// [`RecordedError`] names the first line that cannot be replayed.
    pub fn from_csv(text: &str) -> Result<Self, RecordedError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or(RecordedError::Empty)?;
        let mut names = header.split(',').map(str::trim);
        let scale = match names.next() {
            Some("time_ps") => 1,
            Some("time_ns") => 1_000,
            Some("time_us") => 1_000_000,
            Some("time_ms") => 1_000_000_000,
            Some("time_s") => 1_000_000_000_000,
            _ => return Err(RecordedError::Header(header.to_owned())),
        };
        let boards: Vec<String> = names.map(str::to_owned).collect();
        if boards.is_empty() {
            return Err(RecordedError::Header(header.to_owned()));
        }
        let mut events = RecordedEvents { boards, times: Vec::new(), bytes: Vec::new() };
        for (index, line) in lines {
            events.add_line(index + 1, line, scale)?;
        }
        if events.times.is_empty() {
            return Err(RecordedError::Empty);
        }
        if events.bytes.iter().all(|bytes| *bytes == 0) {
            return Err(RecordedError::Silent { events: events.times.len() });
        }
        Ok(events)
    }

    /// Takes recorded camera events: the first at 0, the others as long after it as their modules counted; of each, every
    /// board sends a message with the modules whose index modulo the boards is its number; `message_len` gives the
    /// message's bytes, by event and board.
    ///
    /// # Errors
    /// [`RecordedError::Boards`], [`RecordedError::Backwards`], [`RecordedError::Without`], [`RecordedError::TooLong`].
    pub fn from_camera(
        camera: &Dataset,
        boards: Vec<String>,
        message_len: impl Fn(usize, usize) -> u64,
    ) -> Result<Self, RecordedError> {
        let modules = camera.modules();
        if boards.is_empty() || boards.len() > modules {
            return Err(RecordedError::Boards { boards: boards.len(), modules });
        }
        let mut bytes = Vec::with_capacity(camera.events() * boards.len());
        let mut times = Vec::with_capacity(camera.events());
        for event in 0..camera.events() {
            let (at_ns, last_ns) = (camera.time_ns(event), camera.time_ns(event.saturating_sub(1)));
            if at_ns < last_ns {
                return Err(RecordedError::Backwards { event, at_ns, last_ns });
            }
            times.push(Time::from_ns(at_ns - camera.time_ns(0)));
            for board in 0..boards.len() {
                let len = message_len(event, board);
                if len == 0 {
                    return Err(RecordedError::Without { event, board, boards: boards.len() });
                }
                bytes.push(u32::try_from(len).map_err(|_| RecordedError::TooLong { event, board, bytes: len })?);
            }
        }
        Ok(RecordedEvents { boards, times, bytes })
    }

    /// The same sizes at other times, in order; more events than were recorded repeat them.
    pub fn at_times(self, times: Vec<Time>) -> Self {
        RecordedEvents { times, ..self }
    }

    fn add_line(&mut self, line: usize, text: &str, scale: u64) -> Result<(), RecordedError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let expected = self.boards.len() + 1;
        if words.len() != expected {
            return Err(RecordedError::Columns { line, found: words.len(), expected });
        }
        let number = |column: &str, value: &str, unit, low, high| {
            let number = value.parse().ok().filter(|number| (low..=high).contains(number));
            let (column, value) = (column.to_owned(), value.to_owned());
            number.ok_or(RecordedError::Number { line, column, value, unit, low, high })
        };
        let at = Time(number("time", words[0], "its unit", 0, u64::MAX / scale)? * scale);
        if let Some(last) = self.times.last().copied().filter(|last| *last > at) {
            return Err(RecordedError::Order { line, at, last });
        }
        for (board, word) in self.boards.iter().zip(&words[1..]) {
            self.bytes.push(number(board, word, "bytes", 0, 1 << 31)? as u32);
        }
        self.times.push(at);
        Ok(())
    }

    /// Names of the boards, in the order of the columns.
    pub fn boards(&self) -> &[String] {
        &self.boards
    }

    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// Bytes of a board's fragment; 0: it has none.
    pub fn bytes(&self, event: usize, board: usize) -> u64 {
        u64::from(self.event(event)[board])
    }

    /// How many boards have a fragment of an event.
    pub fn fragments(&self, event: usize) -> u32 {
        self.event(event).iter().filter(|bytes| **bytes > 0).count() as u32
    }

    /// Bytes of all boards, of the recorded event that stands for this one.
    fn event(&self, event: usize) -> &[u32] {
        let boards = self.boards.len();
        &self.bytes[event * boards % self.bytes.len()..][..boards]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_times_and_sizes() {
        let events = RecordedEvents::from_csv("time_us, board1, board0\n3,10,20\n\n7,30,40\n").unwrap();
        assert_eq!(events.boards(), ["board1", "board0"]);
        assert_eq!(events.times(), [Time::from_us(3), Time::from_us(7)]);
        assert_eq!((events.bytes(0, 1), events.bytes(1, 0)), (20, 30));
        let sparse = RecordedEvents::from_csv("time_us,a,b,c\n1,0,7,0\n2,0,0,0\n3,1,1,1\n").unwrap();
        assert_eq!([0, 1, 2].map(|event| sparse.fragments(event)), [1, 0, 3]);
    }

    /// Recorded camera events, as the repository holds them.
    fn camera() -> Dataset {
        Dataset::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/lst1_run2008/modules.npz")).unwrap()
    }

    #[test]
    fn camera_events_come_when_their_modules_counted_and_every_module_is_sent_once() {
        let boards: Vec<String> = (0..3).map(|n| format!("board{n}")).collect();
        let camera = camera();
        let events =
            RecordedEvents::from_camera(&camera, boards, |event, board| 40 + camera.share_len(event, board, 3) as u64)
                .unwrap();
        // NumPy: counters[:, 0, 2:6].view("<u4") is 5163516, 5169111, ... and 5350614 at last, in ticks of 100 ns
        let [first, second, last] = [0, 1, 49].map(|event| events.times()[event]);
        assert_eq!(
            [first, second, last],
            [Time(0), Time::from_us(559) + Time::from_ns(500), Time::from_ns(18_709_800)]
        );
        for event in [0, 49] {
            assert_eq!([0, 1, 2].map(|board| events.bytes(event, board)), [89, 88, 88].map(|n| 40 + n * 1142));
        }
    }

    #[test]
    fn camera_events_are_refused_where_there_is_not_a_module_for_each_board() {
        for boards in [0, 266] {
            let error = RecordedEvents::from_camera(&camera(), vec![String::new(); boards], |_, _| 1).unwrap_err();
            assert_eq!(error, RecordedError::Boards { boards, modules: 265 });
        }
    }

    #[test]
    fn tables_that_cannot_be_replayed_are_refused_with_the_line() {
        let cases = ["", "board0\n", "time_us\n", "time_us,a\n", "time_us,a\n1\n", "time_us,a\n1,x\n"];
        let more = ["time_us,a\n1,-1\n", "time_us,a\n1,0\n", "time_us,a\n2,5\n1,5\n", "time_s,a\n99999999999,5\n"];
        let refuse = |text: &&str| RecordedEvents::from_csv(text).unwrap_err().to_string();
        let report: Vec<String> = cases.iter().chain(&more).map(refuse).collect();
        insta::assert_snapshot!(report.join("\n"));
    }
}
