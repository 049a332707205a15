// SPDX-License-Identifier: Apache-2.0
//! `[qp]`, `[cc]` and `[tcp]`: queue pairs, the laws of congestion control, TCP; common and per flow.
//! Promise: a key missing in a flow's own `cc` or `tcp` is taken from the common one; every value fits the registers of
//! the gateware.
//! Source: AdvCam Table II and the QCN hardware evaluation for the defaults; IBTA 9.7 for the queue pair.

use penstock_cc::{DcqcnSettings, Law, Profile, QcnSettings};
use penstock_netsim::{FullQueue, LimiterQueue};
use penstock_transport::{TcpStall, TcpVariant};
use penstock_wire::gateware::Rings;

use crate::language::keys::{ack_timeout_code, Profiled};
use crate::language::reader::Section;
use crate::scenario::{LabPull, LabQp, LabTcp, LabVerb, Mode};
use crate::topology::Topology;
use crate::units::{ByteSize, Frequency, Rate, Time};

/// The largest window with a scale of 8 bits.
const LARGEST_WINDOW: u64 = (u16::MAX as u64) << 8;

const MTUS: [u64; 5] = [256, 512, 1024, 2048, 4096];

pub(super) fn qp(mut section: Section) -> LabQp {
    let mtu = section.one_of("mtu", 4096, &MTUS) as u16;
    let ack_timeout = section.read("ack_timeout", Time::from_ns(4096 << 14));
    let verbs =
        [("write-imm", LabVerb::WriteImm), ("write", LabVerb::Write), ("send", LabVerb::Send), ("read", LabVerb::Read)];
    let mut qp = LabQp {
        mtu,
        ack_timeout_code: 0,
        retry_cnt: section.integer("retry_cnt", 7, 0..=7) as u8,
        rnr_retry: section.integer("rnr_retry", 7, 0..=7) as u8,
        dscp: section.integer("dscp", 26, 0..=63) as u8,
        cnp_dscp: section.integer("cnp_dscp", 48, 0..=63) as u8,
        cn_tag: section.read("cn_tag", false),
        ack_every: section.integer("ack_every", 16, 0..=1 << 22) as u32,
        window: section.integer("window", 4096, 1..=1 << 22) as u32,
        rings: section.choice("rings", Rings::Chip, &[("chip", Rings::Chip), ("memory", Rings::Memory)]),
        verb: section.choice("verb", LabVerb::WriteImm, &verbs),
        mode: section.choice("mode", Mode::Push, &MODES),
        responder_resources: section.integer("responder_resources", 16, 1..=16) as u8,
        clock: section.optional::<Frequency>("clock"),
        ack_delay: section.read("ack_delay", Time::from_us(1)),
        cnp_interval: section.read("cnp_interval", Time::from_us(50)),
        cnp_port_interval: section.optional::<Time>("cnp_port_interval"),
        cnp_above: None,
        rnr_delay: section.read("rnr_delay", Time::from_us(80)),
        consumer: None,
    };
    qp.ack_timeout_code = ack_timeout_code(ack_timeout);
    let consumer_rate = section.optional::<Rate>("consumer_rate");
    let slots = section.integer("consumer_slots", 64, 1..=65_536) as u32;
    qp.consumer = consumer_rate.map(|rate| (rate, slots));
    let cnp_above = section.optional::<Rate>("cnp_above");
    let cnp_window = section.read("cnp_window", Time::from_us(32));
    qp.cnp_above = cnp_above.map(|rate| (rate, cnp_window));
    if qp.cnp_port_interval == Some(Time::ZERO) {
        section.refuse("cnp_port_interval", "allowed is more than 0; without the key a port has no limit");
    }
    if cnp_window == Time::ZERO {
        section.refuse("cnp_window", "allowed is more than 0");
    }
    if section.has("clock") && qp.clock.is_some_and(|clock| !(1_000_000..=1_000_000_000).contains(&(clock.0 / 1000))) {
        section.refuse("clock", "allowed is 1MHz to 1000MHz");
    }
    if ack_timeout > Time::from_ns(4096) * (1 << 31) {
        section.refuse("ack_timeout", "allowed is 0us for never, or up to 8796s (IBTA 9.7.6.1.3)");
    }
    if qp.ack_delay > Time::from_s(1) {
        section.refuse("ack_delay", "allowed is up to 1s");
    }
    if !(Time::from_us(10)..=Time::from_ns(655_360_000)).contains(&qp.rnr_delay) {
        section.refuse("rnr_delay", "allowed is 10us to 655.36ms, the range of the RNR timer (IBTA table 45)");
    }
    if qp.cnp_dscp >> 3 == qp.class() {
        let message = format!("allowed is a class (DSCP / 8) other than that of data, {}", qp.class());
        section.refuse("cnp_dscp", message);
    }
    section.finish();
    qp
}

pub(super) const MODES: [(&str, Mode); 2] = [("push", Mode::Push), ("pull", Mode::Pull)];

/// Messages that a board may hold: more than READs may be outstanding.
const SLOTS: std::ops::RangeInclusive<u64> = 32..=65_536;

/// `[pull]`
pub(super) fn pull(mut section: Section) -> LabPull {
    let pull = LabPull {
        window: section.optional::<ByteSize>("window"),
        slots: section.integer("slots", 1024, SLOTS) as u32,
        patience: section.optional::<Time>("patience"),
    };
    if pull.patience == Some(Time::ZERO) {
        section.refuse("patience", "allowed is more than 0");
    }
    section.finish();
    pull
}

/// `[tcp]`, or a flow's own table, in which what is left out is as in `default`.
pub(super) fn tcp(mut section: Section, default: LabTcp) -> LabTcp {
    let variants = [("new-reno", TcpVariant::NewReno), ("bic", TcpVariant::Bic), ("cubic", TcpVariant::Cubic)];
    let tcp = LabTcp {
        variant: section.choice("variant", default.variant, &variants),
        sack: section.read("sack", default.sack),
        mss: section.integer("mss", default.mss.into(), 88..=9_948) as u32,
        initial_window: section.integer("initial_window", default.initial_window.into(), 1..=1000) as u32,
        receive_buffer: section.read("receive_buffer", default.receive_buffer),
        stall: stall(&mut section, default.stall),
        min_rto: section.read("min_rto", default.min_rto),
        send_buffer: section.optional::<ByteSize>("send_buffer").or(default.send_buffer),
        limiter_queue: limiter_queue(&mut section, default.limiter_queue),
        delayed_ack: section.read("delayed_ack", default.delayed_ack),
        back_off: section.read("back_off", default.back_off),
        nagle: section.read("nagle", default.nagle),
        dscp: section.integer("dscp", default.dscp.into(), 0..=63) as u8,
    };
    if !(u64::from(tcp.mss)..=LARGEST_WINDOW).contains(&tcp.receive_buffer.bytes()) {
        let message = format!("allowed is one segment ({}B) to {LARGEST_WINDOW}B", tcp.mss);
        section.refuse("receive_buffer", message);
    }
    if !(Time::from_us(1)..=Time::from_s(60)).contains(&tcp.min_rto) {
        section.refuse("min_rto", "allowed is 1us to 60s");
    }
    if tcp.delayed_ack >= tcp.min_rto {
        section.refuse("delayed_ack", format!("allowed is less than min_rto, {}", tcp.min_rto));
    }
    section.finish();
    tcp
}

/// `stall_start` and `stall_time`: one says nothing without the other.
fn stall(section: &mut Section, default: Option<TcpStall>) -> Option<TcpStall> {
    let start = section.optional::<Time>("stall_start").or(default.map(|stall| stall.start));
    let time = section.optional::<Time>("stall_time").or(default.map(|stall| stall.time));
    match (start, time) {
        (Some(_), None) => section.refuse("stall_start", "give stall_time, too: for how long nothing is read"),
        (None, Some(_)) => section.refuse("stall_time", "give stall_start, too: when the receiver stops reading"),
        _ => {}
    }
    Some(TcpStall { start: start?, time: time? })
}

/// `limiter_queue` and `limiter_full`.
fn limiter_queue(section: &mut Section, default: Option<LimiterQueue>) -> Option<LimiterQueue> {
    let bytes = section.optional::<ByteSize>("limiter_queue").map(ByteSize::bytes);
    let bytes = bytes.or(default.map(|queue| queue.bytes));
    let ends = [("wait", FullQueue::Wait), ("drop", FullQueue::Drop)];
    let full = section.choice("limiter_full", default.map(|queue| queue.full).unwrap_or_default(), &ends);
    Some(LimiterQueue { bytes: bytes?, full })
}

impl Default for LabTcp {
    /// New Reno with SACK as a present-day Linux sets it, but for the congestion control.
    fn default() -> Self {
        LabTcp {
            variant: TcpVariant::NewReno,
            sack: true,
            mss: 1460,
            initial_window: 10,
            receive_buffer: ByteSize(4_000_000),
            stall: None,
            min_rto: Time::from_ms(200),
            send_buffer: None,
            limiter_queue: None,
            delayed_ack: Time::from_ms(40),
            back_off: true,
            nagle: true,
            dscp: 0,
        }
    }
}

/// The law of a flow and its numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laws {
    pub(super) law: Law,
    profiled: Profiled,
    /// A key has the share; without one it follows from the topology.
    pub(super) is_share_given: bool,
    pub(super) dcqcn: DcqcnSettings,
    pub(super) qcn: QcnSettings,
}

const LAWS: [(&str, Law); 3] = [("dcqcn", Law::Dcqcn), ("qcn", Law::Qcn), ("off", Law::Off)];

impl Laws {
    /// `[cc]`: by default profile "penstock", with the share from the topology.
    pub(super) fn read(section: Section, topology: &Topology) -> Self {
        let profiled = Profiled { profile: Profile::Penstock, share: topology.share() };
        let default = Laws {
            law: Law::Dcqcn,
            profiled,
            is_share_given: false,
            dcqcn: profiled.dcqcn(),
            qcn: QcnSettings::default(),
        };
        default.overlaid(section)
    }

    /// These settings, overridden by the keys of a table: another profile or share sets all DCQCN parameters again.
    pub(super) fn overlaid(&self, mut section: Section) -> Self {
        let law = section.choice("law", self.law, &LAWS);
        let is_share_given = self.is_share_given || section.has("share");
        let profiled = Profiled::read(&mut section, self.profiled);
        let dcqcn = if profiled == self.profiled { self.dcqcn } else { profiled.dcqcn() };
        let dcqcn = DcqcnSettings::read(&mut section, DcqcnSettings { law, ..dcqcn });
        let mut table = section.section("qcn");
        let qcn = QcnSettings::read(&mut table, self.qcn);
        table.finish();
        if dcqcn.increase_interval == Time::ZERO && dcqcn.byte_threshold == ByteSize(0) {
            let message = "the queue pair cannot recover: allowed is more than 0 for this or for byte_threshold";
            section.refuse("increase_interval", message);
        }
        if dcqcn.rate_min == Rate(0) {
            section.refuse("rate_min", "allowed is more than 0");
        }
        section.finish();
        Laws { law, profiled, is_share_given, dcqcn, qcn }
    }

    /// These settings for a sender of this weight, among `senders` of the weight `all` in sum: shares are in proportion.
    pub(super) fn weighted(&self, weight: u64, (all, senders): (u128, u128)) -> Self {
        let share = u128::from(self.profiled.share.0) * senders * u128::from(weight) / all.max(1);
        self.at_share(Rate(u64::try_from(share).unwrap_or(u64::MAX)))
    }

    /// These settings for another share: what profile "penstock" derives from it is derived again, other keys stay.
    fn at_share(&self, share: Rate) -> Self {
        let dcqcn = match self.profiled.profile {
            Profile::Penstock => rederived(self.dcqcn, self.profiled.share, share),
            _ => self.dcqcn,
        };
        Laws { profiled: Profiled { share, ..self.profiled }, dcqcn, ..*self }
    }

    /// The share, where the profile has one.
    pub(super) fn share(&self) -> Option<Rate> {
        (self.profiled.profile == Profile::Penstock).then_some(self.profiled.share)
    }

    /// The line rate, which is that of the sender's link.
    pub(super) fn at_line_rate(&self, rate_line: Rate) -> Self {
        let dcqcn = DcqcnSettings { rate_line, ..self.dcqcn };
        Laws { dcqcn, qcn: QcnSettings { rate_line, ..self.qcn }, ..*self }
    }
}

/// Settings of a flow whose share was `from`, for the share `to`.
pub(super) fn rederived(settings: DcqcnSettings, from: Rate, to: Rate) -> DcqcnSettings {
    fn pick<T: PartialEq>(value: T, old: T, new: T) -> T {
        if value == old {
            new
        } else {
            value
        }
    }
    let (old, new) = (DcqcnSettings::for_share(from), DcqcnSettings::for_share(to));
    DcqcnSettings {
        rate_ai: pick(settings.rate_ai, old.rate_ai, new.rate_ai),
        rate_hai: pick(settings.rate_hai, old.rate_hai, new.rate_hai),
        rate_min: pick(settings.rate_min, old.rate_min, new.rate_min),
        rate_start: pick(settings.rate_start, old.rate_start, new.rate_start),
        alpha_interval: pick(settings.alpha_interval, old.alpha_interval, new.alpha_interval),
        increase_interval: pick(settings.increase_interval, old.increase_interval, new.increase_interval),
        ..settings
    }
}
