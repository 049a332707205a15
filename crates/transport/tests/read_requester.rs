// SPDX-License-Identifier: Apache-2.0
//! One test for each rule of a requester that READs: requests, responses in their turn, implied NAKs, limits, errors.
//! Expectations are IBTA 9.4.4, 9.7.5, 9.7.6 and 9.9.2.

mod common;

use common::*;
use penstock_transport::{
    Mtu, PostError, RequestFault, Requester, RequesterConfig, RequesterState, Response, RetryLimits, SendStatus,
    SendWr, Verb, VirtualPayload,
};
use penstock_units::Time;
use penstock_wire::{AethRepr, Credits, NakCode, Opcode, Payload, Psn, RnrTimer, RocePacket, Syndrome};
use Opcode::{
    ReadResponseFirst as First, ReadResponseLast as Last, ReadResponseMiddle as Middle, ReadResponseOnly as Only,
};

const FIRST: u32 = 100;
const LOCAL_VA: u64 = 0x5000;
const ACK_ALL: Syndrome = Syndrome::Ack(Credits::UNLIMITED);
/// Code 5: 131.072 us.
const TIMEOUT: Time = Time::from_ns(131_072);

fn config() -> RequesterConfig {
    let limits = RetryLimits { ack_timeout: 5, retry_cnt: 2, rnr_retry: 2 };
    RequesterConfig { limits, ..RequesterConfig::new(PEER, LOCAL, Psn::new(FIRST), Mtu::B256) }
}

struct Reader(Requester);

impl Reader {
    fn new(config: RequesterConfig) -> Self {
        Reader(Requester::new(config))
    }

    /// Posts messages, numbered from 0, and sends what may be sent.
    fn with(messages: &[(Verb, u32)]) -> Self {
        let mut reader = Self::new(config());
        for (wr_id, (verb, len)) in messages.iter().enumerate() {
            reader.post(wr_id as u64, *verb, *len);
        }
        reader.send(Time::ZERO);
        reader
    }

    fn post(&mut self, wr_id: u64, verb: Verb, len: u32) {
        self.0.post_send(message(wr_id, verb, len)).unwrap();
    }

    fn send(&mut self, now: Time) -> Vec<RocePacket> {
        std::iter::from_fn(|| self.0.poll_transmit(now, &mut VirtualPayload)).collect()
    }

    /// What may be sent, as PSN and, for a READ request, offset and length.
    fn requests(&mut self, now: Time) -> Vec<(u32, Option<(u64, u32)>)> {
        let read = |packet: &RocePacket| packet.reth.filter(|_| packet.bth.opcode == Opcode::ReadRequest);
        let part = |packet: &RocePacket| read(packet).map(|reth| (reth.va - BASE, reth.dma_len));
        self.send(now).iter().map(|packet| (packet.bth.psn.value(), part(packet))).collect()
    }

    fn respond(&mut self, opcode: Opcode, psn: u32, len: usize) -> Response {
        self.0.handle_packet(Time(1), &response(opcode, psn, len))
    }

    /// A response with new bytes of READ `wr_id`.
    fn takes(&mut self, wr_id: u64, opcode: Opcode, psn: u32, len: usize, offset: u64) {
        let data = Response::ReadData { wr_id, va: LOCAL_VA + offset };
        assert_eq!(self.respond(opcode, psn, len), data, "PSN {psn}");
    }

    fn reply(&mut self, now: Time, psn: u32, syndrome: Syndrome) {
        self.0.handle_packet(now, &reply(psn, syndrome));
    }

    fn completions(&mut self) -> Vec<(u64, SendStatus)> {
        std::iter::from_fn(|| self.0.poll_completion()).map(|done| (done.wr_id, done.status)).collect()
    }
}

fn message(wr_id: u64, verb: Verb, len: u32) -> SendWr {
    SendWr { wr_id, verb, va: LOCAL_VA, len, remote_va: BASE, rkey: RKEY, solicited: true }
}

fn reply(psn: u32, syndrome: Syndrome) -> RocePacket {
    let mut reply = packet(Opcode::Acknowledge, psn, Vec::new());
    (reply.ip_src, reply.ip_dst, reply.bth.dest_qpn) = (LOCAL.ip, PEER.ip, PEER.qpn);
    RocePacket { aeth: Some(AethRepr { syndrome, msn: 0 }), ..reply }
}

fn response(opcode: Opcode, psn: u32, len: usize) -> RocePacket {
    let mut response = packet(opcode, psn, vec![0; len]);
    (response.ip_src, response.ip_dst, response.bth.dest_qpn) = (LOCAL.ip, PEER.ip, PEER.qpn);
    response.aeth = opcode.has_aeth().then_some(AethRepr { syndrome: ACK_ALL, msn: 0 });
    response
}

#[test]
fn a_read_is_one_packet_and_takes_a_psn_for_each_response() {
    let mut reader = Reader::new(config());
    for (wr_id, len) in [(0, 1000), (1, 0), (2, 256)] {
        reader.post(wr_id, Verb::Read, len);
    }
    reader.post(3, Verb::Write, 300);
    let sent = reader.send(Time::ZERO);
    for packet in &sent {
        assert_eq!(packet.validate(), Ok(()));
    }
    let psns: Vec<_> = sent.iter().map(|packet| packet.bth.psn.value()).collect();
    assert_eq!(psns, [100, 104, 105, 106, 107]);
    let reth = sent[0].reth.unwrap();
    assert_eq!((sent[0].bth.opcode, reth.va, reth.rkey, reth.dma_len), (Opcode::ReadRequest, BASE, RKEY, 1000));
    assert!(sent[..3].iter().all(|packet| packet.bth.ack_req && !packet.bth.solicited && packet.payload.is_empty()));
    assert_eq!(reader.0.counters().tx_payload_bytes, 300, "a request carries none");
}

#[test]
fn responses_bring_every_byte_once_and_acknowledge_what_lies_before() {
    let mut reader = Reader::with(&[(Verb::Write, 300), (Verb::Read, 600), (Verb::Send, 8), (Verb::Read, 0)]);
    assert_eq!(reader.0.next_timeout(), Some(TIMEOUT));
    reader.takes(1, First, 102, 256, 0);
    assert_eq!(reader.completions(), [(0, SendStatus::Success)], "the WRITE");
    reader.takes(1, Middle, 103, 256, 256);
    assert_eq!(reader.respond(Middle, 103, 256), Response::Dropped, "a copy");
    reader.takes(1, Last, 104, 88, 512);
    assert_eq!(reader.completions(), [(1, SendStatus::Success)]);
    reader.takes(3, Only, 106, 0, 0);
    assert_eq!(reader.completions(), [(2, SendStatus::Success), (3, SendStatus::Success)]);
    let counters = *reader.0.counters();
    assert_eq!((counters.rx_payload_bytes, counters.dropped_read_responses), (600, 1));
    assert_eq!((counters.retransmitted_pkts, reader.0.next_timeout()), (0, None));
}

#[test]
fn psns_of_responses_go_round_their_circle() {
    let mut reader = Reader::new(RequesterConfig { init_psn: Psn::new(0xFF_FFFE), ..config() });
    reader.post(0, Verb::Read, 1000);
    reader.post(1, Verb::Read, 1);
    assert_eq!(reader.requests(Time::ZERO), [(0xFF_FFFE, Some((0, 1000))), (2, Some((0, 1)))]);
    for (k, (opcode, psn, len)) in
        [(First, 0xFF_FFFE, 256), (Middle, 0xFF_FFFF, 256), (Middle, 0, 256), (Last, 1, 232)].into_iter().enumerate()
    {
        reader.takes(0, opcode, psn, len, k as u64 * 256);
    }
    reader.takes(1, Only, 2, 1, 0);
    assert_eq!(reader.completions().len(), 2);
}

#[test]
fn a_gap_requests_the_rest_of_the_read_once() {
    let mut reader = Reader::with(&[(Verb::Read, 1280), (Verb::Write, 8)]);
    reader.takes(0, First, 100, 256, 0);
    assert_eq!(reader.respond(Middle, 102, 256), Response::Acknowledgement);
    assert_eq!(reader.requests(Time(2)), [(101, Some((256, 1024))), (105, None)]);
    // The rest of the first answer is still on its way.
    for (opcode, psn) in [(Middle, 103), (Last, 104)] {
        assert_eq!(reader.respond(opcode, psn, 256), Response::Acknowledgement);
    }
    reader.reply(Time(3), 105, ACK_ALL);
    reader.reply(Time(3), 106, Syndrome::Nak(NakCode::PsnSequenceError));
    assert_eq!(reader.requests(Time(3)), []);
    let counters = *reader.0.counters();
    assert_eq!((counters.implied_nak_seq_err, counters.dropped_read_responses, counters.stale_acks), (1, 3, 2));
    // A new gap is another one.
    reader.takes(0, First, 101, 256, 256);
    assert_eq!(reader.respond(Middle, 103, 256), Response::Acknowledgement);
    assert_eq!(reader.requests(Time(4)), [(102, Some((512, 768))), (105, None)]);
    for (opcode, psn) in [(First, 102), (Middle, 103), (Last, 104)] {
        reader.takes(0, opcode, psn, 256, u64::from(psn - 100) * 256);
    }
    assert_eq!(reader.completions(), [(0, SendStatus::Success)]);
    reader.reply(Time(5), 105, ACK_ALL);
    assert_eq!(reader.completions(), [(1, SendStatus::Success)]);
}

#[test]
fn an_acknowledgement_beyond_a_read_is_an_implied_nak() {
    for syndrome in [ACK_ALL, Syndrome::Nak(NakCode::PsnSequenceError)] {
        let mut reader = Reader::with(&[(Verb::Write, 8), (Verb::Read, 600), (Verb::Write, 8)]);
        reader.reply(Time(1), 104, syndrome);
        assert_eq!(reader.completions(), [(0, SendStatus::Success)], "not the READ");
        assert_eq!(reader.requests(Time(2)), [(101, Some((0, 600))), (104, None)]);
        assert_eq!(reader.0.counters().implied_nak_seq_err, 1);
        for (opcode, psn, len) in [(First, 101, 256), (Middle, 102, 256), (Last, 103, 88)] {
            reader.takes(1, opcode, psn, len, u64::from(psn - 101) * 256);
        }
        reader.reply(Time(3), 104, ACK_ALL);
        assert_eq!(reader.completions(), [(1, SendStatus::Success), (2, SendStatus::Success)]);
    }
}

#[test]
fn an_ack_for_a_read_itself_does_not_end_it() {
    let mut reader = Reader::with(&[(Verb::Read, 8)]);
    reader.reply(Time(1), 100, ACK_ALL);
    assert_eq!((reader.completions(), reader.requests(Time(1))), (vec![], vec![(100, Some((0, 8)))]));
}

#[test]
fn late_responses_count_while_the_rest_is_requested_again() {
    let mut reader = Reader::with(&[(Verb::Read, 1024)]);
    reader.takes(0, First, 100, 256, 0);
    reader.0.handle_timeout(Time(1) + TIMEOUT);
    assert_eq!(reader.0.counters().local_ack_timeout_err, 1);
    reader.takes(0, Middle, 101, 256, 256);
    assert_eq!(reader.requests(Time(1) + TIMEOUT), [(102, Some((512, 512)))]);
    reader.takes(0, Middle, 102, 256, 512);
    reader.takes(0, Last, 103, 256, 768);
    assert_eq!(reader.completions(), [(0, SendStatus::Success)]);
}

#[test]
fn the_timer_runs_from_the_last_response() {
    let mut reader = Reader::with(&[(Verb::Read, 600)]);
    assert_eq!(reader.0.next_timeout(), Some(TIMEOUT));
    reader.0.handle_packet(Time(50), &response(First, 100, 256));
    assert_eq!(reader.0.next_timeout(), Some(Time(50) + TIMEOUT));
    reader.0.handle_packet(Time(60), &response(First, 100, 256));
    assert_eq!(reader.0.next_timeout(), Some(Time(50) + TIMEOUT), "a copy is no progress");
}

#[test]
fn a_read_without_an_answer_ends_after_its_retries() {
    let mut reader = Reader::with(&[(Verb::Read, 600), (Verb::Read, 600)]);
    let mut now = Time::ZERO;
    for again in 0..3 {
        now = reader.0.next_timeout().expect("a timer");
        reader.0.handle_timeout(now);
        assert_eq!(reader.requests(now).len(), if again < 2 { 2 } else { 0 });
    }
    assert!(now > Time::ZERO);
    assert_eq!(reader.completions(), [(0, SendStatus::RetryExcErr), (1, SendStatus::WrFlushErr)]);
    assert!(matches!(reader.0.state(), RequesterState::Error(RequestFault::RetriesSpent { retries: 2, .. })));
}

#[test]
fn a_refused_read_completes_with_the_reason() {
    for (code, status) in [
        (NakCode::InvalidRequest, SendStatus::RemInvReqErr),
        (NakCode::RemoteAccessError, SendStatus::RemAccessErr),
        (NakCode::RemoteOperationalError, SendStatus::RemOpErr),
    ] {
        let mut reader = Reader::with(&[(Verb::Write, 8), (Verb::Read, 600), (Verb::Read, 8)]);
        reader.takes(1, First, 101, 256, 0);
        reader.reply(Time(1), 102, Syndrome::Nak(code));
        let expected = [(0, SendStatus::Success), (1, status), (2, SendStatus::WrFlushErr)];
        assert_eq!(reader.completions(), expected);
        assert_eq!(reader.respond(Last, 102, 256), Response::Dropped, "the queue pair is in error");
    }
}

#[test]
fn a_read_without_its_bytes_is_flushed_if_a_later_request_is_refused() {
    let mut reader = Reader::with(&[(Verb::Read, 600), (Verb::Write, 8), (Verb::Write, 8)]);
    reader.reply(Time(1), 103, Syndrome::Nak(NakCode::RemoteAccessError));
    let expected = [(0, SendStatus::WrFlushErr), (1, SendStatus::RemAccessErr), (2, SendStatus::WrFlushErr)];
    assert_eq!(reader.completions(), expected);
}

#[test]
fn a_read_may_be_answered_rnr_and_is_requested_again_after_the_wait() {
    let mut reader = Reader::with(&[(Verb::Read, 600)]);
    for again in 0..3 {
        let now = Time::from_us(100 * again);
        reader.reply(now, 100, Syndrome::RnrNak(RnrTimer::from_code(2)));
        if again < 2 {
            assert_eq!(reader.requests(now), []);
            reader.0.handle_timeout(now + Time::from_us(20));
            assert_eq!(reader.requests(now + Time::from_us(20)), [(100, Some((0, 600)))]);
        }
    }
    assert_eq!(reader.completions(), [(0, SendStatus::RnrRetryExcErr)]);
}

#[test]
fn late_responses_do_not_shorten_the_wait_of_a_later_message() {
    let mut reader = Reader::with(&[(Verb::Read, 512), (Verb::Send, 8)]);
    reader.reply(Time(1), 102, Syndrome::RnrNak(RnrTimer::from_code(2)));
    let end = Time(1) + Time::from_us(20);
    assert_eq!((reader.0.next_timeout(), reader.requests(Time(1))), (Some(end), vec![]));
    reader.takes(0, First, 100, 256, 0);
    assert_eq!((reader.0.next_timeout(), reader.requests(Time(2))), (Some(end), vec![]));
    reader.0.handle_timeout(end);
    assert_eq!(reader.requests(end), [(101, Some((256, 256))), (102, None)]);
}

#[test]
fn the_initiator_depth_holds_back_reads_and_what_follows_them() {
    let mut reader = Reader::new(RequesterConfig { initiator_depth: 2, ..config() });
    for wr_id in 0..4 {
        reader.post(wr_id, Verb::Read, 300);
    }
    reader.post(4, Verb::Write, 8);
    assert_eq!(reader.requests(Time::ZERO), [(100, Some((0, 300))), (102, Some((0, 300)))]);
    reader.takes(0, First, 100, 256, 0);
    assert_eq!(reader.requests(Time(1)), [], "the first is not complete");
    reader.takes(0, Last, 101, 44, 256);
    assert_eq!(reader.requests(Time(1)), [(104, Some((0, 300)))]);
    // Going back begins no more of them.
    reader.0.handle_timeout(Time(1) + TIMEOUT);
    assert_eq!(reader.requests(Time(1) + TIMEOUT), [(102, Some((0, 300))), (104, Some((0, 300)))]);
    reader.takes(1, First, 102, 256, 0);
    reader.takes(1, Last, 103, 44, 256);
    assert_eq!(reader.requests(Time(2) + TIMEOUT), [(106, Some((0, 300))), (108, None)]);
}

#[test]
fn by_default_sixteen_reads_are_outstanding() {
    let mut reader = Reader::new(config());
    (0..17).for_each(|wr_id| reader.post(wr_id, Verb::Read, 1));
    assert_eq!(reader.send(Time::ZERO).len(), 16);
    reader.takes(0, Only, 100, 1, 0);
    assert_eq!(reader.requests(Time(1)), [(116, Some((0, 1)))]);
}

#[test]
fn responses_that_no_read_waits_for_are_dropped_and_counted() {
    let mut reader = Reader::with(&[(Verb::Write, 512), (Verb::Read, 256)]);
    reader.post(2, Verb::Read, 256);
    let ghosts = [(Only, 99, 256), (Middle, 100, 256), (Last, 101, 256), (Only, 103, 256), (First, 0x80_0000, 256)];
    for (opcode, psn, len) in ghosts {
        assert_eq!(reader.respond(opcode, psn, len), Response::Dropped, "{psn}");
    }
    assert_eq!(reader.0.counters().dropped_read_responses, 5);
    let mut bare = response(Only, 102, 256);
    bare.aeth = None;
    assert_eq!(reader.0.handle_packet(Time(1), &bare), Response::Dropped);
    bare.aeth = Some(AethRepr { syndrome: Syndrome::Nak(NakCode::InvalidRequest), msn: 0 });
    assert_eq!(reader.0.handle_packet(Time(1), &bare), Response::Dropped);
    assert_eq!(reader.0.counters().dropped_not_response, 2);
    let mut foreign = response(Only, 102, 256);
    foreign.ip_src = PEER.ip;
    assert_eq!(reader.0.handle_packet(Time(1), &foreign), Response::Dropped);
    assert_eq!((reader.0.una(), reader.completions()), (Psn::new(100), vec![]));
    reader.takes(1, Only, 102, 256, 0);
    assert_eq!(reader.completions().len(), 2);
}

#[test]
fn a_response_of_the_wrong_size_or_at_the_wrong_end_fails_the_read() {
    let wrong = [(First, 255), (First, 512), (Only, 256), (Last, 256), (Middle, 0)];
    for (opcode, len) in wrong {
        let mut reader = Reader::with(&[(Verb::Write, 8), (Verb::Read, 600), (Verb::Read, 1)]);
        assert_eq!(reader.respond(opcode, 101, len), Response::Acknowledgement);
        let expected = [(0, SendStatus::Success), (1, SendStatus::BadRespErr), (2, SendStatus::WrFlushErr)];
        assert_eq!(reader.completions(), expected);
        let fault = RequestFault::BadResponse { psn: Psn::new(101), opcode, len, expected: 256 };
        assert_eq!(reader.0.state(), RequesterState::Error(fault));
        assert!(fault.to_string().contains("MTU"), "{fault}");
    }
    let mut reader = Reader::with(&[(Verb::Read, 300)]);
    reader.takes(0, First, 100, 256, 0);
    assert_eq!(reader.respond(Middle, 101, 44), Response::Acknowledgement);
    assert_eq!(reader.completions(), [(0, SendStatus::BadRespErr)]);
}

#[test]
fn reads_of_more_than_two_gibibytes_or_without_a_depth_are_refused_by_name() {
    let mut reader = Reader::new(config());
    let error = reader.0.post_send(message(3, Verb::Read, (1 << 31) + 1)).unwrap_err();
    assert_eq!(error, PostError::TooLong { wr_id: 3, len: (1 << 31) + 1 });
    let mut reader = Reader::new(RequesterConfig { initiator_depth: 0, ..config() });
    let error = reader.0.post_send(message(4, Verb::Read, 1)).unwrap_err();
    assert_eq!(error, PostError::NoReads { wr_id: 4 });
    assert!(error.to_string().starts_with("READ 4: the initiator depth"), "{error}");
    reader.post(5, Verb::Write, 1);
    assert_eq!(reader.0.outstanding_messages(), 1);
}

#[test]
fn the_longest_read_waits_until_its_psns_are_free_and_is_whole_at_its_last_one() {
    let mut reader = Reader::with(&[(Verb::Write, 8), (Verb::Read, 1 << 31), (Verb::Write, 8)]);
    assert_eq!((reader.0.outstanding_packets(), reader.requests(Time::ZERO)), (1, vec![]));
    reader.reply(Time(1), 100, ACK_ALL);
    assert_eq!(reader.requests(Time(1)), [(101, Some((0, 1 << 31)))]);
    let last = (1 << 23) - 1;
    let mut middle = response(Middle, 0, 0);
    middle.payload = Payload::Virtual(256);
    reader.takes(1, First, 101, 256, 0);
    for k in 1..last {
        middle.bth.psn = Psn::new(101 + k);
        let data = Response::ReadData { wr_id: 1, va: LOCAL_VA + u64::from(k) * 256 };
        assert_eq!(reader.0.handle_packet(Time(1), &middle), data);
    }
    assert_eq!(reader.completions(), [(0, SendStatus::Success)]);
    reader.takes(1, Last, 101 + last, 256, u64::from(last) * 256);
    assert_eq!(reader.completions(), [(1, SendStatus::Success)]);
}

#[test]
fn the_window_counts_responses_and_holds_back_what_lies_beyond() {
    let mut reader = Reader::new(RequesterConfig { window: 4, ..config() });
    for wr_id in 0..3 {
        reader.post(wr_id, Verb::Read, 768);
    }
    assert_eq!(reader.requests(Time::ZERO), [(100, Some((0, 768))), (103, Some((0, 768)))]);
    assert_eq!(reader.0.outstanding_packets(), 6);
    for (opcode, psn) in [(First, 100), (Middle, 101), (Last, 102)] {
        reader.takes(0, opcode, psn, 256, u64::from(psn - 100) * 256);
    }
    assert_eq!(reader.requests(Time(1)), [(106, Some((0, 768)))]);
}

#[test]
fn responses_report_the_receives_of_the_peer() {
    let mut reader = Reader::with(&[(Verb::Read, 8)]);
    let mut only = response(Only, 100, 8);
    only.aeth = Some(AethRepr { syndrome: Syndrome::Ack(Credits::from_receives(1)), msn: 1 });
    assert_eq!(reader.0.handle_packet(Time(1), &only), Response::ReadData { wr_id: 0, va: LOCAL_VA });
    for wr_id in 1..4 {
        reader.post(wr_id, Verb::Send, 8);
    }
    let psns: Vec<_> = reader.requests(Time(2)).iter().map(|(psn, _)| *psn).collect();
    assert_eq!(psns, [101], "the second SEND has no receive");
}
