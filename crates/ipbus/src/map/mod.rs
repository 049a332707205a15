// SPDX-License-Identifier: Apache-2.0
//! The register map by name, as `regs/generate.py` makes it from `regs/penstock.rdl`.

mod name;
mod scale;
mod value;

pub use name::{find, name_of, names_like, Build, NameError, Place, Target};
pub use scale::Scale;
pub use value::ValueError;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Plain,
    /// Q8.24 bytes per clock cycle.
    Rate,
    Cycles,
    Bytes,
    /// 1.024 us.
    Ticks,
    Milliseconds,
    /// 32 bits in two's complement.
    SignedNanoseconds,
    Kilohertz,
    /// 65536 = 1.
    Fraction,
    Ipv4,
    Mac,
    Hex,
}

/// Bits of a register.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Field {
    pub name: &'static str,
    pub desc: &'static str,
    pub low: u32,
    pub width: u32,
    pub writable: bool,
    /// A written 1 lasts one cycle and reads 0.
    pub pulse: bool,
    /// The gateware sets it.
    pub driven: bool,
    /// None: it follows from the build.
    pub reset: Option<u32>,
    pub unit: Unit,
    pub values: &'static [(u32, &'static str)],
}

impl Field {
    /// Its bits in place in the register.
    pub const fn mask(&self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.low
    }
}

/// One word.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Register {
    pub name: &'static str,
    pub desc: &'static str,
    /// Bytes from the start of its group.
    pub offset: u32,
    pub writable: bool,
    /// A change of it while data are taken breaks the run, or cuts the board off.
    pub critical: bool,
    /// Not writable while `access.control.locked`.
    pub lockable: bool,
    pub fields: &'static [Field],
}

impl Register {
    /// The word after reset; None: it follows from the build.
    pub fn reset(&self) -> Option<u32> {
        self.fields.iter().try_fold(0, |word, field| Some(word | field.reset? << field.low))
    }

    /// Bits that software may write and that are read back.
    pub fn kept(&self) -> u32 {
        self.fields.iter().filter(|field| field.writable && !field.pulse).fold(0, |mask, field| mask | field.mask())
    }
}

/// Registers at one base; `count` copies of them `stride` bytes apart.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Group {
    /// Empty: the top level.
    pub name: &'static str,
    pub desc: &'static str,
    pub base: u32,
    pub count: u32,
    pub stride: u32,
    /// Copy i belongs to queue pair i.
    pub per_queue_pair: bool,
    pub registers: &'static [Register],
}

impl Group {
    /// Copies that a board with so many queue pairs has.
    pub fn copies(&self, queue_pairs: u32) -> u32 {
        if self.per_queue_pair {
            self.count.min(queue_pairs)
        } else {
            self.count
        }
    }

    /// Byte address of a register of copy `index`.
    pub const fn address(&self, register: &Register, index: u32) -> u32 {
        self.base + index * self.stride + register.offset
    }
}

include!(concat!(env!("OUT_DIR"), "/penstock_map.rs"));
