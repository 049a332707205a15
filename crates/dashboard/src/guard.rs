// SPDX-License-Identifier: Apache-2.0
//! Access control of the server: only pages that it served itself are accepted.
//! Promise: a request with a foreign host name (DNS rebinding), from a page of another origin, or from
//! a frame inside another page is refused, and the answer says how to connect.
//! Source: RFC 9110 section 7.2 (Host), RFC 6454 (Origin), W3C Fetch Metadata.

use axum::http::{header, HeaderMap};
use std::net::IpAddr;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("Host {0:?} is not this server's: open http://localhost with the port, or its address in numbers")]
    Host(String),
    #[error("a page of {0:?} may not use this server; open the server's own page")]
    Origin(String),
    #[error("a page of another site may not use this server; open the server's own page")]
    CrossSite,
}

/// The requests that a server on one address accepts.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    listens_on: IpAddr,
}

impl Guard {
    pub fn new(listens_on: IpAddr) -> Self {
        Self { listens_on }
    }

    /// Checks Host, Origin and Sec-Fetch-Site. `page`: the page itself, which a link of another site may lead to.
    pub fn check(&self, headers: &HeaderMap, page: bool) -> Result<(), Refusal> {
        let text = |name: header::HeaderName| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let host = text(header::HOST).unwrap_or_default();
        if headers.get_all(header::HOST).iter().count() != 1 || !self.is_ours(&host) {
            return Err(Refusal::Host(host.into_owned()));
        }
        if let Some(origin) = text(header::ORIGIN) {
            if origin.strip_prefix("http://") != Some(&*host) {
                return Err(Refusal::Origin(origin.into_owned()));
            }
        }
        let site =
            headers.get("sec-fetch-site").map_or("none".into(), |value| String::from_utf8_lossy(value.as_bytes()));
        let from_here = matches!(&*site, "same-origin" | "none");
        match from_here || page {
            true => Ok(()),
            false => Err(Refusal::CrossSite),
        }
    }

    /// A Host is ours when no name server had a say in it: `localhost`, or an address on which this server listens.
    /// The port does not matter, so that a tunnel (`ssh -L`) may end on another.
    fn is_ours(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let Ok(address) = bare.parse::<IpAddr>() else { return false };
        address.is_loopback() || self.listens_on.is_unspecified() || address == self.listens_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listens_on: &str, pairs: &[(&'static str, &str)], page: bool) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        Guard::new(listens_on.parse().unwrap()).check(&headers, page)
    }

    #[test]
    fn hosts_that_no_name_server_decides_come_in() {
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST", "localhost:9999", "[::1]:8080", "127.0.0.1"] {
            assert_eq!(check("127.0.0.1", &[("host", host)], false), Ok(()), "{host}");
        }
        assert_eq!(check("10.1.2.3", &[("host", "10.1.2.3:8080")], false), Ok(()));
        assert_eq!(check("0.0.0.0", &[("host", "192.168.7.7:8080")], false), Ok(()));
    }

    #[test]
    fn forged_hosts_are_refused() {
        for host in
            ["evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "10.1.2.3:8080", "", "a:b"]
        {
            assert_eq!(check("127.0.0.1", &[("host", host)], true), Err(Refusal::Host(host.into())), "{host}");
        }
        assert!(check("127.0.0.1", &[], true).is_err(), "no Host at all");
        assert!(check("127.0.0.1", &[("host", "localhost"), ("host", "evil.example")], true).is_err(), "two of them");
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let host = ("host", "127.0.0.1:8080");
        for origin in
            ["http://evil.example", "http://localhost:8080", "https://127.0.0.1:8080", "null", "http://127.0.0.1:9"]
        {
            assert_eq!(
                check("127.0.0.1", &[host, ("origin", origin)], false),
                Err(Refusal::Origin(origin.into())),
                "{origin}"
            );
        }
        assert_eq!(check("127.0.0.1", &[host, ("origin", "http://127.0.0.1:8080")], false), Ok(()));
    }

    #[test]
    fn another_site_may_link_to_the_page_and_to_nothing_else() {
        let headers = [("host", "127.0.0.1:8080"), ("sec-fetch-site", "cross-site")];
        assert_eq!(check("127.0.0.1", &headers, true), Ok(()));
        assert_eq!(check("127.0.0.1", &headers, false), Err(Refusal::CrossSite));
    }
}
