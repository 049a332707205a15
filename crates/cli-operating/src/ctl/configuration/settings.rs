// SPDX-License-Identifier: Apache-2.0
//! The keys of a board as settings of its registers.
//!
//! | key | stands for |
//! |---|---|
//! | a register's name | that register; copies as `ring.0.slots` or `"ring[0].slots"` |
//! | `cc.profile`, `cc.share` | the parameters of DCQCN by name (`penstock_cc::Profile`), in every group |
//! | `access.allow`, `access.lock` | the list of hosts; it is put into force last |
//! | `destination.live`, `destination.first` | queue pairs of the live servers, and the first event that they get |
//!
//! Promise: a key that names a register overrides the value from a profile; a board's own keys override those of
//! `[all]`.

use super::document::{BoardEntry, Configuration, Entry, Value};
use penstock_cc::Profile;
use penstock_ipbus::change::Setting;
use penstock_ipbus::dcqcn::profile_words;
use penstock_ipbus::map::{find, name_of, Build, Place, Target};
use penstock_ipbus::regs::{access_entry, server};
use penstock_ipbus::Identity;
use penstock_units::Rate;
use std::collections::HashMap;
use std::net::Ipv4Addr;

/// The settings of a board.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    pub settings: Vec<Setting>,
    /// The destination table is put into force from this event on, if it changes: (event, servers).
    pub commit: Option<(u64, usize)>,
    /// Hosts that are served; none: all are, or the list stays.
    pub allowed: Vec<(u32, u32)>,
}

/// Keys that are no registers.
#[derive(Debug, Clone, Default)]
struct Special {
    profile: Option<(Profile, usize)>,
    share: Option<(Rate, usize)>,
    allow: Option<Vec<(u32, u32)>>,
    lock: Option<bool>,
    live: Option<(Vec<u64>, usize)>,
    first: Option<u64>,
}

/// Keys of one table, read for one kind of board.
#[derive(Debug, Clone, Default)]
struct Table {
    special: Special,
    settings: Vec<Setting>,
}

/// Reads the keys of all boards once for each kind of board.
pub struct Resolver<'a> {
    configuration: &'a Configuration,
    of_all: HashMap<(u32, u32, u32), Result<Table, Vec<String>>>,
}

impl<'a> Resolver<'a> {
    pub fn new(configuration: &'a Configuration) -> Self {
        Resolver { configuration, of_all: HashMap::new() }
    }

    pub fn board(&mut self, board: &BoardEntry, identity: Identity) -> Result<Resolved, Vec<String>> {
        let Build { queue_pairs, clock_khz } = identity.build;
        let file = &self.configuration.file;
        let key = (queue_pairs, clock_khz, identity.data_width);
        let all = self.of_all.entry(key).or_insert_with(|| table(file, &self.configuration.all, identity)).clone()?;
        let of_board = table(file, &board.entries, identity)?;
        resolved(file, all, of_board, identity)
    }
}

fn table(file: &str, entries: &[Entry], identity: Identity) -> Result<Table, Vec<String>> {
    let (mut table, mut problems) = (Table::default(), Vec::new());
    for entry in entries {
        let read = match special(entry, &mut table.special) {
            Some(read) => read,
            None => register(entry, identity).map(|settings| table.settings.extend(settings)),
        };
        if let Err(why) = read {
            problems.push(format!("{file}:{}: {why}", entry.line));
        }
    }
    if problems.is_empty() {
        Ok(table)
    } else {
        Err(problems)
    }
}

/// None: the key is a register's.
fn special(entry: &Entry, into: &mut Special) -> Option<Result<(), String>> {
    let text = || match &entry.value {
        Value::Text(text) => Ok(text.as_str()),
        Value::List(_) => Err(format!("{}: allowed is one value", entry.key)),
    };
    let wrong = |why: String| format!("{}: {why}", entry.key);
    Some(match entry.key.as_str() {
        "cc.profile" => text()
            .and_then(|text| profile(text).map_err(wrong))
            .map(|profile| into.profile = Some((profile, entry.line))),
        "cc.share" => text()
            .and_then(|text| penstock_cli_common::arguments::number::share(text).map_err(wrong))
            .map(|share| into.share = Some((share, entry.line))),
        "access.allow" => hosts(&entry.value).map_err(wrong).map(|hosts| into.allow = Some(hosts)),
        "access.lock" => text().and_then(|text| flag(text).map_err(wrong)).map(|lock| into.lock = Some(lock)),
        "destination.live" => numbers(&entry.value).map_err(wrong).map(|live| into.live = Some((live, entry.line))),
        "destination.first" => {
            let number =
                |text: &str| text.parse().map_err(|_| wrong(format!("{text:?}: allowed is the number of an event")));
            text().and_then(number).map(|first| into.first = Some(first))
        }
        "local_ip" => Err(
            "local_ip: a board answers at its new address from then on: set it alone, by `penstock ctl set --force`"
                .to_owned(),
        ),
        _ => return None,
    })
}

fn profile(text: &str) -> Result<Profile, String> {
    match text {
        "penstock" => Ok(Profile::Penstock),
        "advcam" => Ok(Profile::AdvCam),
        "zhu" => Ok(Profile::Zhu),
        "ns3" => Ok(Profile::Ns3),
        _ => Err(format!("{text:?}: allowed are penstock, advcam, zhu, ns3")),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!("{text:?}: allowed are true and false")),
    }
}

fn list(value: &Value) -> &[String] {
    match value {
        Value::Text(text) => std::slice::from_ref(text),
        Value::List(list) => list,
    }
}

fn numbers(value: &Value) -> Result<Vec<u64>, String> {
    let number = |text: &String| text.parse().map_err(|_| format!("{text:?}: allowed are numbers of queue pairs"));
    let found: Vec<u64> = list(value).iter().map(number).collect::<Result<_, _>>()?;
    if found.len() > server::COUNT as usize {
        return Err(format!("{} servers: the table has {} rows", found.len(), server::COUNT));
    }
    Ok(found) // one that stands there twice gets twice the events
}

/// Address and netmask of "10.0.0.0/24" or "10.0.0.1".
fn host(text: &str) -> Result<(u32, u32), String> {
    let (ip, bits) = text.split_once('/').unwrap_or((text, "32"));
    let ip: Ipv4Addr = ip.parse().map_err(|_| format!("{ip:?} is no IPv4 address"))?;
    let bits: u32 = bits
        .parse()
        .ok()
        .filter(|bits| *bits <= 32)
        .ok_or_else(|| format!("/{bits}: the length of a prefix is 0 to 32"))?;
    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
    match ip.to_bits() & !mask {
        0 => Ok((ip.to_bits(), mask)),
        _ => Err(format!("{text}: the network is {}/{bits}", Ipv4Addr::from_bits(ip.to_bits() & mask))),
    }
}

fn hosts(value: &Value) -> Result<Vec<(u32, u32)>, String> {
    let found: Vec<_> = list(value).iter().map(|text| host(text)).collect::<Result<_, _>>()?;
    if found.len() > access_entry::COUNT as usize {
        return Err(format!("{} entries: the list has {}", found.len(), access_entry::COUNT));
    }
    Ok(found)
}

/// `ring.0.slots` as `ring[0].slots`.
fn dotted(key: &str) -> String {
    let mut name = String::new();
    for part in key.split('.') {
        if !name.is_empty() && !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            name += &format!("[{part}]");
        } else {
            name += if name.is_empty() { "" } else { "." };
            name += part;
        }
    }
    name
}

fn register(entry: &Entry, identity: Identity) -> Result<Vec<Setting>, String> {
    let Value::Text(text) = &entry.value else {
        return Err(format!("{}: allowed is one value", entry.key));
    };
    let places = find(&dotted(&entry.key), identity.build).map_err(|error| error.to_string())?;
    let setting = |place: Place| place.parse(text, identity.scale()).map(|number| (place, number));
    places.into_iter().map(setting).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn resolved(file: &str, all: Table, of_board: Table, identity: Identity) -> Result<Resolved, Vec<String>> {
    let special = Special {
        profile: of_board.special.profile.or(all.special.profile),
        share: of_board.special.share.or(all.special.share),
        allow: of_board.special.allow.or(all.special.allow),
        lock: of_board.special.lock.or(all.special.lock),
        live: of_board.special.live.or(all.special.live),
        first: of_board.special.first.or(all.special.first),
    };
    let mut resolved = Resolved::default();
    if let Some((profile, line)) = special.profile {
        let settings = of_profile(profile, special.share.map(|(share, _)| share), identity);
        resolved.settings = settings.map_err(|why| vec![format!("{file}:{line}: cc.profile: {why}")])?;
    } else if let Some((_, line)) = special.share {
        return Err(vec![format!("{file}:{line}: cc.share: stands for nothing without cc.profile = \"penstock\"")]);
    }
    resolved.settings.extend(all.settings);
    resolved.settings.extend(of_board.settings);
    if let Some((live, line)) = special.live {
        if let Some(beyond) = live.iter().find(|qp| **qp >= u64::from(identity.build.queue_pairs)) {
            let count = identity.build.queue_pairs;
            return Err(vec![format!(
                "{file}:{line}: destination.live: the board has {count} queue pairs, and no {beyond}"
            )]);
        }
        resolved.commit = Some((special.first.unwrap_or(0), live.len()));
        let rows = whole("server.entry", identity);
        resolved.settings.extend(rows.into_iter().enumerate().map(|(row, place)| {
            let number = live.get(row).map_or(0, |qp| qp | u64::from(server::ENTRY_LIVE_BITS.mask));
            (place, number)
        }));
    }
    if let Some(allowed) = special.allow {
        let (ips, masks) = (whole("access_entry.ip", identity), whole("access_entry.netmask", identity));
        for (row, (ip, mask)) in ips.into_iter().zip(masks).enumerate() {
            let (address, netmask) = allowed.get(row).copied().unwrap_or((0, u32::MAX));
            resolved.settings.extend([(ip, u64::from(address)), (mask, u64::from(netmask))]);
        }
        let enable = u64::from(!allowed.is_empty());
        resolved.settings.extend(whole("access.control.enable", identity).into_iter().map(|place| (place, enable)));
        resolved.allowed = allowed;
    }
    if let Some(lock) = special.lock {
        resolved
            .settings
            .extend(whole("access.control.locked", identity).into_iter().map(|place| (place, u64::from(lock))));
    }
    Ok(last_of_each(resolved))
}

/// Keeps the last of several settings of a place, at its position.
fn last_of_each(mut resolved: Resolved) -> Resolved {
    let bits = |place: &Place| {
        (place.address(), if let Target::Field(field) = place.target { field.mask() } else { u32::MAX })
    };
    let mut last = HashMap::new();
    for (at, (place, _)) in resolved.settings.iter().enumerate() {
        last.insert(bits(place), at);
    }
    let mut at = 0;
    resolved.settings.retain(|(place, _)| {
        at += 1;
        last[&bits(place)] == at - 1
    });
    resolved
}

fn whole(name: &str, identity: Identity) -> Vec<Place> {
    find(name, identity.build).unwrap_or_default()
}

/// The parameters in every group; the line rate stays as the build has it.
fn of_profile(profile: Profile, share: Option<Rate>, identity: Identity) -> Result<Vec<Setting>, String> {
    if identity.build.queue_pairs == 0 {
        return Err("the board has no queue pairs: its gateware is built without RoCE (WITH_ROCE is 0)".to_owned());
    }
    let share = match (profile, share) {
        (Profile::Penstock, None) => {
            return Err(
                "\"penstock\" needs cc.share, what the board gets of the server's line, as in \"39Mbps\"".to_owned()
            )
        }
        (_, share) => share.unwrap_or(identity.line_rate()),
    };
    let words = profile_words(profile, share, identity)?;
    let places = words.into_iter().filter_map(|(address, word)| {
        let place = find(&name_of(address), identity.build).ok()?.into_iter().next()?;
        Some((place, u64::from(word)))
    });
    Ok(places.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            version: 0,
            data_width: 64,
            ring_bytes: 262_144,
            build: Build { queue_pairs: 4, clock_khz: 156_250 },
        }
    }

    fn of(text: &str) -> Result<Resolved, Vec<String>> {
        on(text, identity())
    }

    fn on(text: &str, identity: Identity) -> Result<Resolved, Vec<String>> {
        let configuration = Configuration::parse("b.toml", text).unwrap();
        Resolver::new(&configuration).board(&configuration.boards[0], identity)
    }

    fn number(resolved: &Resolved, name: &str) -> Vec<u64> {
        resolved.settings.iter().filter(|(place, _)| place.name() == name).map(|(_, number)| *number).collect()
    }

    const BOARD: &str = "[[board]]\naddress = \"10.0.0.2\"\n";

    #[test]
    fn a_profile_sets_all_groups_and_what_is_named_goes_over_it() {
        let resolved = of(&format!(
            "[all]\ncc.profile = \"penstock\"\ncc.share = \"39Mbps\"\ncc.1.rate_ai = \"40Mbps\"\n{BOARD}\"cc[2].rate_ai\" = \"80Mbps\"\n"
        ))
        .unwrap_or_else(|message| panic!("{message:?}"));
        let step = number(&resolved, "cc[0].rate_ai");
        assert_eq!(step.len(), 1);
        assert_eq!(identity().scale().rate(step[0]) / 10_000, 39_000_000 / 256 / 10_000);
        assert_eq!(number(&resolved, "cc[1].rate_ai"), [536_871]);
        assert_eq!(number(&resolved, "cc[2].rate_ai"), [1_073_742]);
        assert!(number(&resolved, "cc[0].rate_line").is_empty());
    }

    #[test]
    fn lists_of_servers_and_hosts_fill_their_tables() {
        let text = format!(
            "[all]\ndestination = {{ live = [0, 2, 0], first = 100 }}\naccess.allow = [\"10.0.0.0/24\", \"10.1.0.1\"]\naccess.lock = true\n{BOARD}"
        );
        let resolved = of(&text).unwrap_or_else(|message| panic!("{message:?}"));
        assert_eq!(resolved.commit, Some((100, 3)));
        assert_eq!(number(&resolved, "server[0].entry"), [0x100]);
        assert_eq!(number(&resolved, "server[1].entry"), [0x102]);
        assert_eq!(number(&resolved, "server[2].entry"), [0x100]);
        assert_eq!(number(&resolved, "server[3].entry"), [0]);
        assert_eq!(number(&resolved, "access_entry[1].ip"), [0x0A01_0001]);
        assert_eq!(number(&resolved, "access.control.locked"), [1]);
        let last: Vec<String> = resolved.settings.iter().rev().take(2).map(|(place, _)| place.name()).collect();
        assert_eq!(last, ["access.control.locked", "access.control.enable"], "in force after its entries");
    }

    #[test]
    fn what_a_board_cannot_be_set_to_is_reported_with_its_line() {
        for (text, words) in [
            ("cc.rate_io = 1", "b.toml:3: \"cc.rate_io\": there is no such register; is cc[0].rate_ai"),
            ("cc.0.rate_ai = \"1Tbps\"", "b.toml:3: cc[0].rate_ai=1Tbps: the register takes 0bps to 319.9999999Gbps"),
            ("id = 5", "b.toml:3: id is read-only"),
            ("cc.profile = \"fast\"", "b.toml:3: cc.profile: \"fast\": allowed are penstock, advcam, zhu, ns3"),
            ("cc.profile = \"penstock\"", "needs cc.share"),
            ("cc.share = \"39Mbps\"", "b.toml:3: cc.share: stands for nothing without"),
            ("destination.live = [0, 9]", "b.toml:3: destination.live: the board has 4 queue pairs, and no 9"),
            ("access.allow = \"10.0.0.1/24\"", "the network is 10.0.0.0/24"),
            ("qp.4.congestion.law = \"off\"", "4 copies on this board"),
            ("local_ip = \"10.0.0.9\"", "set it alone"),
        ] {
            let message = of(&format!("{BOARD}{text}\n")).unwrap_err().join("\n");
            assert!(message.contains(words), "{words}\n{message}");
        }
    }

    #[test]
    fn a_board_without_queue_pairs_takes_no_profile() {
        let without = Identity { build: Build { queue_pairs: 0, ..identity().build }, ..identity() };
        let message = on(&format!("{BOARD}cc.profile = \"advcam\"\n"), without).unwrap_err().join("\n");
        assert!(message.contains("b.toml:3: cc.profile: the board has no queue pairs"), "{message}");
    }
}
