// SPDX-License-Identifier: Apache-2.0
//! What a coordinator counts, for Prometheus; docs/servers.md lists the names.

use penstock_dashboard::serve_metrics;
use penstock_farm::{Coordinator, Notice, Refusals};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

#[derive(Default)]
pub struct Metrics {
    changes: Counter,
    postponed: Counter,
    faults: Counter,
    boards: Gauge,
    servers: Gauge,
    first_event: Gauge,
    changing: Gauge,
    defiant: Gauge,
    refused_answers: Counter,
    heartbeats_refused: Family<[(&'static str, &'static str); 1], Counter>,
    parts: Family<[(&'static str, String); 1], Gauge<f64, AtomicU64>>,
}

impl Metrics {
    /// Serves them, if there is an address, until the process ends.
    pub fn serve(address: Option<SocketAddr>) -> Result<Metrics, String> {
        let metrics = Metrics::default();
        let mut registry = Registry::with_prefix("penstock_farm");
        registry.register("changes", "Changes of the table that all boards have made", metrics.changes.clone());
        registry.register("postponed", "Changes that some board could not make", metrics.postponed.clone());
        registry.register("faults", "Faults reported", metrics.faults.clone());
        registry.register("boards_in_force", "Boards that answer and have the last table", metrics.boards.clone());
        registry.register("servers_live", "Servers in the last table", metrics.servers.clone());
        registry.register("first_event", "First event of the last table", metrics.first_event.clone());
        registry.register("changing", "A change is under way", metrics.changing.clone());
        let help = "Boards that answer and do not carry out their commands";
        registry.register("boards_defiant", help, metrics.defiant.clone());
        let help = "Answers of boards that no board can give";
        registry.register("answers_refused", help, metrics.refused_answers.clone());
        let help = "Messages of servers that were no heartbeats of this run";
        registry.register("heartbeats_refused", help, metrics.heartbeats_refused.clone());
        registry.register("server_part", "The part of its weight that a server has", metrics.parts.clone());
        if let Some(address) = address {
            let encoded = move || {
                let mut out = String::new();
                let _ = text::encode(&mut out, &registry); // writing to a string does not fail
                out
            };
            serve_metrics(address, encoded)
                .map_err(|error| format!("--metrics {address}: {error}; name a free port of this host"))?;
        }
        Ok(metrics)
    }

    pub fn count(&self, notice: &Notice) {
        let counter = match notice {
            Notice::Done { .. } => &self.changes,
            Notice::Postponed { .. } => &self.postponed,
            notice if notice.is_fault() => &self.faults,
            _ => return,
        };
        counter.inc();
    }

    pub fn publish(&self, coordinator: &Coordinator) {
        self.boards.set(coordinator.boards_in_force() as i64);
        self.servers.set(coordinator.log().live().len() as i64);
        self.first_event.set(i64::try_from(coordinator.log().first()).unwrap_or(i64::MAX));
        self.changing.set(i64::from(!coordinator.is_steady()));
        self.defiant.set(coordinator.boards_defiant() as i64);
        let Refusals { garbled, other_server, other_run, stale, boards } = coordinator.refusals();
        let rise = |counter: &Counter, to: u64| _ = counter.inc_by(to - counter.get());
        rise(&self.refused_answers, boards);
        for (reason, count) in
            [("garbled", garbled), ("other_server", other_server), ("other_run", other_run), ("stale", stale)]
        {
            rise(&self.heartbeats_refused.get_or_create(&[("reason", reason)]), count);
        }
        for (server, part) in coordinator.parts() {
            self.parts.get_or_create(&[("server", server.to_string())]).set(part);
        }
    }
}
