// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager: its messages of any bytes, and a manager with its bridge against any messages,
//! owners and timing.
//! Promise: no panic; reading and writing a message reproduces it; the table keeps its bound; a connection comes up and
//! ends once; with nobody there everything ends.

use crate::input::Input;
use penstock_transport::{
    Entropy, Mtu, RdmaCm, RdmaCmBridge, RdmaCmBridgeConfig, RdmaCmConfig, RdmaCmEnd, RdmaCmEvent, RdmaCmPath,
    RDMA_CM_PRIVATE_LEN,
};
use penstock_units::Time;
use penstock_wire::{
    CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, MadIds, Psn, Qpn, RdmaCmMad, RdmaCmMessage, RejReason, MAD_LEN,
};
use std::collections::BTreeMap;

const CONNECTIONS: usize = 4;
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
const PORT: u16 = 0x4321;
const PATH: RdmaCmPath = RdmaCmPath { mtu: Mtu::B1024, retry_count: 7, ack_timeout: 14 };

/// The first byte chooses what is tried.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    match input.u8() % 3 {
        0 => parse(input.0),
        1 => manager(&mut input),
        _ => bridge(&mut input),
    }
}

fn parse(data: &[u8]) {
    let mut mad = [0; MAD_LEN];
    let len = data.len().min(MAD_LEN);
    mad[..len].copy_from_slice(&data[..len]);
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    for bytes in [&mad[..], data] {
        if let Ok(mad) = RdmaCmMad::parse(bytes) {
            assert_eq!(RdmaCmMad::parse_datagram(&mad.to_datagram()), Ok(mad));
        }
    }
    let _ = RdmaCmMad::parse_datagram(data);
}

/// Identifiers are small numbers, so that messages meet them.
fn entropy() -> Entropy {
    let mut last = 0;
    Box::new(move || {
        last = last % 13 + 1;
        last
    })
}

fn config() -> RdmaCmConfig {
    let allow = Some((0..3).map(|n| Ipv4Addr::new(10, 0, 0, n)).collect());
    let cm = RdmaCmConfig { port: Some(PORT), per_address: 3, allow, ..RdmaCmConfig::new(OURS, 7, CONNECTIONS) };
    RdmaCmConfig { retries: 3, ..cm }
}

/// A message whose numbers are often those that are in use.
fn message(input: &mut Input) -> (Ipv4Addr, RdmaCmMad) {
    let from = Ipv4Addr::new(10, 0, 0, input.u8() % 4);
    let kind = input.u8();
    let mut mad = [0; MAD_LEN];
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[17] = 0x10 + kind % 7;
    mad[27] = input.u8() % 16; // sender's identifier
    mad[31] = input.u8() % 16; // ours, reserved in REQ
    if matches!(kind % 7, 0) {
        mad[36..40].copy_from_slice(&[1, 6, 0x43, 0x21]);
        mad[58] = 2 + input.u8() % 8; // queue pair
        mad[70] = input.u8() % 2; // PSN
        mad[72..76].copy_from_slice(&[0xFF, 0xFF, (kind / 7 % 6) << 4, 0xF0]);
        mad[165] = 0x40;
        mad[180..184].copy_from_slice(&from.octets());
        mad[196..200].copy_from_slice(&OURS.octets());
    } else {
        mad[33..36].copy_from_slice(&[input.u8() << 1, 0, input.u8() % 36]);
    }
    let wild = input.u8();
    if wild & 7 == 7 {
        let at = usize::from(input.u8()) % (MAD_LEN - 28) + 24;
        mad[at..at + 4].copy_from_slice(&input.u32().to_be_bytes());
    }
    (from, RdmaCmMad::parse(&mad).expect("a message"))
}

fn end(input: &mut Input) -> RdmaCmEnd {
    RdmaCmEnd {
        qpn: Qpn::new(2 + u32::from(input.u8() % 8)),
        psn: Psn::new(input.u8().into()),
        responder_resources: input.u8(),
        initiator_depth: input.u8(),
        rnr_retry: 7,
        private: [0; RDMA_CM_PRIVATE_LEN],
    }
}

/// What the owner has been given.
#[derive(Default)]
struct Seen {
    /// Whether each is up.
    open: BTreeMap<u32, bool>,
}

impl Seen {
    fn take(&mut self, cm: &mut RdmaCm) {
        while let Some(event) = cm.poll_event() {
            match event {
                RdmaCmEvent::Requested { connection, .. } => {
                    assert_eq!(self.open.insert(connection, false), None, "it is in use");
                }
                RdmaCmEvent::Established { connection, .. } => {
                    assert_eq!(self.open.insert(connection, true), Some(false), "it came up twice, or from nowhere");
                }
                RdmaCmEvent::Failed { connection, .. } => assert_eq!(self.open.remove(&connection), Some(false)),
                RdmaCmEvent::Disconnected { connection } => assert!(self.open.remove(&connection).is_some()),
            }
        }
        assert!(cm.connections() <= CONNECTIONS);
        assert!(self.open.len() <= CONNECTIONS);
    }
}

fn manager(input: &mut Input) {
    let (mut cm, mut now, mut seen) = (RdmaCm::new(config(), entropy()), Time::ZERO, Seen::default());
    while !input.is_empty() {
        let chosen = usize::from(input.u8() >> 4);
        let connection = seen.open.keys().nth(chosen % CONNECTIONS).copied().unwrap_or(chosen as u32);
        match input.u8() % 10 {
            0 => {
                let to = Ipv4Addr::new(10, 0, 0, chosen as u8 % 4);
                let local = end(input);
                if let Some(connection) = cm.connect(now, to, PORT, local, PATH) {
                    seen.open.insert(connection, false);
                }
            }
            1 | 2 => {
                let local = end(input);
                cm.accept(now, connection, local);
            }
            3 => {
                cm.reject(connection, RejReason::Consumer);
                forget(&mut seen, &cm, connection);
            }
            4 => {
                cm.disconnect(now, connection);
                forget(&mut seen, &cm, connection);
            }
            5 => {
                now += Time::from_ms(u64::from(input.u8()) * 20);
                cm.handle_timeout(now);
            }
            _ => {
                let (from, mad) = message(input);
                let before = cm.connections();
                cm.handle_mad(now, from, &mad);
                let is_stranger = from == Ipv4Addr::new(10, 0, 0, 3);
                assert!(!is_stranger || cm.connections() <= before, "a stranger has a connection");
            }
        }
        seen.take(&mut cm);
        while let Some((_, mad)) = cm.poll_transmit() {
            assert_eq!(RdmaCmMad::parse(&mad.to_bytes()), Ok(mad));
        }
    }
    // Nobody answers any more.
    for connection in seen.open.keys().copied().collect::<Vec<_>>() {
        cm.disconnect(now, connection);
        forget(&mut seen, &cm, connection);
    }
    for _ in 0..1000 {
        let Some(due) = cm.next_timeout() else { break };
        now = now.max(due);
        cm.handle_timeout(now);
        while cm.poll_transmit().is_some() {}
        seen.take(&mut cm);
    }
    assert_eq!((cm.connections(), seen.open.len()), (0, 0), "everything ends");
}

/// A connection that the owner has given up before it was up has no event.
fn forget(seen: &mut Seen, cm: &RdmaCm, connection: u32) {
    if !cm.has(connection) {
        seen.open.remove(&connection);
    }
}

fn bridge(input: &mut Input) {
    let config = RdmaCmBridgeConfig {
        cm: config(),
        port: PORT,
        path: PATH,
        slots: 4,
        slot_bytes: 64,
        rnr_retry: 7,
        responder_resources: 0,
        initiator_depth: input.u8() % 2,
    };
    let (mut bridge, mut now) = (RdmaCmBridge::new(config, entropy()), Time::ZERO);
    let mut last = None;
    while !input.is_empty() {
        match input.u8() % 8 {
            0 => now += Time::from_ms(input.u8().into()),
            1 => {
                let to = Ipv4Addr::new(10, 0, 0, input.u8() % 4);
                let info = CmInfo { qpn: Qpn::new(2 + u32::from(input.u8() % 4)), ..CmInfo::default() };
                let request = [CmRequest::OpenQp, CmRequest::CloseQp][usize::from(input.u8() % 2)];
                bridge.handle_message(now, to, &CmMessage::request(request, info, CmInfo::default()));
            }
            2 => {
                let gone = u32::from(input.u8() % 8);
                bridge.retain(now, |qpn| qpn.value() != gone);
            }
            3 | 4 => {
                let codes = [CmAnswer::Ack, CmAnswer::Ack, CmAnswer::NoQp, CmAnswer::Nak, CmAnswer::Error];
                let answer = codes[usize::from(input.u8()) % codes.len()];
                let info = CmInfo { qpn: Qpn::new(2 + u32::from(input.u8() % 4)), ..CmInfo::default() };
                if let Some((from, request)) = last.take() {
                    let request: CmMessage = request;
                    bridge.handle_message(now, from, &request.answered(answer, Some(info)));
                }
            }
            _ => {
                let (from, mad) = message(input);
                bridge.handle_mad(now, from, &mad);
            }
        }
        bridge.handle_timeout(now);
        while let Some((from, message)) = bridge.poll_message() {
            assert_eq!(CmMessage::parse(&message.to_bytes()), Ok(message));
            if message.answer.is_none() {
                last = Some((from, message));
            }
        }
        while bridge.poll_trouble().is_some() {}
        while let Some((_, mad)) = bridge.poll_transmit() {
            assert!(!matches!(mad.message, RdmaCmMessage::Rtu(MadIds { local: 0, .. })));
        }
    }
    bridge.retain(now, |_| false);
    for _ in 0..1000 {
        let Some(due) = bridge.next_timeout() else { break };
        now = now.max(due);
        bridge.handle_timeout(now);
        bridge.retain(now, |_| false);
        while bridge.poll_message().is_some() || bridge.poll_transmit().is_some() {}
    }
    assert_eq!(bridge.connections(), 0, "everything ends");
}
