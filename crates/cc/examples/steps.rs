// SPDX-License-Identifier: Apache-2.0
//! Writes a random history of single visits with the model's result for each, for `rtl/cc/cc_step.sv`
//! to repeat (`tb/cc_equality/steps.cpp`).
//!
//! Usage: `steps SEED EVENTS dcqcn|qcn|mixed`. Ends after EVENTS events: notifications,
//! packets, fresh starts, pauses, changes of parameters or law. Records of little-endian words:
//!
//! ```text
//! 1 group 18 x register of parameters          written when no earlier visit is in flight
//! 0 what bytes 9 x state flags                what: qp, group << 8, law << 10, init << 12, cnp << 13,
//!                                             feedback << 14, paused << 20, idle << 21, floor << 22;
//!                                             flags: unlimited, ignored << 1, clamped << 2, low << 3
//! ```

mod common;

use common::{param_words, Random};
use penstock_cc::{CcParams, CnpBound, Flow, FlowState, Happened, Law, Transmitter};
use std::io::{BufWriter, Write};

/// More than the pipeline is deep, as a queue pair has one visit in flight.
const FLOWS: usize = 32;
const CYCLES: u32 = 16;
/// Visits of all flows before the weather changes.
const ERA: u64 = 2_000;

/// How often things happen: one visit in so many.
struct Weather {
    notification: u64,
    packet: u64,
    init: u64,
    pause: u64,
    idle: u64,
    change: u64,
    law: u64,
    floor: u64,
}

impl Weather {
    fn new(random: &mut Random) -> Self {
        Self {
            notification: random.pick(&[1, 2, 20, 100, 1000, u64::MAX]),
            packet: random.pick(&[1, 2, 3, 30, u64::MAX]),
            init: random.pick(&[200, u64::MAX]),
            pause: random.pick(&[2, 50, u64::MAX]),
            idle: random.pick(&[2, 50, u64::MAX]),
            change: random.pick(&[20, 200, 2000, u64::MAX]),
            law: random.pick(&[50, 5000, u64::MAX]),
            floor: random.pick(&[1, 2, u64::MAX]),
        }
    }
}

struct History<W: Write> {
    out: W,
    random: Random,
    params: [CcParams; 4],
    flows: Vec<(Flow, Law, usize)>,
    laws: &'static [Law],
    visits: u64,
    events: u64,
}

impl<W: Write> History<W> {
    fn write(&mut self, words: &[u32]) -> std::io::Result<()> {
        words.iter().try_for_each(|word| self.out.write_all(&word.to_le_bytes()))
    }

    fn change_params(&mut self, group: usize) -> std::io::Result<()> {
        self.params[group] = self.random.params();
        self.events += 1;
        self.write(&[1, group as u32])?;
        let words: Vec<u32> = param_words(&self.params[group]).collect();
        self.write(&words)
    }

    fn visit(&mut self, which: usize, weather: &Weather) -> std::io::Result<()> {
        let random = &mut self.random;
        let init = random.one_in(weather.init);
        let notified = random.one_in(weather.notification);
        let kind = if notified { random.below(16) } else { 16 };
        let (paused, idle) = (random.one_in(weather.pause), random.one_in(weather.idle));
        let bytes = if random.one_in(weather.packet) { random.magnitude(19) } else { 0 };
        let feedback = random.below(64) as u8;
        let floor = if random.one_in(weather.floor) { random.below(16) as u8 } else { 0 };
        let (flow, law, group) = &mut self.flows[which];
        if random.one_in(weather.law) {
            (*law, *group) = (random.pick(self.laws), random.below(4) as usize);
            self.events += 1;
        }
        // mostly the notification of the flow's law, sometimes the other's, or both
        let qcn = *law == Law::Qcn;
        let cnp = kind < 16 && (!qcn || kind == 0);
        let feedback = if kind < 16 && (qcn || kind == 0) { feedback } else { 0 };
        let transmitter = Transmitter::new(paused, !idle);
        let happened = Happened { cnp, feedback, bytes, cycles: CYCLES, transmitter, floor };
        let params = &self.params[*group];
        let handled = flow.cnp_handled();
        let ignored = if init {
            flow.restart(*law, params);
            cnp || feedback != 0
        } else {
            flow.visit(happened, *law, params)
        };
        self.visits += 1;
        self.events += u64::from(cnp || feedback != 0 || bytes != 0 || init || paused || idle);
        let what = which as u32
            | (*group as u32) << 8
            | (*law as u32) << 10
            | u32::from(init) << 12
            | u32::from(cnp) << 13
            | u32::from(feedback) << 14
            | u32::from(paused) << 20
            | u32::from(idle) << 21
            | u32::from(floor) << 22;
        let clamped = !init && flow.cnp_handled() != handled && params.rate_min_is_above_line(*law);
        let highest = CnpBound::highest(params.dcqcn.rate_line);
        let low = matches!(flow.state, FlowState::Dcqcn(state) if state.rate_current <= highest);
        let flags = [flow.unlimited(params), ignored, clamped, low].into_iter().rev();
        let flags = flags.fold(0, |flags, flag| flags << 1 | u32::from(flag));
        let state = flow.words();
        self.write(&[0, what, bytes])?;
        self.write(&state)?;
        self.write(&[flags])
    }
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> = args.iter().filter_map(|a| a.parse().ok()).collect();
    let laws: Option<&[Law]> = args.get(2).and_then(|law| match law.as_str() {
        "dcqcn" => Some(&[Law::Dcqcn] as &[Law]),
        "qcn" => Some(&[Law::Qcn]),
        "mixed" => Some(&[Law::Dcqcn, Law::Qcn, Law::Off]),
        _ => None,
    });
    let ([seed, count], Some(laws)) = (&numbers[..], laws) else {
        eprintln!("usage: steps SEED EVENTS dcqcn|qcn|mixed, the first two decimal numbers");
        std::process::exit(2);
    };
    let params = [CcParams::default(); 4];
    let flows = (0..FLOWS).map(|i| (Flow::new(laws[0], i as u8, &params[0]), laws[0], i % 4)).collect();
    let out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut history = History { out, random: Random(*seed), params, flows, laws, visits: 0, events: 0 };
    for group in 0..4 {
        history.change_params(group)?;
    }
    let start =
        Weather { notification: u64::MAX, packet: 1, init: 1, pause: 2, idle: 2, change: 1, law: u64::MAX, floor: 2 };
    (0..FLOWS).try_for_each(|which| history.visit(which, &start))?;
    while history.events < *count {
        let weather = Weather::new(&mut history.random);
        for _ in 0..ERA {
            if history.random.one_in(weather.change) {
                let group = history.random.below(4) as usize;
                history.change_params(group)?;
            }
            (0..FLOWS).try_for_each(|which| history.visit(which, &weather))?;
        }
    }
    history.out.flush()?;
    eprintln!("seed {seed}: {} visits, {} events", history.visits, history.events);
    Ok(())
}
