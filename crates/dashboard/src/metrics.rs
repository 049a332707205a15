// SPDX-License-Identifier: Apache-2.0
//! Serves metrics over HTTP on a separate thread: text at `GET /metrics`, 404 for other paths, 405 for other methods.
//! Promise: a client costs the rest of the process only the text it requests; a slow client is disconnected, and silent
//! ones keep no other from its answer.
//! Source: OpenMetrics 1.0, "Exposition"; RFC 9110 sections 15.5.5 and 15.5.6.

use crate::clients::{serve, Limits};
use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::Router;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

const LIMITS: Limits = Limits { most: 32, patience: Some(Duration::from_secs(5)) };
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
    let run = move || runtime.block_on(serve(listener, router(Arc::new(text)), LIMITS));
    std::thread::Builder::new().name("metrics".into()).spawn(run)?;
    Ok(())
}

fn router<T: Fn() -> String + Send + Sync + 'static>(text: Arc<T>) -> Router {
    let metrics = get(|| async move { ([(header::CONTENT_TYPE, KIND)], text()) });
    let elsewhere = || async { (StatusCode::NOT_FOUND, "the metrics are at /metrics\n").into_response() };
    Router::new().route("/metrics", metrics).fallback(elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

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
    fn silent_clients_keep_no_other_from_its_answer() {
        let address = served();
        let begun = Instant::now();
        let mut silent: Vec<_> = (0..3 * LIMITS.most).map(|_| TcpStream::connect(address).unwrap()).collect();
        // Some have begun to ask.
        silent.iter_mut().step_by(2).for_each(|client| drop(client.write_all(b"GET /metr")));
        for _ in 0..3 {
            assert!(answer(address, "GET /metrics").starts_with("HTTP/1.1 200 OK"));
        }
        assert!(begun.elapsed() < LIMITS.patience.unwrap(), "none of them was waited for");
        // The oldest have given way.
        assert!(matches!(silent[1].read(&mut [0]), Ok(0) | Err(_)));
    }
}
