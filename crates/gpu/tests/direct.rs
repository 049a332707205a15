// SPDX-License-Identifier: Apache-2.0
//! Rings on a GPU that a NIC writes, without real hardware: the memory of the stand-in driver is a file, and a NIC of
//! this test writes to it. The process cannot access the device's addresses, so code that uses one as a host pointer
//! crashes.
//! Promise checked: events equal the sent ones byte for byte; data not needed on the host stays on the device; no slot
//! is written again while it is read; losses by a failed GPU are reported. tests/softroce covers a real RDMA stack.

#[path = "support/kept.rs"]
mod kept;
#[path = "support/standin.rs"]
mod standin;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::num::NonZeroU16;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use kept::{Kept, EVENTS};
use penstock_gpu::{BatchSize, DirectError, Gpu, GpuConfig, GpuDirect, GpuWork, OnGpu, Visibility};
use penstock_readout::backend::*;
use penstock_readout::Found as Seen;
use penstock_readout::*;
use penstock_transport::{Mtu, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::fragment::HEADER_LEN;
use penstock_wire::{FragmentHeader, Ipv4Addr, MacAddr, Prbs31, Psn, Qpn, RnrTimer};
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use standin::with_driver;

const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BOARDS: u16 = 3;
const SLOTS: u32 = 6;
const SLOT_BYTES: u32 = 16 * 1024;

/// A board's queue pair: the dma-buf, receives that are posted, and the slot of its next WRITE.
struct Qp {
    file: File,
    posted: u32,
    next_slot: u32,
}

/// What the test does to the NIC.
#[derive(Default)]
struct State {
    qps: BTreeMap<u16, Qp>,
    done: Vec<Completion>,
    refuses: Option<i32>,
}

impl State {
    /// A WRITE WITH IMMEDIATE; false if the board would get an RNR NAK.
    fn write(&mut self, board: u16, message: &[u8]) -> bool {
        let Some(qp) = self.qps.get_mut(&board).filter(|qp| qp.posted > 0) else { return false };
        qp.file.write_all_at(message, u64::from(qp.next_slot * SLOT_BYTES)).unwrap();
        let (imm, byte_len) = (Some(qp.next_slot), message.len() as u32);
        let (status, opcode) = (RecvStatus::Success, RecvOpcode::WriteImm);
        qp.posted -= 1;
        qp.next_slot = (qp.next_slot + 1) % SLOTS;
        self.done.push(Completion { board, wr_id: 0, status, opcode, imm, byte_len, payload_crc: None });
        true
    }
}

struct Nic(Arc<Mutex<State>>);

impl Backend for Nic {
    fn name(&self) -> &'static str {
        "test"
    }

    fn address(&self) -> LocalAddress {
        LocalAddress::of_ip(IP, MacAddr([2, 0, 0, 0, 0, 1]))
    }

    fn create_qp(&mut self, _spec: &QpSpec) -> Result<LocalQp, BackendError> {
        panic!("a ring of the host was asked for")
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        let mut state = self.0.lock().unwrap();
        state.qps.get_mut(&board).unwrap().posted += receives.len() as u32;
        Ok(())
    }

    fn poll(
        &mut self,
        _memory: &mut dyn penstock_transport::Memory,
        _mode: PollMode,
        _deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        out.append(&mut self.0.lock().unwrap().done);
        Ok(())
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        let mut state = self.0.lock().unwrap();
        state.qps.remove(&board);
        out.append(&mut state.done);
        Ok(())
    }
}

impl WritesDevice for Nic {
    fn device(&self) -> &str {
        "test0"
    }

    fn can_write(&mut self, _memory: &Arc<dyn DeviceMemory>) -> io::Result<()> {
        self.0.lock().unwrap().refuses.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)))
    }

    fn create_qp_on(&mut self, spec: &QpSpec, memory: &Arc<dyn DeviceMemory>) -> Result<LocalQp, BackendError> {
        let file = File::from(memory.file().try_clone_to_owned().unwrap());
        self.0.lock().unwrap().qps.insert(spec.board, Qp { file, posted: 0, next_slot: 0 });
        let (qpn, psn) = (Qpn::new(u32::from(spec.board) + 2), Psn::new(0));
        Ok(LocalQp { qpn, psn, rkey: 1, base: memory.address(), ring: memory.address(), ip: IP })
    }

    fn share_receives_on(&mut self, _pool: &PoolSpec, _memory: &Arc<dyn DeviceMemory>) -> Result<u64, BackendError> {
        Err(BackendError::NoPool)
    }
}

/// Everything between boards and sink, driven as a session drives it.
struct Bench<S> {
    nic: Arc<Mutex<State>>,
    backend: GpuDirect<Nic>,
    receiver: Receiver<S>,
    specs: Vec<QpSpec>,
    now: Time,
}

fn direct(gpu: &Arc<Gpu>, nic: &Arc<Mutex<State>>) -> Result<GpuDirect<Nic>, DirectError> {
    GpuDirect::new(Nic(nic.clone()), gpu, SLOT_BYTES, SessionClock::start()).map_err(|refused| refused.1)
}

impl<S: EventSink> Bench<S> {
    fn new(gpu: &Arc<Gpu>, sink: impl FnOnce(&GpuDirect<Nic>) -> S) -> Bench<S> {
        let nic = Arc::new(Mutex::new(State::default()));
        let mut backend = direct(gpu, &nic).unwrap();
        let sink = sink(&backend);
        backend.fetch_payloads(sink.needs_payloads());
        let shape = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
        let memories: Vec<_> = (0..BOARDS).map(|_| RingMemory::allocate(shape.len(), Pages::Normal).unwrap()).collect();
        let (mut rings, mut specs) = (Vec::new(), Vec::new());
        for (memory, board) in memories.iter().zip(0..) {
            let memory = memory.mapping().clone();
            let spec = QpSpec { board, memory, len: shape.len(), max_receives: SLOTS };
            let local = backend.create_qp(&spec).unwrap();
            rings.push(RingConfig { va: local.base, rkey: local.rkey, ..shape });
            specs.push(spec);
        }
        let builder = BuilderConfig {
            sources: NonZeroU16::new(BOARDS).unwrap(),
            timeout: Time::from_ms(50),
            ..BuilderConfig::default()
        };
        let config = ReceiverConfig { rings, builder, consumer_rate: None };
        let receiver = Receiver::with_memories(config, memories, sink).unwrap();
        let mut bench = Bench { nic, backend, receiver, specs, now: Time::ZERO };
        (0..BOARDS).for_each(|board| bench.connect(board));
        bench
    }

    fn connect(&mut self, board: u16) {
        let (qpn, psn, rnr_timer) = (Qpn::new(9), Psn::new(0), RnrTimer::from_code(12));
        self.backend.connect(board, &PeerQp { qpn, psn, ip: IP, mtu: Mtu::B4096, rnr_timer }).unwrap();
    }

    fn handle_completions(&mut self, completions: &[Completion]) {
        for done in completions {
            self.receiver.on_checked(self.now, done.board, done.slot(), done.byte_len, done.payload_crc).unwrap();
        }
    }

    /// One turn, as [`penstock_readout::session::Session::step`] has it.
    fn turn(&mut self) -> Result<(), BackendError> {
        self.now += Time::from_us(1);
        for board in 0..BOARDS {
            let mut receives = Vec::new();
            self.receiver.take_receives(board, |wr| receives.push(wr));
            self.backend.post_receives(board, &receives)?;
        }
        let mut out = Vec::new();
        self.backend.poll(&mut self.receiver, PollMode::Busy, Time::ZERO, &mut out)?;
        self.handle_completions(&out);
        if self.receiver.poll_timeout().is_some_and(|at| at <= self.now + Time::from_us(100)) {
            self.now += Time::from_us(100);
        }
        self.receiver.handle_timeout(self.now).unwrap();
        Ok(())
    }

    fn send(&mut self, board: u16, message: &[u8]) -> Result<(), BackendError> {
        for _ in 0..1_000_000 {
            if self.nic.lock().unwrap().write(board, message) {
                return Ok(());
            }
            self.turn()?;
        }
        panic!("board {board} gets no credits: {:?}", self.receiver.stalled());
    }

    /// The board's queue pair ends and begins again, with messages of the old one still unread.
    fn restart(&mut self, board: u16) {
        let mut last = Vec::new();
        self.backend.close_qp(board, &mut last).unwrap();
        self.handle_completions(&last);
        for _ in 0..1_000_000 {
            if self.receiver.restart_ring(board, 7) {
                break;
            }
            self.now += Time::from_us(100);
            self.receiver.handle_timeout(self.now).unwrap();
        }
        self.backend.create_qp(&self.specs[usize::from(board)]).unwrap();
        self.connect(board);
    }

    fn drain(&mut self) -> Result<(), BackendError> {
        (0..200).try_for_each(|_| self.turn())
    }

    fn counter(&mut self, name: &str) -> u64 {
        self.backend.counters().into_iter().find(|(other, _)| other == name).unwrap().1
    }
}

fn message(board: u16, event: u64, payload: &[u8]) -> Vec<u8> {
    [&FragmentHeader::for_payload(board, event, event, payload).to_bytes()[..], payload].concat()
}

#[test]
fn events_that_are_stored_are_what_was_sent_and_damage_is_found_on_the_device() {
    for (seed, conf) in [(1, "late 0"), (2, "late 3"), (3, "late 40\nordering 0")] {
        println!("seed {seed}");
        with_driver(conf, |driver| {
            let gpu = Gpu::open(0).unwrap();
            let kept = Kept::default();
            let mut bench = Bench::new(&gpu, |_| kept.clone());
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let (mut expected, mut damaged, mut malformed) = (Vec::new(), 0, 0);
            for event in 0..200 {
                let mut payloads = Vec::new();
                for board in 0..BOARDS {
                    let most = SLOT_BYTES as usize - HEADER_LEN;
                    let len = [0, 1, 3, 4, 5, 127, 4095, 4096, 4097, most][random.next_u32() as usize % 10];
                    let mut payload = vec![0; len];
                    random.fill_bytes(&mut payload);
                    let mut sent = message(board, event, &payload);
                    match random.next_u32() % 30 {
                        0 if len > 0 => {
                            sent[HEADER_LEN + random.next_u32() as usize % len] ^= 1 << (random.next_u32() % 8);
                            damaged += 1;
                        }
                        1 => {
                            sent[random.next_u32() as usize % HEADER_LEN] ^= 0x20;
                            malformed += 1;
                        }
                        2 => {
                            sent.truncate(sent.len() - 1);
                            malformed += 1;
                        }
                        3 => {
                            bench.restart(board);
                            payloads.push(payload);
                        }
                        _ => payloads.push(payload),
                    }
                    bench.send(board, &sent).unwrap();
                }
                expected.push((event, payloads));
            }
            bench.drain().unwrap();
            bench.receiver.finish(bench.now).unwrap();
            let report = bench.receiver.report().receiver;
            assert_eq!((report.fragments_crc_error, report.fragments_malformed), (damaged, malformed), "seed {seed}");
            assert_eq!(*kept.0.lock().unwrap(), expected, "seed {seed}");
            assert!(damaged > 5 && malformed > 5);
            // Of a message that is shorter than a header nothing is read.
            assert!(bench.counter("gpu_messages_read") > 590, "every message was read once");
            let flushes = if seed == 3 { bench.counter("gpu_batches") } else { 0 };
            assert_eq!(driver.calls("cuFlushGPUDirectRDMAWrites") as u64, flushes);
            drop((bench, gpu));
            driver.assert_clean();
        });
    }
}

fn gpu_config(bytes: usize) -> GpuConfig {
    let batch = BatchSize::holding(BOARDS.into(), SLOT_BYTES as usize, bytes);
    GpuConfig { batch, batches: 2, patience: Time::from_us(1) }
}

/// The charges of tests/sink.rs; the same against NumPy is in tests/test_gpu.py.
fn charges(payload: &[u8]) -> Vec<u8> {
    let waveforms = payload.chunks_exact(MODULE_BYTES).flat_map(|module| module[COUNTER_BYTES..].chunks_exact(80));
    let charge = |waveform: &[u8]| {
        let mut samples: Vec<i32> =
            waveform.chunks(2).map(|pair| i32::from(u16::from_le_bytes([pair[0], pair[1]]))).collect();
        samples.sort_unstable();
        (samples.iter().sum::<i32>() - 20 * (samples[19] + samples[20])).to_le_bytes()
    };
    waveforms.flat_map(charge).collect()
}

#[test]
fn charges_are_computed_in_the_slots_and_no_payload_comes_to_the_host() {
    for late in [0, 7] {
        with_driver(&format!("late {late}"), |driver| {
            let gpu = Gpu::open(0).unwrap();
            let results = Kept::default();
            let mut bench = Bench::new(&gpu, |backend| {
                let work = GpuWork::Charges(Box::new(results.clone()));
                OnGpu::over(backend.rings(), Discard::default(), &gpu, work, gpu_config(0)).unwrap()
            });
            let source = EventSource::new(&EVENTS, 30).unwrap();
            let payload = |event, board: u16| source.payload(event, board)[..8 * MODULE_BYTES].to_vec();
            for event in 0..40 {
                for board in 0..BOARDS {
                    bench.send(board, &message(board, event, &payload(event, board))).unwrap();
                }
            }
            bench.drain().unwrap();
            bench.receiver.finish(bench.now).unwrap();
            let expected: Vec<_> = (0..40)
                .map(|event| (event, (0..BOARDS).map(|board| charges(&payload(event, board))).collect()))
                .collect();
            assert_eq!(*results.0.lock().unwrap(), expected, "late {late}: a slot was written while it was read");
            // One copy back for each batch: of what was read, or of charges. Nothing of the host is pinned to copy
            // payloads to.
            let batches = bench.counter("gpu_batches") + bench.receiver.sink().report().lock().unwrap().batches;
            assert_eq!(driver.calls("cuMemcpyDtoHAsync_v2") as u64, batches);
            assert_eq!((driver.calls("cuMemHostRegister_v2"), driver.calls("cuMemcpyDtoH_v2")), (0, 0));
            drop((bench, gpu));
            driver.assert_clean();
        });
    }
}

#[test]
fn the_pattern_report_is_that_of_the_processor_though_only_wrong_payloads_come_to_the_host() {
    with_driver("late 2", |driver| {
        let gpu = Gpu::open(0).unwrap();
        let work = GpuWork::Prbs31 { invert: true, boards: BOARDS.into() };
        let mut bench = Bench::new(&gpu, |backend| {
            OnGpu::over(backend.rings(), Discard::default(), &gpu, work, gpu_config(60_000)).unwrap()
        });
        let mut on_host = PatternCheck::new(Pattern::Prbs31 { invert: true });
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut sequences = [1, 2, 3].map(|i| Prbs31::new(i << 20 | 5, true));
        let (mut errors, mut gaps, mut bytes) = ([0; 3], [0; 3], [0; 3]);
        for event in 0..200 {
            for board in 0..BOARDS {
                let at = usize::from(board);
                let mut payload = vec![0; [3, 4, 5, 8, 100, 4096, 12_001][random.next_u32() as usize % 7]];
                sequences[at].fill(&mut payload);
                match random.next_u32() % 30 {
                    0 => {
                        let wrong = random.next_u32() as usize % payload.len();
                        payload[wrong] ^= 0x10;
                    }
                    1 => sequences[at].skip(1000),
                    _ => {}
                }
                match on_host.check(board, &payload) {
                    Seen::Right => {}
                    Seen::Jump { .. } => gaps[at] += 1,
                    Seen::Wrong { errors: wrong, .. } => errors[at] += wrong,
                }
                bytes[at] += payload.len() as u64;
                bench.send(board, &message(board, event, &payload)).unwrap();
            }
        }
        bench.drain().unwrap();
        bench.receiver.finish(bench.now).unwrap();
        let report = bench.receiver.sink().report().lock().unwrap().clone();
        let found = report.pattern.unwrap();
        for at in 0..3 {
            let (board, expected) = (&found[at], (200, bytes[at], errors[at], gaps[at]));
            assert_eq!((board.messages, board.bytes, board.errors, board.gaps), expected, "board {at}");
        }
        assert!(errors.iter().all(|n| *n > 0) && gaps.iter().all(|n| *n > 0), "{errors:?} {gaps:?}");
        assert_eq!(driver.calls("cuMemcpyDtoH_v2") as u64, report.compared_again);
        assert!(report.compared_again < 200, "{}", report.compared_again);
        drop((bench, gpu));
        driver.assert_clean();
    });
}

#[test]
fn what_a_board_sends_of_its_slots_leads_no_kernel_astray() {
    with_driver("", |driver| {
        let gpu = Gpu::open(0).unwrap();
        let kept = Kept::default();
        let mut bench = Bench::new(&gpu, |_| kept.clone());
        let good = |event: u64| message(0, event, &[event as u8; 3000]);
        bench.send(0, &good(0)).unwrap();
        bench.turn().unwrap();
        // Slots that are not there, one that is another's turn, lengths that are no slot's, and no length at all.
        let claims = [(SLOTS, 100), (u32::MAX, 100), (SLOTS - 1, SLOT_BYTES), (1, u32::MAX), (2, 0), (3, 39)];
        for (slot, byte_len) in claims {
            let mut state = bench.nic.lock().unwrap();
            let (status, opcode) = (RecvStatus::Success, RecvOpcode::WriteImm);
            let done = Completion { board: 0, wr_id: 0, status, opcode, imm: Some(slot), byte_len, payload_crc: None };
            state.done.push(done);
        }
        bench.turn().unwrap();
        let report = bench.receiver.report();
        assert_eq!((report.rings[0].completions_refused, report.receiver.fragments_malformed), (3, 3));
        assert_eq!(report.receiver.fragments_good, 1);
        bench.nic.lock().unwrap().qps.get_mut(&0).unwrap().next_slot = 4;
        bench.send(0, &good(1)).unwrap();
        (1..BOARDS).for_each(|board| (0..2).for_each(|event| bench.send(board, &message(board, event, &[])).unwrap()));
        bench.drain().unwrap();
        bench.receiver.finish(bench.now).unwrap();
        let expected = |event: u64| (event, vec![vec![event as u8; 3000], vec![], vec![]]);
        assert_eq!(*kept.0.lock().unwrap(), [expected(0), expected(1)]);
        drop((bench, gpu));
        driver.assert_clean();
    });
}

#[test]
fn whoever_cannot_do_it_is_named() {
    fn refusal(refuses: Option<i32>) -> Option<String> {
        let nic = Arc::new(Mutex::new(State { refuses, ..State::default() }));
        direct(&Gpu::open(0).unwrap(), &nic).err().map(|error| error.to_string())
    }
    for (conf, refuses, reason) in [
        (
            "late 0",
            Some(libc::EOPNOTSUPP),
            "device test0 does not take memory of GPU 0: ibv_reg_dmabuf_mr: Operation not supp",
        ),
        ("dma_buf 0", None, "GPU 0 exports no memory as dma-buf"),
        ("ordering 0\nflush 0", None, "ORDERING is 0, .._FLUSH_WRITES_OPTIONS 0"),
        ("fail cuMemGetHandleForAddressRange 1 801", None, "GPU 0: cuMemGetHandleForAddressRange"),
    ] {
        with_driver(conf, |_| {
            let refused = refusal(refuses).unwrap();
            assert!(refused.contains(reason), "{refused}");
        });
    }
    with_driver("", |_| assert_eq!(refusal(None), None));
    with_driver("ordering 0", |_| assert_eq!(Gpu::open(0).unwrap().visibility(), Ok(Visibility::Flushed)));
}

#[test]
fn a_gpu_that_fails_ends_the_run_and_what_it_took_with_it_is_reported_and_not_stored() {
    for conf in ["late 2\nfail cuLaunchKernel 30 719", "late 2\nfail cuStreamQuery 60 700"] {
        with_driver(conf, |_| {
            let gpu = Gpu::open(0).unwrap();
            let kept = Kept::default();
            let mut bench = Bench::new(&gpu, |_| kept.clone());
            let payload = |board: u16, event: u64| vec![(u64::from(board) + event) as u8; 5000];
            let mut sent = 0u64;
            let error = (0..10_000u64).find_map(|event| {
                (0..BOARDS).find_map(|board| {
                    let error = bench.send(board, &message(board, event, &payload(board, event))).err();
                    sent += u64::from(error.is_none());
                    error
                })
            });
            let error = error.expect("the GPU has failed").to_string();
            assert!(error.contains("GPU 0 has failed, and the rings with it: cu"), "{error}");
            // Of all that was acknowledged, every message was reported or is counted as lost.
            bench.receiver.finish(bench.now).unwrap();
            let good = bench.receiver.report().receiver.fragments_good;
            let lost: u64 = error
                .split(" messages that were acknowledged")
                .next()
                .unwrap()
                .rsplit(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(good + lost, sent, "{error}");
            assert!(lost > 0, "{error}");
            for (event, payloads) in kept.0.lock().unwrap().iter() {
                let whole = payloads.len() == usize::from(BOARDS);
                assert!(payloads.iter().all(|found| found.len() == 5000), "event {event}");
                assert!(!whole || (0..BOARDS).all(|board| payloads[usize::from(board)] == payload(board, *event)));
            }
            // It stays so.
            let again = bench.turn().unwrap_err().to_string();
            assert_eq!(again, error);
        });
    }
}
