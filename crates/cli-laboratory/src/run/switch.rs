// SPDX-License-Identifier: Apache-2.0
//! The QCN switch in gateware as a switch of a laboratory (`gateware = true`).

use penstock_board::{SwitchLine, SwitchNode, SwitchPause, SwitchSettings};
use penstock_lab::{MakerError, SwitchRequest};
use penstock_netsim::{Node, PfcParams, PfcThreshold};

/// The node of a switch; for `Lab::build`.
pub fn switch(request: SwitchRequest) -> Result<Box<dyn Node>, MakerError> {
    let SwitchRequest { scenario, params, mac, ports, rate, link_delay, table, seed } = request;
    let line = SwitchLine::at(rate).ok_or_else(|| format!("there is no switch in gateware with lines of {rate}"))?;
    let settings = SwitchSettings {
        mac,
        table: table.into_iter().map(|(mac, port)| (mac, port.0 as u8)).collect(),
        limit_bytes: params.buffer.bytes(),
        point: params.qcn.map(|qcn| (qcn.marking, seed)),
        pause: params.pfc.as_ref().map(pause).transpose()?,
    };
    let class = usize::from(scenario.qp.class());
    Ok(Box::new(SwitchNode::new(line, &settings, ports, link_delay, scenario.trace.interval, class)?))
}

fn pause(pfc: &PfcParams) -> Result<SwitchPause, MakerError> {
    match pfc.threshold {
        PfcThreshold::Queue { xoff, xon } => {
            Ok(SwitchPause { frame: pfc.frame, classes: pfc.classes, xoff: xoff.bytes(), xon: xon.bytes() })
        }
        _ => Err("the gateware pauses by the length of its queues only: threshold = \"queue\"".into()),
    }
}
