// SPDX-License-Identifier: Apache-2.0
//! AdvCam figure 14 on the verilated 10G front end: R_C and R_T, sampled at 1 kHz, match the measured throughput.
//!
//! One queue pair always has data and runs with Table II. Two of its packets arrive marked (CE), and the
//! receiver answers each with a CNP. Throughput is what XGMII carries, as R_C counts it: with preamble, FCS
//! and gap. R_C changes within some windows of 1 ms, at a cut or at a step of recovery; a sample at their end
//! says little about the whole, so these are held against the mean of R_C over the window instead. A cut finds
//! packets under way that were let go at the rate before it; in its window they are allowed for.

mod common;

use bytes::Bytes;
use common::{endpoint_config, local, peer, qp_config, FIRST_PSN, REGION};
use penstock_board::{Board, Message, RateSample, Verb, WcStatus, CYCLE};
use penstock_transport::{Memory, Mtu, Responder, ResponderConfig};
use penstock_wire::{Ecn, Packet, Payload};

/// 1 ms at 156.25 MHz.
const WINDOW_CYCLES: u64 = 156_250;
const WINDOWS: usize = 20;
/// The port samples much faster than at 1 kHz; every 625th of its samples is one of the figure's.
const SAMPLE_CYCLES: u64 = 250;
/// When a packet gets marked: the windows of the two cuts, in their middle.
const MARKED_AT: [u64; 2] = [WINDOW_CYCLES * 3 / 2, WINDOW_CYCLES * 31 / 2];
const WARM_UP_CYCLES: u64 = 20_000;
/// Cycles after the last window until its last packet has been seen whole.
const TAIL_CYCLES: u64 = 2_000;
const ANSWER_CYCLES: u64 = 156;
const MESSAGE_BYTES: usize = 100_000;
const TOLERANCE: f64 = 0.01;
/// Let go before a cut and still to come, two packets of MTU 4096, as Gb/s over a window.
const UNDER_WAY: f64 = 2.0 * 4186.0 / WINDOW_CYCLES as f64 * 10.0 / 8.0;
/// Q8.24 bytes per cycle in one Gb/s.
const RATE_PER_GBPS: f64 = (8 << 24) as f64 / 10.0;

/// A server's memory that counts what is written.
#[derive(Default)]
struct Counted(u64);

impl Memory for Counted {
    fn write(&mut self, _va: u64, data: &Payload) {
        self.0 += data.len() as u64;
    }
}

/// One window of the figure, rates in Gb/s.
#[derive(Debug)]
struct Window {
    measured: f64,
    /// R_C and R_T as the 1 kHz sample at the window's end has them.
    current: f64,
    target: f64,
    /// R_C over the whole window, and whether it stood still.
    mean: f64,
    steady: bool,
    cut: bool,
}

/// What one run leaves: the octets on the wire in each window, and the samples since its start.
struct Run {
    wire_octets: Vec<f64>,
    samples: Vec<RateSample>,
    start: u64,
}

/// Adds a frame's octets to the windows in which they were on the wire.
fn spread(windows: &mut [f64], first_octet: u64, octets: u64) {
    let width = WINDOW_CYCLES * 8;
    let mut at = first_octet;
    while at < first_octet + octets {
        let window = at / width;
        let end = (first_octet + octets).min((window + 1) * width);
        if let Some(sum) = windows.get_mut(window as usize) {
            *sum += (end - at) as f64;
        }
        at = end;
    }
}

fn run() -> Run {
    let config = ResponderConfig::new(peer(0), local(0), FIRST_PSN, Mtu::B4096);
    let mut responder = Responder::new(config.with_region(REGION));
    let mut board = open_board();
    let payload = Bytes::from(vec![0x5a; MESSAGE_BYTES]);
    let (mut memory, mut posted, mut done) = (Counted::default(), 0u32, 0u64);
    let mut marks = MARKED_AT.iter().peekable();
    let mut run = Run { wire_octets: vec![0.0; WINDOWS], samples: Vec::new(), start: WARM_UP_CYCLES };

    while board.cycle() < run.start + WINDOWS as u64 * WINDOW_CYCLES + TAIL_CYCLES {
        while board.pending_messages() < 2 {
            let (verb, remote_address, payload) = (Verb::Write, REGION.va, payload.clone());
            board.post(Message { qp: 0, verb, imm: None, remote_address, tag: posted, payload });
            posted += 1;
        }
        board.run_until(board.cycle() + 100);
        while let Some(received) = board.poll_transmit() {
            if let Some(at) = received.start_octet.checked_sub(run.start * 8) {
                spread(&mut run.wire_octets, at, penstock_wire::wire_len(received.frame.len()) as u64);
            }
            let Ok(Packet::Roce(mut packet)) = Packet::parse(received.frame) else { panic!("not a RoCE packet") };
            if marks.next_if(|at| board.cycle() >= run.start + **at).is_some() {
                packet.ecn = Ecn::Ce;
            }
            responder.handle_packet(CYCLE * board.cycle(), &packet, &mut memory);
        }
        while let Some(reply) = responder.poll_transmit(&mut memory) {
            board.receive(board.cycle() + ANSWER_CYCLES, reply.emit(), true);
        }
        while let Some(completion) = board.poll_completion() {
            assert_eq!(completion.status, WcStatus::Success, "message {}", completion.tag);
            done += 1;
        }
        run.samples.extend(std::iter::from_fn(|| board.poll_rates()));
    }
    assert_eq!((responder.counters().out_of_sequence, responder.counters().np_cnp_sent), (0, 2));
    assert!(memory.0 >= done * MESSAGE_BYTES as u64 && done > 0);
    run
}

fn open_board() -> Board {
    let mut board = Board::new();
    board.configure(&endpoint_config()).unwrap();
    board.open_qp(0, &qp_config(0, 4096, 9)).unwrap();
    board.sample_rates(0, 0, SAMPLE_CYCLES as u32).unwrap();
    board.restart_time().unwrap();
    while board.poll_rates().is_some() {}
    board
}

fn windows(run: &Run) -> Vec<Window> {
    let gbps = |rate: penstock_cc::CycleRate| f64::from(rate.0) / RATE_PER_GBPS;
    let window = |(i, octets): (usize, &f64)| {
        let begin = run.start + i as u64 * WINDOW_CYCLES;
        let inside: Vec<_> = run.samples.iter().filter(|s| (begin..begin + WINDOW_CYCLES).contains(&s.cycle)).collect();
        let last = inside.last().expect("625 samples a window");
        Window {
            measured: octets / WINDOW_CYCLES as f64 * 10.0 / 8.0,
            current: gbps(last.current),
            target: gbps(last.target),
            mean: inside.iter().map(|s| gbps(s.current)).sum::<f64>() / inside.len() as f64,
            steady: inside.iter().all(|s| s.current == last.current),
            cut: inside.windows(2).any(|pair| pair[1].current < pair[0].current),
        }
    };
    run.wire_octets.iter().enumerate().map(window).collect()
}

#[test]
fn r_c_and_r_t_sampled_at_1_khz_lie_on_the_measured_throughput() {
    let windows = windows(&run());
    let on = |rate: f64, measured: f64| (measured / rate - 1.0).abs() < TOLERANCE;
    windows.iter().enumerate().for_each(|(i, window)| println!("{i:2} {window:.4?}"));
    for (i, window) in windows.iter().enumerate() {
        let late = if window.cut { UNDER_WAY } else { 0.0 };
        let lies = (1.0 - TOLERANCE) * window.mean..=(1.0 + TOLERANCE) * window.mean + late;
        assert!(lies.contains(&window.measured), "mean of R_C, window {i}: {window:?}");
        if window.steady {
            assert!(on(window.current, window.measured), "R_C, window {i}: {window:?}");
        }
        // R_T is where recovery leads to: it lies on the throughput once R_C has reached it.
        if window.steady && on(window.target, window.current) {
            assert!(on(window.target, window.measured), "R_T, window {i}: {window:?}");
        }
    }
    let count = |of: fn(&Window) -> bool| windows.iter().filter(|w| of(w)).count();
    assert!(count(|w| w.steady) >= WINDOWS / 2, "R_C stood still in {} windows only", count(|w| w.steady));
    assert!(count(|w| w.steady && w.target / w.current < 1.01) >= 3, "R_C reached R_T");
    let lowest = windows.iter().map(|w| w.measured).fold(f64::INFINITY, f64::min);
    assert_eq!(count(|w| w.cut), MARKED_AT.len());
    assert!(windows[0].measured > 9.9 && lowest < 5.1, "from the line rate to half of it: {lowest}");
}
