// SPDX-License-Identifier: Apache-2.0
//! The limit on packets in flight of a front end: none until a packet is lost, then as many as the loss rate justifies;
//! after an RNR NAK one message, then twice as many each time that all of them have been accepted.
//! Promise: without loss the limit has no effect; with loss, less than all packets in flight are repeated each time.
//! Source: go-back-N sends W packets again for each loss, hence W about sqrt(1.5 / p), as additive increase and
//! multiplicative decrease give it (Mathis et al. 1997). If a server reports no credits (IBTA 9.7.7.2), only its RNR
//! NAKs show how many receives it has; it drops everything that is sent after the refused message.

use penstock_transport::{Requester, RequesterCounters};

/// No fewer: the least that keeps acknowledgements coming (one is asked for every 16 packets) while a batch is on its
/// way.
const LEAST: u64 = 32;
/// The most that a requester has by itself.
const MOST: u64 = 4096;

/// After this number of consecutive messages the window no longer probes a server's receives.
const PROBED: u64 = 64;

/// Messages that may be sent before all of them are acknowledged.
struct Probe {
    messages: u64,
    /// Messages sent to their ends, and packets sent.
    ended: u64,
    packets: u64,
    acknowledged: u64,
}

impl Probe {
    fn new(messages: u64) -> Probe {
        Probe { messages, ended: 0, packets: 0, acknowledged: 0 }
    }

    /// The number of further acknowledged packets before the next probe; none if no more is needed.
    fn acknowledged(mut self, packets: u64) -> Option<Probe> {
        self.acknowledged += packets;
        if self.ended < self.messages || self.acknowledged < self.packets {
            return Some(self);
        }
        (self.messages < PROBED).then(|| Probe::new(self.messages * 2))
    }
}

pub struct Window {
    packets: u64,
    /// Acknowledged since the window has grown.
    acknowledged: u64,
    /// Packets outstanding before the call that is looked at.
    outstanding: u64,
    losses: u64,
    rnr_naks: u64,
    probe: Option<Probe>,
}

impl Window {
    pub fn new() -> Window {
        Window { packets: MOST, acknowledged: 0, outstanding: 0, losses: 0, rnr_naks: 0, probe: None }
    }

    /// Whether a packet may be sent.
    pub fn may_send(&self) -> bool {
        self.probe.as_ref().is_none_or(|probe| probe.ended < probe.messages)
    }

    /// A packet was sent, the last one of its message or not.
    pub fn sent(&mut self, is_end: bool) {
        if let Some(probe) = &mut self.probe {
            probe.ended += u64::from(is_end);
            probe.packets += 1;
        }
    }

    /// The data in flight, before an acknowledgement or a timeout is passed to the requester.
    pub fn before(&mut self, requester: &Requester) {
        self.outstanding = requester.outstanding_packets();
    }

    /// And after it.
    pub fn after(&mut self, requester: &mut Requester) {
        let RequesterCounters { packet_seq_err, local_ack_timeout_err, rnr_nak, .. } = *requester.counters();
        // Packets sent after a message without a receive are lost, too.
        let losses = packet_seq_err + local_ack_timeout_err + rnr_nak;
        let acknowledged = self.outstanding.saturating_sub(requester.outstanding_packets());
        if rnr_nak > self.rnr_naks {
            (self.rnr_naks, self.probe) = (rnr_nak, Some(Probe::new(1)));
        } else if losses > self.losses {
            // What was sent is sent again.
            self.probe = self.probe.take().map(|probe| Probe::new(probe.messages));
        } else {
            self.probe = self.probe.take().and_then(|probe| probe.acknowledged(acknowledged));
        }
        if losses > self.losses {
            self.losses = losses;
            self.packets = (self.outstanding.min(self.packets) / 2).max(LEAST);
            self.acknowledged = 0;
        } else if self.packets < MOST {
            self.acknowledged += acknowledged;
            if self.acknowledged >= self.packets {
                self.acknowledged -= self.packets;
                self.packets += 1;
            }
        } else {
            return;
        }
        requester.set_window(self.packets as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_transport::{
        Endpoint, Memory, Mtu, RecvWr, RequesterConfig, Responder, ResponderConfig, SendStatus, SendWr, Verb,
        VirtualPayload,
    };
    use penstock_units::Time;
    use penstock_wire::{Ipv4Addr, MacAddr, Payload, Psn, Qpn, RnrTimer, RocePacket};
    use std::collections::VecDeque;

    const BOARD: Endpoint =
        Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 2), qpn: Qpn::new(0x11) };
    const SERVER: Endpoint =
        Endpoint { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::new(0x22) };
    const DELAY_US: u64 = 40;
    const MESSAGES: u64 = 200;
    const BYTES: u32 = 2000;

    struct Nowhere;

    impl Memory for Nowhere {
        fn write(&mut self, _va: u64, _data: &Payload) {}
    }

    /// SENDs of two packets, one packet a microsecond, to a server that gives no credits and posts `receives` at a
    /// time, every `every_us`. One packet in about `loses` is lost; 0: none. Packets that came to the server, and how
    /// long it took, us.
    fn run(receives: u64, every_us: u64, loses: u64) -> (u64, u64) {
        let mut requester = Requester::new(RequesterConfig::new(BOARD, SERVER, Psn::new(7), Mtu::B1024));
        let mut config = ResponderConfig::new(SERVER, BOARD, Psn::new(7), Mtu::B1024);
        config.rnr_timer = RnrTimer::at_least(100);
        let mut responder = Responder::new(config);
        let mut window = Window::new();
        for wr_id in 0..MESSAGES {
            let message =
                SendWr { wr_id, verb: Verb::Send, va: 0, len: BYTES, remote_va: 0, rkey: 0, solicited: false };
            requester.post_send(message).unwrap();
        }
        let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
        let (mut posted, mut done, mut came, mut sent) = (0, 0, 0, 0_u64);
        for now in 0..10_000_000_u64 {
            let due = |wire: &mut VecDeque<(u64, RocePacket)>| {
                wire.front().is_some_and(|first| first.0 <= now).then(|| wire.pop_front()).flatten()
            };
            if now.is_multiple_of(every_us) {
                for _ in 0..receives.min(MESSAGES - posted) {
                    responder.post_receive(RecvWr { wr_id: posted, va: 0, len: BYTES });
                    posted += 1;
                }
            }
            while let Some((_, packet)) = due(&mut there) {
                came += 1;
                responder.handle_packet(Time::from_us(now), &packet, &mut Nowhere);
                while let Some(reply) = responder.poll_transmit(&mut Nowhere) {
                    back.push_back((now + DELAY_US, reply));
                }
            }
            while let Some((_, reply)) = due(&mut back) {
                window.before(&requester);
                requester.handle_packet(Time::from_us(now), &reply);
                window.after(&mut requester);
            }
            window.before(&requester);
            requester.handle_timeout(Time::from_us(now));
            window.after(&mut requester);
            while let Some(completion) = requester.poll_completion() {
                assert_eq!((completion.status, completion.wr_id), (SendStatus::Success, done));
                done += 1;
            }
            if done == MESSAGES {
                return (came, now);
            }
            let packet =
                window.may_send().then(|| requester.poll_transmit(Time::from_us(now), &mut VirtualPayload)).flatten();
            if let Some(packet) = packet {
                window.sent(packet.bth.opcode.position().is_end());
                sent += 1;
                // Multiplicative hashing (Knuth 6.4): losses that keep no step with what is sent again.
                let draw = sent.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                if loses == 0 || draw % loses != 0 {
                    there.push_back((now + DELAY_US, packet));
                }
            }
        }
        panic!("{done} of {MESSAGES} messages after 10 s");
    }

    #[test]
    fn a_server_without_receives_is_probed_by_one_message_at_a_time() {
        let needed = 2 * MESSAGES;
        let (packets, _) = run(1, 250, 0);
        assert!(packets < 4 * needed, "{packets} packets for {needed}");
        // It has room again for many at once: they go as fast as without a refusal, but for the first few round trips.
        let (packets, took_us) = run(100, 5_000, 0);
        assert!(packets < needed + 200 && took_us < 7_000, "{packets} packets for {needed}, {took_us} us");
        assert_eq!(run(MESSAGES, 1_000_000, 0), (needed, needed - 1 + 2 * DELAY_US), "nothing is refused");
    }

    #[test]
    fn what_is_lost_while_a_server_is_probed_is_sent_again() {
        for loses in 10..40 {
            run(1, 250, loses);
        }
    }
}
