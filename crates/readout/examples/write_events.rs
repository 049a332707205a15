// SPDX-License-Identifier: Apache-2.0
//! Writes an event file without any network: `cargo run -p penstock-readout --example write_events -- DATA.npz OUT EVENTS`.
//! Three boards; of every tenth event board 1 is missing. Read by tests/test_events_parquet.py.

use std::num::NonZeroU64;

use penstock_readout::{Dataset, Event, EventSink, EventSource, EventWriter, Triggers, WriterOptions};

const BOARDS: u16 = 3;
const SEED: u64 = 1;
const MEAN_INTERVAL_PS: NonZeroU64 = NonZeroU64::new(100_000_000).unwrap();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, out, events] = &args[..] else {
        return Err("usage: write_events DATA.npz OUT.parquet EVENTS".into());
    };
    let source = EventSource::new(&Dataset::load(data)?, BOARDS)?;
    let mut writer = EventWriter::create(out, &WriterOptions::default())?;
    for (number, time_ps) in (0..events.parse()?).zip(Triggers::new(SEED, MEAN_INTERVAL_PS)) {
        let (here, missing): (Vec<u16>, Vec<u16>) = (0..BOARDS).partition(|&board| board != 1 || number % 10 != 9);
        let fragments: Vec<(u16, &[u8])> =
            here.iter().map(|&board| (board, &source.payload(number, board)[..])).collect();
        let (timestamp_ns, complete) = (Some(time_ps / 1000), missing.is_empty());
        writer.store(&Event { number, timestamp_ns, complete, fragments: &fragments, missing: &missing })?;
    }
    writer.close()?;
    Ok(())
}
