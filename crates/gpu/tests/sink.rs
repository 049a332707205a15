// SPDX-License-Identifier: Apache-2.0
//! Events on a GPU, without one: the kernels compiled for the CPU, with a driver that works late and fails on request.
//! Promise checked: results equal the processor's to the bit, in order, none lost; memory is bounded and boards wait; a
//! GPU that fails loses only its own results. This test cannot show the behaviour of a real driver: docs/gpu.md.

#[path = "support/kept.rs"]
mod kept;
#[path = "support/standin.rs"]
mod standin;

use std::num::NonZeroU16;

use bytes::Bytes;
use kept::{Kept, EVENTS};
use penstock_gpu::{prove, BatchSize, Gpu, GpuConfig, GpuError, GpuReport, GpuWork, OnGpu};
use penstock_readout::*;
use penstock_transport::Memory;
use penstock_units::Time;
use penstock_wire::{FragmentHeader, Payload, Prbs31};
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use standin::{with_driver, BROKEN};

const BOARDS: u16 = 3;
const SLOTS: u32 = 8;
const SLOT_BYTES: u32 = 16 * 1024;
const PRBS: Pattern = Pattern::Prbs31 { invert: true };
const PATIENCE: Time = Time::from_us(1);

fn config(bytes: usize) -> GpuConfig {
    let batch = BatchSize::holding(BOARDS.into(), SLOT_BYTES as usize, bytes);
    GpuConfig { batch, batches: 2, patience: PATIENCE }
}

impl Kept {
    fn numbers(&self) -> Vec<u64> {
        self.0.lock().unwrap().iter().map(|(number, _)| *number).collect()
    }
}

fn store(sink: &mut impl EventSink, number: u64, payloads: &[&[u8]]) -> Result<(), StoreError> {
    let fragments: Vec<Fragment<'_>> = (0..).zip(payloads).map(|(i, payload)| Fragment::of(i, 0, payload)).collect();
    sink.store(&Event { number, timestamp_ns: Some(number), complete: true, fragments: &fragments, missing: &[] })
}

fn report_of<S: EventSink>(sink: &OnGpu<S>) -> GpuReport {
    sink.report().lock().unwrap().clone()
}

#[test]
fn kernels_agree_with_the_processor_to_the_bit() {
    with_driver("late 2", |driver| {
        for seed in 0..3 {
            println!("seed {seed}");
            let gpu = Gpu::open(0).unwrap();
            let proof = prove(&gpu, seed).unwrap();
            assert!(proof.holds() && proof.payloads_damaged > proof.payloads / 2, "{proof:?}");
            assert_eq!(
                gpu.description().unwrap(),
                "GPU 0: stand-in, no GPU, compute capability 7.0, 1.0 GiB, driver for CUDA 12.9"
            );
        }
        driver.assert_clean();
    });
}

/// Boards that send PRBS-31 as fragments, with everything that can go wrong in it.
struct Boards {
    receiver: Receiver<OnGpu<Kept>>,
    next_slot: [u32; BOARDS as usize],
    now: Time,
}

impl Boards {
    fn send(&mut self, board: u16, event: u64, payload: &[u8]) {
        while self.receiver.credits(board) == 0 && self.receiver.take_credits(board) == 0 {
            self.now = self.receiver.poll_timeout().unwrap_or(Time::ZERO).max(self.now + Time(1));
            self.receiver.handle_timeout(self.now).unwrap();
        }
        let message = [&FragmentHeader::for_payload(board, event, 0, payload).to_bytes(), payload].concat();
        let slot = &mut self.next_slot[usize::from(board)];
        let va = self.receiver.region(board).unwrap().va + u64::from(*slot * SLOT_BYTES);
        self.receiver.write(va, &Payload::Bytes(Bytes::from(message.clone())));
        self.receiver.on_completion(self.now, board, *slot, message.len() as u32).unwrap();
        *slot = (*slot + 1) % SLOTS;
    }

    fn restart(&mut self, board: u16) {
        while !self.receiver.restart_ring(board, 7) {
            self.now = self.receiver.poll_timeout().unwrap().max(self.now + Time(1));
            self.receiver.handle_timeout(self.now).unwrap();
        }
        self.next_slot[usize::from(board)] = 0;
    }
}

fn receiver<S: EventSink>(sink: S) -> Receiver<S> {
    let ring = RingConfig { slots: SLOTS, slot_bytes: SLOT_BYTES, ..RingConfig::default() };
    let sources = NonZeroU16::new(BOARDS).unwrap();
    let builder = BuilderConfig { sources, timeout: Time::from_ms(50), ..BuilderConfig::default() };
    let rings = (0..BOARDS).map(|board| ring.for_board(board)).collect();
    Receiver::new(ReceiverConfig { rings, builder, consumer_rate: None }, sink).unwrap()
}

#[test]
fn the_pattern_report_is_that_of_the_processor_whatever_goes_wrong() {
    for (seed, late) in [(1, 0), (2, 3), (3, 40)] {
        println!("seed {seed}");
        with_driver(&format!("late {late}"), |driver| {
            let gpu = Gpu::open(0).unwrap();
            let work = GpuWork::Prbs31 { invert: true, boards: BOARDS.into() };
            let sink = OnGpu::new(Kept::default(), &gpu, work, config(100_000)).unwrap();
            let (report, kept) = (sink.report(), sink.inner().clone());
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut boards = Boards { receiver: receiver(sink).with_pattern(PRBS), next_slot: [0; 3], now: Time::ZERO };
            let mut sequences = [1, 2, 3].map(|i| Prbs31::new(i << 20 | 5, true));
            for event in 0..300 {
                for board in 0..BOARDS {
                    let sequence = &mut sequences[usize::from(board)];
                    let len = [0, 3, 4, 5, 100, 4096, 12_000][random.next_u32() as usize % 7]
                        + random.next_u32() as usize % 4;
                    let mut payload = vec![0; len];
                    sequence.fill(&mut payload);
                    match random.next_u32() % 40 {
                        0 if len > 0 => payload[random.next_u32() as usize % len] ^= 0x10,
                        1 if len > 3 => payload[random.next_u32() as usize % 4] ^= 0x80,
                        2 => sequence.skip(1000),
                        3 => random.fill_bytes(&mut payload),
                        4 => boards.restart(board),
                        5 => continue, // missing
                        _ => {}
                    }
                    boards.send(board, event, &payload);
                }
            }
            boards.receiver.finish(boards.now).unwrap();
            let by_processor = boards.receiver.report().pattern.unwrap();
            let by_gpu = report.lock().unwrap().clone();
            assert_eq!(by_gpu.pattern.as_ref(), Some(&by_processor), "seed {seed}");
            assert!(by_processor.iter().all(|board| board.errors > 0 && board.gaps > 0), "{by_processor:?}");
            assert_eq!((by_gpu.events, kept.numbers().len()), (300, 300));
            assert!(by_gpu.compared_again < 500 && by_gpu.batches > 10, "{by_gpu:?}");
            drop(boards);
            drop(gpu);
            driver.assert_clean();
        });
    }
}

/// The charges that NumPy's median and sum give; the same against NumPy itself is in tests/test_gpu.py.
fn charges(payload: &[u8]) -> Vec<u8> {
    let modules = payload.chunks_exact(MODULE_BYTES);
    let waveforms = modules.flat_map(|module| module[COUNTER_BYTES..].chunks_exact(80));
    let charge = |waveform: &[u8]| {
        let mut samples: Vec<f64> =
            waveform.chunks(2).map(|pair| f64::from(u16::from_le_bytes([pair[0], pair[1]]))).collect();
        samples.sort_by(f64::total_cmp);
        let median = (samples[19] + samples[20]) / 2.0;
        (samples.iter().map(|sample| sample - median).sum::<f64>() as i32).to_le_bytes()
    };
    waveforms.flat_map(charge).collect()
}

#[test]
fn charges_of_recorded_events_come_in_order_while_the_events_are_stored() {
    with_driver("late 3", |driver| {
        let gpu = Gpu::open(0).unwrap();
        let (results, modules) = (Kept::default(), EVENTS.modules());
        let batch = BatchSize::holding(BOARDS.into(), modules.div_ceil(3) * MODULE_BYTES, 0);
        let config = GpuConfig { batch, ..config(0) };
        let mut sink = OnGpu::new(Kept::default(), &gpu, GpuWork::Charges(Box::new(results.clone())), config).unwrap();
        let source = EventSource::new(&EVENTS, BOARDS).unwrap();
        let payloads = |event| [0, 1, 2].map(|board| &source.payload(event, board)[..]);
        for event in 0..20 {
            let mut payloads = payloads(event);
            if event == 7 {
                payloads[1] = &payloads[1][..100]; // no module
            }
            while let Err(error) = store(&mut sink, event, &payloads) {
                assert!(error.is_busy(), "{error}");
                sink.wait().unwrap();
            }
        }
        sink.close().unwrap();
        assert_eq!((sink.inner().numbers(), results.numbers()), ((0..20).collect(), (0..20).collect()));
        for (event, found) in results.0.lock().unwrap().iter() {
            for (board, (found, payload)) in found.iter().zip(payloads(*event)).enumerate() {
                let expected = if (*event, board) == (7, 1) { Vec::new() } else { charges(payload) };
                assert_eq!(*found, expected, "event {event}, board {board}");
            }
        }
        let report = report_of(&sink);
        assert_eq!((report.events, report.not_of_the_camera, report.failure), (20, 1, None));
        drop((sink, gpu));
        driver.assert_clean();
    });
}

#[test]
fn a_gpu_that_is_slow_holds_the_boards_back_with_bounded_memory_and_loses_nothing() {
    with_driver("late 1000000", |driver| {
        let gpu = Gpu::open(0).unwrap();
        let work = GpuWork::Prbs31 { invert: true, boards: BOARDS.into() };
        let sink = OnGpu::new(Kept::default(), &gpu, work, config(0)).unwrap();
        let (report, kept) = (sink.report(), sink.inner().clone());
        let mut boards = Boards { receiver: receiver(sink), next_slot: [0; 3], now: Time::ZERO };
        let (mut prbs, mut payload) = (Prbs31::new(9, true), vec![0; 12_000]);
        // A batch holds one event. Two are taken, the others lie in the rings, of which one slot is never posted.
        for event in 0..u64::from(SLOTS) - 1 {
            prbs.fill(&mut payload);
            (0..BOARDS).for_each(|board| boards.send(board, event, &payload));
        }
        for board in 0..BOARDS {
            assert_eq!(boards.receiver.take_credits(board), 0);
            assert_eq!(boards.receiver.credits(board), 0);
        }
        assert!(matches!(boards.receiver.stalled(), Some(StoreError::AcceleratorBusy { batches: 2, .. })));
        assert_eq!((kept.numbers(), report.lock().unwrap().events), (vec![0, 1], 0));
        assert_eq!((driver.calls("cuMemHostAlloc"), driver.calls("cuMemAlloc_v2")), (4, 4));
        boards.receiver.finish(boards.now).unwrap();
        assert_eq!(kept.numbers(), (0..7).collect::<Vec<u64>>());
        let report = report.lock().unwrap().clone();
        assert_eq!((report.events, report.compared_again, report.failure.as_ref()), (7, 0, None));
        let right = |board: &PatternReport| (board.messages, board.errors, board.gaps) == (7, 0, 0);
        assert!(report.waits > 0 && report.pattern.iter().flatten().all(right), "{report:?}");
        assert_eq!(
            (driver.calls("cuMemHostAlloc"), driver.calls("cuMemAlloc_v2")),
            (4, 4),
            "no memory was taken on the way"
        );
        drop((boards, gpu));
        driver.assert_clean();
    });
}

#[test]
fn a_gpu_that_fails_ends_its_own_work_and_not_the_run() {
    for (conf, reason, first) in [
        ("fail cuLaunchKernel 3 719", "cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): requested of the stand-in", 2),
        (
            "late 2\nfail cuStreamQuery 5 700",
            "cuStreamQuery: CUDA_ERROR_ILLEGAL_ADDRESS (700): requested of the stand-in",
            0,
        ),
        ("fail cuMemcpyHtoDAsync_v2 2 2", "cuMemcpyHtoDAsync: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", 0),
        ("fail cuStreamQuery 2 46", "cuStreamQuery: CUDA_ERROR_DEVICE_UNAVAILABLE (46): requested of the stand-in", 0),
    ] {
        with_driver(conf, |_| {
            let gpu = Gpu::open(0).unwrap();
            let results = Kept::default();
            let mut sink =
                OnGpu::new(Kept::default(), &gpu, GpuWork::Charges(Box::new(results.clone())), config(0)).unwrap();
            let payload = vec![1; 14 * MODULE_BYTES];
            for event in 0..12 {
                while let Err(error) = store(&mut sink, event, &[&payload[..]; 3]) {
                    assert!(error.is_busy(), "{error}");
                    sink.wait().unwrap();
                }
            }
            let error = sink.close().unwrap_err();
            let StoreError::Accelerator { event, reason: found, .. } = error else { panic!("{error}") };
            assert_eq!((&found[..], event), (reason, results.numbers().len() as u64), "{conf}");
            assert!(event >= first, "{conf}: {event}");
            assert_eq!(sink.inner().numbers(), (0..12).collect::<Vec<u64>>(), "{conf}");
            let report = report_of(&sink);
            assert_eq!((report.first_event_without, report.failure.as_deref()), (Some(event), Some(reason)), "{conf}");
            assert_eq!(
                results.numbers(),
                (0..event).collect::<Vec<u64>>(),
                "{conf}: no event is left out before the first"
            );
        });
    }
}

#[test]
fn what_is_not_there_is_an_error_with_its_remedy() {
    with_driver(BROKEN, |_| {
        let missing = Gpu::open(0).unwrap_err();
        assert!(matches!(missing, GpuError::NoDriver(_)) && missing.to_string().contains("libcuda.so.1"), "{missing}");
        assert!(missing.to_string().contains("install it (nothing else of CUDA is needed)"), "{missing}");
    });
    with_driver("version 11070", |_| {
        let old = Gpu::open(0).unwrap_err();
        assert_eq!(old, GpuError::OldDriver { version: 11_070 });
        assert!(old.to_string().contains("for CUDA 11.7, which is older than release 520 (CUDA 11.8)"), "{old}");
    });
    for (devices, index) in [(0, 0), (2, 2)] {
        with_driver(&format!("devices {devices}"), |_| {
            assert_eq!(Gpu::open(index).unwrap_err(), GpuError::NoDevice { index, count: devices });
        });
    }
    with_driver("fail cuModuleLoadData 1 222", |_| {
        let kernels = Gpu::open(0).unwrap_err().to_string();
        assert!(kernels.contains("CUDA_ERROR_UNSUPPORTED_PTX_VERSION") && kernels.contains("520"), "{kernels}");
    });
    with_driver("memory 100000", |driver| {
        let gpu = Gpu::open(0).unwrap();
        let work = GpuWork::Prbs31 { invert: true, boards: 3 };
        let error = OnGpu::new(Discard::default(), &gpu, work, config(80_000)).err().unwrap();
        assert_eq!((error.call, error.status, &error.name[..]), ("cuMemAlloc", 2, "CUDA_ERROR_OUT_OF_MEMORY"));
        drop(gpu);
        driver.assert_clean_after_failed("cuMemAlloc_v2");
    });
}

#[test]
fn an_event_that_no_batch_can_hold_ends_the_work_and_is_stored() {
    with_driver("", |_| {
        let gpu = Gpu::open(0).unwrap();
        let work = GpuWork::Prbs31 { invert: true, boards: 3 };
        let mut sink = OnGpu::new(Kept::default(), &gpu, work, config(0)).unwrap();
        store(&mut sink, 0, &[&[0; 100_000]]).unwrap();
        store(&mut sink, 1, &[&[0; 100]]).unwrap();
        let error = sink.close().unwrap_err().to_string();
        assert!(error.contains("event 0 has 100000 bytes in 1 fragments"), "{error}");
        assert_eq!(sink.inner().numbers(), [0, 1]);
    });
}
