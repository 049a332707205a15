// SPDX-License-Identifier: Apache-2.0
//! `[replay]`: recorded events, at the times of the recording or of a trigger, as the flows of their boards.
//! Promise: sizes are the recorded ones but for groups with their own; events repeat if there are more triggers than
//! events; camera events keep their bytes for a readout.
//! Source: RFC 4180 for tables, `penstock_recorded` for camera events.

use std::path::Path;
use std::sync::Arc;

use penstock_recorded::{Dataset, Triggers};

use super::files::read_text;
use super::traffic::{Boards, Traffic, MOST_EVENTS, SENDERS};
use crate::language::reader::Section;
use crate::scenario::{CameraEvents, Protocol, SenderKind};
use crate::units::{Frequency, Time};
use crate::workload::{EventList, FragmentSizes, RecordedEvents};

/// When the events of a recording come.
#[derive(Clone, Copy, PartialEq)]
enum Timing {
    Recorded,
    Poisson,
    Periodic,
}

const TIMINGS: [(&str, Timing); 3] =
    [("recorded", Timing::Recorded), ("poisson", Timing::Poisson), ("periodic", Timing::Periodic)];

impl Traffic<'_> {
    /// `[replay]`
    pub(super) fn replay(&mut self, mut section: Section) {
        if !section.exists() {
            return;
        }
        let path = section.path("file", "events.csv");
        let to = self.hosts(&mut section, "to", "server*");
        if self.events.is_some() {
            section.refuse_whole("there is a [triggers] already; events come from one of the two");
        }
        let camera = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("npz"));
        let (from, table) = match camera {
            true => (Some(self.hosts(&mut section, "from", "board*")), None),
            false => (None, Some(self.table(&mut section, &path))),
        };
        let (stagger, groups) = (section.read("stagger", Time::ZERO), section.sections("group"));
        let sender = section.choice("sender", SenderKind::Software, &SENDERS);
        let protocols = [("rc", Protocol::Rc), ("simple-tcp", Protocol::SimpleTcp)];
        let protocol = section.choice("protocol", Protocol::Rc, &protocols);
        let events = match from {
            Some(from) if from.is_empty() => Ok(None),
            Some(from) => self.camera_events(&path, &from, sender),
            None => table.transpose(),
        };
        match events {
            Ok(Some(events)) if !self.topology.nodes.is_empty() => {
                if let Some(events) = self.timed(&mut section, events, camera) {
                    self.replayed((&section, stagger, groups), &path, events, &to, (sender, protocol));
                }
            }
            Ok(other) => {
                self.timed(&mut section, other.unwrap_or_default(), camera);
            }
            Err(message) => {
                section.refuse("file", message);
                self.timed(&mut section, RecordedEvents::default(), camera);
            }
        }
        section.finish();
    }

    /// A table of times and sizes.
    fn table(&self, section: &mut Section, path: &Path) -> Result<RecordedEvents, String> {
        let from: Vec<String> = section.list("from");
        if !from.is_empty() {
            section.refuse("from", "leave it out: the columns of a table name its boards");
        }
        let text =
            read_text(self.read_file, path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        RecordedEvents::from_csv(&text).map_err(|error| format!("{}, {error}", path.display()))
    }

    /// Recorded camera events of an `.npz`, dealt out to these hosts.
    fn camera_events(
        &mut self,
        path: &Path,
        from: &[usize],
        sender: SenderKind,
    ) -> Result<Option<RecordedEvents>, String> {
        let bytes = (self.read_file)(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let dataset = Arc::new(Dataset::read(path, bytes).map_err(|error| error.to_string())?);
        let camera = CameraEvents { dataset, boards: from.len(), sender };
        let names = from.iter().map(|host| self.topology.name(*host).to_owned()).collect();
        let events =
            RecordedEvents::from_camera(&camera.dataset, names, |event, board| camera.fragment_bytes(event, board))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        self.recorded = Some(camera);
        Ok(Some(events))
    }

    /// The events at the times that the keys ask for.
    fn timed(&self, section: &mut Section, events: RecordedEvents, camera: bool) -> Option<RecordedEvents> {
        let timing = section.choice("trigger", Timing::Recorded, &TIMINGS);
        let rate = section.read("rate", Frequency::from_hz(10_000));
        let recorded = events.times().len() as u64;
        let count = section.optional::<u64>("events").unwrap_or(recorded);
        if rate.0 == 0 {
            section.refuse("rate", "allowed is more than 0Hz");
            return None;
        }
        if recorded == 0 {
            return None; // no file has none: this one could not be read, which has been said
        }
        let most = if timing == Timing::Recorded { recorded } else { MOST_EVENTS };
        if !(1..=most).contains(&count) {
            let repeated = "they repeat with another trigger than \"recorded\"";
            section.refuse("events", format!("allowed is 1 to {most}; the file has {recorded}; {repeated}"));
            return None;
        }
        let untimed = || events.times().windows(2).all(|pair| pair[0] == pair[1]);
        if camera && timing == Timing::Recorded && recorded > 1 && untimed() {
            let message = "the recording gives all events the same time; set trigger = \"poisson\" or \"periodic\"";
            section.refuse("file", message);
            return None;
        }
        let times: Vec<Time> = match timing {
            Timing::Recorded => events.times()[..count as usize].to_vec(),
            Timing::Poisson => {
                let mean = rate.period().max(Time::from_ps(1));
                Triggers::new(self.seed, mean).take(count as usize).collect()
            }
            Timing::Periodic => (0..count).map(|n| rate.period() * n).collect(),
        };
        Some(events.at_times(times))
    }

    /// The flows of the boards that recorded the events.
    fn replayed(
        &mut self,
        (section, stagger, groups): (&Section, Time, Vec<Section>),
        path: &Path,
        events: RecordedEvents,
        to: &[usize],
        by: (SenderKind, Protocol),
    ) {
        let boards = events.boards();
        let nodes: Result<Vec<usize>, _> = boards.iter().map(|board| self.topology.expect_node(board)).collect();
        let twice = boards.iter().enumerate().find(|(index, board)| boards[..*index].contains(board));
        if let Some((_, board)) = twice {
            section.refuse("file", format!("{}: two columns are called {board}", path.display()));
        }
        match nodes {
            Ok(from) => {
                let times = events.times().to_vec();
                let list =
                    EventList { times, sizes: FragmentSizes::Recorded(events), loads: None, stagger: Time::ZERO };
                let boards = Boards { stagger, ..self.boards(groups, from, self.recorded.is_some()) };
                self.event_flows(section, list, boards, to, by);
            }
            Err(error) => section.refuse("file", format!("{}: {error}", path.display())),
        }
    }
}
