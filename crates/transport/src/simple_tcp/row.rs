// SPDX-License-Identifier: Apache-2.0
//! The state of a stream: a row of a RAM that consists of integers of fixed width only.
//! The widths in the comments are those of the gateware's row; docs/tcp.md lists them.

/// The three states that are left of eleven (CMS-TCP figure 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum State {
    /// No connection.
    #[default]
    Closed = 0,
    /// A SYN was requested; its acknowledgement is pending.
    SynSent = 1,
    /// Data flows.
    Established = 2,
}

/// One stream. Sequence numbers and ticks wrap at 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Row {
    /// 2 bits.
    pub state: State,
    /// SND.UNA: first sequence number without an acknowledgement. 32 bits.
    pub una: u32,
    /// Next sequence number to send; below `max` while data is sent again. 32 bits.
    pub nxt: u32,
    /// SND.NXT of RFC 9293: after the last sequence number ever sent. 32 bits.
    pub max: u32,
    /// The sequence number after the last byte that the user has written. 32 bits.
    pub written: u32,
    /// SND.WND, scaled. 30 bits.
    pub window: u32,
    /// MAX.SND.WND (RFC 5961 section 5.2). 30 bits.
    pub max_window: u32,
    /// The peer's window scale, 0 to 14. 4 bits.
    pub shift: u8,
    /// Payload bytes of a full segment. 14 bits.
    pub mss: u16,
    /// A router's limit on segments under way, until data is acknowledged; 0: none. 14 bits.
    pub too_long: u16,
    /// `mss` is a router's limit. 1 bit.
    pub shortened: bool,
    /// `mss` before that. 14 bits.
    pub whole_mss: u16,
    /// When the last limit was applied, in units of 2^24 ticks. 8 bits.
    pub path_at: u8,
    /// RCV.NXT. 32 bits.
    pub rcv_nxt: u32,
    /// Duplicate acknowledgements in a row, up to 3. 2 bits.
    pub duplicates: u8,
    /// A loss is repaired until `recover` is acknowledged. 1 bit.
    pub repairing: bool,
    /// `max` when the loss was noticed. 32 bits.
    pub recover: u32,
    /// A segment from `una` goes next: after a loss, or a probe of the window. 1 bit.
    pub resend: bool,
    /// The window is closed and is probed. 1 bit.
    pub probing: bool,
    /// Timeouts in a row without an answer. 8 bits.
    pub tries: u8,
    /// Doublings of the timeout, up to 15. 4 bits.
    pub backoff: u8,
    /// The timer runs. 1 bit.
    pub timer_on: bool,
    /// Tick at which it expires. 32 bits.
    pub deadline: u32,
    /// A segment's round trip is measured. 1 bit.
    pub timing: bool,
    /// The acknowledgement that ends the measurement. 32 bits.
    pub timed_seq: u32,
    /// Tick of its begin. 32 bits.
    pub timed_at: u32,
    /// A round trip has been measured. 1 bit.
    pub measured: bool,
    /// Smoothed round trip in eighths of a tick. 30 bits.
    pub srtt: u32,
    /// Its variation in quarters of a tick. 29 bits.
    pub rttvar: u32,
    /// A SYN is to be sent. 1 bit.
    pub syn_due: bool,
    /// An acknowledgement without data is to be sent. 1 bit.
    pub ack_due: bool,
    /// An RST is to be sent. 1 bit.
    pub reset_due: bool,
    /// That RST acknowledges `rcv_nxt`. 1 bit.
    pub reset_acks: bool,
    /// Its sequence number. 32 bits.
    pub reset_seq: u32,
    /// No challenge ACK before `challenge_at` (RFC 5961 section 7). 1 bit.
    pub challenge_held: bool,
    /// Tick. 32 bits.
    pub challenge_at: u32,
}

impl Row {
    /// A stream that is established without a handshake: `iss` is the sequence number of the first byte. For the
    /// laboratory, whose studies start after the handshake.
    pub fn established(iss: u32, mss: u16, window: u32, shift: u8) -> Row {
        Row {
            state: State::Established,
            una: iss,
            nxt: iss,
            max: iss,
            written: iss,
            window,
            max_window: window,
            shift,
            mss,
            recover: iss,
            ..Row::default()
        }
    }

    /// Bytes under way or lost: sent and not acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.max.wrapping_sub(self.una)
    }

    /// Bytes that the stream must keep: written and not acknowledged.
    pub fn held(&self) -> u32 {
        self.written.wrapping_sub(self.una)
    }
}
