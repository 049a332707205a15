// SPDX-License-Identifier: Apache-2.0
//! Sets each board's share of this server's line: profile "penstock" in its registers, over IPbus.
//! Promise: the share is set before the board's queue pairs are opened, and again when a board comes up later or
//! restarts. Registers that hold neither the board's defaults nor a share are left unchanged and reported; a board
//! without these registers (another make) is also reported.
//! Source: docs/congestion-control.md.

use super::observer::{Observer, Turn};
use super::plan::LinePlan;
use super::sink::Sink;
use super::tables;
use penstock_cc::{DcqcnParams, Profile};
use penstock_cli_common::interrupt;
use penstock_cli_common::output::screen::notify;
use penstock_ipbus::dcqcn::{groups, profile_words, show_share, InForce};
use penstock_ipbus::regs::cc;
use penstock_ipbus::{
    Access, AccessError, BoardAddress, Fleet, FleetError, Identity, Outcome, Patience, RequestId, PORT,
};
use penstock_readout::session::{BoardState, Session, SessionError};
use penstock_units::{Rate, Time};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time without an answer after which a board counts as silent.
const PATIENCE: Patience = Patience(Time::from_ms(500));

/// The wait for the next answer before queue pairs are opened. One that opens before its board has its share begins at
/// the rate of the board's whole line.
const WAIT: Duration = Duration::from_millis(200);

/// Time between two looks at boards that have come up.
const INTERVAL: Time = Time::from_ms(300);

/// The time after which a board that is up, but did not answer, gets the request again.
const AGAIN: Time = Time::from_s(2);

/// A board's address, and what it is to know.
struct ShareState {
    name: String,
    /// Rate of each of its queue pairs, if the board's line carries it.
    share: Rate,
    /// Sources that it is; its lives are the sum of theirs.
    sources: Vec<usize>,
    /// Lives of its sources when it got its share last.
    lives: u32,
    /// It did not answer the last request.
    is_silent: bool,
    retry: Time,
    requested: Option<(RequestId, Step)>,
    /// Why it has no share, after a request.
    trouble: Option<String>,
    has_registers: bool,
    /// The message about its registers, printed once.
    reported: Vec<String>,
    named_by_operator: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Identify,
    /// The present values of its registers.
    Look(Identity),
    Write,
}

/// The next step, and its request to the board.
type Next = Option<(Step, Vec<Access>)>;

/// The shares of all boards.
pub struct Line {
    fleet: Fleet,
    boards: Vec<ShareState>,
    next: Time,
}

/// The share of each source: the line in proportion to the weights.
pub fn shares(line: Rate, weights: &[u32]) -> Vec<Rate> {
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    weights.iter().map(|weight| Rate((u128::from(line.0) * u128::from(*weight) / all.max(1)) as u64)).collect()
}

/// Shares that cannot be right, before any board has one: more than the interface carries, or by weights, which hold
/// for one proportion of the loads only.
pub fn warnings(plan: &LinePlan) -> Vec<String> {
    let weights: Vec<u32> = plan.sources.iter().map(|source| source.weight).collect();
    let shares = shares(plan.rate, &weights);
    let (least, most) = (shares.iter().min().copied(), shares.iter().max().copied());
    let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
    let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let mut warnings = Vec::new();
    if let Some(nic) = plan.nic.filter(|nic| *nic < plan.rate) {
        warnings.push(format!(
            "--line {}: {} shares of {range} add up to more than the interface's {nic}, and boards are paused or lose frames; \
             give --line {nic}",
            plan.rate,
            shares.len()
        ));
    }
    if least != most {
        warnings.push(format!(
            "shares are {range} by weight: they hold while all boards send in this proportion; where loads change from event \
             to event, read the boards with --pull"
        ));
    }
    warnings
}

impl Line {
    /// Sets the share of all boards that answer; waits at most `WAIT` for those that are silent, and for none once
    /// `interrupted`.
    ///
    /// # Errors
    /// There is no socket, or the system refuses to send.
    pub fn open(plan: &LinePlan, interrupted: &AtomicBool) -> Result<Line, FleetError> {
        let LinePlan { rate, sources, .. } = plan;
        let weights: Vec<u32> = sources.iter().map(|source| source.weight).collect();
        let mut addresses: Vec<BoardAddress> = Vec::new();
        let mut boards: Vec<ShareState> = Vec::new();
        for ((at, source), share) in sources.iter().enumerate().zip(shares(*rate, &weights)) {
            let address = BoardAddress(SocketAddrV4::new(source.spec.ip, PORT));
            match addresses.iter().position(|at| at.0 == address.0) {
                Some(at) => boards[at].sources.push(at),
                None => {
                    addresses.push(address);
                    let name = source.spec.name.clone();
                    boards.push(ShareState {
                        name,
                        share,
                        sources: vec![at],
                        lives: 0,
                        is_silent: false,
                        retry: Time::ZERO,
                        requested: None,
                        trouble: None,
                        has_registers: false,
                        reported: Vec::new(),
                        named_by_operator: false,
                    });
                }
            }
        }
        let seed = std::process::id().into();
        let mut line = Line { fleet: Fleet::open(&addresses, PATIENCE, seed)?, boards, next: Time::ZERO };
        (0..line.boards.len()).for_each(|board| line.request(board));
        line.wait(|| interrupted.load(Ordering::Relaxed))?;
        Ok(line)
    }

    /// Waits until every board that got a request has answered, or none has for [`WAIT`], or there is no time left.
    fn wait(&mut self, is_stopped: impl Fn() -> bool) -> Result<(), FleetError> {
        let mut answered = Instant::now();
        let is_requested = |board: &ShareState| board.requested.is_some();
        while self.boards.iter().any(is_requested) && answered.elapsed() < WAIT && !is_stopped() {
            if self.turn(Time::from_ms(20))? {
                answered = Instant::now();
            }
        }
        Ok(())
    }

    /// Boards that have come up since they got their share get it again.
    fn request_shares(&mut self, now: Time, session: &mut Session<Sink>) {
        if now >= self.next {
            self.next = now + INTERVAL;
            let reports = session.report().boards;
            for board in 0..self.boards.len() {
                let state = &mut self.boards[board];
                let lives = state.sources.iter().map(|source| reports[*source].lives).sum();
                let is_up = state.sources.iter().any(|source| reports[*source].state == BoardState::Up);
                // Also at its first life: it may have begun anew since it got it. One that dies before it answers gets
                // it again at its next life.
                let is_due = lives > state.lives || state.is_silent && now >= state.retry;
                if is_up && is_due && state.requested.is_none() {
                    (state.lives, state.retry) = (lives, now + AGAIN);
                    self.request(board);
                }
            }
        }
        if let Err(error) = self.turn(Time::ZERO) {
            notify(format_args!("WARNING: boards do not get their shares: {error}"));
        }
        let unaware = self
            .boards
            .iter_mut()
            .filter(|state| !state.named_by_operator && state.requested.is_none() && state.lives > 0);
        let mut named = Vec::new();
        for state in unaware {
            if let Some(why) = &state.trouble {
                state.named_by_operator = true;
                named.push((state.name.clone(), state.name.clone(), why.clone()));
            }
        }
        for (names, why) in tables::alike(named) {
            notify(format_args!("{names}: keeps its own congestion control: {why}"));
        }
    }

    /// The share that each board got, by name; null where it got none. A board that is being set is waited for as
    /// when the run began.
    pub fn shares(&mut self) -> serde_json::Value {
        // Earlier reports remain valid when the socket fails.
        let _ = self.wait(interrupt::gives_up);
        let share = |state: &ShareState| state.has_registers.then(|| state.share.to_string());
        self.boards.iter().map(|state| (state.name.clone(), serde_json::json!(share(state)))).collect()
    }

    /// How many boards know their share, and what it is, if any does.
    pub fn summary(&self) -> Option<String> {
        let count = self.boards.iter().filter(|state| state.has_registers).count();
        if count == 0 {
            return None;
        }
        let (least, most) = self
            .boards
            .iter()
            .fold((Rate(u64::MAX), Rate(0)), |(least, most), state| (least.min(state.share), most.max(state.share)));
        let share = if least == most { least.to_string() } else { format!("{least} to {most}") };
        Some(format!("{count} of {} boards know their share of the line, {share}", self.boards.len()))
    }

    fn request(&mut self, board: usize) {
        let id = self.fleet.submit(board, &Identity::request());
        self.boards[board].requested = Some((id, Step::Identify));
    }

    /// Whether a board has answered.
    fn turn(&mut self, wait: Time) -> Result<bool, FleetError> {
        let mut has_answer = false;
        self.fleet.turn(wait)?;
        while let Some((board, id, outcome)) = self.fleet.poll_outcome() {
            if let Some((_, step)) = self.boards[board].requested.take_if(|(requested, _)| *requested == id) {
                self.boards[board].is_silent = outcome.is_err();
                has_answer |= outcome.is_ok();
                let next = self.boards[board].took(step, outcome);
                let state = &mut self.boards[board];
                match next {
                    Ok(Some((step, accesses))) => {
                        let id = self.fleet.submit(board, &accesses.into_iter().collect());
                        state.requested = Some((id, step));
                    }
                    Ok(None) => (state.trouble, state.has_registers) = (None, true),
                    Err(why) => (state.trouble, state.has_registers) = (Some(why), false),
                }
            }
        }
        Ok(has_answer)
    }
}

impl Observer for Line {
    fn observe(&mut self, turn: &mut Turn<'_>) -> Result<(), SessionError> {
        self.request_shares(turn.now, turn.session);
        Ok(())
    }
}

impl ShareState {
    /// The next step; none: it has its share.
    fn took(&mut self, step: Step, outcome: Outcome) -> Result<Next, String> {
        match step {
            Step::Identify => {
                let identity = Identity::of(outcome).map_err(|error| error.to_string())?;
                let base = |group| cc::BASE + group * cc::STRIDE;
                let looks = (0..groups(identity.build.queue_pairs))
                    .map(|group| Access::Read { address: base(group), count: DcqcnParams::WORDS });
                Ok(Some((Step::Look(identity), looks.collect())))
            }
            Step::Look(identity) => {
                let words = outcome.map_err(|error| error.to_string())?;
                let share = self.share.min(identity.line_rate());
                let found: Vec<InForce> =
                    words.iter().map(|words| InForce::read(words, identity.build.clock_khz)).collect();
                let (writes, reported) = self.writes(share, identity, &found)?;
                let news: Vec<String> =
                    reported.into_iter().filter(|reported| !self.reported.contains(reported)).collect();
                news.iter().for_each(|reported| notify(format_args!("{}: {reported}", self.name)));
                self.reported.extend(news);
                Ok((!writes.is_empty()).then_some((Step::Write, writes)))
            }
            // It has restarted since the last request, and its packet count has restarted, too.
            Step::Write if outcome == Err(AccessError::Restarted) => {
                Ok(Some((Step::Identify, Identity::request().accesses)))
            }
            Step::Write => outcome.map(|_| None).map_err(|error| error.to_string()),
        }
    }

    /// The writes to the groups that nobody has set, and what is to be said of the others and of shares that are
    /// replaced.
    fn writes(&self, share: Rate, identity: Identity, found: &[InForce]) -> Result<(Vec<Access>, Vec<String>), String> {
        let show = |share| show_share(share, identity.build.clock_khz);
        let is_ours = |group: &InForce| {
            group.law == "dcqcn" && matches!(group.profile, Some(Profile::Penstock | Profile::AdvCam))
        };
        let kept: Vec<String> = (found.iter().enumerate())
            .filter(|(_, group)| !is_ours(group))
            .map(|(index, group)| format!("cc[{index}] (law {}, profile {})", group.law, group.profile_name()))
            .collect();
        let mut reported = Vec::new();
        if !kept.is_empty() {
            let kept = format!(
                "{} keeps what it was set to; to have a share written, set cc.profile = \"advcam\" (penstock ctl apply)",
                kept.join(", ")
            );
            if found.iter().all(|group| !is_ours(group)) {
                return Err(kept);
            }
            reported.push(kept);
        }
        let mut replaced: Vec<String> = found.iter().filter_map(|group| group.share.map(show)).collect();
        replaced.retain(|other| *other != show(share));
        replaced.dedup();
        if !replaced.is_empty() {
            reported.push(format!("share {} replaces {}", show(share), replaced.join(", ")));
        }
        let words = profile_words(Profile::Penstock, share, identity)?;
        let has_registers = |group: &InForce| group.share.map(show).is_some_and(|current| current == show(share));
        let is_written = |address: u32| {
            let group = &found[((address - cc::BASE) / cc::STRIDE) as usize];
            is_ours(group) && !has_registers(group)
        };
        let writes = words.into_iter().filter(|(address, _)| is_written(*address));
        Ok((writes.map(|(address, word)| Access::write(address, word)).collect(), reported))
    }
}

#[cfg(test)]
mod tests {
    use super::super::boards::Weighted;
    use super::*;
    use penstock_readout::session::{BoardSpec, Opens};

    fn plan(rate: u64, nic: Option<u64>, weights: &[u32]) -> LinePlan {
        let source = |(k, weight): (usize, &u32)| {
            let ip = std::net::Ipv4Addr::from_bits(k as u32);
            let spec = BoardSpec { name: ip.to_string(), ip, opens: Opens::Board };
            Weighted { spec, weight: *weight }
        };
        let sources = weights.iter().enumerate().map(source).collect();
        LinePlan { rate: Rate::from_gbps(rate), nic: nic.map(Rate::from_gbps), sources }
    }

    #[test]
    fn a_line_beyond_the_interface_and_unequal_weights_are_warned_of_with_the_numbers() {
        assert_eq!(warnings(&plan(10, Some(10), &[1; 4])), [""; 0]);
        assert_eq!(warnings(&plan(10, None, &[1; 4])), [""; 0]);
        assert_eq!(warnings(&plan(10, Some(25), &[1; 4])), [""; 0], "a narrower link on the way is named so");
        let beyond = warnings(&plan(100, Some(10), &[1; 4]));
        assert_eq!(
            beyond,
            ["--line 100Gbps: 4 shares of 25Gbps add up to more than the interface's 10Gbps, and boards are paused or lose \
              frames; give --line 10Gbps"]
        );
        let unequal = warnings(&plan(10, Some(10), &[3, 1, 1]));
        assert_eq!(
            unequal,
            ["shares are 2Gbps to 6Gbps by weight: they hold while all boards send in this proportion; where loads change \
              from event to event, read the boards with --pull"]
        );
    }

    #[test]
    fn shares_are_in_proportion_to_weights_and_do_not_exceed_the_line() {
        let line = Rate::from_gbps(10);
        assert_eq!(shares(line, &[1; 4]), [Rate(line.0 / 4); 4]);
        assert_eq!(shares(line, &[3, 1]), [Rate(line.0 / 4 * 3), Rate(line.0 / 4)]);
        assert!(shares(line, &[1; 7]).iter().map(|share| share.0).sum::<u64>() <= line.0);
    }
}
