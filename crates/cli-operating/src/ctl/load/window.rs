// SPDX-License-Identifier: Apache-2.0
//! The windows of a board, one for each queue pair, as its registers describe them; and the choice of one.
//! Source: docs/integration.md, "Windows that servers read" and "Write to a board".

use super::super::session::Session;
use penstock_cli_common::outcome::Failure;
use penstock_ipbus::regs::qp;
use penstock_ipbus::{Options, Request};

/// What the registers of a queue pair say of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub queue_pair: u32,
    pub rkey: u32,
    /// The first address, and bytes.
    pub base: u64,
    pub len: u64,
    /// READs that may be outstanding; 0: the window is closed to them.
    pub depth: u8,
    pub may_write: bool,
    /// State of the queue pair, `enum ibv_qp_state`.
    pub state: u32,
}

/// The registers of a window, in the order of [`Window::of`].
const REGISTERS: [u32; 8] = [
    qp::STATE,
    qp::READ_RKEY,
    qp::READ_BASE_LO,
    qp::READ_BASE_HI,
    qp::READ_LENGTH_LO,
    qp::READ_LENGTH_HI,
    qp::READ_DEPTH,
    qp::RECEIVE,
];

/// Address of a register of a queue pair.
pub fn register(queue_pair: u32, offset: u32) -> u32 {
    qp::BASE + queue_pair * qp::STRIDE + offset
}

impl Window {
    fn of(queue_pair: u32, words: &[u32]) -> Window {
        let pair = |at: usize| u64::from(words[at + 1]) << 32 | u64::from(words[at]);
        Window {
            queue_pair,
            rkey: words[1],
            base: pair(2),
            len: pair(4),
            depth: qp::READ_DEPTH_RESOURCES_BITS.of(words[6]) as u8,
            may_write: qp::RECEIVE_WRITE_BITS.of(words[7]) != 0,
            state: qp::STATE_BITS.of(words[0]),
        }
    }

    /// The place of so many bytes from `offset` on.
    ///
    /// # Errors
    /// They do not fit.
    pub fn place(&self, offset: u64, bytes: u64) -> Result<u64, String> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.len => Ok(self.base.wrapping_add(offset)),
            _ => Err(format!(
                "{bytes} bytes from offset {offset} on do not fit into its window of {} bytes; load a smaller table, or \
                 set qp[{}].read_length_lo",
                self.len, self.queue_pair
            )),
        }
    }
}

/// Reads the windows of a board, to WRITE to one of them or to READ alone.
///
/// # Errors
/// The register and why, of a board that does not answer or whose build has no windows.
pub fn read(
    session: &mut Session,
    board: usize,
    queue_pairs: u32,
    writes: bool,
) -> Result<Result<Vec<Window>, String>, Failure> {
    let rows = (0..queue_pairs).flat_map(|row| REGISTERS.map(|offset| register(row, offset)));
    let requests = [(board, Request::reads(Options::REGISTERS.into_iter().chain(rows)))];
    let words: Vec<u32> = match session.run(&requests)?.remove(0) {
        Ok(words) => words.into_iter().flatten().collect(),
        Err(error) => return Ok(Err(session.named(&error).1)),
    };
    let (options, rows) = words.split_at(Options::REGISTERS.len());
    let options = Options::of(options.try_into().expect("as many as were requested"));
    Ok(match (options.receive || !writes, options.read) {
        (true, true) => {
            Ok((0..).zip(rows.chunks(REGISTERS.len())).map(|(row, words)| Window::of(row, words)).collect())
        }
        (false, _) => {
            Err("its gateware takes no WRITEs (WITH_RECEIVE is 0): load one that is built with it".to_owned())
        }
        (true, false) => Err("its gateware serves no READs (WITH_READ is 0), by which a table is verified".to_owned()),
    })
}

/// The window of this queue pair or key; without either the only one that is free.
///
/// # Errors
/// There is none, there are several, or it cannot be used; and what to do.
pub fn choose(windows: &[Window], queue_pair: Option<u32>, rkey: Option<u32>, writes: bool) -> Result<Window, String> {
    if let Some(index) = queue_pair.filter(|index| *index as usize >= windows.len()) {
        return Err(format!("it has {} queue pairs, and no {index}", windows.len()));
    }
    let fits = |window: &Window| {
        window.len > 0
            && queue_pair.is_none_or(|index| window.queue_pair == index)
            && rkey.is_none_or(|rkey| window.rkey == rkey)
    };
    let found: Vec<Window> = windows.iter().copied().filter(fits).collect();
    let free: Vec<Window> = found.iter().copied().filter(|window| usable(window, writes).is_ok()).collect();
    match (found.as_slice(), free.as_slice(), rkey) {
        (_, [one], _) => Ok(*one),
        ([one], ..) => usable(one, writes).map(|()| *one),
        ([], _, Some(rkey)) => Err(format!("no window has key {rkey:#x}; its windows: {}", listed(windows))),
        ([], ..) => Err(none(queue_pair, windows.len())),
        _ => Err(format!("choose a window by --queue-pair or --rkey: {}", listed(&found))),
    }
}

/// There is no window: how to make one.
fn none(queue_pair: Option<u32>, count: usize) -> String {
    let index = queue_pair.unwrap_or(count.saturating_sub(1) as u32);
    format!(
        "{} has no window; make one: penstock ctl set BOARD 'qp[{index}].read_base_lo=ADDRESS' \
         'qp[{index}].read_length_lo=BYTES' 'qp[{index}].read_rkey=KEY' 'qp[{index}].read_depth=16' \
         'qp[{index}].receive.write=1'",
        queue_pair.map_or("it".to_owned(), |index| format!("qp[{index}]"))
    )
}

fn usable(window: &Window, writes: bool) -> Result<(), String> {
    let index = window.queue_pair;
    match window {
        Window { state: 1.., .. } => Err(format!(
            "qp[{index}] is open: a run uses it; choose another --queue-pair, or close it: penstock ctl close BOARD \
             --queue-pairs {index}"
        )),
        Window { may_write: false, .. } if writes => {
            Err(format!("qp[{index}].receive.write is 0: its peer may not WRITE to the window; set it to 1"))
        }
        Window { depth: 0, .. } => Err(format!(
            "qp[{index}].read_depth is 0: its window is closed to READs, by which a table is verified; set it to 1 to 16"
        )),
        _ => Ok(()),
    }
}

/// "qp[3]: key 0x7, 3145728 bytes from 0x100000 on"
fn listed(windows: &[Window]) -> String {
    let named = |window: &Window| {
        let Window { queue_pair, rkey, len, base, .. } = window;
        format!("qp[{queue_pair}]: key {rkey:#x}, {len} bytes from {base:#x} on")
    };
    let all: Vec<String> = windows.iter().filter(|window| window.len > 0).map(named).collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(queue_pair: u32, len: u64) -> Window {
        Window { queue_pair, rkey: 7 + queue_pair, base: 4096, len, depth: 16, may_write: true, state: 0 }
    }

    #[test]
    fn the_only_free_window_is_taken_and_each_by_queue_pair_or_key() {
        let windows = [window(0, 0), window(1, 64), window(2, 0), window(3, 128)];
        assert_eq!(choose(&windows[..3], None, None, true).unwrap().queue_pair, 1);
        assert_eq!(choose(&windows, Some(3), None, true).unwrap().queue_pair, 3);
        assert_eq!(choose(&windows, None, Some(8), true).unwrap().queue_pair, 1);
        let busy = Window { state: 3, ..windows[1] };
        assert_eq!(choose(&[busy, windows[3]], None, None, true).unwrap().queue_pair, 3);
        let closed = Window { may_write: false, ..windows[1] };
        assert_eq!(choose(&[closed], None, None, false).unwrap().queue_pair, 1);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_what_to_do() {
        let windows = [window(0, 0), window(1, 64), window(2, 64)];
        let refused = |queue_pair, rkey| choose(&windows, queue_pair, rkey, true).unwrap_err();
        let both = "qp[1]: key 0x8, 64 bytes from 0x1000 on; qp[2]: key 0x9, 64 bytes from 0x1000 on";
        assert_eq!(refused(None, None), format!("choose a window by --queue-pair or --rkey: {both}"));
        assert_eq!(refused(None, Some(0x55)), format!("no window has key 0x55; its windows: {both}"));
        assert_eq!(refused(Some(3), None), "it has 3 queue pairs, and no 3");
        assert!(refused(Some(0), None).starts_with("qp[0] has no window; make one: penstock ctl set"));
        assert!(refused(Some(1), Some(9)).starts_with("no window has key 0x9"));
        for (changed, why) in [
            (Window { state: 3, ..windows[1] }, "qp[1] is open: a run uses it"),
            (Window { may_write: false, ..windows[1] }, "qp[1].receive.write is 0"),
            (Window { depth: 0, ..windows[1] }, "qp[1].read_depth is 0"),
        ] {
            let refused = choose(&[windows[0], changed], Some(1), None, true).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }

    #[test]
    fn a_place_is_inside_of_its_window() {
        let window = window(1, 4096);
        assert_eq!(window.place(96, 4000), Ok(4096 + 96));
        for (offset, bytes) in [(97, 4000), (0, 4097), (u64::MAX, 2)] {
            assert!(window.place(offset, bytes).unwrap_err().contains("do not fit into its window of 4096 bytes"));
        }
    }
}
