// SPDX-License-Identifier: Apache-2.0
//! Prometheus metrics over HTTP: every counter of a session as text, by a thread that only hands out the latest.
//! Promise: whoever asks, and however slowly, never holds up the receiver.
//! Source: Prometheus text exposition format 0.0.4.

use super::options::not_listening;
use penstock_readout::session::{BoardReport, BoardState, SessionReport};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub struct Metrics {
    text: Arc<Mutex<String>>,
}

impl Metrics {
    /// Listens at `address` until the process ends.
    pub fn serve(address: SocketAddr) -> Result<Metrics, String> {
        let listener = TcpListener::bind(address).map_err(|error| not_listening("--metrics", address, &error))?;
        let text = Arc::new(Mutex::new(String::new()));
        let latest = text.clone();
        let serve = move || {
            for stream in listener.incoming() {
                match stream {
                    // Who goes away before the end has had enough.
                    Ok(stream) => {
                        let _ = answer(stream, &latest.lock().unwrap_or_else(PoisonError::into_inner).clone());
                    }
                    // No descriptor is left for it: it waits, and the receiver needs the core.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        std::thread::Builder::new().name("metrics".into()).spawn(serve).map_err(|error| error.to_string())?;
        Ok(Metrics { text })
    }

    pub fn tell(&self, report: &SessionReport) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text(report);
    }
}

/// Whatever is asked for, these are the metrics.
fn answer(mut stream: TcpStream, text: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let (mut request, mut len) = ([0; 4096], 0);
    while len < request.len() && !request[..len].windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut request[len..])? {
            0 => break,
            n => len += n,
        }
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

fn text(report: &SessionReport) -> String {
    let (builder, readout) = (&report.readout.builder, &report.readout.receiver);
    let mut out = String::new();
    let mut total = |name: &str, kind: &str, help: &str, value: f64| {
        let _ = writeln!(out, "# HELP penstock_{name} {help}\n# TYPE penstock_{name} {kind}\npenstock_{name} {value}");
    };
    let up = report.boards.iter().filter(|board| board.state == BoardState::Up).count();
    total("boards", "gauge", "Boards of this receiver.", report.boards.len() as f64);
    total("boards_up", "gauge", "Boards that may send.", up as f64);
    total("events_complete_total", "counter", "Events with all fragments.", builder.events_complete as f64);
    total("events_incomplete_total", "counter", "Events without some fragments.", builder.events_incomplete as f64);
    total("fragments_good_total", "counter", "Fragments whose CRC-32C is right.", readout.fragments_good as f64);
    total(
        "fragments_crc_error_total",
        "counter",
        "Fragments whose CRC-32C is wrong.",
        readout.fragments_crc_error as f64,
    );
    total(
        "fragments_malformed_total",
        "counter",
        "Messages that are no fragments.",
        readout.fragments_malformed as f64,
    );
    let strays = (builder.strays() + builder.duplicates) as f64;
    total("fragments_stray_total", "counter", "Fragments that belong to no event, or came twice.", strays);
    total("store_stalls_total", "counter", "How often storage failed and was waited for.", readout.store_stalls as f64);
    total("store_waits_total", "counter", "How often storage was slower than the boards.", readout.store_waits as f64);
    total("stored_bytes_total", "counter", "Payload bytes of all events stored.", readout.bytes_stored as f64);
    total("cpu_seconds_total", "counter", "CPU time of the receiving thread.", report.cpu_seconds);
    for (name, value) in &report.counters {
        total(&format!("{name}_total"), "counter", "Of the whole device or socket.", *value as f64);
    }
    of_boards(&mut out, report);
    out
}

/// A value of each board under every name: where it stands, and what its queue pair counts.
fn of_boards(out: &mut String, report: &SessionReport) {
    let mut family = |name: &str, kind: &str, of: &dyn Fn(&BoardReport) -> u64| {
        let _ = writeln!(out, "# TYPE penstock_{name} {kind}");
        for board in &report.boards {
            let label = board.name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = writeln!(out, "penstock_{name}{{board=\"{label}\"}} {}", of(board));
        }
    };
    family("board_up", "gauge", &|board| u64::from(board.state == BoardState::Up));
    family("board_connections_total", "counter", &|board| board.lives.into());
    family("board_credits", "gauge", &|board| board.credits.into());
    family("board_messages_total", "counter", &|board| board.messages);
    family("board_bytes_total", "counter", &|board| board.bytes);
    let names: BTreeSet<&String> = report.boards.iter().flat_map(|board| board.counters.keys()).collect();
    for name in names {
        family(name, "counter", &|board| board.counters.get(name).copied().unwrap_or(0));
    }
}
