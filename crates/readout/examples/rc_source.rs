// SPDX-License-Identifier: Apache-2.0
//! Sends given messages with our RC requester over a virtual machine's Unix datagram socket, with faults on the link:
//! the near end of `tests/softroce`. Promise: one seed gives one sequence of faults; the program ends after the given
//! time. Usage: plans (see `Plan`) as JSON, one a line, on standard input; prints completions, counters and faults of
//! each plan as one JSON line.

use std::collections::BTreeMap;
use std::error::Error;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use penstock_readout::backend::SessionClock;
use penstock_transport::{Endpoint, Mtu, PayloadSource, Requester, RequesterConfig, SendWr, Verb};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, Packet, Payload, Psn, Qpn};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};

/// What to do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    /// Our socket, and the machine's.
    local: PathBuf,
    remote: PathBuf,
    ip: Ipv4Addr,
    mac: [u8; 6],
    peer_ip: Ipv4Addr,
    peer_mac: [u8; 6],
    /// Bytes that the messages are parts of.
    payload: PathBuf,
    #[serde(default)]
    faults: Faults,
    timeout_s: f64,
    qps: Vec<Qp>,
}

/// One queue pair, ours and the peer's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Qp {
    qpn: u32,
    psn: u32,
    peer_qpn: u32,
    mtu: usize,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    /// `write`, `write_imm`, `send` or `send_imm`.
    verb: String,
    imm: u32,
    /// Offset in the payload, and bytes.
    at: u64,
    len: u32,
    va: u64,
    rkey: u32,
}

/// Probabilities for each frame, both ways for losses, to the machine for the others.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Faults {
    seed: u64,
    loss: f64,
    duplicate: f64,
    /// Sent after the next frame.
    reorder: f64,
    /// One bit behind the Ethernet header is inverted.
    corrupt: f64,
}

/// Faults done.
#[derive(Serialize, Default)]
struct Done {
    lost: u64,
    lost_replies: u64,
    duplicated: u64,
    reordered: u64,
    corrupted: u64,
}

/// The way to the machine.
struct Link {
    socket: UnixDatagram,
    faults: Faults,
    state: u64,
    held: Option<Bytes>,
    done: Done,
}

impl Link {
    fn draw(&mut self) -> u64 {
        // xorshift64*, Vigna 2016.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && ((self.draw() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    fn send(&mut self, frame: Bytes) -> std::io::Result<()> {
        let Faults { loss, duplicate, reorder, corrupt, .. } = self.faults;
        if self.happens(loss) {
            self.done.lost += 1;
            return Ok(());
        }
        let frame = if self.happens(corrupt) {
            self.done.corrupted += 1;
            let mut bad = frame.to_vec();
            let bit = 14 * 8 + self.draw() as usize % ((bad.len() - 14) * 8);
            bad[bit / 8] ^= 1 << (bit % 8);
            bad.into()
        } else {
            frame
        };
        if self.held.is_none() && self.happens(reorder) {
            self.done.reordered += 1;
            self.held = Some(frame);
            return Ok(());
        }
        self.socket.send(&frame)?;
        if self.happens(duplicate) {
            self.done.duplicated += 1;
            self.socket.send(&frame)?;
        }
        self.held.take().map_or(Ok(()), |late| self.socket.send(&late).map(drop))
    }
}

/// Messages are parts of one file.
struct File(Bytes);

impl PayloadSource for File {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(self.0.slice(va as usize..va as usize + len))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for line in std::io::stdin().lines() {
        println!("{}", run(serde_json::from_str(&line?)?)?);
    }
    Ok(())
}

/// Carries out one plan; the report.
fn run(plan: Plan) -> Result<Value, Box<dyn Error>> {
    let mut file = File(std::fs::read(&plan.payload)?.into());
    let mut requesters = BTreeMap::new();
    let mut waiting = 0;
    for qp in &plan.qps {
        let local = Endpoint { mac: MacAddr(plan.mac), ip: plan.ip, qpn: Qpn::new(qp.qpn) };
        let peer = Endpoint { mac: MacAddr(plan.peer_mac), ip: plan.peer_ip, qpn: Qpn::new(qp.peer_qpn) };
        let mtu = Mtu::from_bytes(qp.mtu).ok_or_else(|| format!("{} is no path MTU", qp.mtu))?;
        let mut config = RequesterConfig::new(local, peer, Psn::new(qp.psn), mtu);
        config.window = 512;
        let mut requester = Requester::new(config);
        for (wr_id, message) in (0..).zip(&qp.messages) {
            requester.post_send(work_request(wr_id, message)?)?;
            waiting += 1;
        }
        requesters.insert(qp.qpn, requester);
    }
    let socket = UnixDatagram::bind(&plan.local)?;
    socket.connect(&plan.remote)?;
    let state = plan.faults.seed.wrapping_mul(2).wrapping_add(1);
    let mut link = Link { socket, faults: plan.faults, state, held: None, done: Done::default() };
    let began = Instant::now();
    let ends = send_all(&mut link, &mut requesters, &mut file, waiting, Duration::from_secs_f64(plan.timeout_s));
    let _ = std::fs::remove_file(&plan.local);
    let counters: Vec<_> = requesters.values().map(|r| format!("{:?}", r.counters())).collect();
    let states: Vec<_> = requesters.values().map(|r| format!("{:?}", r.state())).collect();
    let seconds = began.elapsed().as_secs_f64();
    Ok(json!({"completions": ends?, "faults": link.done, "counters": counters, "states": states, "seconds": seconds}))
}

fn work_request(wr_id: u64, message: &Message) -> Result<SendWr, String> {
    let &Message { imm, at: va, len, va: remote_va, rkey, .. } = message;
    let verb = match message.verb.as_str() {
        "write" => Verb::Write,
        "write_imm" => Verb::WriteImm(imm),
        "send" => Verb::Send,
        "send_imm" => Verb::SendImm(imm),
        other => return Err(format!("{other} is no verb")),
    };
    Ok(SendWr { wr_id, verb, va, len, remote_va, rkey, solicited: true })
}

/// Queue pair, work request, status.
type End = (u32, u64, String);

/// Runs the requesters until `waiting` messages have ended or the time is over.
fn send_all(
    link: &mut Link,
    requesters: &mut BTreeMap<u32, Requester>,
    file: &mut File,
    waiting: usize,
    limit: Duration,
) -> Result<Vec<End>, Box<dyn Error>> {
    let clock = SessionClock::start();
    let mut ends = Vec::new();
    let mut frame = vec![0; 9216];
    while ends.len() < waiting && clock.now() < Time::from_duration(limit) {
        let mut busy = false;
        // A full socket blocks: no frame is lost there.
        link.socket.set_nonblocking(false)?;
        for (qpn, requester) in requesters.iter_mut() {
            let now = clock.now();
            if requester.next_timeout().is_some_and(|at| at <= now) {
                requester.handle_timeout(now);
            }
            for _ in 0..16 {
                let Some(packet) = requester.poll_transmit(now, file) else { break };
                link.send(packet.emit())?;
                busy = true;
            }
            let done = std::iter::from_fn(|| requester.poll_completion());
            ends.extend(done.map(|end| (*qpn, end.wr_id, format!("{:?}", end.status))));
        }
        link.socket.set_nonblocking(busy)?;
        link.socket.set_read_timeout(Some(Duration::from_micros(500)))?;
        while let Ok(len) = link.socket.recv(&mut frame) {
            link.socket.set_nonblocking(true)?;
            let loss = link.faults.loss;
            if link.happens(loss) {
                link.done.lost_replies += 1;
            } else if let Ok(Packet::Roce(packet)) = Packet::parse(Bytes::copy_from_slice(&frame[..len])) {
                if let Some(requester) = requesters.get_mut(&packet.bth.dest_qpn.value()) {
                    requester.handle_packet(clock.now(), &packet);
                }
            }
        }
    }
    Ok(ends)
}
