// SPDX-License-Identifier: Apache-2.0
//! The web server: the page, its feed, its controls, on a separate thread.
//! Promise: an unavailable address is refused before the run, with the remedy; a request that the guard
//! rejects is refused; the server never reads files.

use crate::assets;
use crate::clients::{serve, Limits};
use crate::control::{Control, ControlError};
use crate::feed::Feed;
use crate::guard::Guard;
use crate::recording::Shared;
use crate::steering::{pair, Helm, Steering};
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::{header, HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{from_fn_with_state, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::Router;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Each page that is open has one that stays.
const CLIENTS: Limits = Limits { most: 64, patience: None };
/// Bytes of a control; all clients together then hold 4 MiB of bodies at most.
const LONGEST_CONTROL: usize = 64 << 10;

/// Why the page cannot be served there.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("--live {0}: not an address; give ADDR:PORT, as in --live 127.0.0.1:8080")]
    NotAnAddress(String),
    #[error("--live {0}: this port is in use; give another, as in --live 127.0.0.1:8081, or :0 for any that is free")]
    InUse(SocketAddr),
    #[error("--live {0}: this machine does not have that address; 127.0.0.1 always works")]
    NotOurs(SocketAddr),
    #[error("--live {0}: ports below 1024 need privileges; give one above, as in --live 127.0.0.1:8080")]
    Privileged(SocketAddr),
    #[error("--live {0}: {1}")]
    Other(SocketAddr, io::Error),
}

/// The address of `ADDR:PORT`, of `:PORT`, which is of the loopback, or of a host's name and a port.
pub fn address(text: &str) -> Option<SocketAddr> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    whole.to_socket_addrs().ok()?.next()
}

/// A port that is ours, with nothing served on it yet.
pub struct Listener(TcpListener);

impl Listener {
    /// Takes an [`address`] of this machine.
    pub fn bind(text: &str) -> Result<Self, BindError> {
        let address = address(text).ok_or_else(|| BindError::NotAnAddress(text.to_owned()))?;
        let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => BindError::InUse(address),
            ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
            ErrorKind::PermissionDenied => BindError::Privileged(address),
            _ => BindError::Other(address, error),
        })?;
        listener.set_nonblocking(true).map_err(|error| BindError::Other(address, error))?;
        Ok(Self(listener))
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves a recording until the process ends.
    ///
    /// # Errors
    /// The operating system refuses a thread or the event loop.
    pub fn serve(self, recording: Shared) -> io::Result<Server> {
        let address = self.address()?;
        let (helm, steering) = pair();
        let page = Arc::new(Page { recording, helm, guard: Guard::new(address.ip()), run: run_token() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(self.0)?;
        drop(entered);
        let run = move || runtime.block_on(serve(listener, router(page), CLIENTS));
        std::thread::Builder::new().name("page".into()).spawn(run)?;
        Ok(Server { address, steering })
    }
}

/// A page that is being served.
pub struct Server {
    pub address: SocketAddr,
    pub steering: Steering,
}

struct Page {
    recording: Shared,
    helm: Helm,
    guard: Guard,
    run: String,
}

/// Differs from one run of the program to the next; nothing of a simulation depends on it.
fn run_token() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), std::process::id())
}

fn router(page: Arc<Page>) -> Router {
    Router::new()
        .route("/", get(|| async { asset("text/html; charset=utf-8", assets::INDEX) }))
        .route("/app.js", get(|| async { asset("text/javascript; charset=utf-8", assets::SCRIPT) }))
        .route("/app.css", get(|| async { asset("text/css; charset=utf-8", assets::STYLE) }))
        .route("/feed", get(feed))
        .route("/control", post(control))
        .layer(DefaultBodyLimit::max(LONGEST_CONTROL))
        .layer(from_fn_with_state(page.clone(), guarded))
        .with_state(page)
}

fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, kind)], text)
}

/// The guard for all requests, and the headers that isolate the page from other origins.
async fn guarded(State(page): State<Arc<Page>>, request: HttpRequest, next: Next) -> Response {
    let mut response = match page.guard.check(request.headers(), request.uri().path() == "/") {
        Ok(()) => next.run(request).await,
        Err(refusal) => (StatusCode::FORBIDDEN, refusal.to_string()).into_response(),
    };
    for (name, value) in [
        ("content-security-policy", assets::POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// `/feed?run=R&generation=G&row=N`: all three from a page that comes back.
async fn feed(State(page): State<Arc<Page>>, uri: Uri) -> Response {
    let pairs: Vec<_> = uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split_once('=')).collect();
    let value = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
    let number = |key: &str| value(key).and_then(|text| text.parse::<u64>().ok());
    let seen = match (value("run"), number("generation"), number("row")) {
        (Some(run), Some(generation), Some(row)) => Some((run, generation, row as usize)),
        _ => None,
    };
    let feed = Feed::new(page.recording.clone(), &page.run, seen);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(feed.stream())).into_response()
}

/// A control as JSON; its answer when the run has taken it.
async fn control(State(page): State<Arc<Page>>, headers: HeaderMap, body: Bytes) -> Response {
    // A form of another page can send no JSON without asking first, and would not be allowed to.
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if !kind.starts_with(b"application/json") {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send application/json").into_response();
    }
    let control: Control = match serde_json::from_slice(&body) {
        Ok(control) => control,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("not a control: {error}")).into_response(),
    };
    match page.helm.request(&page.recording, control).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (status_of(&error), error.to_string()).into_response(),
    }
}

fn status_of(error: &ControlError) -> StatusCode {
    match error {
        ControlError::Ended | ControlError::NoControls => StatusCode::CONFLICT,
        ControlError::UnknownSender(_) => StatusCode::NOT_FOUND,
        ControlError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ControlError::NoAnswer(_) => StatusCode::GATEWAY_TIMEOUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Settings;
    use crate::manifest::Manifest;
    use crate::recording::Recording;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    #[test]
    fn a_control_longer_than_any_is_refused_and_is_not_kept() {
        let recording = Recording::new(Manifest::default(), Settings::default()).shared();
        let address = Listener::bind("127.0.0.1:0").unwrap().serve(recording).unwrap().address;
        for (bytes, status) in [(LONGEST_CONTROL, "400"), (LONGEST_CONTROL + 1, "413")] {
            let mut client = TcpStream::connect(address).unwrap();
            let head = format!("POST /control HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
            write!(client, "{head}Content-Length: {bytes}\r\nConnection: close\r\n\r\n{}", " ".repeat(bytes)).unwrap();
            let mut answer = [0; 12];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(std::str::from_utf8(&answer).unwrap(), format!("HTTP/1.1 {status}"), "{bytes} bytes");
        }
    }

    #[test]
    fn silent_clients_of_a_page_use_few_descriptors_and_keep_no_other_from_it() {
        let recording = Recording::new(Manifest::default(), Settings::default()).shared();
        let address = Listener::bind("127.0.0.1:0").unwrap().serve(recording).unwrap().address;
        let mut silent: Vec<_> = (0..3 * CLIENTS.most).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut watcher = TcpStream::connect(address).unwrap();
        write!(watcher, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        watcher.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        let is_over = |client: &mut TcpStream| {
            client.set_nonblocking(true).unwrap();
            !matches!(client.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
        };
        let over = silent.iter_mut().map(is_over).filter(|over| *over).count();
        assert!(over >= 2 * CLIENTS.most, "{over} of {} have given way", silent.len());
    }
}
