// SPDX-License-Identifier: Apache-2.0
//! The waiting time for a queue or an interface that another process has just released.
//! Promise: bounded over all queues together; the wait is reported once.
//! Source: the kernel reclaims the queue and the program of a process some time after the process has ended.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(5);
/// After this time a message says what the program waits for.
const NOTICED: Duration = Duration::from_millis(500);

pub(super) struct Patience {
    name: String,
    limit: Duration,
    begun: Instant,
    reported: Cell<bool>,
}

impl Patience {
    pub(super) fn new(name: &str, limit: Duration) -> Patience {
        Patience { name: name.to_owned(), limit, begun: Instant::now(), reported: Cell::new(false) }
    }

    /// Tries again as long as another one has it.
    ///
    /// # Errors
    /// The kernel's error; `EBUSY` when the time is over.
    pub(super) fn until_let_go<T>(&self, mut take: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            match take() {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && self.begun.elapsed() < self.limit => {
                    if self.begun.elapsed() > NOTICED && !self.reported.replace(true) {
                        let (name, limit) = (&self.name, self.limit.as_secs_f64());
                        tracing::warn!("{name}: AF_XDP is in use by another process; waiting for up to {limit} s");
                    }
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_busy_is_tried_again_until_it_is_free_and_no_longer_than_the_limit() {
        let busy = || io::Error::from_raw_os_error(libc::EBUSY);
        let mut tries = 0;
        let freed = Patience::new("eth0", Duration::from_secs(600)).until_let_go(|| {
            tries += 1;
            if tries < 4 {
                Err(busy())
            } else {
                Ok(tries)
            }
        });
        assert_eq!(freed.unwrap(), 4);
        let never = Patience::new("eth0", Duration::from_millis(20)).until_let_go(|| Err::<(), _>(busy()));
        assert_eq!(never.unwrap_err().raw_os_error(), Some(libc::EBUSY));
        let mut tries = 0;
        let other = Patience::new("eth0", Duration::from_secs(600)).until_let_go(|| {
            tries += 1;
            Err::<(), _>(io::Error::from_raw_os_error(libc::EPERM))
        });
        assert_eq!((other.unwrap_err().raw_os_error(), tries), (Some(libc::EPERM), 1));
    }
}
