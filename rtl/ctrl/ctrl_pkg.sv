// SPDX-License-Identifier: SHL-2.1
// The outputs of the control modules: the settings of the register block, and the small bus by which
// blocks outside of it (counters, queue-pair table) answer their own addresses.
package ctrl_pkg;
  import penstock_pkg::*;

  // One access: `valid` for one cycle, all else until the answer, after which the next may come.
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

  // A beat that a peer writes to a table, at most one a cycle; its DATA_W bits are on a port of their own.
  typedef struct packed {
    logic        valid;
    logic [15:0] addr;   // byte address inside the block, a multiple of DATA_W / 8
    logic [15:0] words;  // the 32-bit words of the beat that are written
  } table_fill_t;

  // Settings that hold for the whole front end.
  typedef struct packed {
    logic [63:0] store_base;
    logic [31:0] pull_stride;
    eth_pkg::vlan_cfg_t vlan;
    eth_pkg::pause_tx_cfg_t pause_tx;
    services_pkg::services_cfg_t services;
    logic clear;         // pulse: all counts restart
    source_pkg::source_cfg_t source;
    logic source_start;  // pulses
    logic source_stop;
    event_pkg::event_cfg_t events;
    logic events_resync; // pulse
    stages_pkg::stages_cfg_t stages;
    timing_pkg::timing_cfg_t timing;
    cm_pkg::cm_cfg_t connection;
    logic [15:0] rdma_cm_port;   // at which the standard connection manager listens; 0: none
    tcp_pkg::tcp_cfg_t tcp;
    destination_pkg::destination_cfg_t destination;
    logic [47:0] local_mac;
    logic [31:0] local_ip;
    logic [7:0]  ttl;
    logic [23:0] qpn_base;       // low 8 bits are 0
    logic        cut_through;
    logic [31:0] keep_alive_ticks;
    logic        pause_en;
    logic        pfc_en;
    logic [2:0]  traffic_class;
    logic [15:0] cnp_interval;
    logic [7:0]  cnp_burst;
    cc_sampling_t sampling;
    cc_write_t   cc_write;
    logic        cc_ready;      // the parameters of congestion control have their reset values
  } settings_t;

  // Counters of slow_control, one pulse each.
  typedef struct packed {
    services_pkg::service_rx_stat_t rx;
    services_pkg::services_stat_t   services;
    ipbus_pkg::ipbus_stat_t         ipbus;
    logic cm_requests;
    logic cm_refused;
    logic cm_ignored;
    logic cm_timeouts;
    logic cm_peers_lost;
    rdma_cm_pkg::rdma_cm_stat_t rdma_cm;
  } slow_control_stat_t;

  // Counters of messages on their way to the transport.
  typedef struct packed {
    logic no_server;
    logic beyond_slot;
    logic event_message;
  } message_stat_t;

  // Counters of the transmit side.
  typedef struct packed {
    roce_tx_pkg::outcome_t outcome;  // of one operation of the requester
    logic stale_message;
    logic store_write_error;
    logic store_read_error;
    logic announced;
    logic fragment_dropped;
    logic fragment_refused;
    logic cnp_ignored;
    logic cnp_clamped;
    logic cnp_overruled;
    logic sample_dropped;
  } transport_stat_t;

  // Counters of the receive side.
  typedef struct packed {
    logic roce;
    logic icrc_error;
    logic malformed;
    logic not_for_us;
    logic other;
    logic bad_pkey;
    logic unknown_qp;
    logic wrong_peer;
    logic not_ready;
    logic unserved;
    logic cnp;
    logic cnp_refused;
    logic cnm;
    logic cnm_not_ready;
    roce_read_pkg::read_stat_t reads;
  } receive_stat_t;

endpackage
