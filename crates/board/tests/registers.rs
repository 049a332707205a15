// SPDX-License-Identifier: Apache-2.0
//! Register access of a verilated board.

use penstock_board::{regs, Answer, Board};

#[test]
fn a_register_read_at_once_gets_its_own_answer_while_others_are_queued() {
    let mut board = Board::new();
    let identity = board.read(regs::global::ID).unwrap();
    let build = board.read(regs::global::BUILD).unwrap();
    assert_ne!(identity, build);

    board.queue_read(regs::global::BUILD, 7);
    board.queue_read(regs::global::BUILD, 8);
    assert_eq!(board.read(regs::global::ID), Ok(identity));

    let queued: Vec<_> = std::iter::from_fn(|| board.poll_register()).collect();
    assert!(
        matches!(queued[..], [Answer::Read { tag: 7, value: a, .. }, Answer::Read { tag: 8, value: b, .. }]
            if a == build && b == build),
        "{queued:?}"
    );
}
