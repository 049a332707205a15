// SPDX-License-Identifier: Apache-2.0
//! Prints a random history of congestion control and what the model makes of it, for the gateware
//! to repeat (`tb/cc_equality`).
//!
//! Usage: `history SEED N_QP EPISODES ROUNDS`
//!
//! An episode begins with a reset. Format, all numbers hexadecimal:
//!
//! ```text
//! <rounds> <offset>                                             once an episode
//! <14 fields of cc_params_t>                                    once a round
//! <init> <cnp> <bytes> <ignored> <eligible> <credit> <11 of State>  once a round and QP
//! ```
//!
//! Events reach a queue pair `offset` cycles after its last visit; eligible and credit are those
//! in front of the visit, the state is the one behind it.

use penstock_cc::{step, DcqcnParams, Happened, Law, Pacer, Rate, StageCounting, State};
use std::io::{BufWriter, Write};

/// Cycles of a round, for up to 16 queue pairs.
const ROUND: u32 = 16;
/// Cycles from a visit's start to its grant.
const LATENCY: u32 = 5;

/// splitmix64 (Steele et al., OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Any magnitude is equally likely, and so are the two ends.
    fn magnitude(&mut self, bits: u32) -> u32 {
        match self.below(16) {
            0 => 0,
            1 => (u64::MAX >> (64 - bits)) as u32,
            _ => (self.next() >> 32) as u32 >> (31 - self.below(u64::from(bits)) as u32),
        }
    }

    fn params(&mut self) -> DcqcnParams {
        let mut params = DcqcnParams {
            law: if self.one_in(10) { Law::Off } else { Law::Dcqcn },
            clamp_target: self.one_in(2),
            stage_counting: if self.one_in(2) { StageCounting::Single } else { StageCounting::PerTrigger },
            g_shift: self.below(16) as u8,
            stage_threshold: self.below(16) as u8,
            hyper_threshold: self.below(24) as u8,
            decrease_interval: self.magnitude(12),
            alpha_interval: self.magnitude(12),
            increase_interval: self.magnitude(12),
            byte_threshold: self.magnitude(20),
            ..DcqcnParams::default()
        };
        if self.one_in(2) {
            params.rate_ai = Rate(self.magnitude(32));
            params.rate_hai = Rate(self.magnitude(32));
            params.rate_min = Rate(self.magnitude(28));
            params.rate_line = Rate(self.magnitude(32));
        }
        params
    }
}

/// How often things happen in an episode: one visit in so many.
struct Weather {
    cnp: u64,
    packet: u64,
    init: u64,
    change: u64,
}

impl Weather {
    fn new(random: &mut Random, may_change: bool) -> Self {
        let pick = |random: &mut Random, from: &[u64]| from[random.below(from.len() as u64) as usize];
        Self {
            cnp: pick(random, &[1, 2, 20, 100, u64::MAX]),
            packet: pick(random, &[1, 3, 30, u64::MAX]),
            init: pick(random, &[100, u64::MAX]),
            change: if may_change { pick(random, &[1, 10, 100, u64::MAX]) } else { u64::MAX },
        }
    }
}

struct QueuePair {
    state: State,
    pacer: Pacer,
    grant: (Rate, bool),
}

fn print_params(out: &mut impl Write, p: &DcqcnParams) -> std::io::Result<()> {
    let (law, two) = (p.law != Law::Off, p.stage_counting == StageCounting::PerTrigger);
    write!(out, "{:x} {:x} {:x} ", u8::from(law), u8::from(p.clamp_target), u8::from(two))?;
    write!(out, "{:x} {:x} {:x} ", p.g_shift, p.stage_threshold, p.hyper_threshold)?;
    write!(out, "{:x} {:x} {:x} {:x} ", p.rate_ai.0, p.rate_hai.0, p.rate_min.0, p.rate_line.0)?;
    write!(out, "{:x} {:x} ", p.decrease_interval, p.alpha_interval)?;
    writeln!(out, "{:x} {:x}", p.increase_interval, p.byte_threshold)
}

fn print_state(out: &mut impl Write, s: &State) -> std::io::Result<()> {
    write!(out, "{:x} {:x} {:x} ", s.rate_current.0, s.rate_target.0, s.alpha_full)?;
    write!(out, "{:x} {:x} {:x} ", s.since_cut, s.alpha_elapsed, s.increase_elapsed)?;
    write!(out, "{:x} {:x} {:x} ", s.bytes_sent, s.stage_timer, s.stage_bytes)?;
    writeln!(out, "{:x} {:x}", s.cnp_handled, u8::from(s.limited))
}

impl QueuePair {
    fn new(params: &DcqcnParams) -> Self {
        Self { state: State::idle(params), pacer: Pacer::new(), grant: (params.rate_line, true) }
    }

    fn round(
        &mut self,
        random: &mut Random,
        weather: &Weather,
        offset: u32,
        params: &DcqcnParams,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let init = random.one_in(weather.init);
        let cnp = random.one_in(weather.cnp);
        let wants = random.one_in(weather.packet);
        // A packet is decided upon before the grant or after it, as its moment is.
        let mut bytes = 0;
        if offset <= LATENCY && wants && self.pacer.eligible() {
            bytes = random.magnitude(16);
            self.pacer.charge(bytes);
        }
        let (rate, unlimited) = self.grant;
        self.pacer.grant(rate, ROUND, unlimited);
        if offset > LATENCY && wants && self.pacer.eligible() {
            bytes = random.magnitude(16);
            self.pacer.charge(bytes);
        }
        let outcome = step(&self.state, Happened { cnp, bytes, cycles: ROUND, ..Happened::default() }, params);
        let ignored = cnp && (init || outcome.cnp_ignored);
        self.state = if init { State::idle(params) } else { outcome.state };
        self.grant = (self.state.rate_current, self.state.rate_current >= params.rate_line);
        write!(out, "{:x} {:x} {bytes:x} ", u8::from(init), u8::from(cnp))?;
        write!(out, "{:x} {:x} ", u8::from(ignored), u8::from(self.pacer.eligible()))?;
        write!(out, "{:x} ", self.pacer.credit() as u64)?;
        print_state(out, &self.state)
    }
}

fn main() -> std::io::Result<()> {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let [seed, n_qp, episodes, rounds] = args[..] else {
        eprintln!("usage: history SEED N_QP EPISODES ROUNDS, all decimal numbers");
        std::process::exit(2);
    };
    let mut random = Random(seed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..episodes {
        let offset = random.below(u64::from(ROUND)) as u32;
        // Parameters may change where no visit is in flight, which a full round has no room for.
        let weather = Weather::new(&mut random, n_qp <= 4);
        let mut params = random.params();
        let mut qps: Vec<QueuePair> = (0..n_qp).map(|_| QueuePair::new(&params)).collect();
        writeln!(out, "{rounds:x} {offset:x}")?;
        for round in 0..rounds {
            if round > 0 && random.one_in(weather.change) {
                params = random.params();
            }
            print_params(&mut out, &params)?;
            for qp in &mut qps {
                qp.round(&mut random, &weather, offset, &params, &mut out)?;
            }
        }
    }
    out.flush()
}
