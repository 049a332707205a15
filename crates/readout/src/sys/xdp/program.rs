// SPDX-License-Identifier: Apache-2.0
//! The XDP program of an interface: RoCEv2 frames to our address, with or without a VLAN tag, go to the socket of the
//! queue that received them, all others to the kernel. The receiver checks the VLAN and counts frames of other VLANs.
//! Promise: the program is attached exactly as long as its [`Attached`] exists, however the process ends: the kernel
//! detaches a link's program when the last descriptor of the link is closed.
//! Source: bpf(2); kernel documentation `bpf/instruction-set`, `networking/af_xdp` (XSKMAP, XDP_PASS where a queue has
//! no socket).
//! Why not `aya`: it loads ELF objects, which a compiler for BPF has to make at build time. Thirty instructions need
//! neither a compiler nor a loader, and `aya` has no AF_XDP sockets either.

use std::ffi::c_int;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Commands and their constants (linux/bpf.h).
const MAP_CREATE: c_int = 0;
const MAP_UPDATE_ELEM: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// The program is content with frames of several buffers: it looks at headers only.
const HAS_FRAGS: u32 = 1 << 5;

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpMode {
    /// It runs in the driver, before the kernel has made anything of a frame.
    Native,
    /// It runs in the kernel, on frames of any driver.
    Generic,
}

impl XdpMode {
    /// `XDP_FLAGS_DRV_MODE`, `XDP_FLAGS_SKB_MODE` (linux/if_link.h).
    fn flag(self) -> u32 {
        match self {
            XdpMode::Native => 1 << 2,
            XdpMode::Generic => 1 << 1,
        }
    }
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// # Safety
/// `T` is what `command` takes, its padding and pointers included.
unsafe fn bpf<T>(command: c_int, request: &T) -> io::Result<c_int> {
    // SAFETY: a request of the length given, that lives over the call; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(request), size_of::<T>()) };
    super::check(result as c_int)
}

/// The sockets that a program hands frames to, by queue.
#[derive(Debug)]
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// # Errors
    /// The kernel's error; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
    pub(super) fn new(queues: u32) -> io::Result<SocketMap> {
        let request =
            MapCreate { map_type: MAP_TYPE_XSKMAP, key_size: 4, value_size: 4, max_entries: queues, map_flags: 0 };
        // SAFETY: the request of this command, without pointers; a new descriptor without another owner.
        Ok(SocketMap(unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &request)?) }))
    }

    /// # Errors
    /// The kernel's error; the socket must be bound.
    pub(super) fn set(&self, queue: u32, socket: &impl AsRawFd) -> io::Result<()> {
        let socket: c_int = socket.as_raw_fd();
        let (key, value) = (std::ptr::from_ref(&queue) as u64, std::ptr::from_ref(&socket) as u64);
        let request = MapUpdate { map_fd: self.0.as_raw_fd() as u32, pad: 0, key, value, flags: 0 };
        // SAFETY: the request of this command; key and value have the sizes of the map and live over the call.
        unsafe { bpf(MAP_UPDATE_ELEM, &request) }.map(|_| ())
    }
}

/// A program on an interface.
#[derive(Debug)]
pub(super) struct Attached {
    _link: OwnedFd,
}

/// A program that is loaded.
#[derive(Debug)]
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads the program that gives UDP to `port` of `ip` to the sockets of `map`.
    ///
    /// # Errors
    /// The kernel's error; `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
    pub(super) fn load(map: &SocketMap, ip: Ipv4Addr, port: u16) -> io::Result<Program> {
        let instructions = instructions(map.0.as_raw_fd(), ip, port);
        let license = c"Apache-2.0";
        let mut prog_name = [0; 16];
        prog_name[..8].copy_from_slice(b"penstock");
        let mut request = ProgLoad {
            prog_type: PROG_TYPE_XDP,
            insn_cnt: instructions.len() as u32,
            insns: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log_buf: 0,
            kern_version: 0,
            prog_flags: HAS_FRAGS,
            prog_name,
            prog_ifindex: 0,
            expected_attach_type: ATTACH_XDP,
        };
        // SAFETY: the request of this command; instructions and licence live over the call.
        let mut loaded = unsafe { bpf(PROG_LOAD, &request) };
        if loaded.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL)) {
            request.prog_flags = 0; // Linux before 5.18
                                    // SAFETY: as above.
            loaded = unsafe { bpf(PROG_LOAD, &request) };
        }
        // SAFETY: a new descriptor without another owner.
        Ok(Program(unsafe { OwnedFd::from_raw_fd(loaded?) }))
    }

    /// Puts it on an interface.
    ///
    /// # Errors
    /// The kernel's error: `EBUSY` or `EEXIST` where another program is, `EOPNOTSUPP` or others where the driver
    /// refuses.
    pub(super) fn attach(&self, interface: u32, mode: XdpMode) -> io::Result<Attached> {
        let request = LinkCreate {
            prog_fd: self.0.as_raw_fd() as u32,
            target_ifindex: interface,
            attach_type: ATTACH_XDP,
            flags: mode.flag(),
        };
        // SAFETY: the request of this command, without pointers; a new descriptor without another owner.
        Ok(Attached { _link: unsafe { OwnedFd::from_raw_fd(bpf(LINK_CREATE, &request)?) } })
    }
}

/// An instruction as the kernel has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u8,
    /// Destination in the low four bits as C lays them out, source in the others.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Operations: classes, sizes and sources joined (`bpf/instruction-set`).
const LOAD: [(u8, usize); 4] = [(0x71, 1), (0x69, 2), (0x61, 4), (0x79, 8)];
const STORE_64: u8 = 0x7b;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const ADD_IMMEDIATE: u8 = 0x07;
const AND_IMMEDIATE: u8 = 0x57;
const XOR_IMMEDIATE: u8 = 0xa7;
const IF_GREATER: u8 = 0x2d;
const IF_NOT_IMMEDIATE: u8 = 0x55;
const IF_NOT_IMMEDIATE_32: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The source of a 64-bit immediate that is the descriptor of a map.
const OF_MAP: u8 = 1;

/// Functions of the kernel (linux/bpf.h).
const KTIME_GET_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const ADJUST_META: i32 = 54;
const XDP_PASS: i32 = 2;

/// Places in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// What lies in front of a frame: when the program saw it (`CLOCK_MONOTONIC`, ns), and the same with all bits inverted,
/// which distinguishes it from whatever else may lie there where the driver leaves no room.
pub(super) const STAMP_BYTES: usize = 16;

/// Ethernet, IPv4 without options, UDP.
const HEADERS: i32 = 14 + 20 + 8;
/// A VLAN tag (IEEE 802.1Q).
const TAG: i32 = 4;

/// A jump of this length goes to the label that its immediate is compared for afterwards.
const TO_PASS: i16 = i16::MAX;
const TO_REDIRECT: i16 = i16::MAX - 1;

fn instructions(map: c_int, ip: Ipv4Addr, port: u16) -> Vec<Instruction> {
    let of = |code: u8, to: u8, from: u8, offset: i16, immediate: i32| {
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        Instruction { code, registers, offset, immediate }
    };
    let load = |bytes: usize, to: u8, from: u8, at: i16| {
        let code = LOAD.iter().find(|(_, size)| *size == bytes).expect("a size that there is").0;
        of(code, to, from, at, 0)
    };
    // The contents of a frame are compared in place.
    let unless = |register: u8, value: i32| of(IF_NOT_IMMEDIATE_32, register, 0, TO_PASS, value);
    let context = 6;
    let mut program = vec![
        of(MOVE, context, 1, 0, 0),
        load(4, 2, context, DATA),
        load(4, 3, context, DATA_END),
        of(MOVE, 4, 2, 0, 0),
        of(ADD_IMMEDIATE, 4, 0, 0, HEADERS),
        of(IF_GREATER, 4, 3, TO_PASS, 0),
        load(2, 4, 2, 12),
        // With a tag all fields follow it; without one these five instructions are skipped.
        of(IF_NOT_IMMEDIATE_32, 4, 0, 5, u16::to_be(libc::ETH_P_8021Q as u16).into()),
        of(ADD_IMMEDIATE, 2, 0, 0, TAG),
        of(MOVE, 4, 2, 0, 0),
        of(ADD_IMMEDIATE, 4, 0, 0, HEADERS),
        of(IF_GREATER, 4, 3, TO_PASS, 0),
        load(2, 4, 2, 12),
        unless(4, u16::to_be(libc::ETH_P_IP as u16).into()),
        load(1, 4, 2, 14),
        // No options. A wrong version is counted by the receiver.
        of(AND_IMMEDIATE, 4, 0, 0, 0x0f),
        unless(4, 5),
        load(1, 4, 2, 23),
        unless(4, libc::IPPROTO_UDP),
        load(2, 4, 2, 20),
        // More fragments, or an offset.
        of(AND_IMMEDIATE, 4, 0, 0, u16::to_be(0x3FFF).into()),
        unless(4, 0),
        load(4, 4, 2, 30),
        unless(4, i32::from_ne_bytes(ip.octets())),
        load(2, 4, 2, 36),
        unless(4, port.to_be().into()),
        // The time is stored before the frame.
        of(MOVE, 1, context, 0, 0),
        of(MOVE_IMMEDIATE, 2, 0, 0, -(STAMP_BYTES as i32)),
        of(CALL, 0, 0, 0, ADJUST_META),
        of(IF_NOT_IMMEDIATE, 0, 0, TO_REDIRECT, 0),
        of(CALL, 0, 0, 0, KTIME_GET_NS),
        load(4, 2, context, DATA_META),
        load(4, 3, context, DATA),
        of(MOVE, 4, 2, 0, 0),
        of(ADD_IMMEDIATE, 4, 0, 0, STAMP_BYTES as i32),
        of(IF_GREATER, 4, 3, TO_REDIRECT, 0),
        of(STORE_64, 2, 0, 0, 0),
        of(XOR_IMMEDIATE, 0, 0, 0, -1),
        of(STORE_64, 2, 0, 8, 0),
    ];
    let redirect = program.len();
    program.extend([
        load(4, 2, context, RX_QUEUE_INDEX),
        of(LOAD_IMMEDIATE_64, 1, OF_MAP, 0, map),
        of(0, 0, 0, 0, 0),
        of(MOVE_IMMEDIATE, 3, 0, 0, XDP_PASS),
        of(CALL, 0, 0, 0, REDIRECT_MAP),
        of(EXIT, 0, 0, 0, 0),
    ]);
    let pass = program.len();
    program.extend([of(MOVE_IMMEDIATE, 0, 0, 0, XDP_PASS), of(EXIT, 0, 0, 0, 0)]);
    for (at, instruction) in program.iter_mut().enumerate() {
        let to = match instruction.offset {
            TO_PASS => pass,
            TO_REDIRECT => redirect,
            _ => continue,
        };
        instruction.offset = (to - at - 1) as i16;
    }
    program
}
