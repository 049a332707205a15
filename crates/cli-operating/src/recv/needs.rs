// SPDX-License-Identifier: Apache-2.0
//! Options of `penstock recv` that need a back end.
//! Promise: an option that would have no effect is refused by name.

use super::arguments::{Arguments, BackendArguments};
use super::choices::{BackendName, GpuDirectChoice};
use clap::ValueEnum;
use penstock_cli_common::arguments::cm::CmName;
use penstock_readout::session::Manager;

/// Refuses the options of another back end: they would have no effect.
pub fn check_backend(given: &BackendArguments) -> Result<(), String> {
    use BackendName::{Packet, Tcp, Verbs};
    if given.pull && given.name == Tcp {
        return Err("--pull: TCP has no RDMA READ; use --backend verbs or packet".to_owned());
    }
    let options: [(&str, bool, &[BackendName]); 6] = [
        ("--socket", given.socket.is_some(), &[Packet]),
        ("--device", given.device.is_some(), &[Verbs]),
        ("--gid", given.gid.is_some(), &[Verbs]),
        ("--port", given.port.is_some(), &[Tcp]),
        ("--mtu", given.mtu.is_some(), &[Verbs, Packet]),
        ("--rnr-timer", given.rnr_timer.is_some(), &[Verbs, Packet]),
    ];
    match options.into_iter().find(|(_, is_given, of)| *is_given && !of.contains(&given.name)) {
        Some((option, _, of)) => {
            let named =
                |name: &BackendName| name.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
            let (of, chosen) = (of.iter().map(named).collect::<Vec<_>>().join(" and "), named(&given.name));
            Err(format!("{option}: an option of --backend {of}, not of {chosen}; leave it out"))
        }
        None => Ok(()),
    }
}

/// How boards and this server agree on their queue pairs.
pub fn manager(arguments: &Arguments) -> Result<Manager, String> {
    match (arguments.boards.cm, arguments.boards.exchange, arguments.backend.name) {
        (_, Some(_), BackendName::Tcp) => Err("--exchange: streams over TCP have no queue pairs".to_owned()),
        (_, Some(port), _) => Ok(Manager::Exchange(port)),
        (CmName::Feroce, None, _) => Ok(Manager::Feroce),
        (CmName::Rdma, None, BackendName::Tcp) => Err("--cm rdma: streams over TCP have no queue pairs".to_owned()),
        (CmName::Rdma, None, _) => Ok(Manager::Rdma(arguments.boards.cm_port)),
    }
}

/// Refuses --gpu-direct where memory of a GPU cannot be written.
pub fn check_direct(arguments: &Arguments) -> Result<(), String> {
    /// A kernel reads words, after a header of 40 bytes.
    const ALIGNMENT: u32 = 8;
    let slot_bytes = arguments.memory.slot_size;
    match arguments.gpu.gpu_direct {
        GpuDirectChoice::Off => Ok(()),
        GpuDirectChoice::On if arguments.backend.name != BackendName::Verbs => {
            Err("--gpu-direct on: only an RDMA NIC writes to a GPU: add --backend verbs".to_owned())
        }
        GpuDirectChoice::On if arguments.backend.pull => {
            Err("--gpu-direct on: with --pull fragments are read into memory of the host; leave one out".to_owned())
        }
        _ if !slot_bytes.is_multiple_of(ALIGNMENT) => {
            Err(format!("--slot-size {slot_bytes}: a multiple of {ALIGNMENT} with --gpu-direct"))
        }
        _ => Ok(()),
    }
}
