// SPDX-License-Identifier: Apache-2.0
//! Who is in the network of an interface, by ARP.
//! Promise: finds every host that answers one of two requests; an address with answers of two devices is reported with
//! both.
//! Source: RFC 826; RFC 5227 section 2.1.1 (a request for an own address has no sender's).

use crate::board_list::{Listed, MOST};
use bytes::Bytes;
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::{BoardAddress, PORT};
use penstock_readout::link::{Frames, Interface, PacketSocket};
use penstock_units::Time;
use penstock_wire::{Arp, MacAddr};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

const ROUNDS: u32 = 2;
/// Requests in a row, and the pause after them: 64 000 a second, a tenth of what a line of 1 Gb/s carries of such
/// frames.
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);
/// Answers that may wait.
const ANSWERS: Frames = Frames { longest: 64, count: 4096 };

/// The results of a sweep.
#[derive(Debug)]
pub struct Sweep {
    pub interface: String,
    pub targets: usize,
    /// Addresses of others that answer, in order; boards are among them.
    pub found: Vec<Listed>,
    /// Boards that were given one by one and do not answer.
    pub missing: Vec<BoardAddress>,
    /// Addresses that several devices answer for, or one that is this host's.
    pub shared: Vec<(Ipv4Addr, String)>,
}

/// Which MAC addresses have answered for an address.
type Answers = BTreeMap<Ipv4Addr, Vec<MacAddr>>;

/// Asks for all addresses of a list, or of the interface's network; waits for answers for `patience`.
pub fn of(name: &str, listed: Option<&[Listed]>, patience: Time) -> Result<Sweep, Failure> {
    let refused = |why: String| Failure::Refused(format!("--arp {name}: {why}"));
    let interface = Interface::find(name).map_err(|error| refused(format!("no such interface: {error}")))?;
    let local = interface.ip.zip(interface.netmask).ok_or_else(|| {
        refused(format!(
            "it has no IPv4 address, and IPbus needs one in the boards' network: ip addr add 10.0.0.1/24 dev {name}"
        ))
    })?;
    if !interface.is_up {
        return Err(refused(format!("it is down: ip link set {name} up")));
    }
    let targets = match listed {
        Some(listed) => listed.to_vec(),
        None => network(local).map_err(refused)?,
    };
    let socket = PacketSocket::open_arp((name, &interface), ANSWERS).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => refused(
            "ARP needs a packet socket, and that root or CAP_NET_RAW: sudo setcap cap_net_raw+ep \"$(command -v penstock)\"; \
             without it give addresses, a range or a network"
                .into(),
        ),
        _ => refused(error.to_string()),
    })?;
    let answers = probe(socket, &interface, local.0, &targets, patience)
        .map_err(|error| Failure::Fault(format!("--arp {name}: {error}")))?;
    Ok(sort(name, local.0, MacAddr(interface.mac), &targets, &answers))
}

/// All hosts of the interface's network.
fn network((ip, mask): (Ipv4Addr, Ipv4Addr)) -> Result<Vec<Listed>, String> {
    let (ip, mask) = (ip.to_bits(), mask.to_bits());
    let (first, last) = (ip & mask, ip | !mask);
    let prefix = mask.count_ones();
    if (last - first) as usize > MOST {
        return Err(format!(
            "its network is {}/{prefix}, more than {MOST} addresses: say which, as penstock ctl status {}/24 --arp ...",
            Ipv4Addr::from_bits(first),
            Ipv4Addr::from_bits(ip & 0xFFFF_FF00)
        ));
    }
    let hosts = if prefix >= 31 { first..=last } else { first + 1..=last - 1 };
    let board = |ip| BoardAddress(SocketAddrV4::new(Ipv4Addr::from_bits(ip), PORT));
    Ok(hosts.map(|ip| Listed { address: board(ip), is_sought: true }).collect())
}

fn probe(
    mut socket: PacketSocket,
    interface: &Interface,
    local: Ipv4Addr,
    targets: &[Listed],
    patience: Time,
) -> io::Result<Answers> {
    let mac = MacAddr(interface.mac);
    let mut answers: Answers = targets.iter().map(|board| (*board.address.0.ip(), Vec::new())).collect();
    let request = |ip: &Ipv4Addr| {
        let sender = if *ip == local { Ipv4Addr::UNSPECIFIED } else { local };
        Bytes::copy_from_slice(
            &Arp { is_reply: false, sender: (mac, sender), target: (MacAddr::default(), *ip) }.emit(),
        )
    };
    let requests: Vec<Bytes> = answers.keys().map(request).collect();
    let begun = Instant::now();
    let mut listen = |socket: &mut PacketSocket, limit: Duration| -> io::Result<()> {
        let end = Instant::now() + limit;
        loop {
            socket.receive(usize::MAX, |frame, _| {
                take(&mut answers, mac, frame);
                true
            });
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            socket.wait(left)?;
        }
    };
    for _ in 0..ROUNDS {
        for batch in requests.chunks(BATCH) {
            let mut rest = batch;
            while !rest.is_empty() {
                rest = &rest[socket.send(Time::from_duration(begun.elapsed()), rest)?..];
                listen(&mut socket, PAUSE)?;
            }
        }
        listen(&mut socket, patience.to_duration() / ROUNDS)?;
    }
    Ok(answers)
}

/// An answer to `mac` for a requested address.
fn take(answers: &mut Answers, mac: MacAddr, frame: &[u8]) {
    let Some(arp) = Arp::parse(frame).filter(|arp| arp.is_reply && arp.target.0 == mac) else { return };
    let (from, ip) = arp.sender;
    if let Some(macs) = answers.get_mut(&ip).filter(|_| !from.is_multicast() && from != MacAddr::default()) {
        if !macs.contains(&from) {
            macs.push(from);
        }
    }
}

fn sort(name: &str, local: Ipv4Addr, mac: MacAddr, targets: &[Listed], answers: &Answers) -> Sweep {
    let of = |board: &Listed| answers.get(board.address.0.ip()).map_or(&[][..], Vec::as_slice);
    let ip = |board: &Listed| *board.address.0.ip();
    let (found, silent): (Vec<Listed>, Vec<Listed>) =
        targets.iter().filter(|board| ip(board) != local).partition(|board| !of(board).is_empty());
    let shared = answers.iter().filter_map(|(ip, macs)| {
        let all: Vec<String> = macs.iter().map(MacAddr::to_string).collect();
        match (*ip == local, all.as_slice()) {
            (true, [_, ..]) => {
                Some((*ip, format!("is this host's address ({mac}), and that of {}", all.join(" and "))))
            }
            (false, [_, _, ..]) => {
                Some((*ip, format!("is the address of {} devices: {}", all.len(), all.join(" and "))))
            }
            _ => None,
        }
    });
    Sweep {
        interface: name.to_owned(),
        targets: answers.len(),
        found,
        missing: silent.iter().filter(|board| !board.is_sought).map(|board| board.address).collect(),
        shared: shared.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_an_interface_is_all_of_its_hosts_and_not_too_many() {
        let of = |ip: &str, mask: &str| network((ip.parse().unwrap(), mask.parse().unwrap()));
        let hosts = of("10.0.0.77", "255.255.255.0").unwrap();
        assert_eq!((hosts.len(), hosts[0].address.to_string()), (254, "10.0.0.1".to_owned()));
        assert_eq!(hosts[253].address.to_string(), "10.0.0.254");
        assert_eq!(of("10.0.0.4", "255.255.255.254").unwrap().len(), 2);
        assert_eq!(of("10.1.2.3", "255.255.0.0").unwrap().len(), 65_534);
        assert!(of("10.1.2.3", "255.254.0.0").unwrap_err().contains("10.0.0.0/15"));
    }

    #[test]
    fn only_answers_to_our_requests_count_and_two_devices_are_reported() {
        let (us, [a, b]) = (MacAddr([2, 0, 0, 0, 0, 9]), [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last])));
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let board = |last, is_sought| Listed { address: BoardAddress(SocketAddrV4::new(ip(last), PORT)), is_sought };
        let targets = [board(1, true), board(2, true), board(3, false), board(4, true), board(9, true)];
        let mut answers: Answers = targets.iter().map(|board| (*board.address.0.ip(), Vec::new())).collect();
        for (from, last, to) in [(a, 1, us), (b, 1, us), (a, 1, us), (b, 2, us), (a, 4, b), (a, 7, us), (a, 9, us)] {
            let answer = Arp { is_reply: true, sender: (from, ip(last)), target: (to, ip(9)) };
            take(&mut answers, us, &answer.emit());
        }
        take(&mut answers, us, &Arp { is_reply: false, sender: (a, ip(3)), target: (us, ip(9)) }.emit());
        let sweep = sort("eth1", ip(9), us, &targets, &answers);
        assert_eq!(sweep.found, [board(1, true), board(2, true)]);
        assert_eq!(sweep.missing, [board(3, false).address]);
        let [(first, two), (local, taken)] = &sweep.shared[..] else { panic!("{:?}", sweep.shared) };
        assert_eq!(
            (*first, two.as_str()),
            (ip(1), "is the address of 2 devices: 02:00:00:00:00:01 and 02:00:00:00:00:02")
        );
        assert_eq!((*local, taken.contains("this host's")), (ip(9), true));
    }
}
