// SPDX-License-Identifier: Apache-2.0
//! Reads the files that a scenario names, through a function that the caller provides.

use std::io;
use std::path::Path;

/// Gives the bytes of a file.
pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// A file as text, without the byte order mark that some editors put in front.
pub(super) fn read_text(read_file: ReadFile, path: &Path) -> io::Result<String> {
    let kind = io::ErrorKind::InvalidData;
    let bytes = read_file(path)?;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes);
    String::from_utf8(bytes.to_vec()).map_err(|_| io::Error::new(kind, "it is no UTF-8 text"))
}
