// SPDX-License-Identifier: SHL-2.1
// Ethernet: constants, and the settings and counts of the port (eth_port).
// Field names are those of regs/port.rdl; the first octet on the wire is the highest of a constant.
package eth_pkg;

  localparam logic [47:0] ControlMac       = 48'h01_80_C2_00_00_01;
  localparam logic [15:0] ControlEtherType = 16'h8808;
  localparam logic [15:0] VlanEtherType    = 16'h8100;
  localparam logic [15:0] OpcodePause      = 16'h0001;
  localparam logic [15:0] OpcodePfc        = 16'h0101;

  localparam int unsigned MinFrameBytes = 60;  // without FCS

  // Time in pause quanta (512 bit times) with FractionBits binary places.
  localparam int unsigned FractionBits = 8;
  localparam int unsigned QuantaW      = 16 + FractionBits;

  // Quanta that pass in a clock cycle. Rounded down, so that a pause is never too short.
  function automatic logic [QuantaW-1:0] quanta_per_cycle(int unsigned line_mbps, int unsigned clk_khz);
    return QuantaW'(((64'(line_mbps) * 64'd1000) << FractionBits) / (64'd512 * 64'(clk_khz)));
  endfunction

  // The kind of a frame on the transmit side; the VLAN tag depends on it.
  typedef enum logic [1:0] {
    FrameRoce    = 2'd0,
    FrameService = 2'd1,
    FrameControl = 2'd2   // MAC control: never tagged, never held
  } frame_kind_e;

  typedef struct packed {
    logic        enable;        // tag transmitted frames, accept only our VLAN
    logic [11:0] vid;
    logic [2:0]  pcp_data;      // priority of RoCE frames
    logic [2:0]  pcp_services;  // of all others
  } vlan_cfg_t;

  // The pause frames that stop our transmitter.
  typedef struct packed {
    logic       pause_en;       // 802.3x pause
    logic       pfc_en;         // PFC of traffic_class
    logic [2:0] traffic_class;
  } flow_control_cfg_t;

  // How we stop the peer while a receive buffer is full.
  typedef struct packed {
    logic        pause_en;      // send 802.3x pause
    logic        pfc_en;        // send PFC instead, for `classes`
    logic [7:0]  classes;
    logic [15:0] quanta;        // requested each time, refreshed after half of them
    logic [15:0] xoff_bytes;    // buffered bytes above which the peer is stopped
    logic [15:0] xon_bytes;     // ... below which it may go on
  } pause_tx_cfg_t;

  typedef struct packed {
    vlan_cfg_t         vlan;
    flow_control_cfg_t flow_control;
    pause_tx_cfg_t     pause_tx;
  } port_cfg_t;

  // Pulses, one cycle for each event.
  typedef struct packed {
    logic rx_pause;      // a pause frame acted
    logic rx_pfc;        // a PFC frame acted
    logic rx_vlan_drop;  // a good frame of another VLAN, or tagged without need
    logic tx_pause;      // a pause frame sent
    logic tx_pfc;        // a PFC frame sent
  } port_stat_t;

  // How fast the line is, of the rate that it is built for: a port for 1 Gb/s also runs at 100 and 10 Mb/s.
  typedef enum logic [1:0] {
    LineFull      = 2'd0,
    LineTenth     = 2'd1,
    LineHundredth = 2'd2
  } line_share_e;

  // The MAC's reports: levels, then pulses.
  typedef struct packed {
    line_share_e line_share;
    logic local_fault;    // our receiver has no signal
    logic remote_fault;   // the peer's receiver has none
    logic link_fault;     // pulse: either has begun
    logic tx_frame;
    logic tx_underrun;
    logic tx_dropped;     // a frame that a link fault swallowed
    logic rx_frame;       // good frames, MAC control counted
    logic rx_bad_fcs;
    logic rx_bad_frame;   // stray character, runt, oversize, no SFD
    logic rx_undersize;   // of those: runts
    logic rx_oversize;    // of those: longer than the limit
  } mac_status_t;

endpackage
