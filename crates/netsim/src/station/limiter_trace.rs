// SPDX-License-Identifier: Apache-2.0
//! The values of a rate limiter in a trace.
//! Promise: every endpoint with a limiter has the same metrics, which docs/lab.md describes.

use penstock_cc::{FlowState, ALPHA_ONE};

use super::look_ahead::LookAhead;
use crate::trace::TraceSink;
use crate::units::Time;

/// The values of the reaction point for a trace.
const RATE_METRICS: [&str; 4] = ["rate_current_bps", "rate_target_bps", "alpha", "cnp_handled"];

/// And of one under QCN besides: the last |F_b|, stages of timer and byte counter, bytes of the latter's present stage.
const QCN_METRICS: [&str; 4] = ["feedback", "stage_timer", "stage_bytes", "stage_sent_bytes"];

/// Records the limiter's values at `now`; `last_feedback` is the last |F_b| that the endpoint has received.
pub(super) fn record(limiter: &mut LookAhead, now: Time, channel: u16, last_feedback: u8, trace: &mut TraceSink) {
    if RATE_METRICS.iter().chain(&QCN_METRICS).any(|metric| trace.records(metric)) {
        limiter.catch_up(now);
        for (metric, value) in RATE_METRICS.into_iter().zip(rates(limiter)) {
            trace.record(channel, metric, value);
        }
    }
    if let FlowState::Qcn(state) = &limiter.flow().state {
        let [timer, bytes] = [state.stage_timer, state.stage_bytes].map(f64::from);
        let values = [last_feedback.into(), timer, bytes, state.bytes_sent.into()];
        for (metric, value) in QCN_METRICS.into_iter().zip(values) {
            trace.record(channel, metric, value);
        }
    }
}

/// The values of `RATE_METRICS`.
fn rates(limiter: &LookAhead) -> [f64; 4] {
    let bps = |rate| limiter.bits_per_second(rate) as f64;
    let (current, target, alpha, handled) = match &limiter.flow().state {
        FlowState::Dcqcn(state) => {
            let alpha = f64::from(state.alpha()) / f64::from(ALPHA_ONE);
            (state.rate_current, state.rate_target, alpha, state.cnp_handled)
        }
        FlowState::Qcn(state) => (state.rate_current, state.rate_target, 0.0, state.cnp_handled),
    };
    [bps(current), bps(target), alpha, handled.into()]
}
