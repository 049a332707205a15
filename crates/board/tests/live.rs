// SPDX-License-Identifier: Apache-2.0
//! A live board with a responder in this process: the pace of its clock, and AdvCam figure 9 by the emulated switch.
//! The wire uses simulated time, so every run is the same.

use bytes::Bytes;
use penstock_board::live::{Activity, LiveBoard, PaceConfig, Sent, Wire, WireError, WireTime};
use penstock_board::{regs, Board, EndpointConfig, Feed, Message, MessageSource, QpConfig, RateSample, Verb};
use penstock_cc::DcqcnParams;
use penstock_lab::SwitchScenario;
use penstock_netsim::EmulatedSwitch;
use penstock_transport::{Access, Endpoint, Memory, MemoryRegion, Mtu, Responder, ResponderConfig};
use penstock_units::Time;
use penstock_wire::gateware::CYCLE;
use penstock_wire::{Ipv4Addr, MacAddr, Packet, Payload, Psn, Qpn};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BOARD_CLOCK_HZ: u64 = 156_250_000;
const VA: u64 = 0x1000;
const RKEY: u32 = 7;
/// Time from the end of a frame to its answer.
const ANSWER: Time = Time::from_us(1);

fn local() -> Endpoint {
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(0x201) }
}

fn peer() -> Endpoint {
    Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::new(0x11) }
}

/// Memory that a test may look at while the wire has it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Memory for Shared {
    fn write(&mut self, va: u64, data: &Payload) {
        let (mut memory, at) = (self.0.lock().unwrap(), (va - VA) as usize);
        if memory.len() < at + data.len() {
            memory.resize(at + data.len(), 0);
        }
        let Payload::Bytes(bytes) = data else { panic!("a board sends real bytes") };
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// A server behind a cable of simulated time.
struct Server {
    responder: Responder,
    memory: Shared,
    replies: VecDeque<(Time, Bytes)>,
}

impl Server {
    fn new(memory: Shared, mtu: Mtu) -> Self {
        let region = MemoryRegion { va: VA, rkey: RKEY, len: 1 << 24, access: Access::RemoteWrite };
        let config = ResponderConfig::new(peer(), local(), Psn::new(5), mtu).with_region(region);
        Self { responder: Responder::new(config), memory, replies: VecDeque::new() }
    }
}

impl Wire for Server {
    fn send(&mut self, now: Time, frame: &Bytes) -> Result<Sent, WireError> {
        if let Ok(Packet::Roce(packet)) = Packet::parse(frame.clone()) {
            self.responder.handle_packet(now, &packet, &mut self.memory);
        }
        while let Some(reply) = self.responder.poll_transmit(&mut self.memory) {
            self.replies.push_back((now + ANSWER, reply.emit()));
        }
        Ok(Sent::Done)
    }

    fn receive(&mut self, now: Time) -> Result<Option<Bytes>, WireError> {
        let due = self.replies.front().is_some_and(|reply| reply.0 <= now);
        Ok(if due { self.replies.pop_front().map(|reply| reply.1) } else { None })
    }

    fn wait(&mut self, _timeout: Duration, _room: bool) -> Result<(), WireError> {
        unreachable!("a wire of simulated time is never waited for")
    }

    fn time(&self) -> WireTime {
        WireTime::Simulated(self.replies.front().map(|reply| reply.0))
    }
}

/// Messages of one length, as soon as there is room, in one buffer at the server.
struct Messages {
    data: Bytes,
    len: usize,
    sent: usize,
}

impl MessageSource for Messages {
    fn next_time(&self) -> Option<Time> {
        (self.sent < self.data.len()).then_some(Time::ZERO)
    }

    fn take(&mut self, _now: Time) -> Option<Feed> {
        let from = self.sent;
        self.sent = (from + self.len).min(self.data.len());
        let tag = (from / self.len) as u32;
        let payload = self.data.slice(from..self.sent);
        Some(Message { qp: 1, verb: Verb::Write, imm: None, remote_address: VA + from as u64, tag, payload }.into())
    }
}

fn board(mtu: u16, congestion: DcqcnParams) -> Board {
    let mut board = Board::new();
    let (local, peer) = (local(), peer());
    let qpn_base = Qpn::new(local.qpn.value() & !0xff);
    let flow = EndpointConfig {
        mac: local.mac,
        ip: local.ip,
        ttl: 64,
        qpn_base,
        obey_pause: true,
        obey_pfc: true,
        traffic_class: 3,
        congestion,
    };
    board.configure(&flow).unwrap();
    let connection = QpConfig {
        dst_mac: peer.mac,
        dst_ip: peer.ip,
        udp_sport: 0xc000,
        tos: 0x6a,
        dest_qpn: peer.qpn,
        rkey: RKEY,
        mtu,
        ack_timeout: 10,
        retry_cnt: 7,
        rnr_retry: 7,
        init_psn: Psn::new(5),
    };
    board.open_qp(1, &connection).unwrap();
    board
}

/// A run of the emulated switch: its switch as it ended, R_C over time, and the octets of the line in each of the
/// board's cycles.
struct Run {
    switch: EmulatedSwitch,
    samples: Vec<RateSample>,
    live: LiveBoard,
}

fn run(scenario: &str, mtu: Mtu, len: usize, message: usize) -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(scenario);
    let scenario = SwitchScenario::load(path, &[]).unwrap();
    let board = board(mtu.bytes() as u16, scenario.cc.at_clock(BOARD_CLOCK_HZ).unwrap());
    let data: Bytes =
        (0..len as u64).flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()).step_by(8).collect();
    let memory = Shared::default();
    let server = Server::new(memory.clone(), mtu);
    let mut live = LiveBoard::new(board, Box::new(server), PaceConfig::default()).unwrap();
    live.set_switch(EmulatedSwitch::new(scenario.switch));
    live.sample_rates(1, 1, (scenario.sample_interval / CYCLE) as u32).unwrap();
    live.set_source(Box::new(Messages { data: data.clone(), len: message, sent: 0 }));
    let mut samples = Vec::new();
    while !live.is_done() {
        live.turn(Duration::ZERO).unwrap();
        samples.extend(std::iter::from_fn(|| live.poll_rates()));
    }
    let tally = &live.stats().messages;
    assert_eq!((tally.ok, tally.failed()), (len.div_ceil(message) as u64, 0), "no work request is lost");
    assert!(*memory.0.lock().unwrap() == data, "the server's memory is what was sent");
    Run { switch: live.switch().unwrap().clone(), samples, live }
}

/// Q8.24 bytes per cycle as Gb/s.
fn gbps(rate: penstock_cc::CycleRate) -> f64 {
    f64::from(rate.0) / f64::from(1 << 24) * 8.0 / 6.4
}

/// The samples before and after each fall of R_C.
fn cuts(samples: &[RateSample]) -> Vec<(RateSample, RateSample)> {
    samples.windows(2).filter(|pair| pair[1].current < pair[0].current).map(|pair| (pair[0], pair[1])).collect()
}

#[test]
fn figure_9_the_first_cut_halves_and_later_ones_shrink_with_alpha() {
    let run = run("advcam-9.toml", Mtu::B4096, 320_000, 60_000);
    let cuts = cuts(&run.samples);
    for (before, after) in &cuts {
        let (alpha, depth) = (f64::from(before.alpha) / 65536.0, 1.0 - gbps(after.current) / gbps(before.current));
        println!("cycle {}: alpha {alpha:.3}, R_C {:.3} Gb/s, cut by {depth:.4}", after.cycle, gbps(before.current));
        assert!((depth - alpha / 2.0).abs() < 1e-4, "a cut removes alpha / 2 of R_C");
        assert_eq!(after.target, before.current, "ClampTargetRate is on");
    }
    let [first, second, third] = cuts[..] else { panic!("three cuts, not {}", cuts.len()) };
    assert_eq!((first.0.alpha, gbps(first.0.current), gbps(first.1.current)), (65536, 10.0, 5.0));
    let alpha = |cut: (RateSample, RateSample)| f64::from(cut.0.alpha) / 65536.0;
    assert!((0.7..0.9).contains(&alpha(second)) && (0.2..0.4).contains(&alpha(third)), "{cuts:?}");
    assert_eq!(run.switch.notifications().len(), 3);
    for (notification, cut) in run.switch.notifications().iter().zip(&cuts) {
        assert!(notification.measured > notification.threshold);
        let acted = cut.1.cycle - notification.at / CYCLE;
        assert!(acted < 700, "a CNP is acted upon {acted} cycles later: within two chunks and the sampling interval");
    }
}

#[test]
fn throughput_follows_a_staircase_of_thresholds() {
    let run = run("advcam-9-staircase.toml", Mtu::B1024, 900_000, 100_000);
    let cut_in = |from_us: u64| {
        let span = from_us * 1_000_000..(from_us + 300) * 1_000_000;
        let at = |cut: &&(RateSample, RateSample)| span.contains(&(cut.1.cycle * 6_400));
        cuts(&run.samples).iter().filter(at).count()
    };
    // R_C just before the end of each step: not far above what was allowed, and each time less.
    let at_end = |us: u64| {
        let last = run.samples.iter().take_while(|sample| sample.cycle * 6_400 < us * 1_000_000).last().unwrap();
        gbps(last.current)
    };
    let ends = [300, 600, 900, 1200].map(at_end);
    println!("R_C at the ends of the steps {ends:?}; cuts {:?}", [0, 300, 600, 900].map(cut_in));
    for (end, allowed) in ends.into_iter().zip([8.0, 6.0, 4.0, 2.0]) {
        assert!(end < 1.5 * allowed, "{end} Gb/s where {allowed} are allowed");
    }
    assert!([0, 300, 600, 900].into_iter().all(|from| cut_in(from) > 0), "each step is enforced");
    let behind = run.switch.notifications().iter().filter(|n| n.at > Time::from_us(1200)).count();
    assert_eq!(behind, 0, "no CNP where everything is allowed");
}

#[test]
fn storms_of_cnps_lose_no_work_request() {
    let mut run = run("advcam-9-storm.toml", Mtu::B1024, 300_000, 5_000);
    let sent = run.switch.notifications().len();
    let handled = run.live.read(penstock_board::qp_register(1, regs::qp::RP_CNP_HANDLED)).unwrap();
    let retransmitted = run.live.read(regs::counters::PACKETS_RETRANSMITTED).unwrap();
    println!("{sent} CNPs, {handled} cuts");
    assert!(sent > 40);
    assert_eq!((handled as usize, retransmitted), (sent, 0));
    assert!(run.samples.iter().any(|sample| gbps(sample.current) < 1.01), "down to the lowest rate");
}

#[test]
fn a_board_without_work_is_idle_and_its_clock_stands_nearly_still() {
    /// A far end that is silent, in the time of the machine.
    struct Silence;
    impl Wire for Silence {
        fn send(&mut self, _now: Time, _frame: &Bytes) -> Result<Sent, WireError> {
            Ok(Sent::Done)
        }
        fn receive(&mut self, _now: Time) -> Result<Option<Bytes>, WireError> {
            Ok(None)
        }
        fn wait(&mut self, timeout: Duration, _room: bool) -> Result<(), WireError> {
            std::thread::sleep(timeout.min(Duration::from_millis(20)));
            Ok(())
        }
    }
    let turns = |live: &mut LiveBoard, until: Activity| {
        (0..200).find(|_| live.turn(Duration::from_millis(20)).unwrap() == until).expect("reached");
        let before = live.cycle();
        for _ in 0..10 {
            live.turn(Duration::from_millis(20)).unwrap();
        }
        live.cycle() - before
    };
    let mut live =
        LiveBoard::new(board(1024, DcqcnParams::default()), Box::new(Silence), PaceConfig::default()).unwrap();
    let idle = turns(&mut live, Activity::Idle);
    assert!(idle < 4_000, "{idle} cycles in 0.2 s");
    // A packet that nobody acknowledges: the clock waits with it, a thousandth of real time at most.
    let payload = Bytes::from_static(&[1; 100]);
    live.post(Message { qp: 1, verb: Verb::Write, imm: None, remote_address: VA, tag: 1, payload });
    let waiting = turns(&mut live, Activity::Waiting);
    assert!(waiting < 156_250_000 / 1_000, "{waiting} cycles in 0.2 s");
    assert_eq!(live.stats().messages.failed(), 0, "nothing has timed out");
    // What a queue pair that has failed did not send is no work: the message ends, and the board is idle.
    const ERROR: u32 = 6;
    let payload = Bytes::from(vec![1; 60_000]);
    live.post(Message { qp: 1, verb: Verb::Write, imm: None, remote_address: VA, tag: 2, payload });
    turns(&mut live, Activity::Running);
    live.write(penstock_board::qp_register(1, regs::qp::STATE), ERROR).unwrap();
    turns(&mut live, Activity::Idle);
    let [next, written] =
        [regs::qp::NXT_PSN, regs::qp::WR_PSN].map(|at| live.read(penstock_board::qp_register(1, at)).unwrap());
    assert!(next != written && live.stats().messages.failed() == 2, "{next} of {written}");
}
