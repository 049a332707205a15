// SPDX-License-Identifier: Apache-2.0
//! The back end over the kernel's TCP, with plain sockets of 127.0.0.0/8 as boards.
//! Promise checked: silent connections of one address keep out no board, and a length that no slot takes ends its stream
//! with the reason at both ends. PENSTOCK_SEED and PENSTOCK_ROUNDS set the campaign of hostile connections (`make soak`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::RecvWr;
use penstock_units::Time;
use penstock_wire::{read_stream_refusal, stream_header, FragmentHeader, Ipv4Addr};
use socket2::{Domain, Socket, Type};

const SLOT_BYTES: u32 = 2048;
const SLOTS: u32 = 4;

struct Bench {
    backend: TcpBackend,
    receiver: Receiver<Discard>,
    at: SocketAddr,
    begun: Instant,
    out: Vec<Completion>,
}

fn board(k: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 7, 0, 1 + k)
}

impl Bench {
    /// A receiver of boards that have these addresses.
    fn new(boards: &[Ipv4Addr]) -> Bench {
        let clock = SessionClock::start();
        let (ip, boards_at) = (Ipv4Addr::LOCALHOST, boards.to_vec());
        let config = TcpConfig { ip, port: 0, boards: boards_at, bare: false, kept: None };
        let mut backend = TcpBackend::open(&config, clock).unwrap();
        let shape = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let (mut rings, mut memories) = (Vec::new(), Vec::new());
        for board in 0..boards.len() as u16 {
            let memory = RingMemory::allocate(shape.len(), Pages::Normal).unwrap();
            let spec = QpSpec { board, memory: memory.mapping().clone(), len: shape.len(), max_receives: SLOTS };
            let local = backend.create_qp(&spec).unwrap();
            rings.push(RingConfig { va: local.base, ..shape });
            memories.push(memory);
        }
        let sources = std::num::NonZeroU16::new(boards.len() as u16).unwrap();
        let builder = BuilderConfig { sources, ..BuilderConfig::default() };
        let config = ReceiverConfig { rings, builder, consumer_rate: None };
        let mut receiver = Receiver::with_memories(config, memories, Discard::default()).unwrap();
        for board in 0..boards.len() as u16 {
            let mut receives: Vec<RecvWr> = Vec::new();
            receiver.take_receives(board, |wr| receives.push(wr));
            backend.post_receives(board, &receives).unwrap();
        }
        let at = backend.listens_at().unwrap();
        Bench { backend, receiver, at, begun: Instant::now(), out: Vec::new() }
    }

    /// A connection of a board.
    fn connect(&self, from: Ipv4Addr) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
        socket.connect(&self.at.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn poll(&mut self) {
        self.backend.poll(&mut self.receiver, PollMode::Event, Time::ZERO, &mut self.out).unwrap();
    }

    /// The next change of a connection.
    fn change(&mut self) -> (u16, LinkChange) {
        while self.begun.elapsed() < Duration::from_secs(60) {
            if let Some(change) = self.backend.poll_link() {
                return change;
            }
            self.poll();
        }
        panic!("nothing has changed");
    }
}

/// A fragment of a board as its stream has it.
fn framed(source: u16) -> Vec<u8> {
    fragment(source, 0)
}

/// That of an event.
fn fragment(source: u16, event: u64) -> Vec<u8> {
    let payload = [5; 24];
    let header = FragmentHeader::for_payload(source, event, event, &payload).to_bytes();
    let len = (header.len() + payload.len()) as u32;
    [&stream_header(len)[..], &header, &payload].concat()
}

#[test]
fn silent_connections_of_one_address_keep_out_neither_another_board_nor_its_own() {
    let mut bench = Bench::new(&[board(0), board(1)]);
    let mut silent = Vec::new();
    for _ in 0..150 {
        silent.push(bench.connect(board(0)));
        bench.poll(); // the kernel lets 128 wait
    }
    let mut connections = [bench.connect(board(1)), bench.connect(board(0))];
    connections[0].write_all(&framed(1)).unwrap();
    assert_eq!(bench.change(), (1, LinkChange::Up));
    connections[1].write_all(&framed(0)).unwrap();
    assert_eq!(bench.change(), (0, LinkChange::Up));
    let counters = bench.backend.counters();
    let refused = counters.iter().find(|(name, _)| name == "connections_refused").unwrap().1;
    assert!((130..150).contains(&refused), "the oldest have given way: {refused}");
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_board_whose_fragment_has_come_does_not_give_way_to_silent_connections_of_the_same_turn() {
    let mut bench = Bench::new(&[board(0), board(1)]);
    let mut first = bench.connect(board(0));
    first.write_all(&framed(0)).unwrap();
    let silent: Vec<_> = (0..40).map(|_| bench.connect(board(0))).collect();
    assert_eq!(bench.change(), (0, LinkChange::Up));
    let counters = bench.backend.counters();
    let refused = counters.iter().find(|(name, _)| name == "connections_refused").unwrap().1;
    assert!(refused < silent.len() as u64, "only silent ones have given way: {refused}");
    // Another connection of it would have brought its board up, too; the first one is still open.
    first.set_nonblocking(true).unwrap();
    assert_eq!(first.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_length_that_no_slot_takes_ends_the_stream_by_name_at_both_ends_and_the_next_one_works() {
    for len in [SLOT_BYTES + 1, u32::MAX, 0] {
        let mut bench = Bench::new(&[board(2)]);
        let mut stream = bench.connect(board(2));
        stream.write_all(&framed(0)).unwrap();
        assert_eq!(bench.change(), (0, LinkChange::Up));
        stream.write_all(&stream_header(len)).unwrap();
        stream.write_all(&[0; 64]).unwrap();
        let (0, LinkChange::Refused(why)) = bench.change() else { panic!("it is to be ended") };
        let reason = if len == 0 { "a message of no bytes".to_owned() } else { format!("a message of {len} bytes") };
        assert!(why.starts_with(&reason), "{why}");
        assert!(len == 0 || (why.contains("slots of 2048") && why.contains(&format!("--slot-size {len}"))), "{why}");
        let mut refusal = [0; 1000];
        let size = stream.read(&mut refusal).unwrap();
        assert_eq!(read_stream_refusal(&refusal[..size]), Some(&why[..]));
        let end = stream.read(&mut refusal).unwrap_err();
        assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(bench.out.len(), 1, "what came before is there");
        let counters = bench.backend.board_counters(0);
        assert!(counters.contains(&("messages_refused".into(), 1)) && counters.contains(&("messages_cut".into(), 0)));

        let mut again = bench.connect(board(2));
        again.write_all(&framed(0)).unwrap();
        assert_eq!(bench.change(), (0, LinkChange::Up));
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % limit
    }
}

/// A number of the environment, or the usual one.
fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

const BOARDS: u8 = 3;

/// Connections of boards' addresses and of others that say nothing, little, or what no board would say.
fn hostile(bench: &mut Bench, dice: &mut Dice, held: &mut Vec<TcpStream>) {
    for _ in 0..dice.below(100) {
        let from = if dice.below(4) > 0 { board(dice.below(BOARDS.into()) as u8) } else { Ipv4Addr::new(127, 7, 1, 9) };
        let mut stream = bench.connect(from);
        let message = framed(dice.below(60_000) as u16 + 100);
        // One that was refused meanwhile takes nothing.
        let _ = match dice.below(4) {
            0 => stream.write_all(&message[..1 + dice.below(message.len() as u64 - 1) as usize]),
            1 => stream.write_all(&(0..64).map(|_| dice.below(256) as u8).collect::<Vec<_>>()),
            _ => Ok(()),
        };
        if dice.below(4) > 0 {
            held.push(stream);
        }
        bench.poll();
    }
}

#[test]
fn whatever_others_connect_each_board_is_let_in_and_each_of_its_messages_arrives() {
    let (seed, rounds) = (setting("PENSTOCK_SEED", 1), setting("PENSTOCK_ROUNDS", 10));
    println!("PENSTOCK_SEED={seed} PENSTOCK_ROUNDS={rounds}");
    let mut dice = Dice(seed);
    for round in 0..rounds {
        let addresses: Vec<_> = (0..BOARDS).map(board).collect();
        let (mut bench, mut held, mut streams) = (Bench::new(&addresses), Vec::new(), Vec::new());
        for source in 0..BOARDS {
            hostile(&mut bench, &mut dice, &mut held);
            // What others have said in its name is over before it is let in.
            while bench.backend.poll_link().is_some() {}
            let mut stream = bench.connect(board(source));
            stream.write_all(&framed(source.into())).unwrap();
            while bench.change() != (source.into(), LinkChange::Up) {}
            streams.push(stream);
        }
        // One slot stays free.
        let had = |bench: &Bench, board: u8| bench.out.iter().filter(|done| done.board == u16::from(board)).count();
        for expected in 2..SLOTS {
            let source = dice.below(BOARDS.into()) as u8;
            let message = framed(source.into());
            let cut = dice.below(message.len() as u64) as usize;
            let before = had(&bench, source);
            streams[usize::from(source)].write_all(&message[..cut]).unwrap();
            hostile(&mut bench, &mut dice, &mut held);
            streams[usize::from(source)].write_all(&message[cut..]).unwrap();
            let begun = Instant::now();
            while had(&bench, source) == before {
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "round {round}, message {expected} of board {source}"
                );
                let change = bench.backend.poll_link();
                assert_eq!(change, None, "round {round}: the streams of boards go on");
                bench.poll();
            }
        }
    }
}
