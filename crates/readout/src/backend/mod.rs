// SPDX-License-Identifier: Apache-2.0
//! The source of messages: one interface over an RDMA NIC, a packet socket, and packets in process.
//! Promise: a back end moves bytes and reports completions in order; the ring defines the slots and when a slot is free
//! again. Source: ARCHITECTURE.md, "The way of a fragment"; the calls follow those of libibverbs.
//!
//! ```text
//! create_qp --> LocalQp: qpn, psn, rkey, base, ip        (sent to the board by the connection manager)
//! connect   <-- PeerQp: the board's qpn, psn, ip          (sent by the board)
//! post_receives(RecvWr of Ring::take_receives) ... poll --> Completion --> Receiver::on_completion
//! close_qp --> the last Completions; then create_qp again over the same memory: the board's next life
//! ```

mod claims;
mod frame_socket;
mod in_process;
mod lending;
mod packet;
mod pull;
mod responders;
mod tcp;
#[cfg(feature = "verbs")]
mod verbs;
mod writes_device;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use penstock_transport::{Memory, Mtu, RdmaCmInbox, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, MacAddr, Psn, Qpn, RdmaCmMad, RnrTimer};

pub use crate::device_memory::DeviceMemory;
pub use crate::poll::{ClockHand, Latencies, PollMode, SessionClock};
use crate::sys::Mapping;
pub use frame_socket::SocketChoice;
pub use in_process::InProcess;
pub(crate) use packet::random_words;
pub use packet::{PacketBackend, PacketConfig};
pub use pull::{PullSettings, PullWindow};
pub use responders::{Entropy, ResponderSettings};
pub use tcp::{TcpBackend, TcpConfig, TcpInProcess};
#[cfg(feature = "verbs")]
pub use verbs::{devices_that_write, Found, GidChoice, Verbs, VerbsConfig};
pub use writes_device::WritesDevice;

/// Who we are on the network; known before any queue pair is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalAddress {
    /// The destination to which boards send.
    pub ip: Ipv4Addr,
    /// None where the NIC keeps it to itself.
    pub mac: Option<MacAddr>,
    /// The GID as verbs have it; of RoCEv2 over IPv4 it is `::ffff:ip`.
    pub gid: [u8; 16],
}

impl LocalAddress {
    /// The address of a RoCEv2 end without a NIC.
    pub fn of_ip(ip: Ipv4Addr, mac: MacAddr) -> Self {
        LocalAddress { ip, mac: Some(mac), gid: ip.to_ipv6_mapped().octets() }
    }
}

/// A queue pair to be made for one board.
#[derive(Debug, Clone)]
pub struct QpSpec {
    /// Source id; the key of everything that follows.
    pub board: u16,
    /// The board's ring. A NIC registers it, and keeps the clone for as long as the registration lives.
    pub memory: Arc<Mapping>,
    /// Bytes of the ring, from the first of `memory`; the peer may write these and no others.
    pub len: usize,
    /// Receives that may be posted at a time: the slots.
    pub max_receives: u32,
}

/// Slots that all boards SEND into.
#[derive(Debug, Clone)]
pub struct PoolSpec {
    pub memory: Arc<Mapping>,
    /// Bytes from the first of `memory`.
    pub len: usize,
    pub max_receives: u32,
    /// The pool runs low if it has fewer receives left.
    pub low: u32,
    /// Boards that share it.
    pub boards: u16,
}

/// Our end, to be sent to the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalQp {
    pub qpn: Qpn,
    /// PSN of the first packet that we would send.
    pub psn: Psn,
    /// Key and first address of what the board may write: the ring, or where it announces.
    pub rkey: u32,
    pub base: u64,
    /// First address of the ring, in receives. It does not change when the queue pair is made again.
    pub ring: u64,
    pub ip: Ipv4Addr,
}

/// The board's end, as the board reported it, and the parameters on which both must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerQp {
    pub qpn: Qpn,
    /// PSN of the first packet that the board will send.
    pub psn: Psn,
    pub ip: Ipv4Addr,
    /// Path MTU.
    pub mtu: Mtu,
    /// Wait that our RNR NAKs ask for.
    pub rnr_timer: RnrTimer,
}

/// The end of one receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    pub board: u16,
    /// The receive's number: its slot, or [`NO_SLOT`](crate::ring::NO_SLOT).
    pub wr_id: u64,
    /// The fields below hold only on success.
    pub status: RecvStatus,
    pub opcode: RecvOpcode,
    pub imm: Option<u32>,
    /// Bytes of the whole message.
    pub byte_len: u32,
    /// CRC-32C of the bytes after a fragment's header, if it is already known.
    pub payload_crc: Option<u32>,
}

impl Completion {
    /// The slot of the message: the one that the immediate of a WRITE names, or that of the receive that a SEND used.
    /// A number that is no slot's if the peer named none.
    pub fn slot(&self) -> u32 {
        match self.opcode {
            RecvOpcode::WriteImm => self.imm.unwrap_or(u32::MAX),
            RecvOpcode::Send => self.receive(),
        }
    }

    /// The slot of the receive that was consumed: for a pool, in which boards cannot name slots.
    pub fn receive(&self) -> u32 {
        u32::try_from(self.wr_id).unwrap_or(u32::MAX)
    }
}

/// The state of a board's connection, for a back end that accepts connections itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkChange {
    Up,
    /// The link is down, with the reason as a sentence.
    Down(String),
    /// The back end has ended it for what the board sends, which cannot be taken; with the reason.
    Refused(String),
}

/// Name, as the kernel's RDMA counters have it where there is one, and value.
pub type Counters = Vec<(Cow<'static, str>, u64)>;

/// Why a back end could not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// Nothing there to work with: no library, no device, no interface, no right to use it.
    #[error("{0}")]
    Unavailable(String),
    #[error("board {board} has no queue pair: create one first")]
    NoQp { board: u16 },
    #[error("board {board} has a queue pair already: close it first")]
    HasQp { board: u16 },
    #[error("there is no pool of receives: share them first")]
    NoPool,
    #[error("{action}: {source}")]
    Io { action: Cow<'static, str>, source: io::Error },
}

impl BackendError {
    /// The last error of the C library, with what was being done.
    pub fn last_os(action: impl Into<Cow<'static, str>>) -> Self {
        BackendError::Io { action: action.into(), source: io::Error::last_os_error() }
    }
}

/// A source of messages. Object safe; times are those of the [`SessionClock`] that it was made with.
pub trait Backend {
    /// "verbs", "packet", "in-process".
    fn name(&self) -> &'static str;

    /// Who we are.
    fn address(&self) -> LocalAddress;

    /// A warning for the user before anything is received, as a sentence: an MTU too small for the packets.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Whether payloads are read on the host; called before a board is connected. A back end that holds them elsewhere
    /// copies them only then; headers are copied always.
    fn fetch_payloads(&mut self, _enabled: bool) {}

    /// How messages are received, as a sentence for the user: which of several methods is used, and why.
    fn notice(&self) -> Option<String> {
        None
    }

    /// Whether boards connect to the back end itself: then there is no connection manager, and [`Self::poll_link`]
    /// reports them.
    fn connects_itself(&self) -> bool {
        false
    }

    /// From now on packets to queue pair 1 go to `inbox`. False: the back end has no access to it.
    fn open_management(&mut self, _inbox: RdmaCmInbox) -> bool {
        false
    }

    /// The inbox of queue pair 1.
    fn management(&mut self) -> Option<&mut RdmaCmInbox> {
        None
    }

    /// Whether the kernel's connection manager serves its queue pairs: then there is no access to queue pair 1.
    fn has_kernel_manager(&self) -> bool {
        false
    }

    /// PSNs with which queue pairs begin that are connected to these queue pairs of peers from now on, where peers set them.
    fn set_first_psns(&mut self, _psns: BTreeMap<(Ipv4Addr, Qpn), Psn>) {}

    /// READs that it has outstanding at a board; 0: boards send.
    fn outstanding_reads(&self) -> u8 {
        0
    }

    /// Sends a message of the standard connection manager; one that is lost is repeated by its sender.
    fn send_mad(&mut self, _to: (MacAddr, Ipv4Addr), _mad: &RdmaCmMad) {}

    /// Whether it calls [`Memory::admit`] before it acknowledges a message. A NIC does not.
    fn admits_before_ack(&self) -> bool {
        false
    }

    /// How long ago a connected board was heard of last, data or not, where the back end finds that out by itself.
    fn silent_for(&self, _board: u16) -> Option<Time> {
        None
    }

    /// The next change of a board's connection. Messages over a new connection are returned only after it was reported.
    fn poll_link(&mut self) -> Option<(u16, LinkChange)> {
        None
    }

    /// From now on queue pairs are made that take their receives from one pool and their peers may write no memory;
    /// `memory` and `max_receives` of their [`QpSpec`] are not looked at. Returns the pool's first address.
    ///
    /// A connected board of which nothing lies in the pool always finds a receive, as long as there are as many slots
    /// as boards: others are answered RNR NAK before they take the last ones.
    ///
    /// # Errors
    /// The device cannot use so much memory, or the back end has no pools.
    fn share_receives(&mut self, _pool: &PoolSpec) -> Result<u64, BackendError> {
        let name = self.name();
        Err(BackendError::Unavailable(format!("--srq: back end {name} has a ring for each board; leave it out")))
    }

    /// Gives receives to the pool.
    ///
    /// # Errors
    /// There is no pool; or the device refuses.
    fn post_shared(&mut self, _receives: &[RecvWr]) -> Result<(), BackendError> {
        Err(BackendError::NoPool)
    }

    /// From now on a board may fill this number of receives of the pool, for a back end without
    /// [`Self::admits_before_ack`]: fragments after the end of the run stay at the board.
    ///
    /// # Errors
    /// As [`Self::post_shared`].
    fn bound(&mut self, _board: u16, _most: u64) -> Result<(), BackendError> {
        Ok(())
    }

    /// How often the pool has run low since the last call.
    fn ran_low(&mut self) -> u64 {
        0
    }

    /// Makes the queue pair of a board, not connected yet, over the ring's memory. Number, first PSN and key cannot be
    /// guessed.
    ///
    /// # Errors
    /// `HasQp`; or the device has no more of them, or of memory.
    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError>;

    /// Connects it: from now on it accepts packets of this peer only.
    ///
    /// # Errors
    /// `NoQp`; or the device refuses.
    fn connect(&mut self, _board: u16, _peer: &PeerQp) -> Result<(), BackendError> {
        Ok(())
    }

    /// Posts receives, in this order. They may be posted before the queue pair is connected.
    ///
    /// # Errors
    /// `NoQp`; or the device refuses.
    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError>;

    /// Waits in `mode` until a receive has completed or the clock shows `deadline`, and appends completions to `out`.
    /// A deadline in the past takes what is there and does not wait. A back end that moves bytes itself moves them into
    /// `memory`; a NIC has written them already.
    ///
    /// # Errors
    /// The device is gone. What one board does wrong is no error here: see [`Self::fault`].
    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError>;

    /// The run is over: ends the connections in an order in which nothing that was acknowledged is lost, within `limit`.
    /// What boards send from here on is for the next run.
    ///
    /// # Errors
    /// What was acknowledged cannot be kept.
    fn hang_up(&mut self, _memory: &mut dyn Memory, _limit: Time) -> Result<(), BackendError> {
        Ok(())
    }

    /// Ends the queue pair of a board; nothing is written any more when it returns, and the slots of a ring stay as
    /// they are until the caller posts receives of a new one. What was received and not taken yet is appended to `out`,
    /// with what others have received meanwhile, and receives of a pool that it has not filled. A board without a queue
    /// pair is fine.
    ///
    /// # Errors
    /// The device refuses.
    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError>;

    /// Why the queue pair of a board is in error; none if it is not, or is not there.
    fn fault(&self, _board: u16) -> Option<String> {
        None
    }

    /// Whether the fault of a board's queue pair is that the board has not answered: an outage, and no mistake of it.
    fn is_unanswered(&self, _board: u16) -> bool {
        false
    }

    /// Whether no board may still count as its own what has been delivered: no READ that frees its slots is under way.
    fn is_settled(&self) -> bool {
        true
    }

    /// Counts of the whole device or socket.
    fn counters(&mut self) -> Counters {
        Counters::new()
    }

    /// Counts of one board's queue pair, all its lives together; empty if the device counts by port only.
    fn board_counters(&self, _board: u16) -> Counters {
        Counters::new()
    }

    /// The time from a message's arrival until `poll` returned it; none if the arrival time is unknown.
    fn latencies(&self) -> Option<&Latencies> {
        None
    }
}
