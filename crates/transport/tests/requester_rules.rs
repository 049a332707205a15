// SPDX-License-Identifier: Apache-2.0
//! One test for each rule of the requester: AckReq, acknowledgements old and new, go-back-N, timers, retry limits,
//! credits, errors. The rules are the gateware's (`rtl/roce/requester_step.sv`); expectations are IBTA 9.7 and 9.9.

mod common;

use common::*;
use penstock_transport::{
    Mtu, RequestFault, Requester, RequesterConfig, RequesterState, Response, RetryLimits, SendCompletion, SendStatus,
    SendWr, Verb, VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{AethRepr, Credits, NakCode, Opcode, Psn, Qpn, RnrTimer, RocePacket, Syndrome};

const FIRST: u32 = 100;
/// Code 5: 131.072 us.
const TIMEOUT: Time = Time::from_ns(131_072);

fn limits() -> RetryLimits {
    RetryLimits { ack_timeout: 5, retry_cnt: 2, rnr_retry: 2 }
}

fn config() -> RequesterConfig {
    RequesterConfig { limits: limits(), ..RequesterConfig::new(PEER, LOCAL, Psn::new(FIRST), Mtu::B256) }
}

/// A requester and short words for what the tests do with it.
struct Sender(Requester);

impl Sender {
    fn new(config: RequesterConfig) -> Self {
        Sender(Requester::new(config))
    }

    /// Posts messages of so many packets each, numbered from 0.
    fn with(config: RequesterConfig, verb: Verb, packets: &[u32]) -> Self {
        let mut sender = Self::new(config);
        for (wr_id, packets) in packets.iter().enumerate() {
            sender.post(wr_id as u64, verb, packets * 256);
        }
        sender
    }

    fn post(&mut self, wr_id: u64, verb: Verb, len: u32) {
        let wr = SendWr { wr_id, verb, va: 0, len, remote_va: BASE, rkey: RKEY, solicited: false };
        self.0.post_send(wr).unwrap();
    }

    /// All that may be sent now, as (PSN, AckReq).
    fn send(&mut self, now: Time) -> Vec<(u32, bool)> {
        let packets = std::iter::from_fn(|| self.0.poll_transmit(now, &mut VirtualPayload));
        packets.map(|packet| (packet.bth.psn.value(), packet.bth.ack_req)).collect()
    }

    fn psns(&mut self, now: Time) -> Vec<u32> {
        self.send(now).into_iter().map(|(psn, _)| psn).collect()
    }

    fn reply(&mut self, now: Time, psn: u32, syndrome: Syndrome, msn: u32) -> Response {
        self.0.handle_packet(now, &reply(psn, syndrome, msn))
    }

    fn ack(&mut self, now: Time, psn: u32, msn: u32) {
        self.reply(now, psn, Syndrome::Ack(Credits::UNLIMITED), msn);
    }

    fn nak(&mut self, now: Time, psn: u32) {
        self.reply(now, psn, Syndrome::Nak(NakCode::PsnSequenceError), 0);
    }

    /// RNR NAK with 20 us.
    fn rnr(&mut self, now: Time, psn: u32) {
        self.reply(now, psn, Syndrome::RnrNak(RnrTimer::from_code(2)), 0);
    }

    fn timeout(&mut self, now: Time) -> &mut Self {
        self.0.handle_timeout(now);
        self
    }

    fn completions(&mut self) -> Vec<(u64, SendStatus)> {
        let done = std::iter::from_fn(|| self.0.poll_completion());
        done.map(|SendCompletion { wr_id, status, .. }| (wr_id, status)).collect()
    }

    fn fault(&self) -> Option<RequestFault> {
        match self.0.state() {
            RequesterState::Ready => None,
            RequesterState::Error(fault) => Some(fault),
        }
    }
}

fn reply(psn: u32, syndrome: Syndrome, msn: u32) -> RocePacket {
    let mut reply = packet(Opcode::Acknowledge, psn, Vec::new());
    (reply.ip_src, reply.ip_dst, reply.bth.dest_qpn) = (LOCAL.ip, PEER.ip, PEER.qpn);
    RocePacket { aeth: Some(AethRepr { syndrome, msn }), ..reply }
}

#[test]
fn a_window_that_shrinks_takes_nothing_back_and_leaves_an_ack_to_come() {
    let mut sender = Sender::with(RequesterConfig { ack_every: 4, ..config() }, Verb::Write, &[40]);
    while sender.0.outstanding_packets() < 21 {
        assert!(sender.0.poll_transmit(Time::ZERO, &mut VirtualPayload).is_some());
    }
    sender.0.set_window(1);
    assert_eq!(sender.send(Time::ZERO), [], "more are under way than the window has");
    sender.ack(Time(1), 119, 0);
    assert_eq!(sender.send(Time(1)), [(121, false), (122, false), (123, true)], "not below what asks for an ACK");
    sender.nak(Time(2), 120);
    assert_eq!(sender.psns(Time(2)), [120, 121, 122, 123]);
    sender.0.set_window(6);
    assert_eq!(sender.psns(Time(2)), [124, 125]);
}

#[test]
fn a_packet_requests_an_ack_at_its_turn_at_a_messages_end_and_at_the_windows_end() {
    let mut by_turn = Sender::with(RequesterConfig { ack_every: 16, ..config() }, Verb::Write, &[30]);
    let requesting: Vec<u32> =
        by_turn.send(Time::ZERO).into_iter().filter(|(_, ack_req)| *ack_req).map(|(psn, _)| psn).collect();
    assert_eq!(requesting, [111, 127, 129]);
    let mut by_window = Sender::with(RequesterConfig { ack_every: 0, window: 4, ..config() }, Verb::Write, &[2, 9]);
    assert_eq!(by_window.send(Time::ZERO), [(100, false), (101, true), (102, false), (103, true)]);
    by_window.ack(Time(1), 101, 1);
    assert_eq!(by_window.send(Time(1)), [(104, false), (105, true)], "two places are free");
}

#[test]
fn what_is_sent_again_requests_an_ack_where_it_ends() {
    let mut sender = Sender::with(RequesterConfig { ack_every: 0, window: 6, ..config() }, Verb::Write, &[20]);
    assert_eq!(sender.psns(Time::ZERO).len(), 6);
    sender.nak(Time(1), 102);
    assert_eq!(
        sender.send(Time(1)),
        [(102, false), (103, false), (104, false), (105, true), (106, false), (107, true)]
    );
}

#[test]
fn acks_are_cumulative_and_complete_messages_in_order() {
    let mut sender = Sender::with(config(), Verb::Write, &[2, 1, 3]);
    sender.send(Time::ZERO);
    sender.ack(Time(1), 102, 2);
    assert_eq!(sender.completions(), [(0, SendStatus::Success), (1, SendStatus::Success)]);
    assert_eq!(sender.0.una(), Psn::new(103));
    sender.ack(Time(2), 105, 3);
    assert_eq!(sender.completions(), [(2, SendStatus::Success)]);
    assert_eq!((sender.0.next_timeout(), sender.0.outstanding_messages()), (None, 0));
}

#[test]
fn old_repeated_and_impossible_acknowledgements_change_nothing() {
    let mut sender = Sender::with(config(), Verb::Write, &[8]);
    sender.send(Time::ZERO);
    sender.ack(Time(1), 103, 0);
    let before = format!("{:?}", (sender.0.una(), sender.0.next_timeout(), sender.0.state()));
    sender.ack(Time(2), 103, 0);
    sender.ack(Time(3), 100, 0);
    sender.nak(Time(4), 103);
    sender.rnr(Time(5), 99);
    sender.ack(Time(6), 108, 0); // never sent
    sender.reply(Time(7), 50, Syndrome::Nak(NakCode::RemoteAccessError), 0);
    assert_eq!(format!("{:?}", (sender.0.una(), sender.0.next_timeout(), sender.0.state())), before);
    assert_eq!(sender.0.counters().stale_acks, 6);
    assert_eq!(sender.psns(Time(8)), [0u32; 0], "nothing is sent again");
}

#[test]
fn a_nak_acknowledges_what_lies_before_it_and_goes_back_once() {
    let mut sender = Sender::with(config(), Verb::Write, &[2, 6]);
    sender.send(Time::ZERO);
    sender.nak(Time(1), 104);
    assert_eq!(sender.completions(), [(0, SendStatus::Success)]);
    sender.nak(Time(2), 104);
    assert_eq!(sender.0.counters().packet_seq_err, 1, "the copy of a NAK is no second one");
    assert_eq!(sender.psns(Time(3)), [104, 105, 106, 107]);
    assert_eq!(sender.0.counters().retransmitted_pkts, 4);
}

#[test]
fn an_ack_behind_a_rewind_moves_on_past_it() {
    let mut sender = Sender::with(config(), Verb::Write, &[8]);
    sender.send(Time::ZERO);
    sender.timeout(TIMEOUT);
    sender.ack(TIMEOUT + Time(1), 105, 0);
    assert_eq!(sender.psns(TIMEOUT + Time(1)), [106, 107]);
}

#[test]
fn the_timer_runs_from_the_last_progress_while_an_ack_is_owed() {
    let mut sender = Sender::with(RequesterConfig { ack_every: 4, ..config() }, Verb::Write, &[8]);
    assert_eq!(sender.0.next_timeout(), None);
    sender.0.poll_transmit(Time(5), &mut VirtualPayload).unwrap();
    assert_eq!(sender.0.next_timeout(), None, "PSN 100 does not ask");
    sender.send(Time(10));
    assert_eq!(sender.0.next_timeout(), Some(Time(10) + TIMEOUT));
    sender.ack(Time::from_us(50), 103, 0);
    assert_eq!(sender.0.next_timeout(), Some(Time::from_us(50) + TIMEOUT));
    sender.timeout(Time::from_us(50) + TIMEOUT - Time(1));
    assert_eq!(sender.0.counters().local_ack_timeout_err, 0, "too early does no harm");
    sender.timeout(Time::from_us(50) + TIMEOUT);
    assert_eq!((sender.0.counters().local_ack_timeout_err, sender.0.next_timeout()), (1, None));
    assert_eq!(sender.psns(Time(1)), [104, 105, 106, 107]);
}

#[test]
fn a_timer_of_code_zero_never_expires() {
    let limits = RetryLimits { ack_timeout: 0, ..limits() };
    let mut sender = Sender::with(RequesterConfig { limits, ..config() }, Verb::Write, &[1]);
    sender.send(Time::ZERO);
    assert_eq!(sender.0.next_timeout(), None);
}

#[test]
fn retries_without_progress_are_counted_and_progress_gives_them_back() {
    let mut sender = Sender::with(config(), Verb::Write, &[2, 2, 2]);
    let mut now = Time::ZERO;
    let mut lose = |sender: &mut Sender| {
        sender.send(now);
        now += TIMEOUT;
        sender.timeout(now);
        now
    };
    lose(&mut sender);
    let now_before = lose(&mut sender);
    sender.send(now_before);
    sender.ack(now_before, 101, 1);
    lose(&mut sender);
    lose(&mut sender);
    assert_eq!(sender.fault(), None, "two retries, twice");
    lose(&mut sender);
    assert_eq!(sender.fault(), Some(RequestFault::RetriesSpent { psn: Psn::new(102), retries: 2 }));
    let expected = [(0, SendStatus::Success), (1, SendStatus::RetryExcErr), (2, SendStatus::WrFlushErr)];
    assert_eq!(sender.completions(), expected);
    assert_eq!(sender.psns(Time::MAX / 2), [0u32; 0]);
}

#[test]
fn a_receiver_that_is_not_ready_is_waited_for() {
    let mut sender = Sender::with(config(), Verb::Send, &[3]);
    sender.send(Time::ZERO);
    sender.rnr(Time::from_us(7), 100);
    assert_eq!(sender.0.next_timeout(), Some(Time::from_us(27)));
    assert_eq!(sender.psns(Time::from_us(26)), [0u32; 0], "silence while it waits");
    sender.rnr(Time::from_us(8), 100);
    assert_eq!(
        (sender.0.counters().rnr_nak, sender.0.next_timeout()),
        (1, Some(Time::from_us(27))),
        "a copy does not prolong"
    );
    sender.nak(Time::from_us(9), 100);
    assert_eq!(sender.0.counters().packet_seq_err, 0, "a NAK of a packet behind it says nothing new");
    sender.timeout(Time::from_us(27));
    assert_eq!(sender.psns(Time::from_us(27)), [100, 101, 102]);
    assert_eq!(sender.0.counters().local_ack_timeout_err, 0);
}

#[test]
fn rnr_retries_are_limited_unless_there_are_seven() {
    let mut sender = Sender::with(config(), Verb::Send, &[1]);
    let rounds = |sender: &mut Sender, n: u64| {
        for now in (0..n).map(|k| Time::from_us(k * 100)) {
            sender.send(now);
            sender.rnr(now, 100);
            sender.timeout(now + Time::from_us(20));
        }
    };
    rounds(&mut sender, 2);
    assert_eq!(sender.fault(), None);
    rounds(&mut sender, 1);
    assert_eq!(sender.fault(), Some(RequestFault::RnrRetriesSpent { psn: Psn::new(100), retries: 2 }));
    assert_eq!(sender.completions(), [(0, SendStatus::RnrRetryExcErr)]);
    let limits = RetryLimits { rnr_retry: 7, ..limits() };
    let mut endless = Sender::with(RequesterConfig { limits, ..config() }, Verb::Send, &[1]);
    rounds(&mut endless, 1000);
    assert_eq!((endless.fault(), endless.0.counters().rnr_nak), (None, 1000));
}

#[test]
fn without_credits_one_packet_goes_as_a_probe_and_its_ack_frees_the_message() {
    let mut sender = Sender::with(RequesterConfig { ack_every: 0, ..config() }, Verb::Send, &[1, 3, 2]);
    let credits = |n| Syndrome::Ack(Credits::from_receives(n));
    assert_eq!(sender.psns(Time::ZERO).len(), 6, "until the peer has spoken there is no limit");
    sender.nak(Time(1), 100);
    sender.0.poll_transmit(Time(1), &mut VirtualPayload).unwrap();
    sender.reply(Time(2), 100, credits(0), 1);
    assert_eq!(sender.send(Time(2)), [(101, true)], "the probe asks");
    sender.reply(Time(3), 101, credits(0), 1);
    assert_eq!(sender.send(Time(3)), [(102, true), (103, true)], "its message has its receive, the next has none");
    sender.reply(Time(4), 103, credits(1), 2);
    assert_eq!(sender.psns(Time(4)), [104, 105]);
    sender.reply(Time(5), 105, credits(0), 3);
    assert_eq!(sender.completions().len(), 3);
}

#[test]
fn a_repeated_ack_may_bring_credits_and_takes_none_back() {
    let mut sender = Sender::with(RequesterConfig { ack_every: 0, ..config() }, Verb::Send, &[1, 1, 1, 1]);
    sender.0.poll_transmit(Time::ZERO, &mut VirtualPayload).unwrap();
    sender.reply(Time(1), 100, Syndrome::Ack(Credits::from_code(0)), 1);
    assert_eq!(sender.psns(Time(1)), [101], "a probe");
    sender.reply(Time(2), 100, Syndrome::Ack(Credits::from_receives(3)), 1);
    assert_eq!(sender.psns(Time(2)), [102, 103]);
    sender.post(4, Verb::Write, 10);
    sender.post(5, Verb::Send, 10);
    assert_eq!(sender.psns(Time(3)), [104], "a WRITE needs no receive");
}

#[test]
fn a_refusal_fails_its_message_and_flushes_the_rest() {
    let codes = [
        (NakCode::InvalidRequest, SendStatus::RemInvReqErr),
        (NakCode::RemoteAccessError, SendStatus::RemAccessErr),
        (NakCode::RemoteOperationalError, SendStatus::RemOpErr),
    ];
    for (code, status) in codes {
        let mut sender = Sender::with(config(), Verb::Write, &[1, 2, 1]);
        sender.send(Time::ZERO);
        sender.reply(Time(1), 102, Syndrome::Nak(code), 1);
        assert_eq!(sender.fault(), Some(RequestFault::Refused { psn: Psn::new(102), code }));
        assert_eq!(sender.completions(), [(0, SendStatus::Success), (1, status), (2, SendStatus::WrFlushErr)]);
        sender.post(3, Verb::Write, 1);
        assert_eq!(sender.completions(), [(3, SendStatus::WrFlushErr)], "and whatever comes after");
        assert_eq!(sender.reply(Time(2), 102, Syndrome::Ack(Credits::UNLIMITED), 3), Response::Dropped);
        assert_eq!((sender.0.next_timeout(), sender.psns(Time(3))), (None, vec![]));
    }
}

#[test]
fn a_queue_pair_that_is_closed_flushes_everything() {
    let mut sender = Sender::with(config(), Verb::Write, &[1, 1]);
    sender.send(Time::ZERO);
    sender.0.close();
    assert_eq!(sender.completions(), [(0, SendStatus::WrFlushErr), (1, SendStatus::WrFlushErr)]);
    assert_eq!(sender.fault(), Some(RequestFault::Closed));
}

#[test]
fn packets_of_others_are_dropped_and_counted_once() {
    let mut sender = Sender::with(config(), Verb::Write, &[1]);
    sender.send(Time::ZERO);
    let good = reply(100, Syndrome::Ack(Credits::UNLIMITED), 1);
    let mut wrong = vec![good.clone(); 5];
    wrong[0].bth.dest_qpn = Qpn::new(9);
    wrong[1].ip_src = PEER.ip;
    wrong[2].bth.pkey = 0x1234;
    wrong[3].bth.opcode = Opcode::ReadResponseOnly;
    wrong[4].aeth = Some(AethRepr { syndrome: Syndrome::Reserved(0x80), msn: 1 });
    for packet in &wrong {
        assert_eq!(sender.0.handle_packet(Time(1), packet), Response::Dropped);
    }
    let c = *sender.0.counters();
    assert_eq!((c.dropped_not_for_us, c.dropped_wrong_peer, c.dropped_bad_pkey, c.dropped_not_response), (1, 1, 1, 1));
    assert_eq!(c.dropped_read_responses, 1);
    let cnp = RocePacket { aeth: None, ..good.clone() };
    let cnp = RocePacket { bth: penstock_wire::BthRepr { opcode: Opcode::Cnp, ..cnp.bth }, ..cnp };
    assert_eq!(sender.0.handle_packet(Time(1), &cnp), Response::Cnp);
    assert_eq!(sender.0.handle_packet(Time(1), &good), Response::Acknowledgement);
    assert_eq!(sender.completions(), [(0, SendStatus::Success)]);
}

#[test]
fn psns_and_message_numbers_go_round_their_circles() {
    let first = Psn::new(0xFF_FFFE);
    let mut sender = Sender::with(RequesterConfig { init_psn: first, ..config() }, Verb::SendImm(7), &[3, 3]);
    assert_eq!(sender.psns(Time::ZERO), [0xFF_FFFE, 0xFF_FFFF, 0, 1, 2, 3]);
    sender.ack(Time(1), 1, 1);
    sender.nak(Time(2), 2);
    assert_eq!(sender.psns(Time(2)), [2, 3]);
    sender.ack(Time(3), 3, 2);
    assert_eq!(sender.completions().len(), 2);
}

#[test]
fn a_message_of_more_than_two_gibibytes_is_refused_with_its_length() {
    let mut sender = Sender::new(config());
    let wr = SendWr { wr_id: 3, verb: Verb::Write, va: 0, len: (1 << 31) + 1, remote_va: 0, rkey: 0, solicited: false };
    let error = sender.0.post_send(wr).unwrap_err();
    assert_eq!(error.to_string(), "message 3 of 2147483649 bytes: a message has at most 2^31 bytes; post it in parts");
    assert_eq!(sender.0.outstanding_messages(), 0);
}
