// SPDX-License-Identifier: Apache-2.0
//! The live page of physical boards: what each look has found, and registers that are changed from it.
//! Promise: a control is a `penstock ctl set`: all of it is checked before anything is written, with the same refusals,
//! the same journal and the same respect for another operator. A control that some boards did not take is answered with
//! what they did not do, and what the others took stands in the page's log.

use super::super::arguments::WriteArguments;
use super::super::faults::Faults;
use super::super::session::Session;
use super::super::set;
use super::look::{Looks, Read};
use penstock_cc::DcqcnSettings;
use penstock_cli_common::live::Page;
use penstock_cli_common::outcome::Failure;
use penstock_dashboard::{
    Applied, Control, ControlError, Manifest, Parameter, Recorder, Scope, Sender, Series, Settings,
};
use penstock_ipbus::change::BoardSettings;
use penstock_ipbus::map::{find, Place};
use penstock_ipbus::regs::counters::ALL;
use penstock_ipbus::{Identity, Request};
use penstock_units::Time;
use std::collections::BTreeMap;
use std::sync::{LazyLock, PoisonError};

/// More boards than these are in the metrics only.
const SENDERS: usize = 128;

// Columns of a board.
const THROUGHPUT: usize = 0;
const CURRENT: usize = 1;
const TARGET: usize = 2;
const ALPHA: usize = 3;
const CNPS: usize = 4;
const COUNTED: usize = 5;
/// Counters of the map that the page has.
const COUNTERS: [&str; 4] = ["messages_done", "qp_errors", "rx_fcs_errors", "tx_dropped"];
const COLUMNS: usize = COUNTED + COUNTERS.len();

/// Registers that the page's controls name. `POST /control` takes the name of any register.
static REGISTERS: LazyLock<Vec<Parameter>> = LazyLock::new(|| {
    let of_register = |parameter: &penstock_cc::Parameter| Parameter {
        key: parameter.register,
        label: parameter.label,
        help: parameter.help,
        scope: Scope::Sender,
        choices: if parameter.choices == ["false", "true"] { &["0", "1"] } else { parameter.choices },
    };
    DcqcnSettings::PARAMETERS.iter().map(of_register).collect()
});

/// What the page shows.
pub fn manifest(session: &Session, interval: Time, read_only: bool) -> Manifest {
    let sender = |board: usize| {
        let column = |at: usize| board * COLUMNS + at;
        let series: Series = [
            ("throughput", column(THROUGHPUT)),
            ("rate_current", column(CURRENT)),
            ("rate_target", column(TARGET)),
            ("alpha", column(ALPHA)),
            ("cnp_handled", column(CNPS)),
        ]
        .into();
        let counters: Series = COUNTERS.iter().enumerate().map(|(at, name)| (*name, column(COUNTED + at))).collect();
        let line = session.boards[board].identity.as_ref().map_or(0.0, |of| of.line_rate().bits_per_second() as f64);
        Sender { name: session.address(board).to_string(), series, counters, link_bps: line, share_bps: line }
    };
    let (all, shown) = (session.boards.len(), session.boards.len().min(SENDERS));
    let mut notes = vec![
        "Throughput is acknowledged payload of all queue pairs and TCP streams of a board; rates and alpha are those of \
         queue pair 0."
            .to_owned(),
    ];
    if shown < all {
        notes.push(format!("The first {shown} of {all} boards are shown; the metrics have all."));
    }
    Manifest {
        title: format!("{all} boards"),
        kind: "board",
        interval_ps: interval.as_ps(),
        senders: (0..shown).map(sender).collect(),
        all_senders: all,
        throughput: "payload",
        parameters: if read_only { Vec::new() } else { REGISTERS.to_vec() },
        notes,
        columns: shown * COLUMNS,
        ..Manifest::default()
    }
}

/// The page, and what it knows of the looks before.
pub struct BoardsPage {
    page: Page,
    recorder: Recorder,
    /// When each board was looked at before, and its acknowledged bytes then.
    before: Vec<Option<(Time, u64)>>,
    /// What the controls' registers hold.
    settings: Settings,
    begin: Time,
}

impl BoardsPage {
    pub fn new(page: Page, session: &Session) -> Self {
        let recorder = Recorder::new(page.recording().clone(), 0);
        let shown = session.boards.len().min(SENDERS);
        let settings = Settings { senders: vec![BTreeMap::new(); shown], ..Settings::default() };
        BoardsPage { page, recorder, before: vec![None; shown], settings, begin: session.fleet.now() }
    }

    fn now(&self, session: &Session) -> Time {
        session.fleet.now().saturating_sub(self.begin)
    }

    /// Records what is new in a look, and gives the page what the registers hold now.
    pub fn look(&mut self, session: &Session, looks: &Looks) {
        let now = self.now(session);
        for (board, before) in self.before.iter_mut().enumerate() {
            let Some(read) = &looks.boards[board].1 else {
                *before = None;
                self.settings.senders[board].clear();
                continue;
            };
            if before.is_some_and(|(at, _)| at == read.at) {
                continue;
            }
            for (column, value) in values(read, before) {
                self.recorder.record(now.as_ps(), board * COLUMNS + column, value);
            }
            if let (Ok(identity), false) = (&session.boards[board].identity, read.controls.is_empty()) {
                self.settings.senders[board] = shown(identity, &read.controls);
            }
        }
        let mut recording = self.page.recording().lock().unwrap_or_else(PoisonError::into_inner);
        if recording.settings != self.settings {
            recording.set(self.settings.clone());
        }
        recording.progress.silent = silent(session, looks);
        drop(recording);
        self.page.advance(now, now.as_ps() / 1_000_000_000_000, 0, &std::sync::atomic::AtomicBool::new(false));
    }

    /// Applies the controls that wait.
    pub fn handle(&mut self, session: &mut Session, looks: &mut Looks, write: &WriteArguments) -> Result<(), Failure> {
        while let Some(request) = self.page.poll_request() {
            let at_ps = self.now(session).as_ps();
            let done = apply(session, &request.control, write, at_ps);
            let ((boards, applied), answer) = done.unwrap_or_else(|why| ((Vec::new(), None), Err(why)));
            looks.overtake(&boards);
            if let Some(applied) = applied {
                self.read_again(session, &boards)?;
                let settings = self.settings.clone();
                self.page.recording().lock().unwrap_or_else(PoisonError::into_inner).steer(settings, applied);
            }
            request.answer(answer);
        }
        Ok(())
    }

    /// Reads the controls of boards that were written to.
    fn read_again(&mut self, session: &mut Session, boards: &[usize]) -> Result<(), Failure> {
        let of = |board: &usize| Some((*board, *session.boards.get(*board)?.identity.as_ref().ok()?));
        let fit: Vec<(usize, Identity)> =
            boards.iter().filter(|board| **board < self.before.len()).filter_map(of).collect();
        let request = |(board, identity): &(usize, Identity)| -> (usize, Request) {
            (*board, Request::reads(controls(*board, identity).iter().flat_map(Place::addresses)))
        };
        let requests: Vec<_> = fit.iter().map(request).collect();
        for ((board, identity), outcome) in fit.iter().zip(session.run(&requests)?) {
            let Ok(words) = outcome else { continue };
            let words: Vec<u32> = words.into_iter().flatten().collect();
            self.settings.senders[*board] = shown(identity, &words);
        }
        Ok(())
    }

    /// Tells the page that no more comes.
    pub fn end(&self, session: &Session) {
        let now = self.now(session);
        let summary = serde_json::json!({ "boards": session.boards.len() });
        self.page.end("interrupted", now, (now.as_ps() / 1_000_000_000_000, 0), &summary);
    }
}

/// Every board without values, those included that the page does not show.
fn silent(session: &Session, looks: &Looks) -> Vec<String> {
    let boards = session.boards.iter().zip(&looks.boards).filter(|(_, (_, read))| read.is_none());
    boards
        .map(|(board, (name, _))| match &board.identity {
            Ok(_) => format!("{name}: it has not answered yet"),
            Err(why) => format!("{name}: {why}"),
        })
        .collect()
}

/// Columns of a board and their values.
fn values(read: &Read, before: &mut Option<(Time, u64)>) -> Vec<(usize, f64)> {
    let of_streams = read.streams.iter().map(|stream| stream.bytes_acked);
    let bytes = read.queue_pairs.iter().map(|qp| qp.bytes_acked).chain(of_streams).fold(0u64, u64::wrapping_add);
    let mut values = Vec::new();
    let now = read.at;
    if let Some((then, had)) = before.replace((now, bytes)) {
        // Counts that go back are those of a board that was reset.
        if let Some(more) = bytes.checked_sub(had).filter(|_| now > then) {
            values.push((THROUGHPUT, more as f64 * 8.0 / (now.saturating_sub(then)).as_secs_f64()));
        }
    }
    if let Some(qp) = read.queue_pairs.first() {
        values.push((CURRENT, qp.rate_current_bps as f64));
        values.push((TARGET, qp.rate_target_bps as f64));
        values.push((ALPHA, qp.alpha));
        values.push((CNPS, f64::from(qp.notifications)));
    }
    for (at, name) in COUNTERS.iter().enumerate() {
        let counter = ALL.iter().position(|(other, _)| other == name).and_then(|place| read.counters.get(place));
        values.extend(counter.map(|count| (COUNTED + at, f64::from(*count))));
    }
    values
}

/// The registers of the controls of a board that is shown, in their order.
pub fn controls(board: usize, identity: &Identity) -> Vec<Place> {
    match board < SENDERS {
        true => of_controls(identity).map(|(_, place)| place).collect(),
        false => Vec::new(),
    }
}

fn of_controls(identity: &Identity) -> impl Iterator<Item = (&'static str, Place)> {
    let build = identity.build;
    let of = move |parameter: &'static Parameter| {
        let key = parameter.key;
        find(key, build).unwrap_or_default().into_iter().map(move |place| (key, place))
    };
    REGISTERS.iter().flat_map(of)
}

/// What the registers of the controls hold, as text: of several copies with different values, all of these.
fn shown(identity: &Identity, words: &[u32]) -> BTreeMap<String, String> {
    let mut rest = words;
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, place) in of_controls(identity) {
        let (words, more) = rest.split_at(place.addresses().count());
        rest = more;
        let text = place.show(place.number(words), identity.scale());
        let texts = found.entry(key).or_default();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    found.into_iter().map(|(key, texts)| (key.to_owned(), texts.join(", "))).collect()
}

/// Which boards a control has changed, what it has done if anything, and its answer.
type Done = ((Vec<usize>, Option<Applied>), Result<(), ControlError>);

fn apply(session: &mut Session, control: &Control, write: &WriteArguments, at_ps: u64) -> Result<Done, ControlError> {
    let boards = chosen(session, control)?;
    let assignments: Vec<(String, String)> =
        control.set.iter().map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect();
    let settings = boards.iter().map(|board| {
        let found = set::settings_of(session, *board, &assignments);
        found
            .map(|settings| BoardSettings { board: *board, settings })
            .map_err(|why| ControlError::Refused(format!("{}: {why}", session.address(*board))))
    });
    let settings: Vec<_> = settings.collect::<Result<_, _>>()?;
    let refused = |why: Failure| match why {
        Failure::Refused(why) | Failure::Fault(why) => ControlError::Refused(why),
    };
    let mut faults = Faults::default();
    let plans = session.plan(&settings, &mut faults).map_err(refused)?;
    let good = session.carry_out(&plans, write, &mut faults).map_err(refused)?;
    let registers = plans.iter().find(|plan| good.contains(&plan.board));
    let registers: Vec<(u32, u32)> =
        registers.map_or(Vec::new(), |plan| plan.words.iter().map(|word| (word.address, word.new)).collect());
    let senders = good.iter().map(|board| session.address(*board).to_string()).collect();
    let applied = (!good.is_empty()).then(|| Applied { at_ps, senders, set: control.set.clone(), registers });
    let answer = match faults.0.is_empty() {
        true => Ok(()),
        false => {
            faults.print();
            let lines = faults.0.iter().map(|fault| match &fault.register {
                Some(register) => format!("{}: {register}: {}", fault.board, fault.message),
                None => format!("{}: {}", fault.board, fault.message),
            });
            Err(ControlError::Refused(lines.collect::<Vec<_>>().join("; ")))
        }
    };
    Ok(((good, applied), answer))
}

/// The boards that a control names, or all that answer.
fn chosen(session: &Session, control: &Control) -> Result<Vec<usize>, ControlError> {
    if control.senders.is_empty() {
        return match session.fit().map(|(board, _)| board).collect::<Vec<_>>() {
            boards if boards.is_empty() => Err(ControlError::Refused("no board answers".to_owned())),
            boards => Ok(boards),
        };
    }
    let find = |name: &String| {
        let board = (0..session.boards.len()).find(|board| session.address(*board).to_string() == *name);
        let board = board.ok_or_else(|| ControlError::UnknownSender(name.clone()))?;
        match &session.boards[board].identity {
            Ok(_) => Ok(board),
            Err(why) => Err(ControlError::Refused(format!("{name}: {why}"))),
        }
    };
    control.senders.iter().map(find).collect()
}
