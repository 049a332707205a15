// SPDX-License-Identifier: Apache-2.0
//! How many READs a second one core schedules: announced, posted and arrived. Boards, fragments and their length are
//! those of a camera of 265 modules. Usage: `reads_per_second [BOARDS [READS]]`.

use std::time::Instant;

use penstock_pull::{Config, Fragment, Scheduler, Window};
use penstock_units::{Rate, Time};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a whole number"));
    let boards = arguments.next().unwrap_or(265);
    let reads = arguments.next().unwrap_or(20_000_000);
    let config = Config {
        window: Window::Measured { line: Rate::from_gbps(100) },
        outstanding: 16,
        mtu: 4096,
        packet_overhead: 86,
        slots: 64,
        longest: 8_192,
        patience: Time::from_ms(10),
    };
    let mut scheduler = Scheduler::new(config, boards).expect("the settings are possible");
    let mut in_flight = std::collections::VecDeque::new();
    let (mut now, mut event, mut arrived) = (Time::ZERO, 0_u64, 0_usize);
    let begin = Instant::now();
    while arrived < reads {
        if scheduler.waiting(0) < 32 {
            for board in 0..boards {
                let fragment = Fragment { rank: event, event, address: event % 64 * 8_192, length: 1_142 };
                scheduler.announce(board, fragment).expect("the announcement is true");
            }
            event += 1;
        }
        while let Some(read) = scheduler.poll_read(now) {
            in_flight.push_back(read);
        }
        now += Time::from_ns(98);
        let read = in_flight.pop_front().expect("READs are in flight");
        assert_eq!(scheduler.arrive(now, read.board), Some(read));
        arrived += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{boards} boards: {:.2} million READs/s of one core", reads as f64 / seconds / 1e6);
}
