// SPDX-License-Identifier: Apache-2.0
//! The servers that share a board's events by the destination table: the messages acknowledged by each, and the
//! duration of an outage after a server died.
//! Promise: each completion counts for the server of its queue pair; an outage ends with the first acknowledged event
//! of the next table.

use super::connections::us;
use penstock_board::{Completion, WcStatus};
use penstock_wire::gateware::LineClock;
use penstock_wire::Ipv4Addr;
use serde::Serialize;

/// Bits of an event number in the tag of its completion.
const TAG_BITS: u32 = 24;

/// One server at one queue pair.
#[derive(Debug, Clone, Serialize)]
pub struct Destination {
    server: Ipv4Addr,
    queue_pair: u8,
    acknowledged: u64,
    /// Events that it may have or not; `penstock check` names those that are lost.
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_us: Option<f64>,
}

/// A server has died. Times are the board's.
#[derive(Debug, Clone, Serialize)]
pub struct Outage {
    server: Ipv4Addr,
    /// Its last acknowledgement; 0 if there was none.
    answered_us: f64,
    /// The queue pair gave it up.
    failed_us: f64,
    /// First event of the table without it, and when that event or one after it was acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_event: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_us: Option<f64>,
}

/// All of them, in the order in which they came.
#[derive(Debug, Default)]
pub struct Destinations {
    all: Vec<Destination>,
    outages: Vec<Outage>,
}

impl Destinations {
    pub fn all(&self) -> &[Destination] {
        &self.all
    }

    pub fn outages(&self) -> &[Outage] {
        &self.outages
    }

    /// A message has ended; `server` is whose queue pair it is now.
    pub fn completed(&mut self, clock: LineClock, completion: &Completion, server: Ipv4Addr) {
        let (qp, at) = (completion.qp, clock.time(completion.cycle));
        let found = self.all.iter().position(|one| (one.server, one.queue_pair) == (server, qp));
        let index = found.unwrap_or_else(|| {
            self.all.push(Destination { server, queue_pair: qp, acknowledged: 0, failed: 0, answered_us: None });
            self.all.len() - 1
        });
        let destination = &mut self.all[index];
        if completion.status != WcStatus::Success {
            destination.failed += 1;
            // What the queue pair still held may be flushed after an event of the next table was acknowledged.
            let covers = |outage: &Outage| outage.server == server && !outage.is_followed_by(completion.tag);
            if !self.outages.iter().any(covers) {
                let (answered_us, failed_us) = (destination.answered_us.unwrap_or(0.0), us(at));
                self.outages.push(Outage { server, answered_us, failed_us, first_event: None, resumed_us: None });
            }
            return;
        }
        destination.acknowledged += 1;
        destination.answered_us = Some(us(at));
        for outage in &mut self.outages {
            if outage.resumed_us.is_none() && outage.is_followed_by(completion.tag) {
                outage.resumed_us = Some(us(at));
            }
        }
    }

    /// A server has died, and no table without it is known yet.
    pub fn waits_for_table(&self) -> bool {
        self.outages.iter().any(|outage| outage.first_event.is_none())
    }

    /// The table in force from event `first` on has these servers.
    pub fn in_force(&mut self, first: u64, servers: &[Ipv4Addr]) {
        for outage in &mut self.outages {
            if outage.first_event.is_none() && !servers.contains(&outage.server) {
                outage.first_event = Some(first);
            }
        }
    }
}

impl Destination {
    /// The outcome of its events, as text.
    pub fn text(&self) -> String {
        format!("{}: {} events acknowledged, {} failed", self.server, self.acknowledged, self.failed)
    }
}

impl Outage {
    /// The event of this tag, the low bits of its number, belongs to the table without the server or to a later one.
    fn is_followed_by(&self, tag: u32) -> bool {
        self.first_event.is_some_and(|first| (tag.wrapping_sub(first as u32) << (32 - TAG_BITS)) as i32 >= 0)
    }

    /// How long it took, for people.
    pub fn text(&self) -> String {
        let Self { server, answered_us, failed_us, first_event, resumed_us } = self;
        let given_up = format!("{server}: given up {:.0} us after its last answer", failed_us - answered_us);
        match (first_event, resumed_us) {
            (Some(first), Some(resumed)) => {
                format!("{given_up}; from event {first} on acknowledged by others, {:.0} us later", resumed - failed_us)
            }
            (Some(first), None) => format!("{given_up}; none from event {first} on was acknowledged"),
            (None, _) => format!("{given_up}; no table without it came"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

    fn end(destinations: &mut Destinations, cycle: u64, qp: u8, event: u32, status: WcStatus) {
        let completion = Completion { cycle, qp, status, tag: event & 0xff_ffff };
        destinations.completed(LineClock::GBPS_10, &completion, SERVERS[usize::from(qp)]);
    }

    #[test]
    fn an_outage_lasts_from_the_last_answer_to_the_first_event_of_the_table_without_the_dead_server() {
        use WcStatus::{Flushed, RetryExceeded, Success};
        let mut destinations = Destinations::default();
        let base = 0xff_fffe; // the tag wraps
        end(&mut destinations, 1_000_000, 0, base, Success);
        end(&mut destinations, 2_000_000, 1, base + 1, Success);
        end(&mut destinations, 3_000_000, 0, base + 2, Success);
        end(&mut destinations, 5_000_000, 1, base + 3, RetryExceeded);
        end(&mut destinations, 5_000_001, 1, base + 5, Flushed);
        assert!(destinations.waits_for_table());
        destinations.in_force(0, &SERVERS); // still the table with it
        assert!(destinations.waits_for_table());
        destinations.in_force(u64::from(base) + 6, &SERVERS[..1]);
        assert!(!destinations.waits_for_table());
        end(&mut destinations, 6_000_000, 0, base + 4, Success);
        assert_eq!(destinations.outages()[0].resumed_us, None, "an event of the table before");
        end(&mut destinations, 7_000_000, 0, base + 6, Success);
        end(&mut destinations, 7_500_000, 1, base + 3, Flushed);
        end(&mut destinations, 8_000_000, 0, base + 7, Success);
        let [outage] = destinations.outages() else { panic!("one outage") };
        assert_eq!((outage.server, outage.first_event), (SERVERS[1], Some(u64::from(base) + 6)));
        assert_eq!([outage.answered_us, outage.failed_us, outage.resumed_us.unwrap()], [12_800.0, 32_000.0, 44_800.0]);
        let counts: Vec<_> = destinations.all().iter().map(|d| (d.server, d.acknowledged, d.failed)).collect();
        assert_eq!(counts, [(SERVERS[0], 5, 0), (SERVERS[1], 1, 3)]);

        // The server came back and dies again.
        end(&mut destinations, 9_000_000, 1, base + 9, RetryExceeded);
        assert_eq!(destinations.outages().len(), 2);
    }
}
