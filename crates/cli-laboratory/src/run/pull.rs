// SPDX-License-Identifier: Apache-2.0
//! A readout that pulls: how it reads, and what it has read.
//! Promise: it reads by the rules of any other host of the laboratory that pulls.

use penstock_lab::{MakerError, ReadoutRequest};
use penstock_netsim::{CameBytes, PullConfig, PullStats, PullWindow as Window};
use penstock_readout::backend::{Backend, Counters, InProcess, PullSettings, PullWindow};
use penstock_transport::Mtu;

/// How it reads; `None`: boards send.
pub fn settings(request: &ReadoutRequest) -> Result<Option<PullSettings>, MakerError> {
    let Some(PullConfig { window, patience, .. }) = request.pull else { return Ok(None) };
    let (spec, qp) = (request.spec, &request.scenario.qp);
    Ok(Some(PullSettings {
        boards: request.boards.len(),
        slots: spec.slots,
        slot_bytes: u32::try_from(spec.slot_size.bytes())?,
        mtu: Mtu::from_bytes(qp.mtu.into()).ok_or("qp.mtu is not an MTU of RoCE")?,
        window: match window {
            Window::Given(bytes) => PullWindow::Bytes(bytes),
            Window::Measured { line } => PullWindow::Measured(line),
        },
        patience,
        ack_timeout: qp.ack_timeout_code,
    }))
}

/// What it has pulled from its boards; `came`: what has come from them.
pub fn stats(backend: &mut InProcess, boards: u16, came: CameBytes) -> PullStats {
    let all = backend.counters();
    let of_boards = |name| (0..boards).map(|board| named(&backend.board_counters(board), name)).sum::<u64>();
    PullStats {
        window_bytes: named(&all, "pull_window_bytes"),
        in_flight_bytes: named(&all, "pull_in_flight_bytes"),
        highest_in_flight_bytes: named(&all, "pull_highest_in_flight_bytes"),
        reads: named(&all, "pull_reads"),
        announcements: of_boards("pull_announcements"),
        refused: of_boards("pull_repeated") + of_boards("pull_malformed"),
        silences: named(&all, "pull_silences"),
        came,
    }
}

fn named(counters: &Counters, name: &str) -> u64 {
    counters.iter().find(|(one, _)| one == name).map_or(0, |(_, value)| *value)
}
