// SPDX-License-Identifier: Apache-2.0
//! A packet socket whose received frames are in memory shared with the kernel: no system call per frame.
//! Promise: a frame is visible as soon as it has arrived, in order; frames that find the ring full are counted and
//! dropped. A frame that the device refuses is lost after a bounded time, counted, and reported once for each reason.
//! Source: packet(7); kernel documentation `networking/packet_mmap` (TPACKET_V2: a status per frame. Version 3 delivers
//! whole blocks, at best a millisecond late, which would add to every round trip of a reliable connection).

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use libc::{c_int, c_void, socklen_t};
use penstock_transport::{FrameRefusal, Refusals};
use penstock_units::Time;
use penstock_wire::FrameParts;

use super::offload::OFFLOAD_LEN;
use super::options::{check, get_option, set_option, take_error};
use super::Interface;

/// The kernel allocates the ring in pieces of this size; no frame crosses from one to the next.
const BLOCK_BYTES: usize = 1 << 18;
/// The ring of received frames: each takes the place of the longest, whose rest is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    pub longest: usize,
    /// How many may wait; rounded up to whole blocks.
    pub count: usize,
}

/// The offset of a frame's data from the start of its header.
const ADDRESS_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// The memory before a frame: its header, its address and alignment.
const HEADROOM: usize = 128;

/// A frame in pieces, so that a payload is sent in place.
pub trait Gather {
    /// The pieces in order; any may be empty.
    fn pieces(&self) -> [&[u8]; 3];
}

impl Gather for Bytes {
    fn pieces(&self) -> [&[u8]; 3] {
        [self, &[], &[]]
    }
}

impl Gather for FrameParts {
    fn pieces(&self) -> [&[u8]; 3] {
        self.pieces()
    }
}

/// A socket bound to one interface, that receives what its filter passes.
#[derive(Debug)]
pub struct PacketSocket {
    name: String,
    index: u32,
    fd: OwnedFd,
    ring: NonNull<u8>,
    ring_len: usize,
    frame_bytes: usize,
    frames_per_block: usize,
    frames: usize,
    next: usize,
    dropped: u64,
    /// MAC address of the interface.
    mac: [u8; 6],
    /// Frames of a VLAN other than 0.
    foreign_vlan: u64,
    /// A header of the offloads is in front of each frame.
    has_offload: bool,
    /// Where frames are put that are longer than a place of the ring; empty if these come cut off.
    whole: Vec<u8>,
    refusals: Refusals,
    last_refusal: Option<String>,
}

// SAFETY: the ring belongs to this value alone, and the kernel does not mind which thread reads it.
unsafe impl Send for PacketSocket {}

impl PacketSocket {
    /// Receives UDP to `port` (to `ip`, if there is one).
    ///
    /// # Errors
    /// The kernel's error; `EPERM` without the capability `CAP_NET_RAW`.
    pub fn open(
        (name, interface): (&str, &Interface),
        port: u16,
        ip: Option<Ipv4Addr>,
        ring: Frames,
    ) -> io::Result<PacketSocket> {
        PacketSocket::with_filter((name, interface), libc::ETH_P_IP, &udp_filter(port, ip), ring)
    }

    /// Receives ARP, and TCP and ICMP to `count` addresses from `first` on, whole, however short the ring's places. In
    /// front of each frame that is sent stands a header of [`offload`](super::offload): the kernel computes checksums
    /// and cuts long frames into segments.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_tcp(
        (name, interface): (&str, &Interface),
        first: Ipv4Addr,
        count: u16,
        ring: Frames,
    ) -> io::Result<PacketSocket> {
        let filter = tcp_filter(first, count);
        let mut socket = PacketSocket::with_filter((name, interface), libc::ETH_P_ALL, &filter, ring)?;
        socket.take_long_frames()?;
        let bytes: c_int = 8 << 20;
        // More than net.core.wmem_max and rmem_max needs CAP_NET_ADMIN; less will do.
        for (forced, bounded) in [(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)] {
            let set = |option| set_option(&socket.fd, libc::SOL_SOCKET, option, &bytes);
            set(forced).or_else(|_| set(bounded))?;
        }
        Ok(socket)
    }

    /// Receives ARP.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_arp((name, interface): (&str, &Interface), ring: Frames) -> io::Result<PacketSocket> {
        let all = [statement(libc::BPF_RET | libc::BPF_K, u32::MAX)];
        PacketSocket::with_filter((name, interface), libc::ETH_P_ARP, &all, ring)
    }

    fn with_filter(
        (name, interface): (&str, &Interface),
        protocol: c_int,
        filter: &[libc::sock_filter],
        ring: Frames,
    ) -> io::Result<PacketSocket> {
        // Protocol 0 receives nothing before the filter is there and bind names it.
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
        // SAFETY: a new descriptor without another owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        attach_filter(&fd, filter)?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &libc::tpacket_versions::TPACKET_V2)?;
        let has_offload = protocol == libc::ETH_P_ALL;
        if has_offload {
            let on: c_int = 1;
            set_option(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &on)?;
            set_option(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &on)?;
        }

        let frame_bytes = (ring.longest.min(BLOCK_BYTES / 2) + HEADROOM).next_multiple_of(libc::TPACKET_ALIGNMENT);
        let frames_per_block = BLOCK_BYTES / frame_bytes;
        let blocks = ring.count.div_ceil(frames_per_block).max(1);
        let frames = frames_per_block * blocks;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: frame_bytes as u32,
            tp_frame_nr: frames as u32,
        };
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let ring_len = BLOCK_BYTES * blocks;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of the ring just made, at an address of the kernel's choice.
        let ring = unsafe { libc::mmap(std::ptr::null_mut(), ring_len, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if ring == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(ring.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mac = interface.mac;
        let socket = PacketSocket {
            name: name.to_owned(),
            index: interface.index,
            fd,
            ring,
            ring_len,
            frame_bytes,
            frames_per_block,
            frames,
            next: 0,
            dropped: 0,
            mac,
            foreign_vlan: 0,
            has_offload,
            whole: Vec::new(),
            refusals: Refusals::default(),
            last_refusal: None,
        };
        socket.bind(interface.index, protocol)?;
        Ok(socket)
    }

    /// From now on frames that are longer than a place of the ring come whole: the kernel queues a copy of each
    /// (`PACKET_COPY_THRESH`), of as many as the socket's buffer takes. Others come cut off, as before.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take_long_frames(&mut self) -> io::Result<()> {
        const LONGEST: usize = OFFLOAD_LEN + (1 << 16) + 64; // one that the kernel has joined from several
        set_option(&self.fd, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, &1)?;
        self.whole = vec![0; LONGEST];
        Ok(())
    }

    fn bind(&self, index: u32, protocol: c_int) -> io::Result<()> {
        // SAFETY: all-zero is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = index as c_int;
        let len = size_of_val(&address) as socklen_t;
        // SAFETY: an address of the length given, that lives over the call.
        check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) }).map(|_| ())
    }

    /// Hands the next frames, at most `most`, and when each came to `take`, as long as it answers true. Returns how
    /// many there were.
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(&[u8], SystemTime) -> bool) -> usize {
        self.receive_checked(most, |frame, arrived, _| take(frame, arrived))
    }

    /// The same, and whether the frame's checksum is there: this machine leaves it to the network card, which a frame
    /// between two namespaces never meets.
    pub fn receive_checked(&mut self, most: usize, mut take: impl FnMut(&[u8], SystemTime, bool) -> bool) -> usize {
        for done in 0..most {
            let (block, within) = (self.next / self.frames_per_block, self.next % self.frames_per_block);
            let at = block * BLOCK_BYTES + within * self.frame_bytes;
            // SAFETY: `at` is the start of a frame inside the ring; its header is aligned to TPACKET_ALIGNMENT.
            let header = unsafe { self.ring.as_ptr().add(at) }.cast::<libc::tpacket2_hdr>();
            // SAFETY: the status word is the first of the header; the kernel writes it while we read, hence atomic.
            let status = unsafe { AtomicU32::from_ptr((&raw mut (*header).tp_status).cast()) };
            let flags = status.load(Ordering::Acquire);
            if flags & libc::TP_STATUS_USER == 0 {
                return done;
            }
            // SAFETY: the frame is ours until its status is written back; the kernel put it wholly inside its place,
            // which the bounds below do not even trust.
            let (frame, arrived, pkttype, vlan) = unsafe {
                let arrived = Duration::new((*header).tp_sec.into(), (*header).tp_nsec.min(999_999_999));
                let (mac, len) = (usize::from((*header).tp_mac), (*header).tp_snaplen as usize);
                let len = len.min(self.frame_bytes.saturating_sub(mac));
                let frame = header.cast::<u8>().add(mac.min(self.frame_bytes));
                let address = header.cast::<u8>().add(ADDRESS_AT).cast::<libc::sockaddr_ll>();
                let frame = std::slice::from_raw_parts(frame, len);
                (frame, UNIX_EPOCH + arrived, (*address).sll_pkttype, (*header).tp_vlan_tci & 0x0FFF)
            };
            // The kernel has taken a tag off; that of VLAN 0 is a priority. A socket of all protocols is shown the tag.
            // The others get the frame later, when its tag is gone: one of a VLAN for which there is no interface is
            // then said to be for another host, though its address is ours or that of a group.
            let is_tagged = flags & libc::TP_STATUS_VLAN_VALID != 0 && vlan != 0;
            let to = frame.get(..6).unwrap_or(&[0; 6]);
            let is_misled = pkttype == libc::PACKET_OTHERHOST && (to == self.mac || to[0] & 1 != 0);
            let is_foreign = is_tagged || is_misled;
            self.foreign_vlan += u64::from(is_foreign);
            let has_checksum = flags & libc::TP_STATUS_CSUMNOTREADY == 0;
            // Its copy was queued before the frame was handed over, so the copies come in the order of the frames.
            let head = if self.has_offload { OFFLOAD_LEN } else { 0 };
            let frame = match flags & libc::TP_STATUS_COPY {
                0 => frame,
                _ => next_copy(&self.fd, &mut self.whole, head, frame),
            };
            let more = is_foreign || take(frame, arrived, has_checksum);
            status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = if self.next + 1 == self.frames { 0 } else { self.next + 1 };
            if !more {
                return done + 1;
            }
        }
        most
    }

    /// Sleeps until a frame is there, at most for `limit`.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface is gone.
    pub fn wait(&self, limit: Duration) -> io::Result<()> {
        match wait_any([self.fd.as_raw_fd()].into_iter(), limit)? {
            true => self.take_error(),
            false => Ok(()),
        }
    }

    /// The errors since the last call.
    ///
    /// # Errors
    /// `ENETDOWN` when the interface was taken down or is gone.
    pub fn take_error(&self) -> io::Result<()> {
        take_error(&self.fd)
    }

    /// Sends frames in order, at `now` of any clock that does not run backwards. Returns how many it has dealt with:
    /// they are sent, or lost because the device refused them. The others are to be offered again soon.
    ///
    /// # Errors
    /// The interface is gone.
    pub fn send(&mut self, now: Time, frames: &[impl Gather]) -> io::Result<usize> {
        let mut done = 0;
        while done < frames.len() {
            match self.send_batch(&frames[done..]) {
                Ok(0) => return Ok(done),
                Ok(sent) => {
                    done += sent;
                    self.refusals.accepted();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => {
                    let refusal = match error.raw_os_error() {
                        Some(libc::EAGAIN) => FrameRefusal::Full,
                        Some(libc::ENOBUFS | libc::ENOMEM) => FrameRefusal::Dropped,
                        _ => FrameRefusal::Never,
                    };
                    if !self.refusals.refused(now, refusal) {
                        return Ok(done);
                    }
                    let len: usize = frames[done].pieces().iter().map(|piece| piece.len()).sum();
                    self.report(&error, if self.has_offload { len.saturating_sub(OFFLOAD_LEN) } else { len });
                    done += 1;
                }
            }
        }
        Ok(done)
    }

    /// Gives the kernel the first frames, up to a batch; how many it has taken.
    fn send_batch(&self, frames: &[impl Gather]) -> io::Result<usize> {
        const BATCH: usize = 64;
        const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let batch = &frames[..frames.len().min(BATCH)];
        let mut parts = [[NOTHING; 3]; BATCH];
        // SAFETY: all-zero is a valid mmsghdr.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (frame, (parts, header)) in batch.iter().zip(parts.iter_mut().zip(&mut headers)) {
            *parts = frame.pieces().map(|piece| libc::iovec {
                iov_base: piece.as_ptr().cast_mut().cast::<c_void>(),
                iov_len: piece.len(),
            });
            header.msg_hdr.msg_iov = parts.as_mut_ptr();
            header.msg_hdr.msg_iovlen = parts.len();
        }
        let (fd, len) = (self.fd.as_raw_fd(), batch.len() as libc::c_uint);
        // SAFETY: `len` headers, each with the parts of one frame; all live over the call, which only reads.
        check(unsafe { libc::sendmmsg(fd, headers.as_mut_ptr(), len, libc::MSG_DONTWAIT) }).map(|sent| sent as usize)
    }

    /// Reports a lost frame, the first one of each reason.
    fn report(&mut self, error: &io::Error, len: usize) {
        let (name, errno) = (&self.name, error.raw_os_error().unwrap_or(0));
        if self.refusals.report_once(errno) {
            match errno {
                libc::ENETDOWN => tracing::warn!("{name} is down: frames are lost until it is up again"),
                libc::EAGAIN => tracing::warn!("{name} has taken no frame for 1 s: frames are lost until it takes some"),
                libc::EMSGSIZE => tracing::warn!(
                    "{name} refuses a frame of {len} bytes: {error}: its MTU is smaller; such frames are lost"
                ),
                libc::ENOBUFS => tracing::warn!(
                    "{name} drops a frame of {len} bytes: {error}: its queue is full, or what is behind it takes no such \
                     frame (its MTU, a filter, no carrier); these frames are lost, see `ip -s link show {name}`"
                ),
                _ => tracing::warn!("{name} refuses a frame of {len} bytes: {error}; such frames are lost"),
            }
        }
        self.last_refusal = Some(format!("the last one of {len} bytes: {error}"));
    }

    /// Frames that the device refused, since the start: they are lost.
    pub fn refused(&self) -> u64 {
        self.refusals.lost()
    }

    /// How many frames the device refused, and why it did the last time; none if it refused none.
    pub fn refusal(&self) -> Option<String> {
        let last = self.last_refusal.as_ref()?;
        Some(format!("{} refused {} frames, {last}", self.name, self.refusals.lost()))
    }

    /// The error of [`Self::wait`], unless the interface is only down: a sender waits until it is up again.
    ///
    /// # Errors
    /// This one; the interface is gone, or another one has its name.
    pub fn outlive(&mut self, error: io::Error) -> io::Result<()> {
        let is_there = Interface::find(&self.name).is_ok_and(|found| found.index == self.index);
        if error.raw_os_error() != Some(libc::ENETDOWN) || !is_there {
            return Err(error);
        }
        if self.refusals.report_once(libc::ENETDOWN) {
            tracing::warn!("{} is down: frames are lost until it is up again", self.name);
        }
        Ok(())
    }

    /// Frames of a VLAN other than 0, since the start: they were not handed out.
    pub fn foreign_vlan(&self) -> u64 {
        self.foreign_vlan
    }

    /// Frames that found the ring full, since the start.
    pub fn dropped(&mut self) -> u64 {
        // Reading resets the kernel's count.
        if let Ok(stats) = get_option::<libc::tpacket_stats>(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS) {
            self.dropped += u64::from(stats.tp_drops);
        }
        self.dropped
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `open`; no slice of it outlives `receive`.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), self.ring_len) };
    }
}

/// The next frame in the socket's queue, after a header of `head` bytes, or `cut` if there is none.
fn next_copy<'a>(fd: &OwnedFd, room: &'a mut [u8], head: usize, cut: &'a [u8]) -> &'a [u8] {
    // SAFETY: room of the length given, that lives over the call, which writes no more.
    let len = unsafe { libc::recv(fd.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
    usize::try_from(len)
        .ok()
        .and_then(|len| room.get(head..len))
        .filter(|whole| whole.len() >= cut.len())
        .unwrap_or(cut)
}

/// Lets a UDP socket drop all datagrams: it only prevents the kernel from answering "port unreachable".
///
/// # Errors
/// The kernel's error.
pub fn drop_all(socket: &UdpSocket) -> io::Result<()> {
    attach_filter(socket, &[statement(libc::BPF_RET | libc::BPF_K, 0)])
}

/// Sleeps until one of the sockets has something, at most for `limit`. Whether one has an error.
pub(super) fn wait_any(sockets: impl Iterator<Item = RawFd>, limit: Duration) -> io::Result<bool> {
    let mut polls: Vec<_> = sockets.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let limit = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: as many pollfds as said and one timespec, which live over the call; no signal mask.
    match check(unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as _, &limit, std::ptr::null()) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(polls.iter().any(|poll| poll.revents & libc::POLLERR != 0)),
    }
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Whether the interface does not exist any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV))
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// ARP, and TCP, UDP and ICMP over IPv4 to `count` addresses from `first` on, as a classic BPF program over the Ethernet
/// frame. Who else is meant by an ARP request, the caller sees.
fn tcp_filter(first: Ipv4Addr, count: u16) -> Vec<libc::sock_filter> {
    use libc::{BPF_ABS, BPF_B, BPF_H, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let jump =
        |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: (BPF_JMP | code | BPF_K) as u16, jt, jf, k };
    let last = first.to_bits().saturating_add(u32::from(count.max(1)) - 1);
    vec![
        statement(BPF_LD | BPF_H | BPF_ABS, 12),
        jump(BPF_JEQ, libc::ETH_P_ARP as u32, 8, 0),
        jump(BPF_JEQ, libc::ETH_P_IP as u32, 0, 8),
        statement(BPF_LD | BPF_B | BPF_ABS, 23),
        jump(BPF_JEQ, libc::IPPROTO_TCP as u32, 2, 0),
        jump(BPF_JEQ, libc::IPPROTO_ICMP as u32, 1, 0),
        jump(BPF_JEQ, libc::IPPROTO_UDP as u32, 0, 4),
        statement(BPF_LD | BPF_W | BPF_ABS, 30),
        jump(BPF_JGE, first.to_bits(), 0, 2),
        jump(BPF_JGT, last, 1, 0),
        statement(BPF_RET | BPF_K, u32::MAX),
        statement(BPF_RET | BPF_K, 0),
    ]
}

/// Unfragmented IPv4 UDP to `port` (and `ip`), as a classic BPF program over the Ethernet frame. A test that fails
/// jumps to the end.
fn udp_filter(port: u16, ip: Option<Ipv4Addr>) -> Vec<libc::sock_filter> {
    use libc::{
        BPF_ABS, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_MSH, BPF_RET, BPF_W,
    };
    // Loads, each with what must be there.
    let mut tests = vec![
        (vec![statement(BPF_LD | BPF_H | BPF_ABS, 12)], BPF_JEQ, libc::ETH_P_IP as u32),
        (vec![statement(BPF_LD | BPF_B | BPF_ABS, 23)], BPF_JEQ, libc::IPPROTO_UDP as u32),
        (vec![statement(BPF_LD | BPF_H | BPF_ABS, 20)], BPF_JSET, 0x1FFF),
        (vec![statement(BPF_LDX | BPF_B | BPF_MSH, 14), statement(BPF_LD | BPF_H | BPF_IND, 16)], BPF_JEQ, port.into()),
    ];
    if let Some(ip) = ip {
        tests.push((vec![statement(BPF_LD | BPF_W | BPF_ABS, 30)], BPF_JEQ, ip.to_bits()));
    }
    let len: usize = tests.iter().map(|(loads, ..)| loads.len() + 1).sum();
    let mut program = Vec::with_capacity(len + 2);
    for (loads, jump, value) in tests {
        program.extend(loads);
        let to_end = (len + 1 - program.len() - 1) as u8;
        // A fragment offset must not be there: JSET jumps when it is.
        let (jt, jf) = if jump == BPF_JSET { (to_end, 0) } else { (0, to_end) };
        program.push(libc::sock_filter { code: (BPF_JMP | jump | BPF_K) as u16, jt, jf, k: value });
    }
    program.push(statement(BPF_RET | BPF_K, u32::MAX));
    program.push(statement(BPF_RET | BPF_K, 0));
    program
}

fn attach_filter(socket: &impl AsRawFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
