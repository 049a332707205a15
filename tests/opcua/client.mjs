// SPDX-License-Identifier: Apache-2.0
// A client of OPC UA by node-opcua, driven line by line: a JSON question on standard input, a JSON answer on standard
// output. `node client.mjs opc.tcp://127.0.0.1:4840/penstock/`

import { createInterface } from "node:readline";
import {
  AttributeIds,
  BrowseDirection,
  DataType,
  MessageSecurityMode,
  OPCUAClient,
  SecurityPolicy,
  TimestampsToReturn,
  Variant,
  constructEventFilter,
} from "node-opcua-client";

const client = OPCUAClient.create({
  applicationName: "penstock-test",
  connectionStrategy: { maxRetry: 20, initialDelay: 200, maxDelay: 1000 },
  endpointMustExist: false,
  securityMode: MessageSecurityMode.None,
  securityPolicy: SecurityPolicy.None,
});
await client.connect(process.argv[2]);
const session = await client.createSession();
const subscription = await session.createSubscription2({
  maxNotificationsPerPublish: 1000,
  publishingEnabled: true,
  requestedLifetimeCount: 1000,
  requestedMaxKeepAliveCount: 10,
  requestedPublishingInterval: 50,
});
const seen = { values: [], events: [] };

function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (value === undefined) return null;
  // node-opcua has a UInt64 as two halves.
  if (Array.isArray(value) && value.length === 2 && value.every(Number.isInteger)) return value[0] * 2 ** 32 + value[1];
  return value && typeof value === "object" ? JSON.parse(JSON.stringify(value)) : value;
}

const told = (data) => ({
  value: plain(data.value?.value),
  type: data.value ? DataType[data.value.dataType] : null,
  status: data.statusCode.name,
});

const questions = {
  async read({ node, attribute = "Value" }) {
    return told(await session.read({ nodeId: node, attributeId: AttributeIds[attribute] }));
  },
  async write({ node, type, value, attribute = "Value" }) {
    const code = await session.write({
      attributeId: AttributeIds[attribute],
      nodeId: node,
      value: { value: new Variant({ dataType: DataType[type], value }) },
    });
    return { status: code.name };
  },
  async browse({ node }) {
    const found = await session.browse({ browseDirection: BrowseDirection.Forward, nodeId: node, resultMask: 63 });
    return found.references.map((reference) => ({
      class: reference.nodeClass,
      name: reference.browseName.name,
      node: reference.nodeId.toString(),
    }));
  },
  async monitor({ node }) {
    const item = await subscription.monitor(
      { attributeId: AttributeIds.Value, nodeId: node },
      { discardOldest: true, queueSize: 100, samplingInterval: 0 },
      TimestampsToReturn.Both,
    );
    item.on("changed", (data) => seen.values.push(told(data)));
    return { status: item.statusCode.name };
  },
  async events({ node }) {
    const item = await subscription.monitor(
      { attributeId: AttributeIds.EventNotifier, nodeId: node },
      { discardOldest: true, filter: constructEventFilter(["SourceName", "Message", "Severity"]), queueSize: 100 },
      TimestampsToReturn.Both,
    );
    item.on("changed", ([source, message, severity]) =>
      seen.events.push({ message: message.value.text, severity: severity.value, source: source.value }),
    );
    return { status: item.statusCode.name };
  },
  async seen() {
    return seen;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { ask, ...question } = JSON.parse(line);
  let answer;
  try {
    answer = await questions[ask](question);
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await session.close();
await client.disconnect();
