// SPDX-License-Identifier: Apache-2.0
//! Kernel interfaces without a safe wrapper: mapped memory for rings, packet
//! sockets, AF_XDP, RDMA NICs.
//! Promise: the only module of this crate with `unsafe`; its exports are safe to use.
//! Source: mmap(2), madvise(2), packet(7), bpf(2); libibverbs.

mod interface;
mod mapping;
mod numa;
pub mod offload;
mod options;
mod packet_socket;
#[cfg(feature = "verbs")]
pub(crate) mod verbs;
mod xdp;

pub use interface::{has_address, Interface, Watch};
pub use mapping::{Mapping, MemoryError, Pages, RingMemory};
pub use numa::{node_of_device, stay_on_node, NumaError};
pub use options::time_since_arrival;
pub use packet_socket::{drop_all, thread_cpu_time, Frames, Gather, PacketSocket};
pub use xdp::{XdpError, XdpMode, XdpSocket};
