// SPDX-License-Identifier: Apache-2.0
//! The QCN switch in gateware (`rtl/top/penstock_switch.sv`, `penstock_switch_1g.sv`), verilated: 4 ports of 10 or 1 Gb/s,
//! at 1 Gb/s with its management port.
//!
//! ```text
//!  SwitchNode, a node of penstock-netsim: frames as bytes, pauses and notifications as they pass
//!       | QcnSwitch: SwitchModel (Verilator), XGMII or GMII at each port, counters, samples of the queues
//! ```

mod counts;
mod gateware;
mod line;
mod node;
mod settings;

pub use counts::PortCounts;
pub use gateware::{Levels, QcnSwitch};
pub use line::SwitchLine;
pub use node::SwitchNode;
pub use settings::{regs, SwitchError, SwitchPause, SwitchSettings};
