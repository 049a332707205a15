// SPDX-License-Identifier: Apache-2.0
//! `report.html`: the page with one run in it, a single file that opens without a server.
//! Promise: values are those of the recording to the last bit, as many rows as `MAX_VALUES` allows; the file loads
//! nothing from elsewhere.
//!
//! Columns are little-endian f64; bytes of equal significance are stored together, which halves the size after deflate;
//! then gzip and base64. The page decodes this with the browser's DecompressionStream.

use crate::assets;
use crate::recording::{lock, Recording, Shared};
use flate2::write::GzEncoder;
use flate2::Compression;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;

/// Most values in the file, about 8 MB of it.
const MAX_VALUES: usize = 1 << 20;

/// Nothing from outside; what the file holds itself may run.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
                      script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'\">";

/// Writes a finished run; thins its rows out first if there are too many for a file to be opened at ease. A file that
/// cannot be written whole (the disk is full) is not there afterwards.
pub fn write_report(path: &Path, recording: &Shared) -> io::Result<()> {
    let mut recording = lock(recording);
    while recording.rows() * recording.manifest.columns > MAX_VALUES && recording.rows() >= 2 {
        recording.thin();
    }
    let partial = path.with_extension("html.part");
    let written = std::fs::write(&partial, html(&recording)?).and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
}

fn html(recording: &Recording) -> io::Result<String> {
    let head = json!({
        "manifest": recording.manifest,
        "progress": recording.progress,
        "settings": recording.settings,
        "applied": recording.applied,
        "summary": recording.summary,
        "stride": recording.stride(),
        "rows": recording.rows(),
    });
    let style = format!("{POLICY}\n<style>{}</style>", assets::STYLE);
    let run = format!(
        "<script type=\"application/json\" id=\"run\">{}</script>\n\
         <script type=\"application/octet-stream\" id=\"values\">{}</script>\n",
        // `<` only occurs in strings of JSON, where it may be written so: no text can end the element early.
        head.to_string().replace('<', "\\u003c"),
        base64(&packed(recording)?),
    );
    let script = format!("{run}<script type=\"module\">{}</script>", assets::SCRIPT.replace("</script", "<\\/script"));
    Ok(assets::INDEX.replacen(assets::STYLE_TAG, &style, 1).replacen(assets::SCRIPT_TAG, &script, 1))
}

/// All values, column by column, bytes transposed, compressed.
fn packed(recording: &Recording) -> io::Result<Vec<u8>> {
    let values: Vec<[u8; 8]> =
        recording.slice(0, recording.rows()).concat().iter().map(|value| value.to_le_bytes()).collect();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::new(6));
    for weight in 0..8 {
        let plane: Vec<u8> = values.iter().map(|bytes| bytes[weight]).collect();
        gzip.write_all(&plane)?;
    }
    gzip.finish()
}

/// RFC 4648 section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            match place <= group.len() {
                true => text.push(DIGITS[(word >> (18 - 6 * place)) as usize & 63] as char),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Settings;
    use crate::manifest::Manifest;
    use crate::recording::Recorder;
    use std::io::Read;

    #[test]
    fn base64_is_that_of_rfc_4648_section_10() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    fn recording(title: &str) -> Shared {
        let manifest = Manifest { title: title.into(), interval_ps: 1, columns: 2, ..Manifest::default() };
        let shared = Recording::new(manifest, Settings::default()).shared();
        let mut recorder = Recorder::new(shared.clone(), 0);
        for row in 0..3 {
            recorder.record(row, 0, row as f64 / 3.0);
        }
        recorder.finish();
        shared
    }

    #[test]
    fn packed_values_unpack_to_the_last_bit() {
        let shared = recording("");
        let mut planes = Vec::new();
        flate2::read::GzDecoder::new(&packed(&lock(&shared)).unwrap()[..]).read_to_end(&mut planes).unwrap();
        let count = planes.len() / 8;
        let unpacked: Vec<u64> =
            (0..count).map(|n| u64::from_le_bytes(std::array::from_fn(|weight| planes[weight * count + n]))).collect();
        let expected = [0.0, 1.0 / 3.0, 2.0 / 3.0, f64::NAN, f64::NAN, f64::NAN].map(f64::to_bits);
        assert_eq!(unpacked, expected);
    }

    #[test]
    fn a_title_cannot_break_out_of_the_data() {
        let text = html(&lock(&recording("</script><script>alert(1)</script>"))).unwrap();
        assert!(!text.contains("<script>alert"), "{text}");
        assert!(!text.contains("src=\"./app.js\"") && !text.contains("href=\"./app.css\""));
    }
}
