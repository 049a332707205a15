// SPDX-License-Identifier: Apache-2.0
//! BTH opcodes of the reliable connection service and of the congestion notification packet.
//! An opcode determines the extension headers that follow; this table is the only place that lists them.
//! Source: IBTA vol. 1, clause 9.2.1 table 38; annex A17.9 (CNP).

/// The operation or reply of a packet, without its position in the message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// SEND, into the receive buffer next in line.
    Send,
    /// RDMA WRITE, to the address in the RETH.
    Write,
    /// RDMA READ request.
    ReadRequest,
    /// RDMA READ response.
    ReadResponse,
    /// ACK, NAK or RNR NAK.
    Acknowledge,
    /// Congestion notification packet.
    Cnp,
    /// An opcode Penstock does not speak.
    Unknown,
}

/// Place of a packet in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Position {
    /// First of several packets.
    First,
    /// A packet between first and last.
    Middle,
    /// Last of several packets.
    Last,
    /// The whole message.
    Only,
}

impl Position {
    /// Whether the packet opens a message.
    #[inline]
    pub const fn is_start(self) -> bool {
        matches!(self, Position::First | Position::Only)
    }

    /// Whether the packet closes a message.
    #[inline]
    pub const fn is_end(self) -> bool {
        matches!(self, Position::Last | Position::Only)
    }
}

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $op:ident, $pos:ident, $imm:literal;)*) => {
        /// BTH opcode (IBTA table 38).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Opcode {
            $($(#[$doc])* $name,)*
            /// Any other code. Build it with `Opcode::from(u8)`, which never hides a known code here.
            Unknown(u8),
        }

        impl From<u8> for Opcode {
            fn from(code: u8) -> Self {
                match code { $($code => Opcode::$name,)* other => Opcode::Unknown(other) }
            }
        }

        impl From<Opcode> for u8 {
            fn from(opcode: Opcode) -> u8 {
                match opcode { $(Opcode::$name => $code,)* Opcode::Unknown(code) => code }
            }
        }

        impl Opcode {
            /// Every opcode that Penstock speaks.
            pub const DEFINED: &'static [Opcode] = &[$(Opcode::$name),*];

            /// The operation or reply of the packet.
            #[inline]
    pub const fn operation(self) -> Operation {
                match self { $(Opcode::$name => Operation::$op,)* Opcode::Unknown(_) => Operation::Unknown }
            }

            /// Place of the packet in its message.
            #[inline]
    pub const fn position(self) -> Position {
                match self { $(Opcode::$name => Position::$pos,)* Opcode::Unknown(_) => Position::Only }
            }

            /// Whether four bytes of immediate data follow.
            #[inline]
    pub const fn has_imm(self) -> bool {
                match self { $(Opcode::$name => $imm,)* Opcode::Unknown(_) => false }
            }
        }
    };
}

opcodes! {
    /// SEND First.
    SendFirst = 0x00, Send, First, false;
    /// SEND Middle.
    SendMiddle = 0x01, Send, Middle, false;
    /// SEND Last.
    SendLast = 0x02, Send, Last, false;
    /// SEND Last with immediate.
    SendLastImm = 0x03, Send, Last, true;
    /// SEND Only.
    SendOnly = 0x04, Send, Only, false;
    /// SEND Only with immediate.
    SendOnlyImm = 0x05, Send, Only, true;
    /// RDMA WRITE First.
    WriteFirst = 0x06, Write, First, false;
    /// RDMA WRITE Middle.
    WriteMiddle = 0x07, Write, Middle, false;
    /// RDMA WRITE Last.
    WriteLast = 0x08, Write, Last, false;
    /// RDMA WRITE Last with immediate.
    WriteLastImm = 0x09, Write, Last, true;
    /// RDMA WRITE Only.
    WriteOnly = 0x0A, Write, Only, false;
    /// RDMA WRITE Only with immediate.
    WriteOnlyImm = 0x0B, Write, Only, true;
    /// RDMA READ Request.
    ReadRequest = 0x0C, ReadRequest, Only, false;
    /// RDMA READ response First.
    ReadResponseFirst = 0x0D, ReadResponse, First, false;
    /// RDMA READ response Middle.
    ReadResponseMiddle = 0x0E, ReadResponse, Middle, false;
    /// RDMA READ response Last.
    ReadResponseLast = 0x0F, ReadResponse, Last, false;
    /// RDMA READ response Only.
    ReadResponseOnly = 0x10, ReadResponse, Only, false;
    /// Acknowledge: ACK, NAK and RNR NAK.
    Acknowledge = 0x11, Acknowledge, Only, false;
    /// Congestion notification packet.
    Cnp = 0x81, Cnp, Only, false;
}

impl Opcode {
    /// Whether a RETH follows the BTH.
    #[inline]
    pub const fn has_reth(self) -> bool {
        match self.operation() {
            Operation::Write => self.position().is_start(),
            Operation::ReadRequest => true,
            _ => false,
        }
    }

    /// Whether an AETH follows the BTH.
    #[inline]
    pub const fn has_aeth(self) -> bool {
        match self.operation() {
            Operation::Acknowledge => true,
            Operation::ReadResponse => !matches!(self.position(), Position::Middle),
            _ => false,
        }
    }

    /// Whether the packet is a request of the reliable connection service, known to us or not:
    /// the three high bits name the service, 000 being RC, and 0x0D .. 0x12 are responses.
    #[inline]
    pub fn is_rc_request(self) -> bool {
        let code = u8::from(self);
        code >> 5 == 0 && !(0x0D..=0x12).contains(&code)
    }

    /// Bytes between the BTH and the payload. A CNP carries 16 reserved bytes (annex A17.9).
    #[inline]
    pub const fn extension_len(self) -> usize {
        let mut len = 0;
        if self.has_reth() {
            len += crate::reth::LEN;
        }
        if self.has_imm() {
            len += 4;
        }
        if self.has_aeth() {
            len += crate::aeth::LEN;
        }
        if matches!(self, Opcode::Cnp) {
            len += CNP_RESERVED_LEN;
        }
        len
    }
}

/// Reserved bytes after the BTH of a CNP (annex A17.9).
pub(crate) const CNP_RESERVED_LEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_one_to_one() {
        for code in 0..=255u8 {
            assert_eq!(u8::from(Opcode::from(code)), code);
        }
        assert_eq!(Opcode::DEFINED.len(), 19);
        assert!(Opcode::DEFINED.iter().all(|o| o.operation() != Operation::Unknown));
    }

    #[test]
    fn extension_headers_follow_table_38() {
        assert_eq!(Opcode::WriteOnlyImm.extension_len(), 20);
        assert_eq!(Opcode::WriteLastImm.extension_len(), 4);
        assert_eq!(Opcode::WriteMiddle.extension_len(), 0);
        assert_eq!(Opcode::Acknowledge.extension_len(), 4);
        assert_eq!(Opcode::ReadResponseMiddle.extension_len(), 0);
        assert_eq!(Opcode::Cnp.extension_len(), 16);
        assert!(Opcode::Unknown(0x13).is_rc_request() && !Opcode::Acknowledge.is_rc_request());
        assert!(!Opcode::Unknown(0x64).is_rc_request());
    }
}
