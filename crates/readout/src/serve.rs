// SPDX-License-Identifier: Apache-2.0
//! Serves events to connected consumers while they are stored: an Arrow IPC stream over TCP or a Unix socket.
//! Promise: memory is bounded by the queue of each consumer; a slow consumer holds the boards back or gets the
//! number of events that it missed, as configured; a dead consumer is dropped.
//! Source: Arrow columnar format, "IPC streaming format"; `pyarrow.ipc.open_stream` reads it. Arrow Flight carries the
//! same messages inside gRPC, but needs the crates tonic and tokio.

use std::collections::VecDeque;
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use penstock_units::Time;

use crate::schema::{Rows, Table};
use crate::sink::{Event, EventSink, Kept, StoreError};

/// The sleep time of the listener without connections.
const ACCEPT_EVERY: Duration = Duration::from_millis(20);

/// The sleep time while waiting for slow consumers.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The handling of events for which a consumer has no room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlowConsumer {
    /// It misses them, and the next event that it gets carries their number.
    #[default]
    Misses,
    /// Storage waits for it, and so do the boards.
    HoldsBack,
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// Events that wait for each consumer at most.
    pub queue_events: usize,
    pub slow: SlowConsumer,
    /// A consumer that takes nothing for so long is dropped.
    pub patience: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        ServeOptions { queue_events: 256, slow: SlowConsumer::default(), patience: Duration::from_secs(30) }
    }
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServeAt {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl std::fmt::Display for ServeAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServeAt::Tcp(address) => write!(f, "{address}"),
            ServeAt::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The columns of [`Table::Events`], and `missed` (uint64): how many events in front of this one the consumer did not
/// get.
pub fn stream_schema() -> SchemaRef {
    let events = Table::Events.schema();
    let missed = Arc::new(Field::new("missed", DataType::UInt64, false));
    Arc::new(Schema::new(events.fields().iter().cloned().chain([missed]).collect::<Vec<_>>()))
}

/// The queue of one consumer.
#[derive(Debug, Default)]
struct Queue {
    /// Each with the number of events missed before it.
    events: VecDeque<(RecordBatch, u64)>,
    missed: u64,
    /// Its thread has given it up.
    gone: bool,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<Arc<Mutex<Queue>>>,
    consumers: Vec<JoinHandle<()>>,
    closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something was queued, or all is over.
    news: Condvar,
}

/// A sink that stores events in another one and hands them to consumers.
#[derive(Debug)]
pub struct Serving<S> {
    inner: S,
    at: ServeAt,
    options: ServeOptions,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
    rows: Rows,
}

impl<S: EventSink> Serving<S> {
    /// Listens at `at`; port 0 is any free one, see [`Self::at`].
    ///
    /// # Errors
    /// [`StoreError::Io`] if listening there is impossible.
    pub fn listen(inner: S, at: ServeAt, options: ServeOptions) -> Result<Serving<S>, StoreError> {
        let fail = |source| StoreError::Io { file: at.to_string().into(), action: "listened at", source };
        let listener = Listener::bind(&at).map_err(fail)?;
        let at = listener.at().map_err(fail)?;
        let shared = Arc::new(Shared::default());
        let (for_listener, patience) = (shared.clone(), options.patience);
        let listener = std::thread::spawn(move || listen(&listener, &for_listener, patience));
        let (listener, rows) = (Some(listener), Rows::new(Table::Events));
        Ok(Serving { inner, at, options, shared, listener, rows })
    }

    /// Where it listens.
    pub fn at(&self) -> &ServeAt {
        &self.at
    }

    /// Consumers that are connected.
    pub fn consumers(&self) -> usize {
        lock(&self.shared.state).queues.iter().filter(|queue| !lock(queue).gone).count()
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn some_queue_is_full(&self) -> bool {
        let full = |queue: &Arc<Mutex<Queue>>| {
            let queue = lock(queue);
            !queue.gone && queue.events.len() >= self.options.queue_events
        };
        lock(&self.shared.state).queues.iter().any(full)
    }

    fn hand_out(&mut self, event: &Event<'_>) -> Result<(), ArrowError> {
        let mut state = lock(&self.shared.state);
        state.queues.retain(|queue| !lock(queue).gone);
        if state.queues.is_empty() {
            return Ok(());
        }
        self.rows.push(event);
        let batch = self.rows.take()?;
        for queue in &state.queues {
            let mut queue = lock(queue);
            if queue.events.len() < self.options.queue_events {
                let missed = std::mem::take(&mut queue.missed);
                queue.events.push_back((batch.clone(), missed));
            } else {
                queue.missed += 1;
            }
        }
        self.shared.news.notify_all();
        Ok(())
    }

    fn end(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.news.notify_all();
        let joined = self.listener.take().map(JoinHandle::join);
        let consumers = std::mem::take(&mut lock(&self.shared.state).consumers);
        for end in joined.into_iter().chain(consumers.into_iter().map(JoinHandle::join)) {
            if end.is_err() {
                tracing::error!("a thread that served events has panicked");
            }
        }
    }
}

impl<S: EventSink> EventSink for Serving<S> {
    fn store(&mut self, event: &Event<'_>) -> Result<(), StoreError> {
        if self.options.slow == SlowConsumer::HoldsBack && self.some_queue_is_full() {
            let events = self.options.queue_events;
            return Err(StoreError::ConsumerBusy { at: self.at.to_string(), events });
        }
        self.inner.store(event)?;
        if let Err(error) = self.hand_out(event) {
            tracing::error!(%error, event = event.number, "the event could not be served");
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Time) -> Result<(), StoreError> {
        self.inner.handle_timeout(now)
    }

    fn reconnected(&mut self, board: u16) {
        self.inner.reconnected(board);
    }

    fn kept(&self) -> Option<Kept> {
        self.inner.kept()
    }

    fn give_up(&mut self) {
        self.inner.give_up();
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.inner.poll_timeout()
    }

    /// A consumer that takes nothing is dropped after its patience, so this ends.
    fn wait(&mut self) -> Result<(), StoreError> {
        while self.options.slow == SlowConsumer::HoldsBack && self.some_queue_is_full() {
            std::thread::sleep(LOOK_EVERY);
        }
        self.inner.wait()
    }

    /// Consumers get what is queued for them, and the end of their stream.
    fn close(&mut self) -> Result<(), StoreError> {
        self.inner.close()?;
        self.end();
        Ok(())
    }
}

impl<S> Drop for Serving<S> {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.news.notify_all();
        if let ServeAt::Unix(path) = &self.at {
            let _ = std::fs::remove_file(path);
        }
    }
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    fn bind(at: &ServeAt) -> std::io::Result<Listener> {
        match at {
            ServeAt::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            ServeAt::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(listener, path.clone()))
            }
        }
    }

    fn at(&self) -> std::io::Result<ServeAt> {
        match self {
            Listener::Tcp(listener) => Ok(ServeAt::Tcp(listener.local_addr()?)),
            Listener::Unix(_, path) => Ok(ServeAt::Unix(path.clone())),
        }
    }

    fn accept(&self, patience: Duration) -> std::io::Result<Box<dyn Write + Send>> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _): (TcpStream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                // Events go out as they are built, not when the one before has been acknowledged.
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Box::new(stream))
            }
            Listener::Unix(listener, _) => {
                let (stream, _): (UnixStream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                stream.set_write_timeout(Some(patience))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// Takes consumers until all is over.
fn listen(listener: &Listener, shared: &Arc<Shared>, patience: Duration) {
    loop {
        let accepted = listener.accept(patience);
        let mut state = lock(&shared.state);
        if state.closed {
            return;
        }
        if let Ok(stream) = accepted {
            let queue = Arc::new(Mutex::new(Queue::default()));
            state.queues.push(queue.clone());
            let shared = shared.clone();
            state.consumers.retain(|consumer| !consumer.is_finished());
            state.consumers.push(std::thread::spawn(move || {
                if let Err(error) = serve(stream, &shared, &queue) {
                    tracing::info!(%error, "a consumer of events has gone");
                }
                *lock(&queue) = Queue { gone: true, ..Queue::default() };
            }));
            continue;
        }
        drop(state);
        std::thread::sleep(ACCEPT_EVERY);
    }
}

/// Sends what is queued until the end, or until the consumer fails.
fn serve(stream: Box<dyn Write + Send>, shared: &Shared, queue: &Mutex<Queue>) -> Result<(), ArrowError> {
    let schema = stream_schema();
    let mut writer = StreamWriter::try_new(BufWriter::new(stream), &schema)?;
    writer.flush()?;
    loop {
        let next = lock(queue).events.pop_front();
        if let Some((batch, missed)) = next {
            let missed = Arc::new(UInt64Array::from(vec![missed]));
            let columns = batch.columns().iter().cloned().chain([missed as _]).collect();
            writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
            writer.flush()?;
            continue;
        }
        let state = lock(&shared.state);
        if !lock(queue).events.is_empty() {
            continue;
        }
        if state.closed {
            break;
        }
        drop(shared.news.wait(state).unwrap_or_else(PoisonError::into_inner));
    }
    writer.finish()?;
    writer.flush()
}

/// A thread that panicked has left nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
