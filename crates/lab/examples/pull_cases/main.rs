// SPDX-License-Identifier: Apache-2.0
//! Unequal, partial and changing loads under pull, each beside the same load in a network that holds nothing back.
//! Usage: `pull_cases [WORD]` runs the cases whose names contain the word, and prints a row for each.

mod cases;
mod run;

fn main() {
    let word = std::env::args().nth(1).unwrap_or_default();
    let cases: Vec<_> = cases::all().into_iter().filter(|case| case.name.contains(&word)).collect();
    println!("case,measure,ideal,pull,queue_p99_bytes,queue_peak_bytes,bound_bytes,window_bytes,drops,pause_us,met");
    let next = std::sync::atomic::AtomicUsize::new(0);
    let rows = std::sync::Mutex::new(vec![None; cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(case) = cases.get(at) else { return };
                let row = run::row(case);
                rows.lock().unwrap()[at] = Some(row);
            });
        }
    });
    rows.into_inner().unwrap().into_iter().flatten().for_each(|row| println!("{row}"));
}
