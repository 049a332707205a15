// SPDX-License-Identifier: Apache-2.0
//! Receives given messages by verbs and reports the result: the far end of `tests/softroce`.
//! Promise: prints the local ends (one JSON line), then all completions, faults, counters and times (one JSON line),
//! for each life of the queue pairs. Usage: `verbs_sink '{"qps": [{"ip": "10.0.0.2", "qpn": 17, ...}], ...}'`, see
//! `Plan`.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use penstock_readout::backend::{
    Backend, Completion, PeerQp, PollMode, PoolSpec, QpSpec, SessionClock, Verbs, VerbsConfig,
};
use penstock_readout::{Pages, RingMemory};
use penstock_transport::{Mtu, RecvOpcode, RecvStatus, RecvWr};
use penstock_units::Time;
use penstock_wire::{Ipv4Addr, Payload, Psn, Qpn, RnrTimer};
use serde::Deserialize;
use serde_json::{json, Value};

/// What to do.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Plan {
    device: Option<String>,
    gid: Option<String>,
    poll: String,
    qps: Vec<Peer>,
    slots: u32,
    slot_bytes: u32,
    /// Receives posted at first; one more for each completion.
    receives: u32,
    /// All queue pairs share one pool of `slots`; what came is dumped one behind the other.
    shared: bool,
    /// Successful completions to wait for, of all queue pairs together.
    messages: usize,
    /// No receive is posted again until the device has refused a message for want of one (RNR NAK): a consumer that is
    /// slower than its peer on any machine.
    until_refused: bool,
    timeout_s: f64,
    /// How often the queue pairs are opened, with `messages` each time, and closed.
    lives: u32,
    /// The queue pairs stay open until this file exists: the last acknowledgement may be lost on its way, and then the
    /// peer needs it once more. `timeout_s` at most.
    hold_until: Option<PathBuf>,
    /// Nothing is taken before the queue pairs are closed: what closing them returns is all.
    unpolled: bool,
    /// Files that get the memory of the rings at the end: this name and the number of the queue pair.
    dump: Option<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            device: None,
            gid: None,
            poll: "hybrid".into(),
            qps: Vec::new(),
            slots: 16,
            slot_bytes: 4096,
            receives: 16,
            shared: false,
            messages: 1,
            until_refused: false,
            timeout_s: 20.0,
            lives: 1,
            hold_until: None,
            unpolled: false,
            dump: None,
        }
    }
}

/// One peer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    ip: Ipv4Addr,
    qpn: u32,
    psn: u32,
    mtu: usize,
    rnr_us: u32,
}

impl Peer {
    fn as_qp(&self) -> Result<PeerQp, Box<dyn Error>> {
        Ok(PeerQp {
            qpn: Qpn::new(self.qpn),
            psn: Psn::new(self.psn),
            ip: self.ip,
            mtu: Mtu::from_bytes(self.mtu).ok_or_else(|| format!("{} is no path MTU", self.mtu))?,
            rnr_timer: RnrTimer::at_least(self.rnr_us),
        })
    }
}

/// The NIC writes the rings.
struct Nothing;

impl penstock_transport::Memory for Nothing {
    fn write(&mut self, _va: u64, _data: &Payload) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let plan = std::env::args().nth(1).ok_or("usage: verbs_sink '{\"qps\": [...], ...}'")?;
    let plan: Plan = serde_json::from_str(&plan)?;
    let clock = SessionClock::start();
    let gid = plan.gid.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    let mut verbs =
        Verbs::open(&VerbsConfig { device: plan.device.clone(), gid, ..VerbsConfig::default() }, clock.clone())?;
    let len = plan.slots as usize * plan.slot_bytes as usize;
    let mut memory = Memory { rings: Vec::new(), came: vec![Vec::new(); plan.qps.len()], shared: plan.shared };
    for _ in 0..if plan.shared { 1 } else { plan.qps.len() } {
        memory.rings.push(RingMemory::allocate(len, Pages::Normal)?);
    }
    if plan.shared {
        let (pool, max_receives) = (memory.rings[0].mapping().clone(), plan.slots.max(plan.receives));
        let (low, boards) = (plan.slots / 4, plan.qps.len() as u16);
        let base = verbs.share_receives(&PoolSpec { memory: pool, len, max_receives, low, boards })?;
        let receives: Vec<_> = (0..plan.receives).map(|slot| receive(&plan, base, slot % plan.slots)).collect();
        verbs.post_shared(&receives)?;
    }
    for _ in 0..plan.lives {
        let ends: Vec<_> = (0..plan.qps.len())
            .map(|at| open(&plan, &mut verbs, at as u16, memory.ring(at)))
            .collect::<Result<_, _>>()?;
        println!("{}", json!({"found": verbs.found().to_string(), "qps": ends}));
        let mut report = json!({});
        if !plan.unpolled {
            report = receive_all(&plan, &mut verbs, &clock, &mut memory)?;
        }
        hold(&plan);
        if let Some(name) = &plan.dump {
            for number in 0..plan.qps.len() {
                std::fs::write(format!("{name}{number}"), memory.of(number))?;
            }
        }
        let mut last = Vec::new();
        for board in 0..plan.qps.len() {
            verbs.close_qp(board as u16, &mut last)?;
        }
        if plan.shared {
            verbs.poll(&mut Nothing, PollMode::Busy, Time::ZERO, &mut last)?;
        }
        report["last"] = last.iter().map(to_json).collect();
        println!("{report}");
    }
    Ok(())
}

/// What the NIC writes into: a ring for each queue pair, or one pool.
struct Memory {
    rings: Vec<RingMemory>,
    shared: bool,
    /// Messages that came into the pool, by queue pair.
    came: Vec<Vec<u8>>,
}

impl Memory {
    fn ring(&self, qp: usize) -> &RingMemory {
        &self.rings[if self.shared { 0 } else { qp }]
    }

    /// What a queue pair has brought.
    fn of(&self, qp: usize) -> &[u8] {
        if self.shared {
            &self.came[qp]
        } else {
            self.rings[qp].bytes()
        }
    }

    fn keep(&mut self, slot_bytes: u32, done: &Completion) {
        let start = done.wr_id as usize * slot_bytes as usize;
        let message = &self.rings[0].bytes()[start..][..done.byte_len as usize];
        self.came[usize::from(done.board)].extend_from_slice(message);
    }
}

/// Opens one queue pair; our end, for the peer.
fn open(plan: &Plan, verbs: &mut Verbs, board: u16, ring: &RingMemory) -> Result<Value, Box<dyn Error>> {
    let (memory, len) = (ring.mapping().clone(), ring.bytes().len());
    let local = verbs.create_qp(&QpSpec { board, memory, len, max_receives: plan.slots.max(plan.receives) })?;
    if !plan.shared {
        let receives: Vec<_> = (0..plan.receives).map(|slot| receive(plan, local.base, slot % plan.slots)).collect();
        verbs.post_receives(board, &receives)?;
    }
    verbs.connect(board, &plan.qps[usize::from(board)].as_qp()?)?;
    Ok(json!({"qpn": local.qpn.value(), "psn": local.psn.value(), "rkey": local.rkey, "base": local.base}))
}

fn receive(plan: &Plan, base: u64, slot: u32) -> RecvWr {
    let va = base + u64::from(slot) * u64::from(plan.slot_bytes);
    RecvWr { wr_id: slot.into(), va, len: plan.slot_bytes }
}

/// Takes completions until all have come, a queue pair is in error, or the time is over.
fn receive_all(
    plan: &Plan,
    verbs: &mut Verbs,
    clock: &SessionClock,
    memory: &mut Memory,
) -> Result<Value, Box<dyn Error>> {
    let mode: PollMode = plan.poll.parse()?;
    let deadline = Duration::from_secs_f64(plan.timeout_s);
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let mut first = None;
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    let mut received = 0;
    let mut faults: Vec<_> = vec![None; plan.qps.len()];
    let mut ran_low = 0;
    let refused_before = refused(verbs);
    let mut withheld = Vec::new();
    while received < plan.messages && began.elapsed() < deadline && faults.iter().all(Option::is_none) {
        batch.clear();
        ran_low += verbs.ran_low();
        verbs.poll(&mut Nothing, mode, clock.now() + Time::from_ms(20), &mut batch)?;
        if batch.is_empty() {
            faults = (0..plan.qps.len()).map(|board| verbs.fault(board as u16)).collect();
        } else {
            first.get_or_insert_with(Instant::now);
        }
        for completion in &batch {
            received += usize::from(completion.status == RecvStatus::Success);
            all.push(to_json(completion));
            if completion.status == RecvStatus::Success {
                let base = memory.ring(completion.board.into()).mapping().addr();
                withheld.push((completion.board, receive(plan, base, completion.wr_id as u32)));
                if plan.shared {
                    memory.keep(plan.slot_bytes, completion);
                }
            }
        }
        if plan.until_refused && refused(verbs) == refused_before {
            continue;
        }
        for (board, again) in withheld.drain(..) {
            if plan.shared {
                verbs.post_shared(&[again])?;
            } else {
                verbs.post_receives(board, &[again])?;
            }
        }
    }
    let seconds = first.unwrap_or(began).elapsed().as_secs_f64();
    let cpu = cpu_seconds()? - cpu;
    let counters: serde_json::Map<_, _> =
        verbs.counters().into_iter().map(|(name, value)| (name.into_owned(), value.into())).collect();
    Ok(json!({
        "completions": all,
        "faults": faults,
        "counters": counters,
        "srq_limit_reached": ran_low,
        "seconds": seconds,
        "cpu_s": cpu,
    }))
}

/// RNR NAKs that the device has sent.
fn refused(verbs: &mut Verbs) -> u64 {
    verbs.counters().into_iter().find(|(name, _)| name == "send_rnr_err").map_or(0, |(_, count)| count)
}

/// Leaves the queue pairs open as long as the plan wants it.
fn hold(plan: &Plan) {
    let Some(path) = &plan.hold_until else { return };
    let deadline = Instant::now() + Duration::from_secs_f64(plan.timeout_s);
    while !path.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn to_json(completion: &Completion) -> Value {
    let opcode = match completion.opcode {
        RecvOpcode::Send => "send",
        RecvOpcode::WriteImm => "write_imm",
    };
    json!([
        completion.board,
        completion.wr_id,
        format!("{:?}", completion.status),
        opcode,
        completion.imm,
        completion.byte_len
    ])
}

/// CPU time of this process, from `/proc/self/schedstat`.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e9)
}
