// SPDX-License-Identifier: Apache-2.0
//! The speed of this server's line as the kernel reports it, used by `--line` without a rate.
//! Promise: an implausible speed is rejected: TAP devices report a speed that is not that of any line.
//! Source: Documentation/ABI/testing/sysfs-class-net (`speed`, 10^6 bit/s), sysfs-class-infiniband (`gid_attrs/ndevs`).

use penstock_units::Rate;
use std::fs;
use std::path::Path;

/// The speed of `--iface`, or of the interface of the RDMA device; without either, of the only RDMA device.
///
/// # Errors
/// The kernel names no interface or no speed: what to do instead.
pub fn of_nic(iface: Option<&str>, device: Option<&str>) -> Result<Rate, String> {
    of(Path::new("/sys/class"), iface, device)
        .map_err(|why| format!("--line: {why}; give the rate, as in --line 10Gbps"))
}

fn of(class: &Path, iface: Option<&str>, device: Option<&str>) -> Result<Rate, String> {
    let of_device;
    let iface = match iface {
        Some(iface) => iface,
        None => {
            of_device = interface(class, device)?;
            &of_device
        }
    };
    let folder = class.join("net").join(iface);
    if !folder.exists() {
        return Err(format!("there is no interface {iface}"));
    }
    if folder.join("tun_flags").exists() {
        return Err(format!("{iface} is a TAP device, whose speed means nothing"));
    }
    // A driver that knows none says -1, or refuses; so does one whose link is down.
    let speed = fs::read_to_string(folder.join("speed")).ok().and_then(|text| text.trim().parse::<i64>().ok());
    match speed.filter(|speed| (1..i64::from(u32::MAX)).contains(speed)) {
        Some(speed) => Ok(Rate::from_mbps(speed as u64)),
        None => Err(format!("the kernel reports no speed of {iface}")),
    }
}

/// The Ethernet interface of an RDMA device.
fn interface(class: &Path, device: Option<&str>) -> Result<String, String> {
    let entries = |folder: &Path| -> Vec<_> {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let devices = entries(&class.join("infiniband"));
    let devices = devices.into_iter().filter(|path| device.is_none_or(|name| path.ends_with(name)));
    let ports = devices.flat_map(|device| entries(&device.join("ports")));
    let tables = ports.flat_map(|port| entries(&port.join("gid_attrs/ndevs")));
    let mut names: Vec<String> = tables.filter_map(|entry| fs::read_to_string(entry).ok()).collect();
    names.iter_mut().for_each(|name| *name = name.trim().to_owned());
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    match names.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(format!("{} has no Ethernet interface", device.unwrap_or("no RDMA device"))),
        _ => Err(format!("RDMA devices have several interfaces: {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_kernel_s_speed_is_taken_where_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "net/eth0/speed", "25000\n");
        put(root, "net/eth1/speed", "-1\n");
        put(root, "net/tap0/speed", "10\n");
        put(root, "net/tap0/tun_flags", "0x1002\n");
        fs::create_dir_all(root.join("net/lo")).unwrap();
        assert_eq!(of(root, Some("eth0"), None), Ok(Rate::from_gbps(25)));
        for (iface, why) in [
            ("eth1", "the kernel reports no speed of eth1"),
            ("lo", "the kernel reports no speed of lo"),
            ("tap0", "tap0 is a TAP device, whose speed means nothing"),
            ("eth7", "there is no interface eth7"),
        ] {
            assert_eq!(of(root, Some(iface), None), Err(why.to_owned()));
        }
        put(root, "infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        put(root, "infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1", "eth0\n");
        assert_eq!(of(root, None, None), Ok(Rate::from_gbps(25)));
        put(root, "infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "eth1\n");
        assert_eq!(of(root, None, None), Err("RDMA devices have several interfaces: eth0, eth1".to_owned()));
        assert_eq!(of(root, None, Some("mlx5_0")), Ok(Rate::from_gbps(25)));
        assert_eq!(of(root, None, Some("mlx5_9")), Err("mlx5_9 has no Ethernet interface".to_owned()));
    }
}
