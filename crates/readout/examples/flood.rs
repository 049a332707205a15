// SPDX-License-Identifier: Apache-2.0
//! Floods an address with UDP datagrams at given rates, as unrelated hosts might: the load of `tests/flood_bench.py`.
//! Usage: `flood FROM TO:PORT:RATE:HEX...`: sends datagrams with the bytes of HEX, `RATE` per second. Runs until
//! standard input ends; then prints the rates that it reached and its CPU time as one JSON line.

use std::error::Error;
use std::io::Read;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

/// Datagrams of one stream before the others have their turn.
const BURST: u64 = 64;

struct Stream {
    socket: UdpSocket,
    payload: Vec<u8>,
    per_s: f64,
    sent: u64,
}

impl Stream {
    fn parse(from: Ipv4Addr, words: &str) -> Result<Stream, Box<dyn Error>> {
        let [to, port, rate, hex] = words.split(':').collect::<Vec<_>>()[..] else {
            return Err(format!("{words}: allowed is TO:PORT:RATE:HEX").into());
        };
        let digits = |at: usize| hex.get(at..at + 2).ok_or("an even number of hexadecimal digits").map(str::to_owned);
        let byte = |at: usize| -> Result<u8, Box<dyn Error>> { Ok(u8::from_str_radix(&digits(at)?, 16)?) };
        let payload = (0..hex.len()).step_by(2).map(byte).collect::<Result<Vec<u8>, _>>()?;
        let socket = UdpSocket::bind((from, 0))?;
        socket.connect((to.parse::<Ipv4Addr>()?, port.parse::<u16>()?))?;
        Ok(Stream { socket, payload, per_s: rate.parse()?, sent: 0 })
    }

    /// Sends what is due; whether anything was.
    fn turn(&mut self, elapsed: Duration) -> bool {
        let due = ((elapsed.as_secs_f64() * self.per_s) as u64).saturating_sub(self.sent).min(BURST);
        for _ in 0..due {
            let _ = self.socket.send(&self.payload); // one that is refused or finds no room counts: it was made
        }
        self.sent += due;
        due > 0
    }
}

/// CPU time of this process: the first number of `/proc/self/schedstat`, ns on a CPU (the main thread, which does all).
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) * 1e-9
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (from, streams) = words.split_first().ok_or("usage: flood FROM TO:PORT:RATE:HEX...")?;
    let from: Ipv4Addr = from.parse().map_err(|error| format!("{from}: {error}; an IPv4 address of this machine"))?;
    let mut streams = streams.iter().map(|words| Stream::parse(from, words)).collect::<Result<Vec<Stream>, _>>()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ends.store(true, Ordering::Relaxed);
    });
    let begun = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let elapsed = begun.elapsed();
        let sent = streams.iter_mut().filter_map(|stream| stream.turn(elapsed).then_some(())).count();
        if sent == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rates: Vec<f64> = streams.iter().map(|stream| stream.sent as f64 / seconds).collect();
    println!("{}", json!({ "per_s": rates, "cpu": cpu_seconds() / seconds }));
    Ok(())
}
