// SPDX-License-Identifier: Apache-2.0
//! Generates the parameters of the reaction points.

include!("../../regs/cargo.rs");

fn main() {
    generate(&["penstock_parameters.rs"]);
}
