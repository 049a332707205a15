// SPDX-License-Identifier: Apache-2.0
//! A TAP device as a wire: the host's own kernel is at the far end.
//! Promise: attaches to a device of the given name, creates it if the rights suffice, and brings it up.

use super::losses::Losses;
use super::wire::{wait_fd, Sent, Wire, WireError, MAX_FRAME};
use bytes::Bytes;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use penstock_units::Time;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// A TAP device.
pub struct Tap {
    device: SyncDevice,
    name: String,
    buffer: Vec<u8>,
    losses: Losses,
}

impl Tap {
    /// Opens TAP device `name`.
    ///
    /// # Errors
    /// No right, no such driver, in use, or a device of another kind.
    pub fn open(name: &str) -> Result<Self, WireError> {
        let failed = |source: io::Error| match source.kind() {
            ErrorKind::PermissionDenied => WireError::TapPermission { name: name.into() },
            _ => WireError::Tap { name: name.into(), source },
        };
        // The library would make the node itself, which is the administrator's to do.
        if !Path::new("/dev/net/tun").exists() {
            return Err(WireError::NoTun);
        }
        // The kernel takes no name for "any that is free".
        if name.is_empty() {
            return Err(failed(io::Error::new(ErrorKind::InvalidInput, "a name of an interface has 1 to 15 bytes")));
        }
        let builder = DeviceBuilder::new().name(name).layer(Layer::L2).inherit_enable_state();
        let device = builder.build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        // Who was given the device but not the right to bring it up must have done so before.
        if !is_up(name) {
            device.enabled(true).map_err(failed)?;
        }
        Ok(Self { device, name: name.into(), buffer: vec![0; MAX_FRAME], losses: Losses::new() })
    }

    fn broken(&self, source: io::Error) -> WireError {
        WireError::Tap { name: self.name.clone(), source }
    }
}

/// Whether the interface is up; one that cannot be looked at counts as down.
fn is_up(name: &str) -> bool {
    let Ok(mut all) = getifaddrs() else { return false };
    all.any(|interface| interface.interface_name == name && interface.flags.contains(InterfaceFlags::IFF_UP))
}

/// EIO: the interface is down.
fn is_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EIO)
}

impl Wire for Tap {
    fn send(&mut self, _now: Time, frame: &Bytes) -> Result<Sent, WireError> {
        match self.device.send(frame) {
            Ok(_) => Ok(self.losses.accepted()),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                // The device was deleted.
                None | Some(Errno::EBADFD) => Err(self.broken(error)),
                Some(Errno::EINTR) => Ok(Sent::Full),
                Some(errno) => Ok(self.losses.refused(&self.name, errno, frame.len())),
            },
        }
    }

    fn receive(&mut self, _now: Time) -> Result<Option<Bytes>, WireError> {
        match self.device.recv(&mut self.buffer) {
            Ok(len) => Ok(Some(Bytes::copy_from_slice(&self.buffer[..len]))),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) if is_down(&error) => Ok(None),
            Err(error) => Err(self.broken(error)),
        }
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }

    fn wait(&mut self, timeout: Duration, room: bool) -> Result<(), WireError> {
        wait_fd(self.device.as_fd(), timeout, room)
    }
}
