// SPDX-License-Identifier: Apache-2.0
//! Field access, big-endian unless the name says little, over slices whose length a view has already checked.
//! Every header uses these functions, so an offset appears once per field.

pub(crate) fn be16(data: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([data[at], data[at + 1]])
}

pub(crate) fn be24(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, data[at], data[at + 1], data[at + 2]])
}

pub(crate) fn be32(data: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

pub(crate) fn be64(data: &[u8], at: usize) -> u64 {
    u64::from(be32(data, at)) << 32 | u64::from(be32(data, at + 4))
}

pub(crate) fn put16(data: &mut [u8], at: usize, value: u16) {
    data[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put24(data: &mut [u8], at: usize, value: u32) {
    data[at..at + 3].copy_from_slice(&value.to_be_bytes()[1..]);
}

pub(crate) fn put32(data: &mut [u8], at: usize, value: u32) {
    data[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn put64(data: &mut [u8], at: usize, value: u64) {
    data[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn le16(data: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([data[at], data[at + 1]])
}

pub(crate) fn le32(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

pub(crate) fn le64(data: &[u8], at: usize) -> u64 {
    u64::from(le32(data, at)) | u64::from(le32(data, at + 4)) << 32
}
