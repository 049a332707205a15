// SPDX-License-Identifier: Apache-2.0
//! The live page of a command: its contents, its server, and its controls.

mod page;
mod parameters;
mod plan;

pub use page::{LiveOptions, Page};
pub use parameters::PARAMETERS;
pub use plan::Plan;
