// SPDX-License-Identifier: Apache-2.0
// The verilated QCN switch.
#include <cstring>

#include "Vqcn_switch.h"
#include "axil.h"
#include "verilated.h"

namespace {

constexpr int ports = 4;

struct Switch {
    VerilatedContext context;
    Vqcn_switch top{&context, "switch"};

    ~Switch() { top.final(); }

    void cycle(PenstockSwitchPins &pins) {
        static_assert(sizeof top.level == sizeof pins.level);
        top.rst = pins.rst;
        penstock::put_axil(top, pins.axil);
        top.xgmii_rxc = 0;
        for (int p = 0; p < ports; ++p) {
            std::memcpy(&top.xgmii_rxd[2 * p], &pins.line[p].rx_data[0], 8);
            top.xgmii_rxc |= static_cast<uint32_t>(pins.line[p].rx_mask) << 8 * p;
        }

        top.clk = 0;
        top.eval();  // inputs ripple through the combinational paths

        for (int p = 0; p < ports; ++p) {
            std::memcpy(&pins.line[p].tx_data[0], &top.xgmii_txd[2 * p], 8);
            pins.line[p].tx_mask = top.xgmii_txc >> 8 * p & 0xff;
        }
        penstock::get_axil(top, pins.axil);
        pins.stat = top.stat;
        std::memcpy(pins.level, &top.level, sizeof top.level);

        top.clk = 1;
        top.eval();
    }
};

}  // namespace

void *penstock_switch_new() { return new Switch; }

void penstock_switch_free(void *gateware) { delete static_cast<Switch *>(gateware); }

void penstock_switch_cycle(void *gateware, PenstockSwitchPins *pins) { static_cast<Switch *>(gateware)->cycle(*pins); }
