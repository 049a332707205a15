// SPDX-License-Identifier: Apache-2.0
//! Visits per second of the reaction points, as JSON: `cargo run --release -p penstock-cc --example speed`.

use penstock_cc::{CcParams, Flow, Happened, Law, Transmitter};
use std::hint::black_box;
use std::time::Instant;

const FLOWS: u32 = 64;
const ROUNDS: u32 = 400_000;

fn main() {
    let params = CcParams::default();
    let mut fields = Vec::new();
    for (name, law) in [("dcqcn", Law::Dcqcn), ("qcn", Law::Qcn)] {
        let mut flows: Vec<Flow> = (0..FLOWS).map(|i| Flow::new(law, i as u8, &params)).collect();
        let start = Instant::now();
        for round in 0..ROUNDS {
            for (i, flow) in flows.iter_mut().enumerate() {
                let notified = (round + i as u32).is_multiple_of(4096);
                let feedback = if notified { 20 } else { 0 };
                let happened = Happened {
                    cnp: notified,
                    feedback,
                    bytes: 64,
                    cycles: 16,
                    transmitter: Transmitter::Busy,
                    floor: 0,
                };
                black_box(flow.visit(black_box(happened), law, &params));
            }
        }
        let rate = f64::from(FLOWS) * f64::from(ROUNDS) / start.elapsed().as_secs_f64();
        fields.push(format!("\"{name}_visits_per_second\": {rate:.0}"));
    }
    println!("{{{}}}", fields.join(", "));
}
