// SPDX-License-Identifier: Apache-2.0
//! The QCN switch in gateware (`rtl/top/penstock_switch.sv`), verilated: 4 ports of 10 Gb/s.
//!
//! ```text
//!  SwitchNode, a node of penstock-netsim: frames as bytes, pauses and notifications as they pass
//!       | QcnSwitch: SwitchModel (Verilator), XGMII at each port, counters, samples of the queues
//! ```

mod gateware;
mod node;
mod settings;

pub use gateware::{Levels, PortCounts, QcnSwitch};
pub use node::SwitchNode;
pub use settings::{SwitchError, SwitchPause, SwitchSettings};
