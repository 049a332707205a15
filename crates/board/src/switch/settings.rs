// SPDX-License-Identifier: Apache-2.0
//! The settings of the QCN switch as words for its registers (`regs/qcn_switch.rdl`).

use self::regs::{global as g, sample};
use penstock_cc::QcnMarking;
use penstock_netsim::PauseFrame;
use penstock_wire::gateware::{SWITCH_ADDRESSES, SWITCH_MAX_SETTING, SWITCH_PORTS};
use penstock_wire::MacAddr;

pub use penstock_ipbus::regs::qcn_switch as regs;

/// Priority of notifications, that of the simulated switch.
const CNM_PRIORITY: u32 = 6;
/// The lowest priority of the upper queue.
const UPPER_PRIORITY: usize = 6;
/// Pause frames ask for the longest time.
const PAUSE_QUANTA: u32 = 0xFFFF;

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

    /// The registers in the order in which they are to be written, and their values. The congestion points come on last:
    /// they begin with the seed.
    pub(super) fn registers(&self) -> Vec<(u32, u32)> {
        let (marking, seed) = self.point.unwrap_or_default();
        let upper = (UPPER_PRIORITY..8).fold(0, |word, priority| word | 1 << (4 * priority));
        let by = |frame| u32::from(self.pause.is_some_and(|pause| pause.frame == frame));
        let pause = self.pause.unwrap_or(SwitchPause { frame: PauseFrame::Pfc, classes: 0, xoff: 0, xon: 0 });
        let control = g::CONTROL_CNM_PRIORITY_BITS.at(CNM_PRIORITY); // nothing is learned
        let mut registers = vec![
            (g::CONTROL, control),
            (g::MAC_HI, (mac_bits(self.mac) >> 32) as u32),
            (g::MAC_LO, mac_bits(self.mac) as u32),
            (g::QUEUE_OF, upper),
            (g::LIMIT, self.limit_bytes as u32),
            (g::Q_EQ, marking.q_eq),
            (g::POINT, g::POINT_WEIGHT_BITS.at(marking.w) | g::POINT_JITTER_BITS.at(marking.jitter)),
            (g::SEED, seed),
            (
                g::PAUSE,
                g::PAUSE_PAUSE_EN_BITS.at(by(PauseFrame::Port))
                    | g::PAUSE_PFC_EN_BITS.at(by(PauseFrame::Pfc))
                    | g::PAUSE_OBEY_PAUSE_BITS.mask
                    | g::PAUSE_OBEY_PFC_BITS.mask
                    | g::PAUSE_CLASSES_BITS.at(pause.classes)
                    | g::PAUSE_QUANTA_BITS.at(PAUSE_QUANTA),
            ),
            (g::XOFF, pause.xoff as u32),
            (g::XON, pause.xon as u32),
        ];
        registers.extend((0u32..).zip(marking.sample_bytes).map(|(at, bytes)| (sample::OCTETS_0 + 4 * at, bytes)));
        for (index, (mac, port)) in (0u32..).zip(&self.table) {
            let is_static = g::ENTRY_HI_VALID_BITS.mask | g::ENTRY_HI_IS_STATIC_BITS.mask;
            let bits = mac_bits(*mac);
            registers.extend([
                (g::ENTRY_HI, is_static | g::ENTRY_HI_PORT_BITS.at(*port) | (bits >> 32) as u32),
                (g::ENTRY_LO, bits as u32),
                (g::ENTRY_WRITE, index),
            ]);
        }
        // of queue 0
        registers.push((g::CONTROL, control | g::CONTROL_QCN_QUEUES_BITS.at(self.point.is_some())));
        registers
    }
}

/// The first octet on top.
fn mac_bits(mac: MacAddr) -> u64 {
    mac.0.iter().fold(0, |bits, octet| bits << 8 | u64::from(*octet))
}
