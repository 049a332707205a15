// SPDX-License-Identifier: Apache-2.0
//! The settings of the QCN switch as words for its pins; the layouts are those of `rtl/switch/switch_pkg.sv`.

use penstock_cc::QcnMarking;
use penstock_netsim::PauseFrame;
use penstock_wire::gateware::{SWITCH_ADDRESSES, SWITCH_MAX_SETTING, SWITCH_PORTS};
use penstock_wire::MacAddr;

/// Priority of notifications, that of the simulated switch.
const CNM_PRIORITY: u64 = 6;
/// The lowest priority of the upper queue.
const UPPER_PRIORITY: usize = 6;
/// Pause frames ask for the longest time.
const PAUSE_QUANTA: u64 = 0xFFFF;

/// The settings of a QCN switch: queue 0 of each port has priorities 0 to 5 and, if there is one, a congestion point;
/// queue 1 has priorities 6 and 7. Received pause and PFC are obeyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchSettings {
    /// Source of notifications, pause and PFC.
    pub mac: MacAddr,
    /// The stations and their ports.
    pub table: Vec<(MacAddr, u8)>,
    /// Longest queue, bytes of frames without FCS.
    pub limit_bytes: u64,
    /// Congestion points, and the seed of their jitter.
    pub point: Option<(QcnMarking, u32)>,
    pub pause: Option<SwitchPause>,
}

/// Pause by the length of the egress queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchPause {
    pub frame: PauseFrame,
    /// Priorities that PFC may stop, bit i for priority i.
    pub classes: u8,
    /// The queue above which a port that sends into it is stopped, and down to which it stays so, bytes.
    pub xoff: u64,
    pub xon: u64,
}

/// What the gateware's settings cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    #[error("{0} stations; the table of addresses has {SWITCH_ADDRESSES} entries")]
    Stations(usize),
    #[error("port {0} of {1}; allowed are ports 0 to {last}", last = SWITCH_PORTS - 1)]
    Port(u8, MacAddr),
    #[error("{0} = {1}; allowed is up to {2}")]
    TooLarge(&'static str, u64, u64),
}

impl SwitchSettings {
    /// # Errors
    /// A number is larger than its field, or there are more stations than entries.
    pub(super) fn check(&self) -> Result<(), SwitchError> {
        if self.table.len() > SWITCH_ADDRESSES {
            return Err(SwitchError::Stations(self.table.len()));
        }
        if let Some((mac, port)) = self.table.iter().find(|(_, port)| usize::from(*port) >= SWITCH_PORTS) {
            return Err(SwitchError::Port(*port, *mac));
        }
        let (marking, _) = self.point.unwrap_or_default();
        let longest = marking.sample_bytes.into_iter().max().unwrap_or(0);
        let pause = self.pause.map_or((0, 0), |pause| (pause.xoff, pause.xon));
        let fields = [
            ("limit_bytes", self.limit_bytes, SWITCH_MAX_SETTING),
            ("q_eq", marking.q_eq.into(), SWITCH_MAX_SETTING),
            ("w", marking.w.into(), 255),
            ("sample_bytes", longest.into(), SWITCH_MAX_SETTING),
            ("xoff", pause.0, SWITCH_MAX_SETTING),
            ("xon", pause.1, SWITCH_MAX_SETTING),
        ];
        match fields.into_iter().find(|(_, value, most)| value > most) {
            Some((name, value, most)) => Err(SwitchError::TooLarge(name, value, most)),
            None => Ok(()),
        }
    }

    /// `switch_cfg_t`.
    pub(super) fn words(&self) -> [u32; 14] {
        let mut fields = Fields { words: [0; 14], at: 14 * 32 };
        fields.put(48, mac_bits(self.mac));
        fields.put(1, 0); // learn
        for priority in (0..8).rev() {
            fields.put(3, u64::from(priority >= UPPER_PRIORITY));
        }
        fields.put(24, self.limit_bytes);
        fields.put(8, u64::from(self.point.is_some())); // of queue 0
        fields.put(3, CNM_PRIORITY);
        let (marking, seed) = self.point.unwrap_or_default();
        fields.put(24, marking.q_eq.into());
        fields.put(8, marking.w.into());
        fields.put(8, marking.jitter.into());
        fields.put(32, seed.into());
        for bytes in marking.sample_bytes.into_iter().rev() {
            fields.put(24, bytes.into());
        }
        let by = |frame| self.pause.is_some_and(|pause| pause.frame == frame);
        fields.put(1, u64::from(by(PauseFrame::Port)));
        fields.put(1, u64::from(by(PauseFrame::Pfc)));
        fields.put(8, self.pause.map_or(0, |pause| pause.classes.into()));
        fields.put(16, PAUSE_QUANTA);
        fields.put(24, self.pause.map_or(0, |pause| pause.xoff));
        fields.put(24, self.pause.map_or(0, |pause| pause.xon));
        fields.put(2, 0b11); // obey pause, obey PFC
        debug_assert_eq!(fields.at, 0, "switch_cfg_t has 448 bits");
        fields.words
    }

    /// `mac_entry_t` of each station.
    pub(super) fn entries(&self) -> impl Iterator<Item = u64> + '_ {
        const VALID_AND_STATIC: u64 = 0b11 << 51;
        self.table.iter().map(|(mac, port)| VALID_AND_STATIC | mac_bits(*mac) << 3 | u64::from(*port))
    }
}

/// The first octet on top.
fn mac_bits(mac: MacAddr) -> u64 {
    mac.0.iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet))
}

/// A packed struct, filled from its first field on, which is on top.
struct Fields {
    words: [u32; 14],
    /// Bits that are not filled yet.
    at: usize,
}

impl Fields {
    fn put(&mut self, width: usize, value: u64) {
        self.at -= width;
        for bit in (0..width).filter(|bit| value >> bit & 1 != 0) {
            let at = self.at + bit;
            self.words[at / 32] |= 1 << (at % 32);
        }
    }
}
