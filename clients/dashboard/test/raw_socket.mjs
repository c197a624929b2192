// WebSockets by hand: a client that sends any hello with any Origin, and another server on the daemon's port that records what it receives.
import { createHash, randomBytes } from "node:crypto";
import { createServer, request } from "node:http";

const text_opcode = 1, close_opcode = 8;
const accept_key = (key) => createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

/** A frame of at most 64 KiB. */
function encode(text, mask) {
  const payload = Buffer.from(text);
  const head = payload.length < 126 ? Buffer.from([0x80 | text_opcode, payload.length]) : Buffer.from([0x80 | text_opcode, 126, payload.length >> 8, payload.length & 255]);
  if (!mask) return Buffer.concat([head, payload]);
  head[1] |= 0x80;
  return Buffer.concat([head, Buffer.alloc(4), payload]); // the mask is zero
}

/** The first frame, or undefined if it is not complete. */
function decode(bytes) {
  if (bytes.length < 2) return undefined;
  const masked = (bytes[1] & 0x80) !== 0;
  const short = bytes[1] & 0x7f;
  const at = short === 126 ? 4 : 2;
  if (short === 127) throw new Error("a frame of more than 64 KiB");
  if (bytes.length < at) return undefined;
  const length = short === 126 ? bytes.readUInt16BE(2) : short;
  const begin = at + (masked ? 4 : 0);
  if (bytes.length < begin + length) return undefined;
  const payload = Buffer.from(bytes.subarray(begin, begin + length));
  if (masked) payload.forEach((byte, n) => (payload[n] = byte ^ bytes[at + (n % 4)]));
  return { opcode: bytes[0] & 15, payload };
}

/** Sends a hello; returns `welcome`, or the close code. */
export function tryHello(port, hello, origin = `http://127.0.0.1:${port}`) {
  return new Promise((resolve, reject) => {
    const headers = { Host: `127.0.0.1:${port}`, Origin: origin, Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": randomBytes(16).toString("base64"), "Sec-WebSocket-Protocol": "earshot.v1" };
    const sent = request({ host: "127.0.0.1", port, path: "/v1/ws", headers });
    sent.on("error", reject);
    sent.on("response", ({ statusCode }) => resolve(statusCode));
    sent.on("upgrade", (_, socket, rest) => {
      let received = rest;
      const receive = () => {
        const frame = decode(received);
        if (!frame) return;
        socket.destroy();
        resolve(frame.opcode === close_opcode ? frame.payload.readUInt16BE(0) : JSON.parse(frame.payload.toString()).type);
      };
      socket.on("error", reject);
      socket.on("data", (bytes) => {
        received = Buffer.concat([received, bytes]);
        receive();
      });
      socket.write(encode(hello, true));
      receive();
    });
    sent.end();
  });
}

/** Sends an HTTP request with these headers; returns status and body. */
export function send(port, method, path, headers = {}, body = "") {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, method, headers: { Host: `127.0.0.1:${port}`, ...headers } }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** A server that records everything. `answer(request)` returns `{ status, headers, body }` or a promise of it; WebSockets are accepted and never answered. */
export async function recordingServer(port, answer) {
  const requests = []; // { method, url, headers, body }
  const messages = []; // of WebSockets
  const sockets = new Set();
  const server = createServer((incoming, response) => {
    let body = "";
    incoming.on("data", (chunk) => (body += chunk));
    incoming.on("end", async () => {
      const { method, url, headers } = incoming;
      requests.push({ method, url, headers, body });
      const { status, headers: sent = {}, body: text = "" } = await answer({ method, url, headers, body });
      response.writeHead(status, sent).end(text);
    });
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.on("upgrade", ({ headers }, socket, rest) => {
    let received = rest;
    socket.on("data", (bytes) => {
      received = Buffer.concat([received, bytes]);
      const frame = decode(received);
      if (frame?.opcode === text_opcode) messages.push(frame.payload.toString());
    });
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept_key(headers["sec-websocket-key"])}\r\nSec-WebSocket-Protocol: earshot.v1\r\n\r\n`);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  const close = () => new Promise((resolve) => {
    server.close(resolve);
    for (const socket of sockets) socket.destroy();
  });
  return { port: server.address().port, requests, messages, close };
}
