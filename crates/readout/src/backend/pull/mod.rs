// SPDX-License-Identifier: Apache-2.0
//! Pull: boards announce fragments, and the server reads them. To the session a fragment that was read looks like a
//! SEND into the receive that it fills.
//! Promise: never more than a window of bytes is on its way here, over all boards; a board that does not answer holds
//! up no other. A board without a free slot here is not read, which is the back-pressure.
//! Source: `penstock_pull` (which READ is next); docs/fragments.md (announcements).

mod counters;
mod inbox;
mod puller;
mod requests;

use penstock_pull::{Config, ConfigError, Read, Scheduler, Window};
use penstock_transport::{Memory, Mtu};
use penstock_units::{Rate, Time};
use penstock_wire::{RocePacket, PULL_READS, SUCCESSORS_LEN, WIRE_OVERHEAD};

pub(super) use counters::PullCounters;
pub(super) use inbox::INBOX_LEN;
pub(super) use puller::{Around, Puller};
pub(super) use requests::Requests;

use super::{Completion, Counters};

/// What a READ response adds to its payload: Ethernet, IPv4, UDP, BTH, AETH, ICRC, and what a frame needs on the wire.
const PACKET_OVERHEAD: u32 = (14 + 20 + 8 + 12 + 4 + 4 + WIRE_OVERHEAD) as u32;
/// The least window of a server in software, bytes on the wire, and the time in which its line carries the window.
/// Software looks at its frames less often than once in a round trip, at times that vary more than the network's queues:
/// its round trips do not say how much the way holds, and READs of single packets would wait for it again and again.
const AT_LEAST: u64 = 256 << 10;
const WINDOW_TIME: Time = Time::from_us(200);

/// How boards are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullSettings {
    /// Boards of the session.
    pub boards: usize,
    /// Slots of each board's ring here, and bytes of a slot.
    pub slots: u32,
    pub slot_bytes: u32,
    pub mtu: Mtu,
    pub window: PullWindow,
    /// How long a board may leave READs unanswered before its part of the window is given to others.
    pub patience: Time,
    /// Timer after which a READ is requested again, 4.096 us * 2^code: seven times, by a NIC six, then the
    /// connection fails.
    pub ack_timeout: u8,
}

impl PullSettings {
    /// The patience of a server in software.
    pub const PATIENCE: Time = Time::from_ms(20);
}

/// What the READs of one queue pair follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Bytes of a slot here.
    pub(super) longest: u32,
    pub(super) ack_timeout: u8,
}

/// Bytes that may be on their way to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullWindow {
    /// This number of bytes on the wire.
    Bytes(u64),
    /// What the server's line of this rate carries in 200 us, at least 256 KiB.
    OfLine(Rate),
    /// What this line carries in the round trips that are measured. For time without the jitter of software.
    Measured(Rate),
}

/// The scheduler of all boards.
pub(super) struct Pull {
    scheduler: Scheduler,
    reading: Reading,
    boards: usize,
    /// When there is something to do.
    pub(super) due: Time,
}

impl Pull {
    /// # Errors
    /// The setting with which nothing could be read.
    pub(super) fn new(settings: &PullSettings) -> Result<Pull, ConfigError> {
        let config = Config {
            window: match settings.window {
                PullWindow::Bytes(bytes) => Window::Given(bytes),
                PullWindow::OfLine(line) => Window::Given(line.bytes_in(WINDOW_TIME).bytes().max(AT_LEAST)),
                PullWindow::Measured(line) => Window::Measured { line },
            },
            outstanding: PULL_READS,
            mtu: settings.mtu.bytes() as u32,
            packet_overhead: PACKET_OVERHEAD,
            slots: settings.slots,
            longest: settings.slot_bytes.saturating_add(SUCCESSORS_LEN as u32),
            patience: settings.patience,
        };
        let scheduler = Scheduler::new(config, settings.boards)?;
        let reading = Reading { longest: settings.slot_bytes, ack_timeout: settings.ack_timeout };
        Ok(Pull { scheduler, reading, boards: settings.boards, due: Time::ZERO })
    }

    pub(super) fn reading(&self) -> Reading {
        self.reading
    }

    /// Takes an answer of a board; false: it was not for this connection.
    pub(super) fn handle_packet(
        &mut self,
        (now, board): (Time, u16),
        requests: &mut Requests,
        packet: &RocePacket,
        memory: &mut dyn Memory,
        out: &mut Vec<Completion>,
    ) -> bool {
        requests.handle_packet(&mut self.around((now, board), memory), packet, out)
    }

    /// What a board's puller works with.
    pub(super) fn around<'a>(&'a mut self, (now, board): (Time, u16), memory: &'a mut dyn Memory) -> Around<'a> {
        Around { now, board, scheduler: &mut self.scheduler, memory }
    }

    /// Gives the scheduler what may be read of a board.
    pub(super) fn feed(&mut self, (now, board): (Time, u16), puller: &mut Puller, memory: &mut dyn Memory) {
        puller.feed(&mut self.around((now, board), memory));
    }

    /// The READ that the window has room for.
    pub(super) fn poll_read(&mut self, now: Time) -> Option<Read> {
        self.scheduler.poll_read(now)
    }

    /// Gives the part of the window that silent boards hold to the others.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.scheduler.handle_timeout(now);
        self.due = Time::MAX;
    }

    /// Hands a board's requests to `send`.
    pub(super) fn transmit(&mut self, now: Time, requests: &mut Requests, mut send: impl FnMut(RocePacket)) {
        requests.handle_timeout(now);
        while let Some(packet) = requests.poll_transmit(now) {
            send(packet);
        }
        self.due = self.due.min(requests.due());
        self.wait_for(&requests.puller);
    }

    /// There is something to do when the scheduler or this board has.
    pub(super) fn wait_for(&mut self, puller: &Puller) {
        let due = self.scheduler.poll_timeout().unwrap_or(Time::MAX);
        self.due = self.due.min(due).min(puller.due());
    }

    /// The connection of a board has ended.
    pub(super) fn forget(&mut self, board: u16, puller: &mut Puller) {
        puller.forget(board, &mut self.scheduler);
        self.due = Time::ZERO;
    }

    /// The counts of one board.
    pub(super) fn board_counters(&self, board: u16, counters: &PullCounters) -> Counters {
        let mut all = counters.named();
        all.push(("pull_waiting".into(), self.scheduler.waiting(board.into()) as u64));
        all.push(("pull_silent".into(), self.scheduler.is_silent(board.into()).into()));
        all
    }

    /// The counts of all boards together.
    pub(super) fn counters(&self) -> Counters {
        let counters = self.scheduler.counters();
        let silent = (0..self.boards).filter(|board| self.scheduler.is_silent(*board)).count();
        let all = [
            ("pull_window_bytes", self.scheduler.window()),
            ("pull_in_flight_bytes", self.scheduler.in_flight()),
            ("pull_highest_in_flight_bytes", counters.highest_in_flight),
            ("pull_unanswered_bytes", self.scheduler.unanswered()),
            ("pull_silent_boards", silent as u64),
            ("pull_silences", counters.silences),
            ("pull_reads", counters.reads),
            ("pull_read_bytes", counters.bytes),
        ];
        all.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }
}
