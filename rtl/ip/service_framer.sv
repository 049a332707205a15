// SPDX-License-Identifier: SHL-2.1
// Makes the frames of N services one stream: in turn, each whole, padded to the Ethernet minimum.
// Promise: a frame's bytes are its request's head and then its own payload stream; requests of one
// service keep their order (RFC 894; IEEE 802.3 3.2.8 padding).
module service_framer
  import services_pkg::*;
#(
  parameter int unsigned N = 4
) (
  input  logic clk,
  input  logic rst,

  input  logic [47:0] local_mac,

  input  tx_req_t [N-1:0]      req,
  input  logic   [N-1:0]       req_valid,
  output logic   [N-1:0]       req_ready,
  input  logic   [N-1:0][63:0] s_axis_tdata,
  input  logic   [N-1:0][7:0]  s_axis_tkeep,
  input  logic   [N-1:0]       s_axis_tvalid,
  output logic   [N-1:0]       s_axis_tready,
  input  logic   [N-1:0]       s_axis_tlast,

  output logic [63:0] m_axis_tdata,
  output logic [7:0]  m_axis_tkeep,
  output logic        m_axis_tvalid,
  input  logic        m_axis_tready,
  output logic        m_axis_tlast,

  output logic stat_frame
);
  import ip_pkg::*;

  localparam int unsigned MinFrame = 60;
  localparam int unsigned IndexW   = N > 1 ? $clog2(N) : 1;

  typedef enum logic [1:0] {
    StIdle,
    StHead,
    StPayload
  } state_e;

  state_e            state_q;
  logic [IndexW-1:0] chosen_q;
  tx_req_t           req_q;
  logic              any, prefix_ready;
  // verilator lint_off UNUSEDSIGNAL
  logic [7:0]        choice;
  // verilator lint_on UNUSEDSIGNAL

  arbiter_rr #(.N(N)) u_arbiter (
    .clk, .rst,
    .req  (req_valid),
    .take (state_q == StIdle),
    .valid(any),
    .index(choice)
  );

  // ---- one request at a time --------------------------------------------------------------------------
  logic [63:0] payload_tdata;
  logic [7:0]  payload_tkeep;
  logic payload_tvalid, payload_tready, payload_tlast;

  assign payload_tdata  = s_axis_tdata[chosen_q];
  assign payload_tkeep  = s_axis_tkeep[chosen_q];
  assign payload_tlast  = s_axis_tlast[chosen_q];
  assign payload_tvalid = state_q == StPayload && s_axis_tvalid[chosen_q];

  always_comb begin
    req_ready     = '0;
    s_axis_tready = '0;
    if (state_q == StIdle && any) req_ready[choice[IndexW-1:0]] = 1'b1;
    if (state_q == StPayload) s_axis_tready[chosen_q] = payload_tready;
  end

  always_ff @(posedge clk) begin
    case (state_q)
      StIdle:
        if (any) begin
          state_q  <= StHead;
          chosen_q <= choice[IndexW-1:0];
          req_q    <= req[choice[IndexW-1:0]];
        end
      StHead: if (prefix_ready) state_q <= req_q.payload_bytes != '0 ? StPayload : StIdle;
      default: if (payload_tvalid && payload_tready && payload_tlast) state_q <= StIdle;
    endcase
    stat_frame <= state_q == StHead && prefix_ready;
    if (rst) begin
      state_q    <= StIdle;
      stat_frame <= 1'b0;
    end
  end

  // ---- the frame ----------------------------------------------------------------------------------------
  eth_hdr_t               eth;
  logic [8*HeadBytes-1:0] prefix;
  logic [13:0]            unpadded;
  assign eth      = '{dst: req_q.dst_mac, src: local_mac, ethertype: req_q.ethertype};
  assign prefix   = {<<8{eth, req_q.body}};
  assign unpadded = req_q.payload_bytes + 14'(HeadBytes);

  axis_prepend #(
    .DATA_W           (64),
    .PREFIX_BYTES_MAX (HeadBytes),
    .LENGTH_W         (14)
  ) u_prepend (
    .clk, .rst,
    .prefix        (prefix),
    .prefix_words  (6'((HeadBytes - EthBytes) / 4)),
    .payload_bytes (req_q.payload_bytes),
    .frame_bytes   (unpadded < 14'(MinFrame) ? 14'(MinFrame) : unpadded),
    .prefix_valid  (state_q == StHead),
    .prefix_ready  (prefix_ready),
    .s_axis_tdata  (payload_tdata),
    .s_axis_tkeep  (payload_tkeep),
    .s_axis_tvalid (payload_tvalid),
    .s_axis_tready (payload_tready),
    .s_axis_tlast  (payload_tlast),
    .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast
  );
endmodule
