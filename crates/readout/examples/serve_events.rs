// SPDX-License-Identifier: Apache-2.0
//! Serves recorded events to the first consumer that connects, at the consumer's pace:
//! `cargo run -p penstock-readout --example serve_events -- DATA.npz SOCKET EVENTS`. Read by tests/test_examples.py.

use std::time::Duration;

use penstock_readout::{
    Dataset, Discard, Event, EventSink, EventSource, Fragment, ServeAt, ServeOptions, Serving, SlowConsumer,
};

const BOARDS: u16 = 3;
const PAUSE: Duration = Duration::from_millis(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [data, socket, events] = &args[..] else {
        return Err("usage: serve_events DATA.npz SOCKET EVENTS".into());
    };
    let source = EventSource::new(&Dataset::load(data)?, BOARDS)?;
    let options = ServeOptions { queue_events: 8, slow: SlowConsumer::HoldsBack, ..ServeOptions::default() };
    let mut serving = Serving::listen(Discard::default(), ServeAt::Unix(socket.into()), options)?;
    while serving.consumers() == 0 {
        std::thread::sleep(PAUSE);
    }
    for number in 0..events.parse()? {
        let fragments: Vec<Fragment<'_>> =
            (0..BOARDS).map(|board| Fragment::of(board, number, source.payload(number, board))).collect();
        let event = Event { number, timestamp_ns: Some(number), complete: true, fragments: &fragments, missing: &[] };
        while let Err(error) = serving.store(&event) {
            if !error.is_retriable() {
                return Err(error.into());
            }
            std::thread::sleep(PAUSE);
        }
    }
    serving.close()?;
    Ok(())
}
