// SPDX-License-Identifier: SHL-2.1
// Merges two streams of messages, a whole message at a time, in turn if both have one.
// Promise: a word that is shown holds until it is taken, and no message is divided; `busy`: a message has begun and has
// not ended, and `owner` is its side. A change of side takes a cycle.
module stream_turns #(
  parameter int unsigned W = 16
) (
  input  logic              clk,
  input  logic              rst,

  input  logic [1:0][W-1:0] s_data,
  input  logic [1:0]        s_valid,
  output logic [1:0]        s_ready,
  input  logic [1:0]        s_last,

  output logic [W-1:0]      m_data,
  output logic              m_valid,
  input  logic              m_ready,
  output logic              m_last,

  output logic              owner,
  output logic              busy
);
  logic taken, free;
  assign taken = m_valid && m_ready;
  assign free  = taken ? m_last : !busy && !m_valid;

  assign m_data  = s_data[owner];
  assign m_valid = s_valid[owner];
  assign m_last  = s_last[owner];
  assign s_ready = {m_ready && owner, m_ready && !owner};

  always_ff @(posedge clk) begin
    if (taken) busy <= !m_last;
    if (free && s_valid[!owner]) owner <= !owner;
    if (rst) {owner, busy} <= '0;
  end
endmodule
