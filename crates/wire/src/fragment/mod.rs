// SPDX-License-Identifier: Apache-2.0
//! What a board puts around every fragment of an event, inside the RDMA message: a fragment proves its own integrity
//! wherever it is read from. Software that knows the payload writes version 1 (`header`); gateware writes version 2
//! (`message`), whose length and CRC-32C follow the payload. Source: ours.

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
