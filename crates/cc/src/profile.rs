// SPDX-License-Identifier: Apache-2.0
//! Named parameter sets of DCQCN: our own, computed from the share of a sender, and those of two papers.

use crate::parameters::{AlphaRule, DcqcnSettings, StageCounting};
use penstock_units::{ByteSize, Rate, Time};

/// A named set of DCQCN's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The profile of any number of senders with a share each ([`DcqcnSettings::for_share`]).
    Penstock,
    /// AdvCam Table II: a few senders over minutes, or senders that do not know their share.
    AdvCam,
    /// Zhu et al., SIGCOMM 2015, their testbed of 40 Gb/s.
    Zhu,
    /// The rules of the RDMA simulators on ns-3 (HPCC's, ns3-roce) with the numbers of Zhu et al.
    Ns3,
}

impl Profile {
    /// Its parameters. `share` is what a sender gets of the receiver's line if all send at once (line x weight /
    /// senders); the papers' sets ignore it.
    pub fn dcqcn(self, share: Rate) -> DcqcnSettings {
        match self {
            Self::Penstock => DcqcnSettings::for_share(share),
            Self::AdvCam => DcqcnSettings::default(),
            Self::Zhu => DcqcnSettings::zhu(),
            Self::Ns3 => DcqcnSettings::ns3(),
        }
    }
}

/// The length on the wire of a packet of MTU 4096, with all headers, preamble and gap.
const PACKET: u64 = 4096 + 90;
/// The least interval between increases: that of Zhu et al., above the 50 us in which a receiver sends at most one CNP.
const INCREASE_INTERVAL: Time = Time::from_us(55);

impl DcqcnSettings {
    /// Profile "penstock", made for hundreds of senders into one receiver (docs/congestion-control.md gives the source
    /// of each number and the results).
    ///
    /// A flow starts at its share and never falls below 15/16 of it, so that all flows together neither flood the
    /// receiver at the start nor leave its line idle. It increases in steps of share/256, three per packet time at its
    /// share, but not more often than CNPs can respond; the steps stop while a pause holds the sender.
    pub fn for_share(share: Rate) -> Self {
        let fraction = |part: u64, of: u64| Rate((u128::from(share.0) * u128::from(part) / u128::from(of)) as u64);
        let interval = match share {
            Rate(0) => INCREASE_INTERVAL,
            share => INCREASE_INTERVAL.max(share.time_for(PACKET) / 3),
        };
        Self {
            hold_timer: true,
            g_shift: 6,
            stage_threshold: 1,
            hyper_threshold: 50,
            rate_ai: fraction(1, 256),
            rate_hai: fraction(8, 256),
            rate_min: fraction(15, 16),
            rate_start: Some(share),
            decrease_interval: Time::from_us(50),
            alpha_interval: interval,
            increase_interval: interval,
            byte_threshold: ByteSize(0),
            ..Self::default()
        }
    }

    /// Profile "zhu": the testbed of Zhu et al., SIGCOMM 2015. The paper does not give R_HAI (here ten R_AI, as in QCN)
    /// and R_min.
    fn zhu() -> Self {
        Self {
            stage_counting: StageCounting::PerTrigger,
            g_shift: 8,
            stage_threshold: 5,
            rate_ai: Rate::from_mbps(40),
            rate_hai: Rate::from_mbps(400),
            decrease_interval: Time::from_us(50),
            alpha_interval: Time::from_us(55),
            increase_interval: Time::from_us(55),
            byte_threshold: ByteSize(10_000_000),
            ..Self::default()
        }
    }

    /// Profile "ns3": DCQCN as the RDMA simulators on ns-3 have it, with the numbers of "zhu", which their files then set.
    /// They have no byte counter; hyper increase follows one additive step, by the timer alone; cuts and alpha wait for
    /// the ends of intervals that run on from the first CNP.
    fn ns3() -> Self {
        let zhu = Self::zhu();
        Self {
            stage_counting: StageCounting::Single,
            hyper_threshold: zhu.stage_threshold + 1,
            byte_threshold: ByteSize(0),
            cut_on_tick: true,
            alpha_rule: AlphaRule::Interval,
            clamp_target: false,
            clamp_increasing: true,
            ..zhu
        }
    }
}
