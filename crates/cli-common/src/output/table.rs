// SPDX-License-Identifier: Apache-2.0
//! Tables that fit the terminal: columns without room continue below, with the first column repeated.
//! Promise: no line is wider than the terminal unless the first and one other column already are; nothing is cut off.

use comfy_table::{presets, CellAlignment, ContentArrangement, Table};

/// Where the output is no terminal.
const USUAL_WIDTH: u16 = 80;

/// Columns of the terminal that standard output is.
pub fn terminal_width() -> usize {
    usize::from(console::Term::stdout().size_checked().map_or(USUAL_WIDTH, |(_, columns)| columns.max(40)))
}

/// A table with a line between rows. The first `left` columns are aligned to the left, all others to the right.
pub fn columns(header: &[&str], rows: &[Vec<String>], left: usize, width: usize) -> String {
    let blocks = blocks(&widths(header, rows), width);
    let tables: Vec<String> = blocks.iter().map(|block| of_block(header, rows, left, block).to_string()).collect();
    tables.join("\n")
}

/// Names and a text for each, wrapped.
pub fn statements(rows: Vec<(String, String)>, width: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(width).unwrap_or(USUAL_WIDTH));
    rows.into_iter().for_each(|(what, value)| {
        table.add_row([what, value]);
    });
    table
}

/// Width of each column, with the space before it and the separator.
fn widths(header: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let widest = |text: &str| text.lines().map(console::measure_text_width).max().unwrap_or(0);
    let of_column = |n: usize| {
        let cells = rows.iter().filter_map(|row| row.get(n)).map(|cell| widest(cell));
        2 + cells.chain([widest(header[n])]).max().unwrap_or(0)
    };
    (0..header.len()).map(of_column).collect()
}

/// Which columns stand side by side.
fn blocks(widths: &[usize], width: usize) -> Vec<Vec<usize>> {
    let first = widths.first().copied().unwrap_or(0);
    let (mut blocks, mut block, mut used) = (Vec::new(), vec![0], first);
    for (n, column) in widths.iter().enumerate().skip(1) {
        if used + column > width && block.len() > 1 {
            blocks.push(std::mem::replace(&mut block, vec![0]));
            used = first;
        }
        block.push(n);
        used += column;
    }
    blocks.push(block);
    blocks
}

fn of_block(header: &[&str], rows: &[Vec<String>], left: usize, block: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(block.iter().map(|n| header[*n]));
    for row in rows {
        table.add_row(block.iter().map(|n| row.get(*n).map_or("", String::as_str)));
    }
    for (column, n) in table.column_iter_mut().zip(block) {
        column.set_padding((1, 0));
        if *n >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_room_go_on_below_and_none_is_lost() {
        let header: Vec<String> = (0..12).map(|n| format!("column {n}")).collect();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = (0..3).map(|r| (0..12).map(|n| format!("{r}.{n}")).collect()).collect();
        for width in [40, 80, 200] {
            let text = columns(&header, &rows, 1, width);
            assert!(text.lines().all(|line| console::measure_text_width(line) <= width), "{width}:\n{text}");
            for cell in rows.iter().flatten().map(String::as_str).chain(header.iter().copied()) {
                assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(cell), "{width}: {cell}");
            }
            assert_eq!(text.matches("column 0").count() > 1, width < 200, "{width}");
        }
    }

    #[test]
    fn long_statements_are_wrapped() {
        let text = statements(vec![("a name".into(), "word ".repeat(60))], 80).to_string();
        assert!(text.lines().all(|line| console::measure_text_width(line) <= 80), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }
}
