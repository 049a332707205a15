// SPDX-License-Identifier: Apache-2.0
//! Scenarios with a `[readout]` table: times of camera events, and refused settings.

use std::path::PathBuf;

use penstock_lab::LabScenario;
use penstock_netsim::Time;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const STAR: &str = "[topology]\nkind = \"star\"\n[[flow]]\nsize = \"1MB\"\n";
const READOUT: &str = "[topology]\nkind = \"star\"\n[readout]\n[replay]\nfile = \"../data/lst1_run2008/modules.npz\"\n";

fn readout(text: &str, overrides: &[&str]) -> Result<LabScenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let path = root().join("scenarios/test.toml");
    LabScenario::parse(path, text, &overrides, &|path| std::fs::read(path)).map_err(|error| error.to_string())
}

#[test]
fn camera_events_come_on_request_and_repeat() {
    let times = |overrides: &[&str]| readout(READOUT, overrides).unwrap().events.unwrap().times.clone();
    assert_eq!(times(&[]).len(), 50, "as many as the file has");
    assert_eq!(times(&["replay.events=3"])[..], times(&[])[..3]);
    let periodic = times(&["replay.trigger=periodic", "replay.rate=1MHz", "replay.events=70"]);
    assert_eq!((periodic.len(), periodic[69]), (70, Time::from_us(69)));
    let poisson = times(&["replay.trigger=poisson", "replay.events=60"]);
    assert_eq!(poisson, times(&["replay.trigger=poisson", "replay.events=60", "run.seed=1"]));
    assert_ne!(poisson, times(&["replay.trigger=poisson", "replay.events=60", "run.seed=2"]));
    let scenario = readout(READOUT, &["replay.trigger=poisson", "replay.events=60"]).unwrap();
    let events = scenario.events.unwrap();
    assert_eq!((events.bytes(59, 0), events.bytes(59, 2)), (events.bytes(9, 0), events.bytes(9, 2)));
}

#[test]
fn a_readout_that_cannot_be_is_refused_with_what_is_missing() {
    let cases: [(&str, &[&str], &[&str]); 15] = [
        (READOUT, &["readout.mode=pull", "replay.protocol=simple-tcp"], &["readout.mode = pull", "over \"rc\""]),
        (READOUT, &["readout.mode=pull", "qp.responder_resources=4"], &["responder_resources", "16 READs of a board"]),
        (STAR, &["readout.slots=8"], &["readout: it takes recorded events", "[replay]"]),
        (READOUT, &["replay.events=51"], &["replay.events = 51", "1 to 50", "repeat"]),
        (READOUT, &["readout.host=server7"], &["readout.host = server7", "server0"]),
        (READOUT, &["topology.servers=2"], &["events go to server1 too", "replay.to = \"server0\""]),
        (READOUT, &["readout.slots=1"], &["readout.slots = 1", "from 2"]),
        (READOUT, &["readout.slot_size=64KiB"], &["readout.slot_size = 64KiB", "101678"]),
        (READOUT, &["readout.consumer_rate=0bps"], &["readout.consumer_rate", "1B/s"]),
        (READOUT, &["qp.verb=write"], &["qp.verb = write", "write-imm"]),
        (READOUT, &["replay.rate=0Hz"], &["replay.rate = 0Hz", "more than 0Hz"]),
        (READOUT, &["replay.protocol=tcp"], &["replay.protocol = tcp", "simple-tcp"]),
        (READOUT, &["replay.protocol=simple-tcp", "tcp.mss=9000"], &["tcp.mss = 9000", "64 to 8960"]),
        (READOUT, &["replay.protocol=simple-tcp", "tcp.send_buffer=1GiB"], &["tcp.send_buffer", "up to 512MiB"]),
        (
            READOUT,
            &["replay.protocol=simple-tcp", "replay.sender=gateware", "cc.law=qcn"],
            &["readout: no law limits the streams of verilated boards"],
        ),
    ];
    for (text, overrides, words) in cases {
        let error = readout(text, overrides).expect_err(&format!("{overrides:?}"));
        assert!(words.iter().all(|word| error.contains(word)), "{overrides:?}: {error}");
    }
    let other = format!("{READOUT}[[flow]]\nfrom = \"board0\"\nsize = \"1MB\"\n");
    assert!(readout(&other, &[]).unwrap_err().contains("let flow board0>server0 use another host"));
}
