// SPDX-License-Identifier: Apache-2.0
//! The clients of an HTTP server of this process.
//! Promise: they use a bounded number of file descriptors, and however many say nothing, a new one is answered at once:
//! of too many, one that has asked for nothing gives way, the oldest of the address that has most.

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{service_fn, Service};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// Time until a connection is accepted again after the process had no descriptor for one.
const PAUSE: Duration = Duration::from_millis(100);

/// How many connections there may be, and how long one may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub most: usize,
    /// A connection answers one request within this time, or is closed; none: as many as it likes, in its own time.
    pub patience: Option<Duration>,
}

struct Client {
    ip: IpAddr,
    has_requested: Arc<AtomicBool>,
    connection: AbortHandle,
}

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    // The oldest first.
    let mut clients: Vec<Client> = Vec::new();
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        clients.retain(|client| !client.connection.is_finished());
        if clients.len() >= limits.most {
            let at = to_evict(&clients);
            clients.remove(at).connection.abort();
        }
        let has_requested = Arc::new(AtomicBool::new(false));
        let (requests, router) = (has_requested.clone(), TowerToHyperService::new(router.clone()));
        let service = service_fn(move |request| {
            requests.store(true, Ordering::Relaxed);
            router.call(request)
        });
        let answered =
            http1::Builder::new().keep_alive(limits.patience.is_none()).serve_connection(TokioIo::new(stream), service);
        let connection = tokio::spawn(async move {
            // A client that goes away or stays too long has had enough.
            match limits.patience {
                Some(patience) => drop(timeout(patience, answered).await),
                None => drop(answered.await),
            }
        });
        clients.push(Client { ip: from.ip(), has_requested, connection: connection.abort_handle() });
    }
}

fn to_evict(clients: &[Client]) -> usize {
    let of_address = |ip: IpAddr| clients.iter().filter(|client| client.ip == ip).count();
    let worth = |client: &Client| (!client.has_requested.load(Ordering::Relaxed), of_address(client.ip));
    // The last of equals, that is the first.
    let found = clients.iter().enumerate().rev().max_by_key(|(_, client)| worth(client));
    found.map_or(0, |(at, _)| at)
}
