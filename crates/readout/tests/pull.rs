// SPDX-License-Identifier: Apache-2.0
//! Pull in the in-process back end, with our requester and responder as the board: what is announced is read in order
//! and within the window; what belongs to the next run stays at the board; what is announced and not there is named.

use std::num::NonZeroU16;

use bytes::Bytes;
use penstock_readout::backend::*;
use penstock_readout::*;
use penstock_transport::{
    Access, Endpoint, Memory, MemoryRegion, Mtu, PayloadSource, Requester, RequesterConfig, Responder, ResponderConfig,
    SendWr, Unreadable, Verb,
};
use penstock_units::Time;
use penstock_wire::{
    announcement, successors_to_bytes, Announced, Entry, FragmentHeader, Ipv4Addr, MacAddr, Payload, Psn, Qpn,
    RnrTimer, PULL_READS, SUCCESSORS_LEN,
};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BOARD_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
const SLOTS: u32 = 8;
const SLOT_BYTES: u32 = 4096;
const LENGTH: u32 = 3040;
const RKEY: u32 = 0x1234;
const BASE: u64 = 0x10_0000;
const WINDOW: u64 = 8_000;

fn message(event: u64) -> Bytes {
    let payload: Vec<u8> = (0..3000u64).map(|i| (i * 7 + event) as u8).collect();
    let mut bytes = FragmentHeader::for_payload(0, event, event, &payload).to_bytes().to_vec();
    bytes.extend_from_slice(&payload);
    bytes.into()
}

/// Event n lies at `BASE + n * SLOT_BYTES`, and after it the events up to `last` that follow those named before.
#[derive(Default)]
struct Store {
    named: u64,
    last: u64,
    /// The lists that have been read, each with its fragment's event.
    successors: Vec<(u64, [u8; SUCCESSORS_LEN])>,
    /// These take their place.
    false_successors: Option<[Entry; 2]>,
}

impl Store {
    fn successors(&mut self, event: u64) -> [u8; SUCCESSORS_LEN] {
        if let Some((_, bytes)) = self.successors.iter().find(|(of, _)| *of == event) {
            return *bytes;
        }
        let entries = std::array::from_fn(|_| {
            let is_there = self.named < self.last;
            self.named += u64::from(is_there);
            Entry { skipped: 0, length: LENGTH * u32::from(is_there) }
        });
        let bytes = successors_to_bytes(self.false_successors.unwrap_or(entries));
        self.successors.push((event, bytes));
        bytes
    }
}

impl Memory for Store {
    fn write(&mut self, _va: u64, _data: &Payload) {}

    fn read(&mut self, va: u64, len: u32) -> Result<Payload, Unreadable> {
        let (event, at) = ((va - BASE) / u64::from(SLOT_BYTES), (va - BASE) as usize % SLOT_BYTES as usize);
        let mut whole = message(event).to_vec();
        if at + len as usize > whole.len() {
            whole.extend(self.successors(event));
        }
        let whole = Bytes::from(whole);
        whole.get(at..at + len as usize).map(|_| Payload::Bytes(whole.slice(at..at + len as usize))).ok_or(Unreadable)
    }
}

struct Bytewise(Bytes);

impl PayloadSource for Bytewise {
    fn read(&mut self, va: u64, len: usize) -> Payload {
        Payload::Bytes(self.0.slice(va as usize..va as usize + len))
    }
}

/// A server with one board's ring, and the board.
struct Bench {
    backend: InProcess,
    receiver: Receiver<Discard>,
    local: LocalQp,
    requester: Requester,
    responder: Responder,
    store: Store,
    /// Answers that were sent, and the first and the number of those that are lost.
    answers: u32,
    lose: (u32, u32),
    announced: u32,
    now: Time,
    completed: Vec<u64>,
}

fn seeded() -> Box<dyn FnMut() -> u32 + Send> {
    let mut state = 7u32;
    Box::new(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    })
}

impl Bench {
    fn new() -> Bench {
        let window = PullWindow::Bytes(WINDOW);
        let (boards, slots, slot_bytes, mtu, ack_timeout) = (1, SLOTS, SLOT_BYTES, Mtu::B1024, 14);
        let patience = PullSettings::PATIENCE;
        let settings = PullSettings { boards, slots, slot_bytes, mtu, window, patience, ack_timeout };
        let mut backend = InProcess::new(OURS, SERVER_MAC, seeded()).with_pull(&settings).unwrap();
        let shape = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let memory = RingMemory::allocate(shape.len(), Pages::Normal).unwrap();
        let spec = QpSpec { board: 0, memory: memory.mapping().clone(), len: shape.len(), max_receives: SLOTS };
        let local = backend.create_qp(&spec).unwrap();
        let ring = RingConfig { va: local.base, rkey: local.rkey, ..shape };
        let builder = BuilderConfig { sources: NonZeroU16::MIN, ..BuilderConfig::default() };
        let config = ReceiverConfig { rings: vec![ring], builder, consumer_rate: None };
        let receiver = Receiver::with_memories(config, vec![memory], Discard::default()).unwrap();
        let peer = PeerQp {
            qpn: Qpn::new(0x200),
            psn: Psn::new(0xFF_FFFE),
            ip: BOARD,
            mtu: Mtu::B1024,
            rnr_timer: RnrTimer::from_code(1),
        };
        let board = Endpoint { mac: BOARD_MAC, ip: BOARD, qpn: peer.qpn };
        let server = Endpoint { mac: SERVER_MAC, ip: OURS, qpn: local.qpn };
        let len = 1 << 20;
        let region = MemoryRegion { va: BASE, rkey: RKEY, len, access: Access::RemoteRead };
        let mut responder = ResponderConfig::new(board, server, local.psn, Mtu::B1024).with_region(region);
        responder.responder_resources = PULL_READS;
        let requester = Requester::new(RequesterConfig::new(board, server, peer.psn, Mtu::B1024));
        backend.connect(0, &peer).unwrap();
        let (responder, completed) = (Responder::new(responder), Vec::new());
        let store = Store::default();
        Bench {
            backend,
            receiver,
            local,
            requester,
            responder,
            store,
            answers: 0,
            lose: (0, 0),
            announced: 0,
            now: Time::ZERO,
            completed,
        }
    }

    fn announce(&mut self, first: u64, rkey: u32, lengths: &[u32]) {
        self.announce_after(0, first, rkey, lengths);
    }

    /// After this number of fragments that READs have named.
    fn announce_after(&mut self, carried: u8, event: u64, rkey: u32, lengths: &[u32]) {
        let rest: Vec<Entry> = lengths[1..].iter().map(|length| Entry { skipped: 0, length: *length }).collect();
        let address = BASE + event * u64::from(SLOT_BYTES);
        let message =
            announcement(carried, (rkey, SLOT_BYTES), Announced { event, address, length: lengths[0] }, &rest);
        self.store.named = self.store.named.max(event + rest.len() as u64);
        let slot = self.announced % 16;
        self.announced += 1;
        let wr = SendWr {
            wr_id: 0,
            verb: Verb::WriteImm(slot),
            va: 0,
            len: message.len() as u32,
            remote_va: self.local.base + u64::from(slot) * 512,
            rkey: self.local.rkey,
            solicited: false,
        };
        self.requester.post_send(wr).unwrap();
        let mut source = Bytewise(message.into());
        while let Some(packet) = self.requester.poll_transmit(self.now, &mut source) {
            self.backend.arrive(self.now, packet);
        }
    }

    /// Packets in both directions, for so long.
    fn run(&mut self, ms: u64) {
        for _ in 0..ms * 10 {
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.now += Time::from_us(100);
        self.backend.advance(self.now);
        let mut receives = Vec::new();
        self.receiver.take_receives(0, |wr| receives.push(wr));
        self.backend.post_receives(0, &receives).unwrap();
        let mut out = Vec::new();
        self.backend.poll(&mut self.receiver, PollMode::default(), self.now, &mut out).unwrap();
        for done in out {
            self.completed.push(self.receiver.event_in(0, done.slot()).unwrap());
            self.receiver.on_completion(self.now, 0, done.slot(), done.byte_len).unwrap();
        }
        while let Some(packet) = self.backend.take_reply() {
            assert_eq!(packet.eth_dst, BOARD_MAC);
            match packet.bth.opcode.is_rc_request() {
                true => self.responder.handle_packet(self.now, &packet, &mut self.store),
                false => drop(self.requester.handle_packet(self.now, &packet)),
            }
        }
        while let Some(answer) = self.responder.poll_transmit(&mut self.store) {
            let (first, count) = self.lose;
            if !(first..first + count).contains(&self.answers) {
                self.backend.arrive(self.now, answer);
            }
            self.answers += 1;
        }
    }

    fn count(&mut self, name: &str) -> u64 {
        let all = self.backend.board_counters(0).into_iter().chain(self.backend.counters());
        all.into_iter().find(|(found, _)| found == name).map(|(_, value)| value).unwrap()
    }

    fn reads(&self) -> u64 {
        self.responder.counters().rx_read_requests
    }
}

#[test]
fn what_is_announced_is_read_in_order_within_the_window_and_then_the_board_gets_its_slots_back() {
    let mut bench = Bench::new();
    bench.announce(0, RKEY, &[LENGTH; 20]);
    bench.run(20);
    assert_eq!(bench.completed, (0..20).collect::<Vec<_>>());
    assert!(bench.count("pull_highest_in_flight_bytes") <= WINDOW);
    let (reads, parts) = (bench.reads(), bench.count("pull_reads"));
    assert_eq!(reads, parts, "while there may be more, nothing but fragments is read");
    assert!(!bench.backend.is_settled());
    bench.run(200);
    assert_eq!(bench.reads(), parts + u64::from(PULL_READS));
    bench.run(1000);
    assert!(bench.backend.is_settled());
    assert_eq!(bench.reads(), parts + u64::from(PULL_READS), "once");
    assert_eq!(
        (bench.count("pull_announced"), bench.count("pull_read"), bench.count("pull_announcements")),
        (20, 20, 1)
    );
    assert_eq!(bench.receiver.report().receiver.fragments_good, 20);
}

#[test]
fn what_the_run_ends_before_is_read_in_vain_at_most_and_stays_at_the_board() {
    for turns in 0..12 {
        let mut bench = Bench::new();
        bench.announce(0, RKEY, &[LENGTH; 60]);
        (0..turns).for_each(|_| bench.turn());
        bench.receiver.end_now();
        bench.run(300);
        let taken = bench.completed.len() as u64;
        assert_eq!(bench.completed, (0..taken).collect::<Vec<_>>());
        assert_eq!(bench.receiver.report().builder.after_end, 0, "{turns}: nothing is taken and thrown away");
        // Each fragment of 3040 bytes is read in parts of at most one packet, which is an eighth of the window.
        let parts = u64::from(LENGTH.div_ceil(1024));
        let after = bench.reads() - taken * parts;
        assert!(taken == 0 || after >= u64::from(PULL_READS), "{turns}: the board has the last slot taken back");
        let in_vain = bench.count("pull_after_end");
        assert!(after - in_vain.min(1) * parts < u64::from(PULL_READS) || in_vain == 0, "{turns}: and no later one");
    }
}

#[test]
fn announcements_that_are_false_are_named_and_counted() {
    for (rkey, lengths, why) in [
        (RKEY ^ 1, &[LENGTH][..], "wrong key, range or permission"),
        (RKEY, &[LENGTH + 1], "it could not complete the request"),
    ] {
        let mut bench = Bench::new();
        bench.announce(0, rkey, lengths);
        bench.run(5);
        let fault = bench.backend.fault(0).unwrap();
        assert!(fault.starts_with("a READ of what the board has announced failed") && fault.contains(why), "{fault}");
        assert!(bench.completed.is_empty() && !bench.backend.is_unanswered(0));
        bench.backend.close_qp(0, &mut Vec::new()).unwrap();
        assert_eq!(bench.count("pull_forgotten"), 1);
    }
    let mut bench = Bench::new();
    bench.announce(0, RKEY, &[LENGTH, 0, LENGTH]);
    bench.run(5);
    bench.announce(1, RKEY, &[LENGTH; 3]);
    bench.run(5);
    assert_eq!(bench.completed, [0, 2, 3], "of event 1 the board has nothing, and events that it repeats are not read");
    assert_eq!((bench.count("pull_empty"), bench.count("pull_repeated")), (1, 2));
    assert_eq!(bench.backend.fault(0), None);
}

#[test]
fn a_board_that_does_not_answer_is_silent_and_fails_after_its_retries() {
    let mut bench = Bench::new();
    bench.announce(0, RKEY, &[LENGTH]);
    for _ in 0..1000 {
        bench.now += Time::from_ms(1);
        bench.backend.advance(bench.now);
        let mut receives = Vec::new();
        bench.receiver.take_receives(0, |wr| receives.push(wr));
        bench.backend.post_receives(0, &receives).unwrap();
        bench.backend.poll(&mut bench.receiver, PollMode::default(), bench.now, &mut Vec::new()).unwrap();
    }
    assert_eq!(
        (bench.count("pull_silences"), bench.count("pull_silent"), bench.count("pull_in_flight_bytes")),
        (1, 1, 0)
    );
    assert!(bench.count("pull_requests_repeated") > 0);
    assert!(bench.backend.fault(0).unwrap().contains("after 7 retries"));
    assert!(bench.backend.is_unanswered(0), "an outage, and no mistake of the board");
}

#[test]
fn reads_bring_what_follows_and_no_further_announcement_is_needed() {
    let mut bench = Bench::new();
    bench.store.last = 50;
    bench.announce(0, RKEY, &[LENGTH]);
    bench.run(30);
    assert_eq!(bench.completed, (0..=50).collect::<Vec<_>>());
    assert_eq!((bench.count("pull_announcements"), bench.count("pull_announced")), (1, 51));
    assert_eq!(bench.count("pull_carried"), 50);
    assert!(bench.count("pull_highest_in_flight_bytes") <= WINDOW);
    assert_eq!(bench.receiver.report().receiver.fragments_good, 51);
}

#[test]
fn successors_that_are_lost_come_again_with_the_repeated_read_and_what_was_announced_meanwhile_waits() {
    for lost in 0..8 {
        let mut bench = Bench::new();
        bench.store.last = 9;
        bench.announce(0, RKEY, &[LENGTH; 2]);
        bench.lose = (lost, 3);
        bench.run(1);
        // The board has named events 2 to 5 with events 0 and 1 and sends another message, which overtakes what is lost.
        let carried = bench.store.successors.iter().flat_map(|(_, bytes)| [bytes[1] > 0, bytes[6] > 0]);
        let carried = carried.filter(|is_there| *is_there).count() as u8;
        bench.store.last = bench.store.named;
        let next = bench.store.named + 1;
        bench.announce_after(carried, next, RKEY, &[LENGTH]);
        bench.run(400);
        assert_eq!(bench.completed, (0..=next).collect::<Vec<_>>(), "{lost}");
        assert_eq!(bench.count("pull_carried"), u64::from(carried));
        assert!(bench.count("pull_requests_repeated") > 0, "{lost}");
        assert_eq!((bench.count("pull_repeated"), bench.backend.fault(0)), (0, None));
    }
}

#[test]
fn successors_that_are_false_are_named_and_counted() {
    let entry = |length| Entry { skipped: 0, length };
    for (entries, why) in [
        ([entry(0), entry(LENGTH)], "successors that begin with none"),
        ([entry(SLOT_BYTES), entry(0)], "announcement of event 1: 4096 bytes and 10 of successors"),
        ([entry(LENGTH + 1), entry(0)], "it could not complete the request"),
    ] {
        let mut bench = Bench::new();
        bench.store.false_successors = Some(entries);
        bench.announce(0, RKEY, &[LENGTH]);
        bench.run(5);
        let fault = bench.backend.fault(0).unwrap();
        assert!(fault.contains(why), "{fault}");
        assert_eq!(bench.completed, [0]);
    }
    let mut bench = Bench::new();
    bench.announce(0, RKEY, &[LENGTH]);
    bench.run(5);
    bench.announce_after(3, 4, RKEY, &[LENGTH]);
    bench.run(5);
    let fault = bench.backend.fault(0).unwrap();
    assert_eq!(fault, "an announcement after 3 successors that the board has not named");
    assert_eq!(bench.count("pull_malformed"), 1);
}
