// SPDX-License-Identifier: Apache-2.0
//! What `penstock send` is told, checked.
//! Promise: what cannot work is refused before anything is opened.
//! Source: the option names are those of `penstock recv` and of iperf3 where they have the same.

use super::faults::FaultRates;
use penstock_cc::{DcqcnParams, DcqcnSettings, Law};
use penstock_readout::{Dataset, EventSource};
use penstock_transport::{Mtu, RetryLimits};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

/// Clock of the gateware whose congestion control this is.
pub const CLOCK_HZ: u64 = 156_250_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PayloadName {
    /// PRBS-31, one sequence over all messages of a board
    Prbs,
    /// 64-bit words that count on over all messages of a board
    Counter,
    /// Recorded camera events, by --events-file
    Recorded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LawName {
    Off,
    Dcqcn,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// Ethernet interface
    #[arg(long, value_name = "NAME")]
    pub iface: String,
    /// Address of the first front end; the others follow. The interface must have them all
    #[arg(long)]
    pub ip: Ipv4Addr,
    /// Front ends in this process
    #[arg(long, default_value_t = 1)]
    pub boards: u16,
    /// Source id of the first front end
    #[arg(long, default_value_t = 0)]
    pub first_source: u16,
    /// Open queue pairs at this server; otherwise the server opens them here
    #[arg(long, value_name = "ADDRESS")]
    pub connect: Option<Ipv4Addr>,
    /// Slots of the server's ring
    #[arg(long, default_value_t = 64)]
    pub slots: u32,
    /// Bytes of a slot of the server's ring
    #[arg(long, default_value_t = 128 * 1024)]
    pub slot_bytes: u32,
    #[arg(long, value_enum, default_value = "prbs")]
    pub payload: PayloadName,
    /// Recorded camera events (npz), for --payload recorded
    #[arg(long, value_name = "FILE")]
    pub events_file: Option<PathBuf>,
    /// Payload bytes of a fragment, without its header of 40 bytes
    #[arg(short = 'l', long, default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..))]
    pub length: u32,
    /// Events; 0 is without end
    #[arg(short = 'n', long, default_value_t = 0)]
    pub events: u64,
    /// First event's number
    #[arg(long, default_value_t = 0)]
    pub first_event: u64,
    /// Events per second; otherwise as fast as they go
    #[arg(short, long)]
    pub rate: Option<f64>,
    /// End after so many seconds
    #[arg(short = 'D', long)]
    pub seconds: Option<f64>,
    /// SEND instead of RDMA WRITE with immediate
    #[arg(long)]
    pub send_verb: bool,
    /// Path MTU: 256, 512, 1024, 2048 or 4096
    #[arg(short, long, default_value_t = 4096)]
    pub mtu: usize,
    /// Congestion control
    #[arg(long, value_enum, default_value = "dcqcn")]
    pub cc: LawName,
    /// Line rate for congestion control, Gb/s
    #[arg(long, default_value_t = 10.0, value_name = "GBPS")]
    pub line_rate: f64,
    /// ACK timer, 4.096 us * 2^CODE; 0: it never expires
    #[arg(long, value_name = "CODE", default_value_t = 14, value_parser = clap::value_parser!(u8).range(0..32))]
    pub ack_timeout: u8,
    /// Timeouts and NAKs in a row until a queue pair gives up, 0 to 7
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
    pub retry_cnt: u8,
    /// Share of frames to lose, for tests
    #[arg(long, default_value_t = 0.0)]
    pub loss: f64,
    /// Share of frames to send twice
    #[arg(long, default_value_t = 0.0)]
    pub duplicate: f64,
    /// Share of frames to send behind the next one
    #[arg(long, default_value_t = 0.0)]
    pub reorder: f64,
    /// Share of frames to damage in one bit
    #[arg(long, default_value_t = 0.0)]
    pub corrupt: f64,
    /// Share of received frames, acknowledgements most of all, to lose
    #[arg(long, default_value_t = 0.0)]
    pub ack_loss: f64,
    /// Seed of these faults
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Milliseconds for which it stays, when all is acknowledged, for the server to close the queue pairs
    #[arg(long, default_value_t = 2000, value_name = "MS")]
    pub linger: u64,
    /// Print the final report as JSON
    #[arg(short = 'J', long)]
    pub json: bool,
}

/// Everything a front end is made of.
#[derive(Clone)]
pub struct Settings {
    pub iface: String,
    pub first_ip: Ipv4Addr,
    pub boards: u16,
    pub first_source: u16,
    pub server: Option<Ipv4Addr>,
    pub slots: u32,
    pub slot_bytes: u32,
    pub payload: PayloadName,
    pub recorded: Option<Arc<EventSource>>,
    pub length: u32,
    pub events: u64,
    pub first_event: u64,
    /// 0: as fast as they go.
    pub interval_ps: u64,
    pub send_verb: bool,
    pub mtu: Mtu,
    pub cc: Option<DcqcnParams>,
    pub limits: RetryLimits,
    pub faults: FaultRates,
    pub seed: u64,
    pub linger_ps: u64,
}

impl Settings {
    pub fn read(a: &Arguments) -> Result<Settings, String> {
        let mtu =
            Mtu::from_bytes(a.mtu).ok_or_else(|| format!("--mtu {}: allowed are 256, 512, 1024, 2048, 4096", a.mtu))?;
        if a.boards == 0 || u32::from(a.first_source) + u32::from(a.boards) > 65_536 {
            return Err(format!(
                "--boards {} from source {} on: allowed are sources 0 to 65535",
                a.boards, a.first_source
            ));
        }
        if a.ip.to_bits().checked_add(a.boards.into()).is_none() {
            return Err(format!("--boards {} from {} on: no such addresses", a.boards, a.ip));
        }
        let interval_ps = match a.rate {
            Some(rate) if !(1e-3..=1e9).contains(&rate) => {
                return Err(format!("--rate {rate}: allowed are 0.001 to 1e9"))
            }
            rate => rate.map_or(0, |rate| (1e12 / rate) as u64),
        };
        let settings = Settings {
            iface: a.iface.clone(),
            first_ip: a.ip,
            boards: a.boards,
            first_source: a.first_source,
            server: a.connect,
            slots: a.slots,
            slot_bytes: a.slot_bytes,
            payload: a.payload,
            recorded: recorded(a)?,
            length: a.length,
            events: a.events,
            first_event: a.first_event,
            interval_ps,
            send_verb: a.send_verb,
            mtu,
            cc: congestion_control(a)?,
            limits: RetryLimits { ack_timeout: a.ack_timeout, retry_cnt: a.retry_cnt, ..RetryLimits::default() },
            faults: FaultRates {
                loss: a.loss,
                duplicate: a.duplicate,
                reorder: a.reorder,
                corrupt: a.corrupt,
                ack_loss: a.ack_loss,
            }
            .checked()?,
            seed: a.seed,
            linger_ps: a.linger.saturating_mul(super::PS_PER_MS),
        };
        settings.check_slots()?;
        Ok(settings)
    }

    /// Addresses of all front ends.
    pub fn ips(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        (0..u32::from(self.boards)).map(|k| Ipv4Addr::from_bits(self.first_ip.to_bits() + k))
    }

    fn check_slots(&self) -> Result<(), String> {
        let needed = match &self.recorded {
            Some(events) => events.max_message_len() as u64,
            None => u64::from(self.length) + penstock_wire::fragment::HEADER_LEN as u64,
        };
        if self.slots < 2 || needed > u64::from(self.slot_bytes) {
            let Settings { slots, slot_bytes, .. } = self;
            return Err(format!(
                "{slots} slots of {slot_bytes} bytes: there must be 2 and a fragment of {needed} bytes must fit; both ends must have the same"
            ));
        }
        Ok(())
    }
}

fn recorded(a: &Arguments) -> Result<Option<Arc<EventSource>>, String> {
    match (&a.events_file, a.payload) {
        (Some(file), PayloadName::Recorded) => {
            let dataset = Dataset::load(file).map_err(|error| error.to_string())?;
            let boards = u16::try_from(u32::from(a.first_source) + u32::from(a.boards))
                .map_err(|_| "--payload recorded: allowed are sources 0 to 65534".to_owned())?;
            Ok(Some(Arc::new(EventSource::new(&dataset, boards).map_err(|error| error.to_string())?)))
        }
        (None, PayloadName::Recorded) => Err("--payload recorded needs --events-file".to_owned()),
        (Some(_), _) => Err("--events-file goes with --payload recorded".to_owned()),
        (None, _) => Ok(None),
    }
}

fn congestion_control(a: &Arguments) -> Result<Option<DcqcnParams>, String> {
    if a.cc == LawName::Off {
        return Ok(None);
    }
    let rate_line_bps = (a.line_rate * 1e9) as u64;
    let settings = DcqcnSettings { law: Law::Dcqcn, rate_line_bps, ..DcqcnSettings::default() };
    let params = settings.at_clock(CLOCK_HZ).map_err(|error| format!("--line-rate {}: {error}", a.line_rate))?;
    Ok(Some(params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn read(line: &str) -> Result<Settings, String> {
        let words = "send --iface eth1 --ip 10.0.0.2".split_whitespace().chain(line.split_whitespace());
        Settings::read(&Line::try_parse_from(words).map_err(|error| error.to_string())?.arguments)
    }

    #[test]
    fn what_no_queue_pair_can_do_is_refused_with_the_value() {
        for (line, value) in [
            ("--ack-timeout 32", "32"),
            ("--retry-cnt 8", "8"),
            ("--length 0", "0"),
            ("--loss 2", "--loss 2"),
            ("--ack-loss 1", "--ack-loss 1"),
        ] {
            let told = read(line).err().unwrap_or_else(|| panic!("`{line}` was taken"));
            assert!(told.contains(value), "{line}: {told}");
        }
        assert!(read("--ack-timeout 31 --retry-cnt 7 --length 1 --loss 0.5").is_ok());
    }

    #[test]
    fn the_last_source_number_does_not_overflow() {
        assert!(read("--first-source 65535").is_ok());
        let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/lst1_run2008/modules.npz");
        assert!(read(&format!("--first-source 65535 --payload recorded --events-file {events}")).is_err());
    }
}
