// SPDX-License-Identifier: Apache-2.0
//! A client and a board in software over a channel that loses, repeats and reorders, in simulated time.

use penstock_ipbus::regs::{global, qp};
use penstock_ipbus::{Access, AccessError, Client, Outcome, Patience, Request, RequestId, Responder, ResponderConfig};
use penstock_units::Time;

/// xorshift64*: one seed gives one run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// The board's end of the channel, and its clients at the other.
struct Channel {
    board: Responder,
    clients: Vec<Client>,
    now: Time,
    random: Random,
    loss: u64,
    /// Datagrams on their way: (arrival, client, to the board, bytes).
    on_the_way: Vec<(Time, usize, bool, Vec<u8>)>,
    done: Vec<Vec<(RequestId, Outcome)>>,
}

impl Channel {
    fn new(clients: usize, loss: u64, seed: u64) -> Self {
        let patience = Patience(Time::from_s(20));
        Channel {
            board: Responder::new(ResponderConfig::default()),
            clients: (0..clients).map(|n| Client::new(patience, seed * 100 + n as u64)).collect(),
            now: Time::ZERO,
            random: Random(seed.wrapping_mul(0x9E37_79B9) | 1),
            loss,
            on_the_way: Vec::new(),
            done: vec![Vec::new(); clients],
        }
    }

    fn send(&mut self, client: usize, to_board: bool, bytes: Vec<u8>) {
        let is_repeated = self.loss < 100 && self.random.happens(self.loss / 2);
        let copies = usize::from(!self.random.happens(self.loss)) + usize::from(is_repeated);
        for _ in 0..copies {
            let delay = Time::from_us(50 + self.random.next() % if self.loss > 0 { 30_000 } else { 10 });
            self.on_the_way.push((self.now + delay, client, to_board, bytes.clone()));
        }
    }

    fn submit(&mut self, client: usize, request: impl Into<Request>) -> RequestId {
        self.clients[client].submit(self.now, &request.into())
    }

    /// Runs until all clients are idle.
    fn run(&mut self) {
        loop {
            for client in 0..self.clients.len() {
                while let Some(bytes) = self.clients[client].poll_transmit() {
                    self.send(client, true, bytes);
                }
                while let Some(outcome) = self.clients[client].poll_outcome() {
                    self.done[client].push(outcome);
                }
            }
            if self.clients.iter().all(Client::is_idle) {
                return;
            }
            let arrival = self.on_the_way.iter().map(|(at, ..)| *at).min().unwrap_or(Time::MAX);
            let due = self.clients.iter().filter_map(Client::poll_timeout).min().unwrap_or(Time::MAX);
            self.now = self.now.max(arrival.min(due));
            if arrival <= due {
                let at = self.on_the_way.iter().position(|(at, ..)| *at == arrival).unwrap();
                let (_, client, to_board, bytes) = self.on_the_way.swap_remove(at);
                if to_board {
                    if let Some(reply) = self.board.handle(&bytes) {
                        self.send(client, false, reply);
                    }
                } else {
                    self.clients[client].handle_datagram(self.now, &bytes);
                }
            } else {
                self.clients.iter_mut().for_each(|client| client.handle_timeout(self.now));
            }
        }
    }

    fn only(&mut self, request: impl Into<Request>) -> Outcome {
        self.submit(0, request);
        self.run();
        self.done[0].pop().unwrap().1
    }
}

#[test]
fn reads_writes_and_read_modify_writes_answer_as_specified() {
    let mut channel = Channel::new(1, 0, 1);
    let scratch = global::SCRATCH;
    let request: Request = [
        Access::write(scratch, 0xF0F0_0000),
        Access::Bits { address: scratch, and: 0xFFFF_0000, or: 7 },
        Access::Sum { address: scratch, addend: 3 },
        Access::read(scratch),
        Access::Read { address: global::ID, count: 2 },
        Access::ReadFifo { address: scratch, count: 3 },
    ]
    .into_iter()
    .collect();
    let words = channel.only(request).unwrap();
    assert_eq!(words[..4], [vec![], vec![0xF0F0_0000], vec![0xF0F0_0007], vec![0xF0F0_000A]]);
    assert_eq!(words[4][0], 0x5053_544B);
    assert_eq!(words[5], [0xF0F0_000A; 3]);
}

#[test]
fn a_refused_word_is_named_and_nothing_behind_it_is_written() {
    let mut channel = Channel::new(1, 0, 2);
    let request: Request =
        [Access::write(global::SCRATCH, 1), Access::write(global::ID, 5), Access::write(global::SCRATCH, 2)]
            .into_iter()
            .collect();
    let refused = AccessError::Refused { address: global::ID, is_write: true };
    assert_eq!(channel.only(request), Err(refused));
    assert_eq!(channel.board.get(global::SCRATCH), 1);
    let block = Access::Read { address: 0x0F8, count: 4 };
    let refused = AccessError::Refused { address: 0x0FC, is_write: false };
    assert_eq!(channel.only(block), Err(refused), "the word in the block that is not there");
    assert_eq!(channel.only(Access::read(global::ID)).unwrap(), [[0x5053_544B]], "the board goes on");
}

#[test]
fn every_sum_is_added_once_whatever_is_lost_repeated_and_reordered() {
    for seed in 1..60 {
        let mut channel = Channel::new(1, 30, seed);
        for n in 0..20 {
            channel.submit(0, Access::Sum { address: global::SCRATCH, addend: 1 });
            channel.submit(0, Access::Read { address: 0x8000, count: 900 });
            channel.submit(0, Access::write(0x8000 + 4 * n, n));
        }
        channel.run();
        assert_eq!(channel.board.get(global::SCRATCH), 20, "seed {seed}");
        let ids: Vec<u64> = channel.done[0].iter().map(|(id, _)| id.0).collect();
        assert_eq!(ids, (0..60).collect::<Vec<_>>(), "seed {seed}: in order");
        for (id, outcome) in &channel.done[0] {
            let words = outcome.as_ref().unwrap_or_else(|error| panic!("seed {seed}, request {}: {error}", id.0));
            match id.0 % 3 {
                0 => assert_eq!(words, &[[id.0 as u32 / 3]], "seed {seed}"),
                1 => {
                    let written = id.0 as usize / 3;
                    let expected: Vec<u32> = (0..900).map(|n| if n < written { n as u32 } else { 0 }).collect();
                    assert_eq!(words[0], expected, "seed {seed}: the words of a divided read are in their order");
                }
                _ => assert_eq!(words, &[[0u32; 0]]),
            }
        }
    }
}

#[test]
fn two_clients_of_one_board_add_all_their_sums() {
    for seed in 1..60 {
        let mut channel = Channel::new(2, if seed % 2 == 0 { 10 } else { 0 }, seed);
        for _ in 0..20 {
            channel.submit(0, Access::Sum { address: global::SCRATCH, addend: 1 });
            channel.submit(1, Access::Sum { address: global::SCRATCH, addend: 100 });
        }
        channel.run();
        let mut unknown = [0, 0];
        for (client, outcomes) in channel.done.iter().enumerate() {
            for (_, outcome) in outcomes {
                match outcome {
                    Ok(_) => {}
                    Err(AccessError::Unknown) => unknown[client] += 1,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        }
        assert!(channel.loss > 0 || channel.now < Time::from_s(5), "seed {seed}: {}", channel.now);
        let sum = channel.board.get(global::SCRATCH);
        let (ones, hundreds) = (sum % 100, sum / 100);
        assert!((20 - unknown[0]..=20).contains(&ones), "seed {seed}: {sum}, unknown {unknown:?}");
        assert!((20 - unknown[1]..=20).contains(&hundreds), "seed {seed}: {sum}, unknown {unknown:?}");
    }
}

#[test]
fn a_board_that_was_reset_in_between_is_reported_at_the_next_write() {
    let mut channel = Channel::new(1, 0, 3);
    for n in 0..5 {
        channel.only(Access::write(global::SCRATCH, n)).unwrap();
    }
    channel.board.reset();
    assert_eq!(channel.only(Access::write(global::SCRATCH, 9)), Err(AccessError::Restarted));
    assert_eq!(channel.board.get(global::SCRATCH), 0);
    assert!(channel.only(Access::write(global::SCRATCH, 9)).is_ok(), "and can be written again");
}

#[test]
fn a_silent_board_ends_each_request_after_the_patience_and_no_later() {
    let mut channel = Channel::new(1, 100, 4);
    for request in [Access::read(0), Access::write(global::SCRATCH, 1)] {
        let begin = channel.now;
        match channel.only(request) {
            Err(AccessError::Silent { tries, waited, has_answered }) => {
                assert!(tries > 10 && waited >= Time::from_s(20) && !has_answered, "{tries} {waited}");
                assert!(channel.now - begin < Time::from_s(22));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_strangers_send_changes_nothing() {
    let mut client = Client::new(Patience::default(), 7);
    client.submit(Time::ZERO, &Access::read(qp::BASE).into());
    let mut random = Random(99);
    for length in 0..200 {
        let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        client.handle_datagram(Time::ZERO, &bytes);
        if length > 4 {
            bytes[..4].copy_from_slice(&[0x20, 0, (length & 1) as u8, 0xF0]);
            client.handle_datagram(Time::ZERO, &bytes);
        }
    }
    assert!(client.poll_outcome().is_none() && !client.is_idle());
}
