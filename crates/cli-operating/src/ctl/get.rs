// SPDX-License-Identifier: Apache-2.0
//! `penstock ctl get`: reads registers by name.

use super::arguments::BoardArguments;
use super::device::Device;
use super::faults::Faults;
use super::session::{BoardPlaces, Session, SessionOf};
use penstock_cli_common::outcome::{Failure, Verdict};
use penstock_cli_common::output::print;
use penstock_ipbus::map::{Field, Place, Scale, Target};
use penstock_ipbus::{AccessError, Outcome, Request};
use serde_json::{json, Map, Value};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub boards: BoardArguments,
    /// cc[0].rate_ai, qp[3].state, flow_control.pfc_en, qp[0-3], local_mac: `penstock ctl registers` lists all
    #[arg(value_name = "REGISTER", required = true)]
    pub names: Vec<String>,
}

/// A place with its number.
pub type Reading = (Place, u64);

/// The readings of a board.
pub struct BoardReadings {
    pub board: usize,
    pub readings: Vec<Reading>,
}

pub fn run(arguments: &Arguments) -> Result<Verdict, Failure> {
    show(Session::open(&arguments.boards)?, &arguments.names, arguments.boards.link.json)
}

/// Reads registers of a session's devices, and prints them.
pub fn show<D: Device>(mut session: SessionOf<D>, names: &[String], as_json: bool) -> Result<Verdict, Failure> {
    let mut faults = session.unfit();
    let places = session.places(names)?;
    let readings = read(&mut session, &places, &mut faults)?;
    let text = match as_json {
        true => json(&session, &readings, &faults).to_string(),
        false => lines(&session, &readings).join("\n"),
    };
    faults.print();
    match text.is_empty() {
        true => Ok(faults.verdict()),
        false => Ok(print(text, faults.verdict())),
    }
}

/// Reads places of boards; what cannot be read is a fault.
pub fn read<D: Device>(
    session: &mut SessionOf<D>,
    places: &[BoardPlaces],
    faults: &mut Faults,
) -> Result<Vec<BoardReadings>, Failure> {
    let requests: Vec<_> = places.iter().map(|of| (of.board, request(&of.places))).collect();
    let outcomes = session.run(&requests)?;
    let mut readings = Vec::new();
    for (BoardPlaces { board, places }, outcome) in places.iter().zip(outcomes) {
        match numbers(places, outcome) {
            Ok(numbers) => {
                readings.push(BoardReadings { board: *board, readings: places.iter().copied().zip(numbers).collect() })
            }
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(session.address(*board), register, message);
            }
        }
    }
    Ok(readings)
}

/// Reads these places.
pub fn request(places: &[Place]) -> Request {
    Request::reads(places.iter().flat_map(Place::addresses))
}

/// The numbers of these places in the answer to their request.
pub fn numbers(places: &[Place], outcome: Outcome) -> Result<Vec<u64>, AccessError> {
    let words: Vec<u32> = outcome?.into_iter().flatten().collect();
    let mut rest = words.as_slice();
    Ok(places
        .iter()
        .map(|place| {
            let (words, more) = rest.split_at(place.addresses().count());
            rest = more;
            place.number(words)
        })
        .collect())
}

/// `BOARD REGISTER VALUE`, aligned; for a register with several fields, these follow its word.
fn lines<D: Device>(session: &SessionOf<D>, readings: &[BoardReadings]) -> Vec<String> {
    let rows: Vec<[String; 3]> = readings
        .iter()
        .flat_map(|BoardReadings { board, readings }| {
            let address = session.address(*board).to_string();
            let scale = scale(session, *board);
            readings.iter().map(move |(place, number)| [address.clone(), place.name(), shown(place, *number, scale)])
        })
        .collect();
    let widths = [0, 1].map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    rows.iter().map(|[board, name, value]| format!("{board:0$}  {name:1$}  {value}", widths[0], widths[1])).collect()
}

pub fn scale<D: Device>(session: &SessionOf<D>, board: usize) -> Scale {
    let identity = session.boards[board].identity.as_ref();
    identity.map_or(Scale { clock_khz: 1 }, D::scale)
}

fn fields(place: &Place, number: u64, scale: Scale) -> Vec<(&'static str, String)> {
    if place.field().is_some() {
        return Vec::new();
    }
    let fields = place.register.fields.iter();
    let field = |field: &'static Field| {
        let part = Place { target: Target::Field(field), ..*place };
        (field.name, part.show(part.number(&[number as u32]), scale))
    };
    fields.map(field).collect()
}

/// The value, and its fields where it has several.
pub fn shown(place: &Place, number: u64, scale: Scale) -> String {
    let fields: Vec<String> =
        fields(place, number, scale).iter().map(|(name, value)| format!("{name}={value}")).collect();
    let value = place.show(number, scale);
    if fields.is_empty() {
        value
    } else {
        format!("{value}  {}", fields.join(" "))
    }
}

fn json<D: Device>(session: &SessionOf<D>, readings: &[BoardReadings], faults: &Faults) -> Value {
    let boards: Vec<Value> = readings
        .iter()
        .map(|BoardReadings { board, readings }| {
            let scale = scale(session, *board);
            let registers: Map<String, Value> =
                readings.iter().map(|(place, number)| (place.name(), value_json(place, *number, scale))).collect();
            json!({"board": session.address(*board).to_string(), "registers": registers})
        })
        .collect();
    json!({"boards": boards, "faults": faults.json()})
}

pub fn value_json(place: &Place, number: u64, scale: Scale) -> Value {
    let mut value = json!({"number": number, "text": place.show(number, scale)});
    if let Some(quantity) = place.quantity(number, scale) {
        value["quantity"] = json!(quantity);
    }
    let fields = fields(place, number, scale);
    if !fields.is_empty() {
        value["fields"] =
            fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>().into();
    }
    value
}
