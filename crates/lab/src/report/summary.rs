// SPDX-License-Identifier: Apache-2.0
//! The results of a laboratory run, in the layout of summary.json.
//! Promise: the same seed gives the same summary, except for `timing`. Units are in the names: s, us, gbps (10^9 bit/s
//! of payload).
//! Source: docs/lab.md documents every key.

use std::collections::BTreeMap;

use serde::Serialize;

use super::findings::Verdict;
use super::ideal::Ideal;
use super::quantiles::Quantiles;

/// Version of this layout.
pub const SCHEMA: u32 = 1;

/// summary.json of a laboratory run.
#[derive(Debug, Clone, Serialize)]
pub struct LabSummary {
    pub schema: u32,
    /// "lab".
    pub kind: &'static str,
    pub scenario: String,
    pub seed: u64,
    pub simulated_s: f64,
    /// "done", "time limit", "idle", "deadlock" or "interrupted".
    pub end: &'static str,
    /// The circle of ports, after a deadlock.
    pub deadlock: Option<String>,
    pub flows: Vec<FlowSummary>,
    /// Jain's index of the flows that have something to send, mean over the windows.
    pub jain: Option<f64>,
    /// The least of any window.
    pub jain_min: Option<f64>,
    /// Payload of all flows from the first message to the last delivery, or to the end of the run if messages are
    /// outstanding.
    pub aggregate_gbps: f64,
    pub delivered_bytes: u64,
    /// Completion of the messages of all flows.
    pub mct_us: Quantiles,
    /// `None` without triggers.
    pub events: Option<EventSummary>,
    /// `None` if no flow is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullSummary>,
    pub switches: Vec<SwitchSummary>,
    pub links: Vec<LinkSummary>,
    /// Start-up and steady state; `None` without `run.warm_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The same load in a network that holds nothing back; `None` until it is compared, and where it cannot be.
    pub ideal: Option<Ideal>,
    /// The verdict for the planner of the network.
    pub verdict: Verdict,
    pub warnings: Vec<String>,
    /// Every key of the scenario with the value in force.
    pub settings: BTreeMap<String, String>,
    pub timing: Timing,
}

impl LabSummary {
    /// The run came to its end, no sender gave up, nothing of a lossless class was dropped by a switch, no queue was
    /// longer than pull allows, and of the events none was lost and none is overdue: what the command's exit status 0
    /// says. What is in flight when the time of the run is over, or has just been triggered, is no fault.
    pub fn is_verified(&self) -> bool {
        let failed = self.flows.iter().any(|flow| flow.failed.is_some());
        let dropped = self.switches.iter().any(|switch| switch.dropped_headroom > 0);
        let missed = self.events.is_some_and(|events| events.lost + events.overdue > 0);
        self.end == "done" && !failed && !dropped && !missed && self.is_within_bound()
    }

    /// No queue was longer than pull allows.
    pub fn is_within_bound(&self) -> bool {
        self.pull.as_ref().is_none_or(PullSummary::is_within_bound)
    }
}

/// The machine-dependent values.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Timing {
    pub wall_s: f64,
    pub cpu_s: f64,
    pub events: u64,
    /// Data packets over links.
    pub traversals: u64,
    pub traversals_per_cpu_s: f64,
    pub peak_rss_mb: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct FlowSummary {
    pub id: u32,
    pub name: String,
    pub from: String,
    pub to: String,
    pub protocol: String,
    pub law: String,
    pub posted_bytes: u64,
    pub delivered_bytes: u64,
    /// When the first message was there to be sent.
    pub start_s: Option<f64>,
    /// When the last message was delivered.
    pub end_s: Option<f64>,
    /// All that was posted was delivered, and nothing more will be.
    pub complete: bool,
    /// Payload from `start_s` to `end_s`, or to the end of the run if messages are outstanding.
    pub goodput_gbps: f64,
    pub messages: u64,
    pub mct_us: Quantiles,
    pub packets: u64,
    pub retransmissions: u64,
    pub cnps: u64,
    /// QCN notifications received.
    pub feedbacks: u64,
    pub timeouts: u64,
    pub naks: u64,
    pub rnr_naks: u64,
    /// Messages that found no room in the send buffer and were never posted.
    pub refused: u64,
    /// TCP segments that the full queue of the rate limiter dropped.
    pub limiter_drops: u64,
    /// When a link that is down had left no way to its destination, and the switches knew.
    pub cut_off_s: Option<f64>,
    /// Why the sender gave up.
    pub failed: Option<String>,
    /// Names of the nodes on the way, both hosts included.
    pub path: Vec<String>,
    /// The longest time that one port of the path was paused in the flow's class.
    pub paused_s: f64,
    /// It was held up by pauses due to congestion on the paths of other flows.
    pub hol_victim: bool,
}

/// Events: triggered = complete + in flight + lost + never begun.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct EventSummary {
    /// Triggers that came before the run ended, and of which a board has something to send.
    pub triggered: u64,
    /// Events of which a board has begun to send.
    pub count: u64,
    /// Events of which every fragment was delivered.
    pub complete: u64,
    /// Begun, and not whole at the end of the run.
    pub in_flight: u64,
    /// Begun, and a sender that has a fragment of it gave up.
    pub lost: u64,
    /// No board has come to them: they waited at the boards until the run ended.
    pub never_begun: u64,
    /// Events that had waited for more than a tenth of the run: the network is slower than its triggers.
    pub overdue: u64,
    /// Events by which the number of incomplete ones rises in a second, if it rose over the second half of the triggers.
    pub backlog_per_s: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub p999_us: Option<f64>,
    pub max_us: Option<f64>,
}

/// The time before and after `run.warm_up`.
#[derive(Debug, Clone, Serialize)]
pub struct Phases {
    pub start_up: PhaseSummary,
    pub steady: PhaseSummary,
}

/// A part of a run.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseSummary {
    pub from_s: f64,
    pub to_s: f64,
    pub delivered_bytes: u64,
    pub goodput_gbps: f64,
    /// Completion of the events that began in it; of messages without events.
    pub completion_us: Quantiles,
    /// The longest queue of any port of a switch, of looks 100 us apart.
    pub peak_queue_bytes: u64,
    pub ecn_marked: u64,
    pub pause_frames: u64,
    /// Time in which ports of switches paused the other side, summed.
    pub pausing_s: f64,
    pub dropped: u64,
}

/// The flows that are pulled.
#[derive(Debug, Clone, Serialize)]
pub struct PullSummary {
    pub hosts: Vec<PullHostSummary>,
    /// No queue of a switch can be longer: what all hosts had requested at most, and what all boards announced at a time.
    /// `None` with other traffic, with links that lose, repeat or reorder, and after a board was silent.
    pub queue_bound_bytes: Option<u64>,
    /// The longest queue of any port of a switch.
    pub peak_queue_bytes: u64,
}

impl PullSummary {
    /// No queue was longer than it can be; true where there is no bound.
    pub fn is_within_bound(&self) -> bool {
        self.queue_bound_bytes.is_none_or(|bound| self.peak_queue_bytes <= bound)
    }
}

/// A host that pulls.
#[derive(Debug, Clone, Serialize)]
pub struct PullHostSummary {
    pub host: String,
    /// W at the end of the run, in bytes on the wire.
    pub window_bytes: u64,
    /// The most that was requested and had not arrived.
    pub highest_in_flight_bytes: u64,
    /// The announcements that may have been under way at a time, of all its boards.
    pub announcing_bytes: u64,
    pub reads: u64,
    pub announcements: u64,
    /// Announcements that were refused, as a whole or in part.
    pub refused: u64,
    /// Times that a board left READs without an answer.
    pub silences: u64,
    /// The part of the bytes on the wire from its boards that was announcements, 0 to 1.
    pub announcement_share: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct SwitchSummary {
    pub name: String,
    /// The QCN switch in gateware; its buffer is the longest output queue.
    pub gateware: bool,
    pub dropped_buffer: u64,
    pub dropped_threshold: u64,
    /// Dropped frames of lossless classes: none, if headroom is enough.
    pub dropped_headroom: u64,
    pub no_route: u64,
    pub fcs_errors: u64,
    pub cnm_sent: u64,
    pub peak_buffer_bytes: u64,
    /// The buffer in force, given or computed.
    pub buffer_bytes: u64,
    /// "off", or how it decides: "static" or "dynamic".
    pub pfc: &'static str,
    pub lossless_classes: Vec<u8>,
    /// Alpha of dynamic thresholds.
    pub alpha: Option<f64>,
    pub ports: Vec<PortSummary>,
}

/// One port of a switch, all classes together.
#[derive(Debug, Clone, Serialize)]
pub struct PortSummary {
    pub port: u16,
    /// The node at the other end.
    pub peer: String,
    pub tx_frames: u64,
    pub tx_bytes: u64,
    pub dropped: u64,
    pub ecn_marked: u64,
    pub peak_queue_bytes: u64,
    /// Mean of samples each 100 us.
    pub mean_queue_bytes: f64,
    pub peak_ingress_bytes: u64,
    /// Time in which the other side had this port paused, summed over classes.
    pub paused_s: f64,
    /// Time in which this port had the other side paused, summed over classes.
    pub pausing_s: f64,
    /// Bytes waiting here integrated over the time of pauses.
    pub held_byte_s: f64,
    /// Pause and PFC frames that this port has sent and received.
    pub pauses_sent: u64,
    pub pauses_received: u64,
    /// Marking in force in the class of data, at this port's rate; `None`: nothing is marked.
    pub kmin_bytes: Option<u64>,
    pub kmax_bytes: Option<u64>,
    /// Threshold at which the peer's lossless classes are paused; `None` without static thresholds.
    pub xoff_bytes: Option<u64>,
    pub xon_bytes: Option<u64>,
    /// The data that may arrive after a pause has begun; `None` without PFC.
    pub headroom_bytes: Option<u64>,
}

/// One link, both directions: from the first end in the name to the second, and back.
#[derive(Debug, Clone, Serialize)]
pub struct LinkSummary {
    pub name: String,
    pub rate_gbps: [f64; 2],
    pub frames: [u64; 2],
    pub data_frames: [u64; 2],
    /// Octets with preamble, FCS and gap.
    pub wire_bytes: [u64; 2],
    /// Share of the run in which the wire was busy.
    pub utilisation: [f64; 2],
    pub lost: [u64; 2],
    /// How long the port that sends was paused, summed over classes; of a verilated board 0, since `boards` has it.
    pub paused_s: [f64; 2],
}
