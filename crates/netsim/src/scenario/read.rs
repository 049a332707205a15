// SPDX-License-Identifier: Apache-2.0
//! The keys of a scenario file, section by section, with their types and defaults.
//! Promise: this is the one list of keys; `scenarios/incast-3.toml` shows them all (a test compares the two).
//! Source: AdvCam Table II and section VII for defaults, Zhu et al. 2015 where AdvCam is silent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use penstock_cc::{DcqcnSettings, Law, StageCounting};

use super::check;
use super::document::{Document, Item, Value};
use super::error::{Problem, ScenarioError};
use super::reader::{Findings, FromItem, Section};
use super::{Boards, Capture, Data, Qp, Run, Scenario, Server, Trace, Trigger};
use crate::link::{Faults, LinkParams};
use crate::switch::{lossless_headroom, EcnParams, Headroom, PfcParams, PfcThreshold, SwitchParams};
use crate::units::{ByteSize, Frequency, Rate, Time};

const MTUS: [u64; 5] = [256, 512, 1024, 2048, 4096];

/// `folder` is where the file lies.
pub(super) fn scenario(document: &Document, folder: &Path) -> Result<Scenario, ScenarioError> {
    let findings = Findings { folder: folder.to_owned(), ..Findings::default() };
    let mut root = Section::root(document, &findings);
    let run = run(root.section("run"));
    let data = data(root.section("data"));
    let boards = boards(root.section("boards"));
    let server_section = root.section("server");
    let has_server = server_section.exists();
    let server = server(server_section);
    let qp = qp(root.section("qp"));
    let (link, links_at) = links(root.section("link"), boards.count);
    let cc = congestion_control(root.section("cc"));
    let trace = trace(root.section("trace"));
    let capture = capture(root.section("capture"), boards.count);
    let switch = SwitchReader::read(root.section("switch"));
    root.finish();

    let mut problems = findings.problems.take();
    if !has_server {
        let message =
            "there is no server: add a table [server]; a scenario of the laboratory has [topology] instead".to_owned();
        problems.push(document.problem("server", "", message));
    }
    let mut scenario = Scenario {
        run,
        data,
        boards,
        server,
        switch: SwitchParams { buffer: switch.buffer, ecn: [switch.ecn; 8], ..SwitchParams::default() },
        link,
        links_at,
        cc,
        qp,
        trace,
        capture,
        settings: findings.settings.take(),
        warnings: Vec::new(),
    };
    if problems.is_empty() {
        switch.add_pfc(&mut scenario, document, &mut problems);
        check::scenario(&mut scenario, document, &mut problems);
    }
    if problems.is_empty() {
        Ok(scenario)
    } else {
        Err(ScenarioError::Invalid(problems))
    }
}

fn run(mut section: Section) -> Run {
    let run = Run {
        seed: section.integer("seed", 1, 0..=u64::MAX),
        time_limit: section.read("time_limit", Time::from_s(10)),
    };
    section.finish();
    run
}

fn data(mut section: Section) -> Data {
    let data = Data {
        file: section.path("file", "../data/lst1_run2008/modules.npz"),
        events: section.integer("events", 50, 1..=1_000_000_000),
        trigger: section.choice(
            "trigger",
            Trigger::Poisson,
            &[("poisson", Trigger::Poisson), ("periodic", Trigger::Periodic)],
        ),
        trigger_rate: section.read("trigger_rate", Frequency::from_hz(10_000)),
    };
    section.finish();
    data
}

fn boards(mut section: Section) -> Boards {
    let boards = Boards { count: section.integer("count", 3, 1..=1024) as u16 };
    section.finish();
    boards
}

fn server(mut section: Section) -> Server {
    let server = Server {
        slots: section.integer("slots", 64, 2..=65_536) as u32,
        slot_size: section.read("slot_size", ByteSize(128 << 10)),
        ack_delay: section.read("ack_delay", Time::from_us(1)),
        cnp_interval: section.read("cnp_interval", Time::from_us(50)),
        rnr_delay: section.read("rnr_delay", Time::from_us(80)),
        consumer_rate: section.optional("consumer_rate"),
        event_timeout: section.read("event_timeout", Time::from_ms(100)),
        vanish_at: section.optional("vanish_at"),
    };
    section.finish();
    server
}

fn qp(mut section: Section) -> Qp {
    let qp = Qp {
        mtu: section.one_of("mtu", 4096, &MTUS) as u16,
        ack_timeout: section.read("ack_timeout", Time::from_ns(4096 << 9)),
        retry_cnt: section.integer("retry_cnt", 7, 0..=7) as u8,
        rnr_retry: section.integer("rnr_retry", 7, 0..=7) as u8,
        dscp: section.integer("dscp", 26, 0..=63) as u8,
        cnp_dscp: section.integer("cnp_dscp", 48, 0..=63) as u8,
    };
    section.finish();
    qp
}

fn trace(mut section: Section) -> Trace {
    let trace = Trace { interval: section.read("interval", Time::from_us(20)) };
    section.finish();
    trace
}

fn capture(mut section: Section, boards: u16) -> Capture {
    let links: Vec<String> = section.list("links");
    let known = |name: &String| name == Scenario::SERVER || (0..boards).any(|k| *name == Scenario::board_name(k));
    if let Some(other) = links.iter().find(|name| !known(name)) {
        let last = Scenario::board_name(boards - 1);
        section.refuse("links", format!("there is no link of {other}; there are board0 to {last}, and server"));
    }
    let capture =
        Capture { links: links.into_iter().collect::<BTreeSet<_>>().into_iter().collect(), snap: snap(&mut section) };
    section.finish();
    capture
}

/// Bytes kept of each captured frame.
pub(crate) fn snap(section: &mut Section) -> ByteSize {
    let snap = section.read("snap", ByteSize(256));
    if !(64..=65_535).contains(&snap.bytes()) {
        section.refuse("snap", "allowed is 64B to 65535B");
    }
    snap
}

/// The keys of one link; what is not there is as in `default`.
pub(crate) fn link_keys(section: &mut Section, default: LinkParams) -> LinkParams {
    let faults = default.faults;
    LinkParams {
        rate: section.read("rate", default.rate),
        delay: section.read("delay", default.delay),
        faults: Faults {
            loss: section.read("loss", faults.loss),
            duplicate: section.read("duplicate", faults.duplicate),
            reorder: section.read("reorder", faults.reorder),
            reorder_by: section.read("reorder_by", faults.reorder_by),
            corrupt: section.read("corrupt", faults.corrupt),
            corrupt_undetected: section.read("corrupt_undetected", faults.corrupt_undetected),
            jitter: section.read("jitter", faults.jitter),
        },
    }
}

fn links(mut section: Section, boards: u16) -> (LinkParams, BTreeMap<String, LinkParams>) {
    let common = link_keys(&mut section, LinkParams::default());
    let mut at = section.section("at");
    let mut links_at = BTreeMap::new();
    let names = std::iter::once(Scenario::SERVER.to_owned()).chain((0..boards).map(Scenario::board_name));
    for name in names {
        let mut own = at.section(&name);
        if own.exists() {
            links_at.insert(name, link_keys(&mut own, common));
            own.finish();
        }
    }
    at.finish();
    section.finish();
    (common, links_at)
}

/// g as "1/256".
pub(crate) struct Gain(pub(crate) u8);

impl std::fmt::Display for Gain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1/{}", 1 << self.0)
    }
}

impl FromItem for Gain {
    fn from_item(item: &Item) -> Result<Self, String> {
        let shift = match &item.value {
            Value::Text(text) => text.strip_prefix("1/").and_then(|divisor| divisor.parse::<u32>().ok()),
            // 1/64 of Python is 0.015625.
            Value::Float(text) => {
                let divisor = text.parse::<f64>().ok().map(f64::recip);
                divisor.filter(|divisor| (1.0..=32768.0).contains(divisor) && divisor.fract() == 0.0).map(|d| d as u32)
            }
            _ => None,
        };
        shift
            .filter(|divisor| divisor.is_power_of_two() && *divisor <= 1 << 15)
            .map(|divisor| Gain(divisor.trailing_zeros() as u8))
            .ok_or_else(|| {
                "allowed are inverse powers of two from \"1/1\" to \"1/32768\", such as \"1/256\"".to_owned()
            })
    }
}

/// `[cc]` of a board.
pub(crate) fn congestion_control(mut section: Section) -> DcqcnSettings {
    let default = DcqcnSettings { rate_line_bps: Scenario::BOARD_RATE.0, ..DcqcnSettings::default() };
    let law = section.choice("law", default.law, &[("dcqcn", Law::Dcqcn), ("off", Law::Off)]);
    let settings = dcqcn_keys(&mut section, DcqcnSettings { law, ..default });
    section.finish();
    settings
}

/// The keys of DCQCN without the law itself; what is not there is as in `default`.
pub(crate) fn dcqcn_keys(section: &mut Section, default: DcqcnSettings) -> DcqcnSettings {
    let countings = [("single", StageCounting::Single), ("per-trigger", StageCounting::PerTrigger)];
    DcqcnSettings {
        law: default.law,
        g_shift: section.read("g", Gain(default.g_shift)).0,
        rate_ai_bps: section.read("rate_ai", Rate(default.rate_ai_bps)).0,
        rate_hai_bps: section.read("rate_hai", Rate(default.rate_hai_bps)).0,
        rate_min_bps: section.read("rate_min", Rate(default.rate_min_bps)).0,
        rate_line_bps: default.rate_line_bps,
        decrease_interval_ps: section.read("decrease_interval", Time(default.decrease_interval_ps)).0,
        alpha_interval_ps: section.read("alpha_interval", Time(default.alpha_interval_ps)).0,
        increase_interval_ps: section.read("increase_interval", Time(default.increase_interval_ps)).0,
        byte_threshold: section.read("byte_threshold", ByteSize(default.byte_threshold)).0,
        stage_threshold: section.integer("stage_threshold", default.stage_threshold.into(), 0..=15) as u8,
        hyper_threshold: section.integer("hyper_threshold", default.hyper_threshold.into(), 0..=255) as u8,
        stage_counting: section.choice("stage_counting", default.stage_counting, &countings),
        clamp_target: section.read("clamp_target", default.clamp_target),
        restart_timer: section.read("restart_timer", default.restart_timer),
    }
}

/// `[switch]`, whose PFC thresholds can only be computed when all else is known.
struct SwitchReader {
    buffer: ByteSize,
    ecn: Option<EcnParams>,
    pfc: bool,
    xoff: Option<ByteSize>,
    xon: Option<ByteSize>,
    headroom: Option<ByteSize>,
}

impl SwitchReader {
    fn read(mut section: Section) -> Self {
        let default = EcnParams::default();
        let buffer = section.read("buffer", ByteSize(2_000_000));
        let ecn = section.read("ecn", true);
        let params = EcnParams {
            kmin: section.read("kmin", default.kmin),
            kmax: section.read("kmax", default.kmax),
            pmax: section.read("pmax", default.pmax),
        };
        let reader = SwitchReader {
            buffer,
            ecn: ecn.then_some(params),
            pfc: section.read("pfc", true),
            xoff: section.optional("xoff"),
            xon: section.optional("xon"),
            headroom: section.optional("headroom"),
        };
        section.finish();
        reader
    }

    /// Thresholds as given, or computed from buffer, rate, delay and MTU.
    fn add_pfc(&self, scenario: &mut Scenario, document: &Document, problems: &mut Vec<Problem>) {
        if !self.pfc {
            return;
        }
        let needed = check::all_links(scenario)
            .map(|(_, link)| lossless_headroom(&link, scenario.qp.mtu))
            .max()
            .unwrap_or_default();
        let headroom = self.headroom.unwrap_or(needed);
        if headroom < needed {
            let message = format!("frames may be dropped: rate, delay and MTU need {needed}");
            scenario.warnings.push(document.problem("switch.headroom", "", message));
        }
        let ports = u64::from(scenario.boards.count) + 1;
        let classes = 1 << scenario.qp.class();
        match PfcParams::lossless(classes, self.buffer, ports, headroom, scenario.qp.mtu) {
            Ok(computed) => {
                let PfcThreshold::Static { xoff: share, xon: share_xon } = computed.threshold else { return };
                let xoff = self.xoff.unwrap_or(share);
                let below = ByteSize(xoff.bytes().saturating_sub(share.bytes() - share_xon.bytes()));
                let xon = self.xon.unwrap_or(if self.xoff.is_some() { below } else { share_xon });
                let threshold = PfcThreshold::Static { xoff, xon };
                scenario.switch.pfc = Some(PfcParams { classes, threshold, headroom: Headroom::Fixed(headroom) });
                for (key, value) in [("xoff", xoff), ("xon", xon), ("headroom", headroom)] {
                    let key = format!("switch.{key}");
                    scenario.settings.retain(|(known, _)| *known != key);
                    scenario.settings.push((key, value.to_string()));
                }
            }
            Err(error) => {
                problems.push(document.problem("switch.buffer", &self.buffer.to_string(), error.to_string()));
            }
        }
    }
}
