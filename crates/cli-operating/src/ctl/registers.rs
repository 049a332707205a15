// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl registers`, `penstock ctl switch registers`: list a register map.

use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::map::{Field, Group, Map, Register, Unit};
use serde_json::{json, Value};

#[derive(clap::Args)]
pub struct Arguments {
    /// Only names with one of these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// Print the list as JSON
    #[arg(short = 'J', long)]
    json: bool,
}

pub fn run(map: &'static Map, arguments: &Arguments) -> Result<Verdict, Failure> {
    let chosen: Vec<_> = map
        .groups
        .iter()
        .flat_map(|group| group.registers.iter().map(move |register| (name(group, register), group, register)))
        .filter(|(name, ..)| arguments.words.is_empty() || arguments.words.iter().any(|word| name.contains(word)))
        .collect();
    if chosen.is_empty() {
        return Err(Failure::Refused(format!("no register has {} in its name", arguments.words.join(" or "))));
    }
    if arguments.json {
        let registers: Vec<Value> =
            chosen.iter().map(|(name, group, register)| as_json(name, group, register)).collect();
        let all = json!({"map_hash": format!("0x{:08X}", map.hash), "registers": registers});
        return Ok(print(all, Verdict::Verified));
    }
    let lines: Vec<String> = chosen.iter().flat_map(|(name, _, register)| lines(name, register)).collect();
    Ok(print(lines.join("\n"), Verdict::Verified))
}

fn name(group: &Group, register: &Register) -> String {
    match (group.name, group.count) {
        ("", _) => register.name.to_owned(),
        (name, 1) => format!("{name}.{}", register.name),
        (name, count) => format!("{name}[0-{}].{}", count - 1, register.name),
    }
}

fn lines(name: &str, register: &Register) -> Vec<String> {
    let access = match (register.writable, register.critical) {
        (false, _) => "read-only",
        (true, false) => "",
        (true, true) => "--force",
    };
    let mut lines = vec![format!("{name:<34} {access:<9} {}{}", register.desc, unit(register.fields.first()))];
    if register.fields.len() > 1 {
        lines.extend(
            register.fields.iter().map(|field| format!("  .{:<42} {}{}", field.name, field.desc, unit(Some(field)))),
        );
    }
    lines
}

fn unit(field: Option<&Field>) -> String {
    let Some(field) = field else { return String::new() };
    if !field.values.is_empty() {
        let names: Vec<&str> = field.values.iter().map(|(_, name)| *name).collect();
        return format!(" [{}]", names.join(", "));
    }
    let unit = match field.unit {
        Unit::Rate => "a rate, 40Mbps",
        Unit::Cycles | Unit::Ticks | Unit::Milliseconds => "a time, 40us",
        Unit::Bytes => "bytes, 4096B",
        Unit::Ipv4 => "10.0.0.1",
        Unit::Mac => "02:00:0a:00:00:02",
        Unit::SignedNanoseconds => "nanoseconds, -12ns",
        Unit::Plain | Unit::Kilohertz | Unit::Fraction | Unit::Hex => return String::new(),
    };
    format!(" [{unit}]")
}

fn as_json(name: &str, group: &Group, register: &Register) -> Value {
    let fields: Vec<Value> = register
        .fields
        .iter()
        .map(|field| {
            json!({
                "name": field.name, "description": field.desc, "low": field.low, "width": field.width,
                "writable": field.writable, "reset": field.reset, "unit": format!("{:?}", field.unit).to_lowercase(),
                "values": field.values.iter().map(|(number, name)| json!({"number": number, "name": name})).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "name": name, "description": register.desc, "address": group.address(register, 0), "copies": group.count,
        "stride": group.stride, "writable": register.writable, "force": register.critical, "fields": fields,
    })
}
