// SPDX-License-Identifier: Apache-2.0
//! Turns the tops of `rtl/top` into a static library: models by
//! `tb/lib/models.py`. Nothing is generated into the source tree but `build/`.
//! Feature `all-tops` adds front ends at other rates, with more queue pairs, and with rings in memory; each takes as long
//! as the first.
//! With `PENSTOCK_PROFILE=record` the objects write into `build/profile` what a run of them does; a later build is
//! compiled by that (`make profile`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs, thread};

/// One build of a top: its C++ class, its clock, and how many of what it has.
struct Top {
    module: &'static str,
    class: &'static str,
    clk_khz: u32,
    n_qp: u32,
    kind: Kind,
}

/// What sends.
enum Kind {
    Roce,
    /// Queue pairs and nothing that messages of a simulation do not need.
    Flows,
    /// Queue pairs with windows of a memory that peers READ and WRITE, SENDs of peers, and in that memory also the rings,
    /// and fragments that are kept.
    Reads,
    /// Queue pairs, their rings in AXI4 memory.
    RoceInMemory,
    /// Streams instead of queue pairs.
    Tcp,
}

const DEFAULT: [Top; 4] = [
    Top { module: "penstock_xgmii", class: "Vboard", clk_khz: 156_250, n_qp: 4, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_flows", clk_khz: 156_250, n_qp: 4, kind: Kind::Flows },
    Top { module: "penstock_xgmii", class: "Vboard_reads", clk_khz: 156_250, n_qp: 4, kind: Kind::Reads },
    Top { module: "penstock_xgmii", class: "Vboard_tcp", clk_khz: 156_250, n_qp: 4, kind: Kind::Tcp },
];
const FURTHER: [Top; 9] = [
    Top { module: "penstock_1g", class: "Vboard_1g", clk_khz: 62_500, n_qp: 4, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_2g5", clk_khz: 39_062, n_qp: 4, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_10g_x16", clk_khz: 156_250, n_qp: 16, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_25g_x16", clk_khz: 390_625, n_qp: 16, kind: Kind::Roce },
    Top { module: "penstock_100g", class: "Vboard_100g_x16", clk_khz: 322_266, n_qp: 16, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_10g_tcp_x16", clk_khz: 156_250, n_qp: 16, kind: Kind::Tcp },
    Top { module: "penstock_xgmii", class: "Vboard_25g_tcp_x16", clk_khz: 390_625, n_qp: 16, kind: Kind::Tcp },
    Top { module: "penstock_100g", class: "Vboard_100g_tcp_x16", clk_khz: 322_266, n_qp: 16, kind: Kind::Tcp },
    Top { module: "penstock_xgmii", class: "Vboard_10g_memory", clk_khz: 156_250, n_qp: 4, kind: Kind::RoceInMemory },
];

/// The QCN switch at 10 and 1 Gb/s: module, class, whether it has its management port. That at 10 Gb/s is a node of the
/// laboratory, which sets it by its pins and runs faster without; that at 1 Gb/s is a live one, too.
const SWITCHES: [(&str, &str, bool); 2] =
    [("penstock_switch", "Vqcn_switch", false), ("penstock_switch_1g", "Vqcn_switch_1g", true)];

/// The numbers of `penstock_wire::gateware`; `Board::set_events` compares them with the board's registers.
const N_IN: usize = 4;
const EVENT_BYTES: usize = 512 * 1024;
/// The ring of `src/top.rs`: in memory, of as many packets of 4096 bytes as a front end keeps at most.
const MEMORY_RING_BYTES: usize = 4 << 20;
const MEMORY_SLOTS: usize = 1024;
/// Fragments that a queue pair keeps for its server.
const PULL_SLOTS: usize = 256;
/// Accepted triggers that wait for their events: those of a digitiser that stores that many.
const TRIGGERS: usize = 8192;

fn main() {
    let repo = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap();
    let python = python(&repo);

    for watched in ["tb/lib/rtl.py", "tb/lib/models.py", "tb/lib/toolchain.py", "crates/board/cpp", "rtl/verilator.vlt"]
    {
        println!("cargo::rerun-if-changed={}", repo.join(watched).display());
    }
    println!("cargo::rerun-if-changed={}", repo.join("requirements.txt").display());
    // Of the register map; what Python has compiled beside it changes nothing.
    for entry in fs::read_dir(repo.join("regs")).unwrap_or_else(|e| panic!("regs/: {e}")) {
        let path = entry.unwrap().path();
        if path.extension().is_some() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-env-changed=PENSTOCK_PYTHON");

    if !checked_alone() {
        let profile = Profile::find(repo.join("build/profile"));
        build_gateware(&repo, &python, &profile);
    }
}

/// Clippy links nothing, and cargo runs this script for it once more: it needs no gateware.
fn checked_alone() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER");
    wrapper.is_some_and(|wrapper| Path::new(&wrapper).file_stem().is_some_and(|name| name == "clippy-driver"))
}

/// What is known of how a simulation runs through the models.
enum Profile {
    /// The objects write it into this folder when the command ends.
    Recorded(PathBuf),
    /// A run has written it into this folder.
    Used(PathBuf),
    None,
}

impl Profile {
    fn find(folder: PathBuf) -> Profile {
        // Cargo runs this script again if what it watches is missing, or newer than its last run began.
        if !folder.exists() {
            fs::create_dir_all(&folder)
                .and_then(|()| fs::File::open(&folder)?.set_modified(SystemTime::UNIX_EPOCH))
                .unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        }
        println!("cargo::rerun-if-changed={}", folder.display());
        println!("cargo::rerun-if-env-changed=PENSTOCK_PROFILE");
        match env::var("PENSTOCK_PROFILE").as_deref() {
            Ok("record") => Profile::Recorded(folder),
            Ok("") | Err(_) if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) => {
                Profile::Used(folder)
            }
            Ok("") | Err(_) => Profile::None,
            Ok(other) => panic!("PENSTOCK_PROFILE={other}: allowed is `record`"),
        }
    }

    /// Has g++ compile what runs in each cycle. Without a profile smaller is faster (3 % against -O3): a cycle runs
    /// through all of the code once. With one, the parts that a cycle does not run through lie elsewhere.
    fn apply(&self, build: &mut cc::Build) {
        let is_gnu = build.get_compiler().is_like_gnu();
        match self {
            Profile::Recorded(folder) => {
                assert!(is_gnu, "PENSTOCK_PROFILE=record: g++ records a profile, no other compiler");
                println!("cargo::rustc-link-lib=gcov");
                build.opt_level(2).flag(format!("-fprofile-generate={}", folder.display()));
            }
            Profile::Used(_) if is_gnu => {
                build.opt_level(2);
                // Boards run on threads of their own and count together. Models that the run had not, and those of a
                // gateware that has changed since, have no profile.
                for flag in ["-fprofile-correction", "-Wno-missing-profile", "-Wno-coverage-mismatch"] {
                    build.flag(flag);
                }
            }
            _ => {
                build.opt_level_str("s");
            }
        }
    }
}

/// One model of a top.
struct Model {
    module: &'static str,
    class: &'static str,
    generics: Vec<String>,
}

/// The objects of all models, in one library. `tb/lib/models.py` keeps them: it makes those whose sources, generics,
/// flags or tools have changed.
fn build_gateware(repo: &Path, python: &Path, profile: &Profile) {
    let root = PathBuf::from(run(Command::new(python).arg(repo.join("tb/lib/toolchain.py"))).trim());
    let mut tops = Vec::from(DEFAULT);
    let all_tops = env::var_os("CARGO_FEATURE_ALL_TOPS").is_some();
    if all_tops {
        tops.extend(FURTHER);
    }
    let mut models: Vec<Model> =
        tops.iter().map(|top| Model { module: top.module, class: top.class, generics: top.generics() }).collect();
    models.extend(SWITCHES.map(|(module, class, with)| {
        let generics = vec![format!("-GMANAGEMENT={}", u8::from(with))];
        Model { module, class, generics }
    }));

    let include = root.join("include");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("gnu++20")
        .debug(false)
        .warnings(false)
        .flag_if_supported("-fno-plt")
        .define("VL_IGNORE_UNKNOWN_ARCH", None)
        .include(&include)
        .include(include.join("vltstd"));
    let start = command(build.clone().opt_level(0));
    profile.apply(&mut build);
    let clocked = command(&mut build);

    let arguments = |model: &Model| {
        let words = [model.class, "--top", model.module, "--start", &start, "--"];
        words.into_iter().map(str::to_owned).chain(model.generics.iter().cloned()).collect()
    };
    let runtime = |name| include.join(name).display().to_string();
    let mut jobs: Vec<Vec<String>> = models.iter().map(arguments).collect();
    jobs.push(vec!["runtime".into(), "--".into(), runtime("verilated.cpp"), runtime("verilated_threads.cpp")]);
    let mut library = cc::Build::new();
    library.cpp(true);
    for output in made(repo, python, profile, &clocked, &jobs) {
        let mut paths = output.lines().map(PathBuf::from);
        library.objects(objects(&paths.next().unwrap()));
        if let Some(headers) = paths.next() {
            build.include(headers);
        }
        // What is generated is newer than the beginning of this run.
        for path in paths.filter(|path| !path.starts_with(repo.join("build"))) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    if all_tops {
        build.define("PENSTOCK_ALL_TOPS", None);
    }
    let sources =
        ["board.cpp", "switch.cpp"].map(|name| repo.join("crates/board/cpp").join(name).display().to_string());
    let pins = [vec!["pins".into(), "--".into()], sources.into()].concat();
    let outputs = made(repo, python, profile, &command(&mut build), &[pins]);
    library.objects(objects(Path::new(outputs[0].trim()))).compile("penstock_board");
    println!("cargo::rustc-link-lib=pthread");
}

/// What `tb/lib/models.py` prints of each of these models, as many at a time as cargo has jobs.
fn made(repo: &Path, python: &Path, profile: &Profile, clocked: &str, jobs: &[Vec<String>]) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let printed = Mutex::new(vec![String::new(); jobs.len()]);
    let at_once = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(1);
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(words) = jobs.get(at) else { break };
                let mut command = Command::new(python);
                command.arg(repo.join("tb/lib/models.py")).args(["--clocked", clocked]);
                if let Profile::Used(folder) = profile {
                    command.arg("--profile").arg(folder);
                }
                let output = run(command.args(words));
                printed.lock().unwrap()[at] = output;
            });
        }
    });
    printed.into_inner().unwrap()
}

/// The objects in a folder.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "o"));
    found.sort();
    found
}

/// The compiler and its flags, as a shell would read them.
fn command(build: &mut cc::Build) -> String {
    let tool = build.get_compiler();
    let command = tool.to_command();
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_str().expect("in UTF-8").to_owned()).collect::<Vec<_>>().join(" ")
}

/// The interpreter that has the pinned tools: `PENSTOCK_PYTHON`, else the repository's `.venv`.
fn python(repo: &Path) -> PathBuf {
    let python = env::var_os("PENSTOCK_PYTHON").map_or_else(|| repo.join(".venv/bin/python"), PathBuf::from);
    assert!(python.exists(), "{} is missing: run `make setup` once (or set PENSTOCK_PYTHON)", python.display());
    python
}

impl Top {
    fn generics(&self) -> Vec<String> {
        let mut generics = vec![format!("-GN_QP={}", self.n_qp), format!("-GCLK_KHZ={}", self.clk_khz)];
        if !matches!(self.kind, Kind::Flows) {
            generics.extend(["-GTIMING=1", "-GHOOK=1", "-GSTREAMING=1"].map(str::to_owned));
            generics.extend([
                format!("-GN_IN={N_IN}"),
                format!("-GEVENT_BYTES={EVENT_BYTES}"),
                format!("-GTRIGGERS={TRIGGERS}"),
            ]);
        }
        match self.kind {
            Kind::Roce => {}
            Kind::Flows => generics.extend(["-GWITH_SOURCE=0", "-GWITH_SERVICES=0"].map(str::to_owned)),
            Kind::Reads => {
                generics
                    .extend(["-GSTORE=1", "-GWITH_READ=1", "-GWITH_RECEIVE=1", "-GWITH_RDMA_CM=1"].map(str::to_owned));
                generics.push(format!("-GPULL_SLOTS={PULL_SLOTS}"));
            }
            Kind::RoceInMemory => {
                generics.push("-GSTORE=1".to_owned());
                generics.extend([format!("-GRING_BYTES={MEMORY_RING_BYTES}"), format!("-GSLOTS={MEMORY_SLOTS}")]);
            }
            Kind::Tcp => {
                generics.extend(["-GWITH_ROCE=0".to_owned(), "-GWITH_TCP=1".to_owned()]);
                generics.push(format!("-GN_STREAMS={}", self.n_qp));
            }
        }
        generics
    }
}

/// Runs a tool and returns what it printed; its own message is shown when it fails.
fn run(command: &mut Command) -> String {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|e| panic!("cannot run {shown}: {e}"));
    assert!(
        output.status.success(),
        "{shown}\nended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
