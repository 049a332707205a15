// SPDX-License-Identifier: Apache-2.0
//! The path of a control into the run and back.
//! Promise: every request is answered: with the settings in force, or with the reason of refusal; if the run has ended
//! or has no controls, the answer comes at once.

use crate::control::{Control, ControlError};
use crate::recording::{lock, Phase, Shared};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;
use tokio::sync::oneshot;

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

    /// Passes a control to the run and waits for its answer.
    pub(crate) async fn request(&self, shared: &Shared, control: Control) -> Result<(), ControlError> {
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
