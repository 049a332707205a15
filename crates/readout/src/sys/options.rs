// SPDX-License-Identifier: Apache-2.0
//! Socket options and results of system calls, as `Result`s.
//! Promise: an option is read and written with the length of its type.
//! Source: setsockopt(2), getsockopt(2).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use libc::{c_int, socklen_t};

pub(super) fn set_option<T>(socket: &impl AsRawFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (value, len) = ((value as *const T).cast(), size_of::<T>() as socklen_t);
    // SAFETY: a value of the length given, that lives over the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) }).map(|_| ())
}

pub(super) fn get_option<T>(socket: &impl AsRawFd, level: c_int, option: c_int) -> io::Result<T> {
    let (mut value, mut len) = (MaybeUninit::<T>::zeroed(), size_of::<T>() as socklen_t);
    // SAFETY: room for a value of the length given; the types asked for here are integers and structs of such, for which all-zero is valid.
    unsafe {
        check(libc::getsockopt(socket.as_raw_fd(), level, option, value.as_mut_ptr().cast(), &mut len))?;
        Ok(value.assume_init())
    }
}

/// How long ago the peer of a TCP connection was heard of last: it has acknowledged or sent something.
///
/// # Errors
/// That of getsockopt(2).
pub fn time_since_arrival(socket: &impl AsRawFd) -> io::Result<Duration> {
    let info: libc::tcp_info = get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(Duration::from_millis(info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv).into()))
}

/// The errors of a socket since the last call.
///
/// # Errors
/// `ENETDOWN` when its interface was taken down or is gone.
pub(super) fn take_error(socket: &impl AsRawFd) -> io::Result<()> {
    match get_option::<c_int>(socket, libc::SOL_SOCKET, libc::SO_ERROR)? {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
