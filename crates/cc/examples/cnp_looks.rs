// SPDX-License-Identifier: Apache-2.0
//! Writes a random history of one queue pair's looks and round trips with the model's row after each, for
//! `rtl/cc/cnp_bound_step.sv` to repeat (`tb/cnp_bound`).
//!
//! Usage: `cnp_looks SEED EVENTS`. A line for each: fresh, round trip, its cycles, held, cnp, congested, ends, raised,
//! and the three words of the row.

#[path = "common/random.rs"]
mod random;

use penstock_cc::{CnpBound, CnpLook};
use random::Random;

const JITTER: u32 = 15_625;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().unwrap_or(1));
    let (seed, events) = (arguments.next().unwrap_or(1), arguments.next().unwrap_or(1000));
    let mut random = Random(seed);
    let mut bound = CnpBound::new();
    let (mut looks, mut weather) = (0, [2, 2, 1000, 50_000]);
    for event in 0..events {
        if event % 1000 == 0 {
            let rare = [1, 2, 30, 300, u64::MAX];
            weather = [random.pick(&[1, 2, 4]), random.pick(&rare), random.pick(&rare[2..]), random.pick(&[9, 17, 24])];
        }
        let fresh = random.one_in(5000);
        if fresh {
            bound = CnpBound::new();
        }
        let trip = random.one_in(20).then(|| random.magnitude(weather[3] as u32));
        let mut look = CnpLook::default();
        let mut raised = false;
        match trip {
            Some(cycles) => bound.round_trip(cycles),
            None => {
                looks += 1;
                look = CnpLook {
                    held: random.one_in(weather[0]),
                    cnp: random.one_in(weather[1]),
                    congested: random.one_in(weather[2]),
                    ends: looks % CnpBound::LOOKS == 0,
                };
                raised = bound.look(look, JITTER);
            }
        }
        let flags = [fresh, trip.is_some(), look.held, look.cnp, look.congested, look.ends, raised].map(u8::from);
        println!("{flags:?} {} {:?}", trip.unwrap_or(0), bound.words());
    }
}
