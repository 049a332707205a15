// SPDX-License-Identifier: Apache-2.0
//! TCP streams of boards: their number on a board, and the state of each.
//! Source: docs/tcp.md; a board without TCP says that it has none.

use super::session::Session;
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::map::{find, Build, Scale};
use penstock_ipbus::regs::{stream, tcp};
use penstock_ipbus::{Access, AccessError, Request};
use std::net::{Ipv4Addr, SocketAddrV4};

/// One stream.
#[derive(Debug, Clone)]
pub struct Stream {
    /// The number in the register.
    pub state: u32,
    /// An opening waits: for messages of the connection before, or for ARP.
    pub is_opening: bool,
    /// The reason of the end of the previous connection.
    pub ended: u32,
    pub peer: SocketAddrV4,
    /// Bytes without an acknowledgement.
    pub ring_fill: u32,
    /// Smoothed; 0: none was measured.
    pub round_trip_us: u32,
    pub bytes_acked: u64,
}

impl Stream {
    /// "established", "opening", "closed"; of a stream that is not established also what ended the last connection.
    pub fn state_text(&self) -> String {
        let name = |field: &str, word: u32| shown(&format!("stream[0].state.{field}"), word);
        let state = if self.is_opening { "opening".to_owned() } else { name("state", self.state) };
        match self.state == ESTABLISHED || self.ended == 0 {
            true => state,
            false => format!("{state} ({})", name("ended", self.ended)),
        }
    }
}

/// `stream[n].state.state` of a stream that carries data.
pub const ESTABLISHED: u32 = 2;

/// The name of a number of a field that has names.
fn shown(field: &str, word: u32) -> String {
    let places = find(field, Build { queue_pairs: 1, clock_khz: 1 });
    let place = places.ok().and_then(|places| places.into_iter().next());
    place.map_or(word.to_string(), |place| place.show(word.into(), Scale { clock_khz: 1 }))
}

/// Reads how many streams a board has.
pub fn count_access() -> Access {
    Access::read(tcp::BUILD)
}

/// The number in the word that `count_access` reads.
pub fn count_of(word: u32) -> u32 {
    tcp::BUILD_N_STREAMS_BITS.of(word).min(stream::COUNT)
}

/// Accesses for one stream.
pub const ACCESSES: usize = 4;

/// Receiver to round trip; acknowledged bytes, the high half on either side.
fn of_stream(row: u32) -> [Access; ACCESSES] {
    let base = stream::BASE + row * stream::STRIDE;
    let count = (stream::ROUND_TRIP - stream::PEER_IP) as usize / 4 + 1;
    [
        Access::Read { address: base + stream::PEER_IP, count },
        Access::read(base + stream::BYTES_ACKED_HI),
        Access::read(base + stream::BYTES_ACKED_LO),
        Access::read(base + stream::BYTES_ACKED_HI),
    ]
}

/// Reads the first streams of a board.
pub fn accesses(count: u32) -> impl Iterator<Item = Access> {
    (0..count).flat_map(of_stream)
}

/// The streams in the words that `accesses` reads.
pub fn of_words(words: &[Vec<u32>]) -> Vec<Stream> {
    words.chunks_exact(ACCESSES).map(stream).collect()
}

/// The streams of a board.
pub struct BoardStreams {
    pub board: usize,
    pub streams: Result<Vec<Stream>, AccessError>,
}

/// The streams of boards, by the board's number and how many it has.
pub fn read(session: &mut Session, counts: &[(usize, u32)]) -> Result<Vec<BoardStreams>, Failure> {
    let requests: Vec<(usize, Request)> =
        counts.iter().map(|(board, count)| (*board, accesses(*count).collect())).collect();
    let outcomes = session.run(&requests)?;
    let streams = |words: Vec<Vec<u32>>| of_words(&words);
    Ok(counts
        .iter()
        .zip(outcomes)
        .map(|((board, _), outcome)| BoardStreams { board: *board, streams: outcome.map(streams) })
        .collect())
}

fn stream(words: &[Vec<u32>]) -> Stream {
    let at = |register: u32| words[0][(register - stream::PEER_IP) as usize / 4];
    let state = at(stream::STATE);
    Stream {
        state: stream::STATE_BITS.of(state),
        is_opening: stream::STATE_OPENING_BITS.of(state) != 0,
        ended: stream::STATE_ENDED_BITS.of(state),
        peer: SocketAddrV4::new(Ipv4Addr::from_bits(at(stream::PEER_IP)), at(stream::PEER_PORT) as u16),
        ring_fill: at(stream::RING_FILL),
        round_trip_us: at(stream::ROUND_TRIP),
        bytes_acked: halves(words[1][0], words[2][0], words[3][0]),
    }
}

/// A count whose high half was read before and after its low one: where that went round in between, it is small after
/// and large before.
pub fn halves(high: u32, low: u32, again: u32) -> u64 {
    let high = if low < 1 << 31 { again } else { high };
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_named_with_what_ended_the_connection_before() {
        let peer = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 10_000);
        let of = |state, is_opening, ended| {
            Stream { state, is_opening, ended, peer, ring_fill: 0, round_trip_us: 0, bytes_acked: 0 }.state_text()
        };
        assert_eq!(of(ESTABLISHED, false, 3), "established");
        assert_eq!(of(0, false, 0), "closed");
        assert_eq!(of(0, false, 1), "closed (refused)");
        assert_eq!(of(1, false, 2), "syn_sent (reset)");
        assert_eq!(of(0, true, 6), "opening (no_address)");
    }

    #[test]
    fn a_count_that_went_round_between_its_halves_is_whole() {
        assert_eq!(halves(1, 5, 1), 1 << 32 | 5);
        assert_eq!(halves(1, 5, 2), 2 << 32 | 5);
        assert_eq!(halves(1, u32::MAX, 2), 1 << 32 | 0xFFFF_FFFF);
    }
}
