// SPDX-License-Identifier: SHL-2.1
// Triggers from the samples themselves: thresholds of channels, their number and their sum in each input, and the
// coincidence of inputs, as a board decides that has no trigger system (AdvCam, section I: front ends digitise, trigger and
// packetise).
//
//   A channel is up from a sample at `threshold` or above until `width` cycles after the last such sample.
//   An input fires while `multiplicity` of its channels or more are up, or in the cycle of samples whose sum is
//   `sum_threshold` or above; it counts until `window` cycles later.
//   A trigger is the cycle in which `coincidence` inputs or more count and one cycle before it was fewer.
//
// A multiplicity, sum_threshold or coincidence of 0 never holds. Samples are unsigned; channels whose mask bit is 0 have
// none. A trigger comes log2(CHANNELS) + 4 cycles after the samples that complete it, with its number from 0 and, as its
// type, the inputs that count. Its outputs are those of the front end's ports trigger_*, which add dead time, veto and busy.
// Settings may change at any time; a trigger may then come from both old and new ones.
module local_trigger #(
  parameter  int unsigned N_IN     = 1,   // 1 to 16
  parameter  int unsigned CHANNELS = 4,   // of each input, a power of two
  parameter  int unsigned SAMPLE_W = 16,
  localparam int unsigned Levels   = $clog2(CHANNELS),
  localparam int unsigned SumW     = SAMPLE_W + Levels,
  localparam int unsigned CountW   = Levels + 1
) (
  input logic clk,
  input logic rst,

  // one sample of each channel of an input in each cycle that is valid
  input logic [N_IN-1:0][CHANNELS-1:0][SAMPLE_W-1:0] samples,
  input logic [N_IN-1:0]                             valid,

  input logic [N_IN-1:0][CHANNELS-1:0] mask,  // channels that take part
  input logic [SAMPLE_W-1:0]           threshold,
  input logic [7:0]                    width,
  input logic [CountW-1:0]             multiplicity,
  input logic [SumW-1:0]               sum_threshold,
  input logic [7:0]                    window,
  input logic [4:0]                    coincidence,

  output logic [N_IN-1:0] fires,  // each cycle in which an input fires, for counters of rates

  output logic        trigger_valid,
  output logic [63:0] trigger_number,
  output logic [15:0] trigger_type
);
  if (N_IN == 0 || N_IN > 16) begin : gen_check_inputs
    $fatal(1, "%m: N_IN is %0d; it must be 1 to 16", N_IN);
  end
  if (CHANNELS == 0 || CHANNELS != 2 ** Levels) begin : gen_check_channels
    $fatal(1, "%m: CHANNELS is %0d; it must be a power of two", CHANNELS);
  end

  logic [N_IN-1:0] counts;

  for (genvar i = 0; i < int'(N_IN); i++) begin : gen_input
    // ---- channels that are up, and their samples --------------------------------------------------------------
    logic [CHANNELS-1:0] above_q, up;
    logic [CHANNELS-1:0][7:0] left_q;  // cycles that a channel stays up
    logic [CHANNELS-1:0][SAMPLE_W-1:0] sample_q;

    for (genvar c = 0; c < int'(CHANNELS); c++) begin : gen_channel
      assign up[c] = above_q[c] || left_q[c] != '0;
      always_ff @(posedge clk) begin
        above_q[c]  <= valid[i] && mask[i][c] && samples[i][c] >= threshold;
        sample_q[c] <= valid[i] && mask[i][c] ? samples[i][c] : '0;
        left_q[c]   <= above_q[c] ? width : left_q[c] - 8'(left_q[c] != '0);
        if (rst) begin
          above_q[c] <= 1'b0;
          left_q[c]  <= '0;
        end
      end
    end

    // ---- their number and sum, a level of the tree each cycle ---------------------------------------------------
    for (genvar l = 0; l <= int'(Levels); l++) begin : gen_level
      localparam int unsigned Nodes = CHANNELS >> l;
      logic [Nodes-1:0][SumW-1:0] sum_q;
      logic [Nodes-1:0][CountW-1:0] count_q;
      for (genvar n = 0; n < int'(Nodes); n++) begin : gen_node
        if (l == 0) begin : gen_leaf
          always_ff @(posedge clk) begin
            sum_q[n]   <= SumW'(sample_q[n]);
            count_q[n] <= rst ? '0 : CountW'(up[n]);
          end
        end else begin : gen_pair
          always_ff @(posedge clk) begin
            sum_q[n]   <= gen_level[l-1].sum_q[2*n] + gen_level[l-1].sum_q[2*n+1];
            count_q[n] <= rst ? '0 : gen_level[l-1].count_q[2*n] + gen_level[l-1].count_q[2*n+1];
          end
        end
      end
    end

    // ---- the input ------------------------------------------------------------------------------------------------
    logic [7:0] counts_q;  // cycles that it still counts
    assign counts[i] = fires[i] || counts_q != '0;
    always_ff @(posedge clk) begin
      fires[i] <= (multiplicity != '0 && gen_level[Levels].count_q[0] >= multiplicity)
          || (sum_threshold != '0 && gen_level[Levels].sum_q[0] >= sum_threshold);
      counts_q <= fires[i] ? window : counts_q - 8'(counts_q != '0);
      if (rst) begin
        fires[i] <= 1'b0;
        counts_q <= '0;
      end
    end
  end

  // ---- coincidence ----------------------------------------------------------------------------------------------------
  logic [4:0] together;
  logic coincides, coincides_q;
  assign coincides = coincidence != '0 && together >= coincidence;

  always_comb begin
    together = '0;
    for (int i = 0; i < int'(N_IN); i++) together += 5'(counts[i]);
  end

  always_ff @(posedge clk) begin
    coincides_q   <= coincides;
    trigger_valid <= coincides && !coincides_q;
    trigger_type  <= 16'(counts);
    if (trigger_valid) trigger_number <= trigger_number + 64'd1;
    if (rst) begin
      coincides_q    <= 1'b0;
      trigger_valid  <= 1'b0;
      trigger_number <= '0;
    end
  end
endmodule
