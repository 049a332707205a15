// SPDX-License-Identifier: SHL-2.1
// The waveform generator of docs/digitiser.md on a clock of its own, and the way from one input to the message. Prints each
// beat that the input takes, and each beat of the messages.
module waveform_tb;
  localparam int unsigned EVENTS = 5;

  logic clk = 1'b0, adc_clk = 1'b0, rst = 1'b1, trigger = 1'b0, busy;
  always #3.2ns clk = !clk;
  always #5ns adc_clk = !adc_clk;

  logic [63:0] time_ns = '0;
  logic [63:0] tdata, message_tdata;
  logic [7:0] tkeep, message_tkeep;
  logic [143:0] tuser;
  logic tvalid, tready, tlast, message_tvalid, message_tlast, first = 1'b1;
  logic [175:0] desc;
  logic desc_valid, stat_valid, stat_message;
  logic [3:0] stat_input;
  event_pkg::merger_stat_t stat;
  event_pkg::event_cfg_t cfg;

  waveform_source u_source (
    .clk(adc_clk), .rst, .trigger, .time_ns, .trigger_type(16'd9), .busy,
    .m_axis_tdata(tdata), .m_axis_tkeep(tkeep), .m_axis_tuser(tuser), .m_axis_tvalid(tvalid), .m_axis_tready(tready),
    .m_axis_tlast(tlast)
  );

  always_comb begin
    cfg                = '0;
    cfg.source_id      = 16'd7;
    cfg.merger.enable  = 16'd1;
    cfg.merger.timeout = 32'd1000;
    cfg.merger.limit   = 32'h8000_0000;
  end

  event_path #(.N_IN(1), .EVENT_BYTES(1024)) u_path (
    .clk, .rst, .cfg, .resync(1'b0),
    .s_clk(adc_clk), .s_rst(rst), .s_axis_tdata(tdata), .s_axis_tkeep(tkeep), .s_axis_tuser(tuser),
    .s_axis_tvalid(tvalid), .s_axis_tready(tready), .s_axis_tlast(tlast),
    .s_axis_trigger_tdata('0), .s_axis_trigger_tvalid(1'b0),
    .m_axis_desc_tdata(desc), .m_axis_desc_tvalid(desc_valid), .m_axis_desc_tready(1'b1),
    .m_axis_data_tdata(message_tdata), .m_axis_data_tkeep(message_tkeep), .m_axis_data_tvalid(message_tvalid),
    .m_axis_data_tready(1'b1), .m_axis_data_tlast(message_tlast),
    .stat_valid, .stat_input, .stat, .stat_message
  );

  always @(posedge adc_clk) if (!rst && tvalid && tready) begin
    $display("beat %x %x %0d %x", tdata, tkeep, tlast, first ? tuser : 144'd0);
    first <= tlast;
  end
  int unsigned messages = 0;
  always @(posedge clk) if (!rst && message_tvalid) begin
    $display("message %x %x %0d", message_tdata, message_tkeep, message_tlast);
    if (message_tlast) messages <= messages + 1;
  end

  initial begin
    repeat (10) @(negedge adc_clk);
    rst = 1'b0;
    for (int n = 0; n < int'(EVENTS); n++) begin
      time_ns = 64'd1000 * (n + 1);
      trigger = 1'b1;
      @(negedge adc_clk);
      trigger = 1'b0;
      while (busy) @(negedge adc_clk);
    end
    while (messages < EVENTS) @(negedge clk);
    $finish;
  end
endmodule
