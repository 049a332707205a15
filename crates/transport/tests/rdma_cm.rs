// SPDX-License-Identifier: Apache-2.0
//! The standard connection manager: single exchanges, and messages that are repeated, late, of strangers, or wrong.

use penstock_transport::*;
use penstock_units::Time;
use penstock_wire::*;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const PORT: u16 = 7471;
const PATH: RdmaCmPath = RdmaCmPath { mtu: Mtu::B4096, retry_count: 7, ack_timeout: 14 };

fn entropy(seed: u32) -> Entropy {
    let mut state = seed;
    Box::new(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 16
    })
}

fn end(qpn: u32) -> RdmaCmEnd {
    RdmaCmEnd {
        qpn: Qpn::new(qpn),
        psn: Psn::new(qpn + 7),
        responder_resources: 4,
        initiator_depth: 2,
        rnr_retry: 7,
        private: [qpn as u8; RDMA_CM_PRIVATE_LEN],
    }
}

fn client() -> RdmaCm {
    RdmaCm::new(RdmaCmConfig::new(CLIENT, 0xC, 8), entropy(1))
}

fn config() -> RdmaCmConfig {
    RdmaCmConfig { port: Some(PORT), per_address: 2, allow: Some(vec![CLIENT]), ..RdmaCmConfig::new(SERVER, 0x5, 4) }
}

fn server() -> RdmaCm {
    RdmaCm::new(config(), entropy(2))
}

fn at(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// The messages that wait to be sent.
fn sent(cm: &mut RdmaCm) -> Vec<RdmaCmMad> {
    std::iter::from_fn(|| cm.poll_transmit()).map(|(_, mad)| mad).collect()
}

fn one(cm: &mut RdmaCm) -> RdmaCmMad {
    let all = sent(cm);
    assert_eq!(all.len(), 1, "{all:?}");
    all[0]
}

fn events(cm: &mut RdmaCm) -> Vec<RdmaCmEvent> {
    std::iter::from_fn(|| cm.poll_event()).collect()
}

fn requested(cm: &mut RdmaCm) -> u32 {
    match events(cm)[..] {
        [RdmaCmEvent::Requested { connection, .. }] => connection,
        ref other => panic!("{other:?}"),
    }
}

fn agreed(cm: &mut RdmaCm) -> RdmaCmAgreed {
    match events(cm)[..] {
        [RdmaCmEvent::Established { agreed, .. }] => agreed,
        ref other => panic!("{other:?}"),
    }
}

fn reason(mad: &RdmaCmMad) -> RejReason {
    match mad.message {
        RdmaCmMessage::Rej(rej) => rej.reason,
        other => panic!("{other:?}"),
    }
}

/// A connection and its identifiers at both ends.
fn connected(client: &mut RdmaCm, server: &mut RdmaCm, qpn: u32) -> (u32, u32) {
    let here = client.connect(at(0), SERVER, PORT, end(qpn), PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(client));
    let there = requested(server);
    assert!(server.accept(at(0), there, end(qpn + 100)));
    client.handle_mad(at(0), SERVER, &one(server));
    server.handle_mad(at(0), CLIENT, &one(client));
    let (a, b) = (agreed(client), agreed(server));
    assert_eq!((a.local, a.peer, a.path), (b.peer, b.local, b.path));
    (here, there)
}

#[test]
fn both_ends_connect_with_the_smaller_read_limits_and_disconnect_from_either_side() {
    for from_client in [true, false] {
        let (mut client, mut server) = (client(), server());
        let (here, there) = connected(&mut client, &mut server, 10);
        let (first, first_ip, second, second_ip, id) = if from_client {
            (&mut client, CLIENT, &mut server, SERVER, here)
        } else {
            (&mut server, SERVER, &mut client, CLIENT, there)
        };
        first.disconnect(at(1), id);
        let dreq = one(first);
        second.handle_mad(at(1), first_ip, &dreq);
        assert!(matches!(events(second)[..], [RdmaCmEvent::Disconnected { .. }]));
        let drep = one(second);
        assert_eq!(drep.transaction, dreq.transaction);
        second.handle_mad(at(2), first_ip, &dreq);
        assert_eq!(one(second), drep, "a repeated DREQ has the same answer");
        first.handle_mad(at(2), second_ip, &drep);
        assert_eq!(events(first), [RdmaCmEvent::Disconnected { connection: id }]);
        assert!(first.poll_transmit().is_none() && events(second).is_empty());
        for cm in [first, second] {
            cm.handle_timeout(at(5000));
            assert_eq!((cm.connections(), cm.next_timeout()), (0, None), "nothing is left");
        }
    }
}

#[test]
fn reads_are_limited_by_the_smaller_side() {
    let (mut client, mut server) = (client(), server());
    let ours = RdmaCmEnd { responder_resources: 16, initiator_depth: 8, ..end(10) };
    client.connect(at(0), SERVER, PORT, ours, PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(&mut client));
    let there = requested(&mut server);
    server.accept(at(0), there, RdmaCmEnd { responder_resources: 4, initiator_depth: 32, ..end(11) });
    client.handle_mad(at(0), SERVER, &one(&mut server));
    let agreed = agreed(&mut client);
    assert_eq!((agreed.local.responder_resources, agreed.local.initiator_depth), (16, 4));
    assert_eq!((agreed.peer.responder_resources, agreed.peer.initiator_depth), (4, 16));
}

#[test]
fn a_rep_with_more_reads_than_were_offered_is_rejected() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(&mut client));
    let there = requested(&mut server);
    server.accept(at(0), there, end(11));
    let RdmaCmMad { transaction, message: RdmaCmMessage::Rep(rep) } = one(&mut server) else { panic!() };
    let message = RdmaCmMessage::Rep(Rep { initiator_depth: 5, ..rep });
    client.handle_mad(at(0), SERVER, &RdmaCmMad { transaction, message });
    let rej = one(&mut client);
    assert_eq!(reason(&rej), RejReason::InsufficientResources);
    assert!(matches!(events(&mut client)[..], [RdmaCmEvent::Failed { why: RdmaCmFailure::Unfit { .. }, .. }]));
    server.handle_mad(at(0), CLIENT, &rej);
    assert!(matches!(events(&mut server)[..], [RdmaCmEvent::Failed { why: RdmaCmFailure::Rejected { .. }, .. }]));
    assert_eq!((client.connections(), server.connections()), (0, 0));
}

#[test]
fn a_repeated_req_gets_mra_while_the_owner_thinks_and_then_the_same_rep() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    let req = one(&mut client);
    server.handle_mad(at(0), CLIENT, &req);
    let there = requested(&mut server);
    server.handle_mad(at(1), CLIENT, &req);
    let mra = one(&mut server);
    assert!(matches!(mra.message, RdmaCmMessage::Mra(mra) if mra.message == Rejected::Req));
    let before = client.next_timeout().unwrap();
    client.handle_mad(at(1), SERVER, &mra);
    assert!(client.next_timeout().unwrap() > before + Time::from_s(3), "an MRA stops repetitions for its time");
    server.accept(at(2), there, end(11));
    let rep = one(&mut server);
    server.handle_mad(at(3), CLIENT, &req);
    assert_eq!(one(&mut server), rep);
    assert!(events(&mut server).is_empty(), "nothing is requested twice");
    client.handle_mad(at(3), SERVER, &rep);
    let rtu = one(&mut client);
    client.handle_mad(at(4), SERVER, &rep);
    assert_eq!(one(&mut client).message, rtu.message, "a repeated REP gets the same RTU");
    for now in [4, 5] {
        server.handle_mad(at(now), CLIENT, &rtu);
    }
    assert_eq!(events(&mut server).len() + events(&mut client).len(), 2, "each end is up once");
    assert_eq!((server.counters().repeated, server.counters().ignored), (2, 1));
}

#[test]
fn mras_without_end_do_not_keep_a_request_for_ever() {
    let mut client = client();
    let here = client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    let ids = MadIds { local: 9, remote: here };
    let mra = RdmaCmMessage::Mra(Mra { ids, message: Rejected::Req, service_timeout: 31 });
    let mut now = at(0);
    for _ in 0..1000 {
        client.handle_mad(now, SERVER, &RdmaCmMad { transaction: 1, message: mra });
        let Some(due) = client.next_timeout() else { break };
        now = due;
        client.handle_timeout(now);
    }
    assert_eq!(client.connections(), 0);
    assert!(now < Time::from_s(20 * 70), "{now}");
}

#[test]
fn without_an_answer_each_side_gives_up_after_its_retries_and_frees_the_peer() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    let mut reqs = vec![one(&mut client)];
    while let Some(due) = client.next_timeout() {
        client.handle_timeout(due);
        reqs.extend(sent(&mut client));
    }
    let rej = reqs.pop().unwrap();
    assert_eq!(reqs.len(), 16, "once and 15 times again");
    assert!(reqs.iter().all(|req| *req == reqs[0]));
    assert!(matches!(
        events(&mut client)[..],
        [RdmaCmEvent::Failed { why: RdmaCmFailure::Silent { message: "REQ", tries: 16 }, .. }]
    ));
    // The peer has the request none the less. The REJ, which lacks the peer's identifier, ends it.
    server.handle_mad(at(0), CLIENT, &reqs[0]);
    requested(&mut server);
    server.handle_mad(at(1), CLIENT, &rej);
    assert_eq!((events(&mut server).len(), server.connections()), (1, 0));
}

#[test]
fn a_request_that_the_owner_does_not_answer_leaves_the_table() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(&mut client));
    let there = requested(&mut server);
    server.handle_timeout(at(4999));
    assert_eq!(server.connections(), 1);
    server.handle_timeout(at(5000));
    assert_eq!(reason(&one(&mut server)), RejReason::Timeout);
    assert!(!server.accept(at(5001), there, end(11)), "it is over");
    assert_eq!(server.connections(), 0);
}

#[test]
fn requests_that_cannot_be_met_are_rejected_with_the_reason() {
    let mut client = client();
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    let RdmaCmMad { transaction, message: RdmaCmMessage::Req(good) } = one(&mut client) else { panic!() };
    let mut other_source = good.private;
    other_source[16..20].copy_from_slice(&STRANGER.octets());
    let cases = [
        (Req { service_id: rdma_cm_service(PORT + 1), ..good }, RejReason::InvalidServiceId),
        (Req { service_id: 0x0000_0000_0111_0000 | u64::from(PORT), ..good }, RejReason::InvalidServiceId),
        (Req { service: Service::Uc, ..good }, RejReason::InvalidTransportType),
        (Req { private: [0; REQ_PRIVATE_LEN], ..good }, RejReason::Unsupported),
        (Req { private: other_source, ..good }, RejReason::InvalidGid),
        (Req { qpn: GSI_QPN, ..good }, RejReason::Unsupported),
        (Req { pkey: 0x8001, ..good }, RejReason::Unsupported),
        (Req { mtu: 0, ..good }, RejReason::InvalidMtu),
        (Req { mtu: 6, ..good }, RejReason::InvalidMtu),
    ];
    for (req, expected) in cases {
        let mut server = server();
        server.handle_mad(at(0), CLIENT, &RdmaCmMad { transaction, message: RdmaCmMessage::Req(req) });
        let rej = one(&mut server);
        assert_eq!((reason(&rej), rej.transaction), (expected, transaction));
        assert_eq!((server.connections(), events(&mut server).len()), (0, 0), "{expected}");
    }
    let mut small = RdmaCm::new(RdmaCmConfig { mtu: Mtu::B1024, ..config() }, entropy(3));
    small.handle_mad(at(0), CLIENT, &RdmaCmMad { transaction, message: RdmaCmMessage::Req(good) });
    let rej = one(&mut small);
    client.handle_mad(at(0), SERVER, &rej);
    let [RdmaCmEvent::Failed { why, .. }] = events(&mut client)[..] else { panic!() };
    assert_eq!(why.to_string(), "rejected: invalid path MTU; the peer has path MTU 1024");
}

#[test]
fn a_new_request_from_the_same_queue_pair_ends_the_old_connection() {
    let (mut client, mut server) = (client(), server());
    let (_, there) = connected(&mut client, &mut server, 10);
    // The client starts again and has forgotten everything.
    let mut again = RdmaCm::new(RdmaCmConfig::new(CLIENT, 0xC, 8), entropy(77));
    again.connect(at(10), SERVER, PORT, end(10), PATH).unwrap();
    server.handle_mad(at(10), CLIENT, &one(&mut again));
    let answers = sent(&mut server);
    assert!(matches!(answers[0].message, RdmaCmMessage::Dreq { .. }));
    assert_eq!(reason(&answers[1]), RejReason::StaleConn);
    answers.iter().for_each(|mad| again.handle_mad(at(10), SERVER, mad));
    server.handle_mad(at(10), CLIENT, &one(&mut again));
    assert_eq!(events(&mut server), [RdmaCmEvent::Disconnected { connection: there }]);
    assert!(matches!(events(&mut again)[..], [RdmaCmEvent::Failed { why: RdmaCmFailure::Rejected { .. }, .. }]));
    connected(&mut again, &mut server, 10);
}

#[test]
fn a_new_request_from_the_same_queue_pair_ends_an_undecided_one() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(&mut client));
    let there = requested(&mut server);
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    server.handle_mad(at(0), CLIENT, &one(&mut client));
    assert!(matches!(events(&mut server)[..], [RdmaCmEvent::Failed { connection, .. }] if connection == there));
    assert_eq!(server.connections(), 0);
}

#[test]
fn an_identifier_in_use_with_another_queue_pair_is_rejected() {
    let (mut client, mut server) = (client(), server());
    client.connect(at(0), SERVER, PORT, end(10), PATH).unwrap();
    let mad = one(&mut client);
    server.handle_mad(at(0), CLIENT, &mad);
    let RdmaCmMessage::Req(req) = mad.message else { panic!() };
    let message = RdmaCmMessage::Req(Req { psn: Psn::new(1), ..req });
    server.handle_mad(at(0), CLIENT, &RdmaCmMad { message, ..mad });
    assert_eq!(reason(&one(&mut server)), RejReason::DuplicateCommId);
    assert_eq!(server.connections(), 1);
}

#[test]
fn messages_for_unknown_connections_are_answered_and_change_nothing() {
    let (mut client, mut server) = (client(), server());
    connected(&mut client, &mut server, 10);
    let ids = MadIds { local: 0xBAD, remote: 0xBEEF };
    let send = |cm: &mut RdmaCm, message| cm.handle_mad(at(1), SERVER, &RdmaCmMad { transaction: 5, message });
    send(&mut client, RdmaCmMessage::Dreq { ids, qpn: Qpn::new(10) });
    assert_eq!(one(&mut client).message, RdmaCmMessage::Drep(ids.swapped()));
    let rej =
        Rej { ids, message: Rejected::Rep, reason: RejReason::StaleConn, information_len: 0, information: [0; 8] };
    for message in [RdmaCmMessage::Rtu(ids), RdmaCmMessage::Drep(ids), RdmaCmMessage::Rej(rej)] {
        send(&mut client, message);
        assert!(sent(&mut client).is_empty(), "{}", message.name());
    }
    assert_eq!(client.counters().unknown, 4);
    assert!(events(&mut client).is_empty());
}

#[test]
fn nobody_but_the_peer_with_both_identifiers_ends_a_connection() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = connected(&mut client, &mut server, 10);
    let right = MadIds { local: there, remote: here };
    let wrong = MadIds { local: there ^ 1, remote: here };
    let rej =
        |ids| Rej { ids, message: Rejected::Rep, reason: RejReason::Timeout, information_len: 8, information: [0; 8] };
    for (from, ids, qpn) in [(STRANGER, right, 10), (SERVER, wrong, 10), (SERVER, right, 11)] {
        let dreq = RdmaCmMessage::Dreq { ids, qpn: Qpn::new(qpn) };
        client.handle_mad(at(1), from, &RdmaCmMad { transaction: 1, message: dreq });
    }
    for (from, ids) in [(STRANGER, right), (SERVER, wrong)] {
        client.handle_mad(at(1), from, &RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rej(rej(ids)) });
    }
    assert!(events(&mut client).is_empty());
    client.handle_mad(at(2), SERVER, &RdmaCmMad { transaction: 1, message: RdmaCmMessage::Rej(rej(right)) });
    assert_eq!(events(&mut client), [RdmaCmEvent::Disconnected { connection: here }]);
}

#[test]
fn a_flood_of_strangers_and_of_requests_takes_no_memory_and_bounded_answers() {
    let mut server = server();
    for n in 1..=10_000 {
        let from = if n % 2 == 0 { STRANGER } else { CLIENT };
        let mut other = RdmaCm::new(RdmaCmConfig::new(from, n, 1), entropy(n as u32));
        other.connect(at(0), SERVER, PORT, end(100 + n as u32), PATH).unwrap();
        server.handle_mad(at(0), from, &one(&mut other));
    }
    assert_eq!(server.connections(), 2, "as many as one address may have");
    assert_eq!(events(&mut server).len(), 2);
    let answers = sent(&mut server);
    assert!(answers.len() <= 64, "{}", answers.len());
    let counters = *server.counters();
    assert_eq!((counters.strangers, counters.requests), (5000, 2));
    assert_eq!(counters.refused, 10_000 - 2);
    assert_eq!(counters.suppressed, counters.refused - answers.len() as u64);
}

#[test]
fn connections_that_are_over_make_room_before_their_time() {
    let (mut client, mut server) = (client(), server());
    for n in 0..100 {
        let (here, _) = connected(&mut client, &mut server, 10 + n);
        client.disconnect(at(0), here);
        server.handle_mad(at(0), CLIENT, &one(&mut client));
        client.handle_mad(at(0), SERVER, &one(&mut server));
        events(&mut client);
        events(&mut server);
        assert!(client.connections() <= 8 && server.connections() <= 4);
    }
}

#[test]
fn both_sides_may_disconnect_at_once() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = connected(&mut client, &mut server, 10);
    client.disconnect(at(0), here);
    server.disconnect(at(0), there);
    let (from_client, from_server) = (one(&mut client), one(&mut server));
    client.handle_mad(at(0), SERVER, &from_server);
    server.handle_mad(at(0), CLIENT, &from_client);
    for (cm, id) in [(&mut client, here), (&mut server, there)] {
        assert_eq!(events(cm), [RdmaCmEvent::Disconnected { connection: id }]);
        assert!(matches!(one(cm).message, RdmaCmMessage::Drep(_)));
    }
}
