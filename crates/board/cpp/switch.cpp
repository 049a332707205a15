// SPDX-License-Identifier: Apache-2.0
// The verilated QCN switch.
#include <cstring>

#include "Vqcn_switch.h"
#include "Vqcn_switch_1g.h"
#include "axil.h"
#include "verilated.h"

namespace {

constexpr int ports = 4;

template <typename Top> constexpr bool has_gmii = requires(Top &top) { top.gmii_rxd; };

// An octet of each GMII on its way in, and the one on its way out.
template <typename Top> void gmii_octets(Top &top, PenstockSwitchPins &pins, int lane) {
    top.gmii_rxd = top.gmii_rx_dv = 0;
    for (int p = 0; p < ports; ++p) {
        PenstockLine &line = pins.line[p];
        top.gmii_rxd |= static_cast<uint32_t>(line.rx_data[0] >> 8 * lane & 0xff) << 8 * p;
        top.gmii_rx_dv |= (line.rx_mask >> lane & 1) << p;
        line.tx_data[0] |= uint64_t{top.gmii_txd >> 8 * p & 0xff} << 8 * lane;
        line.tx_mask |= uint64_t(top.gmii_tx_en >> p & 1) << lane;
        line.tx_error |= (top.gmii_tx_er >> p & 1) << lane;
    }
    PenstockLine &line = pins.management;
    top.mgmt_gmii_rxd = line.rx_data[0] >> 8 * lane;
    top.mgmt_gmii_rx_dv = line.rx_mask >> lane & 1;
    line.tx_data[0] |= uint64_t{top.mgmt_gmii_txd} << 8 * lane;
    line.tx_mask |= uint64_t{top.mgmt_gmii_tx_en} << lane;
    line.tx_error |= top.mgmt_gmii_tx_er << lane;
}

template <typename Top> void gmii_clocks(Top &top, bool level) {
    top.gmii_tx_clk = top.mgmt_gmii_tx_clk = top.mgmt_gmii_rx_clk = level;
    top.gmii_rx_clk = level ? (1 << ports) - 1 : 0;
}

struct Switch {
    virtual ~Switch() = default;
    virtual void cycle(PenstockSwitchPins &pins) = 0;
};

template <typename Top> class Gateware final : public Switch {
    VerilatedContext context;
    Top top{&context, "switch"};

public:
    ~Gateware() override { top.final(); }

    void cycle(PenstockSwitchPins &pins) override {
        static_assert(sizeof top.level == sizeof pins.level);
        top.rst = pins.rst;
        penstock::put_axil(top, pins.axil);
        top.clk = 0;
        if constexpr (has_gmii<Top>) {
            top.link_up = pins.link_up;
            top.mgmt_link_up = pins.management_up;
            top.mgmt_link_full_duplex = top.mgmt_gmii_tx_enable = 1;
            top.mgmt_link_speed = 2;  // 1 Gb/s
            gmii_clocks(top, false);
            top.eval();  // inputs ripple through the combinational paths
            for (PenstockLine &line : pins.line) line.tx_data[0] = line.tx_mask = line.tx_error = 0;
            pins.management.tx_data[0] = pins.management.tx_mask = pins.management.tx_error = 0;
            gmii_octets(top, pins, 0);
        } else {
            top.xgmii_rxc = 0;
            for (int p = 0; p < ports; ++p) {
                std::memcpy(&top.xgmii_rxd[2 * p], &pins.line[p].rx_data[0], 8);
                top.xgmii_rxc |= static_cast<uint32_t>(pins.line[p].rx_mask) << 8 * p;
            }
            top.eval();
            for (int p = 0; p < ports; ++p) {
                std::memcpy(&pins.line[p].tx_data[0], &top.xgmii_txd[2 * p], 8);
                pins.line[p].tx_mask = top.xgmii_txc >> 8 * p & 0xff;
            }
        }
        penstock::get_axil(top, pins.axil);
        pins.stat = top.stat;
        std::memcpy(pins.level, &top.level, sizeof top.level);

        top.clk = 1;
        if constexpr (has_gmii<Top>) {  // its clocks are twice as fast
            gmii_clocks(top, true);
            top.eval();
            gmii_clocks(top, false);
            top.eval();
            gmii_octets(top, pins, 1);
            gmii_clocks(top, true);
        }
        top.eval();
    }
};

}  // namespace

void *penstock_switch_new(uint32_t top) {
    Switch *gateware = nullptr;
    switch (top) {
        case 0: gateware = new Gateware<Vqcn_switch>; break;
        case 1: gateware = new Gateware<Vqcn_switch_1g>; break;
    }
    return gateware;
}

void penstock_switch_free(void *gateware) { delete static_cast<Switch *>(gateware); }

void penstock_switch_cycle(void *gateware, PenstockSwitchPins *pins) { static_cast<Switch *>(gateware)->cycle(*pins); }
