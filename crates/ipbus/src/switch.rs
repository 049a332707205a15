// SPDX-License-Identifier: Apache-2.0
//! What a QCN switch says of itself, and the check that this program may use it. Its map is `regs/qcn_switch.rdl`.
//! Promise: what is no switch of this map is always rejected.

use crate::identity::{Unfit, ID};
use crate::map::{Copies, Group, NameError, Place, SWITCH};
use crate::regs::qcn_switch::{global, port};
use crate::request::{Access, Outcome, Request};

/// What a switch's gateware was built with (`rtl/switch/qcn_switch_registers.sv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Up to 4.
    pub ports: u32,
    /// Queues of a port: 1, 2, 4 or 8.
    pub queues: u32,
    /// Entries of the MAC table.
    pub entries: u32,
}

impl Switch {
    /// The most that the map has room for.
    pub const LARGEST: Switch = Switch { ports: port::COUNT, queues: 8, entries: 128 };

    /// Asks for it.
    pub fn request() -> Request {
        Access::Read { address: global::MAP_HASH, count: 2 }.into()
    }

    /// The device that answered.
    ///
    /// # Errors
    /// It does not answer, is a board or another device, or has another register map.
    pub fn of(outcome: Outcome) -> Result<Self, Unfit> {
        let words = outcome.map_err(Unfit::Silent)?;
        let (hash, build) = (words[0][0], words[0][1]);
        match hash {
            ID => return Err(Unfit::Board),
            hash if hash != SWITCH.hash => return Err(Unfit::NoSwitch(hash)),
            _ => {}
        }
        Ok(Switch {
            ports: global::BUILD_PORTS_BITS.of(build),
            queues: global::BUILD_QUEUES_BITS.of(build),
            entries: global::BUILD_ENTRIES_BITS.of(build),
        })
    }

    /// The word of `build`; what answers over IPbus has a management port.
    pub fn build(&self) -> u32 {
        global::BUILD_MANAGEMENT_BITS.mask
            | global::BUILD_PORTS_BITS.at(self.ports)
            | global::BUILD_QUEUES_BITS.at(self.queues)
            | global::BUILD_ENTRIES_BITS.at(self.entries)
    }

    /// Copies of a group that it has: its ports, their queues.
    pub fn copies(&self, group: &Group) -> u32 {
        match group.name {
            "port" => self.ports,
            "queue" => self.ports * self.queues,
            _ => group.count,
        }
    }

    /// The register places of a name on this switch.
    ///
    /// # Errors
    /// There is no such register, or no such copy.
    pub fn find(&self, name: &str) -> Result<Vec<Place>, NameError> {
        SWITCH.find(name, |group| {
            let count = self.copies(group);
            Copies { named: count, all: count }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Scale, BOARD};
    use crate::request::AccessError;

    const BUILT: Switch = Switch { ports: 4, queues: 2, entries: 16 };

    #[test]
    fn a_switch_reports_how_it_was_built_and_nothing_else_is_one() {
        let answers = |hash| Switch::of(Ok(vec![vec![hash, BUILT.build()]]));
        assert_eq!(answers(SWITCH.hash), Ok(BUILT));
        assert_eq!(answers(ID), Err(Unfit::Board));
        assert_eq!(answers(7), Err(Unfit::NoSwitch(7)));
        assert_eq!(Switch::of(Err(AccessError::Restarted)), Err(Unfit::Silent(AccessError::Restarted)));
    }

    #[test]
    fn names_are_those_of_its_own_map_and_its_build() {
        let addresses = |name: &str| BUILT.find(name).unwrap().iter().map(Place::address).collect::<Vec<_>>();
        assert_eq!(addresses("q_eq"), [global::Q_EQ]);
        assert_eq!(addresses("port[2].tx_cnm"), [port::BASE + 2 * port::STRIDE + port::TX_CNM]);
        assert_eq!(addresses("queue").len(), 8);
        assert_eq!(addresses("mac").len(), 1);
        let message = |name: &str| BUILT.find(name).unwrap_err().to_string();
        assert!(message("port[4].tx_cnm").contains("4 copies on this switch, 0 to 3"), "{}", message("port[4].tx_cnm"));
        assert!(message("local_ip").contains("`penstock ctl switch registers` lists all"), "{}", message("local_ip"));
        assert!(message("q_ep").contains("is q_eq meant?"), "{}", message("q_ep"));
        // A name that both maps have is each map's own.
        assert_eq!(SWITCH.name_of(global::PAUSE), "pause");
        assert_ne!(BOARD.name_of(global::PAUSE), "pause");
    }

    #[test]
    fn values_have_units_that_need_no_clock() {
        let scale = Scale { clock_khz: 1 };
        let place = BUILT.find("xoff").unwrap()[0];
        assert_eq!((place.parse("130kB", scale), place.show(130_000, scale)), (Ok(130_000), "130000B".to_owned()));
        let mac = BUILT.find("mac").unwrap()[0];
        assert_eq!(mac.show(0x0250_5400_0000, scale), "02:50:54:00:00:00");
        for place in SWITCH.groups.iter().flat_map(|group| BUILT.find(group.name).unwrap_or_default()) {
            assert_eq!(SWITCH.place_of(place.address()), Some(place));
        }
    }
}
