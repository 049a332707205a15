// SPDX-License-Identifier: Apache-2.0
//! Generates the register maps.

include!("../../regs/cargo.rs");

fn main() {
    generate(&["penstock_map.rs", "penstock_regs.rs", "qcn_switch_map.rs", "qcn_switch_regs.rs"]);
}
