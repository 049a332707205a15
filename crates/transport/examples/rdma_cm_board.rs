// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager of a board with windows, as lines on standard input and output: the model of the
//! gateware's (tb/rdma_cm), with the owner of `penstock board --cm rdma`.
//! Usage: rdma_cm_board IP GUID QPN_BASE PORT MTU QPS; numbers are decimal, queue pair n has the window
//! (n << 20, (n + 1) << 12 bytes, key 0x1000 + n, 1 + n READs).
//! Input: a line `SENDER MAD` (hexadecimal) each. Output: `TO MAD` for each answer, then `. STATES COUNTERS`: of each
//! queue pair whether it is open, and requests, refused, repeated, unknown, ignored, established, disconnected.

use penstock_transport::{Mtu, RdmaCm, RdmaCmConfig, RdmaCmEnd, RdmaCmEvent, RdmaCmOffer, RDMA_CM_PRIVATE_LEN};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, Psn, Qpn, RdmaCmMad, RejReason};
use std::error::Error;
use std::io::{BufRead, Write};

fn bytes(hex: &str) -> Result<Vec<u8>, std::num::ParseIntError> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16)).collect()
}

fn end(qp: u32, qpn_base: u32) -> RdmaCmEnd {
    let mut private = [0; RDMA_CM_PRIVATE_LEN];
    let (base, slot_bytes) = (u64::from(qp) << 20, (qp + 1) << 12);
    RdmaCmOffer { base, rkey: 0x1000 + qp, slots: 1, slot_bytes }.write(&mut private);
    let (qpn, psn) = (Qpn::new(qpn_base + qp), Psn::new(0x1234 + qp));
    RdmaCmEnd { qpn, psn, responder_resources: 1 + qp as u8, initiator_depth: 0, rnr_retry: 7, private }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<u64> = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    let &[ip, guid, qpn_base, port, mtu, qps] = words.as_slice() else {
        return Err("usage: rdma_cm_board IP GUID QPN_BASE PORT MTU QPS".into());
    };
    let mtu = Mtu::from_bytes(usize::try_from(mtu)?).ok_or("no path MTU")?;
    // One that is over keeps its identifiers until its queue pair is given away again.
    let config = RdmaCmConfig {
        port: Some(u16::try_from(port)?),
        mtu,
        ..RdmaCmConfig::new(Ipv4Addr::from_bits(u32::try_from(ip)?), guid, 1000)
    };
    let mut state = 0x9E37_79B9_u32;
    let entropy = Box::new(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    });
    let mut cm = RdmaCm::new(config, entropy);
    let mut links: Vec<Option<u32>> = vec![None; usize::try_from(qps)?];
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (from, mad) = line.split_once(' ').ok_or("a line is SENDER MAD")?;
        let from = Ipv4Addr::from_bits(from.parse()?);
        if let Ok(mad) = RdmaCmMad::parse(&bytes(mad)?) {
            cm.handle_mad(Time::ZERO, from, &mad);
        }
        while let Some(event) = cm.poll_event() {
            match event {
                RdmaCmEvent::Requested { connection, .. } => match links.iter().position(Option::is_none) {
                    Some(qp) => {
                        links[qp] = Some(connection);
                        cm.accept(Time::ZERO, connection, end(qp as u32, u32::try_from(qpn_base)?));
                    }
                    None => cm.reject(connection, RejReason::NoQp),
                },
                RdmaCmEvent::Established { .. } => {}
                RdmaCmEvent::Failed { connection, .. } | RdmaCmEvent::Disconnected { connection } => {
                    links.iter_mut().filter(|link| **link == Some(connection)).for_each(|link| *link = None);
                }
            }
        }
        while let Some((to, mad)) = cm.poll_transmit() {
            let hex: String = mad.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(out, "{} {hex}", to.to_bits())?;
        }
        let open: String = links.iter().map(|link| if link.is_some() { '1' } else { '0' }).collect();
        let c = cm.counters();
        let counts = [c.requests, c.refused, c.repeated, c.unknown, c.ignored, c.established, c.disconnected];
        writeln!(out, ". {open} {}", counts.map(|count| count.to_string()).join(" "))?;
        out.flush()?;
    }
    Ok(())
}
