// SPDX-License-Identifier: SHL-2.1
// AXI4-Lite and AXI4 as one struct each way between our modules: `req` from the master, `rsp` from the slave.
// Fields are named after the signals of the specification (AMBA AXI, ARM IHI 0022); the flat ports are those of the
// tops.
package axi_pkg;

  localparam logic [1:0] RespOkay   = 2'b00;
  localparam logic [1:0] RespSlvErr = 2'b10;

  // ---- AXI4-Lite: the registers -----------------------------------------------------------------
  localparam int unsigned AxilAddrW = 18;  // byte addresses of regs/penstock.rdl

  typedef struct packed {
    logic [AxilAddrW-1:0] awaddr;
    logic [2:0]           awprot;
    logic                 awvalid;
    logic [31:0]          wdata;
    logic [3:0]           wstrb;
    logic                 wvalid;
    logic                 bready;
    logic [AxilAddrW-1:0] araddr;
    logic [2:0]           arprot;
    logic                 arvalid;
    logic                 rready;
  } axil_req_t;

  typedef struct packed {
    logic        awready;
    logic        wready;
    logic [1:0]  bresp;
    logic        bvalid;
    logic        arready;
    logic [31:0] rdata;
    logic [1:0]  rresp;
    logic        rvalid;
  } axil_rsp_t;

  // ---- AXI4: the memory of the rings -------------------------------------------------------------
  // The data words, as wide as the build, accompany these structs.
  typedef struct packed {
    logic [0:0]  id;
    logic [63:0] addr;
    logic [7:0]  len;
    logic [2:0]  size;
    logic [1:0]  burst;
    logic        lock;
    logic [3:0]  cache;
    logic [2:0]  prot;
  } axi_addr_t;

  // Lanes of a word of at most 64 bytes, both included; those that a word does not have do not count.
  typedef struct packed {
    logic [5:0] first;
    logic [5:0] last;
  } lanes_t;
  localparam lanes_t AllLanes = '{first: 6'd0, last: 6'd63};

  typedef struct packed {
    axi_addr_t aw;
    logic      awvalid;
    logic      wlast;
    lanes_t    wlanes;
    logic      wstrb;  // of these lanes; the others have none
    logic      wvalid;
    logic      bready;
  } axi_wr_req_t;

  typedef struct packed {
    logic       awready;
    logic       wready;
    logic [0:0] bid;
    logic [1:0] bresp;
    logic       bvalid;
  } axi_wr_rsp_t;

  typedef struct packed {
    axi_addr_t ar;
    logic      arvalid;
    logic      rready;
  } axi_rd_req_t;

  typedef struct packed {
    logic       arready;
    logic [0:0] rid;
    logic [1:0] rresp;
    logic       rlast;
    logic       rvalid;
  } axi_rd_rsp_t;

  typedef struct packed {
    axi_wr_req_t wr;
    axi_rd_req_t rd;
  } axi_req_t;

  typedef struct packed {
    axi_wr_rsp_t wr;
    axi_rd_rsp_t rd;
  } axi_rsp_t;

  function automatic logic [63:0] strobes(lanes_t lanes);
    return ({64{1'b1}} << lanes.first) & ({64{1'b1}} >> (6'd63 - lanes.last));
  endfunction

  // An incrementing burst of `len` + 1 whole words of `lanes` bytes.
  function automatic axi_addr_t whole_words(logic [63:0] addr, logic [7:0] len, int unsigned lanes);
    return '{
      id: '0, addr: addr, len: len, size: 3'($clog2(lanes)),
      burst: 2'b01,    // INCR
      lock: 1'b0,
      cache: 4'b0011,  // normal, not cached
      prot: 3'b010     // data, not secure
    };
  endfunction

endpackage
