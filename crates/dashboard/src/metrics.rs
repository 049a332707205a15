// SPDX-License-Identifier: Apache-2.0
//! Serves metrics over HTTP on a separate thread: text at `GET /metrics`, 404 for other paths, 405 for other methods.
//! Promise: a client costs the rest of the process only the text it requests; a slow client is disconnected, and
//! clients together use at most `CLIENTS` file descriptors.
//! Source: OpenMetrics 1.0, "Exposition"; RFC 9110 sections 15.5.5 and 15.5.6.

use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::future::pending;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at a time; others wait to be accepted.
const CLIENTS: usize = 16;
/// A connection answers one request within this time, or is closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Until a connection is accepted again after the process had no descriptor for one.
const PAUSE: Duration = Duration::from_millis(100);
const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves at `address` until the process ends what `text` says whenever it is asked for, as OpenMetrics has it.
///
/// # Errors
/// The address cannot be had, or the operating system refuses a thread or the event loop.
pub fn serve_metrics(address: SocketAddr, text: impl Fn() -> String + Send + Sync + 'static) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener)?;
    drop(entered);
    let serve = move || runtime.block_on(serve_clients(listener, router(Arc::new(text))));
    std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
    Ok(())
}

fn router<T: Fn() -> String + Send + Sync + 'static>(text: Arc<T>) -> Router {
    let metrics = get(|| async move { ([(header::CONTENT_TYPE, KIND)], text()) });
    let elsewhere = || async { (StatusCode::NOT_FOUND, "the metrics are at /metrics\n").into_response() };
    Router::new().route("/metrics", metrics).fallback(elsewhere)
}

async fn serve_clients(listener: tokio::net::TcpListener, router: Router) {
    let clients = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok(client) = clients.clone().acquire_owned().await else { return pending().await };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let answered = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // A client that goes away or stays too long has had enough.
            let _ = timeout(PATIENCE, answered).await;
            drop(client);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn served() -> SocketAddr {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        serve_metrics(address, || "answer 42\n# EOF\n".to_owned()).unwrap();
        address
    }

    fn answer(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_get_of_the_metrics_is_answered_with_them() {
        let address = served();
        let good = answer(address, "GET /metrics");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("\r\n\r\nanswer 42\n# EOF\n"), "{good}");
        assert!(good.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"), "{good}");
        for path in ["/", "/metric", "/metrics/"] {
            let none = answer(address, &format!("GET {path}"));
            assert!(none.starts_with("HTTP/1.1 404 Not Found\r\n") && none.contains("are at /metrics"), "{none}");
        }
        for method in ["POST", "DELETE", "PUT"] {
            let refused = answer(address, &format!("{method} /metrics"));
            assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"), "{refused}");
            assert!(refused.to_ascii_lowercase().contains("\r\nallow: get,head\r\n"), "{refused}");
        }
    }

    #[test]
    fn clients_that_say_nothing_keep_no_other_from_its_answer() {
        let address = served();
        let silent: Vec<_> = (0..CLIENTS - 1).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert!(answer(address, "GET /metrics").starts_with("HTTP/1.1 200 OK"));
        // With no place left the next one waits until those are cut off.
        let last = TcpStream::connect(address).unwrap();
        assert!(answer(address, "GET /metrics").starts_with("HTTP/1.1 200 OK"));
        drop((silent, last));
    }
}
