// SPDX-License-Identifier: Apache-2.0
//! The connection manager in both roles, sans-IO: [`CmOpener`] sends requests, [`CmListener`] answers them.
//! Promise: a lost, repeated or late message changes nothing that was agreed; an error names the step that failed.
//! Source: the FEROCE connection manager; rules of `rtl/ctrl/cm_opener.sv` and `cm_listener.sv`; states of IBTA 10.3.1.
//!
//! ```text
//! opener                                     listener
//!   | OPEN_QP (who I am)          ----------->  takes a queue pair: RESET -> RTS, it sends
//!   | ACK (its number, PSN, key)  <-----------
//!   | MODIFY_QP_RTS, after silence: ACK = alive, refused = restarted, no answer = dead
//!   | CLOSE_QP                    ----------->  RESET
//! ```
//!
//! FEROCE does not support MODIFY_QP_RTS on an open queue pair: its gateware answers ERROR, its host software does not
//! answer. Silence and ERROR therefore count only from a peer that has acknowledged MODIFY_QP_RTS before, and never
//! while data arrive. A listener also opens step by step: OPEN_QP without the sender's information, SEND_QP_INFO,
//! MODIFY_QP_RTS.

mod listener;
mod opener;

use penstock_wire::{CmRequest, Ipv4Addr, Qpn};

pub use listener::{CmAddress, CmHost, CmListener, CmListenerConfig, CmListenerCounters, Ending, Refusal};
pub use opener::{CmEvent, CmOpener, CmOpenerConfig, CmState, LifeSign};

/// Why a board did not come up, or is up no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{ip}: {why} ({}){}", last(self.done), hint(self.why))]
pub struct CmFailure {
    /// The other side.
    pub ip: Ipv4Addr,
    /// The last step that worked.
    pub done: Option<CmRequest>,
    /// The step that failed, and why.
    pub why: CmReason,
}

/// What went wrong with a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CmReason {
    /// No answer, retries spent.
    #[error("no answer to {step} in {tries} tries")]
    Silent {
        /// The request.
        step: CmRequest,
        /// How often.
        tries: u32,
    },
    /// It has none free, or forgot ours.
    #[error("answered NO_QP to {step}{}", held(self.holder()))]
    NoQp {
        /// The request.
        step: CmRequest,
        /// A queue pair in use, and the address that holds it, if the answer contains it.
        holder: Option<(Qpn, Ipv4Addr)>,
    },
    /// It did not want to.
    #[error("answered NAK to {step}")]
    Nak {
        /// The request.
        step: CmRequest,
    },
    /// It could not.
    #[error("answered ERROR to {step}")]
    Error {
        /// The request.
        step: CmRequest,
    },
    /// Its answer has a code that stands for nothing.
    #[error("answered {step} with the reserved code {code}")]
    Reserved {
        /// The request.
        step: CmRequest,
        /// Code of the answer.
        code: u8,
    },
    /// It agreed, and did not say who it is.
    #[error("agreed to {step} without telling its queue pair")]
    NoInfo {
        /// The request.
        step: CmRequest,
    },
}

impl CmReason {
    /// Who holds a queue pair where none is free.
    pub fn holder(&self) -> Option<(Qpn, Ipv4Addr)> {
        match self {
            CmReason::NoQp { holder, .. } => *holder,
            _ => None,
        }
    }
}

fn held(holder: Option<(Qpn, Ipv4Addr)>) -> String {
    holder.map_or_else(String::new, |(qpn, ip)| format!(": {ip} holds its queue pair {:#x}", qpn.value()))
}

fn last(done: Option<CmRequest>) -> String {
    done.map_or_else(|| "nothing worked before".to_owned(), |step| format!("{step} had worked"))
}

fn hint(why: CmReason) -> &'static str {
    match why {
        CmReason::Silent { step: CmRequest::OpenQp, .. } => {
            "; is it powered, has it this address, does it listen on UDP port 17185?"
        }
        CmReason::Silent { .. } => "; was it reset, or the network cut?",
        // Which of them the answer does not say.
        CmReason::NoQp { step: CmRequest::OpenQp, .. } => {
            "; all are in use (`penstock ctl status`), or it keeps them: for other servers of a farm (register \
             connection.control: engaged, keep_peer), or as it opens its connection itself"
        }
        CmReason::NoQp { .. } => "; it was reset since, or has closed this queue pair",
        CmReason::Nak { .. } => "; the queue pair is another server's, or it has failed",
        CmReason::Error { .. } => "; it finds no way to us (ARP), or its queue pair did not follow",
        CmReason::Reserved { .. } | CmReason::NoInfo { .. } => "; its firmware speaks another dialect",
    }
}
