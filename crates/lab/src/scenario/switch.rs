// SPDX-License-Identifier: Apache-2.0
//! Switches of a scenario, and how their marking scales with a port's rate.

use penstock_netsim::{EcnParams, SwitchParams};

use crate::units::{ByteSize, Rate};

/// A switch and its settings.
#[derive(Debug, Clone)]
pub struct SwitchSpec {
    /// Its number in the topology.
    pub node: usize,
    pub params: SwitchParams,
    /// The QCN switch in gateware, with those of `params` that it has.
    pub gateware: bool,
    /// Marking thresholds hold for ports of this rate and grow with the rate of the port; `None`: the same for all.
    pub ecn_rate: Option<Rate>,
}

impl SwitchSpec {
    /// Marking of a port of this rate, by class.
    pub fn marking(&self, rate: Rate) -> [Option<EcnParams>; 8] {
        let at_rate = |ecn| self.ecn_rate.map_or(ecn, |reference| scaled(ecn, rate, reference));
        self.params.ecn.map(|ecn| ecn.map(at_rate))
    }
}

/// Marking thresholds of a port: those of `reference`, in proportion to its rate.
pub(crate) fn scaled(ecn: EcnParams, rate: Rate, reference: Rate) -> EcnParams {
    let scale = |size: ByteSize| {
        let scaled = u128::from(size.bytes()) * u128::from(rate.0) / u128::from(reference.0.max(1));
        ByteSize(u64::try_from(scaled).unwrap_or(u64::MAX))
    };
    EcnParams { kmin: scale(ecn.kmin), kmax: scale(ecn.kmax), pmax: ecn.pmax }
}
