// SPDX-License-Identifier: Apache-2.0
//! Opens a board's queue pair for a transfer by its registers, and closes it.
//! Promise: the registers of its window stay as they are.
//! Source: docs/integration.md, "Opening queue pairs: by registers".

use super::super::arguments::WriteArguments;
use super::super::faults::Faults;
use super::super::session::Session;
use super::transfer::{Connection, Path};
use super::window::{register, Window};
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::change::Command;
use penstock_ipbus::regs::{global, qp};
use penstock_ipbus::Request;
use penstock_wire::{Psn, Qpn};
use std::time::Duration;

const RESET: u32 = 0;
const READY_TO_SEND: u32 = 3;
/// Looks at a queue pair that is to become ready, and the time between them.
const LOOKS: usize = 50;
const PAUSE: Duration = Duration::from_millis(10);
/// DSCP 26 and ECT(0), as the connection manager's default has them.
const TOS: u32 = 26 << 2 | 0b10;
/// Those of messages, which this queue pair does not send.
const ACK_TIMEOUT: u32 = 14;
const RETRIES: u32 = 7;

/// Opens the queue pair of a window for this host. None: the board did not do as it should, which is among the faults.
///
/// # Errors
/// No journal, or no random numbers.
pub fn open(
    session: &mut Session,
    board: usize,
    window: &Window,
    path: &Path,
    write: &WriteArguments,
    faults: &mut Faults,
) -> Result<Option<Connection>, Failure> {
    let [local, psn, init_psn] = [random()?, random()?, random()?];
    // The first numbers are those of special queue pairs (IBTA 3.5.3).
    let local_qpn = Qpn::new((local % 0xff_fe00) + 0x100);
    let psn = Psn::new(psn & 0xff_ffff);
    let [a, b, c, d, e, f] = path.local.0 .0;
    let transport = qp::TRANSPORT_MTU_BITS.at(path.mtu.code())
        | qp::TRANSPORT_ACK_TIMEOUT_BITS.at(ACK_TIMEOUT)
        | qp::TRANSPORT_RETRY_CNT_BITS.at(RETRIES)
        | qp::TRANSPORT_RNR_RETRY_BITS.at(RETRIES);
    let writes = [
        (qp::DST_MAC_HI, u32::from_be_bytes([0, 0, a, b])),
        (qp::DST_MAC_LO, u32::from_be_bytes([c, d, e, f])),
        (qp::DST_IP, path.local.1.to_bits()),
        (qp::FLOW, qp::FLOW_TOS_BITS.at(TOS)),
        (qp::DEST_QPN, local_qpn.value()),
        (qp::RKEY, 0),
        (qp::TRANSPORT, transport),
        (qp::INIT_PSN, init_psn & 0xff_ffff),
        (qp::READ_PSN, psn.value()),
        (qp::STATE, READY_TO_SEND),
    ];
    let row = window.queue_pair;
    let writes = writes.map(|(offset, word)| (register(row, offset), word)).to_vec();
    if session.command(&[Command { board, writes }], write, faults)?.is_empty() {
        return Ok(None);
    }
    let Some(base) = reach(session, board, row, READY_TO_SEND, faults)? else { return Ok(None) };
    Ok(Some(Connection { local_qpn, board_qpn: Qpn::new(base + row), psn }))
}

/// Closes it.
///
/// # Errors
/// No journal.
pub fn close(
    session: &mut Session,
    board: usize,
    window: &Window,
    write: &WriteArguments,
    faults: &mut Faults,
) -> Result<(), Failure> {
    let row = window.queue_pair;
    let writes = vec![(register(row, qp::STATE), RESET)];
    if !session.command(&[Command { board, writes }], write, faults)?.is_empty() {
        reach(session, board, row, RESET, faults)?;
    }
    Ok(())
}

/// Waits until a queue pair has reached a state; the number of queue pair 0 then.
fn reach(
    session: &mut Session,
    board: usize,
    row: u32,
    state: u32,
    faults: &mut Faults,
) -> Result<Option<u32>, Failure> {
    let address = session.address(board);
    let name = Some(format!("qp[{row}].state"));
    let mut found = 0;
    for _ in 0..LOOKS {
        let look = Request::reads([register(row, qp::STATE), global::QPN_BASE]);
        match session.run(&[(board, look)])?.remove(0) {
            Ok(words) if qp::STATE_BITS.of(words[0][0]) == state => return Ok(Some(words[1][0])),
            Ok(words) => found = qp::STATE_BITS.of(words[0][0]),
            Err(error) => {
                let (register, message) = session.named(&error);
                faults.push(address, register, message);
                return Ok(None);
            }
        }
        std::thread::sleep(PAUSE);
    }
    faults.push(address, name, format!("is in state {found} still, after the command for state {state}"));
    Ok(None)
}

fn random() -> Result<u32, Failure> {
    getrandom::u32().map_err(|error| Failure::Fault(format!("the kernel gives no random numbers: {error}")))
}
