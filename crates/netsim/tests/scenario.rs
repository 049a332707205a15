// SPDX-License-Identifier: Apache-2.0
//! Scenario files: what is documented is what is read, and what is wrong is refused with place, key, value and remedy.

use std::path::PathBuf;

use penstock_netsim::{Scenario, Time};
use proptest::prelude::*;

fn incast_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/incast-3.toml")
}

fn incast() -> String {
    std::fs::read_to_string(incast_path()).unwrap()
}

const MINIMAL: &str = "[boards]\ncount = 3\n[server]\n";

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    Scenario::parse("scenarios/test.toml", text, &overrides).map_err(|error| error.to_string())
}

#[test]
fn a_gain_may_be_the_decimal_fraction_that_its_quotient_is() {
    let quotient = parse(MINIMAL, &["cc.g=1/64"]).unwrap();
    assert_eq!(parse(MINIMAL, &["cc.g=0.015625"]).unwrap().settings, quotient.settings);
    for wrong in ["cc.g=0.01", "cc.g=0.0", "cc.g=2.0", "cc.g=nan", "cc.g=-0.5", "cc.g=0.0000152587890625"] {
        assert!(parse(MINIMAL, &[wrong]).unwrap_err().contains("inverse powers of two"), "{wrong}");
    }
}

#[test]
fn a_documented_value_is_the_default_or_names_it() {
    let text = incast();
    let documented = Scenario::load(incast_path(), &[]).unwrap();
    let defaults = Scenario::parse(incast_path(), MINIMAL, &[]).unwrap();
    assert_eq!(documented.settings.len(), defaults.settings.len());
    for ((path, value), (default_path, default)) in documented.settings.iter().zip(&defaults.settings) {
        assert_eq!(path, default_path);
        let key = path.rsplit('.').next().unwrap();
        let line = text.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap_or_default();
        let computed = line.is_empty(); // xoff, xon, headroom follow from other keys
        assert!(
            value == default || computed || line.contains(&format!("default {default}")),
            "{path} = {value}: the default is {default}"
        );
    }
    assert_eq!(documented.warnings, []);
}

#[test]
fn every_key_is_documented() {
    let text = incast();
    let optional =
        ["server.consumer_rate=1GB/s", "server.vanish_at=5ms", "switch.xoff=400KB", "capture.links=[\"server\"]"];
    let scenario = Scenario::load(incast_path(), &optional.map(str::to_owned)).unwrap();
    for (path, _) in &scenario.settings {
        let key = path.rsplit('.').next().unwrap();
        let documented = |line: &str| line.trim_start_matches("# ").starts_with(&format!("{key} = "));
        assert!(text.lines().any(documented), "{path} is missing in scenarios/incast-3.toml");
    }
}

#[test]
fn settings_in_force() {
    let scenario = parse(MINIMAL, &[]).unwrap();
    let lines: Vec<String> = scenario.settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn mistakes_are_refused_with_place_key_value_and_what_is_allowed() {
    let cases = [
        ("[link]\ndelya = \"4us\"\n", &[][..]),
        ("[link]\ndelay = 4\n", &[]),
        ("[link]\ndelay = \"4 parsecs\"\nrate = \"10Gb\"\nloss = 1.5\n", &[]),
        ("[link]\ndelay = [1]\n", &[]),
        ("[qp]\nmtu = 9000\nretry_cnt = 8\n", &[]),
        ("[qp]\nmtu = \"4096\"\n", &[]),
        ("[cc]\nlaw = \"timely\"\ng = 0.004\nclamp_target = 1\n", &[]),
        ("[switch]\nkmin = \"300KB\"\nkmax = \"200KB\"\n", &[]),
        ("[switch]\nkmax = \"3MB\"\nxon = \"300KB\"\nxoff = \"200KB\"\n", &[]),
        ("[switch]\nbuffer = \"100KB\"\nkmax = \"80KB\"\n", &[]),
        ("[switch]\nbuffer = \"20KB\"\npfc = false\necn = false\n", &[]),
        ("[link]\ndelay = \"50ns\"\nrate = \"0bps\"\n", &[]),
        ("[link.at.board7]\ndelay = \"5us\"\n", &[]),
        ("link = 3\n", &[]),
        ("[lnik]\n", &[]),
        ("[link\ndelay = 3\n", &[]),
        ("[cc]\nrate_min = \"20Gbps\"\nincrease_interval = \"0s\"\nbyte_threshold = \"0B\"\n", &[]),
        ("", &["link.loss=2", "link.los=0.1"]),
        ("", &["link.loss"]),
        ("", &["link..loss=1"]),
        ("", &["link.loss.deep=1"]),
        ("", &["server.slots=100000", "server.rnr_delay=1us"]),
        ("", &["link.rate=25Gbps", "link.at.board1.rate=1Gbps", "link.at.board2.rate=10Gbps"]),
        ("", &["qp.cnp_dscp=26", "data.trigger_rate=0Hz"]),
        ("", &["capture.links=[\"server\", \"board3\"]", "capture.snap=1B"]),
    ];
    let mut report = String::new();
    for (text, overrides) in cases {
        let text = if text.starts_with("link") { format!("{text}{MINIMAL}") } else { format!("{MINIMAL}{text}") };
        let error = parse(&text, overrides).expect_err(&text);
        report.push_str(&format!("{error}\n\n"));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn impossible_topologies_are_refused() {
    let report = ["[boards]\ncount = 0\n[server]\n", "[boards]\ncount = 3\n", "[boards]\ncount = 5000\n[server]\n"]
        .map(|text| parse(text, &[]).expect_err(text))
        .join("\n\n");
    insta::assert_snapshot!(report);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Scenario::load("scenarios/no-such.toml", &[]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read scenario scenarios/no-such.toml: "), "{error}");
}

#[test]
fn overrides_win_over_the_file_and_need_no_quotes() {
    let overrides =
        ["cc.law=off", "link.loss=1e-3", "link.at.server.delay=5us", "run.seed=0x10", "server.vanish_at=5ms"];
    let scenario = Scenario::load(incast_path(), &overrides.map(str::to_owned)).unwrap();
    assert_eq!(scenario.cc.law, penstock_cc::Law::Off);
    assert_eq!(scenario.run.seed, 16);
    assert_eq!(scenario.server.vanish_at, Some(Time::from_ms(5)));
    let server = scenario.link_of(Scenario::SERVER);
    assert_eq!(server.delay, Time::from_us(5));
    assert_eq!(server.faults.loss, scenario.link.faults.loss, "what [link.at] leaves out is as in [link]");
    assert_eq!(scenario.link_of("board0").delay, Time::from_us(1));
}

#[test]
fn what_is_allowed_but_hurts_is_a_warning() {
    let overrides = ["switch.headroom=10KB", "switch.xoff=600KB", "switch.ecn=false", "qp.ack_timeout=4us"];
    let warnings = parse(MINIMAL, &overrides).unwrap().warnings;
    let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn relative_data_files_are_found_from_the_scenario_and_from_the_command_line() {
    let from_file = parse(MINIMAL, &[]).unwrap();
    assert_eq!(from_file.data.file, PathBuf::from("scenarios/../data/lst1_run2008/modules.npz"));
    let from_option = parse(MINIMAL, &["data.file=own.npz"]).unwrap();
    assert_eq!(from_option.data.file, PathBuf::from("own.npz"));
}

#[test]
fn ack_timeouts_are_rounded_up_to_the_codes_of_the_standard() {
    let code = |value: &str| parse(MINIMAL, &[&format!("qp.ack_timeout={value}")]).unwrap().qp.ack_timeout_code();
    assert_eq!(["0us", "1us", "8.192us", "8193ns", "2.097152ms"].map(code), [0, 1, 1, 2, 9]);
}

proptest! {
    #[test]
    fn no_text_and_no_override_makes_the_reader_panic(
        line in "[a-z]{1,6}(\\.[a-z]{1,6})? ?= ?[\"0-9a-z\\[\\]{}.-]{0,12}",
        option in "[a-z.]{0,12}=?.{0,12}",
    ) {
        let _ = parse(&format!("{line}\n{MINIMAL}"), &[]);
        let _ = parse(MINIMAL, &[&option]);
    }
}
