// SPDX-License-Identifier: Apache-2.0
//! The results of a run in `summary.json`: the laboratory's part, and those of boards and readout if present.
//! The same seed gives the same values, except for `timing`. Source: docs/lab.md documents every key.

use super::board::BoardSummary;
use super::readout::ReadoutCounts;
use penstock_cli_common::outcome::Verdict;
use penstock_dashboard::Applied;
use penstock_lab::report::{per, LabSummary};
use penstock_netsim::{StationStats, Time};
use penstock_readout::ReceiverReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// summary.json
#[derive(Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    pub lab: LabSummary,
    /// Verilated boards, in the order of their flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boards: Vec<BoardSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readout: Option<ReadoutSummary>,
    /// The changes made from the live page: such a run cannot be repeated from its scenario alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<Applied>,
}

impl Summary {
    /// True with a readout if every event of the scenario is complete and equals what was sent, every sender has its
    /// acknowledgements, and no queue was longer than pull allows. The laboratory's verdict without one.
    pub fn verdict(&self) -> Verdict {
        let verified = match &self.readout {
            Some(readout) => {
                readout.events_complete == readout.events_wanted
                    && readout.byte_exact
                    && self.lab.flows.iter().all(|flow| flow.failed.is_none())
                    && self.lab.is_within_bound()
            }
            None => self.lab.is_verified(),
        };
        if verified {
            Verdict::Verified
        } else {
            Verdict::Fault
        }
    }
}

/// The events stored by the readout.
#[derive(Debug, Serialize)]
pub struct ReadoutSummary {
    /// Its host.
    pub host: String,
    pub events_wanted: u64,
    pub events_complete: u64,
    pub events_incomplete: u64,
    pub bytes_stored: u64,
    /// The stored data equals the sent data.
    pub byte_exact: bool,
    /// Payload stored per second of simulated time, 10^9 bit/s.
    pub goodput_gbps: f64,
    /// The same payload over the time from its first packet to its last, without what comes before and after.
    pub goodput_first_to_last_gbps: Option<f64>,
    /// Jain's index of the boards' goodput, mean over windows of 1 ms in which all were sending.
    pub jain_1ms: Option<f64>,
    /// Frames dropped at the host's port, by reason.
    pub dropped_frames: BTreeMap<&'static str, u64>,
    /// Counters of its end of each board's connection.
    pub queue_pairs: Vec<BTreeMap<String, u64>>,
    #[serde(flatten)]
    pub report: ReceiverReport,
}

impl ReadoutSummary {
    pub fn new(
        host: &str,
        events_wanted: u64,
        simulated: Time,
        counts: ReadoutCounts,
        port: &StationStats,
        delivered: &Delivered,
    ) -> Self {
        let ReadoutCounts { report, queue_pairs, ignored, received } = counts;
        let bytes_stored = report.receiver.bytes_stored;
        ReadoutSummary {
            host: host.to_owned(),
            events_wanted,
            events_complete: report.builder.events_complete,
            events_incomplete: report.builder.events_incomplete,
            bytes_stored,
            byte_exact: report.check.as_ref().is_some_and(penstock_readout::CheckReport::byte_exact),
            goodput_gbps: per(bytes_stored as f64 * 8e-9, simulated.as_secs_f64()),
            goodput_first_to_last_gbps: received.and_then(|received| received.gbps(bytes_stored)),
            jain_1ms: delivered.jain(),
            dropped_frames: [
                ("fcs_errors", port.fcs_errors),
                ("rx_icrc_encapsulated", port.icrc_errors),
                ("malformed", port.malformed),
                ("not_roce", port.unclaimed),
                ("unknown_qpn", port.unknown_qpn),
                ("after_vanishing", ignored),
            ]
            .into(),
            queue_pairs,
            report,
        }
    }
}

/// Payload bytes that each flow had delivered at the end of each step of a run.
#[derive(Debug, Default)]
pub struct Delivered(Vec<Vec<u64>>);

impl Delivered {
    /// Time between two looks at a run's progress; also the resolution of fairness.
    pub const STEP: Time = Time::from_us(100);

    pub fn push(&mut self, bytes: Vec<u64>) {
        self.0.push(bytes);
    }

    /// Mean of Jain's index over 1 ms windows, from the first byte of every flow to the moment the first had all.
    fn jain(&self) -> Option<f64> {
        const STEPS: usize = (Time::from_ms(1).as_ps() / Delivered::STEP.as_ps()) as usize;
        let finals = self.0.last()?;
        let rows = self.0.iter().skip_while(|row| row.contains(&0));
        let contended = rows.take_while(|row| row.iter().zip(finals).all(|(bytes, last)| bytes < last));
        let contended: Vec<_> = contended.step_by(STEPS).collect();
        let of_window = |pair: &[&Vec<u64>]| {
            let shares: Vec<f64> = pair[0].iter().zip(pair[1]).map(|(before, after)| (after - before) as f64).collect();
            jain(&shares)
        };
        let indices: Vec<f64> = contended.windows(2).filter_map(of_window).collect();
        (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
    }
}

/// Jain, Chiu, Hawe 1984: (sum x)^2 / (n sum x^2); 1 when all are equal, 1/n when one has it all.
fn jain(shares: &[f64]) -> Option<f64> {
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    let sum: f64 = shares.iter().sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_shares_and_one_over_n_for_a_monopoly() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn windows_count_while_every_flow_is_sending() {
        let mut delivered = Delivered::default();
        (0..=40u64).for_each(|step| delivered.push(vec![step * 30, step.min(30) * 10]));
        assert_eq!(delivered.jain(), Some(0.8));
        assert_eq!(Delivered::default().jain(), None);
    }
}
