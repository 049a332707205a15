// SPDX-License-Identifier: Apache-2.0
//! NumPy archives (`.npz`), read as a whole and checked before any value is used.
//! Promise: a truncated, corrupt or wrong-shaped file gives an error with its name and what was expected; never a
//! panic.
//! Source: NEP 1 (the `.npy` format); an `.npz` is a zip archive of `.npy` members, each with its CRC-32.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use npyz::{DType, NpyHeader, Order};
use zip::ZipArchive;

/// No member of a test file is this large; a larger one is a damaged directory, not data.
const MAX_MEMBER_BYTES: u64 = 1 << 32;

/// Why a data file was refused.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("{file}: cannot be opened: {source}; give the path of an .npz file such as data/lst1_run2008/modules.npz")]
    Open { file: PathBuf, source: std::io::Error },
    #[error("{file}: not a complete .npz archive ({reason}); the file is truncated or of another kind, copy it again")]
    NotAnArchive { file: PathBuf, reason: String },
    #[error(
        "{file}: has no array `{array}`; expected are event_number, timestamp_ns, trigger_type, source, offset and payload \
         (made by `python -m penstock.convert`), or LST-1's frag, counters and event_id"
    )]
    MissingArray { file: PathBuf, array: String },
    #[error("{file}: array `{array}` is corrupt ({reason}); copy the file again")]
    Corrupt { file: PathBuf, array: String, reason: String },
    #[error("{file}: array `{array}` holds {found}, expected {expected}")]
    WrongShape { file: PathBuf, array: String, found: String, expected: String },
}

/// Where an archive is read from.
pub(crate) trait Source: Read + Seek {}
impl<S: Read + Seek> Source for S {}

/// An open archive; remembers its path for the error messages.
pub(crate) struct Npz {
    path: PathBuf,
    archive: ZipArchive<Box<dyn Source>>,
}

/// One array as stored: C order, elements in the file's little-endian bytes.
pub(crate) struct RawArray {
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl Npz {
    pub fn open(path: &Path) -> Result<Npz, DatasetError> {
        let file = File::open(path).map_err(|source| DatasetError::Open { file: path.into(), source })?;
        Npz::new(path, BufReader::new(file))
    }

    /// An archive that is open already; `path` names it in messages.
    pub fn new(path: &Path, source: impl Source + 'static) -> Result<Npz, DatasetError> {
        let archive = ZipArchive::new(Box::new(source) as Box<dyn Source>)
            .map_err(|e| DatasetError::NotAnArchive { file: path.into(), reason: e.to_string() })?;
        Ok(Npz { path: path.into(), archive })
    }

    /// Reads array `name`, whose NumPy type must be `descr` (`<u2`, `|u1`, `<i8`).
    pub fn array(&mut self, name: &str, descr: &str) -> Result<RawArray, DatasetError> {
        let member = self.member(name)?;
        let corrupt = |reason: String| DatasetError::Corrupt { file: self.path.clone(), array: name.into(), reason };

        if !has_countable_shape(&member) {
            return Err(corrupt("its shape has more elements than a file can".to_owned()));
        }
        let mut bytes = member.as_slice();
        let header = NpyHeader::from_reader(&mut bytes).map_err(|e| corrupt(e.to_string()))?;
        let (found, order) = (header.dtype().descr(), header.order());
        let item_bytes = match header.dtype() {
            DType::Plain(scalar) if found == format!("'{descr}'") && order == Order::C => scalar.num_bytes(),
            _ => None,
        };
        let Some(item_bytes) = item_bytes else {
            let found = format!("elements of type {found} in {order:?} order");
            return Err(self.wrong_shape(name, found, format!("type '{descr}' in C order")));
        };

        let shape = header.shape().to_vec();
        let expected = shape.iter().try_fold(item_bytes as u64, |n, &dim| n.checked_mul(dim));
        if expected != Some(bytes.len() as u64) {
            return Err(corrupt(format!("{} data bytes do not fill shape {shape:?}", bytes.len())));
        }
        Ok(RawArray { shape, bytes: bytes.to_vec() })
    }

    /// Whether there is such an array.
    pub fn has(&self, name: &str) -> bool {
        self.archive.index_for_name(&format!("{name}.npy")).is_some()
    }

    pub fn wrong_shape(&self, array: &str, found: String, expected: String) -> DatasetError {
        DatasetError::WrongShape { file: self.path.clone(), array: array.into(), found, expected }
    }

    /// The whole member, so that its CRC-32 is checked before its header is read.
    fn member(&mut self, name: &str) -> Result<Vec<u8>, DatasetError> {
        let file = self.path.clone();
        let corrupt = |reason| DatasetError::Corrupt { file: file.clone(), array: name.into(), reason };
        let mut member = match self.archive.by_name(&format!("{name}.npy")) {
            Ok(member) => member,
            Err(zip::result::ZipError::FileNotFound) => {
                return Err(DatasetError::MissingArray { file, array: name.into() });
            }
            Err(e) => return Err(corrupt(e.to_string())),
        };
        if member.size() > MAX_MEMBER_BYTES {
            return Err(corrupt(format!("{} bytes announced, at most {MAX_MEMBER_BYTES} possible", member.size())));
        }
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(|e| corrupt(e.to_string()))?;
        Ok(bytes)
    }
}

/// Whether the number of elements in the header of a `.npy` file is a number of 64 bits: npyz, which reads headers,
/// multiplies without a check.
pub fn has_countable_shape(file: &[u8]) -> bool {
    const LONGEST_HEADER: usize = 1 << 16;
    let text = String::from_utf8_lossy(&file[..file.len().min(LONGEST_HEADER)]);
    let shape = text.split_once("'shape'").and_then(|(_, rest)| rest.split_once(')')).map_or("", |(shape, _)| shape);
    let sizes = shape.split(|sign: char| !sign.is_ascii_digit()).filter(|size| !size.is_empty());
    let mut sizes = sizes.map(|size| size.parse::<u64>().ok());
    sizes.try_fold(1u64, |count, size| count.checked_mul(size?.max(1))).is_some()
}
