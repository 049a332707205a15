// SPDX-License-Identifier: Apache-2.0
//! The feed of one page: server-sent events with the manifest, the rows, the settings and the progress of a run.
//! Promise: every row is sent once and in order, also after a lost connection; a slow page delays neither the run nor
//! other pages.
//! Source: WHATWG HTML, server-sent events; docs/live.md has the events.

use crate::recording::{lock, Recording, Shared};
use axum::body::Bytes;
use futures_util::stream::{unfold, Stream};
use serde::Serialize;
use std::convert::Infallible;
use std::time::Duration;

/// Updates of a page per second: 20.
const TICK: Duration = Duration::from_millis(50);
/// Progress is sent at least this often: a page without messages for longer has lost its connection.
const HEARTBEAT_TICKS: u32 = 10;
/// Most values of one event.
const CHUNK_VALUES: usize = 1 << 16;

/// The progress of one page in the feed.
pub(crate) struct Feed {
    shared: Shared,
    /// Identifies one run of the program.
    run: String,
    greeted: bool,
    generation: u64,
    row: usize,
    steered: Option<u64>,
    ended: bool,
    silent_ticks: u32,
    /// More waits than the last event could hold.
    hurry: bool,
}

/// Rows `from` on, one array a column.
#[derive(Serialize)]
struct Rows {
    from: usize,
    values: Vec<Vec<f64>>,
}

impl Feed {
    /// `seen`: run, generation and row that a page which comes back has; from any other it begins anew.
    pub(crate) fn new(shared: Shared, run: &str, seen: Option<(&str, u64, usize)>) -> Self {
        let mut feed = Self {
            shared,
            run: run.to_owned(),
            greeted: false,
            generation: 0,
            row: 0,
            steered: None,
            ended: false,
            silent_ticks: HEARTBEAT_TICKS,
            hurry: true,
        };
        if let Some((_, generation, row)) = seen.filter(|(of_run, ..)| *of_run == run) {
            let recording = lock(&feed.shared);
            if generation == recording.generation() && row <= recording.rows() {
                (feed.generation, feed.row) = (generation, row);
            }
        }
        feed
    }

    /// The events, as they fall due.
    pub(crate) fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, |mut feed| async move {
            loop {
                if !feed.hurry {
                    tokio::time::sleep(TICK).await;
                }
                let text = feed.next_text();
                if !text.is_empty() {
                    return Some((Ok(Bytes::from(text)), feed));
                }
            }
        })
    }

    /// The changes since the last call.
    fn next_text(&mut self) -> String {
        let shared = self.shared.clone();
        let recording = lock(&shared);
        let mut text = String::new();
        if !self.greeted || self.generation != recording.generation() {
            if self.generation != recording.generation() {
                (self.generation, self.row) = (recording.generation(), 0);
            }
            self.greeted = true;
            self.hello(&recording, &mut text);
        }
        if self.steered != Some(recording.steered()) {
            self.steered = Some(recording.steered());
            event(&mut text, "settings", &recording.settings);
            event(&mut text, "applied", &recording.applied);
        }
        let ended = recording.summary.is_some();
        self.silent_ticks += 1;
        let (from, rows) = (self.row, recording.rows());
        let to = rows.min(from + (CHUNK_VALUES / recording.manifest.columns.max(1)).max(1));
        let values = recording.slice(from, to);
        if self.silent_ticks >= HEARTBEAT_TICKS || to > from || ended != self.ended {
            self.silent_ticks = 0;
            event(&mut text, "progress", &recording.progress);
        }
        // The summary is sent after all rows.
        let summary = (ended && !self.ended && to == rows).then(|| recording.summary.clone());
        drop(recording);

        if to > from {
            event(&mut text, "rows", &Rows { from, values });
            self.row = to;
        }
        if let Some(summary) = summary {
            self.ended = true;
            event(&mut text, "summary", &summary);
        }
        self.hurry = to < rows;
        text
    }

    fn hello(&self, recording: &Recording, text: &mut String) {
        #[derive(Serialize)]
        struct Hello<'a> {
            run: &'a str,
            generation: u64,
            /// Rows that the page has already and shall keep.
            rows: usize,
            stride: u64,
            manifest: &'a crate::manifest::Manifest,
        }
        let (rows, stride) = (self.row, recording.stride());
        let hello = Hello { run: &self.run, generation: self.generation, rows, stride, manifest: &recording.manifest };
        event(text, "hello", &hello);
    }
}

/// Adds an event. JSON has no line breaks here, so one `data:` line holds it; a value that is missing is `null`.
fn event(text: &mut String, name: &str, data: &impl Serialize) {
    let json = serde_json::to_string(data).unwrap_or_else(|_| "null".into());
    text.push_str("event: ");
    text.push_str(name);
    text.push_str("\ndata: ");
    text.push_str(&json);
    text.push_str("\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Settings;
    use crate::manifest::Manifest;
    use crate::recording::Recorder;

    fn names(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }

    fn data<'a>(text: &'a str, name: &str) -> &'a str {
        let start = text.find(&format!("event: {name}\n")).unwrap_or_else(|| panic!("no {name} in {text}"));
        text[start..].lines().nth(1).unwrap().strip_prefix("data: ").unwrap()
    }

    fn run_of(rows: u64) -> Shared {
        let manifest = Manifest { interval_ps: 10, columns: 1, ..Manifest::default() };
        let shared = Recording::new(manifest, Settings::default()).shared();
        let mut recorder = Recorder::new(shared.clone(), 0);
        for row in 0..rows {
            recorder.record(row * 10, 0, row as f64);
        }
        recorder.finish();
        shared
    }

    #[test]
    fn a_new_page_gets_everything_in_order() {
        let shared = run_of(3);
        lock(&shared).summary = Some(serde_json::json!({"end": "done"}));
        let text = Feed::new(shared, "r1", None).next_text();
        assert_eq!(names(&text), ["hello", "settings", "applied", "progress", "rows", "summary"]);
        assert_eq!(data(&text, "rows"), r#"{"from":0,"values":[[0.0,1.0,2.0]]}"#);
    }

    #[test]
    fn a_page_that_comes_back_gets_only_what_it_missed() {
        let text = Feed::new(run_of(5), "r1", Some(("r1", 0, 3))).next_text();
        assert_eq!(data(&text, "rows"), r#"{"from":3,"values":[[3.0,4.0]]}"#);
    }

    #[test]
    fn a_page_of_another_run_begins_anew() {
        for seen in [("r0", 0, 3), ("r1", 7, 3), ("r1", 0, 99)] {
            let text = Feed::new(run_of(5), "r1", Some(seen)).next_text();
            assert!(data(&text, "rows").starts_with(r#"{"from":0,"#), "{seen:?}: {text}");
        }
    }

    #[test]
    fn nothing_new_is_silence_with_a_heartbeat() {
        let mut feed = Feed::new(run_of(1), "r1", None);
        feed.next_text();
        let beats: usize = (0..30).map(|_| names(&feed.next_text()).len()).sum();
        assert_eq!(beats, 3);
    }

    #[test]
    fn thinned_rows_are_sent_again_from_the_first() {
        let shared = run_of(4);
        let mut feed = Feed::new(shared.clone(), "r1", None);
        feed.next_text();
        lock(&shared).thin();
        let text = feed.next_text();
        assert!(data(&text, "hello").contains(r#""rows":0,"stride":2"#), "{text}");
        assert_eq!(data(&text, "rows"), r#"{"from":0,"values":[[0.0,2.0]]}"#);
    }

    #[test]
    fn missing_values_are_null() {
        let shared = run_of(0);
        let mut recorder = Recorder::new(shared.clone(), 0);
        recorder.record(15, 0, 1.0);
        recorder.finish();
        let text = Feed::new(shared, "r1", None).next_text();
        assert_eq!(data(&text, "rows"), r#"{"from":0,"values":[[null,1.0]]}"#);
    }
}
