// SPDX-License-Identifier: Apache-2.0
//! The format that a board puts around every fragment of an event inside the RDMA message. A reader can check the
//! integrity of a fragment from its bytes alone. Software, which knows the payload, writes version 1 (`header`);
//! gateware writes version 2 (`message`), in which length and CRC-32C follow the payload. Source: ours.

mod error;
mod header;
mod id;
mod message;
mod part;
mod parts;
mod suppression;

pub use error::FragmentError;
pub use header::{FragmentHeader, HEADER_LEN};
pub use id::FragmentId;
pub use message::{message_2_len, FragmentMessage, HEADER_2_LEN, TRAILER_LEN, VERSION_2};
pub use part::{Part, PartFlags, MAX_PARTS, PART_ALIGN, PART_LEN};
pub use parts::Parts;
pub use suppression::{expand, suppress, Channel, ChannelTable, SuppressionError, SUPPRESSION_BLOCK, SUPPRESSION_WORD};
