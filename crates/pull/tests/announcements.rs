// SPDX-License-Identifier: Apache-2.0
//! A board's announcements and their intake by the server: an idle board announces at once, the READs of a busy one bring
//! what follows, in order whatever is lost, late or repeated; what is wrong is named.

use std::collections::VecDeque;

use penstock_pull::{Announcements, Intake, IntakeError, Offer};
use penstock_wire::{announcement, successors_to_bytes, Announced, Entry, SUCCESSORS_LEN};
use proptest::prelude::*;

const STRIDE: u32 = 4096;

fn fragment(index: u64, event: u64) -> Announced {
    Announced { event, address: index * u64::from(STRIDE), length: 100 + event as u32 % 1000 }
}

fn board() -> Announcements {
    Announcements::new(7, STRIDE, 4096)
}

fn push(board: &mut Announcements, events: impl IntoIterator<Item = u64>) {
    events.into_iter().for_each(|event| board.push(fragment(event, event)));
}

fn events(offers: &[Offer]) -> Vec<u64> {
    offers.iter().map(|offer| offer.fragment.event).collect()
}

/// The events of a message that the board sends now.
fn message(board: &mut Announcements) -> Option<Vec<u64>> {
    let bytes = board.poll_message()?;
    let (mut intake, mut out) = (Intake::default(), Vec::new());
    let carried = bytes[7];
    let mut alone = bytes;
    alone[7] = 0;
    intake.take_message(&alone, &mut out).unwrap();
    assert!(carried < 100);
    Some(events(&out))
}

/// The lengths that are read with a fragment now.
fn successors(board: &mut Announcements) -> Vec<u32> {
    let bytes = board.poll_successors();
    penstock_wire::successors_from_bytes(&bytes).iter().map(|entry| entry.length).filter(|length| *length > 0).collect()
}

#[test]
fn an_idle_board_announces_at_once_and_the_reads_of_a_busy_one_bring_what_follows() {
    let mut board = board();
    push(&mut board, [0]);
    assert_eq!(message(&mut board), Some(vec![0]));
    push(&mut board, 1..7);
    assert_eq!(message(&mut board), None, "one is not acknowledged");
    board.acknowledged();
    assert_eq!(message(&mut board), None, "the READ of fragment 0 will bring them");
    assert_eq!(successors(&mut board), [101, 102]);
    assert_eq!(message(&mut board), None);
    assert_eq!(successors(&mut board), [103, 104]);
    assert_eq!(successors(&mut board), [105, 106]);
    for _ in 3..7 {
        assert_eq!(successors(&mut board), [0; 0]);
    }
    push(&mut board, [7, 8]);
    assert_eq!(message(&mut board), Some(vec![7, 8]), "all has been read, it is idle again");
}

#[test]
fn nothing_is_named_with_a_fragment_while_a_message_is_not_acknowledged() {
    let mut board = board();
    push(&mut board, [0, 1]);
    assert_eq!(message(&mut board), Some(vec![0, 1]));
    push(&mut board, [2]);
    assert_eq!(successors(&mut board), [0; 0]);
    board.acknowledged();
    assert_eq!(successors(&mut board), [102]);
}

#[test]
fn a_fragment_that_no_entry_names_needs_a_message() {
    for far in [fragment(1, 257), Announced { address: 0, ..fragment(1, 1) }] {
        let mut board = board();
        board.push(fragment(0, 0));
        assert_eq!(message(&mut board), Some(vec![0]));
        board.push(far);
        board.push(Announced { event: far.event + 3, address: far.address + u64::from(STRIDE), length: 5 });
        assert_eq!(message(&mut board), None, "the first one is not acknowledged");
        board.acknowledged();
        assert_eq!(message(&mut board), Some(vec![far.event, far.event + 3]), "{far:?}");
    }
}

#[test]
fn a_message_is_one_packet() {
    for (mtu, most) in [(256, 44), (4096, 96)] {
        let mut board = Announcements::new(7, STRIDE, mtu);
        push(&mut board, 0..200);
        assert_eq!(message(&mut board).map(|events| events.len()), Some(most));
    }
}

#[test]
fn what_is_announced_wrongly_is_named_and_what_is_announced_twice_is_counted() {
    let mut out = Vec::new();
    let none = [0; SUCCESSORS_LEN];
    assert_eq!(Intake::default().take_successors(&none, &mut out), Err(IntakeError::NothingBefore));
    let after = |carried, event| announcement(carried, (7, STRIDE), fragment(event, event), &[]);
    let begun = || {
        let mut intake = Intake::default();
        intake.take_message(&after(0, 5), &mut Vec::new()).unwrap();
        intake
    };
    let one = Entry { skipped: 0, length: 10 };
    let hole = successors_to_bytes([Entry::default(), one]);
    assert_eq!(begun().take_successors(&hole, &mut out), Err(IntakeError::Hole));
    let skipped = successors_to_bytes([Entry { skipped: 1, length: 0 }, Entry::default()]);
    assert_eq!(begun().take_successors(&skipped, &mut out), Err(IntakeError::Hole));
    let long = successors_to_bytes([Entry { skipped: 0, length: STRIDE }, Entry::default()]);
    let outcome = begun().take_successors(&long, &mut out).unwrap_err().to_string();
    assert!(outcome.starts_with("announcement of event 6: 4096 bytes"), "{outcome}");
    assert!(out.is_empty());

    let mut intake = begun();
    intake.take_message(&after(0, 5), &mut out).unwrap();
    intake.take_message(&after(0, 3), &mut out).unwrap();
    assert_eq!((events(&out), intake.repeated()), (vec![], 2));

    let mut intake = begun();
    intake.take_message(&after(2, 9), &mut out).unwrap();
    assert_eq!(events(&out), [0; 0], "the successors of event 5 may name them");
    assert_eq!(intake.take_successors(&none, &mut out), Err(IntakeError::Missing(2)));
    let mut intake = begun();
    for event in 9..25 {
        intake.take_message(&after(2, event), &mut out).unwrap();
    }
    assert_eq!(intake.take_message(&after(2, 25), &mut out), Err(IntakeError::TooMany));
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The board takes fragments, each this number of events after the one before.
    Push(u8, u8),
    /// The server reads this number of fragments at most. The first answers are lost, with all after them: it
    /// reads those again.
    Read { most: u8, lost: u8 },
    /// A message comes: the one that was sent last may be late.
    Message,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..6u8, prop_oneof![Just(0u8), Just(2), Just(255)]).prop_map(|(count, gap)| Step::Push(count, gap)),
        (1..17u8, 0..4u8).prop_map(|(most, lost)| Step::Read { most, lost }),
        Just(Step::Message),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #[test]
    fn each_fragment_is_given_out_once_and_in_order_whatever_is_late(steps in steps(), slots in 3..40u64) {
        let (mut board, mut intake) = (board(), Intake::default());
        let (mut pushed, mut event) = (Vec::new(), 0);
        let mut messages = VecDeque::<Vec<u8>>::new();
        let (mut given, mut read) = (Vec::new(), 0);
        // Answers that were made and have not come: their bytes stay the same.
        let mut answered: VecDeque<[u8; SUCCESSORS_LEN]> = VecDeque::new();
        let all = steps.into_iter().chain((0..200).flat_map(|_| [Step::Message, Step::Read { most: 16, lost: 0 }]));
        for step in all {
            match step {
                Step::Push(count, gap) => for _ in 0..count {
                    event += 1 + u64::from(gap);
                    board.push(fragment(pushed.len() as u64 % slots, event));
                    pushed.push(event);
                },
                Step::Read { most, lost } => {
                    let able = usize::from(most).min(given.len() - read);
                    while answered.len() < able {
                        answered.push_back(board.poll_successors());
                    }
                    for _ in usize::from(lost)..able {
                        intake.take_successors(&answered.pop_front().unwrap(), &mut given).unwrap();
                        read += 1;
                    }
                }
                Step::Message => if let Some(bytes) = messages.pop_front() {
                    intake.take_message(&bytes, &mut given).unwrap();
                    board.acknowledged();
                },
            }
            messages.extend(board.poll_message());
        }
        prop_assert_eq!(events(&given), pushed);
        prop_assert_eq!((read, board.waiting(), intake.repeated()), (given.len(), 0, 0));
    }
}
