// Fault 87: the token is sent only to a process that has proved that it has the token.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Earshot, local, nodeSocket, stateDirectory, type ConnectionState } from "../src/node/index.js";
import { until } from "./harness.js";

const token = "5e".repeat(32);
const ok = (body: string, more = "") => `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const proof = (nonce: string, address: string, secret = token) => createHmac("sha256", secret).update(nonce + address).digest("hex");

/** A program that listens on the daemon's port, and the bytes that it received. `answer`: to the request for the proof. */
async function listener(host: string, answer: (nonce: string, address: string, socket: Socket) => string) {
  const received = { text: "", connections: 0, proofs: 0, first: "" }; // first: on the first connection
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    const is_first = received.connections++ === 0;
    open.add(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      received.text += bytes.toString();
      if (is_first) received.first += bytes.toString();
      const nonce = /^GET \/v1\/proof\?nonce=([0-9a-f]{32}) HTTP/.exec(bytes.toString())?.[1];
      if (nonce) received.proofs++;
      socket.write(nonce ? answer(nonce, address, socket) : "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    });
  }).listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return { received, port, url: `ws://${address}/v1/ws` };
}

function connect(url: string, given: string | (() => string) = token) {
  const states: ConnectionState[] = [];
  const client = new Earshot({ token: given, connect: (bearer) => nodeSocket({ url, token: bearer }), backoff: { first_ms: 1, last_ms: 2 } });
  const subscription = client.subscribe({}, { frame() {}, state: (state) => states.push(state) });
  after(() => client.close());
  const retried = (part: string) => until(part, () => states.some((state) => state.state === "retrying" && state.reason.includes(part)));
  return { client, subscription, states, retried };
}

test("a listener without the token never receives it: the error is reported", async () => {
  const answers: Array<[string, (nonce: string, address: string) => string]> = [
    ["(HTTP 404)", () => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"],
    ["(HTTP 200)", () => ok("0".repeat(63))],
    ["(HTTP 200)", () => ok("f".repeat(65))],
    ["(HTTP 200)", (nonce, address) => ok(proof(nonce, address).toUpperCase())],
    ["no proof", () => ok("0".repeat(100_000))],
    ["Parse Error", () => "SSH-2.0-OpenSSH_9.2\r\n"],
  ];
  for (const [reason, answer] of answers) {
    const { received, url } = await listener("127.0.0.1", answer);
    const { client, retried } = connect(url);
    await retried(reason);
    await until("a second attempt", () => received.connections >= 2);
    client.close();
    assert.ok(!received.text.includes(token) && !received.text.includes("Authorization"), received.text);
  }
});

test("a proof made with another token, for another address or another nonce is refused until retry()", async () => {
  const answers: Array<(nonce: string, address: string) => string> = [
    (nonce, address) => ok(proof(nonce, address, "00".repeat(32))),
    (nonce) => ok(proof(nonce, "127.0.0.1:1")), // passed on to the daemon on its port
    (_, address) => ok(proof("0".repeat(32), address)),
  ];
  for (const answer of answers) {
    const { received, url } = await listener("127.0.0.1", answer);
    const { subscription, client } = connect(url);
    await until("the rejection", () => subscription.state.state === "unauthorized");
    assert.match((subscription.state as { reason: string }).reason, /did not prove that it has this token/);
    assert.equal(received.proofs, 1); // the token was read again, and is the same
    subscription.retry();
    await until("another proof", () => received.proofs >= 2);
    client.close();
    assert.ok(!received.text.includes(token));
  }
});

test("after its proof the daemon receives the token, on the same connection; also over IPv6", async () => {
  for (const host of ["127.0.0.1", "::1"]) {
    const { received, url } = await listener(host, (nonce, address) => ok(proof(nonce, address)));
    const { retried, client } = connect(url);
    await retried("HTTP 503");
    client.close();
    const requests = received.first.split("\r\n\r\n");
    assert.match(requests[0]!, /^GET \/v1\/proof\?nonce=/);
    assert.match(requests[1]!, new RegExp(`^GET /v1/ws(?:.|\\r\\n)*Authorization: Bearer ${token}`));
  }
});

test("a name is resolved once: the proof is for the numeric address", async () => {
  const { received, port } = await listener("127.0.0.1", (nonce, address) => ok(proof(nonce, address)));
  const { retried, client } = connect(`ws://localhost:${port}/v1/ws`);
  await retried("HTTP 503");
  client.close();
  assert.ok(received.text.includes(`Host: localhost:${port}`));
});

test("a connection that ends after the proof is not replaced by another one", async () => {
  const { received, url } = await listener("127.0.0.1", (nonce, address, socket) => {
    setImmediate(() => socket.end());
    return ok(proof(nonce, address), "Connection: close\r\n");
  });
  const { retried, client } = connect(url);
  await retried("closed the connection after its proof");
  client.close();
  assert.ok(!received.text.includes(token));
});

test("a client that is closed while it waits for the proof ends the connection", async () => {
  let ended = false;
  const { received, url } = await listener("127.0.0.1", (_nonce, _address, socket) => {
    socket.on("close", () => (ended = true));
    return "HTTP/1.1 200 OK\r\n"; // never finished
  });
  const { client, subscription } = connect(url);
  await until("the request", () => received.proofs === 1);
  client.close();
  await until("the end of the connection", () => ended);
  assert.equal(subscription.state.state, "closed");
});

test("without a token there is no proof, and no token is sent", async () => {
  const { received, url } = await listener("127.0.0.1", () => "");
  const client = local({ state: "/nonexistent", url, backoff: { first_ms: 1, last_ms: 2 } });
  const states: ConnectionState[] = [];
  client.subscribe({}, { frame() {}, state: (state) => states.push(state) });
  await until("a retry", () => states.some((state) => state.state === "retrying"));
  client.close();
  assert.ok(received.text.startsWith("GET /v1/ws") && !received.text.includes("Authorization"));
});

test("fault 157: an address whose daemon has ended is not used; it is as long as its process runs", async () => {
  const state = mkdtempSync(join(tmpdir(), "earshot-state-"));
  after(() => rmSync(state, { recursive: true }));
  const { received, url } = await listener("127.0.0.1", () => "");
  const ended = spawnSync(process.execPath, ["--version"]).pid;
  writeFileSync(join(state, "address"), `${url}\n`);
  writeFileSync(join(state, "lock"), `${ended}\n`);
  const states: ConnectionState[] = [];
  const client = local({ state, backoff: { first_ms: 1, last_ms: 2 } });
  after(() => client.close());
  client.subscribe({}, { frame() {}, state: (next) => states.push(next) });
  await until("the reason", () => states.some((next) => next.state === "retrying" && next.reason.includes("has ended: start earshotd")));
  assert.equal(received.connections, 0);
  writeFileSync(join(state, "lock"), `${process.pid}\n`);
  await until("a connection", () => received.connections > 0);
});

test("fault 157: a relative XDG_STATE_HOME is ignored", () => {
  const usual = join(homedir(), ".local/state/earshot");
  assert.equal(stateDirectory({ XDG_STATE_HOME: "state" }), usual);
  assert.equal(stateDirectory({ XDG_STATE_HOME: "" }), usual);
  assert.equal(stateDirectory({}), usual);
  assert.equal(stateDirectory({ XDG_STATE_HOME: "/var/state" }), "/var/state/earshot");
});

test("the browser's entry point refuses to send a token from Node", () => {
  assert.throws(() => new Earshot({ url: "ws://127.0.0.1:7717/v1/ws", token }), /in Node, use local\(\)/);
});
