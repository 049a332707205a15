// SPDX-License-Identifier: Apache-2.0
//! Cases of verilated boards: few of them, for a short time.

use std::fmt::Write;

use penstock_netsim::Time;

use crate::cases::{case, event_case, Case, Measure, Spread, STAR, START};

/// What makes the boards of a case verilated ones.
pub const SENDER: &str = "sender = \"gateware\"\n";

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let goodput = |from, carries| Measure::Goodput { of: "board", from, carries, least: 0.95 };
    let text = format!(
        "{STAR}boards = 64\n[run]\ntime_limit = \"1ms\"\n[[flow]]\nfrom = \"board0\"\nmessage = \"20KB\"\nsize = \"3MB\"\n{SENDER}"
    );
    cases.push(case("verilated: 1 of 64, first ms", text, goodput(START, 10.0)));
    for (name, spread) in [("zipf by event", Spread::ZipfDrawn), ("sparse", Spread::Sparse)] {
        let of_software = event_case(format!("verilated: {name} 4x1 10G 80 %"), spread, (4, 10, 1, 80), 200);
        let text = of_software.text.replace("[replay]\n", &format!("[replay]\n{SENDER}"));
        cases.push(Case { text, ..of_software });
    }
    let mut text = format!("{STAR}boards = 4\n[run]\ntime_limit = \"1500us\"\n");
    for (board, start) in [(0, 0), (1, 300), (2, 600), (3, 900)] {
        let stop = start + 600;
        write!(
            text,
            "[[flow]]\nfrom = \"board{board}\"\nmessage = \"30KB\"\nrate = \"9Gbps\"\nstart = \"{start}us\"\n\
             stop = \"{stop}us\"\n{SENDER}"
        )
        .unwrap();
    }
    cases.push(case("verilated: join and leave every 300 us", text, goodput(Time::from_us(300), 10.0)));
    let text = format!(
        "{STAR}boards = 3\n[link.server]\nrate = \"5Gbps\"\n[run]\ntime_limit = \"1ms\"\n[[flow]]\nmessage = \"20KB\"\n\
         size = \"2MB\"\n{SENDER}"
    );
    cases.push(case("verilated: server's link at half speed", text, goodput(START, 5.0)));
    cases
}
