// SPDX-License-Identifier: Apache-2.0
//! Heartbeats: a thread per server reads the metrics of its `recv` over HTTP.
//! Promise: a server that does not answer, or gives an invalid answer, counts as silent and does not delay the others.
//! Source: RFC 9112 (HTTP/1.1), OpenMetrics 1.0; the names are in docs/recv.md ("Metrics").

use penstock_farm::ServerView;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::Sender;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(500);
/// Metrics of a thousand boards take less.
const LONGEST: u64 = 16 << 20;

/// Polls this server until the receiving end of the channel is gone.
pub fn listen(server: u16, address: SocketAddr, to: Sender<(u16, ServerView)>) -> Result<(), String> {
    let ask = move || loop {
        if let Some(view) = metrics(address).and_then(|text| view(&text)) {
            if to.send((server, view)).is_err() {
                return;
            }
        }
        std::thread::sleep(INTERVAL);
    };
    let thread = std::thread::Builder::new().name(format!("server {server}"));
    thread.spawn(ask).map(|_| ()).map_err(|error| format!("cannot make a thread: {error}"))
}

fn metrics(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer).ok()?;
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
        if name == "penstock_server_tables" {
            view.tables_read = value.parse().ok();
        } else if name == "penstock_boards" {
            is_recv = true;
        } else if let Some(board) =
            name.strip_prefix("penstock_board_up{board=\"").and_then(|rest| rest.strip_suffix("\"}"))
        {
            view.boards_up.insert(unescaped(board), value != "0");
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
        penstock_board_up{board=\"10.0.0.2\"} 1\npenstock_board_up{board=\"left\"} 0\n# EOF\n";

    #[test]
    fn metrics_of_a_recv_are_read_and_nothing_else_is_a_heartbeat() {
        let read = view(TEXT).unwrap();
        assert_eq!(read.tables_read, Some(3));
        assert_eq!(read.boards_up.into_iter().collect::<Vec<_>>(), [("10.0.0.2".into(), true), ("left".into(), false)]);
        assert_eq!(view(&TEXT[..TEXT.len() - 7]), None, "cut off");
        assert_eq!(view("node_load1 0.5\n# EOF\n"), None, "somebody else's");
    }
}
