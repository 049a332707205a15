-- SPDX-License-Identifier: Apache-2.0
-- The waveform generator of docs/digitiser.md, its beats taken in every third cycle. Prints each of them.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use std.textio.all;

entity waveform_tb is
end entity waveform_tb;

architecture test of waveform_tb is

  signal clk           : std_logic := '0';
  signal rst           : std_logic := '1';
  signal trigger       : std_logic_vector(143 downto 0) := (others => '0');
  signal trigger_shown : std_logic := '0';
  signal trigger_taken : std_logic;
  signal tdata         : std_logic_vector(63 downto 0);
  signal tkeep         : std_logic_vector(7 downto 0);
  signal tuser         : std_logic_vector(143 downto 0);
  signal tvalid        : std_logic;
  signal tready        : std_logic := '0';
  signal tlast         : std_logic;
  signal done          : boolean := false;

begin

  clk <= not clk after 5 ns when not done else '0';

  source : entity work.waveform_source
    port map (
      clk                   => clk,
      rst                   => rst,
      s_axis_trigger_tdata  => trigger,
      s_axis_trigger_tvalid => trigger_shown,
      s_axis_trigger_tready => trigger_taken,
      m_axis_tdata          => tdata,
      m_axis_tkeep          => tkeep,
      m_axis_tuser          => tuser,
      m_axis_tvalid         => tvalid,
      m_axis_tready         => tready,
      m_axis_tlast          => tlast
    );

  print : process (clk) is
    variable text_line : line;
    variable first     : boolean := true;
    variable count     : natural := 0;
  begin
    if rising_edge(clk) then
      count  := count + 1;
      tready <= '1' when count mod 3 = 0 else '0';
      if rst = '0' and tvalid = '1' and tready = '1' then
        write(text_line, string'("beat 0 "));
        hwrite(text_line, tdata);
        write(text_line, string'(" "));
        hwrite(text_line, tkeep);
        write(text_line, string'(" ") & character'value("'" & std_logic'image(tlast)(2) & "'") & string'(" "));
        if first then
          hwrite(text_line, tuser);
        else
          write(text_line, string'("0"));
        end if;
        writeline(output, text_line);
        first := tlast = '1';
      end if;
    end if;
  end process print;

  stimulus : process is
  begin
    for i in 1 to 10 loop
      wait until falling_edge(clk);
    end loop;
    rst <= '0';
    for n in 1 to 5 loop
      trigger       <= x"0009" & std_logic_vector(to_unsigned(1000 * n, 64)) & std_logic_vector(to_unsigned(n - 1, 64));
      trigger_shown <= '1';
      wait until rising_edge(clk) and trigger_taken = '1';
    end loop;
    trigger_shown <= '0';
    wait until falling_edge(clk);
    wait until falling_edge(clk) and trigger_taken = '1';
    done <= true;
    wait;
  end process stimulus;

end architecture test;
