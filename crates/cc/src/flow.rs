// SPDX-License-Identifier: Apache-2.0
//! One queue pair under either law (DCQCN or QCN), equal to `rtl/cc/cc_step.sv` to the bit.

use crate::cycle_rate::CycleRate;
use crate::pacer::Pacer;
use crate::parameters::{DcqcnParams, Law, QcnParams};
use crate::qcn::QcnState;
use crate::reaction::{Happened, State, Transmitter};

/// The parameters of one group of queue pairs, for either law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CcParams {
    /// Parameters of queue pairs under DCQCN; also selects the law of those without a law of their own.
    pub dcqcn: DcqcnParams,
    /// Parameters of queue pairs under QCN.
    pub qcn: QcnParams,
}

impl CcParams {
    /// R_min of this law lies above the line: it counts as the line, and no notification cuts anything. The gateware
    /// counts those (`rp_cnp_clamped`); [`crate::DcqcnSettings::at_clock`] refuses such settings.
    pub fn rate_min_is_above_line(&self, law: Law) -> bool {
        match law {
            Law::Off => false,
            Law::Dcqcn => self.dcqcn.rate_min > self.dcqcn.rate_line,
            Law::Qcn => self.qcn.rate_min > self.qcn.rate_line,
        }
    }
}

/// The state word by the law that wrote it; without a law it is DCQCN's idle one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// A flow under DCQCN.
    Dcqcn(State),
    /// A flow under QCN.
    Qcn(QcnState),
}

/// The reaction point of one queue pair, whose law may change at any visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The state word.
    pub state: FlowState,
    /// The queue pair's number, which sets its jitter apart.
    pub index: u8,
}

impl Flow {
    /// A new flow under `law`.
    pub fn new(law: Law, index: u8, params: &CcParams) -> Self {
        let mut flow = Self { state: FlowState::Dcqcn(State::idle(&params.dcqcn)), index };
        flow.start(law, 0, params);
        flow
    }

    #[cold]
    fn start(&mut self, law: Law, cnp_handled: u32, params: &CcParams) {
        self.state = match law {
            Law::Off => FlowState::Dcqcn(State { cnp_handled, ..State::idle(&params.dcqcn) }),
            Law::Dcqcn => FlowState::Dcqcn(State { cnp_handled, ..State::fresh(&params.dcqcn) }),
            Law::Qcn => FlowState::Qcn(QcnState { cnp_handled, ..QcnState::idle(&params.qcn, self.index) }),
        };
    }

    /// One visit; returns whether a notification was ignored. If the law differs from that of the last visit,
    /// the flow restarts, and a notification in that visit is ignored.
    #[inline]
    pub fn visit(&mut self, happened: Happened, law: Law, params: &CcParams) -> bool {
        match (&mut self.state, law) {
            (FlowState::Dcqcn(state), Law::Off | Law::Dcqcn) => {
                let cnp_ignored = state.visit(happened, law, &params.dcqcn);
                cnp_ignored || happened.feedback != 0
            }
            (FlowState::Qcn(state), Law::Qcn) => state.visit(happened, &params.qcn),
            (_, law) => {
                let cnp_handled = self.cnp_handled();
                self.start(law, cnp_handled, params);
                happened.cnp || happened.feedback != 0
            }
        }
    }

    /// A visit at which software restarts the flow; all other events of the visit are ignored.
    pub fn restart(&mut self, law: Law, params: &CcParams) {
        self.start(law, 0, params);
    }

    /// Has exactly the effect of `visits` visits without sent data and notifications.
    ///
    /// Costs a few instructions for each event of a counter (alpha, timer), for any number of visits between them.
    pub fn skip(&mut self, visits: u64, cycles: u32, transmitter: Transmitter, law: Law, params: &CcParams) {
        if visits > 0 {
            // One visit completes a preceding change of parameters or law.
            self.visit(Happened { cycles, transmitter, ..Happened::default() }, law, params);
            self.skip_settled(visits - 1, cycles, transmitter, law, params);
        }
    }

    /// The same at lower cost: valid only for a state that results from a visit with these parameters.
    pub fn skip_settled(&mut self, visits: u64, cycles: u32, transmitter: Transmitter, law: Law, params: &CcParams) {
        match (&mut self.state, law) {
            (FlowState::Dcqcn(state), Law::Dcqcn) => state.skip(visits, cycles, transmitter, &params.dcqcn),
            (FlowState::Qcn(state), Law::Qcn) => state.skip(visits, cycles, transmitter, &params.qcn),
            _ => {}
        }
    }

    /// Has the effect of `visits` visits, the first with the events `first` and the others without events, and of as
    /// many grants on the flow's pacer. Returns false and changes nothing for states and events that need single
    /// visits. Valid only for a state that results from a visit with these parameters.
    #[inline]
    pub fn skip_paced(
        &mut self,
        visits: u64,
        first: Happened,
        law: Law,
        params: &CcParams,
        pacer: &mut Pacer,
        waits: bool,
    ) -> bool {
        match (&mut self.state, law) {
            (FlowState::Dcqcn(state), Law::Dcqcn) => state.skip_paced(visits, first, &params.dcqcn, pacer, waits),
            _ => false,
        }
    }

    /// The number of visits for which R_C stays constant if the first reports `bytes` sent: [`Self::steady_visits`],
    /// or 0 if only single visits give it.
    #[inline]
    pub fn steady_visits_behind(
        &self,
        bytes: u32,
        cycles: u32,
        transmitter: Transmitter,
        law: Law,
        params: &CcParams,
    ) -> u64 {
        match (&self.state, law) {
            (FlowState::Dcqcn(state), Law::Dcqcn) => {
                state.steady_visits_behind(bytes, cycles, transmitter, &params.dcqcn)
            }
            _ => 0,
        }
    }

    /// Visits over which R_C stays constant if nothing is sent and no notification comes: a closed-form pacer
    /// may skip that many. Valid only for a state that results from a visit with these parameters.
    pub fn steady_visits(&self, cycles: u32, transmitter: Transmitter, law: Law, params: &CcParams) -> u64 {
        match (&self.state, law) {
            (FlowState::Dcqcn(state), Law::Dcqcn) => state.steady_visits(cycles, transmitter, &params.dcqcn),
            (FlowState::Qcn(state), Law::Qcn) => state.quiet_visits(cycles, transmitter, &params.qcn),
            (FlowState::Dcqcn(_), Law::Off) => u64::MAX,
            _ => 0,
        }
    }

    /// R_C.
    pub fn rate_current(&self) -> CycleRate {
        match &self.state {
            FlowState::Dcqcn(state) => state.rate_current,
            FlowState::Qcn(state) => state.rate_current,
        }
    }

    /// Notifications that cut, modulo 2^32.
    pub fn cnp_handled(&self) -> u32 {
        match &self.state {
            FlowState::Dcqcn(state) => state.cnp_handled,
            FlowState::Qcn(state) => state.cnp_handled,
        }
    }

    /// Whether the pacer does not limit this flow.
    pub fn unlimited(&self, params: &CcParams) -> bool {
        match &self.state {
            FlowState::Dcqcn(state) => state.rate_current >= params.dcqcn.rate_line,
            FlowState::Qcn(state) => state.rate_current >= params.qcn.rate_line,
        }
    }

    /// The state word in the gateware's format: R_C, R_T, timer, bytes, stages and flags, count of
    /// cuts, and three words of the law (alpha, cooldown, alpha timer; or LFSR and the two lengths).
    pub fn words(&self) -> [u32; 9] {
        let flags = |timer: u8, bytes: u8, limited: bool, qcn: bool| {
            u32::from(timer) | u32::from(bytes) << 8 | u32::from(limited) << 16 | u32::from(qcn) << 17
        };
        match &self.state {
            FlowState::Dcqcn(s) => [
                s.rate_current.0,
                s.rate_target.0,
                s.increase_elapsed,
                s.bytes_sent,
                flags(s.stage_timer, s.stage_bytes, s.limited, false)
                    | u32::from(s.cut_due) << 18
                    | u32::from(s.rise_due) << 19,
                s.cnp_handled,
                s.alpha_full,
                s.since_cut,
                s.alpha_elapsed,
            ],
            FlowState::Qcn(s) => [
                s.rate_current.0,
                s.rate_target.0,
                s.timer_elapsed,
                s.bytes_sent,
                flags(s.stage_timer, s.stage_bytes, s.limited, true),
                s.cnp_handled,
                s.lfsr.0,
                s.timer_limit,
                s.byte_limit,
            ],
        }
    }
}
