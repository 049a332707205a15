// SPDX-License-Identifier: SHL-2.1
// Maps event pulses of all modules to counters, in the order of the counters' registers.
// Connects them to the counters and contains no logic of its own.
// Names: regs/penstock.rdl, which follow the kernel's RDMA counters where one exists.
module event_counters
  import ctrl_pkg::*;
  import penstock_regs_pkg::*;
(
  input logic clk,
  input logic rst,
  input logic clear,

  input eth_pkg::mac_status_t    mac,
  input eth_pkg::port_stat_t     port_stat,
  input logic                    tx_paused,
  input slow_control_stat_t      slow,
  input message_stat_t           message,
  input transport_stat_t         transport,
  input receive_stat_t           receive,
  input tcp_pkg::tcp_stat_t      tcp,

  input  reg_req_t req,
  output reg_rsp_t rsp
);
  logic [CntNumber-1:0] pulse;

  assign pulse[CntTxFrames]             = mac.tx_frame;
  assign pulse[CntTxUnderruns]          = mac.tx_underrun;
  assign pulse[CntRxFrames]             = mac.rx_frame;
  assign pulse[CntRxFcsErrors]          = mac.rx_bad_fcs;
  assign pulse[CntRxBadFrames]          = mac.rx_bad_frame;
  assign pulse[CntRxUndersize]          = mac.rx_undersize;
  assign pulse[CntRxOversize]           = mac.rx_oversize;
  assign pulse[CntLinkFaults]           = mac.link_fault;
  assign pulse[CntTxDropped]            = mac.tx_dropped;

  assign pulse[CntRxPause]              = port_stat.rx_pause;
  assign pulse[CntRxPfc]                = port_stat.rx_pfc;
  assign pulse[CntRxVlanDrop]           = port_stat.rx_vlan_drop;
  assign pulse[CntTxPause]              = port_stat.tx_pause;
  assign pulse[CntTxPfc]                = port_stat.tx_pfc;

  assign pulse[CntTxPauseCycles]        = tx_paused;

  assign pulse[CntEventsWithoutServer]  = message.no_server;
  assign pulse[CntMessagesBeyondSlot]   = message.beyond_slot;
  assign pulse[CntEventMessages]        = message.event_message;

  assign pulse[CntRpCnpIgnored]         = transport.cnp_ignored;
  assign pulse[CntRpCnpClamped]         = transport.cnp_clamped;
  assign pulse[CntRpCnpOverruled]       = transport.cnp_overruled;
  assign pulse[CntPacketsSent]          = transport.outcome.send;
  assign pulse[CntPacketsRetransmitted] = transport.outcome.retransmit;
  assign pulse[CntPacketSeqErr]         = transport.outcome.packet_seq_err;
  assign pulse[CntRnrNak]               = transport.outcome.rnr_nak;
  assign pulse[CntLocalAckTimeoutErr]   = transport.outcome.timeout;
  assign pulse[CntStaleAcks]            = transport.outcome.stale_ack;
  assign pulse[CntMessagesDone]         = transport.outcome.complete || tcp.completed;
  assign pulse[CntQpErrors]             = transport.outcome.failed;
  assign pulse[CntStaleMessages]        = transport.stale_message;
  assign pulse[CntStoreWriteErrors]     = transport.store_write_error || transport.fragment_refused;
  assign pulse[CntStoreReadErrors]      = transport.store_read_error;
  assign pulse[CntAnnouncements]        = transport.announced;
  assign pulse[CntFragmentsDropped]     = transport.fragment_dropped;
  assign pulse[CntSamplesDropped]       = transport.sample_dropped;

  assign pulse[CntRxCnpPackets]         = receive.cnp;
  assign pulse[CntRxRocePackets]        = receive.roce;
  assign pulse[CntRxIcrcEncapsulated]   = receive.icrc_error;
  assign pulse[CntRxMalformed]          = receive.malformed;
  assign pulse[CntRxNotForUs]           = receive.not_for_us;
  assign pulse[CntRxOther]              = receive.other;
  assign pulse[CntRxBadPkey]            = receive.bad_pkey;
  assign pulse[CntRxUnknownQp]          = receive.unknown_qp;
  assign pulse[CntRxWrongPeer]          = receive.wrong_peer;
  assign pulse[CntRxNotReady]           = receive.not_ready;
  assign pulse[CntRxUnserved]           = receive.unserved;
  assign pulse[CntRxCnmPackets]         = receive.cnm;
  assign pulse[CntRxCnmNotReady]        = receive.cnm_not_ready;
  assign pulse[CntRxCnpRefused]         = receive.cnp_refused;
  assign pulse[CntRxReadRequests]       = receive.reads.read;
  assign pulse[CntRxWriteRequests]      = receive.reads.write;
  assign pulse[CntRxSendRequests]       = receive.reads.send;
  assign pulse[CntOutOfBuffer]          = receive.reads.out_of_buffer;
  assign pulse[CntDuplicateRequest]     = receive.reads.repeated;
  assign pulse[CntReadDropped]          = receive.reads.dropped;
  assign pulse[CntNakSequenceSent]      = receive.reads.nak_sequence;
  assign pulse[CntRespInvalidRequests]  = receive.reads.nak_invalid;
  assign pulse[CntRespRemoteAccessErrors] = receive.reads.nak_access;
  assign pulse[CntRespRemoteOperationalErrors] = receive.reads.nak_operational;

  assign pulse[CntTcpRxSegments]        = tcp.rx.segment;
  assign pulse[CntTcpRxBadChecksum]     = tcp.rx.bad_checksum;
  assign pulse[CntTcpRxUnknown]         = tcp.rx.unknown;
  assign pulse[CntTcpRxMalformed]       = tcp.rx.malformed;
  assign pulse[CntTcpRxDropped]         = tcp.rx.dropped;
  assign pulse[CntTcpOpened]            = tcp.opened;
  assign pulse[CntTcpEnded]             = tcp.ended;

  assign pulse[CntServiceRxFrames]      = slow.rx.rx_frames;
  assign pulse[CntServiceRxOverflow]    = slow.rx.rx_overflow;
  assign pulse[CntServiceRxForeign]     = slow.rx.rx_foreign;
  assign pulse[CntIpMalformed]          = slow.services.malformed;
  assign pulse[CntIpFragments]          = slow.services.fragments;
  assign pulse[CntIpNotForUs]           = slow.services.not_for_us;
  assign pulse[CntIpChecksum]           = slow.services.checksum;
  assign pulse[CntIpUnserved]           = slow.services.unserved;
  assign pulse[CntArpRequests]          = slow.services.arp_requests;
  assign pulse[CntArpReplies]           = slow.services.arp_replies;
  assign pulse[CntArpRefused]           = slow.services.arp_refused;
  assign pulse[CntArpConflicts]         = slow.services.arp_conflicts;
  assign pulse[CntArpRequestsSent]      = slow.services.arp_requests_sent;
  assign pulse[CntArpUnresolved]        = slow.services.arp_unresolved;
  assign pulse[CntIcmpEchoReplies]      = slow.services.echo_replies;
  assign pulse[CntIcmpEchoDropped]      = slow.services.echo_dropped;
  assign pulse[CntUdpStrangers]         = slow.services.udp_strangers;
  assign pulse[CntUdpDropped]           = slow.services.udp_dropped;
  assign pulse[CntCmMalformed]          = slow.services.cm_malformed;
  assign pulse[CntServiceTxFrames]      = slow.services.tx_frames;
  assign pulse[CntIpbusPackets]         = slow.ipbus.packets;
  assign pulse[CntIpbusMalformed]       = slow.ipbus.malformed;
  assign pulse[CntIpbusOutOfOrder]      = slow.ipbus.out_of_order;
  assign pulse[CntIpbusResent]          = slow.ipbus.resent;
  assign pulse[CntIpbusBusErrors]       = slow.ipbus.bus_errors;
  assign pulse[CntIpbusBadHeaders]      = slow.ipbus.bad_headers;
  assign pulse[CntCmRequests]           = slow.cm_requests;
  assign pulse[CntCmRefused]            = slow.cm_refused;
  assign pulse[CntCmIgnored]            = slow.cm_ignored;
  assign pulse[CntCmTimeouts]           = slow.cm_timeouts;
  assign pulse[CntCmPeersLost]          = slow.cm_peers_lost;
  assign pulse[CntRdmaCmRequests]       = slow.rdma_cm.request;
  assign pulse[CntRdmaCmRefused]        = slow.rdma_cm.refused;
  assign pulse[CntRdmaCmRepeated]       = slow.rdma_cm.repeated;
  assign pulse[CntRdmaCmUnknown]        = slow.rdma_cm.unknown;
  assign pulse[CntRdmaCmIgnored]        = slow.rdma_cm.ignored;
  assign pulse[CntRdmaCmEstablished]    = slow.rdma_cm.established;
  assign pulse[CntRdmaCmDisconnected]   = slow.rdma_cm.disconnected;
  assign pulse[CntRdmaCmSilent]         = slow.rdma_cm.silent;
  assign pulse[CntRdmaCmMalformed]      = slow.rdma_cm.malformed || slow.services.mad_malformed;

  counters u_counters (.clk, .rst, .clear, .pulse, .req, .rsp);

  // Reports in addition to the pulses: link state, and reports of one queue pair.
  wire unused = &{1'b0, mac, transport, tcp};

endmodule
