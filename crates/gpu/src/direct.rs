// SPDX-License-Identifier: Apache-2.0
//! A back end whose NIC writes to the memory of a GPU: the rings are there, and the GPU reads received messages.
//! Promise: a completion is reported when header and CRC-32C of its message have arrived on the host, and the payload
//! if it is needed; in the order of the NIC's completions. A GPU that fails ends the run, and the number of lost
//! messages is reported.
//! Source: docs/gpu.md, "GPUDirect"; what makes a NIC's writes visible to kernels: [`Visibility`].
//!
//! ```text
//! NIC --WRITE--> ring on the device --> read_fragments --> header, CRC-32C --> host's side of the ring --> Completion
//!      completion, flush if need be ----^             \--> payload, if wanted --^
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use penstock_readout::backend::{
    self, Backend, BackendError, Completion, Counters, DeviceMemory, Latencies, LocalAddress, LocalQp, PeerQp,
    PollMode, PoolSpec, QpSpec, SessionClock, WritesDevice,
};
use penstock_readout::Mapping;
use penstock_transport::{Memory, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;

use crate::cuda::{CudaError, DirectError, DmaBuf, Gpu, Visibility};
use crate::reading::{Filled, Reading};
use crate::rings::{DeviceRing, DeviceRings};

/// Batches under way at most, beside the one that is filled.
const BATCHES: usize = 3;
/// Messages of a batch: what has come while the one before was read, and no more than that is waited for.
const MESSAGES: usize = 512;
/// How long an idle thread sleeps while the GPU is at work.
const PAUSE: Duration = Duration::from_micros(20);

/// `B` with its rings on a GPU.
pub struct GpuDirect<B> {
    clock: SessionClock,
    // Batches are waited for when they are dropped: before the memory that they read is.
    free: Vec<Reading>,
    under_way: VecDeque<Reading>,
    /// Messages that came from the NIC and are not with the GPU yet.
    taken: VecDeque<Completion>,
    polled: Vec<Completion>,
    inner: B,
    gpu: Arc<Gpu>,
    visibility: Visibility,
    slot_bytes: usize,
    /// Payloads are wanted on the host.
    fetching: bool,
    boards: BTreeMap<u16, Arc<DeviceRing>>,
    pool: Option<Arc<DeviceRing>>,
    rings: Arc<DeviceRings>,
    read: u64,
    batches: u64,
    flushes: u64,
    /// Why nothing can be read any more.
    lost: Option<String>,
}

impl<B: WritesDevice> GpuDirect<B> {
    /// Tries whether `inner` can write to this GPU, and takes memory for reading messages of at most `slot_bytes`.
    ///
    /// # Errors
    /// Who refused, and why; with the back end, which is as it was.
    pub fn new(
        mut inner: B,
        gpu: &Arc<Gpu>,
        slot_bytes: u32,
        clock: SessionClock,
    ) -> Result<GpuDirect<B>, Box<(B, DirectError)>> {
        let (visibility, free) = match GpuDirect::prepare(&mut inner, gpu, slot_bytes as usize) {
            Ok(prepared) => prepared,
            Err(error) => return Err(Box::new((inner, error))),
        };
        Ok(GpuDirect {
            clock,
            free,
            under_way: VecDeque::new(),
            taken: VecDeque::new(),
            polled: Vec::new(),
            inner,
            gpu: gpu.clone(),
            visibility,
            slot_bytes: slot_bytes as usize,
            fetching: true,
            boards: BTreeMap::new(),
            pool: None,
            rings: Arc::default(),
            read: 0,
            batches: 0,
            flushes: 0,
            lost: None,
        })
    }

    fn prepare(inner: &mut B, gpu: &Arc<Gpu>, slot_bytes: usize) -> Result<(Visibility, Vec<Reading>), DirectError> {
        let driver = |source| DirectError::Driver { gpu: gpu.index(), source };
        let (memory, visibility) = exported(gpu)?;
        inner.can_write(&memory).map_err(|error| refused(inner.device(), gpu, &error))?;
        let batches = (0..BATCHES).map(|_| Reading::new(gpu, MESSAGES, slot_bytes));
        Ok((visibility, batches.collect::<Result<_, _>>().map_err(driver)?))
    }

    /// The rings for [`crate::OnGpu::over`]: where messages lie on the device.
    pub fn rings(&self) -> Arc<DeviceRings> {
        self.rings.clone()
    }

    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// Where the message of a completion lies; none if there is nothing to be read.
    fn filled(&self, done: &Completion) -> Option<Filled> {
        let (ring, slot) = match &self.pool {
            // What a WRITE without a key of its own says of a pool is nothing.
            Some(pool) => (pool, (done.opcode == RecvOpcode::Send).then(|| done.receive())?),
            None => (self.boards.get(&done.board)?, done.slot()),
        };
        let at = (slot as usize).checked_mul(self.slot_bytes)?;
        let whole = at.checked_add(self.slot_bytes).is_some_and(|end| end <= ring.len());
        let good = done.status == RecvStatus::Success && whole;
        good.then(|| Filled { ring: ring.clone(), at, len: self.slot_bytes.min(done.byte_len as usize) })
    }

    /// Gives the GPU what has come, as far as there are batches.
    fn begin(&mut self) -> Result<(), CudaError> {
        while !self.taken.is_empty() {
            let Some(mut batch) = self.free.pop() else { return Ok(()) };
            while let Some(done) = self.taken.front() {
                if !batch.push(*done, self.filled(done)) {
                    break;
                }
                self.taken.pop_front();
            }
            let has_messages = batch.has_messages();
            self.under_way.push_back(batch);
            if !has_messages {
                continue; // in order behind those that have
            }
            if self.visibility == Visibility::Flushed {
                self.gpu.flush_writes()?;
                self.flushes += 1;
            }
            self.batches += 1;
            let fetching = self.fetching;
            self.under_way.back_mut().map_or(Ok(()), |batch| batch.start(fetching))?;
        }
        Ok(())
    }

    /// Tells what has been read; `waiting` for all.
    fn collect(&mut self, waiting: bool, out: &mut Vec<Completion>) -> Result<(), CudaError> {
        while let Some(batch) = self.under_way.front_mut() {
            if waiting {
                batch.wait()?;
            } else if !batch.poll_done()? {
                break;
            }
            let Some(mut batch) = self.under_way.pop_front() else { break };
            self.read += batch.finish(out);
            self.free.push(batch);
        }
        Ok(())
    }

    /// What has come goes to the GPU, what was read comes back.
    fn turn(&mut self, waiting: bool, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        if self.lost.is_none() {
            let mut turned = self.begin().and_then(|()| self.collect(waiting, out));
            while waiting && turned.is_ok() && !self.taken.is_empty() {
                turned = self.begin().and_then(|()| self.collect(true, out));
            }
            self.lost = turned.err().map(|error| self.loss(&error));
        }
        match &self.lost {
            None => Ok(()),
            Some(loss) => Err(BackendError::Unavailable(loss.clone())),
        }
    }

    /// What is lost with the GPU: messages that boards have been acknowledged and nobody has read.
    fn loss(&self, error: &CudaError) -> String {
        let mut boards = BTreeMap::new();
        for done in self.under_way.iter().flat_map(Reading::completions).chain(&self.taken) {
            *boards.entry(done.board).or_insert(0u64) += u64::from(done.status == RecvStatus::Success);
        }
        boards.retain(|_, messages| *messages > 0);
        let all: u64 = boards.values().sum();
        let mut named: Vec<String> = boards.iter().map(|(board, n)| format!("{n} of source {board}")).collect();
        if named.len() > 8 {
            let more = named.split_off(8).len();
            named.push(format!("and of {more} more"));
        }
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        format!(
            "GPU {} has failed, and the rings with it: {error}; {all} messages that were acknowledged to boards lie there \
             unread and are lost{named}, and what came after them",
            self.gpu.index()
        )
    }

    fn is_idle(&self) -> bool {
        self.under_way.is_empty() && self.taken.is_empty()
    }

    fn ring(&self, mapping: &Arc<Mapping>, len: usize) -> Result<Arc<DeviceRing>, BackendError> {
        let made = DeviceRing::new(&self.gpu, mapping.clone(), len).map_err(|error| {
            let gpu = self.gpu.index();
            BackendError::Unavailable(format!(
                "a ring of {len} bytes on GPU {gpu}: {error}; use fewer or smaller slots"
            ))
        })?;
        let made = Arc::new(made);
        self.rings.add(made.clone());
        Ok(made)
    }
}

/// A little memory of a GPU, to try whether a NIC can write there; and what a kernel needs to see it.
///
/// # Errors
/// The GPU exports none, or the driver's.
pub fn exported(gpu: &Arc<Gpu>) -> Result<(Arc<dyn DeviceMemory>, Visibility), DirectError> {
    let visibility = gpu.visibility()?;
    let memory = DmaBuf::allocate(gpu, 1).map_err(|source| DirectError::Driver { gpu: gpu.index(), source })?;
    Ok((Arc::new(memory), visibility))
}

/// The RDMA devices of this machine, and why memory of this GPU cannot be registered with them.
///
/// # Errors
/// libibverbs is not there; the kernel has no RDMA devices, or they may not be used.
pub fn devices_that_write(gpu: &Gpu, memory: &Arc<dyn DeviceMemory>) -> io::Result<Vec<(String, Option<DirectError>)>> {
    let with_refusal = |(name, tried): (String, io::Result<()>)| {
        let refusal = tried.err().map(|error| refused(&name, gpu, &error));
        (name, refusal)
    };
    Ok(backend::devices_that_write(memory)?.into_iter().map(with_refusal).collect())
}

/// What it means that a device has not registered memory of a GPU.
fn refused(device: &str, gpu: &Gpu, error: &io::Error) -> DirectError {
    let hint = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOSYS) => "; its driver cannot (mlx5 of Linux 5.12 and later can)",
        _ => "",
    };
    let (nic, reason) = (format!("the RDMA device {device}"), format!("ibv_reg_dmabuf_mr: {error}{hint}"));
    DirectError::Refused { nic, gpu: gpu.index(), reason }
}

impl<B: WritesDevice> Backend for GpuDirect<B> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn address(&self) -> LocalAddress {
        self.inner.address()
    }

    fn warning(&self) -> Option<String> {
        self.inner.warning()
    }

    fn fetch_payloads(&mut self, enabled: bool) {
        self.fetching = enabled;
    }

    fn has_kernel_manager(&self) -> bool {
        self.inner.has_kernel_manager()
    }

    fn share_receives(&mut self, spec: &PoolSpec) -> Result<u64, BackendError> {
        let ring = self.ring(&spec.memory, spec.len)?;
        let base = self.inner.share_receives_on(spec, &ring.memory())?;
        self.pool = Some(ring);
        Ok(base)
    }

    fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.inner.post_shared(receives)
    }

    fn ran_low(&mut self) -> u64 {
        self.inner.ran_low()
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        if self.pool.is_some() {
            return self.inner.create_qp(spec);
        }
        let ring = match self.boards.get(&spec.board) {
            Some(ring) => ring.clone(),
            None => {
                let made = self.ring(&spec.memory, spec.len)?;
                self.boards.insert(spec.board, made.clone());
                made
            }
        };
        self.inner.create_qp_on(spec, &ring.memory())
    }

    fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        if self.fetching {
            // Before anything can come.
            self.rings.pin(&self.gpu).map_err(|error| {
                BackendError::Unavailable(format!("pinning the rings' memory: {error}; use fewer or smaller slots"))
            })?;
        }
        self.inner.connect(board, peer)
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        self.inner.post_receives(board, receives)
    }

    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        let before = out.len();
        loop {
            let until = if self.is_idle() { deadline } else { Time::ZERO };
            self.inner.poll(memory, mode, until, &mut self.polled)?;
            self.taken.extend(self.polled.drain(..));
            self.turn(false, out)?;
            if out.len() > before || self.clock.now() >= deadline {
                return Ok(());
            }
            match mode.spin() {
                _ if self.is_idle() => {}
                None => std::hint::spin_loop(),
                Some(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        self.inner.close_qp(board, &mut self.polled)?;
        self.taken.extend(self.polled.drain(..));
        // What was received must be reported now: the ring may begin again at once.
        self.turn(true, out)
    }

    fn fault(&self, board: u16) -> Option<String> {
        self.inner.fault(board)
    }

    fn counters(&mut self) -> Counters {
        let mut counters = self.inner.counters();
        let counts = [("gpu_messages_read", self.read), ("gpu_batches", self.batches), ("gpu_flushes", self.flushes)];
        counters.extend(counts.map(|(name, value)| (name.into(), value)));
        counters
    }

    fn board_counters(&self, board: u16) -> Counters {
        self.inner.board_counters(board)
    }

    fn latencies(&self) -> Option<&Latencies> {
        self.inner.latencies()
    }
}
