// SPDX-License-Identifier: Apache-2.0
//! Real switches: their published buffers, and the settings used here.
//! Promise: every buffer has a source; settings without a source are the same for all presets and marked as such.
//! Source: named with each preset; docs/switch.md has the links.
//!
//! Vendors publish buffers but seldom thresholds. Without published thresholds a preset uses dynamic thresholds with
//! alpha 1 over headroom computed for each link, one lossless class (3), and marks nothing.

use penstock_cc::QcnMarking;

use super::params::{Alpha, EcnParams, Headroom, PauseFrame, PfcParams, PfcThreshold, QcnPoints, SwitchParams};
use crate::pause::CLASSES;
use crate::units::{ByteSize, Probability};

/// The class that presets make lossless: DSCP 24 to 31, as RoCEv2 is configured by custom.
const LOSSLESS: usize = 3;
/// The path MTU for which presets compute their headroom.
const MTU: u16 = 4096;

/// The state of one switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SwitchPreset {
    name: &'static str,
    buffer: ByteSize,
}

const fn mb(megabytes: u64) -> ByteSize {
    ByteSize(megabytes * 1_000_000)
}

/// All presets, smallest buffer first: each with the switch and its chip, and where the numbers come from.
const SWITCH_PRESETS: [SwitchPreset; 9] = [
    SwitchPreset {
        name: "qcn-netfpga",
        // the QCN hardware evaluation's switch: NetFPGA, 4 ports of 1 Gb/s, QCN, pause at 130 KB, on at 110 KB
        buffer: mb(4),
        // Kabbani, Yasuda, Prabhakar, QCN Hardware Evaluation
    },
    SwitchPreset {
        name: "arista-7050s",
        // Arista 7050S, Broadcom Trident+
        buffer: mb(9),
        // data sheet as collected in the Packet Buffer Reference (port-buffers.forwardingplane.net)
    },
    SwitchPreset {
        name: "arista-7050x",
        // Arista 7050X, Broadcom Trident II
        buffer: mb(12),
        // data sheet as quoted by people.ucsc.edu/~warner/Bufs/Arista-7050X
    },
    SwitchPreset {
        name: "dcqcn-trident2",
        // the switch of the DCQCN paper: Trident II, dynamic threshold, marking for 40 Gb/s
        buffer: mb(12),
        // Zhu et al., SIGCOMM 2015, sections 4 and 5: B 12 MB, beta 8 over 8 classes, K_min 5 KB, K_max 200 KB, 1 %
    },
    SwitchPreset {
        name: "delta-ag9032",
        // Delta AG9032, 32 ports of 100 Gb/s
        buffer: mb(16),
        // its manual, section 2.3 (easymanua.ls/delta/ag9032)
    },
    SwitchPreset {
        name: "mellanox-sn2100",
        // Mellanox SN2100, Spectrum, 16 ports of 100 Gb/s, one pool for all: the switch of FEROCE's test bed
        buffer: mb(16),
        // product brief (manualmachine.com/mellanox/sn2010/8043324-user-manual): Spectrum; its memory as of the SN2700
    },
    SwitchPreset {
        name: "mellanox-sn2700",
        // Mellanox SN2700, Spectrum, one pool for all ports
        buffer: mb(16),
        // people.ucsc.edu/~warner/Bufs/mellanox-spectrum
    },
    SwitchPreset {
        name: "arista-7160",
        // Arista 7160, Cavium XPliant, one pool for all ports
        buffer: mb(24),
        // architecture paper as quoted by people.ucsc.edu/~warner/Bufs/Arista7160.html
    },
    SwitchPreset {
        name: "fs-n5860-48sc",
        // FS N5860-48SC, Trident 3, 48 ports of 10 Gb/s and 8 of 100: the switch of AdvCam's test bed
        buffer: mb(32),
        // people.ucsc.edu/~warner/buffer.html, its table of Trident 3
    },
];

/// A name that is no preset's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no switch is called `{name}` here; allowed are {}", preset_names())]
pub struct UnknownPreset {
    pub name: String,
}

fn preset_names() -> String {
    SWITCH_PRESETS.map(|preset| preset.name).join(", ")
}

impl SwitchParams {
    /// The settings of a switch in `SWITCH_PRESETS`.
    pub fn preset(name: &str) -> Result<Self, UnknownPreset> {
        let preset = SWITCH_PRESETS.iter().find(|preset| preset.name == name);
        let preset = preset.ok_or_else(|| UnknownPreset { name: name.to_owned() })?;
        let common = SwitchParams {
            buffer: preset.buffer,
            pfc: Some(PfcParams::dynamic(1 << LOSSLESS, Alpha::ONE, MTU)),
            lossy_alpha: Some(Alpha::ONE),
            ..SwitchParams::default()
        };
        Ok(match name {
            "qcn-netfpga" => qcn_netfpga(common),
            "dcqcn-trident2" => dcqcn_trident2(common),
            _ => common,
        })
    }
}

fn qcn_netfpga(common: SwitchParams) -> SwitchParams {
    let threshold = PfcThreshold::Queue { xoff: ByteSize(130_000), xon: ByteSize(110_000) };
    // link-level pause by the output queue: every class stops, so every class is lossless
    let pfc =
        PfcParams { classes: u8::MAX, threshold, headroom: Headroom::OfLink { mtu: MTU }, frame: PauseFrame::Port };
    let qcn = QcnPoints { marking: QcnMarking::default(), ..QcnPoints::default() };
    SwitchParams { pfc: Some(pfc), lossy_alpha: None, qcn: Some(qcn), ..common }
}

/// The paper's t_PFC = beta (B - headroom - s) / 8 with beta = 8 is alpha = 1.
fn dcqcn_trident2(common: SwitchParams) -> SwitchParams {
    let pmax = Probability::new(0.01).unwrap_or_default();
    let ecn = EcnParams { kmin: ByteSize(5_000), kmax: ByteSize(200_000), pmax };
    let mut classes = [None; CLASSES];
    classes[LOSSLESS] = Some(ecn);
    SwitchParams { ecn: classes, ..common }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkParams;
    use crate::switch::lossless_buffer;
    use crate::units::{Rate, Time};

    #[test]
    fn every_preset_can_be_chosen_and_is_lossless_on_its_own_ports() {
        for preset in SWITCH_PRESETS {
            let params = SwitchParams::preset(preset.name).unwrap();
            assert_eq!(params.buffer, preset.buffer);
            let (ports, gbps) = match preset.name {
                "qcn-netfpga" => (4, 1),
                "arista-7050s" => (64, 10),
                "dcqcn-trident2" | "arista-7050x" => (32, 40),
                "fs-n5860-48sc" => (48, 10),
                _ => (32, 100),
            };
            let link = LinkParams { rate: Rate::from_gbps(gbps), delay: Time::from_ns(500), ..LinkParams::default() };
            let needed = lossless_buffer(1 << LOSSLESS, &vec![link; ports], MTU);
            assert!(needed < preset.buffer, "{}: {needed} of {}", preset.name, preset.buffer);
        }
    }

    #[test]
    fn the_seeds_switch_has_the_seeds_numbers() {
        let params = SwitchParams::preset("qcn-netfpga").unwrap();
        let Some(PfcThreshold::Queue { xoff, xon }) = params.pfc.map(|pfc| pfc.threshold) else { panic!("of queues") };
        assert_eq!((xoff, xon), (ByteSize(130_000), ByteSize(110_000)));
        assert_eq!(params.qcn.map(|qcn| (qcn.marking.q_eq, qcn.marking.w)), Some((33_000, 2)));
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        let error = SwitchParams::preset("arista").unwrap_err().to_string();
        assert!(error.starts_with("no switch is called `arista` here; allowed are qcn-netfpga, "), "{error}");
    }
}
