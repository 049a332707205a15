// SPDX-License-Identifier: Apache-2.0
//! A sink that stores events in another sink and lets a GPU process them.
//! Promise: events are stored independently of the GPU. The sink waits for a slow GPU when all its memory is in use; if
//! a GPU fails, the first missing event and the reason are kept, and reported when the sink is closed.
//! The states of a batch are in `lib.rs`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_readout::{Event, EventSink, Kept, Pattern, PatternMonitor, PatternReport, StoreError};
use penstock_units::Time;
use serde::Serialize;

use crate::batch::{Batch, BatchSize, Done, Kernel};
use crate::cuda::{CudaError, Gpu};
use crate::rings::DeviceRings;

/// What the GPU is for.
pub enum GpuWork {
    /// PRBS-31 of so many boards is compared, as [`penstock_readout::Receiver::with_pattern`] does it.
    Prbs31 { invert: bool, boards: usize },
    /// Payloads are modules of the LST camera. The charge of every waveform (the sum of its 40 samples less 40 times
    /// their median) goes to this sink: the same events, with `int32` words, module by module 2 gains x 7 pixels, for
    /// payloads.
    Charges(Box<dyn EventSink>),
}

/// How much memory, and how long events wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuConfig {
    pub batch: BatchSize,
    /// Batches, at least 2: one is filled while another is under way.
    pub batches: usize,
    /// An event goes to the GPU after so long though its batch is not full.
    pub patience: Time,
}

/// What a GPU has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GpuReport {
    pub batches: u64,
    /// Events of which the results have come back, and bytes that were copied for them.
    pub events: u64,
    pub bytes: u64,
    /// How often the GPU was slower than the boards, and was waited for.
    pub waits: u64,
    /// Payloads that were not right in themselves, and were looked at by the processor again.
    pub compared_again: u64,
    /// Fragments that are no modules of the camera: without charges.
    pub not_of_the_camera: u64,
    /// Why its work ended early, and the first event without results.
    pub failure: Option<String>,
    pub first_event_without: Option<u64>,
    /// One for each board, once the sink is closed; none if no pattern was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Vec<PatternReport>>,
}

enum Results {
    Pattern(PatternMonitor),
    Charges(Box<dyn EventSink>),
}

/// What errors of storage call it.
const DEVICE: &str = "GPU";
/// How often results are looked for while a batch is under way.
const LOOK: Time = Time::from_us(200);

/// A sink with a GPU beside it.
pub struct OnGpu<S> {
    inner: S,
    results: Results,
    config: GpuConfig,
    /// Free batches; the one that is being filled is in front.
    free: VecDeque<Batch>,
    /// Batches under way, in the order in which they were sent.
    under_way: VecDeque<Batch>,
    /// Fragments are worked on in their slots, and events so many are done with.
    in_slots: bool,
    settled: u64,
    /// Events of the front one that are handed on.
    handed_on: usize,
    /// Boards that began anew since the last event.
    restarted: Vec<u16>,
    now: Time,
    /// When results are looked for again.
    next_look: Time,
    filling_since: Time,
    waiting: bool,
    report: Arc<Mutex<GpuReport>>,
}

impl<S: EventSink> OnGpu<S> {
    /// Takes all the memory that it will ever use.
    ///
    /// # Errors
    /// The driver's: no room on the device, or no more memory may be pinned.
    pub fn new(inner: S, gpu: &Arc<Gpu>, work: GpuWork, config: GpuConfig) -> Result<OnGpu<S>, CudaError> {
        OnGpu::make(inner, gpu, work, config, None)
    }

    /// The same over rings on that GPU: fragments are worked on where they lie, and their slots lent to it meanwhile.
    /// What was copied out of a pool is copied to the GPU.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn over(
        rings: Arc<DeviceRings>,
        inner: S,
        gpu: &Arc<Gpu>,
        work: GpuWork,
        config: GpuConfig,
    ) -> Result<OnGpu<S>, CudaError> {
        OnGpu::make(inner, gpu, work, config, Some(rings))
    }

    fn make(
        inner: S,
        gpu: &Arc<Gpu>,
        work: GpuWork,
        config: GpuConfig,
        rings: Option<Arc<DeviceRings>>,
    ) -> Result<OnGpu<S>, CudaError> {
        let (kernel, results) = match work {
            GpuWork::Prbs31 { invert, boards } => {
                (Kernel::Prbs31 { invert }, Results::Pattern(PatternMonitor::new(Pattern::Prbs31 { invert }, boards)))
            }
            GpuWork::Charges(sink) => (Kernel::Charges, Results::Charges(sink)),
        };
        let config = GpuConfig { batches: config.batches.max(2), ..config };
        let batches = (0..config.batches).map(|_| Batch::new(gpu, config.batch, kernel, rings.clone()));
        Ok(OnGpu {
            inner,
            results,
            config,
            free: batches.collect::<Result<_, _>>()?,
            under_way: VecDeque::new(),
            in_slots: rings.is_some(),
            settled: 0,
            handed_on: 0,
            restarted: Vec::new(),
            now: Time::ZERO,
            next_look: Time::ZERO,
            filling_since: Time::ZERO,
            waiting: false,
            report: Arc::default(),
        })
    }

    /// What has been done so far; stays up to date.
    pub fn report(&self) -> Arc<Mutex<GpuReport>> {
        self.report.clone()
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn noted(&self) -> MutexGuard<'_, GpuReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_failed(&self) -> bool {
        self.noted().failure.is_some()
    }

    /// The GPU's work is over. What lies in batches is lost to it, beginning with the first event not handed on.
    fn fail(&mut self, event: Option<u64>, reason: String) {
        let in_batches = || {
            let batches = self.under_way.iter().chain(&self.free).filter(|batch| !batch.is_empty());
            let skipped = if self.under_way.is_empty() { 0 } else { self.handed_on };
            batches.take(1).map(|batch| batch.event(skipped.min(batch.events() - 1)).number()).next()
        };
        let first = in_batches().or(event);
        tracing::error!(reason, first_event_without = first, "the GPU's work ends; events are stored all the same");
        let mut report = self.noted();
        (report.failure, report.first_event_without) = (Some(reason), first);
        drop(report);
        // Waits for what is still under way, and gives the memory back.
        self.under_way.clear();
        self.free.clear();
    }

    /// Sends the batch that is being filled.
    fn send(&mut self) -> Result<(), CudaError> {
        if let Some(mut batch) = self.free.pop_front() {
            let started = batch.start();
            self.under_way.push_back(batch);
            self.noted().batches += 1;
            started?;
        }
        Ok(())
    }

    /// Hands on what has come back; `waiting` for the first batch that has not.
    fn collect(&mut self, mut waiting: bool) -> Result<(), StoreError> {
        while let Some(batch) = self.under_way.front_mut() {
            let done = if std::mem::take(&mut waiting) { batch.wait().map(|()| true) } else { batch.poll_done() };
            match done {
                Ok(true) => self.hand_on()?,
                Ok(false) => break,
                Err(error) => {
                    self.fail(None, error.to_string());
                    break;
                }
            }
        }
        Ok(())
    }

    /// The results of the front batch, which is done. What could not be handed on is tried again.
    fn hand_on(&mut self) -> Result<(), StoreError> {
        let Some(batch) = self.under_way.front() else { return Ok(()) };
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        while self.handed_on < batch.events() {
            let event = batch.event(self.handed_on);
            match &mut self.results {
                Results::Charges(sink) => {
                    event.with_charges(|event| sink.store(event))?;
                    report.not_of_the_camera += event.not_of_the_camera() as u64;
                }
                Results::Pattern(monitor) => match compare(monitor, &event) {
                    Ok(again) => report.compared_again += again,
                    Err(error) => {
                        drop(report);
                        self.fail(None, error.to_string());
                        return Ok(());
                    }
                },
            }
            report.events += 1;
            self.handed_on += 1;
        }
        report.bytes += batch.bytes() as u64;
        drop(report);
        self.handed_on = 0;
        if let Some(mut batch) = self.under_way.pop_front() {
            self.settled += batch.events() as u64;
            batch.clear();
            self.free.push_back(batch);
        }
        Ok(())
    }

    /// A batch with room for an event is in front of `free` when this is `Ok`, unless the GPU's work is over.
    fn make_room(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.free.front().is_some_and(|batch| batch.has_room_for(event)) {
            self.waiting = false;
            return Ok(());
        }
        self.collect(false)?;
        if self.free.front().is_some_and(|batch| !batch.is_empty()) {
            if let Err(error) = self.send() {
                self.fail(Some(event.number), error.to_string());
            }
        }
        if self.has_failed() {
            return Ok(());
        }
        let Some(batch) = self.free.front() else {
            self.noted().waits += u64::from(!self.waiting);
            self.waiting = true;
            return Err(StoreError::AcceleratorBusy { device: DEVICE, batches: self.config.batches });
        };
        self.waiting = false;
        if !batch.has_room_for(event) {
            let BatchSize { bytes, fragments } = self.config.batch;
            let (has, of) = (event.payload_bytes(), event.fragments.len());
            let reason = format!(
                "event {} has {has} bytes in {of} fragments, more than a batch of {bytes} bytes and {fragments} fragments",
                event.number
            );
            self.fail(Some(event.number), reason);
        }
        Ok(())
    }

    fn close_results(&mut self) -> Result<(), StoreError> {
        match &mut self.results {
            Results::Charges(sink) => sink.close(),
            Results::Pattern(monitor) => {
                let reports = monitor.reports().to_vec();
                self.noted().pattern = Some(reports);
                Ok(())
            }
        }
    }
}

/// An event's payloads, in order of source. Returns how many the processor had to look at.
fn compare(monitor: &mut PatternMonitor, event: &Done<'_>) -> Result<u64, CudaError> {
    event.restarted().iter().for_each(|&board| monitor.begin_anew(board));
    monitor.event(event.number(), event.missing());
    let mut again = 0;
    for compared in event.compared() {
        let (source, right) = (compared.source, compared.found.is_some_and(|found| found.bits == 0));
        if !(right && monitor.right_payload(source, event.number(), compared.ends(), compared.len())) {
            monitor.payload(source, Some(event.number()), &compared.payload()?);
            again += 1;
        }
    }
    Ok(again)
}

impl<S: EventSink> EventSink for OnGpu<S> {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        self.make_room(event)?;
        self.inner.store(event)?;
        if let Some(batch) = self.free.front_mut() {
            if batch.is_empty() {
                self.filling_since = self.now;
            }
            batch.push(event, &self.restarted);
        }
        self.restarted.clear();
        Ok(())
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.now = now;
        self.inner.handle_timeout(now)?;
        if let Results::Charges(sink) = &mut self.results {
            sink.handle_timeout(now)?;
        }
        if now >= self.next_look {
            self.next_look = now.saturating_add(LOOK);
            self.collect(false)?;
        }
        let due = now >= self.filling_since.saturating_add(self.config.patience);
        if due && self.free.front().is_some_and(|batch| !batch.is_empty()) {
            if let Err(error) = self.send() {
                self.fail(None, error.to_string());
            }
        }
        Ok(())
    }

    fn reconnected(&mut self, board: u16) {
        self.inner.reconnected(board);
        self.restarted.push(board);
    }

    fn needs_payloads(&self) -> bool {
        !self.in_slots || self.inner.needs_payloads()
    }

    /// A GPU that has failed reads nothing any more.
    fn settled(&self) -> u64 {
        let ours = if self.in_slots && !self.has_failed() { self.settled } else { u64::MAX };
        ours.min(self.inner.settled())
    }

    fn kept(&self) -> Option<Kept> {
        self.inner.kept()
    }

    fn give_up(&mut self) {
        self.inner.give_up();
    }

    fn poll_timeout(&self) -> Option<Time> {
        let under_way = (!self.under_way.is_empty()).then_some(self.next_look);
        let filling = self.free.front().filter(|batch| !batch.is_empty());
        let filling = filling.map(|_| self.filling_since.saturating_add(self.config.patience));
        let results = match &self.results {
            Results::Charges(sink) => sink.poll_timeout(),
            Results::Pattern(_) => None,
        };
        [under_way, filling, results, self.inner.poll_timeout()].into_iter().flatten().min()
    }

    fn wait(&mut self) -> Result<(), StoreError> {
        if self.free.is_empty() {
            match self.collect(true) {
                Err(error) if error.is_busy() => {}
                other => other?,
            }
        }
        if let Results::Charges(sink) = &mut self.results {
            sink.wait()?;
        }
        self.inner.wait()
    }

    /// Waits for the GPU. What it could not do is an error, when all else is closed.
    fn close(&mut self) -> Result<(), StoreError> {
        if self.free.front().is_some_and(|batch| !batch.is_empty()) {
            if let Err(error) = self.send() {
                self.fail(None, error.to_string());
            }
        }
        while !self.under_way.is_empty() {
            match self.collect(true) {
                Err(error) if error.is_busy() => self.wait()?,
                other => other?,
            }
        }
        self.close_results()?;
        self.inner.close()?;
        let report = self.noted();
        match (&report.failure, report.first_event_without) {
            (Some(reason), event) => {
                let (event, reason) = (event.unwrap_or_default(), reason.clone());
                Err(StoreError::Accelerator { device: DEVICE, event, reason })
            }
            (None, _) => Ok(()),
        }
    }
}
