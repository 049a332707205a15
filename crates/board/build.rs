// SPDX-License-Identifier: Apache-2.0
//! Turns the tops of `rtl/top` into a static library: register map by `regs/generate.py`,
//! C++ by Verilator, objects by g++. Nothing is generated into the source tree but `build/`.
//! Feature `all-tops` adds front ends at other rates, with more queue pairs, and with rings in memory; each takes as long
//! as the first.
//! With `PENSTOCK_PROFILE=record` the objects write into `build/profile` what a run of them does; a later build is
//! compiled by that (`make profile`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

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
    /// Queue pairs, their rings in AXI4 memory.
    RoceInMemory,
    /// Streams instead of queue pairs.
    Tcp,
}

const DEFAULT: [Top; 3] = [
    Top { module: "penstock_xgmii", class: "Vboard", clk_khz: 156_250, n_qp: 4, kind: Kind::Roce },
    Top { module: "penstock_xgmii", class: "Vboard_flows", clk_khz: 156_250, n_qp: 4, kind: Kind::Flows },
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

/// As `penstock_wire::gateware` has them; `Board::set_events` compares them with the board's registers.
const N_IN: usize = 4;
const EVENT_BYTES: usize = 512 * 1024;
/// As `src/top.rs` has it: a ring in memory, of as many packets of 4096 bytes as a front end keeps at most.
const MEMORY_RING_BYTES: usize = 4 << 20;
const MEMORY_SLOTS: usize = 1024;
/// Accepted triggers that wait for their events: those of a digitiser that stores that many.
const TRIGGERS: usize = 8192;

fn main() {
    let repo = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap();
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let python = python(&repo);

    for watched in ["tb/lib/rtl.py", "tb/lib/toolchain.py", "crates/board/cpp", "requirements.txt"] {
        println!("cargo::rerun-if-changed={}", repo.join(watched).display());
    }
    // Proofs and scripts of synthesis lie beside the gateware, what Python has compiled beside the register map: both
    // change nothing of it.
    let beside = |path: &PathBuf| ["formal", "syn", "__pycache__"].iter().any(|name| path.ends_with(name));
    for folder in ["rtl", "regs"] {
        let entries = fs::read_dir(repo.join(folder)).unwrap_or_else(|e| panic!("{folder}/: {e}"));
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| !beside(path)) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    println!("cargo::rerun-if-env-changed=PENSTOCK_PYTHON");

    if checked_alone() {
        run(Command::new(&python).arg(repo.join("regs/generate.py")));
    } else {
        let profile = Profile::find(repo.join("build/profile"));
        build_gateware(&repo, &out, &python, &profile);
    }

    for name in ["penstock_regs.rs", "qcn_switch_regs.rs"] {
        let constants = repo.join("build/gen").join(name);
        fs::copy(&constants, out.join(name))
            .unwrap_or_else(|e| panic!("{}: {e}; `make regs` writes it", constants.display()));
    }
}

/// Clippy links nothing, and cargo runs this script for it once more: it needs the registers and no gateware.
fn checked_alone() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER");
    wrapper.is_some_and(|wrapper| Path::new(&wrapper).file_stem().is_some_and(|name| name == "clippy-driver"))
}

/// What is known of how a simulation runs through the models.
enum Profile {
    /// The objects write it into this folder when the command ends.
    Recorded(PathBuf),
    /// The files of g++ that a run has written.
    Used(Vec<PathBuf>),
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
            Ok("record") => return Profile::Recorded(folder),
            Ok("") | Err(_) => {}
            Ok(other) => panic!("PENSTOCK_PROFILE={other}: allowed is `record`"),
        }
        let mut files = Vec::new();
        collect_profiles(&folder, &mut files);
        if files.is_empty() {
            Profile::None
        } else {
            Profile::Used(files)
        }
    }

    /// Has g++ compile what runs in each cycle. Without a profile smaller is faster (3 % against -O3): a cycle runs
    /// through all of the code once. With one, the parts that a cycle does not run through lie elsewhere.
    fn apply(&self, build: &mut cc::Build, out: &Path) {
        let is_gnu = build.get_compiler().is_like_gnu();
        match self {
            Profile::Recorded(folder) => {
                assert!(is_gnu, "PENSTOCK_PROFILE=record: g++ records a profile, no other compiler");
                println!("cargo::rustc-link-lib=gcov");
                build.opt_level(2).flag(format!("-fprofile-generate={}", folder.display()));
            }
            Profile::Used(files) if is_gnu => {
                // g++ looks for a profile by the whole path of its object, which is another for each set of features.
                let own = out.join("profile");
                let folder = own.join(out.strip_prefix("/").unwrap());
                let _ = fs::remove_dir_all(&own);
                fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
                for file in files {
                    fs::copy(file, folder.join(file.file_name().unwrap()))
                        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                }
                build.opt_level(2).flag(format!("-fprofile-use={}", own.display()));
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

/// The files of a profile under a folder.
fn collect_profiles(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).map(|e| e.unwrap().path())
    {
        if path.is_dir() {
            collect_profiles(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "gcda") {
            found.push(path);
        }
    }
}

fn build_gateware(repo: &Path, out: &Path, python: &Path, profile: &Profile) {
    let root = run(Command::new(python).arg(repo.join("tb/lib/toolchain.py")));
    let root = PathBuf::from(root.trim());

    let mut tops = Vec::from(DEFAULT);
    if env::var_os("CARGO_FEATURE_ALL_TOPS").is_some() {
        tops.extend(FURTHER);
    }
    let _ = fs::remove_dir_all(out.join("verilated"));
    let mut verilated = Vec::new();
    let generics = tops.iter().map(|top| (top.module, top.class, top.generics()));
    let switches =
        SWITCHES.map(|(module, class, with)| (module, class, vec![format!("-GMANAGEMENT={}", u8::from(with))]));
    for (module, class, generics) in generics.chain(switches) {
        let mdir = out.join("verilated").join(class);
        fs::create_dir_all(&mdir).unwrap_or_else(|e| panic!("{}: {e}", mdir.display()));
        let arguments = run(Command::new(python).arg(repo.join("tb/lib/rtl.py")).arg(module));
        verilate(&root, &mdir, module, class, generics, arguments.lines());
        verilated.push(mdir);
    }
    compile(repo, &root, &verilated, tops.len() > DEFAULT.len(), |build| profile.apply(build, out));
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

fn verilate<'a>(
    root: &Path,
    mdir: &Path,
    module: &str,
    class: &str,
    generics: Vec<String>,
    sources_and_options: impl Iterator<Item = &'a str>,
) {
    let mut command = Command::new(root.join("bin/verilator_bin"));
    command.env("VERILATOR_ROOT", root);
    command.args(["--cc", "--no-timing", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert"]);
    // The longest loop of a cycle is that over the counters; what is not unrolled is a loop at run time.
    command.args(["-Wno-fatal", "--threads", "1", "--output-split", "20000", "--unroll-count", "128"]);
    command.args(["--prefix", class, "--top-module", module]).args(generics);
    command.arg("-Mdir").arg(mdir).args(sources_and_options);
    run(&mut command);
}

/// Verilator makes dozens of files, each of which reads one header of half a megabyte: reading takes longer than
/// compiling, so the files of a top are joined into few. What runs only at the start of a simulation (Verilator says so
/// by the file's name) is compiled without optimisation.
fn compile(repo: &Path, root: &Path, verilated: &[PathBuf], all_tops: bool, optimise: impl Fn(&mut cc::Build)) {
    let (mut slow, mut fast) = (Vec::new(), Vec::new());
    for mdir in verilated {
        let mut sources: Vec<PathBuf> = fs::read_dir(mdir).unwrap().map(|e| e.unwrap().path()).collect();
        sources.retain(|p| p.extension().is_some_and(|e| e == "cpp"));
        sources.sort();
        let (start, clocked): (Vec<_>, Vec<_>) =
            sources.into_iter().partition(|p| p.file_stem().unwrap().to_string_lossy().ends_with("__Slow"));
        let (left, right) = clocked.split_at(clocked.len() / 2);
        slow.push(joined(mdir, "start", &start));
        fast.extend([joined(mdir, "clocked_left", left), joined(mdir, "clocked_right", right)]);
    }
    let include = root.join("include");
    let mut build = cc::Build::new();
    if all_tops {
        build.define("PENSTOCK_ALL_TOPS", None);
    }
    build
        .cpp(true)
        .std("gnu++20")
        .debug(false)
        .warnings(false)
        .flag_if_supported("-fno-plt")
        .define("VL_IGNORE_UNKNOWN_ARCH", None)
        .includes(verilated)
        .include(&include)
        .include(include.join("vltstd"));
    build.clone().opt_level(0).files(slow).compile("penstock_board_start");
    optimise(&mut build);
    build
        .files(fast)
        .file(include.join("verilated.cpp"))
        .file(include.join("verilated_threads.cpp"))
        .file(repo.join("crates/board/cpp/board.cpp"))
        .file(repo.join("crates/board/cpp/switch.cpp"))
        .compile("penstock_board");
    println!("cargo::rustc-link-lib=pthread");
}

/// A source that includes these others.
fn joined(mdir: &Path, name: &str, sources: &[PathBuf]) -> PathBuf {
    let path = mdir.join(format!("{name}.cc"));
    let text: String = sources.iter().map(|p| format!("#include {:?}\n", p.file_name().unwrap())).collect();
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
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
