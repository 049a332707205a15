// SPDX-License-Identifier: SHL-2.1
// What the control room hands out: the settings of the register block, and the small bus by which
// blocks outside of it (counters, queue-pair table) answer their own addresses.
package ctrl_pkg;
  import penstock_pkg::*;

  // One access: `valid` for one cycle; the next comes only after the answer.
  typedef struct packed {
    logic        valid;
    logic        is_wr;
    logic [15:0] addr;      // byte address inside the block
    logic [31:0] wr_data;
    logic [31:0] wr_biten;  // bits to write
  } reg_req_t;

  // The answer: one of the two acknowledgements for one cycle, at any time after the request.
  typedef struct packed {
    logic        rd_ack;
    logic        wr_ack;
    logic [31:0] rd_data;
  } reg_rsp_t;

  // Settings that hold for the whole front end.
  typedef struct packed {
    source_pkg::source_cfg_t source;
    logic source_start;  // pulses
    logic source_stop;
    cm_pkg::cm_cfg_t connection;
    destination_pkg::destination_cfg_t destination;
    logic [47:0] local_mac;
    logic [31:0] local_ip;
    logic [7:0]  ttl;
    logic [23:0] qpn_base;       // low 8 bits are 0
    logic        pause_en;
    logic        pfc_en;
    logic [2:0]  traffic_class;
    logic [15:0] cnp_interval;
    logic [7:0]  cnp_burst;
    cc_sampling_t sampling;
    qcn_params_t [CcGroups-1:0] qcn;
    cc_params_t  [CcGroups-1:0] cc;
  } settings_t;

endpackage
