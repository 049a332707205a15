// SPDX-License-Identifier: Apache-2.0
//! The plan of `penstock send`: the checked command line.
//! Promise: invalid settings are refused before anything is opened.

use super::arguments::Arguments;
use super::choices::{LawName, PayloadName, ProtocolName};
use super::faults::FaultRates;
use penstock_cc::{DcqcnParams, DcqcnSettings, Law};
use penstock_cli_common::arguments::allowed::Allowed;
use penstock_cli_common::arguments::cm::CmName;
use penstock_cli_common::arguments::number::positive;
use penstock_readout::{Dataset, EventSource};
use penstock_transport::{Mtu, RetryLimits};
use penstock_units::{Rate, Time};
use penstock_wire::gateware::CLOCK_HZ as BOARD_CLOCK_HZ;
use penstock_wire::PULL_READS;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

/// Queue pairs of a front end with `--by-event`, as many as the limiter's visits are made for.
pub const SHARED_QUEUE_PAIRS: u32 = 16;

/// Everything that front ends are made of.
#[derive(Clone)]
pub struct Plan {
    pub iface: String,
    pub first_ip: Ipv4Addr,
    pub boards: u16,
    pub first_source: u16,
    pub server: Option<Ipv4Addr>,
    /// Port of the server's standard connection manager; none: FEROCE's.
    pub rdma_port: Option<u16>,
    /// Who may ask the connection manager.
    pub allow: Vec<Allowed>,
    pub slots: u32,
    pub slot_bytes: u32,
    pub payload: PayloadName,
    pub recorded: Option<Arc<EventSource>>,
    pub length: u32,
    pub events: u64,
    pub first_event: u64,
    /// The file of the servers that share the run, and whose events are sent; none: all.
    pub sharing: Option<(PathBuf, u16)>,
    /// Each event goes to the server that the destination table names.
    pub by_event: bool,
    /// Time from event to event; zero: as fast as they go.
    pub interval: Time,
    pub send_verb: bool,
    /// Messages are announced, and the server reads them.
    pub pull: bool,
    pub mtu: Mtu,
    /// Initial parameters of congestion control; a server or an operator may change them.
    pub cc: DcqcnParams,
    pub limits: RetryLimits,
    pub faults: FaultRates,
    /// Injected faults of received frames.
    pub ack_faults: FaultRates,
    pub seed: u64,
    /// Nothing is sent from here on.
    pub end: Time,
    pub linger: Time,
    pub json: bool,
}

impl Plan {
    /// # Errors
    /// The option that cannot be done, with its value and what is allowed.
    pub fn read(a: &Arguments) -> Result<Plan, String> {
        let mtu = Mtu::from_bytes(a.protocol.mtu)
            .ok_or_else(|| format!("--mtu {}: allowed are 256, 512, 1024, 2048, 4096", a.protocol.mtu))?;
        if a.boards.count == 0 || u32::from(a.boards.first_source) + u32::from(a.boards.count) > 65_536 {
            return Err(format!(
                "--boards {} from source {} on: allowed are sources 0 to 65535",
                a.boards.count, a.boards.first_source
            ));
        }
        if a.boards.ip.to_bits().checked_add(a.boards.count.into()).is_none() {
            return Err(format!("--boards {} from {} on: no such addresses", a.boards.count, a.boards.ip));
        }
        positive("--seconds", a.events.seconds)?;
        let interval = match a.events.rate {
            Some(rate) if !(1e-3..=1e9).contains(&rate) => {
                return Err(format!("--rate {rate}: allowed are 0.001 to 1e9"))
            }
            rate => rate.map_or(Time::ZERO, |rate| Time((1e12 / rate) as u64)),
        };
        let plan = Plan {
            iface: a.boards.iface.clone(),
            first_ip: a.boards.ip,
            boards: a.boards.count,
            first_source: a.boards.first_source,
            server: a.boards.connect,
            rdma_port: rdma_port(a)?,
            allow: a.boards.allow.clone(),
            slots: a.protocol.slots,
            slot_bytes: a.protocol.slot_size,
            payload: a.events.payload,
            recorded: recorded(a)?,
            length: a.events.length,
            events: a.events.count,
            first_event: a.events.first_event,
            sharing: a.events.servers.clone().zip(a.events.server),
            by_event: a.events.by_event,
            interval,
            send_verb: a.protocol.send_verb,
            pull: a.protocol.pull,
            mtu,
            cc: congestion_control(a)?,
            limits: RetryLimits {
                ack_timeout: a.protocol.ack_timeout,
                retry_cnt: a.protocol.retry_cnt,
                ..RetryLimits::default()
            },
            faults: FaultRates {
                loss: a.faults.loss,
                duplicate: a.faults.duplicate,
                reorder: a.faults.reorder,
                corrupt: a.faults.corrupt,
            }
            .checked("")?,
            ack_faults: FaultRates {
                loss: a.faults.ack_loss,
                duplicate: a.faults.ack_duplicate,
                reorder: a.faults.ack_reorder,
                corrupt: a.faults.ack_corrupt,
            }
            .checked("ack-")?,
            seed: a.faults.seed,
            end: a.events.seconds.map_or(Time::MAX, Time::from_secs_f64),
            linger: Time::from_ms(1).saturating_mul(a.boards.linger),
            json: a.report.json,
        };
        plan.check_slots()?;
        plan.check_events()?;
        plan.check_pull(a.protocol.protocol)?;
        Ok(plan)
    }

    /// Bytes of the longest message.
    pub fn longest(&self) -> usize {
        match &self.recorded {
            Some(events) => events.max_message_len(),
            None => self.length as usize + penstock_wire::fragment::HEADER_LEN,
        }
    }

    /// Queue pairs of a front end: several servers have one each.
    pub fn queue_pairs(&self) -> u32 {
        if self.by_event {
            SHARED_QUEUE_PAIRS
        } else {
            1
        }
    }

    /// Addresses of all front ends.
    pub fn ips(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        (0..u32::from(self.boards)).map(|k| Ipv4Addr::from_bits(self.first_ip.to_bits() + k))
    }

    fn check_slots(&self) -> Result<(), String> {
        let needed = self.longest() as u64;
        if self.slots < 2 || needed > u64::from(self.slot_bytes) {
            let Plan { slots, slot_bytes, .. } = self;
            return Err(format!(
                "{slots} slots of {slot_bytes} bytes: there must be 2 and a fragment of {needed} bytes must fit; both ends must have the same"
            ));
        }
        Ok(())
    }

    fn check_pull(&self, protocol: ProtocolName) -> Result<(), String> {
        match self.pull {
            true if protocol == ProtocolName::Tcp => {
                Err("--pull: RDMA READ needs a reliable connection of RoCEv2, TCP has none: --protocol rc".to_owned())
            }
            true if self.slots <= PULL_READS.into() => Err(format!(
                "--slots {}: --pull needs more than {PULL_READS}, as many as a server may read again",
                self.slots
            )),
            _ => Ok(()),
        }
    }

    fn check_events(&self) -> Result<(), String> {
        let Plan { events, first_event, .. } = self;
        match first_event.checked_add((*events).max(1)) {
            Some(_) => Ok(()),
            None => Err(format!(
                "--first-event {first_event}: {events} events from there on go beyond 2^64 - 2, the last that there is"
            )),
        }
    }
}

fn rdma_port(a: &Arguments) -> Result<Option<u16>, String> {
    match (a.boards.cm, a.boards.connect, a.protocol.protocol) {
        (CmName::Feroce, ..) => Ok(None),
        (CmName::Rdma, _, ProtocolName::Tcp) => Err("--cm rdma: streams over TCP have no queue pairs".to_owned()),
        (CmName::Rdma, None, _) => Err("--cm rdma: front ends open; name the server by --connect".to_owned()),
        (CmName::Rdma, Some(_), _) => Ok(Some(a.boards.cm_port)),
    }
}

fn recorded(a: &Arguments) -> Result<Option<Arc<EventSource>>, String> {
    match (&a.events.data, a.events.payload) {
        (Some(file), PayloadName::Recorded) => {
            let dataset = Dataset::load(file).map_err(|error| error.to_string())?;
            let boards = u16::try_from(u32::from(a.boards.first_source) + u32::from(a.boards.count))
                .map_err(|_| "--payload recorded: allowed are sources 0 to 65534".to_owned())?;
            Ok(Some(Arc::new(EventSource::new(&dataset, boards).map_err(|error| error.to_string())?)))
        }
        (None, PayloadName::Recorded) => Err("--payload recorded needs --data".to_owned()),
        (Some(_), _) => Err("--data goes with --payload recorded".to_owned()),
        (None, _) => Ok(None),
    }
}

fn congestion_control(a: &Arguments) -> Result<DcqcnParams, String> {
    let rate_line = Rate((a.protocol.line_rate * 1e9) as u64);
    match (a.protocol.cc_share, a.protocol.cc) {
        (Some(share), LawName::Off) => return Err(format!("--cc-share {share}: goes with --cc dcqcn")),
        (Some(share), _) if share > rate_line => {
            return Err(format!("--cc-share {share}: allowed is up to --line-rate, {rate_line}"));
        }
        _ => {}
    }
    let law = match a.protocol.cc {
        _ if a.protocol.pull => Law::Off,
        LawName::Off => Law::Off,
        LawName::Dcqcn => Law::Dcqcn,
    };
    // All front ends of this process are on one path, whose line they share. One alone does not know its share: a floor
    // of 15/16 of the line would be no congestion control.
    let by_count = (a.boards.count > 1).then(|| Rate(rate_line.0 / u64::from(a.boards.count)));
    let profile = a.protocol.cc_share.or(by_count).map_or_else(DcqcnSettings::default, DcqcnSettings::for_share);
    let settings = DcqcnSettings { law, rate_line, ..profile };
    let params =
        settings.at_clock(BOARD_CLOCK_HZ).map_err(|error| format!("--line-rate {}: {error}", a.protocol.line_rate))?;
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_cli_common::arguments::line::{arguments, without_heading};

    fn read(line: &str) -> Result<Plan, String> {
        Plan::read(&arguments(&format!("send --iface eth1 --ip 10.0.0.2 {line}"))?)
    }

    #[test]
    fn quantities_have_their_own_unit_or_that_of_the_option() {
        for line in [
            "--rate 1000 --line-rate 25 -l 65536 --linger 1500",
            "--rate 1kHz --line-rate 25Gbps -l 64KiB --linger 1.5s",
        ] {
            let Arguments { boards, events, protocol, .. } =
                arguments(&format!("send --iface eth1 --ip 10.0.0.2 {line}")).unwrap();
            assert_eq!((events.rate, protocol.line_rate, events.length), (Some(1000.0), 25.0, 65_536), "{line}");
            assert_eq!(boards.linger, 1500, "{line}");
        }
        assert!(read("--rate 1k").err().unwrap().contains("kHz"));
    }

    #[test]
    fn what_no_queue_pair_can_do_is_refused_with_the_value() {
        for (line, value) in [
            ("--ack-timeout 32", "32"),
            ("--retry-cnt 8", "8"),
            ("--length 0", "0"),
            ("--seconds nan", "--seconds NaN"),
            ("--loss 2", "--loss 2"),
            ("--ack-loss 1", "--ack-loss 1"),
            ("--ack-corrupt nan", "--ack-corrupt NaN"),
            ("--cm rdma", "--connect"),
            ("--cm rdma --connect 10.0.0.1 --cm-port 0", "--cm-port"),
            ("--cm rdma --connect 10.0.0.1 --protocol tcp", "--cm rdma"),
            ("--cc-share 0bps", "more than 0"),
            ("--cc-share 12Gbps", "up to --line-rate, 10Gbps"),
            ("--cc-share 39Mbps --cc off", "--cc dcqcn"),
            ("--pull --protocol tcp", "--protocol rc"),
            ("--pull --slots 16", "--slots 16"),
            ("--pull --send-verb", "--send-verb"),
            ("--pull --cc-share 1Gbps", "--cc-share"),
        ] {
            let message = read(line).err().unwrap_or_else(|| panic!("`{line}` was taken"));
            assert!(message.contains(value), "{line}: {message}");
        }
        let cc = |line: &str| read(line).unwrap_or_else(|e| panic!("{e}")).cc;
        let (share, table) = (cc("--cc-share 1Gbps"), cc(""));
        assert_eq!(
            (share.rate_start.0 / 10, table.rate_start),
            (table.rate_line.0 / 100, penstock_cc::CycleRate(u32::MAX))
        );
        let ten = cc("--boards 10");
        assert_eq!((ten.rate_start, ten.rate_min, ten.rate_ai), (share.rate_start, share.rate_min, share.rate_ai));
        assert!(read("--ack-timeout 31 --retry-cnt 7 --length 1 --loss 0.5").is_ok());
    }

    #[test]
    fn the_last_source_number_does_not_overflow() {
        assert!(read("--first-source 65535").is_ok());
        let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/lst1_run2008/modules.npz");
        assert!(read(&format!("--first-source 65535 --payload recorded --data {events}")).is_err());
    }

    #[test]
    fn every_option_is_under_a_heading_of_the_help() {
        assert_eq!(without_heading::<Arguments>(), None);
    }
}
