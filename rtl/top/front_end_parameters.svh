// SPDX-License-Identifier: SHL-2.1
// The parameters that all front ends have. A top states DATA_W and CLK_KHZ in front of them.
  parameter  int unsigned N_QP        = 4,
  parameter  int unsigned RING_BYTES  = 262144,  // payload bytes kept per queue pair until acknowledged
  parameter  int unsigned SLOTS       = 256,     // packets kept per queue pair
  parameter  int unsigned STORE       = 0,       // rings: 0 on chip, 1 in AXI4 memory (m_axi)
  parameter  int unsigned AXI_ADDR_W  = 64,
  parameter  int unsigned N_IN        = 0,       // detector inputs, 0 to 16
  parameter  int unsigned EVENT_BYTES = 16384,   // payload of an event
  parameter  int unsigned TIMING      = 0,       // 1: triggers, busy and a clock; needs detector inputs
  parameter  int unsigned SECOND_NS   = 1_000_000_000,  // between pulses of pps; shorter in simulations
  parameter  int unsigned TRIGGERS    = 32,      // accepted triggers that may wait for their events, a power of two
  parameter  int unsigned WITH_ROCE   = 1,       // messages go by RoCEv2, to queue pairs,
  parameter  int unsigned WITH_TCP    = 0,       // or by TCP, to streams, or by both (docs/tcp.md)
  parameter  int unsigned N_STREAMS   = 4,       // of TCP, 1 to 64; RING_BYTES is kept for each
  parameter  int unsigned HOOK        = 0,       // after each input: 0 nothing, 1 zero suppression, 2 user_hook
  parameter  int unsigned STREAMING   = 0,       // 1: inputs may be streams without end, cut into slices; needs TIMING
  parameter  int unsigned RETRANSMIT  = 1,       // 0: packets are kept until sent; a lost one ends its queue pair
  parameter  int unsigned WITH_QCN    = 1,       // 0: DCQCN is the only law; QCN selects it, too
  parameter  int unsigned WITH_CN_TAG = 0,       // 1: frames of queue pairs that software puts under QCN carry a CN-TAG
  parameter  int unsigned WITH_SOURCE = 1,       // 0: no messages but the user's and the detector's
  parameter  int unsigned WITH_SERVICES = 1,     // 0: registers by the pins alone: no ARP, ping, IPbus, connection manager
  parameter  int unsigned WITH_REQUESTER = 1,    // 0: no messages; queue pairs only answer their peers
  parameter  int unsigned WITH_READ   = 0,       // 1: peers may READ windows of the memory at m_axi
  parameter  int unsigned WITH_RECEIVE = 0,      // 1: peers may WRITE to them and to tables, and SEND to m_axis_receive
  parameter  int unsigned PULL_SLOTS  = 0,       // fragments that each queue pair keeps for its server to READ; 0: they are sent
  parameter  int unsigned WITH_RDMA_CM = 0,      // 1: peers get queue pairs with windows by the standard connection manager
  localparam int unsigned Inputs      = N_IN == 0 ? 1 : N_IN
