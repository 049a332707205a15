// SPDX-License-Identifier: Apache-2.0
//! Keeps a thread and the memory it allocates on one NUMA node, that of the NIC, so that no packet crosses sockets.
//! Promise: a node that does not exist, or whose CPUs this process may not use, is an error that lists the nodes.
//! Source: kernel documentation `ABI/stable/sysfs-devices-node`; set_mempolicy(2), sched_setaffinity(2).

use std::fs;
use std::io;
use std::path::Path;

use libc::{c_int, c_ulong, cpu_set_t};

const NODES: &str = "/sys/devices/system/node";

/// Why a thread cannot stay on a node.
#[derive(Debug, thiserror::Error)]
pub enum NumaError {
    #[error("this machine has no NUMA node {node}; it has: {there}")]
    NoNode { node: u32, there: String },
    #[error("NUMA node {node} has CPUs {cpus}, of which this process may use none (taskset, cpuset)")]
    NoCpu { node: u32, cpus: String },
    #[error("{device} does not say at which NUMA node it is; give the node's number")]
    NoDevice { device: String },
    #[error("{action} of NUMA node {node}: {source}")]
    Io { action: &'static str, node: u32, source: io::Error },
}

/// The node of a network interface or an RDMA device.
///
/// # Errors
/// `NoDevice`: it is virtual, or the machine has one node and does not number it.
pub fn node_of_device(name: &str) -> Result<u32, NumaError> {
    let places = ["net", "infiniband"].map(|class| format!("/sys/class/{class}/{name}/device/numa_node"));
    let texts = places.iter().filter_map(|place| fs::read_to_string(place).ok());
    let node = texts.filter_map(|text| text.trim().parse().ok()).next();
    node.ok_or_else(|| NumaError::NoDevice { device: name.to_owned() })
}

/// Keeps the calling thread, and all that it starts later, on the CPUs of a node, and takes their memory from that node
/// as long as it has some.
///
/// # Errors
/// [`NumaError`]
pub fn stay_on_node(node: u32) -> Result<(), NumaError> {
    let cpus = fs::read_to_string(Path::new(NODES).join(format!("node{node}/cpulist")));
    let cpus = cpus.map_err(|_| NumaError::NoNode { node, there: nodes() })?;
    let listed = parse_list(cpus.trim());
    let failed = |action| move |source| NumaError::Io { action, node, source };
    let mut allowed = no_cpus();
    // SAFETY: a set to write to, of the size given; 0 is the calling thread.
    check(unsafe { libc::sched_getaffinity(0, size_of::<cpu_set_t>(), &mut allowed) }).map_err(failed("CPUs"))?;
    let mut set = no_cpus();
    let mut count = 0;
    for cpu in listed.into_iter().filter(|cpu| *cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is one that a set holds.
        if unsafe { libc::CPU_ISSET(cpu, &allowed) } {
            // SAFETY: as above.
            unsafe { libc::CPU_SET(cpu, &mut set) };
            count += 1;
        }
    }
    if count == 0 {
        return Err(NumaError::NoCpu { node, cpus: cpus.trim().to_owned() });
    }
    // SAFETY: a set of the size given.
    check(unsafe { libc::sched_setaffinity(0, size_of::<cpu_set_t>(), &set) }).map_err(failed("CPUs"))?;
    match prefer_memory(node) {
        // A kernel that knows no nodes has all memory on one.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        result => result.map_err(failed("memory")),
    }
}

fn prefer_memory(node: u32) -> io::Result<()> {
    const BITS: usize = c_ulong::BITS as usize;
    let mut mask = [0 as c_ulong; 1024 / BITS];
    let word = mask.get_mut(node as usize / BITS).ok_or(io::ErrorKind::InvalidInput)?;
    *word = 1 << (node as usize % BITS);
    // SAFETY: a mask of this many bits, which the call only reads. The kernel wants one more than there are.
    let result =
        unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_PREFERRED, mask.as_ptr(), mask.len() * BITS + 1) };
    check(result as c_int)
}

fn no_cpus() -> cpu_set_t {
    // SAFETY: all-zero is the empty set.
    unsafe { std::mem::zeroed() }
}

/// The machine's nodes, for people.
fn nodes() -> String {
    fs::read_to_string(Path::new(NODES).join("online")).map_or_else(|_| "none".into(), |text| text.trim().to_owned())
}

/// Numbers of a list as the kernel writes it: `0-3,8`.
fn parse_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_list(""), [0; 0]);
    }

    #[test]
    fn a_node_that_is_not_there_is_refused_with_what_there_is() {
        let error = stay_on_node(1000).unwrap_err().to_string();
        assert!(error.starts_with("this machine has no NUMA node 1000; it has: "), "{error}");
        let error = node_of_device("lo").unwrap_err().to_string();
        assert!(error.contains("lo does not say"), "{error}");
    }

    /// Where the kernel knows nodes at all; the thread that stays there is this test's own.
    #[test]
    fn a_thread_stays_on_a_node_that_is_there() {
        if !Path::new(NODES).join("node0").exists() {
            assert!(matches!(stay_on_node(0), Err(NumaError::NoNode { .. })));
            return;
        }
        std::thread::spawn(|| {
            stay_on_node(0).unwrap();
            let mut policy: c_int = -1;
            let none = std::ptr::null_mut::<c_ulong>();
            // SAFETY: an integer to write to, and no mask.
            let result = unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut policy, none, 0, 0, 0) };
            assert!(result != 0 || policy == libc::MPOL_PREFERRED, "policy {policy}");
        })
        .join()
        .unwrap();
    }
}
