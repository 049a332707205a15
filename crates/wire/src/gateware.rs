// SPDX-License-Identifier: Apache-2.0
//! Constants of the gateware that software and simulation depend on.
//! Source: `rtl/top/penstock_xgmii.sv` (10G, 25G), `penstock_100g.sv`; the registers are in `regs/penstock.rdl`.

use penstock_units::Time;

/// Clock of the 10G front end, Hz: 64 bits a cycle.
pub const CLOCK_HZ: u64 = 156_250_000;
/// Clock of the 25G front end, Hz: 64 bits a cycle.
pub const CLOCK_25G_HZ: u64 = 390_625_000;
/// Clock of the 100G front end, Hz: 512 bits a cycle, more than the line takes.
pub const CLOCK_100G_HZ: u64 = 322_265_625;
/// Clock period of the 10G front end.
pub const CYCLE: Time = Time::from_ps(1_000_000_000_000 / CLOCK_HZ);
/// One octet on a 10 Gb/s wire.
pub const OCTET: Time = Time::from_ps(CYCLE.as_ps() / 8);
/// Number of queue pair 0 on the wire unless software sets another; its low 8 bits are 0.
pub const FIRST_QPN: u32 = 0x200;
/// UDP source port of queue pair 0: the first of the dynamic ports (RFC 6335), as required by IBTA A17.9.2.
pub const FIRST_UDP_SPORT: u16 = 0xC000;
/// Detector inputs of the verilated front ends (`N_IN`).
pub const BOARD_INPUTS: usize = 4;
/// Most payload bytes of an event that they make (`EVENT_BYTES`).
pub const BOARD_EVENT_BYTES: usize = 512 * 1024;
/// Bytes of the replay memory of the message source.
pub const REPLAY_BYTES: usize = 16 * 1024;
