// SPDX-License-Identifier: Apache-2.0
//! Values of registers: parsing, printing, and their bits within the words.

use super::{Place, Scale, Target, Unit};

/// A value that a register cannot take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ValueError {
    #[error("{name} is read-only")]
    ReadOnly { name: String },
    #[error("{name}={text}: {why}")]
    Unread { name: String, text: String, why: String },
    #[error("{name}={text}: the register takes {least} to {most}")]
    Beyond { name: String, text: String, least: String, most: String },
}

impl Place {
    fn unit(&self) -> Unit {
        self.field().map_or(Unit::Hex, |field| field.unit)
    }

    /// Bits that it has.
    pub fn width(&self) -> u32 {
        match (self.target, self.field()) {
            (Target::Pair(high), _) => 32 + high.fields.first().map_or(32, |field| field.low + field.width),
            (_, Some(field)) => field.width,
            (Target::Register, None) | (Target::Field(_), None) => 32,
        }
    }

    /// Its number, of the words at its addresses.
    pub fn number(&self, words: &[u32]) -> u64 {
        let low = words.first().copied().unwrap_or(0);
        match (self.target, self.field()) {
            (Target::Pair(_), _) => u64::from(words.get(1).copied().unwrap_or(0)) << 32 | u64::from(low),
            (_, Some(field)) => u64::from((low & field.mask()) >> field.low),
            _ => u64::from(low),
        }
    }

    /// The number as people read it.
    pub fn show(&self, number: u64, scale: Scale) -> String {
        let named = self.field().and_then(|field| field.values.iter().find(|(value, _)| u64::from(*value) == number));
        match named {
            Some((_, name)) => (*name).to_owned(),
            None => scale.show(self.unit(), number),
        }
    }

    /// The value in the quantity's unit, for machines.
    pub fn quantity(&self, number: u64, scale: Scale) -> Option<f64> {
        scale.quantity(self.unit(), number)
    }

    /// The text of a quantity in its own unit.
    ///
    /// # Errors
    /// It is a whole number's place, and the quantity has a fraction.
    pub fn text(&self, quantity: f64) -> Result<String, ValueError> {
        let why = || "a number without a unit is whole".to_owned();
        let unread = || ValueError::Unread { name: self.name(), text: quantity.to_string(), why: why() };
        Scale::text(self.unit(), quantity).ok_or_else(unread)
    }

    /// Reads a value: a quantity, a name, or a number.
    ///
    /// # Errors
    /// The place is read-only, the text is no value of it, or the value is too large.
    pub fn parse(&self, text: &str, scale: Scale) -> Result<u64, ValueError> {
        if !self.writable() {
            return Err(ValueError::ReadOnly { name: self.name() });
        }
        let unread = |why: String| ValueError::Unread { name: self.name(), text: text.to_owned(), why };
        let names = self.field().map_or(&[][..], |field| field.values);
        let named = names.iter().find(|(_, name)| *name == text).map(|(value, _)| u64::from(*value));
        let value = match (named, scale.parse(self.unit(), text)) {
            (Some(value), _) => value,
            (None, Some(read)) => read.map_err(unread)?,
            (None, None) => number(text).ok_or_else(|| unread(self.allowed()))?,
        };
        let most = u64::MAX >> (64 - self.width());
        if value > most {
            let of = |value: u64| match number(text) {
                Some(_) => value.to_string(),
                None => scale.show(self.unit(), value),
            };
            return Err(ValueError::Beyond { name: self.name(), text: text.to_owned(), least: of(0), most: of(most) });
        }
        Ok(value)
    }

    fn allowed(&self) -> String {
        let names: Vec<&str> =
            self.field().map_or(&[][..], |field| field.values).iter().map(|(_, name)| *name).collect();
        match names.is_empty() {
            true => "allowed is a whole number, decimal or 0x...".to_owned(),
            false => format!("allowed are {} or a whole number", names.join(", ")),
        }
    }

    /// The words after its number was put in; those outside of it stay.
    pub fn put(&self, number: u64, words: &[u32]) -> Vec<u32> {
        let low = words.first().copied().unwrap_or(0);
        match (self.target, self.field()) {
            (Target::Pair(_), _) => vec![number as u32, (number >> 32) as u32],
            (_, Some(field)) => vec![low & !field.mask() | (number as u32) << field.low & field.mask()],
            _ => vec![number as u32],
        }
    }

    /// Bits of each of its words that its number determines.
    pub fn set(&self) -> Vec<u32> {
        match self.target {
            Target::Field(field) => vec![field.mask()],
            _ => vec![u32::MAX; self.addresses().count()],
        }
    }

    /// Bits of each of its words that are read back as they were written.
    pub fn kept(&self) -> Vec<u32> {
        match self.target {
            Target::Field(field) if field.pulse => vec![0],
            Target::Field(field) => vec![field.mask()],
            Target::Register => vec![self.register.kept()],
            Target::Pair(high) => vec![self.register.kept(), high.kept()],
        }
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{find, Build};
    use super::*;

    const SCALE: Scale = Scale { clock_khz: 156_250 };

    fn place(name: &str) -> Place {
        find(name, Build { queue_pairs: 4, clock_khz: 156_250 }).unwrap()[0]
    }

    #[test]
    fn fields_are_put_into_their_bits_and_found_there() {
        let class = place("flow_control.traffic_class");
        assert_eq!(class.put(5, &[0x33]), [0x53]);
        assert_eq!(class.number(&[0x53]), 5);
        let mac = place("local_mac");
        assert_eq!(mac.put(0x0200_0A00_0002, &[]), [0x0A00_0002, 0x0200]);
        assert_eq!(mac.show(mac.number(&[0x0A00_0002, 0x0200]), SCALE), "02:00:0a:00:00:02");
        assert_eq!(place("qp[0].state.state").show(3, SCALE), "rts");
        assert_eq!(place("qp[0].state.state").parse("sqd", SCALE), Ok(4));
        assert_eq!(place("cc[0].control.law").parse("dcqcn", SCALE), Ok(1));
    }

    #[test]
    fn values_that_a_register_cannot_take_are_refused_by_name() {
        let message = |name: &str, text: &str| place(name).parse(text, SCALE).unwrap_err().to_string();
        assert_eq!(message("id", "1"), "id is read-only");
        assert_eq!(
            message("flow_control.traffic_class", "8"),
            "flow_control.traffic_class=8: the register takes 0 to 7"
        );
        assert!(message("cc[0].rate_ai", "1Tbps").ends_with("the register takes 0bps to 319.9999999Gbps"));
        assert!(message("qp[1].state.state", "open").contains("allowed are reset, init, rtr, rts, sqd, err"));
        assert!(message("scratch", "-1").contains("a whole number"));
        assert!(message("cc[0].rate_ai", "fast").contains("does not start with a decimal number"));
    }
}
