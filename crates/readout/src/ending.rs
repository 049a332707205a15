// SPDX-License-Identifier: Apache-2.0
//! What follows the row groups of an event file: the seal and the footer.
//! Promise: an ending that is damaged, cut or moved by a single byte is not proven. Nothing is decoded that has no
//! checksum, but for files of other programs.
//! Source: the layout of `segment.rs`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parquet::file::metadata::ParquetMetaDataReader;

use crate::recover::Walk;
use crate::segment::{Frame, FRAME_LEN, PARQUET_MAGIC};

/// The length of the footer, and the magic.
const TAIL_LEN: u64 = 8;

/// What is known of the bytes after the row groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The footer has the checksum in its seal, or is that of the row groups in front of it.
    Proven,
    /// Another program has written the file, or row groups are damaged: no checksum says what the footer must be. So many
    /// bytes lie between the last whole row group and the footer.
    Unproven(u64),
    Damaged(String),
}

/// Looks at the end of a file.
///
/// # Errors
/// Those of the operating system.
pub(crate) fn ending(file: &File, found: &Walk) -> io::Result<Ending> {
    let len = file.metadata()?.len();
    let damaged = |what: String| Ok(Ending::Damaged(what));
    let Some(tail_at) = len.checked_sub(TAIL_LEN).filter(|at| *at >= PARQUET_MAGIC.len() as u64) else {
        return damaged("has no footer that can be read: it is too short".into());
    };
    let mut tail = [0; TAIL_LEN as usize];
    file.read_exact_at(&mut tail, tail_at)?;
    let [a, b, c, d, magic @ ..] = tail;
    let footer_at = tail_at.checked_sub(u32::from_le_bytes([a, b, c, d]).into());
    let footer_at = footer_at.filter(|at| magic == PARQUET_MAGIC && *at >= found.end);
    let Some(footer_at) = footer_at else {
        let hint = "; `--recover` completes a *.partial";
        return damaged(format!(
            "has no footer that can be read: its last {TAIL_LEN} bytes are not those of one{hint}"
        ));
    };
    let mut footer = vec![0; (len - footer_at) as usize];
    file.read_exact_at(&mut footer, footer_at)?;
    let seal_at = footer_at.checked_sub(FRAME_LEN as u64).filter(|at| *at >= found.end);
    let seal = seal_at.map(|at| -> io::Result<_> {
        let mut bytes = [0; FRAME_LEN];
        file.read_exact_at(&mut bytes, at)?;
        Ok(Frame::parse_seal(&bytes))
    });
    let seal = seal.transpose()?.flatten();
    match seal {
        Some(seal) if seal != Frame::of(seal.ordinal, &footer) => {
            damaged("its footer does not have the CRC-32C of its seal".into())
        }
        Some(_) if !found.torn && seal_at != Some(found.end) => {
            damaged("bytes between its last row group and its footer belong to nothing".into())
        }
        Some(_) => Ok(Ending::Proven),
        None if found.torn || found.footer.row_groups() == 0 => Ok(Ending::Unproven(footer_at - found.end)),
        None if footer_at != found.end => damaged("the seal in front of its footer is damaged".into()),
        None if is_footer_of(found, &footer) => Ok(Ending::Proven),
        None => damaged("its footer is not that of its row groups".into()),
    }
}

/// The rule for files of versions without a seal. The footer of another version may be other bytes of the same meaning.
fn is_footer_of(found: &Walk, footer: &[u8]) -> bool {
    let Ok(Some(expected)) = found.footer.unsealed() else { return false };
    if footer == expected {
        return true;
    }
    let decode = |bytes: &[u8]| {
        let thrift = &bytes[..bytes.len() - TAIL_LEN as usize];
        std::panic::catch_unwind(|| ParquetMetaDataReader::decode_metadata(thrift).ok()).ok().flatten()
    };
    let (ours, theirs) = (decode(&expected), decode(footer));
    let is_of_this_version = ours.as_ref().is_some_and(|metadata| {
        metadata.file_metadata().created_by() == Some(concat!("penstock ", env!("CARGO_PKG_VERSION")))
    });
    !is_of_this_version && ours.is_some() && ours == theirs
}
