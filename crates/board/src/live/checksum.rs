// SPDX-License-Identifier: Apache-2.0
//! Completes checksums that a kernel has left to hardware: on a virtual Ethernet pair a UDP or TCP checksum field holds
//! only the sum of the pseudo-header, and no hardware completes it.
//! Promise: changes nothing else. A wrong checksum stays wrong.
//! Source: RFC 1071; Linux, checksum-offloads ("TX checksum offload").

const IPV4_AT: usize = 14;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// The ones' complement sum of big-endian words, folded.
fn sum(start: u32, data: &[u8]) -> u16 {
    let mut total = start;
    for pair in data.chunks(2) {
        total += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Fills in the UDP or TCP checksum of an Ethernet frame if its field holds the pseudo-header's sum.
pub(crate) fn finish_checksum(frame: &mut [u8]) {
    let Some(packet) = frame.get_mut(IPV4_AT - 2..) else { return };
    let Some((ethertype, packet)) = packet.split_at_mut_checked(2) else { return };
    if ethertype != [0x08, 0x00] || packet.len() < 20 || packet[0] >> 4 != 4 {
        return;
    }
    let header = usize::from(packet[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    // More fragments, or an offset: the transport header is not whole here.
    let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
    let field = match packet[9] {
        UDP => 6,
        TCP => 16,
        _ => return,
    };
    if fragment || header < 20 || total > packet.len() || total < header + field + 2 {
        return;
    }
    let protocol = u32::from(packet[9]);
    let pseudo = sum(protocol + (total - header) as u32, &packet[12..20]);
    let segment = &mut packet[header..total];
    if segment[field..field + 2] != pseudo.to_be_bytes() {
        return;
    }
    // The field already holds the pseudo-header's sum, so the sum over the segment is the sum over all.
    let checksum = match !sum(0, segment) {
        0 => 0xffff,
        checksum => checksum,
    };
    segment[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn datagram(payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1000, 50001);
        builder.write(&mut frame, payload).unwrap();
        frame
    }

    #[test]
    fn a_checksum_left_to_hardware_becomes_the_one_that_etherparse_computes() {
        for len in [0, 1, 2, 37, 1400] {
            let whole = datagram(&vec![0xa7; len]);
            let mut partial = whole.clone();
            let udp_len = (8 + len) as u32;
            let pseudo = sum(u32::from(UDP) + udp_len, &whole[26..34]);
            partial[40..42].copy_from_slice(&pseudo.to_be_bytes());
            finish_checksum(&mut partial);
            assert_eq!(partial, whole, "{len} bytes");
        }
    }

    #[test]
    fn right_and_wrong_checksums_stay_as_they_are() {
        let whole = datagram(b"abc");
        let mut same = whole.clone();
        finish_checksum(&mut same);
        assert_eq!(same, whole);
        let mut wrong = whole;
        wrong[40] ^= 0x40;
        let before = wrong.clone();
        finish_checksum(&mut wrong);
        assert_eq!(wrong, before);
    }
}
