// SPDX-License-Identifier: Apache-2.0
//! The meters that the gateware keeps for each queue pair (rtl/roce/transfer_meter.sv) and each TCP stream
//! (rtl/tcp/tcp_meter.sv), under the names of CEPC 2025.

use penstock_board::{regs, LineClock};
use penstock_lab::report::per;
use serde::Serialize;

/// A series of messages on one queue pair or stream, from its first packet on. Times are clock cycles where no unit is
/// named.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Meters {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_pair: Option<u8>,
    /// Time from the first packet sent to its acknowledgement.
    pub latency_first_packet: u32,
    /// Time from the last packet sent to its acknowledgement.
    pub latency_last_packet: u32,
    /// Time from the first packet sent to the last acknowledgement.
    pub transfer_time_tot: u64,
    /// Payload and packets that were acknowledged; of a stream, its segments that were sent for the first time.
    pub bytes: u64,
    pub packets: u64,
    /// Mean over all packets, of a stream over all bytes, each from its first sending to the acknowledgement that covers
    /// it (FEROCE 2025).
    pub latency_mean_ns: f64,
    /// Payload over `transfer_time_tot`, 10^9 bit/s (FEROCE 2025).
    pub throughput_gbps: f64,
    /// A packet was sent again: the times hold the recovery too.
    pub resent: bool,
    /// The clock of the board.
    #[serde(skip)]
    clock: LineClock,
}

impl Meters {
    /// Reads those of one queue pair of a board with this clock; `None` if nothing has been acknowledged since they were restarted.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn read<E>(
        clock: LineClock,
        queue_pair: u8,
        read: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<Option<Self>, E> {
        let meters = Self::row(clock, queue_pair, |meters| meters.packets, read)?;
        Ok(meters.map(|meters| Self { queue_pair: Some(queue_pair), ..meters }))
    }

    /// Reads those of one TCP stream of a board with so many queue pairs; `None` as above.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn of_stream<E>(
        clock: LineClock,
        queue_pairs: u8,
        stream: u8,
        read: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<Option<Self>, E> {
        Self::row(clock, queue_pairs + stream, |meters| meters.bytes, read)
    }

    /// Reads a row. `counted`: what the sum of its latencies is a sum over.
    fn row<E>(
        clock: LineClock,
        row: u8,
        counted: fn(&Self) -> u64,
        mut read: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<Option<Self>, E> {
        use regs::meter as m;
        let nanoseconds = |cycles: f64| clock.picoseconds(cycles) * 1e-3;
        let mut word = |offset| read(m::BASE + u32::from(row) * m::STRIDE + offset);
        let mut long = |low, high| -> Result<u64, E> { Ok(u64::from(word(high)?) << 32 | u64::from(word(low)?)) };
        let packets = long(m::PACKETS_LO, m::PACKETS_HI)?;
        let transfer_time_tot = long(m::TRANSFER_TIME_TOT_LO, m::TRANSFER_TIME_TOT_HI)?;
        let bytes = long(m::BYTES_LO, m::BYTES_HI)?;
        let latency_sum = long(m::LATENCY_SUM_LO, m::LATENCY_SUM_HI)?;
        let transfer_ns = nanoseconds(transfer_time_tot as f64);
        let meters = Self {
            queue_pair: None,
            latency_first_packet: word(m::LATENCY_FIRST_PACKET)?,
            latency_last_packet: word(m::LATENCY_LAST_PACKET)?,
            transfer_time_tot,
            bytes,
            packets,
            latency_mean_ns: 0.0,
            throughput_gbps: per(bytes as f64 * 8.0, transfer_ns),
            resent: m::STATUS_RESENT_BITS.of(word(m::STATUS)?) != 0,
            clock,
        };
        let count = counted(&meters);
        let latency_mean_ns = nanoseconds(latency_sum as f64 / count as f64);
        Ok((count != 0).then_some(Self { latency_mean_ns, ..meters }))
    }
}

impl std::fmt::Display for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |cycles: f64| self.clock.picoseconds(cycles) * 1e-3 * 1e-3;
        write!(
            f,
            "latency_first_packet {:.3} us, latency_last_packet {:.3} us, mean {:.3} us, transfer_time_tot {:.3} us, {:.3} Gb/s{}",
            us(self.latency_first_packet.into()),
            us(self.latency_last_packet.into()),
            self.latency_mean_ns * 1e-3,
            us(self.transfer_time_tot as f64),
            self.throughput_gbps,
            if self.resent { ", with packets sent again" } else { "" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Meters;
    use penstock_board::regs::meter as m;
    use penstock_board::LineClock;
    use std::convert::Infallible;

    /// Registers of queue pair 3: CEPC's run of 50 GB in the words of its slide, at our clock.
    fn registers(address: u32) -> Result<u32, Infallible> {
        let row = m::BASE + 3 * m::STRIDE;
        Ok(match address.checked_sub(row) {
            Some(m::LATENCY_FIRST_PACKET) => 728,
            Some(m::LATENCY_LAST_PACKET) => 727,
            Some(m::TRANSFER_TIME_TOT_LO) => 1_378_101_107,
            Some(m::BYTES_LO) => 5,
            Some(m::BYTES_HI) => 12,
            Some(m::PACKETS_LO) => 15_360_000,
            Some(m::LATENCY_SUM_LO) => 0x9AE5_8000,
            Some(m::LATENCY_SUM_HI) => 2,
            Some(m::STATUS) => m::STATUS_RUNNING_BITS.mask | m::STATUS_RESENT_BITS.mask,
            _ => 0,
        })
    }

    #[test]
    fn words_become_meters_with_the_names_of_the_papers() {
        let meters = Meters::read(LineClock::GBPS_10, 3, registers).unwrap().unwrap();
        assert_eq!((meters.latency_first_packet, meters.latency_last_packet), (728, 727));
        assert_eq!(meters.transfer_time_tot, 1_378_101_107);
        assert_eq!(meters.bytes, (12 << 32) + 5);
        let sum = f64::from(2_u32) * 2f64.powi(32) + f64::from(0x9AE5_8000_u32);
        assert!((meters.latency_mean_ns - sum / 15_360_000.0 * 6.4).abs() < 1e-6, "{meters:?}");
        let seconds = 1_378_101_107.0 * 6.4e-9;
        assert!((meters.throughput_gbps - meters.bytes as f64 * 8e-9 / seconds).abs() < 1e-9, "{meters:?}");
        assert!(meters.resent && meters.to_string().starts_with("latency_first_packet 4.659 us"), "{meters}");
        let json = serde_json::to_value(&meters).unwrap();
        for name in ["latency_first_packet", "latency_last_packet", "transfer_time_tot"] {
            assert!(json[name].is_u64(), "{json}");
        }
    }

    #[test]
    fn the_row_of_a_stream_is_behind_the_queue_pairs_and_its_mean_is_that_of_its_bytes() {
        let meters = Meters::of_stream(LineClock::GBPS_10, 2, 1, registers).unwrap().unwrap();
        let sum = f64::from(2_u32) * 2f64.powi(32) + f64::from(0x9AE5_8000_u32);
        assert!((meters.latency_mean_ns - sum / meters.bytes as f64 * 6.4).abs() < 1e-9, "{meters:?}");
        assert_eq!(serde_json::to_value(&meters).unwrap().get("queue_pair"), None);
        assert_eq!(Meters::of_stream(LineClock::GBPS_10, 0, 1, registers).unwrap(), None);
    }

    #[test]
    fn a_queue_pair_without_a_series_has_none() {
        assert_eq!(Meters::read(LineClock::GBPS_10, 2, registers).unwrap(), None);
    }
}
