// SPDX-License-Identifier: Apache-2.0
//! Events that all boards of a camera see at the same time: their times, and the size of each board's fragment.
//! Promise: all boards see the same events; event n goes to server n modulo the number of servers; one seed gives one
//! list.
//! Source: AdvCam section III (the trigger fires at random times); ARCHITECTURE.md, "The way of a fragment" (events to
//! several servers).

use std::cell;
use std::rc::Rc;

use penstock_netsim::{Message, MessageSource, SharedLedger, Stream};

use super::loads::Loads;
use super::recorded::RecordedEvents;
use super::shower::{LightPool, Shower};
use crate::topology::Cell;
use crate::units::{Frequency, Time};

/// How triggers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerKind {
    /// Events at random, independent of each other.
    Poisson,
    Periodic,
    /// Bursts at random, each of `size` triggers that are `spacing` apart.
    Burst {
        size: u64,
        spacing: Time,
    },
}

/// When triggers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggerParams {
    pub kind: TriggerKind,
    /// Triggers per second, on average.
    pub rate: Frequency,
    pub start: Time,
    /// No trigger comes at or after this time.
    pub stop: Time,
    /// The maximum number.
    pub events: u64,
}

impl TriggerParams {
    /// The times of all triggers, in order.
    pub fn times(&self, random: &mut Stream) -> Vec<Time> {
        let period = self.rate.period();
        let mut times = Vec::new();
        let mut burst = (self.start, 0);
        while (times.len() as u64) < self.events {
            let n = times.len() as u64;
            let last = times.last().copied().unwrap_or(self.start);
            let at = match self.kind {
                TriggerKind::Poisson => last.saturating_add(random.exponential(period)),
                TriggerKind::Periodic => self.start.saturating_add(nth(self.rate, n)),
                TriggerKind::Burst { size, spacing } => {
                    if burst.1 == 0 {
                        let quiet = random.exponential(Time(period.0.saturating_mul(size)));
                        burst = (burst.0.saturating_add(quiet), size);
                    }
                    burst.1 -= 1;
                    // bursts that overlap are kept in order
                    burst.0.saturating_add(spacing * (size - 1 - burst.1)).max(last)
                }
            };
            if at >= self.stop {
                break;
            }
            times.push(at);
        }
        times
    }
}

/// When event n of a periodic sequence comes, exact in the long run.
fn nth(rate: Frequency, n: u64) -> Time {
    let ps = u128::from(n) * 1_000_000_000_000_000 / u128::from(rate.0.max(1));
    Time(u64::try_from(ps).unwrap_or(u64::MAX))
}

/// How much each board sends of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum FragmentSizes {
    /// Every board the same.
    Fixed(u64),
    /// Sizes by the light that falls on each board's cell: one shower per event.
    Light { pool: LightPool, showers: Vec<Shower>, cells: Vec<Cell> },
    /// The sizes that were recorded.
    Recorded(RecordedEvents),
}

/// All events of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct EventList {
    pub times: Vec<Time>,
    pub sizes: FragmentSizes,
    /// What boards send in place of `sizes`; `None`: all of them send these.
    pub loads: Option<Loads>,
    /// Board n has its fragment this much later than board n - 1.
    pub stagger: Time,
}

impl EventList {
    /// Showers at random places of a camera, one for each time.
    pub fn showers(times: Vec<Time>, pool: LightPool, cells: Vec<Cell>, random: &mut Stream) -> Self {
        let showers = times.iter().map(|_| pool.shower(&cells, random)).collect();
        EventList { times, sizes: FragmentSizes::Light { pool, showers, cells }, loads: None, stagger: Time::ZERO }
    }

    /// Bytes that a board sends of an event; 0 where it has nothing of it.
    pub fn bytes(&self, event: usize, board: usize) -> u64 {
        let of_table = || self.of_table(event, board);
        match &self.loads {
            Some(loads) => loads.bytes(event, board, of_table),
            None => of_table(),
        }
    }

    fn of_table(&self, event: usize, board: usize) -> u64 {
        match &self.sizes {
            FragmentSizes::Fixed(bytes) => *bytes,
            FragmentSizes::Light { pool, showers, cells } => pool.bytes(&showers[event], cells[board]),
            FragmentSizes::Recorded(events) => events.bytes(event, board),
        }
    }

    /// Whether any board sends something of an event.
    pub fn is_sent(&self, event: usize) -> bool {
        match &self.loads {
            Some(loads) => (0..loads.boards()).any(|board| self.bytes(event, board) > 0),
            None => self.fragments(event, 1) > 0,
        }
    }

    /// How many of `boards` boards have a fragment of an event.
    fn fragments(&self, event: usize, boards: u32) -> u32 {
        if let Some(loads) = &self.loads {
            return (0..loads.boards()).filter(|board| self.bytes(event, *board) > 0).count() as u32;
        }
        match &self.sizes {
            FragmentSizes::Fixed(_) | FragmentSizes::Light { .. } => boards,
            FragmentSizes::Recorded(events) => events.fragments(event),
        }
    }
}

/// Reports each event to the ledger once, when the first board starts it.
#[derive(Debug)]
pub struct EventAnnouncer {
    ledger: SharedLedger,
    boards: u32,
    announced: cell::Cell<usize>,
}

impl EventAnnouncer {
    pub fn new(ledger: SharedLedger, boards: u32) -> Rc<Self> {
        Rc::new(EventAnnouncer { ledger, boards, announced: cell::Cell::new(0) })
    }

    /// All events up to and including `event` have begun.
    fn announce(&self, events: &EventList, event: usize) {
        while self.announced.get() <= event {
            let number = self.announced.get();
            let fragments = events.fragments(number, self.boards);
            self.ledger.borrow_mut().expect(number as u64, events.times[number], fragments);
            self.announced.set(number + 1);
        }
    }
}

/// The fragments that one board sends to one server.
#[derive(Debug, Clone)]
pub struct EventSource {
    events: Rc<EventList>,
    board: usize,
    next: usize,
    /// The event whose fragment was requested last.
    given: Option<usize>,
    servers: usize,
    announcer: Option<Rc<EventAnnouncer>>,
}

impl EventSource {
    /// The workload of events `server`, `server + servers`, ....
    pub fn new(events: Rc<EventList>, board: usize, server: usize, servers: usize) -> Self {
        EventSource { events, board, next: server, given: None, servers, announcer: None }
    }

    /// Announces the events to a ledger.
    pub fn announcing(self, announcer: Rc<EventAnnouncer>) -> Self {
        EventSource { announcer: Some(announcer), ..self }
    }
}

impl MessageSource for EventSource {
    fn next_message(&mut self, _now: Time) -> Option<Message> {
        // a further call means that the previous message has begun: its event has happened
        if let (Some(announcer), Some(last)) = (&self.announcer, self.given) {
            announcer.announce(&self.events, last);
        }
        loop {
            let event = self.next;
            let begun = *self.events.times.get(event)?;
            let at = begun.saturating_add(Time(self.events.stagger.0.saturating_mul(self.board as u64)));
            self.next += self.servers;
            let bytes = self.events.bytes(event, self.board);
            if bytes > 0 {
                self.given = Some(event);
                return Some(Message { at, bytes, event: event as u64 });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::hexagonal_camera;
    use penstock_netsim::Ledger;

    fn params(kind: TriggerKind) -> TriggerParams {
        let rate = Frequency::from_hz(10_000);
        TriggerParams { kind, rate, start: Time::from_ms(1), stop: Time::from_s(1), events: u64::MAX }
    }

    fn times(kind: TriggerKind, seed: u64) -> Vec<Time> {
        params(kind).times(&mut Stream::new(seed, "triggers"))
    }

    #[test]
    fn triggers_come_at_their_mean_rate_in_order_and_replay_by_their_seed() {
        let burst = TriggerKind::Burst { size: 20, spacing: Time::from_us(2) };
        for (kind, spread) in [(TriggerKind::Poisson, 400), (TriggerKind::Periodic, 1), (burst, 2500)] {
            let times = times(kind, 5);
            assert!(times.is_sorted() && *times.last().unwrap() < Time::from_s(1), "{kind:?}");
            assert!(times.len().abs_diff(9_990) <= spread, "{kind:?}: {}", times.len());
        }
        assert_eq!(times(TriggerKind::Poisson, 5), times(TriggerKind::Poisson, 5));
        assert_ne!(times(TriggerKind::Poisson, 5)[0], times(TriggerKind::Poisson, 6)[0]);
        assert_eq!(times(TriggerKind::Periodic, 5)[3], Time::from_us(1300));
    }

    #[test]
    fn a_burst_has_its_size_and_spacing() {
        let times = times(TriggerKind::Burst { size: 5, spacing: Time::from_us(1) }, 2);
        let close = times.windows(2).filter(|pair| pair[1] - pair[0] == Time::from_us(1)).count();
        assert!(close * 100 >= times.len() * 78, "{close} of {}", times.len());
    }

    #[test]
    fn event_n_goes_to_server_n_modulo_the_servers_from_every_board() {
        let times: Vec<Time> = (0..10).map(Time::from_us).collect();
        let events = Rc::new(EventList { times, sizes: FragmentSizes::Fixed(64), loads: None, stagger: Time::ZERO });
        let mut source = EventSource::new(events, 7, 1, 3);
        let mut numbers = Vec::new();
        while let Some(message) = source.next_message(Time::ZERO) {
            assert_eq!((message.at, message.bytes), (Time::from_us(message.event), 64));
            numbers.push(message.event);
        }
        assert_eq!(numbers, [1, 4, 7]);
    }

    #[test]
    fn the_ledger_gets_each_event_once_and_not_before_it_has_begun() {
        let times: Vec<Time> = (0..4).map(Time::from_us).collect();
        let events = Rc::new(EventList { times, sizes: FragmentSizes::Fixed(64), loads: None, stagger: Time::ZERO });
        let ledger = Ledger::shared(4);
        let announcer = EventAnnouncer::new(Rc::clone(&ledger), 2);
        let source = |board, server| EventSource::new(events.clone(), board, server, 2).announcing(announcer.clone());
        let mut sources = [source(0, 0), source(1, 0), source(0, 1), source(1, 1)];
        let mut begun = Vec::new();
        for _ in 0..3 {
            for source in &mut sources {
                source.next_message(Time::ZERO);
                begun.push(ledger.borrow().events.begun);
            }
        }
        assert_eq!(begun, [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_board_sends_nothing_of_events_in_which_it_recorded_nothing() {
        let table = "time_us,a,b\n1,10,0\n2,0,0\n3,0,20\n4,5,6\n5,0,0\n";
        let recorded = RecordedEvents::from_csv(table).unwrap();
        let times = recorded.times().to_vec();
        let events =
            Rc::new(EventList { times, sizes: FragmentSizes::Recorded(recorded), loads: None, stagger: Time::ZERO });
        let ledger = Ledger::shared(2);
        let announcer = EventAnnouncer::new(Rc::clone(&ledger), 2);
        let mut of_board =
            [0, 1].map(|board| EventSource::new(events.clone(), board, 0, 1).announcing(announcer.clone()));
        let sent = of_board.each_mut().map(|source| {
            let all = std::iter::from_fn(|| source.next_message(Time::ZERO));
            all.map(|message| (message.event, message.bytes)).collect::<Vec<_>>()
        });
        assert_eq!(sent, [vec![(0, 10), (3, 5)], vec![(2, 20), (3, 6)]]);
        assert_eq!(ledger.borrow().events.begun, 3, "those that have a fragment");
    }

    #[test]
    fn a_shower_hits_neighbours_harder_than_the_far_side() {
        let pool = LightPool { fragment: 1_000, peak: 60_000, radius_milli: 2_000 };
        let cells = hexagonal_camera(265);
        let times = times(TriggerKind::Poisson, 9);
        let events = EventList::showers(times, pool, cells.clone(), &mut Stream::new(9, "showers"));
        let (mut near, mut far) = (0.0, 0.0);
        for event in 0..1000 {
            let sizes: Vec<u64> = (0..265).map(|board| events.bytes(event, board) - 1_000).collect();
            let (hottest, most) = sizes.iter().enumerate().max_by_key(|(_, bytes)| **bytes).unwrap();
            let part = |low: u64, high: u64| {
                let at = |board: &usize| (low..high).contains(&cells[*board].distance_squared(cells[hottest]));
                let (sum, count) =
                    (0..265).filter(at).fold((0, 0), |(sum, count), board| (sum + sizes[board], count + 1));
                sum as f64 / f64::from(count.max(1)) / (*most).max(1) as f64
            };
            near += part(1, 2);
            far += part(36, 1000);
        }
        // a gaussian of radius 2 has exp(-1/8) = 0.88 one cell off, and exp(-36/8) = 0.01 six cells off
        assert!((0.75..0.95).contains(&(near / 1000.0)), "{near}");
        assert!(far / 1000.0 < 0.02, "{far}");
    }
}
