// SPDX-License-Identifier: Apache-2.0
//! What no single key can tell: thresholds out of order, links nothing can pass, buffers that cannot hold what they
//! must.
//! Promise: a scenario that passes can be built and run; each refusal names the key to change and its bound.
//! Source: IBTA 9.7.6.1.3 for the timeout.

use penstock_cc::Law;

use super::document::Document;
use super::error::Problem;
use super::Scenario;
use crate::link::LinkParams;
use crate::switch::{Headroom, PfcParams, PfcThreshold};
use crate::units::{ByteSize, Rate, Time};

/// The link of every node, with the section that sets it.
pub(super) fn all_links(scenario: &Scenario) -> impl Iterator<Item = (String, LinkParams)> + '_ {
    let common = std::iter::once(("link".to_owned(), scenario.link));
    common.chain(scenario.links_at.iter().map(|(name, link)| (format!("link.at.{name}"), *link)))
}

struct Checker<'a> {
    document: &'a Document,
    problems: &'a mut Vec<Problem>,
}

impl Checker<'_> {
    fn require(&mut self, holds: bool, key: &str, value: impl ToString, message: impl Into<String>) {
        if !holds {
            self.problems.push(self.document.problem(key, &value.to_string(), message.into()));
        }
    }
}

pub(super) fn scenario(scenario: &mut Scenario, document: &Document, problems: &mut Vec<Problem>) {
    let mut checker = Checker { document, problems };
    run_and_data(scenario, &mut checker);
    links(scenario, &mut checker);
    board_links(scenario, &mut checker);
    switch(scenario, &mut checker);
    server_and_qp(scenario, &mut checker);
    congestion_control(scenario, &mut checker);
    warnings(scenario, document);
}

fn run_and_data(scenario: &Scenario, checker: &mut Checker) {
    let (run, data) = (&scenario.run, &scenario.data);
    let at_least = "allowed is more than 0";
    checker.require(run.time_limit > Time::ZERO, "run.time_limit", run.time_limit, at_least);
    checker.require(data.trigger_rate.0 > 0, "data.trigger_rate", data.trigger_rate, at_least);
    let interval = scenario.trace.interval;
    let fine = interval == Time::ZERO || interval >= Time::from_us(1);
    checker.require(fine, "trace.interval", interval, "allowed is 0us for no trace, or 1us and more");
}

fn links(scenario: &Scenario, checker: &mut Checker) {
    for (section, link) in all_links(scenario) {
        for (name, message) in refuse_link(&link) {
            let value = match name {
                "rate" => link.rate.to_string(),
                "delay" => link.delay.to_string(),
                "jitter" => link.faults.jitter.to_string(),
                _ => link.faults.reorder_by.to_string(),
            };
            checker.require(false, &format!("{section}.{name}"), value, message);
        }
    }
}

/// What is out of range of a link: the key, and what is allowed.
pub(crate) fn refuse_link(link: &LinkParams) -> Vec<(&'static str, &'static str)> {
    let late = Time::from_ms(100);
    let checks = [
        ("rate", (Rate(1_000_000)..=Rate::from_gbps(800)).contains(&link.rate), "allowed is 1Mbps to 800Gbps"),
        (
            "delay",
            (Time::from_ns(100)..=late).contains(&link.delay),
            "allowed is 100ns to 100ms; nodes run ahead of each other by this much",
        ),
        ("jitter", link.faults.jitter <= late, "allowed is up to 100ms"),
        ("reorder_by", link.faults.reorder_by <= late, "allowed is up to 100ms"),
    ];
    checks.into_iter().filter(|(_, holds, _)| !holds).map(|(key, _, message)| (key, message)).collect()
}

/// The boards are gateware of a fixed line rate; a slower link would queue without end, a faster one never be used.
fn board_links(scenario: &Scenario, checker: &mut Checker) {
    let mut seen = std::collections::BTreeSet::new();
    for name in (0..scenario.boards.count).map(Scenario::board_name) {
        let own = scenario.links_at.contains_key(&name);
        let key = if own { format!("link.at.{name}.rate") } else { "link.rate".to_owned() };
        if seen.insert(key.clone()) {
            let rate = scenario.link_of(&name).rate;
            let message =
                format!("allowed is {} on the link of a board, the rate of its gateware", Scenario::BOARD_RATE);
            checker.require(rate == Scenario::BOARD_RATE, &key, rate, message);
        }
    }
}

/// Thresholds and headroom, which the reader always writes out.
fn static_pfc(pfc: Option<PfcParams>) -> Option<(ByteSize, ByteSize, ByteSize)> {
    match pfc? {
        PfcParams { threshold: PfcThreshold::Static { xoff, xon }, headroom: Headroom::Fixed(headroom), .. } => {
            Some((xoff, xon, headroom))
        }
        _ => None,
    }
}

fn switch(scenario: &Scenario, checker: &mut Checker) {
    let switch = &scenario.switch;
    let buffer = switch.buffer;
    if let Some(ecn) = switch.ecn[0] {
        let message = format!("allowed is at most kmax, {}", ecn.kmax);
        checker.require(ecn.kmin <= ecn.kmax, "switch.kmin", ecn.kmin, message);
        let message = format!("allowed is at most the buffer, {buffer}; no queue can be longer");
        checker.require(ecn.kmax <= buffer, "switch.kmax", ecn.kmax, message);
    }
    if let Some((xoff, xon, headroom)) = static_pfc(switch.pfc) {
        let message = format!("allowed is less than xoff, {xoff}");
        checker.require(xon < xoff, "switch.xon", xon, message);
        let room = ByteSize(buffer.bytes().saturating_sub(headroom.bytes()));
        let message = format!("allowed is at most buffer less headroom, {room}");
        checker.require(xoff <= room, "switch.xoff", xoff, message);
    }
    let smallest = ByteSize(16 * crate::switch::max_frame(scenario.qp.mtu).bytes());
    let message = format!("allowed is {smallest} or more, 16 frames of the MTU");
    checker.require(buffer >= smallest, "switch.buffer", buffer, message);
}

fn server_and_qp(scenario: &Scenario, checker: &mut Checker) {
    let (server, qp) = (&scenario.server, &scenario.qp);
    let memory = u64::from(server.slots) * u64::from(scenario.boards.count);
    let memory = memory.saturating_mul(server.slot_size.bytes());
    let message = format!("boards x slots x slot_size is {}, allowed are up to 16 GiB", ByteSize(memory));
    checker.require(memory <= 16 << 30, "server.slot_size", server.slot_size, message);
    let sizes = ByteSize(64)..=ByteSize(1 << 31);
    checker.require(
        sizes.contains(&server.slot_size),
        "server.slot_size",
        server.slot_size,
        "allowed is 64B to 2GiB, the longest RDMA message",
    );
    let longest = Time::from_ns(655_360_000);
    let rnr = Time::from_us(10)..=longest;
    let message = "allowed is 10us to 655.36ms, the range of the RNR timer (IBTA table 45)";
    checker.require(rnr.contains(&server.rnr_delay), "server.rnr_delay", server.rnr_delay, message);
    let longest = Time::from_ms(1_000);
    let message = "allowed is up to 1s";
    checker.require(server.ack_delay <= longest, "server.ack_delay", server.ack_delay, message);
    let rate = server.consumer_rate.unwrap_or(Rate(1));
    checker.require(rate.0 > 0, "server.consumer_rate", rate, "allowed is more than 0");
    let longest = Time::from_ns(4096) * (1 << 31);
    let message = "allowed is 0us for never, or up to 8796s (IBTA 9.7.6.1.3)";
    checker.require(qp.ack_timeout <= longest, "qp.ack_timeout", qp.ack_timeout, message);
    let message = format!("allowed is a class (DSCP / 8) other than that of data, {}", qp.class());
    checker.require(qp.cnp_dscp >> 3 != qp.class(), "qp.cnp_dscp", qp.cnp_dscp, message);
}

fn congestion_control(scenario: &Scenario, checker: &mut Checker) {
    let cc = &scenario.cc;
    if cc.law == Law::Off {
        return;
    }
    let (min, line) = (Rate(cc.rate_min_bps), Rate(cc.rate_line_bps));
    let message = format!("allowed is above 0 and at most the rate of the link, {line}");
    checker.require(min.0 > 0 && min <= line, "cc.rate_min", min, message.clone());
    let (ai, hai) = (Rate(cc.rate_ai_bps), Rate(cc.rate_hai_bps));
    checker.require(ai <= line, "cc.rate_ai", ai, message.clone());
    checker.require(hai <= line, "cc.rate_hai", hai, message);
    let message = "the queue pair cannot recover: allowed is more than 0 for this or for byte_threshold";
    let recovers = cc.increase_interval_ps > 0 || cc.byte_threshold > 0;
    checker.require(recovers, "cc.increase_interval", Time(cc.increase_interval_ps), message);
}

fn warnings(scenario: &mut Scenario, document: &Document) {
    let mut warn = |key: &str, value: String, message: String| {
        scenario.warnings.push(document.problem(key, &value, message));
    };
    let switch = scenario.switch;
    if let Some((xoff, _, headroom)) = static_pfc(switch.pfc) {
        let ports = u64::from(scenario.boards.count) + 1;
        let needed = ByteSize(ports * (xoff.bytes() + headroom.bytes()));
        if needed > switch.buffer {
            let message = format!("frames may be dropped: {ports} ports with this xoff and headroom need {needed}");
            warn("switch.buffer", switch.buffer.to_string(), message);
        }
    }
    if switch.ecn[0].is_none() && scenario.cc.law == Law::Dcqcn {
        let message = "DCQCN will never hear of congestion while switch.ecn = false".to_owned();
        warn("switch.ecn", "false".to_owned(), message);
    }
    let round_trip = scenario.link.delay * 4 + scenario.server.ack_delay;
    let timeout = scenario.qp.ack_timeout;
    if timeout > Time::ZERO && timeout < round_trip {
        let message =
            format!("shorter than the round trip without queueing, {round_trip}: every packet will be repeated");
        warn("qp.ack_timeout", timeout.to_string(), message);
    }
}
