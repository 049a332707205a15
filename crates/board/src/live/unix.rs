// SPDX-License-Identifier: Apache-2.0
//! A Unix datagram socket as a wire, one frame a datagram: the other end is a virtual machine of QEMU with
//! `-netdev dgram,local.type=unix,local.path=REMOTE,remote.type=unix,remote.path=LOCAL`.
//! Promise: loses nothing while the peer is alive; a slow peer stops the board's clock. A peer that starts later, or
//! returns, is found by the next frame. The socket file is removed at the end.

use super::losses::Losses;
use super::wire::{wait_fd, Sent, Wire, WireError, MAX_FRAME};
use bytes::Bytes;
use nix::errno::Errno;
use nix::libc;
use penstock_units::Time;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One end of a pair of Unix datagram sockets.
pub struct UnixWire {
    socket: UnixDatagram,
    local: PathBuf,
    remote: PathBuf,
    /// Only a connected socket can be polled for the room that its peer has.
    connected: bool,
    buffer: Vec<u8>,
    losses: Losses,
}

impl UnixWire {
    /// Binds `local`; frames go to the socket at `remote`, which may come later.
    ///
    /// # Errors
    /// Another program holds `local`, it is no socket, or its folder cannot be written.
    pub fn open(local: impl Into<PathBuf>, remote: impl Into<PathBuf>) -> Result<Self, WireError> {
        let (local, remote) = (local.into(), remote.into());
        remove_stale(&local)?;
        let failed = |source| WireError::Unix { path: local.clone(), source };
        let socket = UnixDatagram::bind(&local).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self { socket, local, remote, connected: false, buffer: vec![0; MAX_FRAME], losses: Losses::new() })
    }

    /// Sends to the peer that we are connected to, or connects first.
    fn try_send(&mut self, frame: &[u8]) -> io::Result<()> {
        if !self.connected {
            self.socket.connect(&self.remote)?;
            self.connected = true;
        }
        self.socket.send(frame).map(drop)
    }

    fn broken(&self, source: io::Error) -> WireError {
        WireError::Unix { path: self.remote.clone(), source }
    }
}

/// Removes the socket file of a program that has ended.
fn remove_stale(path: &Path) -> Result<(), WireError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(WireError::NotSocket { path: path.into() });
    }
    let failed = |source| WireError::Unix { path: path.into(), source };
    match UnixDatagram::unbound().map_err(failed)?.connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path).map_err(failed),
        Ok(()) => Err(WireError::InUse { path: path.into() }),
        Err(error) => Err(failed(error)),
    }
}

impl Wire for UnixWire {
    fn send(&mut self, _now: Time, frame: &Bytes) -> Result<Sent, WireError> {
        // A peer that has gone shows at the first attempt; a new one at the same path gets the second.
        for _ in 0..2 {
            match self.try_send(frame) {
                Ok(()) => return Ok(self.losses.accepted()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(Sent::Full);
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM | libc::EMSGSIZE)) => {
                    let (name, errno) = (self.remote.display().to_string(), error.raw_os_error().unwrap_or(0));
                    return Ok(self.losses.refused(&name, Errno::from_raw(errno), frame.len()));
                }
                Err(error) => match error.kind() {
                    ErrorKind::NotFound
                    | ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::NotConnected => self.connected = false,
                    _ => return Err(self.broken(error)),
                },
            }
        }
        Ok(Sent::Lost)
    }

    fn receive(&mut self, _now: Time) -> Result<Option<Bytes>, WireError> {
        match self.socket.recv(&mut self.buffer) {
            Ok(len) => Ok(Some(Bytes::copy_from_slice(&self.buffer[..len]))),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused => {
                    self.connected = false;
                    Ok(None)
                }
                _ => Err(self.broken(error)),
            },
        }
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn wait(&mut self, timeout: Duration, room: bool) -> Result<(), WireError> {
        // A connected socket accepts only datagrams of its peer; a restarted peer must first become the peer.
        self.connected = self.socket.connect(&self.remote).is_ok();
        wait_fd(self.socket.as_fd(), timeout, room)
    }
}

impl Drop for UnixWire {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.local);
    }
}
