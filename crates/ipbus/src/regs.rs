// SPDX-License-Identifier: Apache-2.0
//! Addresses and fields of the registers as constants, as `regs/generate.py` makes them from `regs/penstock.rdl`.

#![allow(missing_docs, clippy::unreadable_literal)]

include!(concat!(env!("OUT_DIR"), "/penstock_regs.rs"));
