// SPDX-License-Identifier: Apache-2.0
//! Heartbeats: a thread per server reads the metrics of its `recv` over HTTP.
//! Promise: a server that does not answer, or gives an invalid answer, counts as silent and does not delay the others.
//! Source: RFC 9112 (HTTP/1.1), OpenMetrics 1.0; the names are in docs/recv.md ("Metrics").

use penstock_farm::{BoardAtServer, ServerView};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(50);
/// Time for one answer, however slowly it comes.
const PATIENCE: Duration = Duration::from_millis(500);
/// Metrics of a thousand boards take less.
const LONGEST: usize = 16 << 20;

/// Polls this server until the receiving end of the channel is gone. None: what it answers are no metrics of a `recv`.
pub fn listen(server: u16, address: SocketAddr, to: Sender<(u16, Option<ServerView>)>) -> Result<(), String> {
    let poll = move || loop {
        let answer = metrics(address, PATIENCE);
        if answer.is_some_and(|text| to.send((server, text.and_then(|text| view(&text)))).is_err()) {
            return;
        }
        std::thread::sleep(INTERVAL);
    };
    let thread = std::thread::Builder::new().name(format!("server {server}"));
    thread.spawn(poll).map(|_| ()).map_err(|error| format!("cannot make a thread: {error}"))
}

/// None: no answer within patience; None within: not one of an HTTP server that has metrics.
fn metrics(address: SocketAddr, patience: Duration) -> Option<Option<String>> {
    let until = Instant::now() + patience;
    let left = || Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero());
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_write_timeout(Some(left()?)).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let (mut answer, mut piece) = (Vec::new(), [0; 1 << 14]);
    while answer.len() < LONGEST {
        stream.set_read_timeout(Some(left()?)).ok()?;
        match stream.read(&mut piece).ok()? {
            0 => break,
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    Some(String::from_utf8(answer).ok().and_then(|answer| body(&answer)))
}

fn body(answer: &str) -> Option<String> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.lines().next()?.split(' ').nth(1).filter(|status| *status == "200")?;
    Some(body.to_owned())
}

/// None: these are no metrics of a `recv`, or not whole.
fn view(text: &str) -> Option<ServerView> {
    let mut view = ServerView::default();
    let (mut is_recv, mut is_whole) = (false, false);
    for line in text.lines() {
        is_whole |= line == "# EOF";
        let Some((name, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) else { continue };
        match name {
            "penstock_server_number" => view.server = Some(value.parse().ok()?),
            "penstock_server_tables" => view.tables_read = value.parse().ok()?,
            "penstock_server_tables_digest" => view.tables_digest = value.parse().ok()?,
            "penstock_started_microseconds" => view.started = value.parse().ok()?,
            "penstock_turns_total" => view.turns = value.parse().ok()?,
            "penstock_boards" => is_recv = true,
            name => {
                let Some((name, board)) = name.strip_suffix("\"}").and_then(|name| name.split_once("{board=\"")) else {
                    continue;
                };
                let mut of = |set: fn(&mut BoardAtServer, u64)| -> Option<()> {
                    set(view.boards.entry(unescaped(board)).or_default(), value.parse().ok()?);
                    Some(())
                };
                match name {
                    "penstock_board_up" => of(|board, value| board.is_up = value != 0)?,
                    "penstock_board_credits" => of(|board, value| board.credits = value)?,
                    "penstock_board_slots" => of(|board, value| board.slots = value)?,
                    // No queue pair has the number 0: the back end has none.
                    "penstock_board_queue_pair" => of(|board, value| {
                        board.queue_pair = u32::try_from(value).ok().filter(|number| *number > 0);
                    })?,
                    _ => {}
                }
            }
        }
    }
    (is_recv && is_whole).then_some(view)
}

/// A label's value: backslash, quotation mark and end of line are escaped (OpenMetrics 1.0, ABNF).
fn unescaped(text: &str) -> String {
    text.replace("\\\"", "\"").replace("\\n", "\n").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE penstock_boards gauge\npenstock_boards 2\npenstock_server_tables 3\n\
        penstock_server_number 1\npenstock_server_tables_digest 4294967295\npenstock_started_microseconds 5\n\
        penstock_turns_total 77\npenstock_board_up{board=\"10.0.0.2\"} 1\npenstock_board_up{board=\"left\"} 0\n\
        penstock_board_credits{board=\"10.0.0.2\"} 7\npenstock_board_slots{board=\"10.0.0.2\"} 8\n\
        penstock_board_queue_pair{board=\"10.0.0.2\"} 81\npenstock_board_queue_pair{board=\"left\"} 0\n# EOF\n";

    #[test]
    fn metrics_of_a_recv_are_read_and_nothing_else_is_a_heartbeat() {
        let read = view(TEXT).unwrap();
        assert_eq!((read.server, read.tables_read, read.tables_digest), (Some(1), 3, u32::MAX));
        assert_eq!((read.started, read.turns), (5, 77));
        let up = BoardAtServer { is_up: true, credits: 7, slots: 8, queue_pair: Some(81) };
        let down = BoardAtServer::default();
        assert_eq!(read.boards.into_iter().collect::<Vec<_>>(), [("10.0.0.2".into(), up), ("left".into(), down)]);
        assert_eq!(view(&TEXT[..TEXT.len() - 7]), None, "cut off");
        assert_eq!(view("node_load1 0.5\n# EOF\n"), None, "somebody else's");
        for (right, wrong) in
            [("tables 3", "tables -3"), ("number 1", "number 65536"), ("{board=\"left\"} 0", "{board=\"left\"} x")]
        {
            assert!(TEXT.contains(right));
            assert_eq!(view(&TEXT.replace(right, wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_server_whose_answer_trickles_is_silent_and_holds_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // It ends at some time, so that this test cannot hang.
            let pieces = (0..200).take_while(|_| {
                std::thread::sleep(Duration::from_millis(10));
                stream.write_all(b"x").is_ok()
            });
            pieces.count()
        });
        assert_eq!(metrics(address, Duration::from_millis(100)), None);
        assert!(server.join().unwrap() < 200, "it was listened to until it had ended by itself");
    }

    #[test]
    fn an_answer_that_is_no_http_or_no_success_has_no_metrics() {
        assert_eq!(body("HTTP/1.1 200 OK\r\nA: b\r\n\r\ntext").unwrap(), "text");
        for answer in ["", "SSH-2.0\r\n\r\n", "HTTP/1.1 500 No\r\n\r\ntext", "HTTP/1.1 200 OK\r\ntext"] {
            assert_eq!(body(answer), None, "{answer}");
        }
    }
}
