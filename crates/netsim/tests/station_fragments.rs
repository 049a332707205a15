// SPDX-License-Identifier: Apache-2.0
//! A stream of fragments to a receiver that accepts connections: every byte arrives with its framing, over faults and
//! a numbering that wraps; a send buffer refuses messages as a whole; a stream that is refused fails by name.

mod common;
#[path = "common/flows.rs"]
mod flows;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use common::{ip, link, PORT};
use flows::*;
use penstock_cc::Law;
use penstock_netsim::{
    Contents, Endpoint, Engine, Faults, FlowId, Fragments, Ledger, LinkParams, NodeId, PacingConfig, Probability,
    RemoteRing, RunEnd, SharedLedger, Station, TcpFlowConfig, TcpFlowSender, TcpStack, Time,
};
use penstock_transport::{BackOff, TcpConfig, TcpEndpoint, TcpPassive};
use penstock_wire::{read_stream_header, stream_padding, Packet, TcpFlags, TcpPacket, STREAM_HEADER_LEN};

/// Message `event` counts on from its number.
struct Counting(Vec<usize>);

impl Contents for Counting {
    fn message(&self, event: u64, _at: Time) -> Bytes {
        (0..self.0[event as usize]).map(|at| (event as usize + at) as u8).collect()
    }

    fn source_id(&self) -> u16 {
        0
    }

    fn streams(&self, _event: u64) -> Vec<Bytes> {
        Vec::new()
    }

    fn trigger_type(&self, _event: u64) -> u16 {
        0
    }
}

/// A program that accepts the connection and reads, or a host without one.
struct Listener {
    passive: Option<TcpPassive>,
    read: Rc<RefCell<Vec<u8>>>,
    config: TcpConfig,
    answers: Vec<TcpPacket>,
}

impl Listener {
    fn read(&mut self, now: Time) {
        let Some(passive) = &mut self.passive else { return };
        passive.set_reading(now, true);
        while let Some(bytes) = passive.take() {
            self.read.borrow_mut().extend_from_slice(&bytes);
        }
        self.answers.extend(std::iter::from_fn(|| passive.poll_transmit()));
    }
}

impl Endpoint for Listener {
    fn on_packet(&mut self, now: Time, packet: &Packet) {
        let Packet::Tcp(segment) = packet else { return };
        match &mut self.passive {
            Some(passive) => {
                passive.handle_packet(now, segment);
            }
            None => self.answers.push(TcpPacket {
                ack: segment.seq.wrapping_add(1),
                flags: TcpFlags::RST.with(TcpFlags::ACK),
                ..self.config.empty_segment()
            }),
        }
        self.read(now);
    }

    fn next_timeout(&self) -> Option<Time> {
        self.passive.as_ref().and_then(TcpPassive::next_timeout)
    }

    fn on_timeout(&mut self, now: Time) {
        if let Some(passive) = &mut self.passive {
            passive.handle_timeout(now);
        }
        self.read(now);
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        (!self.answers.is_empty()).then(|| Packet::Tcp(self.answers.remove(0)))
    }

    fn class(&self) -> usize {
        0
    }
}

/// One stream from station 0 to station 1.
struct Run {
    engine: Engine,
    ledger: SharedLedger,
    read: Rc<RefCell<Vec<u8>>>,
    sender: NodeId,
}

impl Run {
    /// `messages`: time and length of each.
    fn new(config: TcpConfig, link: LinkParams, messages: &[(Time, usize)], listens: bool, buffer: Option<u64>) -> Run {
        let (mut engine, ledger, source) = (Engine::new(3), Ledger::shared(1), Source::default());
        messages.iter().for_each(|(at, bytes)| source.post(*at, *bytes as u64));
        let contents = Arc::new(Counting(messages.iter().map(|(_, bytes)| *bytes).collect()));
        let fragments = Fragments { ring: RemoteRing { va: 0, rkey: 0, slots: 4, slot_bytes: 10_000 }, contents };
        let sender = TcpFlowSender::new(
            TcpFlowConfig {
                flow: FlowId(0),
                stack: TcpStack::Fragments(BackOff::Exponential, fragments),
                tcp: config,
                send_buffer: buffer,
                limiter_queue: None,
                pacing: PacingConfig { law: Law::Off, ..PacingConfig::default() },
            },
            Box::new(source),
            ledger.clone(),
        );
        let (mut from, mut to) = (station(0), station(1));
        from.add_tcp_sender(sender.unwrap()).unwrap();
        let config = config.reversed();
        let (read, passive) = (Rc::default(), listens.then(|| TcpPassive::new(config)));
        let listener = Listener { passive, read: Rc::clone(&read), config, answers: Vec::new() };
        to.add_tcp_application(Box::new(listener), &[config]).unwrap();
        let sender = engine.add_node("sender", Box::new(from));
        let receiver = engine.add_node("receiver", Box::new(to));
        engine.connect((sender, PORT), (receiver, PORT), link).unwrap();
        Run { engine, ledger, read, sender }
    }

    /// The messages in the bytes that the program has read.
    fn messages(&self) -> Vec<Vec<u8>> {
        let (read, mut at, mut messages) = (self.read.borrow(), 0, Vec::new());
        while at < read.len() {
            let header = read[at..at + STREAM_HEADER_LEN].try_into().unwrap();
            let len = read_stream_header(header).expect("a header") as usize;
            at += STREAM_HEADER_LEN;
            messages.push(read[at..at + len].to_vec());
            at += len + stream_padding(len);
        }
        messages
    }

    fn tcp(&self) -> &TcpFlowSender {
        self.engine.node::<Station>(self.sender).unwrap().tcp_sender(0).unwrap()
    }
}

fn config(iss: u32) -> TcpConfig {
    let end = |station, port| TcpEndpoint { mac: mac(station), ip: ip(station), port };
    TcpConfig {
        iss,
        min_rto: Time::from_us(500),
        delayed_ack: Time::from_us(50),
        receive_buffer: 20_000,
        ..TcpConfig::new(end(0, 40_000), end(1, 5_000))
    }
}

fn expected(messages: &[(Time, usize)]) -> Vec<Vec<u8>> {
    let counting = Counting(messages.iter().map(|(_, bytes)| *bytes).collect());
    (0..messages.len() as u64).map(|event| counting.message(event, Time::ZERO).to_vec()).collect()
}

#[test]
fn every_message_arrives_over_faults_and_a_numbering_that_wraps() {
    let chance = |p| Probability::new(p).unwrap();
    let faults = Faults {
        loss: chance(0.02),
        duplicate: chance(0.02),
        reorder: chance(0.02),
        corrupt: chance(0.02),
        corrupt_undetected: chance(0.02),
        ..Faults::default()
    };
    let link = LinkParams { faults, ..link(10, Time::from_us(5)) };
    let messages: Vec<_> = (0..200).map(|n| (Time::from_us(n), 1 + 37 * n as usize)).collect();
    let mut run = Run::new(config(u32::MAX - 200_000), link, &messages, true, None);
    assert_eq!(run.engine.run_until(Time::from_s(60)).unwrap(), RunEnd::Idle);
    assert_eq!(run.messages(), expected(&messages));
    assert!(run.tcp().counters().retransmitted > 0 && run.tcp().refused() == 0);
    assert_eq!(run.ledger.borrow().flow(FlowId(0)).posted_messages, 200);
}

#[test]
fn a_send_buffer_refuses_what_it_cannot_hold() {
    // Ten at once: three with their framing fit.
    let messages = [(Time::ZERO, 1000); 10];
    let mut run = Run::new(config(7), link(10, Time::from_us(5)), &messages, true, Some(3 * 1008));
    run.engine.run_until(Time::from_s(1)).unwrap();
    assert_eq!(run.messages(), expected(&messages)[..3]);
    assert_eq!(run.tcp().refused(), 7);
}

#[test]
fn a_stream_that_nobody_accepts_fails_by_name() {
    let mut run = Run::new(config(7), link(10, Time::from_us(5)), &[(Time::ZERO, 1000)], false, None);
    assert_eq!(run.engine.run_until(Time::from_s(1)).unwrap(), RunEnd::Idle);
    let ledger = run.ledger.borrow();
    let (_, why) = ledger.flow(FlowId(0)).failure.clone().expect("a failure");
    assert!(why.contains("refused (RST)"), "{why}");
    assert!(ledger.all_done() && run.read.borrow().is_empty());
}
