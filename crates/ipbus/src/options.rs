// SPDX-License-Identifier: Apache-2.0
//! The parts of the gateware that a board's build has, and the settings that do something only in builds with one.
//! Source: the registers `options`, `tcp.build`, `events.build`, `events.stages` and `timing.status`; the parameters are
//! those of the tops (docs/integration.md).

use crate::map::place_of;
use crate::regs::{cc, connection, events, global, qp, tcp, timing};
use crate::request::Request;

/// Law 2 of `cc.control.law` and of `qp.congestion.law`.
const QCN: u32 = 2;

/// The parts of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The law QCN; DCQCN is in every build.
    pub qcn: bool,
    /// The message source.
    pub source: bool,
    /// ARP, ICMP echo, IPbus and the connection manager.
    pub services: bool,
    /// Queue pairs keep packets until they are acknowledged, and send lost ones again.
    pub retransmission: bool,
    /// Peers may READ the windows of queue pairs.
    pub read: bool,
    /// Peers may WRITE to them, and SEND.
    pub receive: bool,
    /// Peers get queue pairs by the standard connection manager.
    pub rdma_cm: bool,
    /// Queue pairs keep fragments for servers that READ them.
    pub pull: bool,
    /// Number of TCP streams.
    pub streams: u32,
    /// Number of detector inputs.
    pub inputs: u32,
    /// Zero suppression or a module of the user's behind each input.
    pub hook: bool,
    /// Inputs may be streams without end.
    pub streaming: bool,
    /// Triggers, busy and the clock.
    pub triggers: bool,
}

impl Options {
    /// Byte addresses of the registers that have them.
    pub const REGISTERS: [u32; 5] = [global::OPTIONS, tcp::BUILD, events::BUILD, events::STAGES, timing::STATUS];

    /// Asks for them.
    pub fn request() -> Request {
        Request::reads(Self::REGISTERS)
    }

    /// Reads the words of these registers, in their order.
    pub const fn of([options, tcp_build, inputs, stages, timing_status]: [u32; 5]) -> Self {
        Options {
            qcn: global::OPTIONS_QCN_BITS.of(options) != 0,
            source: global::OPTIONS_SOURCE_BITS.of(options) != 0,
            services: global::OPTIONS_SERVICES_BITS.of(options) != 0,
            retransmission: global::OPTIONS_RETRANSMIT_BITS.of(options) != 0,
            read: global::OPTIONS_READ_BITS.of(options) != 0,
            receive: global::OPTIONS_RECEIVE_BITS.of(options) != 0,
            rdma_cm: global::OPTIONS_RDMA_CM_BITS.of(options) != 0,
            pull: global::OPTIONS_PULL_SLOTS_BITS.of(options) != 0,
            streams: tcp::BUILD_N_STREAMS_BITS.of(tcp_build),
            inputs: events::BUILD_N_IN_BITS.of(inputs),
            hook: events::STAGES_HOOK_BITS.of(stages) != 0,
            streaming: events::STAGES_STREAMING_BITS.of(stages) != 0,
            triggers: timing::STATUS_PRESENT_BITS.of(timing_status) != 0,
        }
    }

    /// The part that a change of a word needs and this build lacks, and the parameter that gives it.
    pub fn lacking(&self, address: u32, old: u32, new: u32) -> Option<String> {
        let place = place_of(address)?;
        let chooses_qcn = |mask: u32| new & mask == QCN && old & mask != QCN;
        let sets = |mask: u32| new & mask != 0 && (new ^ old) & mask != 0;
        let (has, part) = match (place.group.name, place.register.name) {
            ("qcn", _) => (self.qcn, QCN_PART),
            ("cc", "control") if chooses_qcn(cc::CONTROL_LAW_BITS.mask) => (self.qcn, QCN_PART),
            ("qp", "congestion") if chooses_qcn(qp::CONGESTION_LAW_BITS.mask) => (self.qcn, QCN_PART),
            ("qp", "transport")
                if sets(qp::TRANSPORT_RETRY_CNT_BITS.mask) || sets(qp::TRANSPORT_RNR_RETRY_BITS.mask) =>
            {
                (self.retransmission, RETRANSMISSION_PART)
            }
            ("qp", "read_depth") => (self.read, READ_PART),
            ("qp", name) if name.starts_with("read_") => (self.read || self.receive, READ_PART),
            (_, "pull_stride") => (self.pull, "READ of kept fragments (PULL_SLOTS is 0)"),
            ("qp", "receive") => (self.receive, "SEND and WRITE of peers (WITH_RECEIVE is 0)"),
            ("connection", "transport")
                if sets(connection::TRANSPORT_RETRY_CNT_BITS.mask)
                    || sets(connection::TRANSPORT_RNR_RETRY_BITS.mask) =>
            {
                (self.retransmission, RETRANSMISSION_PART)
            }
            ("rdma_cm", _) => (self.rdma_cm, "standard connection manager (WITH_RDMA_CM is 0)"),
            ("source" | "replay_block", _) => (self.source, "message source (WITH_SOURCE is 0)"),
            ("tcp", _) => (self.streams > 0, "TCP (WITH_TCP is 0)"),
            ("stream", _) if self.streams == 0 => (false, "TCP (WITH_TCP is 0)"),
            ("stream", _) if place.index >= self.streams => {
                return Some(format!("stream {} (N_STREAMS is {})", place.index, self.streams));
            }
            ("events", "enable" | "hook") if self.inputs > 0 && (new & !old) >> self.inputs != 0 => {
                let beyond = self.inputs + ((new & !old) >> self.inputs).trailing_zeros();
                return Some(format!("input {beyond} (N_IN is {})", self.inputs));
            }
            ("events", _) if self.inputs == 0 => (false, "detector inputs (N_IN is 0)"),
            ("events", "streaming" | "slice_period" | "slice_size") => (self.streaming, "streaming (STREAMING is 0)"),
            ("events", "hook" | "hook_rows") | ("hook_block", _) => (self.hook, "hook (HOOK is 0)"),
            ("timing", _) => (self.triggers, "triggers and clock (TIMING is 0)"),
            _ => return None,
        };
        (!has).then(|| part.to_owned())
    }
}

const QCN_PART: &str = "QCN (WITH_QCN is 0)";
const READ_PART: &str = "READ (WITH_READ is 0)";
const RETRANSMISSION_PART: &str = "retransmission (RETRANSMIT is 0)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{find, Build};

    /// The options with RoCE and nothing else.
    const BARE: Options = Options::of([4, 0, 0, 0, 0]);
    /// The options with everything, four streams and two inputs.
    const FULL: Options = Options::of([127 | 256 << 16, 4, 2, 0x12, 1]);

    fn address(name: &str) -> u32 {
        find(name, Build { queue_pairs: 4, clock_khz: 156_250 }).unwrap()[0].address()
    }

    #[test]
    fn a_setting_needs_the_part_that_uses_it() {
        for (name, old, new, part) in [
            ("cc[2].control", 1, 2, Some("QCN (WITH_QCN is 0)")),
            ("qp[3].congestion", 0x11, 0x12, Some("QCN (WITH_QCN is 0)")),
            ("qcn[0].rate_ai", 5, 6, Some("QCN (WITH_QCN is 0)")),
            ("qp[2].transport", 0x0E5, 0x10E5, Some("retransmission (RETRANSMIT is 0)")),
            ("qp[2].transport", 0x0E5, 0x700E5, Some("retransmission (RETRANSMIT is 0)")),
            ("qp[1].read_depth", 0, 16, Some("READ (WITH_READ is 0)")),
            ("qp[1].receive", 0, 1, Some("SEND and WRITE of peers (WITH_RECEIVE is 0)")),
            ("rdma_cm.listen", 0, 17185, Some("standard connection manager (WITH_RDMA_CM is 0)")),
            ("pull_stride", 0, 64, Some("READ of kept fragments (PULL_SLOTS is 0)")),
            ("connection.transport", 0x770E5, 0x730E5, Some("retransmission (RETRANSMIT is 0)")),
            ("source.count", 0, 1, Some("message source (WITH_SOURCE is 0)")),
            ("replay_block[7].word3", 0, 1, Some("message source (WITH_SOURCE is 0)")),
            ("tcp.segment", 1460, 8960, Some("TCP (WITH_TCP is 0)")),
            ("stream[3].peer_ip", 0, 1, Some("TCP (WITH_TCP is 0)")),
            ("events.enable", 0, 3, Some("detector inputs (N_IN is 0)")),
            ("events.slice_size", 0, 3, Some("detector inputs (N_IN is 0)")),
            ("hook_block[0].word0", 0, 3, Some("hook (HOOK is 0)")),
            ("timing.control", 1, 0, Some("triggers and clock (TIMING is 0)")),
            ("qp[2].transport", 0x770E5, 0x0E4, None),
            ("connection.transport", 0x770E5, 0x770E4, None),
            ("cc[0].control", 1, 0, None),
            ("cc[0].control", 2, 0x102, None),
            ("cc[0].rate_ai", 1, 2, None),
            ("qp[0].congestion", 0, 1, None),
            ("local_ip", 1, 2, None),
        ] {
            assert_eq!(BARE.lacking(address(name), old, new).as_deref(), part, "{name}");
            assert_eq!(FULL.lacking(address(name), old, new), None, "{name}");
        }
        let beyond = FULL.lacking(address("stream[4].peer_ip"), 0, 1);
        assert_eq!(beyond.as_deref(), Some("stream 4 (N_STREAMS is 4)"));
        for (register, old, new, part) in [
            ("events.enable", 0, 0b1010, Some("input 3 (N_IN is 2)")),
            ("events.hook", 0, 4, Some("input 2 (N_IN is 2)")),
            ("events.enable", 0b1000, 0b1011, None),
        ] {
            assert_eq!(FULL.lacking(address(register), old, new).as_deref(), part, "{register}={new}");
        }
        let unhooked = Options { hook: false, streaming: false, ..FULL };
        for (name, part) in [("events.hook", "hook (HOOK is 0)"), ("events.streaming", "streaming (STREAMING is 0)")] {
            assert_eq!(unhooked.lacking(address(name), 0, 1).as_deref(), Some(part));
        }
    }
}
