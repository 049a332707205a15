// SPDX-License-Identifier: Apache-2.0
//! Lists of addresses that are allowed to send requests: ADDRESS or ADDRESS/PREFIX.
//! Promise: an empty list allows all.

use std::net::Ipv4Addr;
use std::str::FromStr;

/// One address, or a network of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    network: u32,
    mask: u32,
}

/// Whether a list admits an address.
pub fn admits(list: &[Allowed], ip: Ipv4Addr) -> bool {
    list.is_empty() || list.iter().any(|allowed| ip.to_bits() & allowed.mask == allowed.network)
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (ip, prefix) = text.split_once('/').unwrap_or((text, "32"));
        let ip: Ipv4Addr = ip.parse().map_err(|_| format!("{ip:?} is no IPv4 address"))?;
        let bits = prefix.parse().ok().filter(|bits: &u32| *bits <= 32);
        let bits = bits.ok_or_else(|| format!("/{prefix}: the length of a prefix is 0 to 32"))?;
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        match ip.to_bits() & !mask {
            0 => Ok(Allowed { network: ip.to_bits(), mask }),
            _ => Err(format!("{text}: the network is {}/{bits}", Ipv4Addr::from_bits(ip.to_bits() & mask))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_networks_are_admitted_and_an_empty_list_admits_all() {
        let list: Vec<Allowed> = ["10.0.0.1", "10.77.0.0/16"].map(|text| text.parse().unwrap()).into();
        let admitted = |ip: &str| admits(&list, ip.parse().unwrap());
        assert!(admitted("10.0.0.1") && admitted("10.77.200.3"));
        assert!(!admitted("10.0.0.2") && !admitted("10.78.0.1"));
        assert!(admits(&[], Ipv4Addr::new(1, 2, 3, 4)));
        assert!(admits(&["0.0.0.0/0".parse().unwrap()], Ipv4Addr::new(1, 2, 3, 4)));
        for wrong in ["10.0.0", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/x"] {
            assert!(wrong.parse::<Allowed>().is_err(), "{wrong}");
        }
        assert_eq!("10.0.0.1/24".parse::<Allowed>(), Err("10.0.0.1/24: the network is 10.0.0.0/24".to_owned()));
    }
}
