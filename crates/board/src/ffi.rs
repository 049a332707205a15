// SPDX-License-Identifier: Apache-2.0
//! The only `unsafe` of this crate: the verilated model's pins, and the system calls that make a TAP device, for which no
//! crate in use has a safe form.

use nix::libc;
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Pins of one clock cycle; the same layout as `struct PenstockPins` in `cpp/board.h`.
#[repr(C)]
#[derive(Default, Clone)]
pub struct Pins {
    pub rx_data: [u64; 8],
    pub rx_mask: u64,
    pub data_tdata: [u64; 8],
    pub data_tkeep: u64,
    pub desc_tdata: [u32; 6],
    pub awaddr: u32,
    pub wdata: u32,
    pub araddr: u32,
    pub rx_valid: u8,
    pub rx_last: u8,
    pub tx_ready: u8,
    pub data_tvalid: u8,
    pub data_tlast: u8,
    pub desc_tvalid: u8,
    pub cpl_tready: u8,
    pub sample_tready: u8,
    pub awvalid: u8,
    pub wvalid: u8,
    pub bready: u8,
    pub arvalid: u8,
    pub rready: u8,
    pub rst: u8,
    pub tx_data: [u64; 8],
    pub tx_mask: u64,
    pub cpl_tdata: u64,
    pub sample_tdata: [u32; 4],
    pub rdata: u32,
    pub tx_valid: u8,
    pub tx_last: u8,
    pub tx_error: u8,
    pub data_tready: u8,
    pub desc_tready: u8,
    pub cpl_tvalid: u8,
    pub sample_tvalid: u8,
    pub awready: u8,
    pub wready: u8,
    pub bvalid: u8,
    pub arready: u8,
    pub rvalid: u8,
    pub bresp: u8,
    pub rresp: u8,
    pub tx_paused: u8,
}

extern "C" {
    fn penstock_board_new(top: u32) -> *mut c_void;
    fn penstock_board_free(board: *mut c_void);
    fn penstock_board_cycle(board: *mut c_void, pins: *mut Pins);
}

/// One instance of the verilated gateware.
pub struct Model(NonNull<c_void>);

// SAFETY: a model owns its Verilator context and shares nothing with other models; it may move
// between threads, and `&mut self` keeps it to one thread at a time.
unsafe impl Send for Model {}

impl Model {
    /// An instance of the top with this number in `cpp/board.h`.
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

/// `struct ifreq` of netdevice(7) as far as flags go.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == size_of::<libc::ifreq>());

/// Calls an ioctl that takes a name and flags.
fn interface_ioctl(fd: BorrowedFd, request: libc::Ioctl, name: &str, flags: libc::c_short) -> io::Result<()> {
    let mut asked = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags, rest: [0; 22] };
    // The last byte stays 0.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name of an interface has 1 to 15 bytes"));
    }
    asked.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`, which `asked` is as large as.
    match unsafe { libc::ioctl(fd.as_raw_fd(), request, &mut asked) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes an open /dev/net/tun the TAP device `name`: whole Ethernet frames, nothing in front of them.
pub fn attach_tap(tun: BorrowedFd, name: &str) -> io::Result<()> {
    interface_ioctl(tun, libc::TUNSETIFF, name, (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short)
}

/// Brings interface `name` up; `socket` is any socket.
pub fn bring_up(socket: BorrowedFd, name: &str) -> io::Result<()> {
    interface_ioctl(socket, libc::SIOCSIFFLAGS, name, (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short)
}
