// SPDX-License-Identifier: Apache-2.0
//! The client of one board, without socket and clock.
//!
//! Packets that only read carry id 0: the board always answers them, so they are repeated until they are
//! answered, several at a time. Packets that write carry the id that the board expects, one at a time: the board
//! executes each id once and keeps its reply. The fate of a packet without an answer follows from the id that the board
//! expects (status packet):
//!
//! | board expects | so the packet | the client |
//! |---|---|---|
//! | its id | never arrived | sends it again |
//! | a later id | was executed, or another client used its id | requests the reply of that id; a foreign one has other transaction ids: the packet gets a new id |
//! | an id later than its replies reach back | was executed, or another client used its id | cannot know: [`AccessError::Unknown`] |
//! | an earlier id | met a board that has restarted | gives up: [`AccessError::Restarted`] |
//!
//! Promise: a write is executed at most once, despite loss, repetition or reordering of packets and other clients.
//! Source: IPbus 2.0 (CERN): reliable packets by their ids, status and resend.

use crate::packet::{ahead, following, from_bytes, status_request, PacketHeader, PacketKind, StatusReply};
use crate::request::{packets, AccessError, Outcome, Packet, Reply, Request};
use crate::rtt::RoundTrip;
use penstock_units::Time;
use std::collections::VecDeque;

/// Reading packets of one board on their way; it has room for eleven.
const READ_WINDOW: usize = 4;
/// Half of the packet ids: an id further ahead than this is one of before.
const HALF: u32 = 32767;
/// Requests for a reply that the board should still have, while it answers status packets.
const RESENDS: u32 = 16;

/// The time to wait for a silent board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience(pub Time);

impl Default for Patience {
    fn default() -> Self {
        Patience(Time::from_s(2))
    }
}

/// A request of one client, in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Debug)]
struct Job {
    id: RequestId,
    waiting: VecDeque<Packet>,
    on_the_way: usize,
    looks: bool,
    words: Vec<Vec<u32>>,
}

/// A reading packet on its way.
#[derive(Debug)]
struct Look {
    job: RequestId,
    packet: Packet,
    tries: u32,
    first: Time,
    due: Time,
}

/// The state of the writing packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The id that the board waits for.
    Status,
    Reply,
    /// A reply that the board has sent before.
    Resent,
}

#[derive(Debug)]
struct Change {
    job: RequestId,
    packet: Packet,
    /// Its packet id, once it was sent.
    id: Option<u16>,
    step: Step,
    tries: u32,
    /// Packets since the board answered anything.
    unanswered: u32,
    resends: u32,
    /// Status replies that would mean a restart: one alone may have been late.
    suspicions: u32,
    first: Time,
    last_answer: Time,
    sent: Time,
    due: Time,
}

/// One board.
#[derive(Debug)]
pub struct Client {
    patience: Patience,
    jobs: VecDeque<Job>,
    looks: Vec<Look>,
    change: Option<Change>,
    next_id: Option<u16>,
    next_transaction: u16,
    next_request: u64,
    trip: RoundTrip,
    out: VecDeque<Vec<u8>>,
    done: VecDeque<(RequestId, Outcome)>,
    /// The board has answered something.
    has_answered: bool,
    repeats: u64,
    strays: u64,
}

impl Client {
    /// `seed` sets the first transaction id: those of two clients of a board should differ.
    pub fn new(patience: Patience, seed: u64) -> Self {
        Client {
            patience,
            jobs: VecDeque::new(),
            looks: Vec::new(),
            change: None,
            next_id: None,
            next_transaction: (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as u16,
            next_request: 0,
            trip: RoundTrip::default(),
            out: VecDeque::new(),
            done: VecDeque::new(),
            has_answered: false,
            repeats: 0,
            strays: 0,
        }
    }

    /// Adds a request after those that wait.
    pub fn submit(&mut self, now: Time, request: &Request) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        let words = request.accesses.iter().map(|access| vec![0; access.answers()]).collect();
        let (waiting, looks) = (packets(request).into(), request.only_looks());
        self.jobs.push_back(Job { id, waiting, on_the_way: 0, looks, words });
        self.begin(now);
        id
    }

    /// Nothing waits and nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Retransmitted packets, and unexpected replies.
    pub fn lost_and_found(&self) -> (u64, u64) {
        (self.repeats, self.strays)
    }

    /// The next datagram for the board.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// The next request that has ended.
    pub fn poll_outcome(&mut self) -> Option<(RequestId, Outcome)> {
        self.done.pop_front()
    }

    /// When [`Client::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.looks.iter().map(|look| look.due).chain(self.change.as_ref().map(|change| change.due)).min()
    }

    /// Takes a datagram from the board.
    pub fn handle_datagram(&mut self, now: Time, bytes: &[u8]) {
        let Some((words, _)) = from_bytes(bytes) else { return self.strays += 1 };
        match PacketHeader::parse(words[0]) {
            Some(PacketHeader { id: 0, kind: PacketKind::Control }) => self.looked(now, &words[1..]),
            Some(PacketHeader { id, kind: PacketKind::Control }) => self.changed(now, id, &words[1..]),
            Some(PacketHeader { kind: PacketKind::Status, .. }) => match StatusReply::parse(&words) {
                Some(status) => self.status_arrives(now, status),
                None => self.strays += 1,
            },
            _ => self.strays += 1,
        }
        self.begin(now);
    }

    /// Repeats what is due.
    pub fn handle_timeout(&mut self, now: Time) {
        let mut silent = None;
        for look in self.looks.iter_mut().filter(|look| look.due <= now) {
            let waited = now.saturating_sub(look.first);
            if waited >= self.patience.0 {
                silent = Some((look.job, look.tries, waited));
                break;
            }
            look.tries += 1;
            self.repeats += 1;
            look.due = (now + self.trip.timeout(look.tries)).min(look.first.saturating_add(self.patience.0));
            self.out.push_back(crate::packet::to_bytes(&look.packet.words));
        }
        if let Some((job, tries, waited)) = silent {
            self.end(job, Err(AccessError::Silent { tries, waited, has_answered: self.has_answered }));
        }
        self.change_is_due(now);
        self.begin(now);
    }

    /// Starts what may start: reading packets of consecutive requests side by side, a writing packet alone.
    fn begin(&mut self, now: Time) {
        let mut at = 0;
        while let Some(job) = self.jobs.get_mut(at) {
            if job.looks {
                while self.change.is_none() && self.looks.len() < READ_WINDOW {
                    let Some(mut packet) = job.waiting.pop_front() else { break };
                    job.on_the_way += 1;
                    packet.number(&mut self.next_transaction);
                    packet.set_header(0);
                    self.out.push_back(crate::packet::to_bytes(&packet.words));
                    let due = (now + self.trip.timeout(1)).min(now.saturating_add(self.patience.0));
                    self.looks.push(Look { job: job.id, packet, tries: 1, first: now, due });
                }
            } else if at == 0 && self.looks.is_empty() && self.change.is_none() {
                if let Some(mut packet) = job.waiting.pop_front() {
                    job.on_the_way += 1;
                    packet.number(&mut self.next_transaction);
                    let id = job.id;
                    self.begin_change(now, id, packet);
                }
            }
            if job_is_over(&self.jobs[at]) {
                let Some(job) = self.jobs.remove(at) else { break };
                self.done.push_back((job.id, Ok(job.words)));
                continue;
            }
            if !self.jobs[at].looks {
                break; // everything after a write waits for it
            }
            at += 1;
        }
    }

    fn begin_change(&mut self, now: Time, job: RequestId, packet: Packet) {
        let mut change = Change {
            job,
            packet,
            id: None,
            step: Step::Status,
            tries: 0,
            unanswered: 0,
            resends: 0,
            suspicions: 0,
            first: now,
            last_answer: now,
            sent: now,
            due: now,
        };
        match self.next_id {
            Some(id) => change.send(now, id, &mut self.out, &self.trip),
            None => change.request_status(now, &mut self.out, &self.trip),
        }
        self.change = Some(change);
    }

    /// A reply with id 0.
    fn looked(&mut self, now: Time, words: &[u32]) {
        let mut found = None;
        for (at, look) in self.looks.iter().enumerate() {
            match look.packet.reply(words) {
                Reply::Foreign => {}
                reply => found = found.or(Some((at, reply))),
            }
        }
        let Some((at, reply)) = found else { return self.strays += 1 };
        let look = self.looks.swap_remove(at);
        self.has_answered = true;
        if look.tries == 1 {
            self.trip.measured(now.saturating_sub(look.first));
        }
        self.finish(look.job, reply);
    }

    /// A reply with an id.
    fn changed(&mut self, now: Time, id: u16, words: &[u32]) {
        let Some(change) = self.change.as_mut().filter(|change| change.id == Some(id)) else { return self.strays += 1 };
        self.has_answered = true;
        match change.packet.reply(words) {
            Reply::Foreign => {
                // Another client had this id: our packet was not carried out, and never will be.
                (change.id, change.tries, change.resends) = (None, 0, 0);
                change.answered(now);
                self.next_id = None;
                change.request_status(now, &mut self.out, &self.trip);
            }
            reply => {
                let Some(change) = self.change.take() else { return };
                if change.tries == 1 && change.step == Step::Reply {
                    self.trip.measured(now.saturating_sub(change.sent));
                }
                self.next_id = Some(following(id));
                self.finish(change.job, reply);
            }
        }
    }

    /// A status reply; only requested ones count.
    fn status_arrives(&mut self, now: Time, status: StatusReply) {
        let Some(change) = self.change.as_mut().filter(|change| change.step == Step::Status) else {
            return self.strays += 1;
        };
        change.answered(now);
        self.has_answered = true;
        let Some(id) = change.id else {
            self.next_id = Some(status.next_id);
            return change.send(now, status.next_id, &mut self.out, &self.trip);
        };
        match ahead(status.next_id, id) {
            0 => {
                self.repeats += 1;
                change.send(now, id, &mut self.out, &self.trip);
            }
            // Packet ids of other clients have replaced the reply, if ours was carried out at all.
            ahead @ 1..=HALF if ahead <= status.buffers && change.resends < RESENDS => {
                change.request_reply(now, id, &mut self.out, &self.trip)
            }
            1..=HALF => {
                let job = change.job;
                self.next_id = None;
                self.end(job, Err(AccessError::Unknown));
            }
            _ if change.suspicions == 0 => {
                change.suspicions += 1;
                change.request_status(now, &mut self.out, &self.trip);
            }
            _ => {
                let job = change.job;
                self.next_id = None;
                self.end(job, Err(AccessError::Restarted));
            }
        }
    }

    fn change_is_due(&mut self, now: Time) {
        let Some(change) = self.change.as_mut().filter(|change| change.due <= now) else { return };
        // A board that answers status packets is not silent: what is lost is the rest.
        let (silence, patience) = (now.saturating_sub(change.last_answer), self.patience.0);
        let waited = now.saturating_sub(change.first);
        if silence >= patience || waited >= patience.saturating_mul(4) {
            let error = match change.id {
                _ if silence >= patience => {
                    let (tries, has_answered) = (change.unanswered, self.has_answered);
                    AccessError::Silent { tries, waited: silence, has_answered }
                }
                Some(_) => AccessError::Unknown,
                None => AccessError::Crowded { waited },
            };
            let job = change.job;
            self.next_id = None;
            return self.end(job, Err(error));
        }
        change.request_status(now, &mut self.out, &self.trip);
    }

    fn finish(&mut self, id: RequestId, reply: Reply) {
        let parts = match reply {
            Reply::Done(parts) => parts,
            Reply::Failed(error) => return self.end(id, Err(error)),
            Reply::Foreign => return,
        };
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) else { return };
        job.on_the_way -= 1;
        for part in parts {
            job.words[part.access][part.offset..part.offset + part.words.len()].copy_from_slice(part.words);
        }
        if job_is_over(job) {
            let words = std::mem::take(&mut job.words);
            self.end(id, Ok(words));
        }
    }

    /// Takes a job out with all that is left of it.
    fn end(&mut self, id: RequestId, outcome: Outcome) {
        self.jobs.retain(|job| job.id != id);
        self.looks.retain(|look| look.job != id);
        if self.change.as_ref().is_some_and(|change| change.job == id) {
            self.change = None;
        }
        self.done.push_back((id, outcome));
    }
}

fn job_is_over(job: &Job) -> bool {
    job.on_the_way == 0 && job.waiting.is_empty()
}

impl Change {
    fn send(&mut self, now: Time, id: u16, out: &mut VecDeque<Vec<u8>>, trip: &RoundTrip) {
        self.id = Some(id);
        self.packet.set_header(id);
        self.step = Step::Reply;
        self.sent = now;
        out.push_back(crate::packet::to_bytes(&self.packet.words));
        self.wait(now, trip);
    }

    fn request_status(&mut self, now: Time, out: &mut VecDeque<Vec<u8>>, trip: &RoundTrip) {
        self.step = Step::Status;
        out.push_back(crate::packet::to_bytes(&status_request()));
        self.wait(now, trip);
    }

    fn request_reply(&mut self, now: Time, id: u16, out: &mut VecDeque<Vec<u8>>, trip: &RoundTrip) {
        self.step = Step::Resent;
        self.resends += 1;
        out.push_back(PacketHeader { id, kind: PacketKind::Resend }.word().to_be_bytes().to_vec());
        self.wait(now, trip);
    }

    /// The board has sent something.
    fn answered(&mut self, now: Time) {
        (self.last_answer, self.unanswered) = (now, 0);
    }

    fn wait(&mut self, now: Time, trip: &RoundTrip) {
        self.tries += 1;
        self.unanswered += 1;
        self.due = now + trip.timeout(self.tries.min(4));
    }
}
