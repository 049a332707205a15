// SPDX-License-Identifier: Apache-2.0
//! The live page of a command: what it shows, how it is served, what can be changed from it.

mod page;
mod parameters;
mod plan;

pub use page::{LiveOptions, Page};
pub use parameters::PARAMETERS;
pub use plan::Plan;
