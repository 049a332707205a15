// SPDX-License-Identifier: Apache-2.0
//! Every message is read as it was written; offsets are those of the tables; what is no message is refused.

use penstock_wire::*;
use proptest::prelude::*;

const IDS: MadIds = MadIds { local: 0x1122_3344, remote: 0x5566_7788 };

fn req() -> Req {
    let mut private = [0; REQ_PRIVATE_LEN];
    IpAddressing { port: 0xC001, src: Ipv4Addr::new(10, 0, 0, 2), dst: Ipv4Addr::new(10, 0, 0, 1) }.write(&mut private);
    private[ADDRESSING_LEN..ADDRESSING_LEN + 4].copy_from_slice(b"mine");
    Req {
        local_id: 0x1122_3344,
        service_id: rdma_cm_service(7471),
        ca_guid: 0x0102_0304_0506_0708,
        qpn: Qpn::new(0x12_3456),
        responder_resources: 16,
        initiator_depth: 1,
        remote_timeout: 20,
        service: Service::Rc,
        flow_control: true,
        psn: Psn::new(0xAB_CDEF),
        local_timeout: 18,
        retry_count: 7,
        pkey: 0xFFFF,
        mtu: 5,
        rnr_retry: 6,
        cm_retries: 15,
        srq: false,
        local_gid: Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped().octets(),
        remote_gid: Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets(),
        traffic_class: 0x68,
        hop_limit: 64,
        ack_timeout: 14,
        private,
    }
}

fn rep() -> Rep {
    let mut private = [0; REP_PRIVATE_LEN];
    private[REP_PRIVATE_LEN - 1] = 9;
    Rep {
        ids: IDS,
        qpn: Qpn::new(0x65_4321),
        psn: Psn::new(7),
        responder_resources: 1,
        initiator_depth: 16,
        ack_delay: 15,
        failover: 1,
        flow_control: true,
        rnr_retry: 7,
        srq: true,
        ca_guid: 0xFFEE_DDCC_BBAA_9988,
        private,
    }
}

fn messages() -> [RdmaCmMessage; 7] {
    let mtu = [5, 0, 0, 0, 0, 0, 0, 0];
    [
        RdmaCmMessage::Req(req()),
        RdmaCmMessage::Mra(Mra { ids: IDS, message: Rejected::Rep, service_timeout: 24 }),
        RdmaCmMessage::Rej(Rej {
            ids: IDS,
            message: Rejected::Req,
            reason: RejReason::InvalidMtu,
            information_len: 1,
            information: mtu,
        }),
        RdmaCmMessage::Rep(rep()),
        RdmaCmMessage::Rtu(IDS),
        RdmaCmMessage::Dreq { ids: IDS, qpn: Qpn::new(0xABCDEF) },
        RdmaCmMessage::Drep(IDS),
    ]
}

#[test]
fn every_message_is_read_as_it_was_written() {
    for message in messages() {
        let mad = RdmaCmMad { transaction: 0x1234_5678_9ABC_DEF0, message };
        assert_eq!(RdmaCmMad::parse(&mad.to_bytes()), Ok(mad), "{}", message.name());
        assert_eq!(RdmaCmMad::parse_datagram(&mad.to_datagram()), Ok(mad), "{}", message.name());
    }
}

/// Offsets from the start of the MAD, as a capture of another implementation has them.
#[test]
fn fields_are_where_the_tables_of_clause_12_have_them() {
    let bytes = RdmaCmMad { transaction: 1, message: RdmaCmMessage::Req(req()) }.to_bytes();
    assert_eq!(bytes[..4], [1, 7, 2, 3]);
    assert_eq!(bytes[16..18], [0, 0x10]);
    assert_eq!(bytes[24..28], [0x11, 0x22, 0x33, 0x44]);
    assert_eq!(bytes[32..40], [0, 0, 0, 0, 1, 6, 0x1D, 0x2F], "port 7471 of TCP's space");
    assert_eq!(bytes[56..60], [0x12, 0x34, 0x56, 16]);
    assert_eq!(bytes[63], 1, "initiator depth");
    assert_eq!(bytes[67], 20 << 3 | 1, "timeout, RC, flow control");
    assert_eq!(bytes[68..72], [0xAB, 0xCD, 0xEF, 18 << 3 | 7]);
    assert_eq!(bytes[72..76], [0xFF, 0xFF, 5 << 4 | 6, 15 << 4]);
    assert_eq!(bytes[80..84], [0, 0, 0, 0]);
    assert_eq!(bytes[90..96], [0xFF, 0xFF, 10, 0, 0, 2], "GID ::ffff:10.0.0.2");
    assert_eq!(bytes[119], 14 << 3, "ACK timeout");
    assert_eq!(bytes[164..168], [0, 0x40, 0xC0, 0x01], "addressing annex");
    assert_eq!(bytes[180..184], [10, 0, 0, 2]);
    assert_eq!(bytes[196..204], *b"\x0A\0\0\x01mine");
    let bytes = RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rep(rep()) }.to_bytes();
    assert_eq!(bytes[36..39], [0x65, 0x43, 0x21]);
    assert_eq!(bytes[44..52], [0, 0, 7, 0, 1, 16, 15 << 3 | 1 << 1 | 1, 7 << 5 | 1 << 4]);
    let dreq = RdmaCmMad { transaction: 1, message: messages()[5] }.to_bytes();
    assert_eq!(dreq[32..35], [0xAB, 0xCD, 0xEF]);
    let rej = RdmaCmMad { transaction: 1, message: messages()[2] }.to_bytes();
    assert_eq!(rej[32..37], [0, 1 << 1, 0, 26, 5]);
}

#[test]
fn what_is_no_message_is_refused_with_the_value() {
    let mad = RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rtu(IDS) };
    for len in [0, 1, 23, 255, 257, 4096] {
        assert_eq!(RdmaCmMad::parse(&vec![1; len]), Err(MadError::Length { len, needed: MAD_LEN }));
    }
    for at in 0..4 {
        let mut bytes = mad.to_bytes();
        bytes[at] ^= 0x80;
        assert!(matches!(RdmaCmMad::parse(&bytes), Err(MadError::Header { .. })), "byte {at}");
    }
    for id in [0u16, 0x0F, 0x17, 0x19, 0x1A, 0x1000] {
        let mut bytes = mad.to_bytes();
        bytes[16..18].copy_from_slice(&id.to_be_bytes());
        assert_eq!(RdmaCmMad::parse(&bytes), Err(MadError::Attribute { id }));
    }
    for at in [0, 3, 5, 7] {
        let mut bytes = mad.to_datagram();
        bytes[at] ^= 1;
        assert!(matches!(RdmaCmMad::parse_datagram(&bytes), Err(MadError::Deth { .. })), "byte {at}");
    }
    assert!(RdmaCmMad::parse_datagram(&mad.to_bytes()).is_err());
}

#[test]
fn a_packet_to_queue_pair_1_has_a_message_and_one_to_another_has_none() {
    let (a, b) = ((MacAddr([2; 6]), Ipv4Addr::new(10, 0, 0, 1)), (MacAddr([4; 6]), Ipv4Addr::new(10, 0, 0, 2)));
    let mad = RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rtu(IDS) };
    let packet = RocePacket::parse(&mad.to_packet(a, b).emit()).unwrap();
    assert_eq!(RdmaCmMad::of_packet(&packet), Some(Ok(mad)));
    assert_eq!((packet.ip_src, packet.eth_dst), (a.1, b.0));
    let mut other = packet.clone();
    other.bth.dest_qpn = Qpn::new(2);
    assert_eq!(RdmaCmMad::of_packet(&other), None);
    other.bth = BthRepr::new(Opcode::SendOnly, GSI_QPN, Psn::new(0));
    assert_eq!(RdmaCmMad::of_packet(&other), Some(Err(MadError::Opcode { opcode: 4 })));
}

#[test]
fn addresses_of_another_version_or_of_ipv6_are_none() {
    let private = req().private;
    assert!(IpAddressing::read(&private).is_some());
    for (at, value) in [(0, 1), (1, 0x60), (1, 0)] {
        let mut private = private;
        private[at] = value;
        assert_eq!(IpAddressing::read(&private), None);
    }
    assert_eq!(IpAddressing::read(&private[..ADDRESSING_LEN - 1]), None);
    assert_eq!(rdma_cm_port(rdma_cm_service(4791)), Some(4791));
    assert_eq!(rdma_cm_port(0x0111_0000), None, "UDP's port space");
}

#[test]
fn reasons_and_codes_are_one_to_one() {
    for code in 0..=u16::MAX {
        assert_eq!(u16::from(RejReason::from(code)), code);
    }
}

proptest! {
    #[test]
    fn whatever_bytes_come_what_is_read_is_read_again_when_written(
        attribute in 0x0Fu8..0x1B,
        bytes in proptest::collection::vec(any::<u8>(), MAD_LEN),
    ) {
        let mut bytes = bytes;
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        bytes[16..18].copy_from_slice(&[0, attribute]);
        if let Ok(mad) = RdmaCmMad::parse(&bytes) {
            prop_assert_eq!(RdmaCmMad::parse(&mad.to_bytes()), Ok(mad));
        }
    }
}
