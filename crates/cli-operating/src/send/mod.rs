// SPDX-License-Identifier: Apache-2.0
//! `penstock send`: software front ends that speak the gateware's protocols, hundreds in one process.
//! Promise: every message is delivered once and in order, even if a server is killed and restarted; exit
//! status 0 only if all messages were acknowledged.
//! Requester and congestion control are those of `penstock_transport` and `penstock_cc`, with the gateware's rules.

mod announcer;
mod arguments;
mod choices;
mod cnp_bound;
mod connect;
mod destination;
mod faults;
mod front_end;
mod lane;
mod link;
mod pacing;
mod payload;
mod plan;
mod rdma;
mod registers;
mod tables;
mod tcp;
mod window;

use crate::servers_file::Farm;
use choices::ProtocolName;
use front_end::FrontEnd;
use link::{is_gone, Link};
use penstock_cli_common::interrupt::on_interrupt;
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::screen::notify;
use penstock_cli_common::output::to_verdict;
use penstock_readout::backend::SessionClock;
use penstock_readout::ShareError;
use penstock_units::Time;
use penstock_wire::RocePacket;
use plan::Plan;
use rdma::RdmaPorts;
use registers::Registers;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

pub use arguments::Arguments;

/// Time between two looks at the file of servers.
const FARM: Time = Time::from_ms(100);
/// Time between two looks at the messages of the connection manager.
const CM: Time = Time::from_ms(1);

/// Time for servers to answer DREQs at the end, and between two looks at what they answer.
const HANG_UP: Time = Time::from_ms(1000);
const CLOSING: Duration = Duration::from_millis(5);

/// Receptions that empty the packet socket.
const ROUNDS: usize = 16;
/// Time between two polls of IPbus requests.
const REGISTERS: Time = Time::from_ms(5);

/// Sends; prints what went wrong itself.
pub fn run(arguments: &Arguments) -> Verdict {
    to_verdict(Plan::read(arguments).map_err(Failure::Refused).and_then(|plan| match arguments.protocol.protocol {
        ProtocolName::Rc => send(&plan),
        ProtocolName::Tcp => tcp::send(arguments, &plan),
    }))
}

fn send(plan: &Plan) -> Result<Verdict, Failure> {
    let farm = plan.sharing.as_ref().map(|(file, server)| Farm::open(file, *server));
    let mut farm = farm.transpose().map_err(Failure::Refused)?;
    let share = farm.as_ref().map(|farm| (Arc::new(farm.servers()), farm.server()));
    let interrupted = on_interrupt()?;
    let clock = SessionClock::start();
    let mut link = Link::open(plan).map_err(Failure::Refused)?;
    let ips: Vec<_> = plan.ips().collect();
    let shared = Arc::new(plan.clone());
    let front_ends =
        ips.iter().enumerate().map(|(k, &ip)| FrontEnd::new(&shared, share.clone(), k as u16, ip, link.mac()));
    let mut crowd = Crowd::of(front_ends.collect::<Result<_, _>>().map_err(Failure::Refused)?);
    let mut sockets = connect::Sockets::bind(&ips, &plan.allow).map_err(Failure::Refused)?;
    crowd.rdma =
        plan.rdma_port.map(|port| RdmaPorts::open(plan, port, link.mac())).transpose().map_err(Failure::Refused)?;
    let mut registers = Registers::bind(plan, link.mac()).map_err(Failure::Refused)?;
    if !plan.json {
        notify(tables::opening(plan, link.mac()));
    }
    let (mut now, mut cm_due, mut farm_due, mut failure) = (clock.now(), Time::ZERO, FARM, None);
    let mut registers_due = Time::ZERO;
    while !interrupted.load(Ordering::Relaxed) && now < plan.end && !crowd.is_over(now, plan.linger) {
        if now >= cm_due {
            cm_due = now + CM;
            let arrived = sockets.receive();
            if !arrived.is_empty() || crowd.rdma.as_ref().is_some_and(RdmaPorts::has_arrivals) {
                // A server acknowledges before it closes. After a pause of this process both are here, and what a closed
                // queue pair has not seen acknowledged is sent again.
                (0..ROUNDS).find(|_| !crowd.receive(now, &mut link));
            }
            match &mut crowd.rdma {
                Some(rdma) => rdma.serve(now, &mut crowd.front_ends, &mut link),
                None => sockets.serve(now, arrived, &mut crowd.front_ends),
            }
        }
        if now >= registers_due {
            registers_due = now + REGISTERS;
            registers.serve(now, &mut crowd.front_ends);
        }
        if let Some(farm) = farm.as_mut().filter(|_| now >= farm_due) {
            farm_due = now + FARM;
            crowd.look(farm);
        }
        let busy = crowd.receive(now, &mut link) | crowd.transmit(now, &mut link);
        crowd.warn();
        if let Err(error) = link.flush(now) {
            failure = Some(is_gone(plan, &error));
            break;
        }
        now = clock.now();
        if !busy {
            let wake = crowd.next().min(cm_due);
            let wait = Duration::from_nanos(wake.saturating_sub(now) / Time::from_ns(1));
            if let Err(error) = link.wait(wait) {
                failure = Some(is_gone(plan, &error));
                break;
            }
            now = clock.now();
        }
    }
    crowd.hang_up(&clock, &mut link);
    let requests = tables::Requests {
        cm_strangers: sockets.strangers() + crowd.rdma.as_ref().map_or(0, RdmaPorts::strangers),
        ipbus_strangers: registers.strangers(),
        rdma_cm: crowd.rdma.as_ref().map(RdmaPorts::counters).unwrap_or_default(),
    };
    let faults = failure.into_iter().chain(crowd.refused).collect();
    let report = tables::report(&crowd.front_ends, now, requests, (link.counts(), link.refusal()), faults);
    Ok(tables::print_report(&report, &report.faults, plan.json, tables::closing))
}

/// All front ends of the process.
struct Crowd {
    front_ends: Vec<FrontEnd>,
    /// Who sends first.
    turn: usize,
    /// When the last message was acknowledged.
    done: Option<Time>,
    /// Changes of servers that came too late.
    refused: Vec<String>,
    /// None: FEROCE's connection manager.
    rdma: Option<RdmaPorts>,
}

impl Crowd {
    fn of(front_ends: Vec<FrontEnd>) -> Crowd {
        Crowd { front_ends, turn: 0, done: None, refused: Vec::new(), rdma: None }
    }

    /// All messages are acknowledged, and the servers have closed their queue pairs or had time to.
    fn is_over(&mut self, now: Time, linger: Time) -> bool {
        if !self.front_ends.iter().all(FrontEnd::is_done) {
            self.done = None;
            return false;
        }
        let since = *self.done.get_or_insert(now);
        self.front_ends.iter().all(|f| !f.is_connected()) || now >= since.saturating_add(linger)
    }

    /// Takes what was announced about the servers.
    fn look(&mut self, farm: &mut Farm) {
        match farm.look() {
            None => {}
            Some(Err(error)) => notify(format_args!("WARNING: {error}; the table stays as it was")),
            Some(Ok(changes)) => {
                for change in changes {
                    let begun = self.front_ends.iter().filter_map(FrontEnd::last_event).max();
                    match begun.filter(|begun| *begun >= change.first) {
                        None => farm.accept(change),
                        Some(taken) => {
                            let error = ShareError::TooLate { from_event: change.first, taken };
                            notify(format_args!("WARNING: {error}"));
                            self.refused.push(error.to_string());
                            farm.refuse(change);
                        }
                    }
                }
                let servers = Arc::new(farm.servers());
                self.front_ends.iter_mut().for_each(|front_end| front_end.share(&servers));
            }
        }
    }

    fn receive(&mut self, now: Time, link: &mut Link) -> bool {
        let (front_ends, rdma) = (&mut self.front_ends, &mut self.rdma);
        let first = front_ends[0].ip().to_bits();
        link.receive(|packet: &RocePacket| {
            let k = packet.ip_dst.to_bits().wrapping_sub(first) as usize;
            let is_mad = rdma.as_mut().is_some_and(|rdma| rdma.take(k, packet));
            is_mad || front_ends.get_mut(k).is_some_and(|front_end| front_end.handle_packet(now, packet))
        })
    }

    /// Closes the connections of the standard connection manager; those that a server does not answer for are left.
    fn hang_up(&mut self, clock: &SessionClock, link: &mut Link) {
        let end = clock.now() + HANG_UP;
        while clock.now() < end {
            let now = clock.now();
            let waits = self.rdma.as_mut().is_some_and(|rdma| rdma.hang_up(now, link));
            if link.flush(now).is_err() || !waits || link.wait(CLOSING).is_err() {
                return;
            }
            self.receive(clock.now(), link);
        }
    }

    fn transmit(&mut self, now: Time, link: &mut Link) -> bool {
        // The link fills up before all have had their turn: each time another one is first.
        self.turn = (self.turn + 1) % self.front_ends.len();
        let (later, first) = self.front_ends.split_at_mut(self.turn);
        first.iter_mut().chain(later).fold(false, |busy, front_end| front_end.turn(now, link) | busy)
    }

    fn warn(&mut self) {
        for warning in self.front_ends.iter_mut().filter_map(FrontEnd::take_warning) {
            notify(format_args!("WARNING: {warning}"));
        }
    }

    fn next(&self) -> Time {
        self.front_ends.iter().map(FrontEnd::next).min().unwrap_or(Time::MAX)
    }
}
