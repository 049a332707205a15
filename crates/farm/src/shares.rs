// SPDX-License-Identifier: Apache-2.0
//! Tables by weight: a server has as many rows as its weight, evenly spread over the table.
//! Source: smooth weighted round robin, as the rows are passed one after the other: every row adds each server's units
//! to its balance, and the server with the highest balance takes the row and pays for it with the sum of all units.

/// Rows of a board's destination table (regs/destination.rdl).
pub const MAX_ROWS: usize = 64;

/// The part of its weight that a server has at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Part {
    #[default]
    Whole,
    Half,
    Quarter,
    Nothing,
}

impl Part {
    pub fn less(self) -> Part {
        match self {
            Part::Whole => Part::Half,
            Part::Half => Part::Quarter,
            Part::Quarter | Part::Nothing => Part::Nothing,
        }
    }

    pub fn more(self) -> Part {
        match self {
            Part::Nothing => Part::Quarter,
            Part::Quarter => Part::Half,
            Part::Half | Part::Whole => Part::Whole,
        }
    }

    pub fn quarters(self) -> u64 {
        match self {
            Part::Whole => 4,
            Part::Half => 2,
            Part::Quarter => 1,
            Part::Nothing => 0,
        }
    }

    /// The part nearest to `rows` of `whole` rows.
    pub fn nearest(rows: u64, whole: u64) -> Part {
        [Part::Whole, Part::Half]
            .into_iter()
            .find(|part| 16 * rows >= 3 * whole * part.quarters())
            .unwrap_or(Part::Quarter)
    }
}

/// The rows of a run's first table: each server, which ascend, has all of its weight.
pub fn first_table(servers: impl Iterator<Item = (u16, u8)>) -> Vec<u16> {
    table(&servers.map(|(server, weight)| (server, Part::Whole.quarters() * u64::from(weight))).collect::<Vec<_>>())
}

/// The rows of a table in which each server has its units of events; at most 64 rows, so that many units are rounded,
/// but every server has a row. Servers without units have none.
pub(crate) fn table(servers: &[(u16, u64)]) -> Vec<u16> {
    let mut servers: Vec<(u16, u64)> = servers.iter().copied().filter(|(_, units)| *units > 0).collect();
    let divisor = servers.iter().fold(0, |divisor, (_, units)| greatest_common_divisor(divisor, *units));
    servers.iter_mut().for_each(|(_, units)| *units /= divisor);
    let shares: Vec<u64> = servers.iter().map(|(_, units)| *units).collect();
    while servers.iter().map(|(_, rows)| rows).sum::<u64>() > MAX_ROWS as u64 {
        // The one with the most rows for its units gives one away.
        let over = (0..servers.len()).filter(|at| servers[*at].1 > 1);
        let Some(at) = over.max_by(|a, b| (servers[*a].1 * shares[*b]).cmp(&(servers[*b].1 * shares[*a]))) else {
            break;
        };
        servers[at].1 -= 1;
    }
    let total: u64 = servers.iter().map(|(_, rows)| rows).sum();
    let mut balances = vec![0_i64; servers.len()];
    (0..total)
        .map(|_| {
            balances.iter_mut().zip(&servers).for_each(|(balance, (_, rows))| *balance += *rows as i64);
            let next = (0..servers.len()).rev().max_by_key(|at| balances[*at]).unwrap_or(0);
            balances[next] -= total as i64;
            servers[next].0
        })
        .collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_equal_weight_take_turns_and_others_are_spread_evenly() {
        assert_eq!(table(&[(0, 4), (1, 4), (2, 4)]), [0, 1, 2]);
        assert_eq!(table(&[(0, 8), (1, 4)]), [0, 1, 0]);
        assert_eq!(table(&[(3, 20), (5, 4), (7, 4)]), [3, 3, 5, 3, 7, 3, 3]);
        assert_eq!(table(&[(0, 4), (1, 0), (2, 1)]).iter().filter(|server| **server == 0).count(), 4);
    }

    #[test]
    fn more_units_than_rows_are_rounded_and_every_server_keeps_a_row() {
        for units in
            [vec![4; 64], vec![256, 1], [vec![2], vec![4; 40]].concat(), vec![63, 64], [vec![1], vec![97; 63]].concat()]
        {
            let servers: Vec<(u16, u64)> = (0..).zip(units).collect();
            let rows = table(&servers);
            let (total, all) = (rows.len() as f64, servers.iter().map(|(_, units)| units).sum::<u64>() as f64);
            assert!(rows.len() <= MAX_ROWS, "{servers:?}");
            for (server, units) in &servers {
                let has = rows.iter().filter(|other| *other == server).count() as f64;
                let shares = total * *units as f64 / all;
                assert!(has >= 1.0 && (has - shares).abs() < 1.0, "{servers:?}: server {server}: {has}, not {shares}");
            }
        }
    }

    #[test]
    fn a_part_is_known_by_its_rows() {
        for part in [Part::Whole, Part::Half, Part::Quarter] {
            assert_eq!(Part::nearest(part.quarters() * 3, 12), part);
        }
        assert_eq!(Part::nearest(3, 4), Part::Whole);
        assert_eq!(
            (Part::Quarter.less(), Part::Nothing.less(), Part::Nothing.more()),
            (Part::Nothing, Part::Nothing, Part::Quarter)
        );
    }
}
