// SPDX-License-Identifier: Apache-2.0
//! Messages of FEROCE's own programs (`feroce_messages.txt`) are parsed correctly and reproduced byte for byte.

use penstock_wire::{CmAnswer, CmInfo, CmMessage, CmRequest, CmTransmit, Psn, Qpn, CM_LEN};
use std::net::Ipv4Addr;

fn golden(name: &str) -> [u8; CM_LEN] {
    let lines = include_str!("feroce_messages.txt").lines();
    let line = lines.filter(|line| !line.starts_with('#')).find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let digits: Vec<u32> = line.unwrap().chars().filter_map(|digit| digit.to_digit(16)).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    bytes.try_into().unwrap()
}

const HOST: CmInfo = CmInfo {
    qpn: Qpn::new(0x11),
    psn: Psn::new(0),
    rkey: 0x1F2E,
    base: 0x7F4A_5C00_1000,
    ip: Ipv4Addr::new(10, 77, 0, 1),
};
const BOARD: CmInfo =
    CmInfo { qpn: Qpn::new(0x100), psn: Psn::new(0), rkey: 0, base: 0, ip: Ipv4Addr::new(10, 77, 0, 2) };

#[test]
fn feroce_s_messages_are_read_and_made_again_byte_for_byte() {
    let nobody = CmInfo::default();
    let open = CmMessage::request(CmRequest::OpenQp, HOST, nobody);
    let close = CmMessage::request(CmRequest::CloseQp, HOST, BOARD);
    let named = CmInfo { qpn: BOARD.qpn, ..nobody };
    let transmit = |is_write, with_imm, interval_cycles| CmMessage {
        port: 0,
        transmit: Some(CmTransmit { start: true, with_imm, is_write, length: 4096, count: 16, interval_cycles }),
        ..CmMessage::request(CmRequest::None, nobody, named)
    };
    let by_hand = CmMessage { port: 0xBEEF, ..CmMessage::request(CmRequest::CloseQp, nobody, named) };
    let by_hand = CmMessage { sender: CmInfo { ip: HOST.ip, ..nobody }, ..by_hand };
    let board_opens = CmMessage::request(CmRequest::OpenQp, BOARD, nobody);
    let board_closes = CmMessage::request(CmRequest::CloseQp, BOARD, HOST);
    for (name, message) in [
        ("host opens", open),
        ("board agrees", open.answered(CmAnswer::Ack, Some(BOARD))),
        ("tx-meta", transmit(false, false, 1562)),
        ("tx-meta --immediate", transmit(false, true, 0)),
        ("tx-meta --write", transmit(true, false, 0)),
        ("tx-meta --write --immediate", transmit(true, true, 0)),
        ("host closes", close),
        ("board has closed", close.answered(CmAnswer::Ack, Some(BOARD))),
        ("close-qp", by_hand),
        ("board opens", board_opens),
        ("host agrees", board_opens.answered(CmAnswer::Ack, Some(HOST))),
        ("board closes", board_closes),
        ("host has closed", board_closes.answered(CmAnswer::Ack, Some(HOST))),
    ] {
        assert_eq!(CmMessage::parse(&golden(name)), Ok(message), "{name}");
        assert_eq!(message.to_bytes(), golden(name), "{name}");
    }
}
