// SPDX-License-Identifier: Apache-2.0
//! The header of a frame that leaves checksums and segmentation to the kernel and the network card.
//! Source: linux/virtio_net.h (`virtio_net_hdr`); packet(7), `PACKET_VNET_HDR`.

/// Bytes of the header.
pub const OFFLOAD_LEN: usize = 10;
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;

/// Nothing is left to do.
pub const WHOLE: [u8; OFFLOAD_LEN] = [0; OFFLOAD_LEN];

/// A frame of TCP over IPv4 whose headers take `header_len` bytes, the TCP header from `tcp_at` on: the checksum is to
/// be computed from there; `mss`: it is to be cut into segments of this many payload bytes.
pub fn tcp(header_len: usize, tcp_at: usize, mss: Option<u16>) -> [u8; OFFLOAD_LEN] {
    let half = |value: u16| value.to_ne_bytes();
    let (len, at, cut) = (half(header_len as u16), half(tcp_at as u16), half(mss.unwrap_or(0)));
    let gso = if mss.is_some() { GSO_TCPV4 } else { 0 };
    // flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
    let offset = half(16);
    [NEEDS_CSUM, gso, len[0], len[1], cut[0], cut[1], at[0], at[1], offset[0], offset[1]]
}
