# SPDX-License-Identifier: Apache-2.0
"""Proofs of shared modules: FIFOs, registers, arbiters."""

from proof import Mutant, Proof

PROOFS = [
    Proof(
        "sync_fifo",
        {"W": 4, "DEPTH": 4},
        mutants=(
            Mutant("s_ready = !level[PtrW]", "s_ready = 1'b1", "a_level"),
            Mutant("m_data  = mem[tail_q[PtrW-1:0]]", "m_data  = mem[head_q[PtrW-1:0]]", "a_out"),
            Mutant("tail_q + 1'b1", "tail_q + 2'd2", "a_inside"),
        ),
    ),
    Proof(
        "axi_mux",
        {"DATA_W": 8, "WRITES": 4},
        mutants=(
            Mutant(".s_valid(aw_comes)", ".s_valid(m_axi_req.wr.awvalid && m_axi_rsp.wr.awready)", "a_w_goes"),
            Mutant("ar_at = ar_held_q ? ar_at_q : ", "ar_at = ", "a_ar_hold"),
            Mutant("if (m_axi_req.wr.awvalid) aw_at_q <= aw_at;", "", "a_aw_turns"),
            Mutant("m_axi_req.wr.aw.id   = aw_at;", "", "a_aw"),
            Mutant("awvalid && (order_room || aw_held_q);", "awvalid;", "a_0_level"),
            Mutant("awvalid && (order_room || aw_held_q);", "awvalid && order_room;", "a_aw_hold"),
            Mutant("m_axi_wdata = s_axi_wdata[w_at]", "m_axi_wdata = s_axi_wdata[aw_at]", "a_w"),
            Mutant(" && w_there && w_at == 1'(i)", " && w_there", "a_order"),
            Mutant("s_axi_req[w_at].wr.wvalid && w_there", "s_axi_req[w_at].wr.wvalid", "a_has_address"),
            Mutant("bvalid && m_axi_rsp.wr.bid == 1'(i)", "bvalid", "a_requested_write"),
            Mutant("s_axi_req[m_axi_rsp.rd.rid]", "s_axi_req[ar_at]", "a_all"),
        ),
    ),
    Proof(
        "axi_write_mux",
        {"DATA_W": 8, "WRITES": 4},
        mutants=(
            Mutant(
                ".s_data (aw_at),\n    .s_valid(aw_comes),\n    .s_ready(data_room)",
                ".s_data (aw_at),\n    .s_valid(m_axi_req.awvalid && m_axi_rsp.awready),\n    .s_ready(data_room)",
                "a_w_goes",
            ),
            Mutant("if (m_axi_req.awvalid) aw_at_q <= aw_at;", "", "a_aw_turns"),
            Mutant("m_axi_req.aw.id   = '0;", "", "a_aw"),
            Mutant("(data_room && answer_room)", "data_room", "a_0_level"),
            Mutant("(data_room && answer_room)", "answer_room", "a_0_level"),
            Mutant("answer_room) || aw_held_q;", "answer_room);", "a_aw_hold"),
            Mutant("m_axi_wdata = s_axi_wdata[w_at]", "m_axi_wdata = s_axi_wdata[aw_at]", "a_w"),
            Mutant(" && w_there && w_at == 1'(i)", " && w_there", "a_order"),
            Mutant("s_axi_req[w_at].wvalid && w_there", "s_axi_req[w_at].wvalid", "a_has_address"),
            Mutant("m_axi_rsp.bvalid && b_at == 1'(i)", "m_axi_rsp.bvalid", "a_requested"),
            Mutant("bvalid && b_at == 1'(i)", "bvalid && w_at == 1'(i)", "a_answer"),
            Mutant("s_axi_req[b_at].bready", "s_axi_req[w_at].bready", "a_all"),
            Mutant(".m_ready(m_axi_rsp.bvalid && m_axi_req.bready)", ".m_ready(m_axi_rsp.bvalid)", "a_answer"),
        ),
    ),
    Proof(
        "axi_split",
        {"PENDING": 3},
        mutants=(
            Mutant(" && (wr_open_q == '0 || wr_at_q == aw_to)", "", "a_aw"),
            Mutant(" && (rd_open_q == '0 || rd_at_q == ar_to)", "", "a_ar"),
            Mutant("(aw_held_q || (wr_open_q", "((wr_open_q", "a_aw_hold"),
            Mutant("w_goes && wr_at_q == 1'(i)", "w_goes", "a_w"),
            Mutant("s_axi_req.wr.wvalid && ahead_q != '0;", "s_axi_req.wr.wvalid;", "a_w"),
            Mutant("aw_comes = aw_goes && !aw_held_q", "aw_comes = aw_goes && s_axi_rsp.wr.awready", "a_w_goes"),
            Mutant("s_axi_rsp.rd         = m_axi_rsp[rd_at_q].rd", "s_axi_rsp.rd         = m_axi_rsp[ar_to].rd", "a_r"),
            Mutant("- CountW'(b_comes)", "", "a_aw_goes"),
        ),
    ),
    Proof(
        "axi_reset_guard",
        {"DATA_W": 8, "BURSTS": 4, "OUTSTANDING": 5},
        mutants=(
            Mutant("(writes_q != '0 || reads_q != '0)", "reads_q != '0", "a_b_due"),
            Mutant("(writes_q != '0 || reads_q != '0)", "writes_q != '0", "a_r_due"),
            Mutant("if (m_axi_rst) {writes_q, reads_q} <= '0;", "if (rst) {writes_q, reads_q} <= '0;", "a_r_due"),
            Mutant("if (m_axi_rst) {aw_valid_q, ar_valid_q}", "if (rst) {aw_valid_q, ar_valid_q}", "a_ar_hold"),
            Mutant("if (m_axi_rst) begin\n      w_valid_q", "if (rst) begin\n      w_valid_q", "a_w_hold"),
            Mutant(".rst    (m_axi_rst)", ".rst    (rst)", "a_0_writes"),
            Mutant("wlast_q     <= at_end", "wlast_q     <= s_axi_req.wr.wlast", "a_wlast"),
            Mutant("wstrb_q     <= !closed", "wstrb_q     <= 1'b1", "a_no_strobes"),
            Mutant("(closed || s_axi_req.wr.wvalid)", "s_axi_req.wr.wvalid", "a_completes"),
            Mutant("w_free  = w_due && ", "w_free  = ", "a_has_address"),
            Mutant(" && lens_room", "", "a_0_bursts"),
            Mutant("= aw_free && !closed", "= aw_free", "a_in_reset"),
            Mutant("= w_free && !closed", "= w_free", "a_in_reset"),
            Mutant("closed || s_axi_req.rd.rready", "s_axi_req.rd.rready", "a_takes"),
            Mutant("rvalid && !closed", "rvalid", "a_r_due"),
            Mutant("draining_q <= rst || (draining_q", "draining_q <= rst || draining_q || (draining_q", "a_opens"),
            Mutant("reads_q != count_t'(OUTSTANDING)", "reads_q != '0", "a_ar_goes"),
        ),
    ),
    Proof(
        "axis_register",
        {"W": 4},
        mutants=(
            Mutant("s_axis_tready = !skid_valid_q", "s_axis_tready = 1'b1", "a_kept"),
            Mutant("skid_valid_q ? skid_q : s_axis_tdata", "s_axis_tdata", "a_data"),
            Mutant("m_axis_tready || !out_valid_q", "m_axis_tready", "a_no_bubble"),
            Mutant("s_axis_tready = !skid_valid_q", "s_axis_tready = !skid_valid_q && !out_valid_q", "a_room"),
        ),
    ),
    Proof(
        "block_fifo",
        {"W": 8, "DEPTH": 4},
        mutants=(
            Mutant("s_ready = !level[PtrW]", "s_ready = 1'b1", "a_level"),
            Mutant("(m_ready || !valid_q)", "1'b1", "a_hold"),
            Mutant("(m_ready || !valid_q)", "!valid_q", "a_no_bubble"),
            Mutant(".rd_addr(tail_q[PtrW-1:0])", ".rd_addr(head_q[PtrW-1:0])", "a_data"),
        ),
    ),
    Proof(
        "arbiter_rr",
        {"N": 16},
        cycles=20,
        mutants=(
            Mutant("above  = req & above_q", "above  = '0", "a_round"),  # fixed priority starves
            Mutant("chosen = pool", "chosen = above_q", "a_requested"),
        ),
    ),
    Proof(
        "arbiter_rr",
        {"N": 8},
        mutants=(
            Mutant("chosen[i] = pool[i] && ", "chosen[i] = pool[i] || ", "a_requested"),
            Mutant("later[i]  = (pool & Below)", "later[i]  = (chosen & ~Below)", "a_mask"),
            Mutant("N'((1 << i) - 1)", "N'((2 << i) - 1)", "a_requested"),
        ),
    ),
    Proof(
        "arbiter_rr_wide",
        {"N": 32},
        depth=2,
        mutants=(
            Mutant("rest_q.any ? last_q : in_later.any", "in_later.any", "a_same"),
            Mutant("later_q <= 16'hfffe << group;", "later_q <= 16'hffff << group;", "a_group"),
            Mutant("groups[last_q] & above_q", "groups[last_q]", "a_same"),
        ),
    ),
]
