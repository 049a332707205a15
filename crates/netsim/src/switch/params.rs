// SPDX-License-Identifier: Apache-2.0
//! The parameters of a switch.
//! Promise: `Default` is a switch that only forwards: strict priority, one shared buffer, no marks, no PFC.
//! Source: IEEE 802.1Q (strict priority, PFC, QCN), Shreedhar and Varghese 1996 (DRR), Choudhury and Hahne 1998
//! (dynamic thresholds), RFC 3168 and Zhu et al. 2015 (ECN).

use std::fmt;

use penstock_cc::{QcnMarking, RedMarker};

use crate::pause::CLASSES;
use crate::units::{ByteSize, Probability};

/// Bytes around the payload of the longest RoCEv2 packet: Ethernet 14, IPv4 20, UDP 8, BTH 12, RETH 16, immediate 4,
/// ICRC 4. A full TCP segment of the same MTU is shorter.
const HEADERS: u64 = 78;

/// The longest frame of an MTU, as the switch stores it.
pub fn max_frame(mtu: u16) -> ByteSize {
    ByteSize(u64::from(mtu) + HEADERS)
}

/// RED marking of ECN-capable packets on an egress queue (RFC 3168, Zhu et al.): by the bytes of the same class that
/// wait in front of the arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnParams {
    pub kmin: ByteSize,
    pub kmax: ByteSize,
    pub pmax: Probability,
}

impl Default for EcnParams {
    /// The parameters of 10 Gb/s links: K_min 50 KB, K_max 200 KB, p_max 0.2.
    fn default() -> Self {
        let pmax = Probability::new(0.2).unwrap_or_default();
        EcnParams { kmin: ByteSize(50_000), kmax: ByteSize(200_000), pmax }
    }
}

impl EcnParams {
    pub(super) fn marker(&self) -> RedMarker {
        let pmax_ppm = (self.pmax.as_f64() * 1e6).round() as u32;
        RedMarker::new(self.kmin.bytes(), self.kmax.bytes(), pmax_ppm)
    }
}

/// The factor of a dynamic threshold, kept in 1/1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alpha(u32);

impl Alpha {
    const SHIFT: u32 = 10;
    /// Threshold = the free part of the buffer.
    pub const ONE: Alpha = Alpha(1 << Self::SHIFT);

    /// A factor from 1/1024 to 1024, rounded to 1/1024; switch chips offer powers of two from 1/128 to 8.
    pub fn new(alpha: f64) -> Option<Self> {
        (1.0 / 1024.0..=1024.0).contains(&alpha).then(|| Alpha((alpha * 1024.0).round() as u32))
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1024.0
    }

    /// alpha x `free`, rounded down.
    pub fn of(self, free: u64) -> u64 {
        ((u128::from(free) * u128::from(self.0)) >> Self::SHIFT) as u64
    }
}

impl fmt::Display for Alpha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// When a port is paused, by the bytes of one class in the buffer that came in there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PfcThreshold {
    /// Pause above `xoff`, go on at or below `xon`.
    Static { xoff: ByteSize, xon: ByteSize },
    /// Pause above alpha x the free part of the shared buffer, which is all that is not headroom; go on `hysteresis`
    /// below that, or when nothing waits.
    Dynamic { alpha: Alpha, hysteresis: ByteSize },
    /// The queue that a frame joins decides: above `xoff` the port that it came in by must pause, and resumes when every
    /// queue that has paused it is at or below its `xon` (link-level pausing of the QCN hardware evaluation).
    Queue { xoff: ByteSize, xon: ByteSize },
}

/// The kind of frame that pauses a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PauseFrame {
    /// IEEE 802.1Qbb: it names the classes.
    #[default]
    Pfc,
    /// IEEE 802.3 annex 31B: all data frames stop, those of lossy classes, too.
    Port,
}

/// The data that may still arrive at a port and class above the threshold before the pause takes effect; beyond it
/// frames are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headroom {
    /// The same at all ports.
    Fixed(ByteSize),
    /// `lossless_headroom` of each port's own link for this MTU. Rate and delay are taken from the direction that
    /// leaves the switch; where the other one is faster or longer, see `Switch::set_headroom`.
    OfLink { mtu: u16 },
}

/// Flow control by pauses, counted for each port and class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PfcParams {
    /// The lossless classes, bit i for class i.
    pub classes: u8,
    pub threshold: PfcThreshold,
    pub headroom: Headroom,
    pub frame: PauseFrame,
}

impl PfcParams {
    /// Dynamic thresholds over computed headroom, as a switch chip is run: hysteresis of two frames.
    pub fn dynamic(classes: u8, alpha: Alpha, mtu: u16) -> Self {
        let hysteresis = ByteSize(2 * max_frame(mtu).bytes());
        PfcParams {
            classes,
            threshold: PfcThreshold::Dynamic { alpha, hysteresis },
            headroom: Headroom::OfLink { mtu },
            frame: PauseFrame::Pfc,
        }
    }

    /// Whether `class` is lossless.
    pub fn covers(&self, class: usize) -> bool {
        self.classes >> class & 1 == 1
    }
}

/// The order in which the classes of a port are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The highest class first.
    Strict,
    /// Deficit round robin in bytes: a class gets `weight` x `quantum` bytes a round. Classes of weight 0 are served
    /// in strict priority in front of all others.
    Weighted { weights: [u16; CLASSES], quantum: ByteSize },
}

impl Scheduling {
    /// A quantum as long as the longest frame, so that each visit of the round robin sends at least one.
    pub const QUANTUM: ByteSize = ByteSize(4_200);

    pub fn weighted(weights: [u16; CLASSES]) -> Self {
        Scheduling::Weighted { weights, quantum: Self::QUANTUM }
    }
}

/// QCN congestion points at the egress queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QcnPoints {
    /// Classes whose queues have a congestion point, bit i for class i.
    pub classes: u8,
    pub marking: QcnMarking,
}

impl Default for QcnPoints {
    /// All classes but that of the messages themselves, with the numbers of the QCN hardware evaluation.
    fn default() -> Self {
        QcnPoints { classes: !(1 << SwitchParams::CNM_CLASS), marking: QcnMarking::default() }
    }
}

/// An output-queued switch with one shared buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchParams {
    /// Bytes for all queues together.
    pub buffer: ByteSize,
    /// Per class; `None`: nothing is marked. See `Switch::set_ecn` for thresholds of single ports.
    pub ecn: [Option<EcnParams>; CLASSES],
    /// Marks by what waits behind a packet as it leaves, as the RDMA simulators on ns-3 do; else by what waits before it as it
    /// arrives.
    pub mark_on_departure: bool,
    /// `None`: nothing is paused, a full buffer drops. Received PFC is obeyed in either case.
    pub pfc: Option<PfcParams>,
    pub scheduling: Scheduling,
    /// Lossy classes: a queue may hold alpha x the free part of the shared buffer. `None`: as much as there is.
    pub lossy_alpha: Option<Alpha>,
    /// `None`: no feedback is sent.
    pub qcn: Option<QcnPoints>,
    /// Trace single classes, of those ports and classes that have carried anything; otherwise each port as a whole.
    pub trace_classes: bool,
}

impl Default for SwitchParams {
    /// 2 MB.
    fn default() -> Self {
        SwitchParams {
            buffer: ByteSize(2_000_000),
            ecn: [None; CLASSES],
            mark_on_departure: false,
            pfc: None,
            scheduling: Scheduling::Strict,
            lossy_alpha: None,
            qcn: None,
            trace_classes: false,
        }
    }
}

impl SwitchParams {
    /// Pause frames ask for the longest time; see `renewal::refresh_after`.
    pub(crate) const PAUSE_QUANTA: u16 = 0xFFFF;
    /// The class of QCN's messages, that of CNPs by DSCP 48.
    pub const CNM_CLASS: usize = 6;

    /// The same marking in every class.
    pub fn with_ecn(self, ecn: EcnParams) -> Self {
        SwitchParams { ecn: [Some(ecn); CLASSES], ..self }
    }
}
