// SPDX-License-Identifier: Apache-2.0
//! Events served onward, read with Arrow's own stream reader. The same with pyarrow: tests/test_examples.py.
//! Promise checked: every event in order; a slow consumer gets the number of those missed, or the boards wait for it.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_ipc::reader::StreamReader;
use penstock_readout::*;

const PAYLOAD_BYTES: usize = 100_000;

fn store(sink: &mut impl EventSink, number: u64) -> Result<(), StoreError> {
    let payload = vec![number as u8; PAYLOAD_BYTES];
    let fragments = [Fragment::of(3, number, &payload)];
    sink.store(&Event { number, timestamp_ns: None, complete: true, fragments: &fragments, missing: &[] })
}

fn wait_for(consumers: usize, serving: &Serving<Discard>) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while serving.consumers() != consumers {
        assert!(Instant::now() < deadline, "{} consumers instead of {consumers}", serving.consumers());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Event numbers, and how many were missed in front of each.
fn read(stream: impl std::io::Read) -> Vec<(u64, u64)> {
    let reader = StreamReader::try_new(stream, None).unwrap();
    assert_eq!(reader.schema(), stream_schema());
    let mut events = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let column = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<UInt64Type>().value(0);
        let payloads = batch.column_by_name("fragments").unwrap().as_list::<i32>().value(0);
        let number = column("event_number");
        assert_eq!(payloads.as_binary::<i32>().value(0), vec![number as u8; PAYLOAD_BYTES]);
        events.push((number, column("missed")));
    }
    events
}

fn any_port() -> ServeAt {
    ServeAt::Tcp(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn connect(serving: &Serving<Discard>) -> TcpStream {
    let ServeAt::Tcp(address) = serving.at() else { panic!("a TCP address") };
    TcpStream::connect(address).unwrap()
}

#[test]
fn consumers_get_every_event_in_order_over_tcp_and_unix_sockets() {
    let mut serving = Serving::listen(Discard::default(), any_port(), ServeOptions::default()).unwrap();
    let stream = connect(&serving);
    let consumer = std::thread::spawn(move || read(stream));
    wait_for(1, &serving);
    (0..50).for_each(|number| store(&mut serving, number).unwrap());
    serving.close().unwrap();
    assert_eq!(consumer.join().unwrap(), (0..50).map(|number| (number, 0)).collect::<Vec<_>>());
    assert_eq!(serving.inner().events, 50);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events");
    let at = ServeAt::Unix(path.clone());
    let mut serving = Serving::listen(Discard::default(), at, ServeOptions::default()).unwrap();
    let stream = UnixStream::connect(&path).unwrap();
    let consumer = std::thread::spawn(move || read(stream));
    wait_for(1, &serving);
    store(&mut serving, 7).unwrap();
    serving.close().unwrap();
    assert_eq!(consumer.join().unwrap(), [(7, 0)]);
}

#[test]
fn a_slow_consumer_gets_the_number_of_events_that_it_missed() {
    let options = ServeOptions { queue_events: 4, ..ServeOptions::default() };
    let mut serving = Serving::listen(Discard::default(), any_port(), options).unwrap();
    let stream = connect(&serving);
    wait_for(1, &serving);
    // 20 MB: more than the sockets' buffers and the queue hold.
    (0..200).for_each(|number| store(&mut serving, number).unwrap());
    let consumer = std::thread::spawn(move || read(stream));
    // It catches up meanwhile: what is stored last finds room.
    for number in 200..210 {
        std::thread::sleep(Duration::from_millis(50));
        store(&mut serving, number).unwrap();
    }
    serving.close().unwrap();
    let events = consumer.join().unwrap();
    assert!(events.len() < 200, "{} events got through", events.len());
    assert!(events.iter().any(|event| event.1 > 0));
    let mut next = 0;
    for (number, missed) in events {
        assert_eq!(number, next + missed);
        next = number + 1;
    }
}

#[test]
fn a_slow_consumer_is_waited_for_where_it_must_not_miss_anything() {
    let options = ServeOptions { queue_events: 4, slow: SlowConsumer::HoldsBack, ..ServeOptions::default() };
    let mut serving = Serving::listen(Discard::default(), any_port(), options).unwrap();
    let stream = connect(&serving);
    wait_for(1, &serving);
    let mut taken = 0;
    let refusal = loop {
        match store(&mut serving, taken) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        assert!(taken < 1000, "nothing holds back");
    };
    assert!(refusal.is_retriable(), "{refusal}");
    assert_eq!(serving.inner().events, taken, "what is refused is not stored");
    let consumer = std::thread::spawn(move || read(stream));
    while taken < 300 {
        match store(&mut serving, taken) {
            Ok(()) => taken += 1,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    serving.close().unwrap();
    assert_eq!(consumer.join().unwrap(), (0..300).map(|number| (number, 0)).collect::<Vec<_>>());
}

#[test]
fn a_consumer_that_dies_holds_nobody_back() {
    let options = ServeOptions { queue_events: 2, slow: SlowConsumer::HoldsBack, ..ServeOptions::default() };
    let mut serving = Serving::listen(Discard::default(), any_port(), options).unwrap();
    drop(connect(&serving));
    let deadline = Instant::now() + Duration::from_secs(20);
    for number in 0..50 {
        while store(&mut serving, number).is_err() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    serving.close().unwrap();
    assert_eq!(serving.inner().events, 50);
}
