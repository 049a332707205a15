// SPDX-License-Identifier: Apache-2.0
//! The live page of a run and the file that shows a stored one: the recording, the web server, `report.html`.
//! Promise: the page shows the recorded values; only pages that this server served can use the controls.
//! The protocol is in docs/live.md, the page itself in web/. Metrics of a receiver are served here too.
//!
//! ```text
//! run -> Recorder -> Recording -> /feed (server-sent events) -> page
//!  ^                     |                                       |
//!  |                     +-> report.html (whole, after the run)  |
//!  +------ Steering <------------ POST /control <----------------+
//! ```

mod assets;
mod clients;
mod control;
mod feed;
mod guard;
mod manifest;
mod metrics;
mod recording;
mod report;
mod server;
mod steering;

pub use control::{Applied, Control, ControlError, Settings};
pub use manifest::{Choice, Manifest, Parameter, Queue, Scope, Sender, Series, Total};
pub use metrics::serve_metrics;
pub use recording::{Phase, Progress, Recorder, Recording, Shared};
pub use report::write_report;
pub use server::{address, BindError, Listener, Server};
pub use steering::{Request, Steering};
