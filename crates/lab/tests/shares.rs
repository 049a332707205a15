// SPDX-License-Identifier: Apache-2.0
//! Shares that do not fit their network or their load are warned of before the run, with the numbers and the key.

use std::path::Path;

use penstock_lab::LabScenario;

fn parse(text: &str, overrides: &[&str]) -> LabScenario {
    let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
    let table = |_: &Path| Ok(b"time_us,board0,board1\n0,90000,90000\n500,90000,1000\n1000,1000,90000\n".to_vec());
    LabScenario::parse("test.toml", text, &overrides, &table).unwrap_or_else(|error| panic!("{error}"))
}

fn warnings(text: &str, overrides: &[&str]) -> Vec<String> {
    parse(text, overrides).warnings.iter().map(ToString::to_string).collect()
}

fn star(boards: usize) -> String {
    format!("[topology]\nkind = \"star\"\nboards = {boards}\n")
}

#[test]
fn shares_that_exceed_the_server_s_link_are_warned_of_with_the_share_that_fits() {
    let text = star(64) + "[[flow]]\n";
    assert_eq!(warnings(&text, &[]), [""; 0]);
    assert_eq!(
        warnings(&text, &["cc.share=312.5Mbps"]),
        ["--set cc.share=312.5Mbps: cc.share = 312.5Mbps: shares add up to 20.00 Gb/s on the link from switch to server0, \
          which carries 10.00 Gb/s: boards are paused or lose frames; set cc.share = \"156.25Mbps\", or qp.mode = \"pull\""]
    );
    let silenced = ["cc.law=off", "qp.mode=pull", "cc.profile=advcam"];
    for option in silenced {
        let found = warnings(&text, &["cc.share=312.5Mbps", option]);
        assert!(found.iter().all(|one| one.contains("without effect")), "{option}: {found:?}");
    }
}

#[test]
fn a_narrow_uplink_on_the_way_is_named_and_groups_that_take_turns_do_not_add_up() {
    let tree = "[topology]\nkind = \"tree\"\nboards_per_leaf = [24, 8]\n[link.server]\nrate = \"40Gbps\"\n[[flow]]\n";
    let found = warnings(tree, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("shares add up to 30.00 Gb/s on the link from leaf0 to root, which carries 10.00 Gb/s"));
    assert!(found[0].contains("set cc.share = \"416.666666Mbps\""), "{found:?}");
    assert_eq!(warnings(tree, &["link.uplink.rate=40Gbps"]), [""; 0]);
    let turns = star(4)
        + "[[flow]]\nstop = \"1ms\"\n[flow.cc]\nshare = \"2.5Gbps\"\n[[flow]]\nstart = \"1ms\"\n[flow.cc]\nshare = \"2.5Gbps\"\n";
    assert_eq!(warnings(&turns, &[]), [""; 0]);
}

#[test]
fn queue_pairs_with_a_whole_share_each_are_warned_of_as_such() {
    let text = star(16) + "[cc]\nshare = \"625Mbps\"\n[[flow]]\n[[flow]]\n";
    let found = warnings(&text, &[]);
    assert_eq!(
        found,
        ["test.toml:5: cc.share = \"625Mbps\": board0 has 2 queue pairs to server0, each with a whole share: 32 limiters of \
          16 boards add up to 20.00 Gb/s on the link from switch to server0, which carries 10.00 Gb/s; set cc.share = \
          \"312.5Mbps\", or qp.mode = \"pull\""]
    );
    let gateware = warnings(&text, &["flow.0.sender=gateware", "flow.1.sender=gateware"]);
    assert_eq!(gateware, found, "boards of gateware can be pulled, too");
}

/// The rate at which each flow starts, in Mb/s.
fn starts(text: &str, overrides: &[&str]) -> Vec<u64> {
    let flows = parse(text, overrides).flows;
    flows.iter().map(|flow| flow.dcqcn.rate_start.unwrap_or_default().bits_per_second() / 1_000_000).collect()
}

#[test]
fn queue_pairs_of_two_hosts_divide_a_share_that_follows_from_the_topology() {
    let text = star(4) + "[[flow]]\n[[flow]]\nfrom = \"board0\"\n[[flow]]\nfrom = \"board0\"\n";
    assert_eq!(starts(&text, &[]), [833, 2500, 2500, 2500, 833, 833]);
    assert_eq!(warnings(&text, &[]), [""; 0]);
    let pulled = starts(&text, &["flow.1.mode=pull"]);
    assert_eq!((pulled[0], pulled[5]), (1250, 1250), "one that is pulled has no limiter");
    assert_eq!(starts(&text, &["flow.2.cc.share=100Mbps"]), [833, 2500, 2500, 2500, 833, 100], "a share that is given");
    assert_eq!(starts(&text, &["cc.share=1Gbps"]), [1000; 6], "a share that is given");
    assert_eq!(starts(&text, &["flow.1.cc.rate_start=77Mbps"])[4], 77, "a key that is given stays");
    let servers = star(4) + "servers = 2\n[[flow]]\n";
    assert_eq!(starts(&servers, &[]), [2500; 8], "each server's line has its own shares");
}

#[test]
fn ports_that_send_too_few_cnps_are_warned_of_with_the_interval_that_is_long_enough() {
    let found = |boards, overrides: &[&str]| warnings(&(star(boards) + "[[flow]]\n"), overrides);
    assert_eq!(
        found(64, &["qp.cnp_port_interval=4us"]),
        ["--set qp.cnp_port_interval=4us: qp.cnp_port_interval = 4us: 64 queue pairs to server0 have one CNP each in 256us, and \
          raise their rates every 71.441066us: the queue grows without end; set cc.increase_interval = \"128us\""]
    );
    assert_eq!(found(64, &["qp.cnp_port_interval=4us", "cc.increase_interval=128us"]), [""; 0]);
    assert_eq!(found(64, &["qp.cnp_port_interval=3us"]), [""; 0]);
    assert_eq!(found(16, &["qp.cnp_port_interval=4us"]), [""; 0]);
}

#[test]
fn few_boards_of_many_are_pointed_to_pull() {
    let found = warnings(&(star(256) + "[[flow]]\nfrom = \"board{0..15}\"\n"), &[]);
    assert_eq!(
        found,
        ["test.toml: cc.share = 39.0625Mbps (default): the flows to server0 have shares of 0.62 Gb/s in sum and could send \
          10.00 Gb/s: they take what is left within seconds only; set cc.share = \"625Mbps\", or qp.mode = \"pull\""]
    );
    assert_eq!(warnings(&(star(256) + "[[flow]]\nfrom = \"board{0..15}\"\nrate = \"30Mbps\"\n"), &[]), [""; 0]);
}

#[test]
fn unequal_fragments_are_pointed_to_pull_or_weights_and_matching_weights_are_enough() {
    let triggers =
        "[run]\ntime_limit = \"50ms\"\n[triggers]\nkind = \"periodic\"\nrate = \"1kHz\"\nfragment = \"10KB\"\n";
    assert_eq!(warnings(&(star(32) + triggers), &[]), [""; 0]);
    let hot = star(32) + triggers + "[[triggers.group]]\nfrom = \"board7\"\nfragment = \"200KB\"\n";
    assert_eq!(
        warnings(&hot, &[]),
        ["test.toml:6: triggers: fragments are unequal: the slowest of an event takes 5116.8 us on average at its share, for \
          board7 312.5Mbps, and all take 417.8 us on the link to server0; set qp.mode = \"pull\", or, where sizes differ by \
          board alone, weights in [[triggers.group]]"]
    );
    assert_eq!(warnings(&hot, &["triggers.group.0.weight=20"]), [""; 0]);
    assert_eq!(warnings(&hot, &["qp.mode=pull"]), [""; 0]);
    let table = warnings(&(star(8) + "[replay]\n"), &[]);
    assert!(table.len() == 1 && table[0].contains("fragments are unequal"), "{table:?}");
    assert!(table[0].ends_with("weights in [[replay.group]]"), "{table:?}");
}

#[test]
fn a_board_that_offers_more_than_its_share_is_named_with_both() {
    let text = star(100)
        + "[run]\ntime_limit = \"50ms\"\n[triggers]\nkind = \"periodic\"\nfragment = \"100B\"\n\
           [[triggers.group]]\nfrom = \"board3\"\nfragment = \"4KB\"\n";
    let found = warnings(&text, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("board3 offers 0.33 Gb/s to server0 and has a share of 100Mbps"), "{found:?}");
}
