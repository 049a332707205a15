// SPDX-License-Identifier: Apache-2.0
//! The back end over an RDMA NIC, or over the kernel's `rdma_rxe`: the NIC writes the rings, this code takes
//! completions.
//! Promise: each board has its own registration, which no other board's queue pair can write; after `close_qp` nothing
//! is written, and all messages acknowledged before it have been reported.
//! Source: ARCHITECTURE.md, "The way of a fragment"; FEROCE (queue pairs of a DAQ server); libibverbs 44.

mod board;
mod device;
mod pulled;
mod reads;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use penstock_transport::{Memory, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, Psn, Qpn, ANNOUNCEMENT_SLOTS, PULL_READS};

use super::lending::Lending;
use super::responders::NO_ANNOUNCEMENT;
use super::{
    Backend, BackendError, Completion, Counters, DeviceMemory, LocalAddress, LocalQp, PeerQp, PollMode, PoolSpec,
    QpSpec, SessionClock, WritesDevice,
};
use crate::sys::verbs::{
    device_names, library_is_there, status_name, CompletionQueue, Context, Domain, Outgoing, QueuePair, Receives,
    Registration, Remote, Source, WorkCompletion, Written, FLUSHED,
};
use board::{failed, tag, Board};
use pulled::Pulled;
use reads::{Reads, MOST_COMPLETIONS};

pub use device::{Found, GidChoice, VerbsConfig};

/// Completions that a queue holds at first; it grows with the boards.
const FIRST_DEPTH: u32 = 1024;

/// The slots that all queue pairs share. Each queue pair has receives of its own, of slots that it is lent: the shared
/// queue of a NIC (SRQ) would serve requests in order of arrival, even if others need the remaining receives.
struct Pool {
    registration: Arc<Registration>,
    max_receives: u32,
    lending: Lending,
    /// Boards of the queue pairs that are there.
    by_qpn: BTreeMap<u32, u16>,
    /// Receives that are posted and have not completed, and the board of their queue pair.
    filling: BTreeMap<u64, u16>,
    /// How many messages boards may still send, where that is limited.
    bounds: BTreeMap<u16, u64>,
}

impl Pool {
    fn bound(&self, board: u16) -> u64 {
        self.bounds.get(&board).copied().unwrap_or(u64::MAX)
    }
}

/// Queue pairs of one device, over one completion queue.
pub struct Verbs {
    clock: SessionClock,
    found: Found,
    warning: Option<String>,
    source: Source,
    boards: BTreeMap<u16, Board>,
    pool: Option<Pool>,
    /// None: boards send.
    pulled: Option<Pulled>,
    /// First PSNs of queue pairs by their peers', where these set them.
    first_psns: BTreeMap<(Ipv4Addr, Qpn), Psn>,
    /// Lives that each board has begun.
    lives: BTreeMap<u16, u16>,
    completions: Arc<CompletionQueue>,
    depth: u32,
    domain: Arc<Domain>,
    context: Arc<Context>,
}

impl Verbs {
    /// Opens the device that `config` names, or the only one there is.
    ///
    /// # Errors
    /// `Unavailable`: no library, no device, no GID that boards can send to; what there is, is in the message.
    pub fn open(config: &VerbsConfig, clock: SessionClock) -> Result<Verbs, BackendError> {
        let (context, found) = device::open(config)?;
        let domain = Domain::new(&context).map_err(failed("allocating a protection domain"))?;
        let completions = CompletionQueue::new(&context, FIRST_DEPTH).map_err(failed("creating a completion queue"))?;
        let source = Source { port: found.entry.port, gid_index: found.entry.index };
        let (boards, first_psns, lives) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let warning = config.mtu.filter(|mtu| *mtu > found.mtu).map(|mtu| {
            let (device, interface, limit) = (&found.device, &found.interface, found.mtu.bytes());
            format!(
                "{device} takes a path MTU of {limit} at most, {} is asked for: boards will not come up; ip link set \
                 {interface} mtu 4200 or more, or --mtu {limit} here and at the boards",
                mtu.bytes()
            )
        });
        let (pool, pulled, depth) = (None, config.pull.as_ref().map(Pulled::new).transpose()?, FIRST_DEPTH);
        Ok(Verbs {
            clock,
            found,
            warning,
            source,
            boards,
            pool,
            pulled,
            first_psns,
            lives,
            completions,
            depth,
            domain,
            context,
        })
    }

    /// The device, port and GID in use; its `Display` is one line for people.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Makes room for all receives of all boards: a completion queue that overflows is lost, with all queue pairs.
    fn make_room(&mut self, more: u32) -> Result<(), BackendError> {
        let of_boards: u32 = self.boards.values().map(|board| board.most_completions).sum();
        let posted = of_boards + self.pool.as_ref().map_or(0, |pool| pool.max_receives);
        let needed = (posted + more).next_power_of_two();
        if needed <= self.depth {
            return Ok(());
        }
        if self.boards.is_empty() {
            // Not every driver can resize; nothing uses the queue yet, so make a new one.
            self.completions = CompletionQueue::new(&self.context, needed)
                .map_err(failed(format!("creating a completion queue for {needed} completions")))?;
        } else {
            let action = format!("growing the completion queue to {needed} completions; use fewer boards or slots");
            self.completions.resize(needed).map_err(failed(action))?;
        }
        self.depth = needed;
        Ok(())
    }

    fn board(&mut self, board: u16) -> Result<&mut Board, BackendError> {
        self.boards.get_mut(&board).ok_or(BackendError::NoQp { board })
    }

    /// Takes all completions that are there. Returns whether there was one.
    fn take(&mut self, out: &mut Vec<Completion>) -> Result<bool, BackendError> {
        let (boards, pool) = (&mut self.boards, &mut self.pool);
        let before = out.len();
        let taken = self.completions.poll(|wc| match pool {
            Some(pool) => out.extend(of_pool(boards, pool, &wc)),
            None => out.extend(completion(boards, &wc)),
        });
        taken.map_err(failed("polling the completion queue"))?;
        Ok(out.len() > before)
    }

    /// The same, and reads what boards have announced.
    fn take_all(&mut self, memory: &mut dyn Memory, out: &mut Vec<Completion>) -> Result<bool, BackendError> {
        match &mut self.pulled {
            Some(pulled) => pulled.turn(self.clock.now(), &self.completions, &mut self.boards, memory, out)?,
            None => return self.take(out),
        }
        Ok(!out.is_empty())
    }

    fn share_over(&mut self, spec: &PoolSpec, memory: Written) -> Result<u64, BackendError> {
        let (max_receives, base) = (spec.max_receives, memory.addr());
        self.make_room(max_receives)?;
        let registration =
            Registration::local(&self.domain, memory, spec.len).map_err(failed(registering("pool", spec.len)))?;
        let (registration, lending) = (Arc::new(registration), Lending::new(spec));
        let (by_qpn, filling, bounds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        self.pool = Some(Pool { registration, max_receives, lending, by_qpn, filling, bounds });
        Ok(base)
    }

    fn create_over(&mut self, spec: &QpSpec, memory: Written) -> Result<LocalQp, BackendError> {
        let QpSpec { board, .. } = *spec;
        if self.boards.contains_key(&board) {
            return Err(BackendError::HasQp { board });
        }
        let register = |access: fn(&Arc<Domain>, Written, usize) -> io::Result<Registration>| {
            let done = access(&self.domain, memory.clone(), spec.len);
            done.map_err(failed(registering(&format!("board {board}"), spec.len)))
        };
        let ring = memory.addr();
        let outgoing = self.pulled.as_ref().map_or(Outgoing::NONE, Pulled::outgoing);
        let (mut most_completions, mut reads) = (spec.max_receives, None);
        let (receives, max_receives, base) = match (&self.pool, &self.pulled) {
            (Some(pool), _) => {
                most_completions = pool.lending.ahead() as u32;
                (Receives::Pool(pool.registration.clone()), most_completions, 0)
            }
            (None, Some(pulled)) => {
                most_completions = MOST_COMPLETIONS;
                let action = format!("board {board}: memory for its announcements");
                let of_board = Reads::new(register(Registration::local)?, spec.max_receives, pulled.reading());
                let of_board = of_board.map_err(failed(action.clone()))?;
                let registration = of_board.register(&self.domain).map_err(failed(action))?;
                let base = of_board.base();
                reads = Some(of_board);
                (Receives::PerQueuePair(registration), ANNOUNCEMENT_SLOTS, base)
            }
            (None, None) => (Receives::PerQueuePair(register(Registration::new)?), spec.max_receives, ring),
        };
        if self.pool.is_none() {
            self.make_room(most_completions)?;
        }
        let qp = QueuePair::new(receives, &self.completions, (max_receives, outgoing), self.source)
            .map_err(failed(format!("board {board}: creating a queue pair with {max_receives} receives")))?;
        let psn = getrandom::u32().map_err(io::Error::other).map_err(failed("drawing a PSN"))?;
        let psn = Psn::new(psn);
        let local = LocalQp { qpn: Qpn::new(qp.number()), psn, rkey: qp.rkey(), base, ring, ip: self.found.address.ip };
        let life = self.lives.entry(board).or_default();
        *life = life.wrapping_add(1);
        if let Some(pool) = &mut self.pool {
            pool.by_qpn.insert(qp.number(), board);
        }
        let (life, fault) = (*life, None);
        let of_board = Board { qp, reads, most_completions, life, psn, posted: 0, connected: false, fault };
        self.boards.insert(board, of_board);
        Ok(local)
    }

    /// Posts the receives of the pool that boards may have now.
    fn lend(&mut self) -> Result<(), BackendError> {
        let pool = self.pool.as_mut().ok_or(BackendError::NoPool)?;
        let mut lent = Vec::new();
        for (&board, of) in self.boards.iter_mut().filter(|(_, of)| of.connected && of.fault.is_none()) {
            let most = pool.bound(board).min(pool.lending.ahead() as u64) as usize;
            let missing = most.saturating_sub(of.posted as usize);
            lent.extend(std::iter::from_fn(|| pool.lending.lend(board)).take(missing));
            of.qp.post(&lent).map_err(failed(format!("board {board}: posting {} receives", lent.len())))?;
            of.posted += lent.len() as u32;
            pool.filling.extend(lent.drain(..).map(|wr| (wr.wr_id, board)));
        }
        Ok(())
    }

    /// Takes what a queue pair in ERR has received. Its receives all end: those that were filled, and then, flushed,
    /// those that were not. Destroying it first would lose what is still in the completion queue.
    fn take_last(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        let until = self.clock.now().saturating_add(COMES_BACK);
        loop {
            let late = self.clock.now() >= until;
            while self.take(out)? {}
            if late || self.board(board)?.posted == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

impl Backend for Verbs {
    fn name(&self) -> &'static str {
        "verbs"
    }

    fn address(&self) -> LocalAddress {
        self.found.address
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    fn share_receives(&mut self, spec: &PoolSpec) -> Result<u64, BackendError> {
        self.share_over(spec, Written::Host(spec.memory.clone()))
    }

    fn post_shared(&mut self, receives: &[RecvWr]) -> Result<(), BackendError> {
        let pool = self.pool.as_mut().ok_or(BackendError::NoPool)?;
        receives.iter().for_each(|wr| pool.lending.post(*wr));
        self.lend()
    }

    fn bound(&mut self, board: u16, most: u64) -> Result<(), BackendError> {
        let pool = self.pool.as_mut().ok_or(BackendError::NoPool)?;
        let is_more = most > pool.bound(board);
        pool.bounds.insert(board, most);
        if is_more {
            self.lend()?;
        }
        Ok(())
    }

    fn ran_low(&mut self) -> u64 {
        self.pool.as_mut().map_or(0, |pool| pool.lending.ran_low())
    }

    fn create_qp(&mut self, spec: &QpSpec) -> Result<LocalQp, BackendError> {
        self.create_over(spec, Written::Host(spec.memory.clone()))
    }

    fn connect(&mut self, board: u16, peer: &PeerQp) -> Result<(), BackendError> {
        let (source, limit, device) = (self.source, self.found.mtu, self.found.device.clone());
        let outgoing = self.pulled.as_ref().map_or(Outgoing::NONE, Pulled::outgoing);
        let first_psn = self.first_psns.get(&(peer.ip, peer.qpn)).copied();
        let connected = &mut self.board(board)?.connected;
        if peer.mtu > limit {
            return Err(BackendError::Unavailable(format!(
                "board {board} uses a path MTU of {}, but {device} takes {} at most: raise the MTU of its interface to \
                 that plus 60 or more (4200 for 4096)",
                peer.mtu.bytes(),
                limit.bytes()
            )));
        }
        let remote = Remote {
            gid: peer.ip.to_ipv6_mapped().octets(),
            qpn: peer.qpn.value(),
            psn: peer.psn.value(),
            mtu: peer.mtu,
            rnr_timer: peer.rnr_timer.code(),
        };
        *connected = true;
        if let Some(pool) = &mut self.pool {
            pool.lending.connect(board);
            self.lend()?;
        }
        let Board { qp, psn, .. } = self.board(board)?;
        qp.ready_to_receive(&remote, source).map_err(|source| {
            let action = if source.kind() == io::ErrorKind::TimedOut {
                format!("board {board}: nobody answers ARP for {}; is it on, and on this network?", peer.ip)
            } else {
                format!("board {board}: connecting to {} (RTR)", peer.ip)
            };
            BackendError::Io { action: action.into(), source }
        })?;
        let reads =
            if outgoing.reads > 0 { format!(", with {} READs at a time", outgoing.reads) } else { String::new() };
        let connecting = format!("board {board}: connecting (RTS{reads})");
        qp.ready_to_send(first_psn.unwrap_or(*psn).value(), outgoing).map_err(failed(connecting))
    }

    fn post_receives(&mut self, board: u16, receives: &[RecvWr]) -> Result<(), BackendError> {
        let Board { qp, reads, life, posted, .. } = self.board(board)?;
        if let Some(reads) = reads {
            reads.puller.post(receives);
            return Ok(());
        }
        let tag = tag(board, *life);
        let tagged = |wr: &RecvWr| RecvWr { wr_id: tag | wr.wr_id & SLOT_MASK, ..*wr };
        let tagged: Vec<_> = receives.iter().map(tagged).collect();
        qp.post(&tagged).map_err(failed(format!("board {board}: posting {} receives", receives.len())))?;
        *posted += receives.len() as u32;
        Ok(())
    }

    fn poll(
        &mut self,
        memory: &mut dyn Memory,
        mode: PollMode,
        deadline: Time,
        out: &mut Vec<Completion>,
    ) -> Result<(), BackendError> {
        self.pulled.iter_mut().for_each(Pulled::wake);
        let spin_until = mode.spin().map(|spin| self.clock.now().saturating_add(Time::from_duration(spin)));
        loop {
            if self.take_all(memory, out)? {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= deadline {
                return Ok(());
            }
            if spin_until.is_none_or(|until| now < until) {
                std::hint::spin_loop();
                continue;
            }
            self.completions.request_event().map_err(failed("asking for an event"))?;
            if self.take_all(memory, out)? {
                return Ok(());
            }
            let until = self.pulled.as_ref().map_or(deadline, |pulled| deadline.min(pulled.due()));
            self.completions.sleep(self.clock.until(until)).map_err(failed("waiting for an event"))?;
        }
    }

    fn close_qp(&mut self, board: u16, out: &mut Vec<Completion>) -> Result<(), BackendError> {
        match self.boards.get_mut(&board) {
            None => return Ok(()),
            // What has not been taken stays at the board.
            Some(Board { reads: Some(reads), .. }) => {
                self.pulled.iter_mut().for_each(|pulled| pulled.end(board, reads))
            }
            Some(of) if of.connected => {
                of.qp.give_up().map_err(failed(format!("board {board}: ending its queue pair")))?;
                self.take_last(board, out)?;
            }
            Some(_) => {}
        }
        if let (Some(Board { qp, .. }), Some(pool)) = (self.boards.remove(&board), &mut self.pool) {
            pool.by_qpn.remove(&qp.number());
            pool.lending.disconnect(board);
            drop(qp); // nothing is written any more
            pool.filling.retain(|wr_id, of| {
                let left = *of == board;
                out.extend(left.then(|| unfilled(board, *wr_id)));
                !left
            });
        }
        Ok(())
    }

    /// `rdma_rxe` of Linux 6.1 flushes no receives when a peer breaks the protocol, so the state is asked for too.
    fn fault(&self, board: u16) -> Option<String> {
        let Board { qp, fault, reads, .. } = self.boards.get(&board)?;
        if let Some(fault) = reads.as_ref().and_then(Reads::fault) {
            return Some(fault);
        }
        if let Some(status) = fault.filter(|status| *status != FLUSHED) {
            return Some(format!("{status}: a request of the board was refused"));
        }
        let hint = if reads.is_some() { NO_ANNOUNCEMENT } else { "" };
        qp.is_in_error().unwrap_or(true).then(|| {
            format!(
                "the queue pair is in ERR, and the NIC does not say why: the board has another path MTU, other slots, or \
                 a wrong key; compare --mtu, --slots and --slot-size of both ends{hint}"
            )
        })
    }

    fn is_unanswered(&self, board: u16) -> bool {
        self.boards.get(&board).and_then(|of| of.reads.as_ref()).is_some_and(Reads::is_unanswered)
    }

    fn is_settled(&self) -> bool {
        self.boards.values().filter_map(|of| of.reads.as_ref()).all(Reads::is_settled)
    }

    /// What the boards are not read for stays with them.
    fn admits_before_ack(&self) -> bool {
        self.pulled.is_some()
    }

    fn has_kernel_manager(&self) -> bool {
        true
    }

    fn set_first_psns(&mut self, psns: BTreeMap<(Ipv4Addr, Qpn), Psn>) {
        self.first_psns = psns;
    }

    fn outstanding_reads(&self) -> u8 {
        if self.pulled.is_some() {
            PULL_READS
        } else {
            0
        }
    }

    fn board_counters(&self, board: u16) -> Counters {
        let reads = self.boards.get(&board).and_then(|of| of.reads.as_ref());
        self.pulled.as_ref().map_or_else(Counters::new, |pulled| pulled.board_counters(board, reads))
    }

    /// The port's `hw_counters`, by the kernel's names.
    fn counters(&mut self) -> Counters {
        let Found { device, entry, .. } = &self.found;
        let folder = format!("/sys/class/infiniband/{device}/ports/{}/hw_counters", entry.port);
        let of_pull = self.pulled.iter().flat_map(Pulled::counters);
        let Ok(files) = fs::read_dir(folder) else { return of_pull.collect() };
        let value = |file: fs::DirEntry| {
            let name = file.file_name().into_string().ok()?;
            let value = fs::read_to_string(file.path()).ok()?.trim().parse().ok()?;
            (name != "lifespan").then_some((name.into(), value))
        };
        let mut counters: Counters = files.flatten().filter_map(value).chain(of_pull).collect();
        counters.sort();
        counters
    }
}

impl WritesDevice for Verbs {
    fn device(&self) -> &str {
        &self.found.device
    }

    fn can_write(&mut self, memory: &Arc<dyn DeviceMemory>) -> io::Result<()> {
        Registration::new(&self.domain, Written::Device(memory.clone()), memory.len()).map(drop)
    }

    fn create_qp_on(&mut self, spec: &QpSpec, memory: &Arc<dyn DeviceMemory>) -> Result<LocalQp, BackendError> {
        self.create_over(spec, Written::Device(memory.clone()))
    }

    fn share_receives_on(&mut self, spec: &PoolSpec, memory: &Arc<dyn DeviceMemory>) -> Result<u64, BackendError> {
        self.share_over(spec, Written::Device(memory.clone()))
    }
}

/// The RDMA devices of this machine, and whether this memory can be registered with each.
///
/// # Errors
/// The library is not there; the kernel has no RDMA devices, or they may not be used.
pub fn devices_that_write(memory: &Arc<dyn DeviceMemory>) -> io::Result<Vec<(String, io::Result<()>)>> {
    let try_one = |name: String| {
        let domain = Context::open(&name).and_then(|context| Domain::new(&context));
        let tried = domain.and_then(|domain| Registration::new(&domain, Written::Device(memory.clone()), memory.len()));
        (name, tried.map(drop))
    };
    if !library_is_there() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "libibverbs.so.1 is not on this machine"));
    }
    Ok(device_names()?.into_iter().map(try_one).collect())
}

/// Within this a driver has flushed a queue pair that was put into ERR.
const COMES_BACK: Time = Time::from_ms(100);

/// A receive of the pool that its queue pair has not filled.
fn unfilled(board: u16, wr_id: u64) -> Completion {
    let (status, opcode) = (RecvStatus::WrFlushErr, RecvOpcode::Send);
    Completion { board, wr_id, status, opcode, imm: None, byte_len: 0, payload_crc: None }
}

/// A completion of the pool; none of a queue pair that is gone.
fn of_pool(boards: &mut BTreeMap<u16, Board>, pool: &mut Pool, wc: &WorkCompletion) -> Option<Completion> {
    let board = *pool.by_qpn.get(&wc.qpn)?;
    let of = boards.get_mut(&board)?;
    pool.filling.remove(&wc.wr_id)?;
    of.posted -= 1;
    let status = status_of(wc.status);
    match (status, pool.bounds.get_mut(&board)) {
        (RecvStatus::Success, Some(bound)) => *bound = bound.saturating_sub(1),
        (RecvStatus::Success, None) => {}
        _ => _ = of.fault.get_or_insert(status_name(wc.status)),
    }
    let opcode = opcode_of(wc);
    let (wr_id, imm, byte_len) = (wc.wr_id, wc.imm, wc.byte_len);
    Some(Completion { board, wr_id, status, opcode, imm, byte_len, payload_crc: None })
}

fn status_of(status: u32) -> RecvStatus {
    match status_name(status) {
        "IBV_WC_SUCCESS" => RecvStatus::Success,
        "IBV_WC_LOC_LEN_ERR" => RecvStatus::LocLenErr,
        FLUSHED => RecvStatus::WrFlushErr,
        _ => RecvStatus::RemInvReqErr,
    }
}

fn opcode_of(wc: &WorkCompletion) -> RecvOpcode {
    if wc.is_write {
        RecvOpcode::WriteImm
    } else {
        RecvOpcode::Send
    }
}

fn registering(what: &str, len: usize) -> String {
    format!("{what}: registering {len} bytes (if it is the limit of locked memory: `ulimit -l unlimited`)")
}

/// Slots are 32 bits of a work request's number; `NO_SLOT` has all of them set.
const SLOT_MASK: u64 = u32::MAX as u64;

/// A completion of a board's present life; none if that life is over.
fn completion(boards: &mut BTreeMap<u16, Board>, wc: &WorkCompletion) -> Option<Completion> {
    let (board, life) = ((wc.wr_id >> 48) as u16, (wc.wr_id >> 32) as u16);
    let of = boards.get_mut(&board).filter(|of| of.life == life)?;
    of.posted = of.posted.saturating_sub(1);
    let slot = wc.wr_id & SLOT_MASK;
    let status = status_of(wc.status);
    if status != RecvStatus::Success {
        of.fault.get_or_insert(status_name(wc.status));
    }
    Some(Completion {
        board,
        wr_id: if slot == SLOT_MASK { crate::ring::NO_SLOT } else { slot },
        status,
        opcode: opcode_of(wc),
        imm: wc.imm,
        byte_len: wc.byte_len,
        payload_crc: None,
    })
}
