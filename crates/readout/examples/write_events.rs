// SPDX-License-Identifier: Apache-2.0
//! Writes recorded events without any network: `cargo run -p penstock-readout --example write_events -- DATA.npz OUT
//! EVENTS`. OUT is a file that ends in .parquet, or a folder of files; optional further arguments: a table (events,
//! fragments) and bytes per file. Three boards; board 1 is missing in every tenth event. Read by
//! tests/test_events_parquet.py, test_storage.py.

use penstock_readout::{
    Dataset, Event, EventSink, EventSource, EventWriter, Fragment, RunOptions, RunWriter, Table, Triggers,
    WriterOptions,
};
use penstock_units::Time;

const BOARDS: u16 = 3;
const SEED: u64 = 1;
const MEAN_INTERVAL: Time = Time::from_us(100);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, out, events, options @ ..] = &args[..] else {
        return Err("usage: write_events DATA.npz OUT EVENTS [events|fragments [BYTES_PER_FILE]]".into());
    };
    let source = EventSource::new(&Dataset::load(data)?, BOARDS)?;
    let table = match options.first().map(String::as_str) {
        Some("fragments") => Table::Fragments,
        _ => Table::Events,
    };
    let mut sink: Box<dyn EventSink> = if out.ends_with(".parquet") {
        Box::new(EventWriter::create(out, &WriterOptions { table, ..WriterOptions::default() })?)
    } else {
        let writer = WriterOptions { table, row_group_bytes: 1 << 20, ..WriterOptions::default() };
        let file_bytes = options.get(1).map_or(Ok(1 << 30), |bytes| bytes.parse())?;
        Box::new(RunWriter::open(out, RunOptions { writer, file_bytes, file_time: None, ..RunOptions::default() })?)
    };
    for (number, time) in (0..events.parse()?).zip(Triggers::new(SEED, MEAN_INTERVAL)) {
        let (here, missing): (Vec<u16>, Vec<u16>) = (0..BOARDS).partition(|&board| board != 1 || number % 10 != 9);
        let time_ns = time.as_ps() / 1000;
        let fragment = |&board: &u16| Fragment::of(board, time_ns, source.payload(number, board));
        let fragments: Vec<Fragment<'_>> = here.iter().map(fragment).collect();
        let (timestamp_ns, complete) = (Some(time_ns), missing.is_empty());
        let event = Event { number, timestamp_ns, complete, fragments: &fragments, missing: &missing };
        sink.store_waiting(&event)?;
    }
    sink.close()?;
    Ok(())
}
