# SPDX-License-Identifier: Apache-2.0
"""`penstock_basex`: the front end with the PCS of 2500BASE-X, and one behind the cable that makes an XGMII of it again.

The module has the ports and parameters of `penstock_xgmii`, and is written from its header.
"""

import re
from pathlib import Path

from lib.rtl import RTL, WRITTEN

BODY = """
  timeunit 1ns; timeprecision 1ps;

  logic line_clk, far_rst;
  initial begin
    line_clk = 1'b0;
    far_rst  = 1'b1;
    #100 far_rst = 1'b0;  // the far side is there first
  end
  always #3.2 line_clk = !line_clk;  // four cycles for one of clk

  logic [63:0] near_txd, near_rxd;
  logic [7:0]  near_txc, near_rxc;
  logic [19:0] sent, answered;
  logic [1:0]  synced, link_up;
  logic [1:0][15:0] partner;

  penstock_xgmii #(
{parameters}
  ) u_front_end (
    .xgmii_txd(near_txd),
    .xgmii_txc(near_txc),
    .xgmii_rxd(near_rxd),
    .xgmii_rxc(near_rxc),
    .*
  );

  pcs_basex u_near (
    .clk, .rst, .xgmii_txd(near_txd), .xgmii_txc(near_txc), .xgmii_rxd(near_rxd), .xgmii_rxc(near_rxc),
    .tx_clk(line_clk), .tx_groups(sent), .rx_clk(line_clk), .rx_groups(answered),
    .negotiate(1'b0), .sgmii(1'b0), .synced(synced[0]), .link_up(link_up[0]), .partner(partner[0])
  );

  pcs_basex u_far (
    .clk, .rst(far_rst), .xgmii_txd(xgmii_rxd), .xgmii_txc(xgmii_rxc), .xgmii_rxd(xgmii_txd), .xgmii_rxc(xgmii_txc),
    .tx_clk(line_clk), .tx_groups(answered), .rx_clk(line_clk), .rx_groups(sent),
    .negotiate(1'b0), .sgmii(1'b0), .synced(synced[1]), .link_up(link_up[1]), .partner(partner[1])
  );

  wire unused = ^synced ^ ^link_up ^ ^partner;
endmodule
"""


def front_end() -> Path:
    """Its file."""
    text = (RTL / "top" / "penstock_xgmii.sv").read_text()
    header = text[text.index("`include") : text.index("\n);") + 4]
    common = (RTL / "top" / "front_end_parameters.svh").read_text()
    names = re.findall(r"^  parameter\s+int unsigned (\w+)", header + common, re.M)
    parameters = ",\n".join(f"    .{name}({name})" for name in names)
    written = header.replace("penstock_xgmii", "penstock_basex") + BODY.format(parameters=parameters)
    file = WRITTEN / "penstock_basex.sv"
    if not file.exists() or file.read_text() != written:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(written)
    return file
