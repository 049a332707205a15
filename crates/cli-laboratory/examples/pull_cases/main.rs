// SPDX-License-Identifier: Apache-2.0
//! Unequal, partial and changing loads under pull, each beside the same load in a network that holds nothing back.
//! Usage: `pull_cases [--set KEY=VALUE]... [NAME...]` runs all cases, or those of these names, and prints a row of JSON
//! for each. `--set` changes the runs in pull mode: it shows what a missed goal is due to. Figures of
//! the repository (`figures/pull.py`) make the table of docs/congestion-control.md of them.

mod cases;
mod run;
mod verilated;

fn main() {
    let (mut names, mut settings) = (Vec::new(), Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--set" => settings.extend(words.next()),
            _ => names.push(word),
        }
    }
    let is_named = |case: &cases::Case| names.is_empty() || names.contains(&case.name);
    let all = cases::all().into_iter().chain(verilated::all());
    let cases: Vec<_> = all.filter(is_named).collect();
    if let Some(name) = names.iter().find(|name| cases.iter().all(|case| case.name != **name)) {
        eprintln!("there is no case `{name}`");
        std::process::exit(2);
    }
    let next = std::sync::atomic::AtomicUsize::new(0);
    let rows = std::sync::Mutex::new(vec![String::new(); cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(case) = cases.get(at) else { return };
                let row = serde_json::to_string(&run::row(case, &settings)).expect("a row of numbers and words");
                rows.lock().unwrap()[at] = row;
            });
        }
    });
    rows.into_inner().unwrap().into_iter().for_each(|row| println!("{row}"));
}
