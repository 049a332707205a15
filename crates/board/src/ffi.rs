// SPDX-License-Identifier: Apache-2.0
//! The only `unsafe` of this crate: the verilated models' pins.

use penstock_wire::gateware::SWITCH_PORTS;
use std::ffi::c_void;
use std::ptr::NonNull;

/// The Ethernet side of one port; the same layout as `struct PenstockLine` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Line {
    pub rx_data: [u64; 8],
    pub rx_mask: u64,
    pub tx_data: [u64; 8],
    pub tx_mask: u64,
    pub rx_valid: u8,
    pub rx_last: u8,
    pub rx_error: u8,
    pub tx_ready: u8,
    pub tx_valid: u8,
    pub tx_last: u8,
    pub tx_error: u8,
}

/// AXI4-Lite; the same layout as `struct PenstockAxil` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Axil {
    pub awaddr: u32,
    pub wdata: u32,
    pub araddr: u32,
    pub awvalid: u8,
    pub wvalid: u8,
    pub bready: u8,
    pub arvalid: u8,
    pub rready: u8,
    pub awready: u8,
    pub wready: u8,
    pub bvalid: u8,
    pub arready: u8,
    pub rvalid: u8,
    pub bresp: u8,
    pub rresp: u8,
    pub rdata: u32,
}

/// AXI4, 64 bits; the same layout as `struct PenstockAxi` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Axi {
    pub rdata: u64,
    pub awready: u8,
    pub wready: u8,
    pub bid: u8,
    pub bresp: u8,
    pub bvalid: u8,
    pub arready: u8,
    pub rid: u8,
    pub rresp: u8,
    pub rlast: u8,
    pub rvalid: u8,
    pub awaddr: u64,
    pub wdata: u64,
    pub araddr: u64,
    pub awid: u8,
    pub awlen: u8,
    pub awvalid: u8,
    pub wstrb: u8,
    pub wlast: u8,
    pub wvalid: u8,
    pub bready: u8,
    pub arid: u8,
    pub arlen: u8,
    pub arvalid: u8,
    pub rready: u8,
}

/// SENDs of peers, and notices of their WRITEs; the same layout as `struct PenstockReceive` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Receive {
    pub tready: u8,
    pub tdata: u64,
    pub tuser: u64,
    pub tkeep: u8,
    pub tvalid: u8,
    pub tlast: u8,
}

/// Pins of one clock cycle; the same layout as `struct PenstockPins` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Pins {
    pub line: Line,
    pub axil: Axil,
    pub axi: Axi,
    pub receive: Receive,
    pub data_tdata: [u64; 8],
    pub data_tkeep: u64,
    pub event_tdata: [u64; 32],
    pub event_tkeep: [u8; 32],
    pub event_tuser: [[u8; 18]; 4],
    pub desc_tdata: [u32; 6],
    pub data_tvalid: u8,
    pub data_tlast: u8,
    pub event_tvalid: u8,
    pub event_tlast: u8,
    pub trigger_valid: u8,
    pub trigger_type: u16,
    pub trigger_number: u64,
    pub desc_tvalid: u8,
    pub cpl_tready: u8,
    pub sample_tready: u8,
    pub rst: u8,
    pub axi_rst: u8,
    pub event_rst: u8,
    pub cpl_tdata: u64,
    pub sample_tdata: [u32; 4],
    pub tai_ns: u64,
    pub accepted_number: u64,
    pub accepted_valid: u8,
    pub trigger_busy: u8,
    pub trigger_gate: u8,
    pub event_tready: u8,
    pub data_tready: u8,
    pub desc_tready: u8,
    pub cpl_tvalid: u8,
    pub sample_tvalid: u8,
    pub tx_paused: u8,
}

/// Pins of the QCN switch in one clock cycle; the same layout as `struct PenstockSwitchPins` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct SwitchPins {
    pub line: [Line; SWITCH_PORTS],
    pub management: Line,
    pub axil: Axil,
    pub rst: u8,
    pub link_up: u8,
    pub management_up: u8,
    pub stat: u64,
    pub level: [u8; 24],
}

extern "C" {
    fn penstock_board_new(top: u32) -> *mut c_void;
    fn penstock_board_free(board: *mut c_void);
    fn penstock_board_cycle(board: *mut c_void, pins: *mut Pins);
    fn penstock_switch_new(top: u32) -> *mut c_void;
    fn penstock_switch_free(gateware: *mut c_void);
    fn penstock_switch_cycle(gateware: *mut c_void, pins: *mut SwitchPins);
}

/// One instance of the verilated gateware.
pub struct Model(NonNull<c_void>);

// SAFETY: a model owns its Verilator context and shares nothing with other models; it may move
// between threads, and `&mut self` keeps it to one thread at a time.
unsafe impl Send for Model {}

impl Model {
    /// An instance of the top with this number (`top.rs`).
    pub fn new(top: u32) -> Self {
        // SAFETY: the constructor has no precondition; it answers a number it does not know with null.
        Self(NonNull::new(unsafe { penstock_board_new(top) }).expect("cpp/board.cpp has every top of src/top.rs"))
    }

    /// One clock cycle: inputs are applied, outputs sampled, then the clock rises.
    pub fn cycle(&mut self, pins: &mut Pins) {
        // SAFETY: the pointer came from `penstock_board_new` and is freed only in `drop`; `Pins` has
        // the layout of `PenstockPins`.
        unsafe { penstock_board_cycle(self.0.as_ptr(), pins) }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: freed once, here.
        unsafe { penstock_board_free(self.0.as_ptr()) }
    }
}

/// One instance of the verilated QCN switch.
pub struct SwitchModel(NonNull<c_void>);

// SAFETY: as for `Model`.
unsafe impl Send for SwitchModel {}

impl SwitchModel {
    /// An instance of the top with this number (`switch/gateware.rs`).
    pub fn new(top: u32) -> Self {
        // SAFETY: the constructor has no precondition; it answers a number it does not know with null.
        Self(NonNull::new(unsafe { penstock_switch_new(top) }).expect("cpp/switch.cpp has every top of SwitchLine"))
    }

    /// One clock cycle: inputs are applied, outputs sampled, then the clock rises.
    pub fn cycle(&mut self, pins: &mut SwitchPins) {
        // SAFETY: the pointer came from `penstock_switch_new` and is freed only in `drop`; `SwitchPins` has the layout of
        // `PenstockSwitchPins`.
        unsafe { penstock_switch_cycle(self.0.as_ptr(), pins) }
    }
}

impl Drop for SwitchModel {
    fn drop(&mut self) {
        // SAFETY: freed once, here.
        unsafe { penstock_switch_free(self.0.as_ptr()) }
    }
}
