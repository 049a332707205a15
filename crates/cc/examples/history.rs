// SPDX-License-Identifier: Apache-2.0
//! Prints a random history of the whole engine with the model's results, for the gateware to
//! repeat (`tb/cc_equality/cc_replay.sv`).
//!
//! Usage: `history SEED N_QP EPISODES ROUNDS`
//!
//! An episode begins with a reset. Format, all numbers hexadecimal:
//!
//! ```text
//! <rounds> <offset>                                                      once an episode
//! <paused> <18 registers of parameters>                                  once a round
//! <init> <law> <cnp> <feedback> <bytes> <waits> <ignored> <eligible> <credit> <9 words of state>  a round and QP
//! ```
//!
//! Events reach a queue pair `offset` cycles after the start of its last visit, a choice of law together with a fresh
//! start; `eligible` and `credit` are the values before the visit, the state is the one after it.

mod common;

use common::{param_words, Random};
use penstock_cc::{CcParams, CycleRate, Flow, Happened, Law, Pacer, Transmitter};
use std::io::{BufWriter, Write};

/// Cycles from a visit's start to its grant.
const LATENCY: u32 = 7;
/// Cycles of a round that an event may take to be reckoned with.
const SETTLING: u32 = 4;

/// How often things happen in an episode: one visit in so many.
struct Weather {
    notification: u64,
    packet: u64,
    wait: u64,
    init: u64,
    change: u64,
    pause: u64,
}

impl Weather {
    fn new(random: &mut Random, may_change: bool) -> Self {
        Self {
            notification: random.pick(&[1, 2, 20, 100, u64::MAX]),
            packet: random.pick(&[1, 3, 30, u64::MAX]),
            wait: random.pick(&[1, 2, 100]),
            init: random.pick(&[100, u64::MAX]),
            change: if may_change { random.pick(&[1, 10, 100, u64::MAX]) } else { u64::MAX },
            pause: random.pick(&[2, 20, u64::MAX]),
        }
    }
}

/// One round as all queue pairs see it.
struct Round<'a> {
    cycles: u32,
    offset: u32,
    paused: bool,
    params: &'a CcParams,
}

struct QueuePair {
    flow: Flow,
    law: Law,
    pacer: Pacer,
    grant: (CycleRate, bool),
    charged: u32, // since the last grant
    begun: bool,  // with a grant: no packet starts before the first
}

impl QueuePair {
    fn new(index: u8, turn: u32, params: &CcParams) -> Self {
        let law = params.dcqcn.law;
        let flow = Flow::new(law, index, params);
        let grant = (flow.rate_current(), flow.unlimited(params));
        Self { flow, law, pacer: Pacer::new(turn), grant, charged: 0, begun: false }
    }

    fn charge(&mut self, random: &mut Random) -> u32 {
        let bytes = random.magnitude(16);
        self.pacer.charge(bytes);
        self.charged += bytes;
        bytes
    }

    /// What happens from one visit to the next, and that visit.
    fn round(
        &mut self,
        random: &mut Random,
        weather: &Weather,
        round: &Round,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let init = random.one_in(weather.init);
        if init {
            self.law = random.pick(&[Law::Dcqcn, Law::Dcqcn, Law::Qcn, Law::Qcn, Law::Off]);
        }
        let notified = random.one_in(weather.notification);
        let has_packet = random.one_in(weather.packet);
        let feedback = if notified && self.law == Law::Qcn { random.below(64) as u8 } else { 0 };
        let cnp = notified && (self.law != Law::Qcn || random.one_in(16));
        // A packet is paid for in the next cycle, and the grant reckons with it in the one behind that; as
        // long does it take until the grant is seen.
        let eligible = self.begun && self.pacer.eligible();
        let waits = random.one_in(weather.wait);
        let mut bytes = 0;
        if round.offset + 1 < LATENCY && has_packet && eligible {
            bytes = self.charge(random);
        }
        let (rate, unlimited) = self.grant;
        self.pacer.grant(rate, round.cycles, unlimited, waits);
        self.begun = true;
        let counted = std::mem::take(&mut self.charged);
        let eligible = if round.offset < LATENCY + 2 { eligible } else { self.pacer.eligible() };
        if round.offset + 1 >= LATENCY && has_packet && eligible {
            bytes = self.charge(random);
        }
        let transmitter = Transmitter::new(round.paused, waits);
        let happened = Happened { cnp, feedback, bytes: counted, cycles: round.cycles, transmitter, floor: 0 };
        let ignored = if init {
            self.flow.restart(self.law, round.params);
            cnp || feedback != 0
        } else {
            self.flow.visit(happened, self.law, round.params)
        };
        self.grant = (self.flow.rate_current(), self.flow.unlimited(round.params));
        write!(out, "{:x} {:x} {:x} {feedback:x} ", u8::from(init), self.law as u32, u8::from(cnp))?;
        write!(out, "{bytes:x} {:x} {:x} {:x} ", u8::from(waits), u8::from(ignored), u8::from(self.pacer.eligible()))?;
        write!(out, "{:x}", self.pacer.credit() as u64)?;
        self.flow.words().iter().try_for_each(|word| write!(out, " {word:x}"))?;
        writeln!(out)
    }
}

fn main() -> std::io::Result<()> {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [seed, n_qp, episodes, rounds] = args[..] else {
        eprintln!("usage: history SEED N_QP EPISODES ROUNDS, all decimal numbers");
        std::process::exit(2);
    };
    let cycles = n_qp.max(16) as u32;
    let turn = 512 * n_qp as u32 / cycles; // visits; a packet from each
    let mut random = Random(seed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..episodes {
        let offset = random.below(u64::from(cycles - SETTLING)) as u32;
        // Parameters may change where no visit is in flight, which a full round has no room for.
        let weather = Weather::new(&mut random, n_qp <= 4);
        let mut params = random.params();
        let mut qps: Vec<QueuePair> = (0..n_qp).map(|i| QueuePair::new(i as u8, turn, &params)).collect();
        writeln!(out, "{rounds:x} {offset:x}")?;
        for round in 0..rounds {
            // The law of the group stays as it is: a queue pair that has made no choice follows it.
            if round > 0 && random.one_in(weather.change) {
                let law = params.dcqcn.law;
                params = random.params();
                params.dcqcn.law = law;
            }
            let paused = random.one_in(weather.pause);
            write!(out, "{:x}", u8::from(paused))?;
            param_words(&params).try_for_each(|word| write!(out, " {word:x}"))?;
            writeln!(out)?;
            let round = Round { cycles, offset, paused, params: &params };
            for qp in &mut qps {
                qp.round(&mut random, &weather, &round, &mut out)?;
            }
        }
    }
    out.flush()
}
