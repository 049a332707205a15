// SPDX-License-Identifier: Apache-2.0
//! The cases: few boards of many, events of unequal fragments, boards that come and go, narrow and long links, other
//! traffic. Sizes and times are drawn from streams of fixed seeds.

use std::fmt::Write;

use penstock_netsim::{Stream, Time};

/// What is compared with the ideal.
#[derive(Clone, Copy)]
pub enum Measure {
    /// Completion of 99 % of the events: 1.2 times the ideal, or 100 us more; the server's line in Gb/s.
    Events { line: u64 },
    /// Completion of 99 % of the messages: twice the ideal.
    Messages,
    /// Payload of the flows with this name from a time on: a part of what the way carries, both in Gb/s on the wire.
    Goodput { of: &'static str, from: Time, carries: f64, least: f64 },
}

pub struct Case {
    pub name: String,
    pub text: String,
    /// Events for `[replay]`.
    pub table: String,
    pub measure: Measure,
}

pub const STAR: &str = "[topology]\nkind = \"star\"\n";
pub const START: Time = Time::ZERO;

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    few_of_many(&mut cases);
    events(&mut cases);
    changing(&mut cases);
    paths(&mut cases);
    beside_other_traffic(&mut cases);
    cases
}

pub fn case(name: impl Into<String>, text: impl Into<String>, measure: Measure) -> Case {
    Case { name: name.into(), text: text.into(), table: String::new(), measure }
}

fn few_of_many(cases: &mut Vec<Case>) {
    for (boards, senders, line) in [
        (64, 1, 10),
        (64, 3, 10),
        (64, 16, 10),
        (64, 64, 10),
        (256, 1, 10),
        (256, 16, 10),
        (256, 64, 100),
        (1000, 3, 25),
    ] {
        let text = format!(
            "{STAR}boards = {boards}\n[link.server]\nrate = \"{line}Gbps\"\n[run]\ntime_limit = \"1ms\"\n\
             [[flow]]\nfrom = \"board{{0..{}}}\"\nmessage = \"60KB\"\n",
            senders - 1
        );
        let carries = f64::from(line.min(10 * senders));
        let measure = Measure::Goodput { of: "board", from: START, carries, least: 0.95 };
        cases.push(case(format!("{senders} of {boards} into {line}G, first ms"), text, measure));
    }
}

/// How the bytes of an event are spread over the boards.
#[derive(Clone, Copy)]
pub enum Spread {
    Equal,
    ZipfFixed,
    ZipfDrawn,
    Hot,
    Sparse,
}

fn events(cases: &mut Vec<Case>) {
    let spreads = [
        ("equal", Spread::Equal),
        ("zipf by board", Spread::ZipfFixed),
        ("zipf by event", Spread::ZipfDrawn),
        ("hot spots", Spread::Hot),
        ("sparse", Spread::Sparse),
    ];
    for (boards, line, servers) in [(96, 10, 1), (160, 100, 1), (96, 10, 4)] {
        for (name, spread) in spreads {
            for load in [50, 80, 95] {
                let name = format!("{name} {boards}x{servers} {line}G {load} %");
                cases.push(event_case(name, spread, (boards, line, servers, load), 400));
            }
        }
    }
}

pub fn event_case(
    name: String,
    spread: Spread,
    (boards, line, servers, load): (usize, u64, u64, u64),
    events: usize,
) -> Case {
    const MEAN: f64 = 1_100.0;
    let mut random = Stream::new(7, &name);
    // Headers of a packet of 1.1 kB: 86 of a response.
    let wire = boards as f64 * (MEAN + 86.0) * 8.0;
    let period_ps = wire / (line as f64 * 1e9 * servers as f64 * load as f64 / 100.0) * 1e12;
    let mut table = "time_ps".to_owned();
    (0..boards).for_each(|board| write!(table, ",board{board}").unwrap());
    let weight = |rank: usize| ((rank + 1) as f64).powf(-0.7);
    let total: f64 = (0..boards).map(weight).sum();
    let mut now = 0;
    for _ in 0..events {
        now += random.exponential(Time(period_ps as u64)).as_ps();
        write!(table, "\n{now}").unwrap();
        let turn = random.next_u32() as usize;
        for board in 0..boards {
            let bytes = match spread {
                Spread::Equal => MEAN,
                Spread::ZipfFixed => MEAN * boards as f64 * weight(board) / total,
                // A permutation that is another one in each event.
                Spread::ZipfDrawn => {
                    let rank = (board * (2 * (turn % 41) + 1) + turn / 64) % boards;
                    MEAN * boards as f64 * weight(rank) / total
                }
                Spread::Hot => MEAN / 1.95 * if board % 20 == 3 { 20.0 } else { 1.0 },
                Spread::Sparse if (board + turn).is_multiple_of(12) => MEAN * 12.0,
                Spread::Sparse => 0.0,
            };
            write!(table, ",{}", bytes as u64).unwrap();
        }
    }
    let text = format!(
        "{STAR}boards = {boards}\nservers = {servers}\n[link.server]\nrate = \"{line}Gbps\"\n[replay]\n\
         [run]\ntime_limit = \"2s\"\n[switch]\nbuffer = \"12MB\"\n"
    );
    Case { name, text, table, measure: Measure::Events { line } }
}

fn changing(cases: &mut Vec<Case>) {
    let goodput = |from, least| Measure::Goodput { of: "board", from, carries: 10.0, least };
    let mut text = format!("{STAR}boards = 60\n[run]\ntime_limit = \"22ms\"\n");
    for (group, start) in [(0, 0), (1, 4), (2, 8), (3, 12)] {
        let (first, last) = (group * 15, group * 15 + 14);
        write!(
            text,
            "[[flow]]\nfrom = \"board{{{first}..{last}}}\"\nmessage = \"30KB\"\nstart = \"{start}ms\"\nstop = \"{}ms\"\n",
            start + 10
        )
        .unwrap();
    }
    cases.push(case("join and leave every 4 ms", format!("{text}[trace]\ninterval = \"0us\"\n"), goodput(START, 0.95)));
    for load in [50, 80] {
        let rate = 10_000 * load / 100 / 48;
        let text = format!(
            "{STAR}boards = 48\n[run]\ntime_limit = \"60ms\"\n[[flow]]\nmessage = \"200KB\"\nrate = \"{rate}Mbps\"\nrandom = true\n"
        );
        cases.push(case(format!("on and off 200 kB, {load} %"), text, Measure::Messages));
    }
    let text = format!(
        "{STAR}boards = 64\n[run]\ntime_limit = \"12ms\"\n[[flow]]\nfrom = \"board{{0..15}}\"\nmessage = \"40KB\"\n\
         [[flow]]\nfrom = \"board{{16..63}}\"\nmessage = \"40KB\"\nstart = \"6ms\"\n"
    );
    cases.push(case("16, and 64 after a lull", text, goodput(Time::from_ms(2), 0.95)));
}

fn paths(cases: &mut Vec<Case>) {
    let goodput = |from, carries, least| Measure::Goodput { of: "board", from, carries, least };
    let flow = "[[flow]]\nmessage = \"40KB\"\n";
    let limit = |ms: u64| format!("[run]\ntime_limit = \"{ms}ms\"\n");
    let text = format!("{STAR}boards = 40\n[link.server]\nrate = \"5Gbps\"\n{}{flow}", limit(10));
    cases.push(case("server's link at half speed", text, goodput(START, 5.0, 0.95)));
    let tree = "[topology]\nkind = \"tree\"\n";
    let text = format!(
        "{tree}boards_per_leaf = [24, 24, 24, 24]\n[link.server]\nrate = \"40Gbps\"\n[link.uplink]\nrate = \"10Gbps\"\n{}{flow}",
        limit(10)
    );
    cases.push(case("uplinks of 10G under 24 boards", text, goodput(Time::from_ms(2), 40.0, 0.9)));
    let text = format!(
        "{tree}boards_per_leaf = [48, 6, 6]\n[link.server]\nrate = \"25Gbps\"\n[link.uplink]\nrate = \"10Gbps\"\n{}{flow}",
        limit(10)
    );
    cases.push(case("a leaf of 48 beside leaves of 6", text, goodput(Time::from_ms(2), 25.0, 0.9)));
    for (delay, line, ms) in [("50us", 10, 20), ("200us", 10, 40), ("1ms", 10, 120), ("200us", 100, 20)] {
        let text = format!(
            "{STAR}boards = 32\n[link]\ndelay = \"{delay}\"\n[link.server]\nrate = \"{line}Gbps\"\n{}[[flow]]\nmessage = \"100KB\"\n",
            limit(ms)
        );
        let begin = Time::from_ms(ms / 4);
        cases.push(case(format!("links of {delay}, {line}G"), text, goodput(begin, f64::from(line), 0.97)));
    }
    let text = format!(
        "{STAR}boards = 36\n[link.server]\nrate = \"100Gbps\"\n[[flow]]\nmessage = \"30KB\"\n{}{}",
        limit(6),
        (0..24)
            .map(|board| {
                let rate = if board < 12 { "1Gbps" } else { "25Gbps" };
                format!("[link.at.board{board}-switch]\nrate = \"{rate}\"\n")
            })
            .collect::<String>()
    );
    cases.push(case("boards of 1, 10 and 25G into 100G", text, goodput(Time::from_ms(1), 100.0, 0.9)));
    let far = (0..10).map(|board| format!("[link.at.board{board}-switch]\ndelay = \"200us\"\n")).collect::<String>();
    let text = format!(
        "{STAR}boards = 20\n[link.server]\nrate = \"100Gbps\"\n[[flow]]\nmessage = \"100KB\"\n{}{far}",
        limit(40)
    );
    cases.push(case("boards at 200us and at 1us into 100G", text, goodput(Time::from_ms(10), 100.0, 0.9)));
    for pairs in [2, 4] {
        let text = format!("{STAR}boards = 30\n{}{}", limit(8), flow.repeat(pairs));
        cases.push(case(format!("{pairs} queue pairs a board"), text, goodput(START, 10.0, 0.95)));
    }
    let text = format!(
        "{STAR}boards = 1000\n[switch]\npfc = false\nbuffer = \"2MB\"\n[qp]\nmtu = 1024\n{}[[flow]]\nmessage = \"1KB\"\n\
         rate = \"9Mbps\"\nrandom = true\n",
        limit(10)
    );
    cases.push(case("1000 boards of 1 kB, 90 %, no PFC", text, Measure::Messages));
    let text = format!("{STAR}boards = 200\n[switch]\npfc = false\nbuffer = \"512KB\"\n{}{flow}", limit(10));
    cases.push(case("200 boards, 512 kB, no PFC", text, goodput(START, 10.0, 0.95)));
}

fn beside_other_traffic(cases: &mut Vec<Case>) {
    for rate in [1, 3, 5] {
        let text = format!(
            "{STAR}boards = 25\n[run]\ntime_limit = \"10ms\"\n[[flow]]\nname = \"other\"\nfrom = \"board24\"\nmode = \"push\"\n\
             rate = \"{rate}Gbps\"\nmessage = \"20KB\"\n[flow.cc]\nlaw = \"off\"\n[[flow]]\nfrom = \"board{{0..23}}\"\nmessage = \"30KB\"\n"
        );
        let measure = |of, carries| Measure::Goodput { of, from: Time::from_ms(1), carries, least: 0.95 };
        let headers = 4178.0 / 4096.0;
        let its = measure("other", f64::from(rate) * headers);
        cases.push(case(format!("other traffic of {rate} Gb/s: its part"), text.clone(), its));
        cases.push(case(format!("other traffic of {rate} Gb/s: all"), text, measure("", 10.0)));
    }
}

/// Why cases miss a goal, by a part of their names: what they reach without the cause, by `--set`.
const REASONS: [(&str, &str); 5] = [
    (
        "zipf by board 160x1 100G",
        "READs of the board with the most data are short after they waited for others; 213 and 247 us with pull.window=170KB, where each fragment is one READ",
    ),
    (
        "a leaf of 48",
        "READs that wait before the uplink of 48 boards hold the window; 24.4 Gb/s with link.uplink.rate=25Gbps",
    ),
    (
        "boards of 1, 10 and 25G",
        "READs from boards of 1G hold the window; 94.6 Gb/s with 10G in place of these",
    ),
    (
        "1000 boards of 1 kB",
        "each message is announced by itself, which adds 10 % to the load; 52 us at 80 %, with flow.0.rate=8Mbps",
    ),
    (
        "verilated: 1 of 64",
        "fragments are announced when the board's memory has them, the first after 16 us; 9.46 Gb/s over 2 ms, with run.time_limit=2ms",
    ),
];

/// Why a case misses a goal, if it does.
pub fn reason(name: &str) -> Option<&'static str> {
    REASONS.iter().find(|(part, _)| name.contains(part)).map(|(_, reason)| *reason)
}
