// SPDX-License-Identifier: Apache-2.0
//! The readout: receives the fragments that boards write, builds events, checks them and stores them.
//! Promise: stored events are byte for byte what was sent, in order of event number, and list what is missing.
//! Source: ARCHITECTURE.md, "The way of a fragment"; the tables are at [`Table`], the layout on disk in
//! docs/storage.md.
//!
//! | part | for |
//! |---|---|
//! | [`Dataset`], [`EventSource`], [`Triggers`] | the boards' data and times: recorded camera events at random times |
//! | [`Ring`] | a board's slots; a posted receive is a credit |
//! | [`EventBuilder`] | fragments to events: order, time-out, duplicates, strays |
//! | [`Servers`], [`Share`] | the assignment of events to servers as the farm changes |
//! | [`Reference`], [`CheckReport`] | received against sent, byte by byte |
//! | [`EventSink`], [`EventWriter`], [`RunWriter`] | storage as Parquet, one file or a folder of them |
//! | [`Serving`] | events to consumers as an Arrow IPC stream, while they are stored |
//! | [`verify_file`], [`PatternCheck`], [`PatternReport`] | stored files verified; test patterns in stored or arriving payloads |
//! | [`recover_file`], [`recover_folder`] | files that a killed process left become valid |
//! | [`Receiver`] | all of these joined; a back end writes memory and reports completions |
//! | [`session`] | back end, connection manager and receiver in one loop |
//! | [`backend`] | the source of messages: verbs, a packet socket, or packets in process |
//!
//! Only [`backend`] and [`session`] read a clock and open sockets; all other parts get the time as a
//! [`Time`](penstock_units::Time). Only [`Dataset::load`] and storage access files, and only `sys` contains `unsafe`.
#![deny(unsafe_code)]

pub mod backend;
mod builder;
mod check;
mod device_memory;
mod ending;
mod event_file;
mod medium;
mod monitor;
mod pattern;
mod poll;
mod receiver;
mod recover;
mod ring;
mod rotate;
mod schema;
mod segment;
mod serve;
mod servers;
pub mod session;
mod sink;
mod source;
#[allow(unsafe_code)]
mod sys;
mod verify;
mod write_behind;
mod writer;
mod writer_options;

pub use builder::{
    BuilderConfig, BuilderCounters, BuiltEvent, EventBuilder, FragmentId, Notice, Pushed, Share, ShareError,
    SourceCounters, Standing, Stray,
};
pub use check::{CheckReport, Difference, Reference};
pub use event_file::PARTIAL;
pub use medium::{create_file, CreateMedium, Medium};
pub use monitor::{PatternMonitor, PatternPlace, PatternReport};
pub use pattern::{Found, Pattern, PatternCheck};
pub use penstock_recorded::{has_countable_shape, Dataset, DatasetError, Triggers, COUNTER_BYTES, MODULE_BYTES};
pub use receiver::{PoolConfig, Receiver, ReceiverConfig, ReceiverCounters, ReceiverError, ReceiverReport};
pub use recover::{recover_file, recover_folder, Recovered};
pub use ring::{Region, Ring, RingConfig, RingConfigError, RingCounters, RingError};
pub use rotate::{RunOptions, RunWriter};
pub use schema::Table;
pub use serve::{stream_schema, ServeAt, ServeOptions, Serving, SlowConsumer};
pub use servers::{Servers, ServersError, MAX_ROWS};
pub use sink::{Discard, Event, EventSink, Fragment, Kept, StoreError};
pub use source::{EventSource, SourceError};
pub use sys::{node_of_device, stay_on_node, Mapping, MemoryError, NumaError, Pages, RingMemory};
pub use verify::{verify_file, FileReport, PartCounts, Problem};
pub use writer::EventWriter;
pub use writer_options::WriterOptions;

/// Packet sockets, for programs that send to a [`backend`].
pub mod link {
    pub use crate::sys::{drop_all, has_address, offload, Frames, Gather, Interface, PacketSocket};
}
