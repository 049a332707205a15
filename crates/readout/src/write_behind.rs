// SPDX-License-Identifier: Apache-2.0
//! Background storage: threads that encode row groups, and one that writes them in order and syncs.
//! Promise: row groups reach the disk in the order they were pushed, for any number of encoding threads; pushed data is
//! kept until it is on disk. A disk error is reported to the pushing side, and the write is retried on its request.
//! No clock is read here.
//!
//! ```text
//! push -> | batch | batch | being encoded | segment | <- writer: write, sync, rename
//!         +---- encoders take batches from here ----+
//! ```

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::errors::ParquetError;

use crate::event_file::Encoder;
use crate::sink::{Kept, StoreError};

/// The state of the writing thread.
pub(crate) trait Files: Send + 'static {
    /// Writes a row group. A failed step is retried.
    fn write(&mut self, segment: &Bytes) -> Result<(), StoreError>;

    /// Closes the open file, if any. A failed step is retried.
    fn end_file(&mut self) -> Result<(), StoreError>;

    /// Files closed since the last call.
    fn take_closed(&mut self) -> Vec<PathBuf>;

    /// Whether the open file, if any, is where it is written.
    fn is_there(&self) -> bool;

    /// The name of a failure that is not the disk's.
    fn broken(&self, source: ParquetError) -> StoreError;
}

#[derive(Debug)]
enum Work {
    Batch(RecordBatch),
    /// An encoder has it.
    Encoding,
    /// Encoded, or why it cannot be.
    Segment(Result<Bytes, String>),
    EndFile,
}

#[derive(Debug, Default)]
struct Queue {
    /// The work in write order; the item being written is still at the front.
    work: VecDeque<Work>,
    /// Number of the front of `work` since the start.
    front: u64,
    /// What the row groups of `work` hold, in their order.
    held: VecDeque<Kept>,
    /// Events on disk: in closed files, and in the open one.
    closed_kept: Kept,
    open_kept: Kept,
    /// The open file is gone from its place, and what was written to it with it.
    is_gone: bool,
    /// Why the writer waits.
    error: Option<StoreError>,
    /// Errors so far.
    errors: u64,
    retry: bool,
    closed: Vec<PathBuf>,
    ended: bool,
}

impl Queue {
    fn row_groups(&self) -> usize {
        self.work.iter().filter(|work| !matches!(work, Work::EndFile)).count()
    }
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    news: Condvar,
    /// `queue.error` is there: what a receiving loop looks at in each turn.
    trouble: AtomicBool,
}

/// The pushing side. Dropped, it stops the threads, and what is not on disk is lost.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    shared: Arc<Shared>,
    room: usize,
    threads: Vec<JoinHandle<()>>,
}

impl WriteBehind {
    /// Starts `encoders` threads and a writer. `room` row groups at most are on their way.
    ///
    /// # Errors
    /// Those of the operating system, which has no more threads.
    pub fn start(
        files: impl Files,
        encoder: &Encoder,
        encoders: NonZeroUsize,
        room: NonZeroUsize,
    ) -> std::io::Result<WriteBehind> {
        let shared = Arc::new(Shared::default());
        let mut behind = WriteBehind { shared: shared.clone(), room: room.get(), threads: Vec::new() };
        for _ in 0..encoders.get() {
            let (shared, encoder) = (shared.clone(), encoder.clone());
            let encode = move || shared.encode_all(&encoder);
            behind.threads.push(std::thread::Builder::new().name("encoder".into()).spawn(encode)?);
        }
        let write = move || shared.write_all(files);
        behind.threads.push(std::thread::Builder::new().name("writer".into()).spawn(write)?);
        Ok(behind)
    }

    /// Row groups on their way to the disk.
    pub fn row_groups(&self) -> usize {
        self.shared.lock().row_groups()
    }

    pub fn has_room(&self) -> bool {
        self.row_groups() < self.room
    }

    /// A row group, and what it holds.
    pub fn push(&self, batch: RecordBatch, held: Kept) {
        self.shared.lock().held.push_back(held);
        self.shared.add(Work::Batch(batch));
    }

    /// What is on disk.
    pub fn kept(&self) -> Kept {
        let queue = self.shared.lock();
        let mut kept = queue.closed_kept;
        if !queue.is_gone {
            kept += Kept { unclosed: queue.open_kept.events, ..queue.open_kept };
        }
        kept
    }

    /// Stops the threads after what they are doing; what is not on disk then never will be.
    pub fn stop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.news.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }

    /// Events pushed from now on go into another file.
    pub fn end_file(&self) {
        self.shared.add(Work::EndFile);
    }

    /// Files that are valid by now.
    pub fn closed(&self) -> Vec<PathBuf> {
        self.shared.lock().closed.clone()
    }

    /// Why the writer waits, if it does; asking makes it try again.
    pub fn error(&self) -> Option<StoreError> {
        if !self.shared.trouble.load(Ordering::Acquire) {
            return None;
        }
        let mut queue = self.shared.lock();
        queue.retry = true;
        self.shared.news.notify_all();
        queue.error.as_ref().map(StoreError::repeated)
    }

    /// Waits until another row group can be pushed.
    pub fn wait_for_room(&self) -> Result<(), StoreError> {
        self.wait_until(|queue| queue.row_groups() < self.room)
    }

    /// Waits until everything that was pushed is on disk.
    pub fn wait_for_all(&self) -> Result<(), StoreError> {
        self.wait_until(|queue| queue.work.is_empty())
    }

    /// The error is that of a new attempt.
    fn wait_until(&self, reached: impl Fn(&Queue) -> bool) -> Result<(), StoreError> {
        let mut queue = self.shared.lock();
        let earlier = queue.errors;
        queue.retry = queue.error.is_some();
        self.shared.news.notify_all();
        loop {
            if reached(&queue) {
                return Ok(());
            }
            if let Some(error) = queue.error.as_ref().filter(|_| queue.errors > earlier) {
                return Err(error.repeated());
            }
            queue = self.shared.wait(queue);
        }
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// A thread that panicked has left nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.news.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, work: Work) {
        self.lock().work.push_back(work);
        self.news.notify_all();
    }

    fn encode_all(&self, encoder: &Encoder) {
        let mut queue = self.lock();
        while !queue.ended {
            let Some(at) = queue.work.iter().position(|work| matches!(work, Work::Batch(_))) else {
                queue = self.wait(queue);
                continue;
            };
            let number = queue.front + at as u64;
            let Work::Batch(batch) = std::mem::replace(&mut queue.work[at], Work::Encoding) else {
                unreachable!("found above, under the same lock");
            };
            drop(queue);
            let encoded = without_panic("encoder", || encoder.encode(&batch).map_err(|error| error.to_string()));
            drop(batch);
            queue = self.lock();
            let at = (number - queue.front) as usize; // what is being encoded is never popped
            queue.work[at] = Work::Segment(encoded.and_then(|encoded| encoded));
            self.news.notify_all();
        }
    }

    /// Writes until the end; what is in the queue then stays there.
    fn write_all(&self, mut files: impl Files) {
        let mut queue = self.lock();
        while !queue.ended {
            let segment = match queue.work.front() {
                Some(Work::Segment(segment)) => Some(segment.clone()),
                Some(Work::EndFile) => None,
                Some(Work::Batch(_) | Work::Encoding) | None => {
                    queue = self.wait(queue);
                    continue;
                }
            };
            drop(queue);
            let done = without_panic("writer", || match &segment {
                Some(Ok(segment)) => files.write(segment),
                Some(Err(error)) => Err(files.broken(ParquetError::General(error.clone()))),
                None => files.end_file(),
            });
            let done = done.unwrap_or_else(|what| Err(files.broken(ParquetError::General(what))));
            let is_gone = done.is_err() && !files.is_there();
            queue = self.lock();
            let closed = files.take_closed();
            if !closed.is_empty() {
                let kept = std::mem::take(&mut queue.open_kept);
                queue.closed_kept += kept;
            }
            queue.closed.extend(closed);
            queue.is_gone = is_gone;
            match done {
                Ok(()) => {
                    if segment.is_some() {
                        let held = queue.held.pop_front().unwrap_or_default();
                        queue.open_kept += held;
                    }
                    queue.work.pop_front();
                    queue.front += 1;
                    self.clear(&mut queue);
                }
                Err(error) => queue = self.wait_to_try_again(queue, error),
            }
        }
    }

    fn clear(&self, queue: &mut Queue) {
        queue.error = None;
        self.trouble.store(false, Ordering::Release);
        self.news.notify_all();
    }

    fn wait_to_try_again<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, error: StoreError) -> MutexGuard<'a, Queue> {
        queue.error = Some(error);
        queue.errors += 1;
        queue.retry = false;
        self.trouble.store(true, Ordering::Release);
        self.news.notify_all();
        while !queue.retry && !queue.ended {
            queue = self.wait(queue);
        }
        queue
    }
}

/// A panic must end the run with a sentence, and not leave it waiting for a thread that is gone.
fn without_panic<T>(thread: &str, work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| format!("the {thread} thread panicked"))
}
