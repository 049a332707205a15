// SPDX-License-Identifier: Apache-2.0
//! A switch with `gateware = true`: what of `[switch]` the QCN switch in gateware has, and its computed values.
//! Promise: a key that it does not have is refused, not ignored.
//! Source: docs/qcn-switch.md.

use penstock_netsim::{
    lossless_headroom, max_frame, Headroom, PfcParams, PfcThreshold, QcnPoints, Scheduling, SwitchParams,
};
use penstock_wire::gateware::{SWITCH_MAX_SETTING, SWITCH_QUEUE_BYTES};

use super::{Notes, OneSwitch, Threshold, THRESHOLDS};
use crate::units::ByteSize;

impl OneSwitch<'_> {
    /// The parameters of the gateware; `buffer` is the longest output queue.
    pub(super) fn gateware(&self, notes: &mut Notes) -> SwitchParams {
        let keys = self.keys;
        if keys.marks {
            let message = "allowed is false with gateware = true: it does not mark".to_owned();
            notes.refuse(&self.key("ecn"), true, message);
        }
        if keys.weights.is_some() {
            let message = "allowed is strict priority with gateware = true: leave this key out".to_owned();
            notes.refuse(&self.key("weights"), "", message);
        }
        if let Some(alpha) = keys.lossy_alpha {
            let message = "not allowed with gateware = true, whose queues share no buffer; `buffer` limits each";
            notes.refuse(&self.key("lossy_alpha"), alpha, message.to_owned());
        }
        if let Some(headroom) = keys.headroom {
            let message = "not allowed with gateware = true: what `buffer` has above `xoff` is the headroom";
            notes.refuse(&self.key("headroom"), headroom, message.to_owned());
        }
        let most = ByteSize(SWITCH_QUEUE_BYTES);
        let limit = keys.buffer.unwrap_or(most);
        if limit > most {
            let message = format!("allowed is up to {most} with gateware = true, the memory of each output queue");
            notes.refuse(&self.key("buffer"), limit, message);
        }
        if let Some(qcn) = keys.qcn {
            let longest = qcn.sample_bytes.iter().max().copied().unwrap_or(0);
            for (key, value) in [("qcn.q_eq", qcn.q_eq), ("qcn.sample", longest)] {
                if u64::from(value) > SWITCH_MAX_SETTING {
                    let message = format!("allowed is up to {} with gateware = true", ByteSize(SWITCH_MAX_SETTING));
                    notes.refuse(&self.key(key), ByteSize(value.into()), message);
                }
            }
        }
        notes.note(self.name, "buffer", limit);
        SwitchParams {
            buffer: limit,
            ecn: [None; 8],
            pfc: keys.pfc.then(|| self.gateware_pause(limit, notes)),
            scheduling: Scheduling::Strict,
            qcn: keys.qcn.map(|marking| QcnPoints { marking, ..QcnPoints::default() }),
            ..SwitchParams::default()
        }
    }

    fn gateware_pause(&self, limit: ByteSize, notes: &mut Notes) -> PfcParams {
        let keys = self.keys;
        if keys.threshold != Threshold::Queue {
            let word = THRESHOLDS.iter().find(|(_, kind)| *kind == keys.threshold).map_or("", |(word, _)| word);
            let message = "allowed is \"queue\" with gateware = true, or pfc = false".to_owned();
            notes.refuse(&self.key("threshold"), word, message);
        }
        let frame = max_frame(self.mtu).bytes();
        // Of all ports but the queue's own: what is on the way, and a frame in the switch.
        let rooms = self.links.iter().map(|link| lossless_headroom(link, self.mtu).bytes() + frame);
        let (sum, least) = rooms.fold((0, u64::MAX), |(sum, least), room| (sum + room, least.min(room)));
        let room = sum - least.min(sum);
        let xoff = keys.xoff.unwrap_or(ByteSize(limit.bytes().saturating_sub(room).max(2 * frame)));
        let xon = keys.xon.unwrap_or(ByteSize(xoff.bytes().saturating_sub(2 * frame)));
        if xoff.bytes() + room > limit.bytes() {
            let message = format!(
                "frames may be dropped: rate, delay and MTU of the links of {} need {} above this in a queue of {limit}",
                self.name,
                ByteSize(room)
            );
            notes.warn(&self.key("xoff"), xoff, message);
        }
        if xon >= xoff {
            notes.refuse(&self.key("xon"), xon, format!("allowed is less than xoff, which is {xoff} at {}", self.name));
        }
        notes.note(self.name, "xoff", xoff);
        notes.note(self.name, "xon", xon);
        PfcParams {
            classes: self.lossless(),
            threshold: PfcThreshold::Queue { xoff, xon },
            headroom: Headroom::Fixed(ByteSize(room)),
            frame: keys.frame,
        }
    }
}
