-- SPDX-License-Identifier: Apache-2.0
-- How penstock_xgmii is put into a VHDL design: its component with all ports, and an entity that feeds it fragments
-- of a counter. The architecture is complete but for the PCS/PMA behind XGMII and the reader of the registers.
-- tests/test_vhdl.py checks that the component has exactly the ports of rtl/top/penstock_xgmii.sv.
library ieee;
use ieee.std_logic_1164.all;

package penstock_xgmii_component is

  component penstock_xgmii is
    generic (
      CLK_KHZ     : positive := 156250;
      N_QP        : positive := 4;
      RING_BYTES  : positive := 262144;
      SLOTS       : positive := 256;
      STORE       : natural := 0;
      AXI_ADDR_W  : positive := 64;
      N_IN        : natural := 0;
      EVENT_BYTES : positive := 16384;
      TIMING      : natural := 0;
      SECOND_NS   : positive := 1000000000;
      TRIGGERS    : positive := 32;
      WITH_ROCE   : natural := 1;
      WITH_TCP    : natural := 0;
      N_STREAMS   : positive := 4;
      HOOK        : natural := 0;
      STREAMING   : natural := 0;
      RETRANSMIT  : natural := 1;
      WITH_QCN    : natural := 1;
      WITH_CN_TAG : natural := 0;
      WITH_SOURCE : natural := 1;
      WITH_SERVICES  : natural := 1;
      WITH_REQUESTER : natural := 1;
      WITH_READ      : natural := 0;
      WITH_RECEIVE   : natural := 0;
      PULL_SLOTS     : natural := 0;
      WITH_RDMA_CM   : natural := 0
    );
    port (
      clk                   : in  std_logic;
      rst                   : in  std_logic;
      xgmii_txd             : out std_logic_vector(63 downto 0);
      xgmii_txc             : out std_logic_vector(7 downto 0);
      xgmii_rxd             : in  std_logic_vector(63 downto 0);
      xgmii_rxc             : in  std_logic_vector(7 downto 0);
      s_axis_desc_tdata     : in  std_logic_vector(175 downto 0);
      s_axis_desc_tvalid    : in  std_logic;
      s_axis_desc_tready    : out std_logic;
      s_axis_data_tdata     : in  std_logic_vector(63 downto 0);
      s_axis_data_tkeep     : in  std_logic_vector(7 downto 0);
      s_axis_data_tvalid    : in  std_logic;
      s_axis_data_tready    : out std_logic;
      s_axis_data_tlast     : in  std_logic;
      m_axis_cpl_tdata      : out std_logic_vector(63 downto 0);
      m_axis_cpl_tvalid     : out std_logic;
      m_axis_cpl_tready     : in  std_logic;
      s_event_clk           : in  std_logic_vector(maximum(N_IN, 1) - 1 downto 0);
      s_event_rst           : in  std_logic_vector(maximum(N_IN, 1) - 1 downto 0);
      s_axis_event_tdata    : in  std_logic_vector(maximum(N_IN, 1) * 64 - 1 downto 0);
      s_axis_event_tkeep    : in  std_logic_vector(maximum(N_IN, 1) * 8 - 1 downto 0);
      s_axis_event_tuser    : in  std_logic_vector(maximum(N_IN, 1) * 144 - 1 downto 0);
      s_axis_event_tvalid   : in  std_logic_vector(maximum(N_IN, 1) - 1 downto 0);
      s_axis_event_tready   : out std_logic_vector(maximum(N_IN, 1) - 1 downto 0);
      s_axis_event_tlast    : in  std_logic_vector(maximum(N_IN, 1) - 1 downto 0);
      trigger_valid         : in  std_logic;
      trigger_number        : in  std_logic_vector(63 downto 0);
      trigger_type          : in  std_logic_vector(15 downto 0);
      trigger_veto          : in  std_logic;
      trigger_busy          : out std_logic;
      trigger_gate          : out std_logic;
      m_axis_trigger_tdata  : out std_logic_vector(143 downto 0);
      m_axis_trigger_tvalid : out std_logic;
      m_axis_trigger_tready : in  std_logic;
      pps                   : in  std_logic;
      clk_10mhz             : in  std_logic;
      tai_ns                : out std_logic_vector(63 downto 0);
      m_axis_sample_tdata   : out std_logic_vector(127 downto 0);
      m_axis_sample_tvalid  : out std_logic;
      m_axis_sample_tready  : in  std_logic;
      m_axis_receive_tdata  : out std_logic_vector(63 downto 0);
      m_axis_receive_tkeep  : out std_logic_vector(7 downto 0);
      m_axis_receive_tuser  : out std_logic_vector(42 downto 0);
      m_axis_receive_tvalid : out std_logic;
      m_axis_receive_tready : in  std_logic;
      m_axis_receive_tlast  : out std_logic;
      m_axi_rst             : in  std_logic;
      m_axi_awid            : out std_logic_vector(0 downto 0);
      m_axi_awaddr          : out std_logic_vector(AXI_ADDR_W - 1 downto 0);
      m_axi_awlen           : out std_logic_vector(7 downto 0);
      m_axi_awsize          : out std_logic_vector(2 downto 0);
      m_axi_awburst         : out std_logic_vector(1 downto 0);
      m_axi_awlock          : out std_logic;
      m_axi_awcache         : out std_logic_vector(3 downto 0);
      m_axi_awprot          : out std_logic_vector(2 downto 0);
      m_axi_awvalid         : out std_logic;
      m_axi_awready         : in  std_logic;
      m_axi_wdata           : out std_logic_vector(63 downto 0);
      m_axi_wstrb           : out std_logic_vector(7 downto 0);
      m_axi_wlast           : out std_logic;
      m_axi_wvalid          : out std_logic;
      m_axi_wready          : in  std_logic;
      m_axi_bid             : in  std_logic_vector(0 downto 0);
      m_axi_bresp           : in  std_logic_vector(1 downto 0);
      m_axi_bvalid          : in  std_logic;
      m_axi_bready          : out std_logic;
      m_axi_arid            : out std_logic_vector(0 downto 0);
      m_axi_araddr          : out std_logic_vector(AXI_ADDR_W - 1 downto 0);
      m_axi_arlen           : out std_logic_vector(7 downto 0);
      m_axi_arsize          : out std_logic_vector(2 downto 0);
      m_axi_arburst         : out std_logic_vector(1 downto 0);
      m_axi_arlock          : out std_logic;
      m_axi_arcache         : out std_logic_vector(3 downto 0);
      m_axi_arprot          : out std_logic_vector(2 downto 0);
      m_axi_arvalid         : out std_logic;
      m_axi_arready         : in  std_logic;
      m_axi_rid             : in  std_logic_vector(0 downto 0);
      m_axi_rdata           : in  std_logic_vector(63 downto 0);
      m_axi_rresp           : in  std_logic_vector(1 downto 0);
      m_axi_rlast           : in  std_logic;
      m_axi_rvalid          : in  std_logic;
      m_axi_rready          : out std_logic;
      s_axil_awaddr         : in  std_logic_vector(17 downto 0);
      s_axil_awprot         : in  std_logic_vector(2 downto 0);
      s_axil_awvalid        : in  std_logic;
      s_axil_awready        : out std_logic;
      s_axil_wdata          : in  std_logic_vector(31 downto 0);
      s_axil_wstrb          : in  std_logic_vector(3 downto 0);
      s_axil_wvalid         : in  std_logic;
      s_axil_wready         : out std_logic;
      s_axil_bresp          : out std_logic_vector(1 downto 0);
      s_axil_bvalid         : out std_logic;
      s_axil_bready         : in  std_logic;
      s_axil_araddr         : in  std_logic_vector(17 downto 0);
      s_axil_arprot         : in  std_logic_vector(2 downto 0);
      s_axil_arvalid        : in  std_logic;
      s_axil_arready        : out std_logic;
      s_axil_rdata          : out std_logic_vector(31 downto 0);
      s_axil_rresp          : out std_logic_vector(1 downto 0);
      s_axil_rvalid         : out std_logic;
      s_axil_rready         : in  std_logic;
      tx_paused             : out std_logic
    );
  end component penstock_xgmii;

end package penstock_xgmii_component;

library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

use work.penstock_xgmii_component.all;

-- A source of fragments: one message of FRAGMENT_BYTES for each pulse of `trigger`, its words counting up,
-- by RDMA WRITE WITH IMMEDIATE into the ring of queue pair 0 (registers rings.ring[0]).
entity penstock_10g_example is
  generic (
    FRAGMENT_BYTES : positive range 8 to 65536 := 4096 -- a multiple of 8
  );
  port (
    clk          : in  std_logic; -- 156.25 MHz, the clock of XGMII
    rst          : in  std_logic; -- synchronous to clk
    trigger      : in  std_logic; -- one cycle; heeded while `busy` is 0
    busy         : out std_logic;
    fragments_ok : out unsigned(31 downto 0);
    xgmii_txd    : out std_logic_vector(63 downto 0);
    xgmii_txc    : out std_logic_vector(7 downto 0);
    xgmii_rxd    : in  std_logic_vector(63 downto 0);
    xgmii_rxc    : in  std_logic_vector(7 downto 0)
  );
end entity penstock_10g_example;

architecture rtl of penstock_10g_example is

  constant WORDS      : positive                     := FRAGMENT_BYTES / 8;
  constant WC_SUCCESS : std_logic_vector(7 downto 0) := x"00";

  -- penstock_pkg::desc_t, from its highest bit to its lowest
  function descriptor (tag : unsigned(31 downto 0)) return std_logic_vector is
  begin
    return std_logic_vector(tag)                                -- tag: comes back with the completion
      & x"00000000"                                             -- imm: the slot, put in by the ring
      & x"0000000000000000"                                     -- raddr: put in by the ring
      & std_logic_vector(to_unsigned(FRAGMENT_BYTES, 32))       -- length
      & "000"                                                   -- reserved
      & '0'                                                     -- series
      & '0'                                                     -- by_event
      & '1'                                                     -- in_ring
      & '1'                                                     -- with_imm
      & '0'                                                     -- verb: OpWrite
      & x"00";                                                  -- qp
  end function descriptor;

  signal number      : unsigned(31 downto 0);              -- fragments begun
  signal word        : unsigned(63 downto 0);              -- counts on over all fragments
  signal left        : natural range 0 to WORDS;           -- words of this fragment still to send
  signal desc_valid  : std_logic;
  signal desc_ready  : std_logic;
  signal data_valid  : std_logic;
  signal data_ready  : std_logic;
  signal data_last   : std_logic;
  signal cpl_data    : std_logic_vector(63 downto 0);
  signal cpl_valid   : std_logic;
  signal done_ok     : unsigned(31 downto 0);

begin

  busy         <= '1' when desc_valid = '1' or left /= 0 else '0';
  data_valid   <= '1' when left /= 0 else '0';
  data_last    <= '1' when left = 1 else '0';
  fragments_ok <= done_ok;

  source : process (clk) is
  begin
    if rising_edge(clk) then
      if desc_valid = '1' and desc_ready = '1' then
        desc_valid <= '0';
      end if;
      if data_valid = '1' and data_ready = '1' then
        left <= left - 1;
        word <= word + 1;
      end if;
      if trigger = '1' and desc_valid = '0' and left = 0 then
        desc_valid <= '1';
        left       <= WORDS;
        number     <= number + 1;
      end if;
      if rst = '1' then
        desc_valid <= '0';
        left       <= 0;
        number     <= (others => '0');
        word       <= (others => '0');
      end if;
    end if;
  end process source;

  -- penstock_pkg::cpl_t: tag in 63:32, status in 15:8, qp in 7:0
  completions : process (clk) is
  begin
    if rising_edge(clk) then
      if cpl_valid = '1' and cpl_data(15 downto 8) = WC_SUCCESS then
        done_ok <= done_ok + 1;
      end if;
      if rst = '1' then
        done_ok <= (others => '0');
      end if;
    end if;
  end process completions;

  front_end : component penstock_xgmii
    generic map (
      N_QP => 4
    )
    port map (
      clk                   => clk,
      rst                   => rst,
      xgmii_txd             => xgmii_txd,
      xgmii_txc             => xgmii_txc,
      xgmii_rxd             => xgmii_rxd,
      xgmii_rxc             => xgmii_rxc,
      s_axis_desc_tdata     => descriptor(number),
      s_axis_desc_tvalid    => desc_valid,
      s_axis_desc_tready    => desc_ready,
      s_axis_data_tdata     => std_logic_vector(word),
      s_axis_data_tkeep     => (others => '1'),
      s_axis_data_tvalid    => data_valid,
      s_axis_data_tready    => data_ready,
      s_axis_data_tlast     => data_last,
      m_axis_cpl_tdata      => cpl_data,
      m_axis_cpl_tvalid     => cpl_valid,
      m_axis_cpl_tready     => '1',
      s_event_clk           => (others => '0'), -- no detector inputs: N_IN is 0
      s_event_rst           => (others => '0'),
      s_axis_event_tdata    => (others => '0'),
      s_axis_event_tkeep    => (others => '0'),
      s_axis_event_tuser    => (others => '0'),
      s_axis_event_tvalid   => (others => '0'),
      s_axis_event_tready   => open,
      s_axis_event_tlast    => (others => '0'),
      trigger_valid         => '0', -- no triggers and time: TIMING is 0
      trigger_number        => (others => '0'),
      trigger_type          => (others => '0'),
      trigger_veto          => '0',
      trigger_busy          => open,
      trigger_gate          => open,
      m_axis_trigger_tdata  => open,
      m_axis_trigger_tvalid => open,
      m_axis_trigger_tready => '1',
      pps                   => '0',
      clk_10mhz             => '0',
      tai_ns                => open,
      m_axis_sample_tdata   => open,
      m_axis_sample_tvalid  => open,
      m_axis_sample_tready  => '1',
      m_axis_receive_tdata  => open,
      m_axis_receive_tkeep  => open,
      m_axis_receive_tuser  => open,
      m_axis_receive_tvalid => open,
      m_axis_receive_tready => '1',
      m_axis_receive_tlast  => open,
      m_axi_rst             => '0', -- no memory: STORE is 0
      m_axi_awid            => open,
      m_axi_awaddr          => open,
      m_axi_awlen           => open,
      m_axi_awsize          => open,
      m_axi_awburst         => open,
      m_axi_awlock          => open,
      m_axi_awcache         => open,
      m_axi_awprot          => open,
      m_axi_awvalid         => open,
      m_axi_awready         => '0',
      m_axi_wdata           => open,
      m_axi_wstrb           => open,
      m_axi_wlast           => open,
      m_axi_wvalid          => open,
      m_axi_wready          => '0',
      m_axi_bid             => (others => '0'),
      m_axi_bresp           => (others => '0'),
      m_axi_bvalid          => '0',
      m_axi_bready          => open,
      m_axi_arid            => open,
      m_axi_araddr          => open,
      m_axi_arlen           => open,
      m_axi_arsize          => open,
      m_axi_arburst         => open,
      m_axi_arlock          => open,
      m_axi_arcache         => open,
      m_axi_arprot          => open,
      m_axi_arvalid         => open,
      m_axi_arready         => '0',
      m_axi_rid             => (others => '0'),
      m_axi_rdata           => (others => '0'),
      m_axi_rresp           => (others => '0'),
      m_axi_rlast           => '0',
      m_axi_rvalid          => '0',
      m_axi_rready          => open,
      s_axil_awaddr         => (others => '0'),
      s_axil_awprot         => (others => '0'),
      s_axil_awvalid        => '0',
      s_axil_awready        => open,
      s_axil_wdata          => (others => '0'),
      s_axil_wstrb          => (others => '0'),
      s_axil_wvalid         => '0',
      s_axil_wready         => open,
      s_axil_bresp          => open,
      s_axil_bvalid         => open,
      s_axil_bready         => '1',
      s_axil_araddr         => (others => '0'),
      s_axil_arprot         => (others => '0'),
      s_axil_arvalid        => '0',
      s_axil_arready        => open,
      s_axil_rdata          => open,
      s_axil_rresp          => open,
      s_axil_rvalid         => open,
      s_axil_rready         => '1',
      tx_paused             => open
    );

end architecture rtl;
