// SPDX-License-Identifier: Apache-2.0
//! Boards that push: queue pairs that divide a share, fragments one after the other, and CNPs of a whole port.

use std::path::Path;

use penstock_lab::report::{summary, End, LabSummary};
use penstock_lab::{Lab, LabScenario, SoftwareOnly};
use penstock_netsim::Time;

/// The switch of docs/congestion-control.md.
const STAR: &str = "[topology]\nkind = \"star\"\n[switch]\nkmin = \"5KB\"\nkmax = \"200KB\"\npmax = 1.0\n";

fn run(text: &str, overrides: &[&str]) -> LabSummary {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let table = |_: &Path| Ok(b"time_us,board0,board1,board2\n10,100,100,100\n20,100,0,100\n".to_vec());
    let scenario = LabScenario::parse("test.toml", text, &overrides, &table).unwrap_or_else(|error| panic!("{error}"));
    let mut lab = Lab::build(&scenario, &mut SoftwareOnly).unwrap_or_else(|error| panic!("{error}"));
    let progress = lab.run().unwrap();
    summary(&lab, "test", &scenario, &End::of(progress, &scenario).unwrap())
}

/// Bytes of the longest queue, and for how long ports paused their neighbours, in s.
fn queue_and_pauses(results: &LabSummary) -> (u64, f64) {
    let ports = || results.switches.iter().flat_map(|switch| &switch.ports);
    (ports().map(|port| port.peak_queue_bytes).max().unwrap(), ports().map(|port| port.pausing_s).sum())
}

#[test]
fn queue_pairs_that_divide_a_share_fill_the_line_without_a_pause() {
    let text = format!("{STAR}[run]\ntime_limit = \"10ms\"\nstop = \"time\"\n{}", "[[flow]]\n".repeat(8));
    let run = |options: &[&str]| run(&text, &[&["topology.boards=16"], options].concat());
    let (divided, whole) = (run(&[]), run(&["cc.share=625Mbps"]));
    let ((queue, pauses), (whole_queue, whole_pauses)) = (queue_and_pauses(&divided), queue_and_pauses(&whole));
    assert!(divided.aggregate_gbps > 9.6 && pauses == 0.0, "{} Gb/s, {pauses} s", divided.aggregate_gbps);
    assert!(whole_queue > 2 * queue && whole_pauses > 0.0, "{queue} B, of whole shares {whole_queue} B");
}

#[test]
fn staggered_fragments_hold_a_short_queue_and_delay_events_by_their_offsets_at_most() {
    let text = format!(
        "{STAR}[triggers]\nkind = \"periodic\"\nrate = \"1kHz\"\nfragment = \"17190B\"\nevents = 4\n[run]\ntime_limit = \"8ms\"\n"
    );
    let run = |stagger: &str| run(&text, &["topology.boards=64", stagger]);
    // a packet of 4096 bytes takes 3.35 us of the line
    let (together, staggered) = (run("triggers.stagger=0ps"), run("triggers.stagger=3.35us"));
    let ((before, _), (queue, _)) = (queue_and_pauses(&together), queue_and_pauses(&staggered));
    assert!(before > 200_000 && queue < 100_000, "{queue} B, together {before} B");
    let p99 = |results: &LabSummary| results.events.as_ref().unwrap().p99_us.unwrap();
    let later = p99(&staggered) - p99(&together);
    assert!((0.0..63.0 * 3.35).contains(&later), "{later} us later");
    assert_eq!(staggered.events.unwrap().complete, 4);
}

#[test]
fn an_event_is_complete_with_its_last_board_in_both_tables() {
    for table in ["triggers", "replay"] {
        let text = format!("{STAR}[{table}]\n");
        let events = run(&text, &[&format!("{table}.events=1"), &format!("{table}.stagger=300us")]).events.unwrap();
        let completion = events.p99_us.unwrap();
        assert_eq!(events.complete, 1, "{table}");
        assert!((600.0..610.0).contains(&completion), "{table}: two intervals after the event, not {completion} us");
    }
}

#[test]
fn all_queue_pairs_of_a_port_send_one_cnp_in_its_interval() {
    let text = format!("{STAR}[run]\ntime_limit = \"10ms\"\nstop = \"time\"\n[[flow]]\n");
    let cnps = |overrides: &[&str]| -> u64 {
        run(&text, &[&["topology.boards=64"], overrides].concat()).flows.iter().map(|flow| flow.cnps).sum()
    };
    assert!(cnps(&[]) > 1000, "{}", cnps(&[]));
    for (servers, interval) in [(1, Time::from_us(100)), (2, Time::from_us(100)), (1, Time::from_us(20))] {
        let options = [format!("topology.servers={servers}"), format!("qp.cnp_port_interval={interval}")];
        let (found, most) = (cnps(&[&options[0], &options[1]]), servers * (Time::from_ms(10).0 / interval.0 + 1));
        assert!(found <= most && 10 * found > 8 * most, "{options:?}: {found} CNPs, allowed {most}");
    }
}
