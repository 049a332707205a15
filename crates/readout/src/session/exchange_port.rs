// SPDX-License-Identifier: Apache-2.0
//! Queue pairs that are agreed on out of band: whoever sets a board's registers connects by TCP, writes one line of JSON
//! and reads one (docs/exchange.md).
//! Promise: only boards of the session get a queue pair; connections, bytes and time are bounded, and every refusal is
//! answered with its reason.
//!
//! ```text
//! {"ip":"10.0.0.2","qpn":17,"psn":0}             ->
//! {"ip":"10.0.0.1","mac":"02:..","qpn":4660,...} <-
//! ```

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};

use penstock_transport::Mtu;
use penstock_units::Time;
use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, Ipv4Addr, Psn, Qpn};
use serde::{Deserialize, Serialize};

use super::config::SessionConfig;
use super::error::SessionError;
use super::sockets::CmPort;
use crate::backend::{Backend, Counters, LocalAddress};

/// Bytes of a line.
const LONGEST: usize = 1024;
/// How long a connection may take: to write its line, and to get its answer.
const PATIENCE: Time = Time::from_ms(5000);
/// Wait before a request that the session has not answered is presented again.
const AGAIN: Time = Time::from_ms(20);
/// Why a request had no answer until then.
const IN_USE: &str = "no queue pair is free: that of this board is in use, and its peer is heard";
/// Connections of one address, and beyond those of all boards.
const OF_ONE: usize = 4;
const SPARE: usize = 16;

/// The line of a board.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Its address on the data link; without it, the one that the line came from.
    ip: Option<Ipv4Addr>,
    qpn: u32,
    /// PSN of its first packet.
    psn: u32,
    /// Memory of the board that the server may read.
    #[serde(default)]
    rkey: u32,
    #[serde(default)]
    address: u64,
}

/// The server's.
#[derive(Serialize)]
struct Answer {
    ip: Ipv4Addr,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    qpn: u32,
    psn: u32,
    rkey: u32,
    address: u64,
    slots: u32,
    slot_bytes: u32,
    mtu: usize,
}

/// A TCP connection.
struct Client {
    stream: TcpStream,
    from: Ipv4Addr,
    until: Time,
    text: Vec<u8>,
    /// Its request, once that is there, and when it is presented next.
    waits: Option<(Ipv4Addr, CmMessage, Time)>,
}

pub(super) struct ExchangePort {
    listener: TcpListener,
    boards: Vec<Ipv4Addr>,
    local: LocalAddress,
    slots: u32,
    slot_bytes: u32,
    mtu: Mtu,
    clients: Vec<Client>,
    inbox: VecDeque<(Ipv4Addr, CmMessage)>,
    strangers: u64,
    answered: u64,
    refused: u64,
}

impl ExchangePort {
    /// Listens at a TCP port of all addresses: a board's processor need not be on the data link.
    pub(super) fn open(local: LocalAddress, port: u16, config: &SessionConfig) -> Result<ExchangePort, SessionError> {
        let bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).and_then(|l| l.set_nonblocking(true).map(|()| l));
        Ok(ExchangePort {
            listener: bound.map_err(|source| SessionError::Exchange { port, source })?,
            boards: config.boards.iter().map(|board| board.ip).collect(),
            local,
            slots: config.pool.map_or(config.slots, |_| 0),
            slot_bytes: config.slot_bytes,
            mtu: config.mtu,
            clients: Vec::new(),
            inbox: VecDeque::new(),
            strangers: 0,
            answered: 0,
            refused: 0,
        })
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..self.most() {
            let Ok((stream, from)) = self.listener.accept() else { break };
            let IpAddr::V4(from) = from.ip() else { continue };
            let of_one = self.clients.iter().filter(|client| client.from == from).count();
            if stream.set_nonblocking(true).is_err() || of_one >= OF_ONE.max(self.boards.len()) {
                continue;
            }
            if self.clients.len() >= self.most() {
                self.clients.remove(0);
            }
            self.clients.push(Client { stream, from, until: now + PATIENCE, text: Vec::new(), waits: None });
        }
    }

    fn most(&self) -> usize {
        self.boards.len() + SPARE
    }

    /// Reads what has come, and presents what the session has not answered; keeps the connections that go on.
    fn serve(&mut self, now: Time) {
        for mut client in std::mem::take(&mut self.clients) {
            if client.waits.is_none() {
                match client.read() {
                    Ok(None) => {}
                    Ok(Some(line)) => match self.request(&line, client.from) {
                        Ok((board, message)) => client.waits = Some((board, message, now)),
                        Err(why) => {
                            self.refuse(&mut client, &why);
                            continue;
                        }
                    },
                    Err(why) => {
                        self.refuse(&mut client, &why);
                        continue;
                    }
                }
            }
            if now >= client.until {
                let is_late = client.waits.is_none();
                self.refuse(&mut client, if is_late { "no line came in time" } else { IN_USE });
                continue;
            }
            if let Some((board, message, due)) = client.waits.as_mut().filter(|(_, _, due)| *due <= now) {
                *due = now + AGAIN;
                self.inbox.push_back((*board, *message));
            }
            self.clients.push(client);
        }
    }

    /// A line as a message of FEROCE's connection manager.
    fn request(&mut self, line: &[u8], from: Ipv4Addr) -> Result<(Ipv4Addr, CmMessage), String> {
        let request: Request = serde_json::from_slice(line).map_err(|error| format!("the line: {error}"))?;
        let ip = request.ip.unwrap_or(from);
        if !self.boards.contains(&ip) {
            self.strangers += 1;
            return Err(format!("{ip} is no board of this run"));
        }
        let (qpn, psn) = (Qpn::new(request.qpn), Psn::new(request.psn));
        if qpn.value() != request.qpn || request.qpn < 2 {
            return Err(format!("qpn {}: allowed are 2 to 16777215", request.qpn));
        }
        if psn.value() != request.psn {
            return Err(format!("psn {}: allowed are 0 to 16777215", request.psn));
        }
        let sender = CmInfo { qpn, psn, rkey: request.rkey, base: request.address, ip };
        Ok((ip, CmMessage::request(CmRequest::OpenQp, sender, CmInfo::default())))
    }

    fn refuse(&mut self, client: &mut Client, why: &str) {
        self.refused += 1;
        client.write(&serde_json::json!({ "error": why }));
    }
}

impl Client {
    /// A whole line, if it is there.
    fn read(&mut self) -> Result<Option<Vec<u8>>, String> {
        let mut part = [0; LONGEST];
        loop {
            match self.stream.read(&mut part[..LONGEST - self.text.len()]) {
                Ok(0) if self.text.len() < LONGEST => return Err("the connection ended before its line".to_owned()),
                Ok(0) => return Err(format!("a line has at most {LONGEST} bytes")),
                Ok(len) => self.text.extend_from_slice(&part[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.text[..end].to_vec()));
            }
        }
    }

    /// One short line fits the buffer of a socket that has sent nothing; a peer that is gone needs none.
    fn write(&mut self, line: &impl Serialize) {
        if let Ok(mut text) = serde_json::to_vec(line) {
            text.push(b'\n');
            let _ = self.stream.write_all(&text);
        }
    }
}

impl CmPort for ExchangePort {
    fn exchange(&mut self, now: Time, _backend: &mut dyn Backend, _has_qp: &dyn Fn(Qpn) -> bool) {
        self.accept(now);
        self.serve(now);
    }

    fn strangers(&self) -> u64 {
        self.strangers
    }

    fn counters(&self) -> Counters {
        let counted = [("exchange_answered", self.answered), ("exchange_refused", self.refused)];
        counted.into_iter().map(|(name, n)| (name.into(), n)).collect()
    }

    fn receive(&mut self) -> Option<(Ipv4Addr, CmMessage)> {
        self.inbox.pop_front()
    }

    fn send(&mut self, to: Ipv4Addr, _port: u16, message: &CmMessage) -> std::io::Result<()> {
        let is_of = |client: &Client| {
            client.waits.is_some_and(|(ip, request, _)| ip == to && request.sender.qpn == message.other.qpn)
        };
        // The board's last queue pair is free once nothing more has come from it for a while.
        let answer = message.answer.filter(|answer| *answer != CmAnswer::NoQp);
        let (Some(at), Some(answer)) = (self.clients.iter().position(is_of), answer) else { return Ok(()) };
        let mut client = self.clients.remove(at);
        match answer {
            CmAnswer::Ack => {
                let CmInfo { qpn, psn, rkey, base, .. } = message.sender;
                self.answered += 1;
                client.write(&Answer {
                    ip: self.local.ip,
                    mac: self.local.mac.map(|mac| mac.to_string()),
                    qpn: qpn.value(),
                    psn: psn.value(),
                    rkey,
                    address: base,
                    slots: self.slots,
                    slot_bytes: self.slot_bytes,
                    mtu: self.mtu.bytes(),
                });
            }
            _ => self.refuse(&mut client, "the server could not connect its queue pair"),
        }
        Ok(())
    }
}
