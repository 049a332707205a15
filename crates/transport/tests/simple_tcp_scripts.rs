// SPDX-License-Identifier: Apache-2.0
//! The rules of the simplified TCP as scripts, in the manner of packetdrill: `scripts/*.pkt`, each with its clause.
//! Promise: every segment that a stream sends is listed in the script with its time.
//!
//! A line is a time in milliseconds and an event:
//!
//! ```text
//! set NAME VALUE             a parameter, before the first time (times in ms, switches on or off)
//! 0 open [ISS]               the user opens
//! 0 write BYTES | abort      the user writes, or ends the connection
//! 0 < S. 0(0) ack 1 win 100 mss 1460 wscale 7     a segment comes
//! 0 < icmp 1001 mss 500      a router's message about a segment
//! 0 > . 1(1000) ack 1        a segment is sent: it must be the next one
//! 0 done BYTES               number of the user's bytes acknowledged so far
//! 0 end WORD                 how the connection has ended
//! 0 count NAME N             value of a counter so far
//! ```
//!
//! Flags are S, F, R, P and `.` for ACK. Sequence numbers are relative to the initial one of their side; a segment
//! without the ACK flag, such as some RSTs, shows no acknowledgement number.

use std::fmt::Write;
use std::path::Path;

use penstock_transport::simple_tcp::{step, Actions, Arrival, Counts, End, Event, Outgoing, Parameters, Row};
use penstock_wire::{SynOptions, TcpFlags};

const FLAGS: [(char, TcpFlags); 5] =
    [('S', TcpFlags::SYN), ('F', TcpFlags::FIN), ('R', TcpFlags::RST), ('P', TcpFlags::PSH), ('.', TcpFlags::ACK)];
/// The peer's initial sequence number: its numbers wrap within the scripts, too.
const IRS: u32 = u32::MAX - 1;
const COUNTS: [(&str, Counts); 14] = [
    ("segment", Counts::SEGMENT),
    ("retransmitted", Counts::RETRANSMITTED),
    ("timeout", Counts::TIMEOUT),
    ("fast-retransmit", Counts::FAST_RETRANSMIT),
    ("duplicate-ack", Counts::DUPLICATE_ACK),
    ("probe", Counts::PROBE),
    ("challenge", Counts::CHALLENGE),
    ("out-of-window", Counts::OUT_OF_WINDOW),
    ("bad-ack", Counts::BAD_ACK),
    ("bad-option", Counts::BAD_OPTION),
    ("peer-data", Counts::PEER_DATA),
    ("ignored", Counts::IGNORED),
    ("path-mtu", Counts::PATH_MTU),
    ("window-closed", Counts::WINDOW_CLOSED),
];

struct Script {
    parameters: Parameters,
    row: Row,
    now: u32,
    iss: u32,
    done: u64,
    end: Option<End>,
    counts: [u64; Counts::KINDS],
    pending: bool,
}

impl Script {
    fn step(&mut self, event: Event) -> Actions {
        let (row, actions) = step(&self.row, &self.parameters, self.now, event);
        self.row = row;
        self.done += u64::from(actions.acknowledged);
        self.end = actions.ended.or(self.end);
        self.pending = actions.transmit_pending;
        for (bit, count) in self.counts.iter_mut().enumerate() {
            *count += u64::from(actions.counts.0 >> bit & 1);
        }
        actions
    }

    /// Time goes on to `until`; whatever would be sent before it is an error.
    fn advance(&mut self, until: u32) -> Result<(), String> {
        while self.now != until {
            if self.pending {
                return Err(format!("sends {} without being told", self.poll()));
            }
            let due = self.row.timer_on.then_some(self.row.deadline).filter(|at| (until.wrapping_sub(*at) as i32) >= 0);
            self.now = due.unwrap_or(until);
            self.step(Event::Tick);
        }
        Ok(())
    }

    fn poll(&mut self) -> String {
        self.step(Event::Transmit).send.map_or_else(|| "nothing".to_owned(), |sent| self.show(&sent))
    }

    fn show(&self, sent: &Outgoing) -> String {
        let flags: String = FLAGS.iter().filter(|flag| sent.flags.contains(flag.1)).map(|flag| flag.0).collect();
        let mut text = format!("> {flags} {}({})", sent.seq.wrapping_sub(self.iss), sent.len);
        if sent.flags.contains(TcpFlags::ACK) {
            write!(text, " ack {}", sent.ack.wrapping_sub(IRS)).unwrap();
        }
        text
    }

    fn set(&mut self, name: &str, value: &str) {
        let number = || value.parse::<u32>().expect("a number");
        let switch = || ["off", "on"].iter().position(|word| *word == value).expect("on or off") == 1;
        let p = &mut self.parameters;
        match name {
            "mss" => p.mss = number() as u16,
            "receive_window" => p.receive_window = number() as u16,
            "nagle" => p.nagle = switch(),
            "back_off" => p.back_off = switch(),
            "adaptive" => p.adaptive = switch(),
            "rto_initial" => p.rto_initial = number() * 1000,
            "rto_min" => p.rto_min = number() * 1000,
            "rto_max" => p.rto_max = number() * 1000,
            "give_up" => p.give_up = number() as u8,
            "challenge_interval" => p.challenge_interval = number() * 1000,
            _ => panic!("no parameter {name}"),
        }
    }

    /// `S. 0(0) ack 1 win 100 mss 1460 wscale 7`
    fn arrival(&self, words: &[&str]) -> Arrival {
        let flags = words[0].chars().map(|c| FLAGS.iter().find(|flag| flag.0 == c).expect("a flag").1);
        let (seq, len) = words[1].trim_end_matches(')').split_once('(').expect("seq(len)");
        let value = |name: &str| {
            let at = words.iter().position(|word| *word == name);
            at.map(|at| words[at + 1].parse::<u32>().expect("a number"))
        };
        let options = SynOptions {
            mss: value("mss").map(|mss| mss as u16),
            window_scale: value("wscale").map(|scale| scale as u8),
            malformed: words.contains(&"malformed"),
        };
        Arrival {
            seq: IRS.wrapping_add(seq.parse().expect("a number")),
            ack: value("ack").map_or(0, |ack| self.iss.wrapping_add(ack)),
            flags: flags.fold(TcpFlags::default(), TcpFlags::with),
            window: value("win").unwrap_or(0) as u16,
            len: len.parse().expect("a number"),
            options,
        }
    }

    fn line(&mut self, words: &[&str]) -> Result<(), String> {
        if words[0] == "set" {
            self.set(words[1], words[2]);
            return Ok(());
        }
        let at: f64 = words[0].parse().expect("a time");
        let first = self.row == Row::default() && self.now == 0;
        self.advance((at * 1000.0).round() as u32)?;
        let expects = matches!(words[1], ">" | "done" | "end" | "count");
        if self.pending && !expects && !first {
            return Err(format!("sends {} without being told", self.poll()));
        }
        let number = |n: usize| words[n].parse::<u64>().expect("a number");
        let equal = |is: String, expected: String| match is == expected {
            true => Ok(()),
            false => Err(format!("is {is}, wanted {expected}")),
        };
        match words[1] {
            "open" => {
                self.iss = words.get(2).map_or(1_000_000, |iss| iss.parse().expect("a number"));
                self.step(Event::Open { iss: self.iss });
            }
            "write" => drop(self.step(Event::Written { bytes: number(2) as u32 })),
            "abort" => drop(self.step(Event::Abort)),
            "<" if words[2] == "icmp" => {
                let seq = self.iss.wrapping_add(number(3) as u32);
                self.step(Event::PathMtu { seq, mss: number(5) as u16 });
            }
            "<" => {
                let arrival = self.arrival(&words[2..]);
                self.step(Event::Segment(arrival));
            }
            ">" => return equal(self.poll(), words[1..].join(" ")),
            "done" => return equal(self.done.to_string(), words[2].to_owned()),
            "end" => return equal(format!("{:?}", self.end), format!("Some({})", words[2])),
            "count" => {
                let kind = COUNTS.iter().find(|count| count.0 == words[2]).expect("a count").1;
                return equal(self.counts[kind.0.trailing_zeros() as usize].to_string(), words[3].to_owned());
            }
            other => panic!("no line {other}"),
        }
        Ok(())
    }
}

fn run(name: &str, text: &str) {
    assert!(text.lines().any(|line| line.starts_with("# RFC ") || line.starts_with("# CMS-TCP")), "{name}: no clause");
    let parameters = Parameters { mss: 1000, challenge_interval: 0, ..Parameters::default() };
    let mut script = Script {
        parameters,
        row: Row::default(),
        now: 0,
        iss: 0,
        done: 0,
        end: None,
        counts: [0; Counts::KINDS],
        pending: false,
    };
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            if let Err(error) = script.line(&words) {
                panic!("{name}:{}: `{}`: {error}\n{:?}", number + 1, line.trim(), script.row);
            }
        }
    }
    assert!(!script.pending, "{name}: sends {} at its end", script.poll());
    script.parameters.checked().unwrap_or_else(|error| panic!("{name}: {error}"));
}

#[test]
fn every_script_meets_its_clauses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 20, "{} scripts", files.len());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        run(&name, &std::fs::read_to_string(&file).unwrap());
    }
}
