// SPDX-License-Identifier: Apache-2.0
//! The simplified TCP's sender with arbitrary segments, frames and timing.
//! Promise: no panic; messages end once, in order, with success only when their last byte was sent; nothing is sent
//! outside the window except the one byte of a probe; pending data has a timer; every segment's bytes are those
//! written.

use crate::input::Input;
use bytes::Bytes;
use penstock_transport::simple_tcp::{Arrival, Parameters, Row, State, Stream};
use penstock_units::Time;
use penstock_wire::{SynOptions, TcpFlags, TcpPacket};

const RING: usize = 1 << 12;

pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut bench = Bench::new(&mut input);
    while !input.is_empty() {
        match input.u8() % 8 {
            0 => bench.write(&mut input),
            1 => bench.control(&mut input),
            2 => {
                bench.now += Time::from_us(u64::from(input.u16()) << (input.u8() % 16));
                bench.stream.handle_timeout(bench.now);
            }
            3 => {
                let frame = input.u8();
                if let Ok(packet) = TcpPacket::parse(&Bytes::copy_from_slice(input.bytes(frame.into()))) {
                    bench.stream.handle_segment(bench.now, &Arrival::of(&packet));
                }
            }
            4 | 5 => bench.transmit(1 + input.u8() % 8),
            _ => {
                let segment = bench.segment(&mut input);
                bench.stream.handle_segment(bench.now, &segment);
            }
        }
        bench.check();
    }
}

struct Bench {
    stream: Stream,
    now: Time,
    /// Offset after the last byte of each message, from the first of all.
    ends: Vec<u64>,
    failed: usize,
    completed: usize,
    /// Of the present connection: its first sequence number of data, and that byte's offset.
    first: u32,
    base: u64,
    sent: u64,
}

/// The byte at an offset.
fn byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8).wrapping_mul(31)) as u8
}

impl Bench {
    fn new(input: &mut Input) -> Self {
        let switches = input.u8();
        let rto_min = 1 + u32::from(input.u16());
        let parameters = Parameters {
            mss: 64 + u16::from(input.u8()) * 4,
            receive_window: 1 + u16::from(input.u8()) * 200,
            nagle: switches & 1 == 0,
            back_off: switches & 2 == 0,
            adaptive: switches & 4 == 0,
            rto_initial: rto_min * 2,
            rto_min,
            rto_max: rto_min * 16,
            give_up: switches >> 4,
            challenge_interval: u32::from(input.u8()) * 100,
        };
        let stream = Stream::new(parameters, RING).expect("parameters in range");
        Bench { stream, now: Time::ZERO, ends: Vec::new(), failed: 0, completed: 0, first: 0, base: 0, sent: 0 }
    }

    fn written(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn write(&mut self, input: &mut Input) {
        let len = u64::from(input.u16()) % 2000;
        let from = self.written();
        let bytes: Vec<u8> = (from..from + len).map(byte).collect();
        if self.stream.write(self.now, self.ends.len() as u64, &[&bytes]).is_ok() {
            self.ends.push(from + len);
        }
    }

    fn control(&mut self, input: &mut Input) {
        match input.u8() % 4 {
            0 => self.stream.abort(self.now),
            1 => {
                let seq = self.stream.row().una.wrapping_add(i32::from(input.near()) as u32);
                self.stream.handle_path_mtu(self.now, seq, input.u16());
            }
            _ if self.stream.state() == State::Closed => {
                let iss = input.u32();
                self.stream.open(self.now, iss);
                (self.first, self.base, self.sent) = (iss.wrapping_add(1), self.written(), self.written());
            }
            _ => {}
        }
    }

    /// Near what the stream expects, or anywhere.
    fn segment(&self, input: &mut Input) -> Arrival {
        let (row, kind, flags) = (*self.stream.row(), input.u8(), input.u8());
        let seq = match kind & 1 {
            0 => row.rcv_nxt.wrapping_add(i32::from(input.near()) as u32),
            _ => input.u32(),
        };
        let base = if kind & 2 == 0 { row.una } else { row.max };
        let ack = match kind & 4 {
            0 => base.wrapping_add((i32::from(input.near()) * (i32::from(kind >> 4) * 40 + 1)) as u32),
            _ => input.u32(),
        };
        let options = match kind & 8 {
            0 => SynOptions::default(),
            _ => SynOptions { mss: Some(input.u16()), window_scale: Some(input.u8() % 17), malformed: flags & 64 != 0 },
        };
        let flags = if flags & 0x60 == 0 { TcpFlags(flags) } else { TcpFlags(flags & 0x3A).with(TcpFlags::ACK) };
        Arrival { seq, ack, flags, window: input.u16(), len: u16::from(input.u8() / 16), options }
    }

    fn transmit(&mut self, most: u8) {
        for _ in 0..most {
            let before = *self.stream.row();
            let Some(segment) = self.stream.poll_transmit(self.now) else { break };
            if segment.len == 0 {
                continue;
            }
            let into = segment.seq.wrapping_sub(before.una) + u32::from(segment.len);
            assert!(into <= before.window || into == 1, "{segment:?} outside the window of {before:?}");
            let from = self.base + u64::from(segment.seq.wrapping_sub(self.first));
            let (one, two) = self.stream.payload(&segment);
            for (n, got) in one.iter().chain(two).enumerate() {
                assert_eq!(*got, byte(from + n as u64), "byte {n} of {segment:?}");
            }
            assert!(from <= self.sent, "bytes are sent in order");
            self.sent = self.sent.max(from + u64::from(segment.len));
        }
    }

    fn check(&mut self) {
        while let Some(end) = self.stream.poll_message() {
            assert_eq!(end.id, self.completed as u64, "each message once, in order");
            match end.failed {
                None => {
                    assert!(self.ends[self.completed] <= self.sent.max(self.base), "acknowledged before it was sent")
                }
                Some(_) => self.failed += 1,
            }
            self.completed += 1;
        }
        assert_eq!(self.ends.len() - self.completed, self.stream.unfinished());
        let row: Row = *self.stream.row();
        if row.state != State::Closed {
            assert!(row.timer_on || row.una == row.written, "{row:?} waits without a timer");
        }
        assert!(row.held() <= RING as u32 + 1 && row.outstanding() <= row.held(), "{row:?}");
        assert!(row.nxt.wrapping_sub(row.una) <= row.outstanding(), "{row:?}");
        assert!(row.window < 1 << 30 && row.shift <= 14 && row.srtt < 1 << 30 && row.rttvar < 1 << 29, "{row:?}");
    }
}
