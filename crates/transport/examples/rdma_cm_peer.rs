// SPDX-License-Identifier: Apache-2.0
//! A peer of librdmacm over a virtual machine's Unix datagram socket, with loss: our standard connection manager with
//! our responder (`passive`) or requester (`active`), the near end of `tests/softroce/test_softroce_rdma_cm.py`.
//! Promise: exit status 0 only if every connection came up and ended, and every word that was written is right.
//! Usage: rdma_cm_peer passive|active LOCAL_SOCKET REMOTE_SOCKET PORT TIMES MESSAGES BYTES LOSS; prints a line of counts.

use bytes::Bytes;
use penstock_transport::*;
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, Packet, Payload, Psn, Qpn, RdmaCmMad, RocePacket};
use std::error::Error;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

const OURS: (MacAddr, Ipv4Addr) = (MacAddr([2, 0x50, 0x53, 0x54, 0x4B, 2]), Ipv4Addr::new(10, 77, 0, 2));
const THEIRS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const LIMIT: Duration = Duration::from_secs(600);
const SLOTS: u32 = 8;
const SLOT_BYTES: u32 = 8192;
const BASE: u64 = 0x1_0000;
const RKEY: u32 = 0x1234_5678;
/// Bytes before the words of a fragment, which the peer does not compare.
const HEADER: usize = 40;

/// Pseudo-random numbers: xorshift64*, Vigna 2016.
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// The ring that the peer writes.
struct Ring(Vec<u8>);

impl Memory for Ring {
    fn write(&mut self, va: u64, data: &Payload) {
        let at = (va - BASE) as usize;
        let bytes = data.as_bytes().expect("bytes of a frame");
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The messages that we write.
struct Words(Bytes);

impl PayloadSource for Words {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(self.0.slice(va as usize..va as usize + len))
    }
}

/// Words that count on, after a header.
fn words(first: u64, bytes: usize) -> Bytes {
    let words = (0..bytes as u64 / 8).flat_map(|n| (first + n).to_le_bytes());
    std::iter::repeat_n(0, HEADER).chain(words).collect()
}

struct Peer {
    socket: UnixDatagram,
    began: Instant,
    loss: f64,
    random: Random,
    peer_mac: MacAddr,
    cm: RdmaCm,
    lost: u64,
}

impl Peer {
    fn now(&self) -> Time {
        Time::from_duration(self.began.elapsed())
    }

    fn is_lost(&mut self) -> bool {
        let lost = ((self.random.draw() >> 11) as f64) < self.loss * (1u64 << 53) as f64;
        self.lost += u64::from(lost);
        lost
    }

    fn send(&mut self, packet: &RocePacket) -> std::io::Result<()> {
        if self.is_lost() {
            return Ok(());
        }
        self.socket.send(&packet.emit()).map(drop)
    }

    /// The next packet that is not the connection manager's, and what it has sent meanwhile.
    fn step(&mut self) -> Result<Option<RocePacket>, Box<dyn Error>> {
        if self.began.elapsed() > LIMIT {
            return Err(format!("not done after {LIMIT:?}: {:?}", self.cm.counters()).into());
        }
        let mut frame = [0; 9216];
        let mut other = None;
        if let Ok(len) = self.socket.recv(&mut frame) {
            if let Ok(Packet::Roce(packet)) = Packet::parse(Bytes::copy_from_slice(&frame[..len])) {
                if !self.is_lost() {
                    self.peer_mac = packet.eth_src;
                    match RdmaCmMad::of_packet(&packet) {
                        Some(mad) => self.cm.handle_mad(self.now(), packet.ip_src, &mad?),
                        None => other = Some(packet),
                    }
                }
            }
        }
        self.cm.handle_timeout(self.now());
        self.flush()?;
        Ok(other)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        while let Some((ip, mad)) = self.cm.poll_transmit() {
            let packet = mad.to_packet(OURS, (self.peer_mac, ip));
            self.send(&packet)?;
        }
        Ok(())
    }

    fn end(&mut self, n: u32) -> RdmaCmEnd {
        let mut private = [0; RDMA_CM_PRIVATE_LEN];
        RdmaCmOffer { base: BASE, rkey: RKEY, slots: SLOTS, slot_bytes: SLOT_BYTES }.write(&mut private);
        let psn = Psn::new(self.random.draw() as u32);
        // A number that the peer has not seen for a while (IBTA 12.9.8.4.1).
        let qpn = Qpn::new(0x1000 + (self.random.draw() as u32 & 0xF_FFFF) + n);
        RdmaCmEnd { qpn, psn, responder_resources: 0, initiator_depth: 0, rnr_retry: 7, private }
    }

    fn endpoints(&self, agreed: (&RdmaCmEnd, &RdmaCmEnd)) -> (Endpoint, Endpoint) {
        let local = Endpoint { mac: OURS.0, ip: OURS.1, qpn: agreed.0.qpn };
        (local, Endpoint { mac: self.peer_mac, ip: THEIRS, qpn: agreed.1.qpn })
    }
}

/// Takes connections, and compares what the peer writes: bare words that count on over all connections.
fn passive(peer: &mut Peer, times: u32, bytes: usize) -> Result<u64, Box<dyn Error>> {
    let (mut ring, mut count) = (Ring(vec![0; (SLOTS * SLOT_BYTES) as usize]), 0u64);
    let (mut responder, mut ended): (Option<Responder>, u32) = (None, 0);
    while ended < times || peer.cm.connections() > 0 {
        if let (Some(packet), Some(responder)) = (peer.step()?, &mut responder) {
            responder.handle_packet(peer.now(), &packet, &mut ring);
            while let Some(done) = responder.poll_completion() {
                let at = (done.imm.ok_or("no immediate")? * SLOT_BYTES) as usize;
                let expected = &words(count, bytes)[HEADER..];
                if done.byte_len as usize != bytes || ring.0[at..at + bytes] != *expected {
                    return Err(format!("{done:?}: not the words from {count} on").into());
                }
                count += bytes as u64 / 8;
                responder.post_receive(RecvWr::default());
            }
            while let Some(reply) = responder.poll_transmit(&mut ring) {
                peer.send(&reply)?;
            }
        }
        while let Some(event) = peer.cm.poll_event() {
            match event {
                RdmaCmEvent::Requested { connection, peer: theirs, path, .. } => {
                    let local = peer.end(ended);
                    let (here, there) = peer.endpoints((&local, &theirs));
                    let len = ring.0.len() as u64;
                    let region = MemoryRegion { va: BASE, rkey: RKEY, len, access: Access::RemoteWrite };
                    let config = ResponderConfig::new(here, there, local.psn, path.mtu).with_region(region);
                    let made = responder.insert(Responder::new(config));
                    (0..SLOTS).for_each(|_| made.post_receive(RecvWr::default()));
                    peer.cm.accept(peer.now(), connection, local);
                }
                RdmaCmEvent::Established { .. } => {}
                RdmaCmEvent::Disconnected { .. } => ended += 1,
                RdmaCmEvent::Failed { why, .. } => return Err(why.into()),
            }
        }
        peer.flush()?;
    }
    Ok(count)
}

/// Connects, writes fragments whose words count on over each connection, and disconnects.
fn active(peer: &mut Peer, port: u16, times: u32, messages: u32, bytes: usize) -> Result<u64, Box<dyn Error>> {
    let mut count = 0;
    for n in 0..times {
        let local = peer.end(n);
        let path = RdmaCmPath { mtu: Mtu::B4096, retry_count: 7, ack_timeout: 16 };
        let connection = peer.cm.connect(peer.now(), THEIRS, port, local, path).ok_or("no room")?;
        let (mut requester, mut is_over): (Option<Requester>, bool) = (None, false);
        let source = (0..messages).map(|m| words(u64::from(m) * (bytes as u64 / 8), bytes));
        let mut source = Words(source.flat_map(|message| message.to_vec()).collect());
        let mut left = messages;
        while !is_over {
            let packet = peer.step()?;
            let now = peer.now();
            if let Some(requester) = &mut requester {
                if let Some(packet) = packet {
                    requester.handle_packet(now, &packet);
                }
                requester.handle_timeout(now);
                while let Some(packet) = requester.poll_transmit(now, &mut source) {
                    peer.send(&packet)?;
                }
                while let Some(done) = requester.poll_completion() {
                    if done.status != SendStatus::Success {
                        return Err(format!("{done:?}").into());
                    }
                    left -= 1;
                    count += bytes as u64 / 8;
                    if left == 0 {
                        peer.cm.disconnect(now, connection);
                    }
                }
            }
            while let Some(event) = peer.cm.poll_event() {
                match event {
                    RdmaCmEvent::Established { agreed, .. } => {
                        let (here, there) = peer.endpoints((&agreed.local, &agreed.peer));
                        let ring = RdmaCmOffer::read(&agreed.peer.private).ok_or("no ring in the private data")?;
                        let mut config = RequesterConfig::new(here, there, agreed.peer.psn, agreed.path.mtu);
                        config.limits = RetryLimits { ack_timeout: 16, ..RetryLimits::default() };
                        let made = requester.insert(Requester::new(config));
                        for m in 0..messages {
                            let (slot, len) = (m % ring.slots, (HEADER + bytes) as u32);
                            let remote_va = ring.base + u64::from(slot) * u64::from(ring.slot_bytes);
                            let (wr_id, va, rkey) = (m.into(), u64::from(m) * u64::from(len), ring.rkey);
                            let verb = Verb::WriteImm(slot);
                            made.post_send(SendWr { wr_id, verb, va, len, remote_va, rkey, solicited: false })?;
                        }
                    }
                    RdmaCmEvent::Failed { why, .. } => return Err(why.into()),
                    RdmaCmEvent::Disconnected { .. } => is_over = true,
                    RdmaCmEvent::Requested { .. } => {}
                }
            }
            peer.flush()?;
        }
    }
    Ok(count)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, local, remote, port, times, messages, bytes, loss] = &words[..] else {
        return Err("passive|active LOCAL_SOCKET REMOTE_SOCKET PORT TIMES MESSAGES BYTES LOSS".into());
    };
    let socket = UnixDatagram::bind(local)?;
    socket.connect(remote)?;
    socket.set_read_timeout(Some(Duration::from_millis(2)))?;
    let (port, times, bytes) = (port.parse()?, times.parse()?, bytes.parse()?);
    let mut ids = Random(0x9E37_79B9 ^ u64::from(std::process::id()) << 20);
    let config = RdmaCmConfig { port: Some(port), ..RdmaCmConfig::new(OURS.1, 0x0250_53FF_FE54_4B02, 4) };
    let cm = RdmaCm::new(config, Box::new(move || ids.draw() as u32));
    let random = Random(u64::from(std::process::id()) << 1 | 1);
    let (began, loss, peer_mac) = (Instant::now(), loss.parse()?, MacAddr([0x52, 0x54, 0, 0x77, 0, 1]));
    let mut peer = Peer { socket, began, loss, random, peer_mac, cm, lost: 0 };
    let count = match role.as_str() {
        "passive" => passive(&mut peer, times, bytes)?,
        _ => active(&mut peer, port, times, messages.parse()?, bytes)?,
    };
    println!("{times} connections, {count} words, {} frames lost, {:?}", peer.lost, peer.cm.counters());
    Ok(())
}
