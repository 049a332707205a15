// SPDX-License-Identifier: Apache-2.0
//! The successive connections that carried a board's messages, and the first message of the next connection.
//! Promise: messages that a server has acknowledged are not sent again, and no later message is left out.

use penstock_board::{Completion, WcStatus};
use penstock_netsim::Time;
use penstock_wire::gateware::LineClock;
use penstock_wire::Ipv4Addr;
use serde::Serialize;

/// One connection. Times are the board's.
#[derive(Debug, Clone, Serialize)]
pub struct Connection {
    server: Ipv4Addr,
    opened_us: f64,
    /// Message of the run that went first over it.
    first: u64,
    /// Messages that were acknowledged, and when the last one was.
    acknowledged: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_us: Option<f64>,
    /// When it was known to be over, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// The server refused a message: not a matter of the connection.
    #[serde(skip)]
    is_refused: bool,
    /// The server ended it by RST, or closed it: of a stream.
    #[serde(skip)]
    is_reset: bool,
}

/// All of them, the last one being in use or having ended.
#[derive(Debug, Default)]
pub struct Connections {
    all: Vec<Connection>,
}

pub fn us(at: Time) -> f64 {
    at.as_ps() as f64 * 1e-6
}

impl Connections {
    pub fn all(&self) -> &[Connection] {
        &self.all
    }

    /// The message that was not acknowledged over any of them.
    pub fn next(&self) -> u64 {
        self.all.last().map_or(0, |last| last.first + last.acknowledged)
    }

    pub fn opened(&mut self, server: Ipv4Addr, at: Time) {
        self.all.push(Connection {
            server,
            opened_us: us(at),
            first: self.next(),
            acknowledged: 0,
            answered_us: None,
            ended_us: None,
            ended: None,
            is_refused: false,
            is_reset: false,
        });
    }

    /// A message has ended. They end in the order in which they were sent.
    pub fn completed(&mut self, clock: LineClock, completion: &Completion) {
        let Some(last) = self.all.last_mut() else { return };
        let at = clock.time(completion.cycle);
        match completion.status {
            _ if last.ended.is_some() => {}
            WcStatus::Success => {
                last.acknowledged += 1;
                last.answered_us = Some(us(at));
            }
            status => {
                let is_gone = matches!(
                    status,
                    WcStatus::RetryExceeded | WcStatus::RnrRetryExceeded | WcStatus::RemoteAborted | WcStatus::Flushed
                );
                last.is_refused = !is_gone;
                last.is_reset = status == WcStatus::RemoteAborted;
                last.end(at, status.to_string());
            }
        }
    }

    /// The queue pair or stream is not the one that was opened, or is closed; `by_server`: a stream, by its receiver.
    pub fn closed(&mut self, at: Time, why: &str, by_server: bool) {
        if let Some(last) = self.all.last_mut().filter(|last| last.ended.is_none()) {
            last.is_reset = by_server;
            last.end(at, why.to_owned());
        }
    }

    /// How many were reset in a row, the last one included, before a message of theirs was acknowledged.
    pub fn resets(&self) -> usize {
        self.all.iter().rev().take_while(|one| one.is_reset && one.acknowledged == 0).count()
    }

    /// Why the receiver of a stream, which has no word for it, does not take the messages.
    pub fn refusal(&self, slot_size: u32) -> String {
        let how = match self.resets() {
            0 => "reset the stream when its kernel had acknowledged all messages, and may not have taken all of them"
                .to_owned(),
            resets => format!("reset {resets} streams in a row and acknowledged no message of theirs"),
        };
        format!(
            "the receiver has {how}: has it slots of {slot_size} bytes, as the messages need (`penstock recv --slot-size`)?"
        )
    }

    /// The last one has ended, and another server may take what is left.
    pub fn is_lost(&self) -> bool {
        self.all.last().is_some_and(|last| last.ended.is_some() && !last.is_refused)
    }
}

impl Connection {
    fn end(&mut self, at: Time, why: String) {
        (self.ended_us, self.ended) = (Some(us(at)), Some(why));
    }

    /// The outcome, as text.
    pub fn text(&self) -> String {
        let Self { server, opened_us, first, acknowledged, ended, .. } = self;
        let ended = ended.as_ref().map_or_else(|| "open".to_owned(), |why| format!("ended: {why}"));
        format!("{server} from {opened_us:.1} us on: {acknowledged} messages from {first} on; {ended}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn end(connections: &mut Connections, statuses: &[WcStatus]) {
        for (n, status) in statuses.iter().enumerate() {
            connections
                .completed(LineClock::GBPS_10, &Completion { cycle: 1000 + n as u64, qp: 0, status: *status, tag: 0 });
        }
    }

    #[test]
    fn the_next_connection_begins_with_the_first_message_that_was_not_acknowledged() {
        use WcStatus::{Flushed, RetryExceeded, Success};
        let mut connections = Connections::default();
        connections.opened(SERVER, Time::ZERO);
        end(&mut connections, &[Success, Success, RetryExceeded, Flushed]);
        assert!(connections.is_lost() && connections.next() == 2);
        // One that went over a queue pair that was opened again before its messages had ended: sent again in its turn.
        end(&mut connections, &[Success]);
        assert_eq!(connections.next(), 2);
        connections.opened(SERVER, Time::from_us(50));
        end(&mut connections, &[Success; 3]);
        assert!(!connections.is_lost() && connections.next() == 5);
        connections.closed(Time::from_us(60), "queue pair closed", false);
        assert!(connections.is_lost() && connections.next() == 5);
        let firsts: Vec<u64> = connections.all().iter().map(|connection| connection.first).collect();
        assert_eq!(firsts, [0, 2]);
    }

    #[test]
    fn resets_count_as_long_as_no_message_is_taken() {
        use WcStatus::{Flushed, RemoteAborted, RetryExceeded, Success};
        let mut connections = Connections::default();
        for (statuses, resets) in [
            (&[RemoteAborted][..], 1),
            (&[RemoteAborted, Flushed], 2),
            (&[Success, RemoteAborted], 0),
            (&[RemoteAborted], 1),
            (&[RetryExceeded], 0),
        ] {
            connections.opened(SERVER, Time::ZERO);
            end(&mut connections, statuses);
            assert_eq!(connections.resets(), resets, "{statuses:?}");
        }
        connections.opened(SERVER, Time::ZERO);
        connections.closed(Time::ZERO, "reset by the receiver", true);
        assert_eq!(connections.resets(), 1, "before its messages have ended");
    }

    #[test]
    fn a_message_that_the_server_refuses_is_not_sent_to_another_one() {
        let mut connections = Connections::default();
        connections.opened(SERVER, Time::ZERO);
        end(&mut connections, &[WcStatus::RemoteAccess, WcStatus::Flushed]);
        assert!(!connections.is_lost());
    }
}
