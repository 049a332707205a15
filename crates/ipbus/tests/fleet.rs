// SPDX-License-Identifier: Apache-2.0
//! Boards in software behind UDP sockets of their own, and one fleet that speaks to them.

use penstock_ipbus::regs::global;
use penstock_ipbus::{Access, BoardAddress, Fleet, Patience, Responder, ResponderConfig};
use penstock_units::Time;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::Sender;

/// A board that answers until the test ends, and tells when it has.
fn board(answered: Sender<()>) -> BoardAddress {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
    std::thread::spawn(move || {
        let (mut board, mut buffer) = (Responder::new(ResponderConfig::default()), [0; 1536]);
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            if let Some(reply) = board.handle(&buffer[..length]) {
                socket.send_to(&reply, from).unwrap();
                answered.send(()).unwrap();
            }
        }
    });
    BoardAddress(address)
}

#[test]
fn a_reply_has_the_time_of_its_arrival_however_late_it_is_taken() {
    let (answered, answers) = std::sync::mpsc::channel();
    let boards = [board(answered.clone()), board(answered)];
    let mut fleet = Fleet::open(&boards, Patience(Time::from_s(60)), 1).unwrap();
    fleet.gather(Time::from_ms(1));
    for _ in 0..3 {
        let begin = fleet.now();
        for board in 0..2 {
            fleet.submit(board, &Access::read(global::ID).into());
        }
        fleet.turn(Time::ZERO).unwrap();
        (0..2).for_each(|_| answers.recv().unwrap());
        let end = fleet.now();
        let mut outcomes = 0;
        while outcomes < 2 {
            fleet.turn(Time::from_s(60)).unwrap();
            while let Some((board, _, outcome)) = fleet.poll_outcome() {
                assert_eq!(outcome.unwrap(), [[0x5053_544B]]);
                let heard = fleet.heard(board);
                assert!(begin < heard && heard < end, "between {begin} and {end}, not at {heard}");
                outcomes += 1;
            }
        }
    }
}
