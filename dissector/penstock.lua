-- SPDX-License-Identifier: Apache-2.0
-- Wireshark and tshark: what they do not know of Penstock's traffic. Five protocols:
--   penstock.qcn       CN-TAG of a frame, and the congestion notification message after one (IEEE 802.1Qau clause 33)
--   penstock.cm        messages of the FEROCE connection manager, UDP port 0x4321, and 0x4322 for answers where none is named
--   penstock.cnp       RoCEv2 congestion notifications, BTH opcode 0x81 (IBTA A17.9.3)
--   penstock.fragment  header of an event's fragment, in the first packet of a WRITE, SEND or READ response
--   penstock.announcement  events that a board has for its server to READ, in a WRITE, or after a fragment in a READ response
-- Promise: every field can be filtered on; a message that breaks its format gets an expert item of severity Error.
-- Installation: docs/captures.md. For Wireshark 3.6 and later.

-- Lua 5.2 (Wireshark to 4.2) has bit32, Wireshark itself brings bit, later Lua has operators.
local band, bxor, rshift
if bit or bit32 then
  local library = bit32 or bit
  band, bxor, rshift = library.band, library.bxor, library.rshift
else
  band = load("return function(a, b) return a & b end")()
  bxor = load("return function(a, b) return a ~ b end")()
  rshift = load("return function(a, n) return a >> n end")()
end

-- CRC-32C (Castagnoli, reflected), as RFC 3720 has it.
local crc_table = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    crc = bxor(rshift(crc, 1), band(crc, 1) == 1 and 0x82F63B78 or 0)
  end
  crc_table[byte] = crc % 0x100000000
end

local function crc32c(range)
  local bytes, crc = range:bytes(), 0xFFFFFFFF
  for at = 0, bytes:len() - 1 do
    crc = bxor(crc_table[band(bxor(crc, bytes:get_index(at)), 0xFF)], rshift(crc, 8))
  end
  return bxor(crc, 0xFFFFFFFF) % 0x100000000
end

local function error_item(name, text)
  return ProtoExpert.new(name, text, expert.group.MALFORMED, expert.severity.ERROR)
end

local function check_item(name, text)
  return ProtoExpert.new(name, text, expert.group.CHECKSUM, expert.severity.ERROR)
end

---------------------------------------------------------------------------------------------------
-- CN-TAG: flow ID and EtherType of what follows, which is the frame's own packet or a congestion notification message.
local qcn = Proto("penstock.qcn", "Quantised Congestion Notification")
local CN_TAG, CNM, CN_TAG_LEN, CNM_LEN = 0x22E9, 0x22E7, 4, 24

local qcnf = {
  flow = ProtoField.uint16("penstock.qcn.flow", "Flow ID", base.DEC),
  type = ProtoField.uint16("penstock.qcn.type", "EtherType", base.HEX),
  version = ProtoField.uint16("penstock.qcn.version", "Version", base.DEC, nil, 0xF000),
  feedback = ProtoField.uint16("penstock.qcn.feedback", "Quantised feedback |F_b|", base.DEC, nil, 0x003F),
  cpid = ProtoField.bytes("penstock.qcn.cpid", "Congestion point"),
  q_offset = ProtoField.int16("penstock.qcn.q_offset", "QOffset, of 64 bytes", base.DEC),
  q_delta = ProtoField.int16("penstock.qcn.q_delta", "QDelta, of 64 bytes", base.DEC),
  priority = ProtoField.uint16("penstock.qcn.priority", "Priority of the sampled frame", base.DEC, nil, 0xE000),
  dst = ProtoField.ether("penstock.qcn.dst", "Destination of the sampled frame"),
  msdu = ProtoField.bytes("penstock.qcn.msdu", "Head of the sampled frame"),
}
qcn.fields = qcnf

local qcne = {
  version = error_item("penstock.qcn.version.bad", "The version is not 0"),
  length = error_item("penstock.qcn.length.bad", "The head of the sampled frame is longer than 64 bytes or than the frame"),
}
qcn.experts = qcne

function qcn.dissector(buffer, pinfo, root)
  if buffer:len() < CN_TAG_LEN then return end
  local next_type = buffer(2, 2):uint()
  local is_message = next_type == CNM
  local tree = root:add(qcn, is_message and buffer() or buffer(0, CN_TAG_LEN))
  tree:add(qcnf.flow, buffer(0, 2))
  tree:add(qcnf.type, buffer(2, 2))
  if not is_message then
    if buffer:len() > CN_TAG_LEN then
      DissectorTable.get("ethertype"):try(next_type, buffer(CN_TAG_LEN):tvb(), pinfo, root)
    end
    return
  end
  pinfo.cols.protocol = "QCN"
  local head = buffer:len() - CN_TAG_LEN
  if head < CNM_LEN then return end
  local version = tree:add(qcnf.version, buffer(4, 2))
  if buffer(4, 1):uint() >= 0x10 then version:add_proto_expert_info(qcne.version) end
  tree:add(qcnf.feedback, buffer(4, 2))
  tree:add(qcnf.cpid, buffer(6, 8))
  tree:add(qcnf.q_offset, buffer(14, 2))
  tree:add(qcnf.q_delta, buffer(16, 2))
  tree:add(qcnf.priority, buffer(18, 2))
  tree:add(qcnf.dst, buffer(20, 6))
  local length, rest = buffer(26, 2):uint(), buffer:reported_len() - CN_TAG_LEN - CNM_LEN
  if length > 64 or length > rest then tree:add_proto_expert_info(qcne.length) end
  local captured = math.min(length, head - CNM_LEN)
  if captured > 0 then tree:add(qcnf.msdu, buffer(CN_TAG_LEN + CNM_LEN, captured)) end
  pinfo.cols.info = ("Congestion notification for flow %d, |F_b| %d"):format(
    buffer(0, 2):uint(), band(buffer(4, 2):uint(), 0x3F))
end
DissectorTable.get("ethertype"):add(CN_TAG, qcn)

---------------------------------------------------------------------------------------------------
-- Connection manager: 64 bytes, big-endian.
local cm = Proto("penstock.cm", "FEROCE Connection Manager")
local CM_LEN, CM_PORTS = 64, { 0x4321, 0x4322 }
local REQUESTS = {
  [0] = "none", "OPEN_QP", "SEND_QP_INFO", "MODIFY_QP_RTS", "CLOSE_QP", "reserved", "reserved", "ERROR",
}
local ANSWERS = { [0] = "reserved", "ACK", "NO_QP", "NAK", "reserved", "reserved", "reserved", "ERROR" }

local cmf = {
  info_valid = ProtoField.bool("penstock.cm.info_valid", "Sender's information valid", 8, nil, 0x01),
  request = ProtoField.uint8("penstock.cm.request", "Request", base.DEC, REQUESTS, 0x0E),
  ack_valid = ProtoField.bool("penstock.cm.ack_valid", "Answer valid", 8, nil, 0x10),
  ack = ProtoField.uint8("penstock.cm.ack", "Answer", base.DEC, ANSWERS, 0xE0),
  port = ProtoField.uint16("penstock.cm.port", "Listening port", base.DEC),
  tx_valid = ProtoField.bool("penstock.cm.tx.valid", "Transmit request valid", 8, nil, 0x01),
  tx_start = ProtoField.bool("penstock.cm.tx.start", "Start", 8, nil, 0x02),
  tx_imm = ProtoField.bool("penstock.cm.tx.imm", "With immediate", 8, nil, 0x04),
  tx_kind = ProtoField.uint8("penstock.cm.tx.kind", "Kind", base.DEC, { [0] = "SEND", "WRITE" }, 0x08),
  tx_length = ProtoField.uint32("penstock.cm.tx.length", "Message length", base.DEC),
  tx_count = ProtoField.uint32("penstock.cm.tx.count", "Messages (0: none)", base.DEC),
  tx_interval = ProtoField.uint32("penstock.cm.tx.interval", "Clock cycles from one message to the next", base.DEC),
}
for side, name in pairs({ sender = "Sender's", other = "Other side's" }) do
  local prefix = "penstock.cm." .. side
  cmf[side .. "_qpn"] = ProtoField.uint24(prefix .. ".qpn", name .. " QPN", base.HEX)
  cmf[side .. "_psn"] = ProtoField.uint24(prefix .. ".psn", name .. " PSN", base.DEC)
  cmf[side .. "_rkey"] = ProtoField.uint32(prefix .. ".rkey", name .. " rkey", base.HEX)
  cmf[side .. "_base"] = ProtoField.uint64(prefix .. ".base", name .. " base address", base.HEX)
  cmf[side .. "_ip"] = ProtoField.ipv4(prefix .. ".ip", name .. " IPv4 address")
end
cm.fields = cmf

local cme = {
  length = error_item("penstock.cm.length.bad", "A connection manager's message has 64 bytes"),
  request = error_item("penstock.cm.request.bad", "Reserved request code"),
  ack = error_item("penstock.cm.ack.bad", "Reserved answer code"),
  empty = error_item("penstock.cm.empty", "Neither a request, nor an answer, nor a transmit request"),
  reserved = ProtoExpert.new(
    "penstock.cm.reserved", "Reserved bits are set", expert.group.PROTOCOL, expert.severity.WARN
  ),
}
cm.experts = cme

local function cm_side(tree, buffer, at, side)
  for _, field in ipairs({ { "qpn", 0, 3 }, { "psn", 4, 3 }, { "rkey", 7, 4 }, { "base", 11, 8 }, { "ip", 19, 4 } }) do
    tree:add(cmf[side .. "_" .. field[1]], buffer(at + field[2], field[3]))
  end
end

local function cm_reserved(tree, buffer)
  local reserved = buffer(1, 1):uint() + buffer(5, 1):uint() + buffer(25, 1):uint() + buffer(29, 1):uint()
  if reserved > 0 or buffer(51, 1):uint() > 0x0F then
    tree:add_proto_expert_info(cme.reserved)
  end
end

local function cm_codes(tree, buffer)
  local flags = buffer(0, 1):uint()
  local request, answered, ack = band(rshift(flags, 1), 7), band(flags, 0x10) ~= 0, rshift(flags, 5)
  local transmits = band(buffer(51, 1):uint(), 1) == 1
  if REQUESTS[request] == "reserved" then tree:add_proto_expert_info(cme.request) end
  if answered and ANSWERS[ack] == "reserved" then tree:add_proto_expert_info(cme.ack) end
  if request == 0 and not answered and not transmits then tree:add_proto_expert_info(cme.empty) end
  local text = request == 0 and transmits and "transmit request" or REQUESTS[request]
  return answered and ("%s, answer %s"):format(text, ANSWERS[ack]) or text
end

function cm.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "CM"
  local tree = root:add(cm, buffer())
  if buffer:reported_len() ~= CM_LEN then
    local wrong = ("%d bytes instead of 64"):format(buffer:reported_len())
    tree:add_proto_expert_info(cme.length, "A connection manager's message has " .. wrong)
    pinfo.cols.info = "connection manager, " .. wrong
    return buffer:len()
  end
  if buffer:len() < CM_LEN then
    pinfo.cols.info = ("connection manager, %d bytes of 64 captured"):format(buffer:len())
    return buffer:len()
  end
  for _, name in ipairs({ "info_valid", "request", "ack_valid", "ack" }) do
    tree:add(cmf[name], buffer(0, 1))
  end
  cm_side(tree:add(buffer(2, 23), "Sender"), buffer, 2, "sender")
  cm_side(tree:add(buffer(26, 23), "Other side"), buffer, 26, "other")
  tree:add(cmf.port, buffer(49, 2))
  local transmit = tree:add(buffer(51, 13), "Transmit request")
  for _, name in ipairs({ "tx_valid", "tx_start", "tx_imm", "tx_kind" }) do
    transmit:add(cmf[name], buffer(51, 1))
  end
  transmit:add(cmf.tx_length, buffer(52, 4))
  transmit:add(cmf.tx_count, buffer(56, 4))
  transmit:add(cmf.tx_interval, buffer(60, 4))
  cm_reserved(tree, buffer)
  local text = cm_codes(tree, buffer)
  tree:append_text(", " .. text)
  local numbers = ("QPN 0x%06x of the sender, 0x%06x of the other"):format(buffer(2, 3):uint(), buffer(26, 3):uint())
  pinfo.cols.info = text .. ", " .. numbers
  return CM_LEN
end

for _, port in ipairs(CM_PORTS) do
  DissectorTable.get("udp.port"):add(port, cm)
end

---------------------------------------------------------------------------------------------------
-- CNP: BTH, 16 reserved bytes, ICRC. Wireshark shows its BTH and calls the opcode unknown.
local cnp = Proto("penstock.cnp", "RoCEv2 Congestion Notification Packet")
local CNP_OPCODE, BTH_LEN, CNP_LEN = 0x81, 12, 32

local cnpf = {
  qpn = ProtoField.uint24("penstock.cnp.qpn", "Queue pair to slow down", base.HEX),
  fecn = ProtoField.bool("penstock.cnp.fecn", "FECN", 8, nil, 0x80),
  becn = ProtoField.bool("penstock.cnp.becn", "BECN", 8, nil, 0x40),
  reserved = ProtoField.bytes("penstock.cnp.reserved", "Reserved"),
  icrc = ProtoField.uint32("penstock.cnp.icrc", "ICRC", base.HEX),
}
cnp.fields = cnpf

local cnpe = {
  length = error_item("penstock.cnp.length.bad", "A CNP has 32 bytes behind its UDP header"),
  becn = error_item("penstock.cnp.becn.bad", "BECN is not set in a CNP (IBTA A17.9.3)"),
  reserved = error_item("penstock.cnp.reserved.bad", "The 16 reserved bytes of a CNP are not zero"),
}
cnp.experts = cnpe

local bth_field, opcode_field = Field.new("infiniband.bth"), Field.new("infiniband.bth.opcode")
local udp_length_field = Field.new("udp.length")

-- A post-dissector, since InfiniBand's own dissector takes the packet: the BTH tells where it lies in the frame.
function cnp.dissector(buffer, pinfo, root)
  local opcode, bth, udp_length = opcode_field(), bth_field(), udp_length_field()
  if not opcode or opcode.value ~= CNP_OPCODE or not bth or not udp_length then return end
  local at, len = bth.offset, udp_length.value - 8
  local captured = math.min(len, buffer:len() - at)
  if captured <= 0 then return end
  local tree = root:add(cnp, buffer(at, captured))
  pinfo.cols.protocol = "RoCE CNP"
  if len == CNP_LEN and captured < BTH_LEN then return end
  if len ~= CNP_LEN then
    tree:add_proto_expert_info(cnpe.length, ("A CNP has 32 bytes behind its UDP header, this one has %d"):format(len))
    return
  end
  tree:add(cnpf.qpn, buffer(at + 5, 3))
  tree:add(cnpf.fecn, buffer(at + 4, 1))
  tree:add(cnpf.becn, buffer(at + 4, 1))
  if band(buffer(at + 4, 1):uint(), 0x40) == 0 then
    tree:add_proto_expert_info(cnpe.becn)
  end
  if captured >= CNP_LEN then
    local reserved = buffer(at + BTH_LEN, 16)
    local item = tree:add(cnpf.reserved, reserved)
    if reserved:bytes():tohex():find("[^0]") then item:add_proto_expert_info(cnpe.reserved) end
    tree:add_le(cnpf.icrc, buffer(at + 28, 4))
  end
  pinfo.cols.info = ("Congestion notification for QPN 0x%06x"):format(buffer(at + 5, 3):uint())
end
register_postdissector(cnp)

---------------------------------------------------------------------------------------------------
-- Fragment, little-endian: header of version 1, 40 bytes (crates/wire/src/fragment/mod.rs); header and trailer of
-- version 2, 32 and 16 bytes, with a table of parts in front of the trailer (message.rs and parts.rs beside it).
local fragment = Proto("penstock.fragment", "Penstock Fragment")
local HEADER_LEN, HEADER_2_LEN, PART_LEN, TRAILER_LEN = 40, 32, 16, 16

local ff = {
  magic = ProtoField.string("penstock.fragment.magic", "Magic"),
  version = ProtoField.uint16("penstock.fragment.version", "Version", base.DEC),
  source = ProtoField.uint16("penstock.fragment.source", "Source", base.DEC),
  length = ProtoField.uint32("penstock.fragment.length", "Payload length", base.DEC),
  crc = ProtoField.uint32("penstock.fragment.crc", "Payload CRC-32C", base.HEX),
  event = ProtoField.uint64("penstock.fragment.event", "Event number", base.DEC),
  time = ProtoField.uint64("penstock.fragment.time", "Timestamp [ns]", base.DEC),
  reserved = ProtoField.uint32("penstock.fragment.reserved", "Reserved", base.HEX),
  header_crc = ProtoField.uint32("penstock.fragment.header_crc", "Header CRC-32C", base.HEX),
  payload = ProtoField.bytes("penstock.fragment.payload", "Payload"),
  whole = ProtoField.bool("penstock.fragment.whole", "Payload in this packet"),
  trigger = ProtoField.uint16("penstock.fragment.trigger", "Trigger type", base.DEC),
  parts = ProtoField.uint8("penstock.fragment.parts", "Parts", base.DEC),
  flags = ProtoField.uint16("penstock.fragment.flags", "Flags of all parts", base.HEX),
  message_crc = ProtoField.uint32("penstock.fragment.message_crc", "Message CRC-32C", base.HEX),
  part_input = ProtoField.uint8("penstock.fragment.part.input", "Input", base.DEC),
  part_flags = ProtoField.uint16("penstock.fragment.part.flags", "Flags", base.HEX),
  part_offset = ProtoField.uint32("penstock.fragment.part.offset", "Offset", base.DEC),
  part_length = ProtoField.uint32("penstock.fragment.part.length", "Length", base.DEC),
}
fragment.fields = ff

local fe = {
  short = error_item("penstock.fragment.short", "The message ends within the fragment header"),
  version = error_item("penstock.fragment.version.bad", "Unknown version"),
  header_crc = check_item("penstock.fragment.header_crc.bad", "Header CRC-32C is wrong"),
  crc = check_item("penstock.fragment.crc.bad", "Payload CRC-32C is wrong"),
  length = error_item("penstock.fragment.length.bad", "The message is shorter than the header says"),
  message_crc = check_item("penstock.fragment.message_crc.bad", "Message CRC-32C is wrong"),
  trailer = error_item("penstock.fragment.trailer.bad", "The message does not end with its trailer"),
}
fragment.experts = fe

-- RC opcodes that begin a message with the bytes of their headers behind the BTH; of these the ones that also end it.
local BEGINS = { [0x00] = 0, [0x04] = 0, [0x05] = 4, [0x06] = 16, [0x0A] = 16, [0x0B] = 20, [0x0D] = 4, [0x10] = 4 }
local READ_RESPONSE_ONLY = 0x10
local ENDS = { [0x04] = true, [0x05] = true, [0x0A] = true, [0x0B] = true, [0x10] = true }

local pad_field = Field.new("infiniband.bth.padcnt")

-- Bytes of the message in this packet. IBTA pads payloads to four bytes; whether what is handed over still has its
-- padding depends on the version of Wireshark, so UDP's length is asked.
local function message_len(buffer, opcode)
  local pad, udp_length = pad_field(), udp_length_field()
  local inside = 8 + BTH_LEN + BEGINS[opcode.value] + 4 + (pad and pad.value or 0)
  return udp_length and math.max(0, udp_length.value - inside) or buffer:reported_len()
end

local function header_fields(tree, buffer)
  tree:add(ff.magic, buffer(0, 4))
  tree:add_le(ff.version, buffer(4, 2))
  tree:add_le(ff.source, buffer(6, 2))
  tree:add_le(ff.length, buffer(8, 4))
  local crc = tree:add_le(ff.crc, buffer(12, 4))
  tree:add_le(ff.event, buffer(16, 8))
  tree:add_le(ff.time, buffer(24, 8))
  tree:add_le(ff.reserved, buffer(32, 4))
  local header_crc = tree:add_le(ff.header_crc, buffer(36, 4))
  if buffer(4, 2):le_uint() ~= 1 then tree:add_proto_expert_info(fe.version) end
  local computed = crc32c(buffer(0, 36))
  if buffer(36, 4):le_uint() ~= computed then
    header_crc:add_proto_expert_info(fe.header_crc, ("Header CRC-32C is wrong, computed 0x%08x"):format(computed))
  end
  return crc
end

-- The payload's CRC, where this packet has all of it and it was captured.
local function payload_fields(tree, buffer, crc, available, ends)
  local length = buffer(8, 4):le_uint()
  local whole = length <= available
  tree:add(ff.whole, whole)
  if not whole and ends then
    local text = ("The message has %d bytes of payload, its header says %d"):format(available, length)
    tree:add_proto_expert_info(fe.length, text)
  end
  local captured = math.min(length, buffer:len() - HEADER_LEN)
  if captured > 0 then tree:add(ff.payload, buffer(HEADER_LEN, captured)) end
  if not whole or captured < length then return end
  local computed = length > 0 and crc32c(buffer(HEADER_LEN, length)) or 0
  if buffer(12, 4):le_uint() ~= computed then
    crc:add_proto_expert_info(fe.crc, ("Payload CRC-32C is wrong, computed 0x%08x"):format(computed))
  end
end

-- Version 2, of which the length and the CRC are known at its end: read where the whole message is in this packet.
local function trailer_fields(tree, buffer, len)
  local at = len - TRAILER_LEN
  local length, parts = buffer(at, 4):le_uint(), buffer(at + 4, 1):uint()
  local table_at = at - parts * PART_LEN
  local padded = length + (-length) % 8
  if buffer(at + 8, 4):string() ~= "PSTE" or HEADER_2_LEN + padded ~= table_at then
    tree:add_proto_expert_info(fe.trailer)
    return nil
  end
  if length > 0 then tree:add(ff.payload, buffer(HEADER_2_LEN, length)) end
  for entry = 0, parts - 1 do
    local row = buffer(table_at + entry * PART_LEN, PART_LEN)
    local part = tree:add(fragment, row, ("Part %d"):format(entry))
    part:add_le(ff.part_input, row(0, 1))
    part:add_le(ff.part_flags, row(2, 2))
    part:add_le(ff.part_offset, row(4, 4))
    part:add_le(ff.part_length, row(8, 4))
  end
  tree:add_le(ff.length, buffer(at, 4))
  tree:add_le(ff.parts, buffer(at + 4, 1))
  tree:add_le(ff.flags, buffer(at + 6, 2))
  local crc = tree:add_le(ff.message_crc, buffer(at + 12, 4))
  local computed = crc32c(buffer(0, at + 12))
  if buffer(at + 12, 4):le_uint() ~= computed then
    crc:add_proto_expert_info(fe.message_crc, ("Message CRC-32C is wrong, computed 0x%08x"):format(computed))
  end
  return length
end

local function dissect_2(buffer, pinfo, tree, len, ends)
  tree:add(ff.magic, buffer(0, 4))
  if len < HEADER_2_LEN then tree:add_proto_expert_info(fe.short) end
  if math.min(len, buffer:len()) < HEADER_2_LEN then return end
  tree:add_le(ff.version, buffer(4, 2))
  tree:add_le(ff.source, buffer(6, 2))
  tree:add_le(ff.event, buffer(8, 8))
  tree:add_le(ff.time, buffer(16, 8))
  tree:add_le(ff.trigger, buffer(24, 2))
  local text = ("source %d, event %s"):format(buffer(6, 2):le_uint(), tostring(buffer(8, 8):le_uint64()))
  tree:add(ff.whole, ends)
  if ends and len < HEADER_2_LEN + TRAILER_LEN then
    tree:add_proto_expert_info(fe.trailer)
  elseif ends and buffer:len() >= len then
    local length = trailer_fields(tree, buffer, len)
    if length then text = text .. (", %d bytes"):format(length) end
  end
  tree:append_text(", " .. text)
  pinfo.cols.info:append(" fragment: " .. text)
end

-- Number of the last frame in which a message was looked for.
local last_frame

-- A plain function: `fragment.dissector` would hand over to the dissector of data what this one does not take.
local function dissect_fragment(buffer, pinfo, root)
  local opcode = opcode_field()
  last_frame = pinfo.number
  if not opcode or not BEGINS[opcode.value] then return 0 end
  if buffer:len() < 4 or buffer(0, 4):string() ~= "PSTF" then return 0 end
  pinfo.cols.protocol = "Fragment"
  local tree = root:add(fragment, buffer())
  local len = message_len(buffer, opcode)
  if buffer:len() >= 6 and buffer(4, 2):le_uint() == 2 then
    dissect_2(buffer, pinfo, tree, len, ENDS[opcode.value] == true)
    return buffer:len()
  end
  if len < HEADER_LEN or buffer:len() < HEADER_LEN then
    tree:add(ff.magic, buffer(0, 4))
    if len < HEADER_LEN then tree:add_proto_expert_info(fe.short) end
    return buffer:len()
  end
  local crc = header_fields(tree, buffer)
  payload_fields(tree, buffer, crc, len - HEADER_LEN, ENDS[opcode.value])
  local source, event, length = buffer(6, 2):le_uint(), buffer(16, 8):le_uint64(), buffer(8, 4):le_uint()
  local text = ("source %d, event %s, %d bytes"):format(source, tostring(event), length)
  tree:append_text(", " .. text)
  pinfo.cols.info:append(" fragment: " .. text)
  return buffer:len()
end

---------------------------------------------------------------------------------------------------
-- Announcement, little-endian: header of 32 bytes, then an entry for each fragment (crates/wire/src/announcement.rs).
local announcement = Proto("penstock.announcement", "Penstock Announcement")
local ANNOUNCEMENT_LEN, ANNOUNCEMENT_EVENTS, ENTRY_LEN = 32, 96, 5

local af = {
  magic = ProtoField.string("penstock.announcement.magic", "Magic"),
  version = ProtoField.uint16("penstock.announcement.version", "Version", base.DEC),
  count = ProtoField.uint8("penstock.announcement.count", "Fragments", base.DEC),
  carried = ProtoField.uint8("penstock.announcement.carried", "Fragments named by READs before, modulo 256", base.DEC),
  event = ProtoField.uint64("penstock.announcement.event", "First event", base.DEC),
  address = ProtoField.uint64("penstock.announcement.address", "Address of its fragment", base.HEX),
  rkey = ProtoField.uint32("penstock.announcement.rkey", "rkey", base.HEX),
  stride = ProtoField.uint32("penstock.announcement.stride", "Bytes from fragment to fragment", base.DEC),
  skipped = ProtoField.uint8("penstock.announcement.skipped", "Events skipped", base.DEC),
  length = ProtoField.uint32("penstock.announcement.length", "Fragment length", base.DEC),
}
announcement.fields = af

local ae = {
  version = error_item("penstock.announcement.version.bad", "Unknown version"),
  count = error_item("penstock.announcement.count.bad", "An announcement has 1 to 96 fragments"),
  length = error_item("penstock.announcement.length.bad", "The announcement is not as long as its fragments need"),
  overlap = error_item("penstock.announcement.overlap", "A fragment with its successors is longer than the stride"),
}
announcement.experts = ae

local function entry_fields(tree, entry)
  tree:add_le(af.skipped, entry(0, 1))
  return tree:add_le(af.length, entry(1, 4))
end

-- The two entries after a fragment that is read, where one packet has all of it.
local function dissect_successors(buffer, root)
  local opcode = opcode_field()
  if not opcode or opcode.value ~= READ_RESPONSE_ONLY then return end
  local fragment_len = HEADER_LEN + buffer(8, 4):le_uint()
  if buffer(4, 2):le_uint() ~= 1 or message_len(buffer, opcode) ~= fragment_len + 2 * ENTRY_LEN then return end
  if buffer:len() < fragment_len + 2 * ENTRY_LEN then return end
  local tree = root:add(announcement, buffer(fragment_len, 2 * ENTRY_LEN))
  for at = fragment_len, fragment_len + ENTRY_LEN, ENTRY_LEN do
    if buffer(at + 1, 4):le_uint() > 0 then entry_fields(tree, buffer(at, ENTRY_LEN)) end
  end
end

local function announced_fields(tree, buffer)
  tree:add(af.magic, buffer(0, 4))
  tree:add_le(af.version, buffer(4, 2))
  tree:add_le(af.count, buffer(6, 1))
  tree:add_le(af.carried, buffer(7, 1))
  tree:add_le(af.event, buffer(8, 8))
  tree:add_le(af.address, buffer(16, 8))
  tree:add_le(af.rkey, buffer(24, 4))
  tree:add_le(af.stride, buffer(28, 4))
  if buffer(4, 2):le_uint() ~= 2 then tree:add_proto_expert_info(ae.version) end
  local count = buffer(6, 1):uint()
  if count < 1 or count > ANNOUNCEMENT_EVENTS then tree:add_proto_expert_info(ae.count) end
  return count
end

local function dissect_announcement(buffer, pinfo, root)
  local opcode = opcode_field()
  if not opcode or not ENDS[opcode.value] then return 0 end
  local len = message_len(buffer, opcode)
  if math.min(len, buffer:len()) < ANNOUNCEMENT_LEN or buffer(0, 4):string() ~= "PSTA" then return 0 end
  last_frame = pinfo.number
  pinfo.cols.protocol = "Announcement"
  local tree = root:add(announcement, buffer())
  local count = announced_fields(tree, buffer)
  local needed = ANNOUNCEMENT_LEN + ENTRY_LEN * count
  if len ~= needed then
    tree:add_proto_expert_info(ae.length, ("%d fragments need %d bytes, the message has %d"):format(count, needed, len))
  end
  for at = ANNOUNCEMENT_LEN, math.min(needed, len, buffer:len()) - ENTRY_LEN, ENTRY_LEN do
    local item = entry_fields(tree, buffer(at, ENTRY_LEN))
    if buffer(at + 1, 4):le_uint() + 2 * ENTRY_LEN > buffer(28, 4):le_uint() then item:add_proto_expert_info(ae.overlap) end
  end
  local text = ("%d fragments from event %s on"):format(count, tostring(buffer(8, 8):le_uint64()))
  tree:append_text(", " .. text)
  pinfo.cols.info:append(" announcement: " .. text)
  return buffer:len()
end

-- What a message is, and what follows a fragment.
local function dissect_message(buffer, pinfo, tree)
  if dissect_fragment(buffer, pinfo, tree) == 0 then return dissect_announcement(buffer, pinfo, tree) end
  if buffer:len() >= HEADER_LEN then dissect_successors(buffer, tree) end
  return buffer:len()
end

fragment:register_heuristic("infiniband.payload", function(buffer, pinfo, tree)
  return dissect_message(buffer, pinfo, tree) > 0
end)

---------------------------------------------------------------------------------------------------
-- A packet that was cut when it was captured (`tcpdump -s`, `capture.snap`). InfiniBand's own dissector looks for the
-- ICRC at the packet's end, and stops in front of the payload where there is none: its headers are read here.
local cut = Proto("penstock.cut", "RoCEv2 Packet, Captured in Part")

function cut.dissector(buffer, pinfo, root)
  local opcode, bth, udp_length = opcode_field(), bth_field(), udp_length_field()
  if not opcode or not bth or not udp_length or opcode.value == CNP_OPCODE then return end
  if bth.offset + udp_length.value - 8 <= buffer:len() or last_frame == pinfo.number then return end
  pinfo.cols.info:clear_fence()
  pinfo.cols.info = ("%s (%d of %d bytes captured)"):format(opcode.display, buffer:len(), buffer:reported_len())
  local begin = BEGINS[opcode.value] and bth.offset + BTH_LEN + BEGINS[opcode.value]
  if begin and begin < buffer:len() then
    local payload = buffer(begin):tvb()
    dissect_message(payload, pinfo, root)
  end
end
register_postdissector(cut)
