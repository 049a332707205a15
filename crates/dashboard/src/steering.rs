// SPDX-License-Identifier: Apache-2.0
//! Controls: what a page asks for, and the way of it into the run and back.
//! Promise: every request is answered: with the settings in force, or with why not; a run that has ended or has no
//! controls says so at once.

use crate::recording::{lock, Phase, Shared};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;
use tokio::sync::oneshot;

/// Parameters with the value in force, as a scenario has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Settings {
    /// Of each sender, in the order of the manifest.
    pub senders: Vec<BTreeMap<String, String>>,
    /// Of the run.
    pub run: BTreeMap<String, String>,
    /// Marking thresholds of all queues, bytes: K_min and K_max.
    pub ecn: Option<(u64, u64)>,
    /// What throughput is compared with, bit/s, when it is a parameter.
    pub threshold_bps: Option<f64>,
}

/// One wish of a page.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Names of senders; none: all, or the run.
    #[serde(default)]
    pub senders: Vec<String>,
    /// Values by key: `{"cc.law": "off"}`.
    pub set: BTreeMap<String, String>,
}

/// A control that took effect: what makes a run no longer reproducible from its scenario alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Applied {
    /// Simulated time at which it was handed over.
    pub at_ps: u64,
    /// Empty: the run.
    pub senders: Vec<String>,
    pub set: BTreeMap<String, String>,
    /// Register writes (address, value) of each of these senders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<(u32, u32)>,
}

/// Why a control was not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    #[error("the run has ended: nothing can be changed any more")]
    Ended,
    #[error("this run has no controls: nothing in it can be changed while it goes on")]
    NoControls,
    #[error("no sender is called {0:?}")]
    UnknownSender(String),
    #[error("{0}")]
    Refused(String),
    #[error("the run did not answer within {0} s; it may still apply this at its next step")]
    NoAnswer(u64),
}

/// A control on its way into the run; the run answers it with [`Request::answer`].
pub struct Request {
    pub control: Control,
    reply: oneshot::Sender<Result<(), ControlError>>,
}

impl Request {
    /// A page that has gone meanwhile gets no answer.
    pub fn answer(self, result: Result<(), ControlError>) {
        let _ = self.reply.send(result);
    }
}

/// The run's end of the controls.
pub struct Steering {
    requests: Receiver<Request>,
}

/// The server's end.
pub(crate) struct Helm {
    requests: Mutex<Sender<Request>>,
}

pub(crate) fn pair() -> (Helm, Steering) {
    let (sender, requests) = channel();
    (Helm { requests: Mutex::new(sender) }, Steering { requests })
}

impl Steering {
    /// The next control that waits.
    pub fn poll(&self) -> Option<Request> {
        self.requests.try_recv().ok()
    }
}

impl Helm {
    /// How long a run may take to its next step.
    const PATIENCE_S: u64 = 30;

    /// Hands a control to the run and waits for what it says.
    pub(crate) async fn ask(&self, shared: &Shared, control: Control) -> Result<(), ControlError> {
        {
            let recording = lock(shared);
            if recording.progress.phase == Phase::Ended {
                return Err(ControlError::Ended);
            }
            if recording.manifest.parameters.is_empty() {
                return Err(ControlError::NoControls);
            }
        }
        let (reply, answer) = oneshot::channel();
        let request = Request { control, reply };
        let sent = self.requests.lock().is_ok_and(|requests| requests.send(request).is_ok());
        if !sent {
            return Err(ControlError::Ended);
        }
        match tokio::time::timeout(std::time::Duration::from_secs(Self::PATIENCE_S), answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(ControlError::Ended),
            Err(_) => Err(ControlError::NoAnswer(Self::PATIENCE_S)),
        }
    }
}
