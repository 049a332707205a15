// SPDX-License-Identifier: Apache-2.0
//! Scenarios of the emulated switch: those of the repository are valid, and all errors are reported at once.

use penstock_lab::SwitchScenario;
use penstock_netsim::Rate;

#[test]
fn the_scenarios_are_right_and_a_wrong_one_is_refused_at_once() {
    for name in ["advcam-9.toml", "advcam-9-staircase.toml", "advcam-9-storm.toml"] {
        let path = format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"));
        let scenario = SwitchScenario::load(path, &[]).unwrap();
        assert_eq!(scenario.switch.line, Rate::from_gbps(10));
    }
    let text = "[switch]\nwindow = \"0ns\"\ncooldown = \"soon\"\nrepeat = \"10us\"\n\
                [[step]]\nat = \"5us\"\n[[step]]\nat = \"5us\"\n[[step]]\nat = \"20us\"\nlimit = 5\n";
    let error = SwitchScenario::parse("wrong.toml", text, &[]).unwrap_err().to_string();
    for words in ["switch.window", "switch.cooldown", "step.1.at", "step.2.at", "step.2.limit"] {
        assert!(error.contains(words), "{words} is missing in\n{error}");
    }
    assert!(!error.contains("step.0"), "{error}");
}
