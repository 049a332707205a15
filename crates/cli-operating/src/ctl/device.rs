// SPDX-License-Identifier: Apache-2.0
//! The kinds of devices that `penstock ctl` operates: boards and QCN switches, each by its own register map.

use penstock_ipbus::map::{find, Build, Map, NameError, Place, Scale, BOARD, SWITCH};
use penstock_ipbus::{Identity, Outcome, Request, Switch, Unfit};

/// What a device of a kind says of itself, and what follows for its registers.
pub trait Device: Copy {
    /// The registers of its kind.
    fn map() -> &'static Map;
    /// Asks a device what it is.
    fn request() -> Request;
    /// The device that answered; another kind of device is unfit.
    fn of(outcome: Outcome) -> Result<Self, Unfit>;
    /// The largest build that the map has room for.
    fn largest() -> Self;
    /// The register places of a name.
    fn find(&self, name: &str) -> Result<Vec<Place>, NameError>;
    /// Its clock.
    fn scale(&self) -> Scale;
}

impl Device for Identity {
    fn map() -> &'static Map {
        &BOARD
    }

    fn request() -> Request {
        Identity::request()
    }

    fn of(outcome: Outcome) -> Result<Self, Unfit> {
        Identity::of(outcome)
    }

    fn largest() -> Self {
        let build = Build { queue_pairs: 256, clock_khz: 1 };
        Identity { version: 0, data_width: 64, ring_bytes: 0, build }
    }

    fn find(&self, name: &str) -> Result<Vec<Place>, NameError> {
        find(name, self.build)
    }

    fn scale(&self) -> Scale {
        Identity::scale(self)
    }
}

impl Device for Switch {
    fn map() -> &'static Map {
        &SWITCH
    }

    fn request() -> Request {
        Switch::request()
    }

    fn of(outcome: Outcome) -> Result<Self, Unfit> {
        Switch::of(outcome)
    }

    fn largest() -> Self {
        Switch::LARGEST
    }

    fn find(&self, name: &str) -> Result<Vec<Place>, NameError> {
        Switch::find(self, name)
    }

    /// No register of the map counts cycles.
    fn scale(&self) -> Scale {
        Scale { clock_khz: 1 }
    }
}
