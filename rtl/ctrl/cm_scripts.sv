// SPDX-License-Identifier: SHL-2.1
// All accesses of the connection manager to bytes and registers, as scripts: lists of operations for cm_engine.
// Promise: `op` is operation `at` of `script`, one cycle later; the last one of a script is marked. The scripts are a
// ROM, so longer scripts need no more logic (messages: cm_pkg; registers: those that software would write).
module cm_scripts
  import penstock_pkg::*;
  import cm_pkg::*;
  import penstock_regs_pkg::*;
(
  input  logic       clk,
  input  script_e    script,
  input  logic [5:0] at,
  output op_t        op
);
  localparam int unsigned Longest = 64;
  localparam int unsigned Scripts = 32;
  typedef op_t [Longest-1:0] ops_t;

  // ---- one operation, and groups of them ------------------------------------------------------------------
  function automatic op_t one(input kind_e kind, input source_e source, input logic [6:0] addr);
    return '{last: 1'b0, kind: kind, source: source, addr: addr};
  endfunction

  function automatic op_t [3:0] four(input kind_e kind, input source_e source, input logic [6:0] addr);
    return {one(kind, source, addr), one(kind, source, addr + 7'd1),
            one(kind, source, addr + 7'd2), one(kind, source, addr + 7'd3)};
  endfunction

  function automatic op_t access(input kind_e kind, input group_e group, input logic [7:0] register);
    return '{last: 1'b0, kind: kind, source: source_e'({3'b0, group}), addr: 7'(register >> 2)};
  endfunction

  // A register of four bytes, of three or two, of one.
  function automatic op_t [4:0] copy(input source_e source, input logic [6:0] addr, input group_e group, input logic [7:0] register);
    return {four(DoWord, source, addr), access(DoWrite, group, register)};
  endfunction

  function automatic op_t [3:0] copy_three(input source_e source, input logic [6:0] addr, input group_e group, input logic [7:0] register);
    return {one(DoSet, source, addr), one(DoWord, source, addr + 7'd1), one(DoWord, source, addr + 7'd2),
            access(DoWrite, group, register)};
  endfunction

  function automatic op_t [2:0] copy_two(input source_e source, input logic [6:0] addr, input group_e group, input logic [7:0] register);
    return {one(DoSet, source, addr), one(DoWord, source, addr + 7'd1), access(DoWrite, group, register)};
  endfunction

  function automatic op_t [1:0] set(input logic [6:0] value, input group_e group, input logic [7:0] register);
    return {one(DoSet, SrcConst, value), access(DoWrite, group, register)};
  endfunction

  function automatic op_t [1:0] command(input qp_state_e state);
    return set(7'(state), GroupQp, QpState);
  endfunction

  function automatic op_t [2:0] command_and_await(input qp_state_e state);
    return {command(state), access(DoAwait, GroupQp, QpState)};
  endfunction

  // A UDP port into the two places of an entry where messages have reserved bytes.
  function automatic op_t [3:0] store_port(input source_e source, input logic [6:0] addr);
    return {one(DoSet, source, addr), one(DoStore, SrcWord, 1), one(DoSet, source, addr + 7'd1), one(DoStore, SrcWord, 5)};
  endfunction

  // ---- pieces of messages ------------------------------------------------------------------------------------
  localparam op_t EmitZero = one(DoEmit, SrcZero, 0);

  function automatic op_t [22:0] emit_info(input source_e source);  // 23 bytes from the sender's place
    return {one(DoEmit, source, 2), one(DoEmit, source, 3), one(DoEmit, source, 4), EmitZero,
            four(DoEmit, source, 6), four(DoEmit, source, 10), four(DoEmit, source, 14),
            four(DoEmit, source, 18), one(DoEmit, source, 22), one(DoEmit, source, 23), one(DoEmit, source, 24)};
  endfunction

  function automatic op_t [25:0] emit_local();  // flags, and our parameters for the other side
    return {one(DoEmit, SrcHead, 0), EmitZero,
            one(DoEmit, SrcQpn, 2), one(DoEmit, SrcQpn, 3), one(DoEmit, SrcQpn, 4), EmitZero,
            one(DoEmit, SrcEntry, 29), one(DoEmit, SrcEntry, 30), one(DoEmit, SrcEntry, 31),
            {12{EmitZero}}, four(DoEmit, SrcLocalIp, 21), EmitZero};
  endfunction

  function automatic op_t [14:0] emit_port();  // our address for requests; no transmit request
    return {one(DoEmit, SrcConst, 7'(RequestPort[15:8])), one(DoEmit, SrcConst, 7'(RequestPort[7:0])), {13{EmitZero}}};
  endfunction

  // ---- the scripts: the last operation is the lowest ------------------------------------------------------------
  function automatic ops_t written(input script_e which);
    written = '0;
    case (which)
      // ---- messages
      ScrReceive: for (int unsigned i = 0; i < 64; i++) written[63-i] = one(DoReceive, SrcZero, 7'(i));
      ScrFields:  // in the order of fields_t
        written = ops_t'({
          one(DoTake, SrcMessage, 0), one(DoTake, SrcMessage, 51),
          one(DoTake, SrcMessage, 26), one(DoTake, SrcMessage, 27), one(DoTake, SrcMessage, 28),
          one(DoTake, SrcMessage, 49), one(DoTake, SrcMessage, 50), four(DoTake, SrcFromIp, 21)});
      ScrAccept: written = ops_t'({emit_local(), emit_info(SrcMessage), emit_port()});
      ScrRefuse: written = ops_t'({one(DoEmit, SrcHead, 0), {25{EmitZero}}, emit_info(SrcMessage), emit_port()});
      ScrFull:
        written = ops_t'({one(DoEmit, SrcHead, 0), EmitZero,
                          one(DoEmit, SrcQpn, 2), one(DoEmit, SrcQpn, 3), one(DoEmit, SrcQpn, 4), {16{EmitZero}},
                          four(DoEmit, SrcEntry, 25), EmitZero, emit_info(SrcMessage), emit_port()});
      ScrRequest: written = ops_t'({emit_local(), emit_info(SrcEntry), emit_port()});
      // ---- the entry of a queue pair
      ScrClear: written = ops_t'({one(DoStore, SrcZero, 0), four(DoStore, SrcZero, 25)});
      ScrMatch:
        written = ops_t'({four(DoMatchIp, SrcFromIp, 25), one(DoMatchQpn, SrcMessage, 2), one(DoMatchQpn, SrcMessage, 3),
                          one(DoMatchQpn, SrcMessage, 4), one(DoSet, SrcEntry, 0)});
      ScrFetch: begin
        written = ops_t'({four(DoMatchIp, SrcFromIp, 25), four(DoMatchRest, SrcPeerIp, 21),
                          one(DoMatchQpn, SrcMessage, 2), one(DoMatchQpn, SrcMessage, 3), one(DoMatchQpn, SrcMessage, 4),
                          four(DoMatchRest, SrcMessage, 6), four(DoMatchRest, SrcMessage, 10),
                          four(DoMatchRest, SrcMessage, 14), four(DoMatchRest, SrcMessage, 17),
                          one(DoSet, SrcEntry, 0)});
      end
      ScrPhase:  written = ops_t'(one(DoStore, SrcPhase, 0));
      ScrForget:
        written = ops_t'({one(DoStore, SrcZero, 2), one(DoStore, SrcZero, 3), one(DoStore, SrcZero, 4),
                          four(DoStore, SrcZero, 6), four(DoStore, SrcZero, 10), four(DoStore, SrcZero, 14),
                          four(DoStore, SrcZero, 18), four(DoStore, SrcZero, 21)});
      ScrClaim:
        written = ops_t'({one(DoStore, SrcMessage, 2), one(DoStore, SrcMessage, 3), one(DoStore, SrcMessage, 4),
                          four(DoStore, SrcMessage, 6), four(DoStore, SrcMessage, 10),
                          four(DoStore, SrcMessage, 14), four(DoStore, SrcMessage, 17), four(DoStore, SrcPeerIp, 21)});
      ScrServer: written = ops_t'({four(DoStore, SrcServerIp, 25), store_port(SrcServerPort, 3)});
      ScrOwner:  written = ops_t'({four(DoStore, SrcFromIp, 25), store_port(SrcMessage, 49)});
      ScrFresh:  // four operations take eight cycles: other bits each time
        written = ops_t'({one(DoStore, SrcRandom, 29), {3{one(DoSet, SrcZero, 0)}}, one(DoStore, SrcRandom, 30),
                          {3{one(DoSet, SrcZero, 0)}}, one(DoStore, SrcRandom, 31)});
      ScrAim:
        written = ops_t'({one(DoTake, SrcEntry, 1), one(DoTake, SrcEntry, 5), four(DoTake, SrcEntry, 25)});
      // ---- the life of a queue pair
      ScrOpen: written = ops_t'({command_and_await(QpReset), command(QpInit)});
      ScrInfo:
        written = ops_t'({
          // Where it was to go is known even if no host answers there.
          copy(SrcEntry, 21, GroupQp, QpDstIp), one(DoLookup, SrcZero, 0),
          copy_two(SrcMacHigh, 3, GroupQp, QpDstMacHi), copy(SrcMac, 1, GroupQp, QpDstMacLo),
          copy(SrcFlow, 1, GroupQp, QpFlow),
          copy_three(SrcEntry, 2, GroupQp, QpDestQpn), copy(SrcEntry, 9, GroupQp, QpRkey),
          copy(SrcTransport, 1, GroupQp, QpTransport), copy_three(SrcEntry, 29, GroupQp, QpInitPsn),
          copy_three(SrcEntry, 6, GroupQp, QpReadPsn),  // the peer's requests begin where its message says
          copy(SrcEntry, 17, GroupRing, 8'(RingBaseLo)), copy(SrcEntry, 13, GroupRing, 8'(RingBaseHi)),
          set(0, GroupRing, 8'(RingNextSlot)),  // a fresh ring begins at slot 0
          command(QpRtr)});
      ScrRts:   written = ops_t'(command_and_await(QpRts));
      ScrClose: written = ops_t'(command(QpReset));
      ScrError: written = ops_t'(command(QpErr));
      // ---- the message source: it sends to the peer's base address and on from there; burst stays as slow control set
      // it
      ScrStart:
        written = ops_t'({
          copy(SrcMessage, 52, GroupSource, 8'(SourceLengthMin)), set(0, GroupSource, 8'(SourceLengthMax)),
          copy(SrcMessage, 56, GroupSource, 8'(SourceCount)),
          copy(SrcMessage, 60, GroupSource, 8'(SourceInterval)),
          copy_two(SrcQp, 0, GroupSource, 8'(SourceQpRange)),
          copy(SrcEntry, 17, GroupSource, 8'(SourceRaddrLo)), copy(SrcEntry, 13, GroupSource, 8'(SourceRaddrHi)),
          // The byte of verb, with_imm and running_sum; in_ring and by_event, which share it, are off.
          one(DoSet, SrcVerb, 51), one(DoWord, SrcZero, 0), access(DoWrite, GroupSourceVerb, 8'(SourceControl)),
          set(1, GroupSource, 8'(SourceCommand))});
      ScrStop: written = ops_t'(set(2, GroupSource, 8'(SourceCommand)));
      default: ;
    endcase
  endfunction

  // ---- the ROM: each script from its first operation on ------------------------------------------------------------
  typedef ops_t [Scripts-1:0] rom_t;

  function automatic rom_t contents();
    ops_t ops;
    for (int unsigned s = 0; s < Scripts; s++) begin
      ops = written(script_e'(5'(s)));
      if (ops != '0) begin
        ops[0].last = 1'b1;
        while (ops[Longest-1].kind == DoNothing) ops = ops << $bits(op_t);
      end
      contents[s] = ops;
    end
  endfunction

  localparam rom_t Contents = contents();

(* rom_style = "block" *) op_t rom[Scripts*Longest];
  initial for (int i = 0; i < Scripts * Longest; i++) rom[i] = Contents[i / Longest][Longest - 1 - i % Longest];

  always_ff @(posedge clk) op <= rom[{script, at}];
endmodule
