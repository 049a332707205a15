// SPDX-License-Identifier: Apache-2.0
//! A board and the server that it writes to: addresses, and how both are set up.

use penstock_board::{EndpointConfig, QpConfig};
use penstock_cc::DcqcnParams;
use penstock_transport::{Access, Endpoint, MemoryRegion};
use penstock_wire::{Ipv4Addr, MacAddr, Psn, Qpn};

/// The server's memory.
pub const REGION: MemoryRegion = MemoryRegion { va: 0x1000, rkey: 7, len: 1 << 20, access: Access::RemoteWrite };
pub const FIRST_PSN: Psn = Psn::new(5);

/// The board's end of a queue pair.
pub fn local(index: u8) -> Endpoint {
    let qpn = Qpn::new(0x200 + u32::from(index));
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn }
}

/// The server's.
pub fn peer(index: u8) -> Endpoint {
    let qpn = Qpn::new(0x100 + u32::from(index));
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn }
}

/// The board under Table II of AdvCam.
pub fn endpoint_config() -> EndpointConfig {
    EndpointConfig {
        mac: local(0).mac,
        ip: local(0).ip,
        ttl: 64,
        qpn_base: local(0).qpn,
        obey_pause: true,
        obey_pfc: true,
        traffic_class: 3,
        congestion: DcqcnParams::default(),
    }
}

/// A queue pair of it; `ack_timeout` as the IBTA codes it, 0 for none.
pub fn qp_config(index: u8, mtu: u16, ack_timeout: u8) -> QpConfig {
    let peer = peer(index);
    QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: 0xc000,
        tos: 0x6a,
        dest_qpn: peer.qpn,
        rkey: REGION.rkey,
        mtu,
        ack_timeout,
        retry_cnt: 7,
        rnr_retry: 7,
        init_psn: FIRST_PSN,
    }
}
