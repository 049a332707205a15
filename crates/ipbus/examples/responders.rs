// SPDX-License-Identifier: Apache-2.0
//! Boards in software on loopback addresses, for tests and measurements of IPbus clients.
//!
//! ```text
//! responders --first 127.77.0.1 --count 1000        # all at UDP port 50001, one address each
//! ```
//!
//! It prints "ready" when all addresses are taken, ends at Ctrl-C, and then prints how many packets it has answered.
//! Faults are drawn from `--seed`: `--loss 0.01` loses datagrams of both directions, `--mute 5` makes the board of that
//! number say nothing from the first write on, `--reset 5:200` resets it after 200 packets, `--wrong-map 5` gives it
//! another register map, `--bare 5` a build without QCN and message source. `--switch 5` makes it a QCN switch instead,
//! `--holds 5:0x118=7` puts a word in a register.

use clap::Parser;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recvmmsg, sendmmsg, MsgFlags, MultiHeaders, SockaddrIn};
use penstock_ipbus::map::MAP_HASH;
use penstock_ipbus::regs::{global, qp};
use penstock_ipbus::{Responder, ResponderConfig, Switch, PORT};
use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Datagrams of one system call; a board has few on their way.
const BATCH: usize = 8;

#[derive(Parser)]
struct Options {
    /// Address of the first board; the others follow
    #[arg(long, default_value = "127.77.0.1")]
    first: Ipv4Addr,
    #[arg(long, default_value_t = 1)]
    count: u32,
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Queue pairs of each board
    #[arg(long, default_value_t = 4)]
    queue_pairs: u32,
    /// TCP streams of each board
    #[arg(long, default_value_t = 0)]
    streams: u32,
    /// Detector inputs of each board
    #[arg(long, default_value_t = 0)]
    inputs: u32,
    /// Share of datagrams that are lost, in each direction
    #[arg(long, default_value_t = 0.0)]
    loss: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Boards that say nothing from their first write on
    #[arg(long, value_delimiter = ',')]
    mute: Vec<u32>,
    /// Boards that do not answer at all
    #[arg(long, value_delimiter = ',')]
    dead: Vec<u32>,
    /// BOARD:PACKETS, boards that are reset after so many control packets
    #[arg(long, value_delimiter = ',')]
    reset: Vec<String>,
    /// Boards with another register map
    #[arg(long, value_delimiter = ',')]
    wrong_map: Vec<u32>,
    /// Boards whose builds have neither QCN nor the message source
    #[arg(long, value_delimiter = ',')]
    bare: Vec<u32>,
    /// Boards that are QCN switches instead, of 4 ports with 2 queues
    #[arg(long, value_delimiter = ',')]
    switch: Vec<u32>,
    /// BOARD:ADDRESS=WORD, what a register holds, both in hexadecimal
    #[arg(long, value_delimiter = ',', value_parser = held)]
    holds: Vec<(u32, u32, u32)>,
    /// The rates of queue pair 0 move with each packet, as if notifications came
    #[arg(long)]
    busy: bool,
}

struct Board {
    socket: UdpSocket,
    board: Responder,
    is_dead: bool,
    goes_mute: bool,
    reset_after: Option<u64>,
    /// Packets that have moved its rates.
    moves: u64,
}

fn main() {
    let options = Options::parse();
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed)).expect("one handler");
    let resets: HashMap<u32, u64> = options
        .reset
        .iter()
        .filter_map(|text| text.split_once(':'))
        .map(|(board, packets)| (board.parse().expect("a board"), packets.parse().expect("packets")))
        .collect();
    let mut boards: Vec<Board> = (0..options.count)
        .map(|number| {
            let address = Ipv4Addr::from_bits(options.first.to_bits() + number);
            let socket = UdpSocket::bind((address, options.port)).unwrap_or_else(|e| panic!("{address}: {e}"));
            socket.set_nonblocking(true).expect("sockets that do not block");
            let mut config = ResponderConfig::default();
            config.build.queue_pairs = options.queue_pairs;
            config.streams = options.streams;
            config.inputs = options.inputs;
            if options.wrong_map.contains(&number) {
                config.map_hash = !MAP_HASH;
            }
            if options.bare.contains(&number) {
                config.options = global::OPTIONS_SERVICES_BITS.mask;
            }
            let is_switch = options.switch.contains(&number);
            let mut board = match is_switch {
                true => Responder::switch(Switch { ports: 4, queues: 2, entries: 16 }),
                false => Responder::new(config),
            };
            if !is_switch {
                let ip = address.to_bits();
                board.set(global::LOCAL_IP, ip);
                board.set(global::LOCAL_MAC_LO, ip);
            }
            for (_, address, word) in options.holds.iter().filter(|(board, ..)| *board == number) {
                board.set(*address, *word);
            }
            Board {
                socket,
                board,
                is_dead: options.dead.contains(&number),
                goes_mute: options.mute.contains(&number),
                reset_after: resets.get(&number).copied(),
                moves: 0,
            }
        })
        .collect();
    println!("ready");
    let (mut random, mut answered) = (options.seed | 1, 0u64);
    let mut buffers = Box::new([[0u8; 1536]; BATCH]);
    while !ended.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd> =
            boards.iter().map(|board| PollFd::new(board.socket.as_fd(), PollFlags::POLLIN)).collect();
        let _ = nix::poll::poll(&mut fds, PollTimeout::from(100u8));
        let ready: Vec<usize> = (0..fds.len()).filter(|at| fds[*at].any() == Some(true)).collect();
        for at in ready {
            answered += boards[at].serve(&options, &mut random, &mut buffers);
        }
    }
    println!("{answered} packets answered");
}

/// `5:0x118=7`
fn held(text: &str) -> Result<(u32, u32, u32), String> {
    let hex = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16);
    let (board, rest) = text.split_once(':').ok_or("write BOARD:ADDRESS=WORD")?;
    let (address, word) = rest.split_once('=').ok_or("write BOARD:ADDRESS=WORD")?;
    let board = board.parse().map_err(|error| format!("{board:?}: {error}"))?;
    let (address, word) = (hex(address), hex(word));
    Ok((board, address.map_err(|error| error.to_string())?, word.map_err(|error| error.to_string())?))
}

impl Board {
    fn serve(&mut self, options: &Options, random: &mut u64, buffers: &mut [[u8; 1536]; BATCH]) -> u64 {
        let fd = self.socket.as_raw_fd();
        let mut arrived: Vec<(usize, SockaddrIn)> = Vec::with_capacity(BATCH);
        {
            let mut slices: Vec<[IoSliceMut; 1]> = buffers.iter_mut().map(|b| [IoSliceMut::new(b)]).collect();
            let mut headers = MultiHeaders::<SockaddrIn>::preallocate(BATCH, None);
            let Ok(messages) = recvmmsg(fd, &mut headers, slices.iter_mut(), MsgFlags::MSG_DONTWAIT, None) else {
                return 0;
            };
            arrived.extend(messages.map(|message| (message.bytes, message.address.expect("an address"))));
        }
        let mut replies = Vec::with_capacity(arrived.len());
        for (at, (length, from)) in arrived.iter().enumerate() {
            let bytes = &buffers[at][..*length];
            // A control packet with an id writes.
            if self.goes_mute && bytes.len() > 4 && bytes[3] & 0xF == 0 && bytes[1..3] != [0, 0] {
                self.is_dead = true;
            }
            if self.is_dead || lost(options.loss, random) {
                continue;
            }
            if options.busy {
                self.notify();
            }
            let Some(reply) = self.board.handle(bytes) else { continue };
            if self.reset_after.is_some_and(|packets| self.board.carried_out() >= packets) {
                self.reset_after = None;
                self.board.reset();
                continue;
            }
            if !lost(options.loss, random) {
                replies.push((reply, Some(*from)));
            }
        }
        let slices: Vec<[IoSlice; 1]> = replies.iter().map(|(reply, _)| [IoSlice::new(reply)]).collect();
        let addresses: Vec<Option<SockaddrIn>> = replies.iter().map(|(_, from)| *from).collect();
        let mut headers = MultiHeaders::<SockaddrIn>::preallocate(replies.len().max(1), None);
        if !replies.is_empty() {
            let _ =
                sendmmsg(fd, &mut headers, slices.iter(), &addresses, [], MsgFlags::MSG_DONTWAIT).map(Iterator::count);
        }
        replies.len() as u64
    }

    /// A cut with alpha 1/2 each 16th time, fast recovery in between. No chance: after a reset the count of cuts is
    /// less than before, which is how a sampler finds the reset.
    fn notify(&mut self) {
        self.moves += 1;
        let [current, target] = [qp::RATE_CURRENT, qp::RATE_TARGET].map(|register| qp::BASE + register);
        let rate = self.board.get(current);
        if self.moves.is_multiple_of(16) {
            self.board.set(target, rate);
            self.board.set(current, rate - rate / 4);
            let count = self.board.get(qp::BASE + qp::RP_CNP_HANDLED);
            self.board.set(qp::BASE + qp::RP_CNP_HANDLED, count + 1);
        } else {
            let goal = self.board.get(target);
            self.board.set(current, ((u64::from(rate) + u64::from(goal)) / 2) as u32);
        }
    }
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

fn lost(share: f64, random: &mut u64) -> bool {
    share > 0.0 && ((next(random) >> 11) as f64) / ((1u64 << 53) as f64) < share
}
