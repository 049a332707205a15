// SPDX-License-Identifier: Apache-2.0
//! The bytes of a table: those of an array in a `.npy` file, or a file of any other name as it is.
//! Promise: the elements are in C order and as the file has them, their byte order included; a file that is cut off or has
//! no bytes of its own, such as pickled objects, is refused by name.
//! Source: NEP 1 (the `.npy` format).

use bytes::Bytes;
use npyz::{NpyHeader, Order};
use penstock_readout::has_countable_shape;
use std::path::Path;

/// A table to be loaded.
#[derive(Debug, Clone)]
pub struct Table {
    pub bytes: Bytes,
    /// "'<u2', 4 x 512"; of a file that is no array "binary".
    pub kind: String,
}

impl Table {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is empty, or is no array whose bytes can be loaded.
    pub fn read(path: &Path) -> Result<Table, String> {
        let named = |why: String| format!("{}: {why}", path.display());
        let file = std::fs::read(path).map_err(|error| named(error.to_string()))?;
        let table = match path.extension().is_some_and(|extension| extension == "npy") {
            true => array(&file),
            false => Ok(Table { bytes: file.into(), kind: "binary".to_owned() }),
        };
        match table.map_err(named)? {
            table if table.bytes.is_empty() => Err(named("it has no bytes to load".to_owned())),
            table => Ok(table),
        }
    }
}

fn array(file: &[u8]) -> Result<Table, String> {
    if !has_countable_shape(file) {
        return Err("its shape has more elements than a file can; the file is damaged".to_owned());
    }
    let mut data = file;
    let header = NpyHeader::from_reader(&mut data)
        .map_err(|error| format!("no .npy file ({error}); give a binary file another name to load it as it is"))?;
    let (descr, shape) = (header.dtype().descr(), header.shape().to_vec());
    let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
    let kind = format!("{descr}, {}", if sizes.is_empty() { "one element".to_owned() } else { sizes.join(" x ") });
    let Some(item) = header.dtype().num_bytes().filter(|_| !header.uses_pickled_array()) else {
        return Err(format!("elements of type {descr} have no fixed bytes; save numbers, as by array.astype('<u4')"));
    };
    if header.order() == Order::Fortran && shape.iter().filter(|size| **size > 1).count() > 1 {
        return Err("the array is in Fortran order; save numpy.ascontiguousarray(array)".to_owned());
    }
    let expected = shape.iter().try_fold(item as u64, |bytes, size| bytes.checked_mul(*size));
    if expected != Some(data.len() as u64) {
        return Err(format!("{} bytes do not fill {kind}; the file is cut off or damaged", data.len()));
    }
    Ok(Table { bytes: Bytes::copy_from_slice(data), kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A `.npy` file of version 1.
    fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\0", length.as_slice(), header.as_bytes(), data].concat()
    }

    fn read(name: &str, file: &[u8]) -> Result<Table, String> {
        let folder = tempfile::tempdir().unwrap();
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, file).unwrap();
        Table::read(&path).map_err(|why| why.replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn elements_are_loaded_as_the_file_has_them() {
        let data: Vec<u8> = (0..24).collect();
        for (descr, shape, kind) in [
            ("'<u2'", "(3, 4)", "'<u2', 3 x 4"),
            ("'>i8'", "(3,)", "'>i8', 3"),
            ("[('pedestal', '<u2'), ('threshold', '<i2')]", "(6,)", "[('pedestal', '<u2'), ('threshold', '<i2'), ], 6"),
        ] {
            let table = read("table.npy", &npy(descr, "False", shape, &data)).unwrap();
            assert_eq!((table.kind.as_str(), &table.bytes[..]), (kind, &data[..]));
        }
        let table = read("one.npy", &npy("'<f8'", "False", "()", &data[..8])).unwrap();
        assert_eq!((table.kind.as_str(), table.bytes.len()), ("'<f8', one element", 8));
        let table = read("table.bin", &data).unwrap();
        assert_eq!((table.kind.as_str(), &table.bytes[..]), ("binary", &data[..]));
    }

    #[test]
    fn what_has_no_bytes_in_order_is_refused_by_name() {
        for (name, file, why) in [
            ("a.npy", npy("'|O'", "False", "(2,)", &[0; 16]), "a.npy: elements of type '|O' have no fixed bytes"),
            ("b.npy", npy("'<u2'", "True", "(2, 3)", &[0; 12]), "b.npy: the array is in Fortran order"),
            ("c.npy", npy("'<u2'", "False", "(2, 3)", &[0; 11]), "c.npy: 11 bytes do not fill '<u2', 2 x 3"),
            ("d.npy", npy("'<u2'", "False", "(9223372036854775807, 4)", &[0; 8]), "d.npy: its shape has more"),
            ("d.npy", npy("'<u2'", "False", "(0, 9223372036854775807, 4)", &[]), "d.npy: its shape has more"),
            ("d.npy", npy("'<u8'", "False", "(9223372036854775807,)", &[0; 8]), "d.npy: 8 bytes do not fill"),
            ("e.npy", npy("'<u2'", "False", "(0,)", &[]), "e.npy: it has no bytes to load"),
            ("f.npy", b"pedestals".to_vec(), "f.npy: no .npy file"),
            ("g.bin", vec![], "g.bin: it has no bytes to load"),
        ] {
            let refused = read(name, &file).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
        assert!(Table::read(Path::new("/no/such.npy")).unwrap_err().starts_with("/no/such.npy: No such file"));
    }

    #[test]
    fn fortran_order_of_one_dimension_is_c_order() {
        assert!(read("a.npy", &npy("'<u2'", "True", "(1, 3)", &[0; 6])).is_ok());
    }
}
