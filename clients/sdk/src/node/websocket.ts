// WebSocket client for Node (built in only since Node 22): TCP, TLS or Unix socket, token in the request, backpressure.
// RFC 6455 without extensions: the daemon does not compress.
import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { subprotocol, type Connect, type Socket, type SocketHandlers } from "../socket.js";
import { every_address, proveDaemon, singleConnection } from "./proof.js";

export interface NodeSocketOptions {
  url: string;
  /** Sent as `Authorization: Bearer`. Over unencrypted TCP the daemon must first prove that it has the same token. Without it, no token is ever sent. */
  token?: string;
  /** Path of a Unix socket, used instead of the URL's host. */
  socketPath?: string;
  headers?: Record<string, string>;
}

const message_bytes_max = 64 << 20; // until `welcome` states the daemon's limit
const close_ms_max = 2000; // for the daemon's close frame
const handshake_guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // RFC 6455, section 1.3
const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

export function nodeSocket(options: NodeSocketOptions): Connect {
  return (handlers) => new NodeSocket(options, handlers);
}

class NodeSocket implements Socket {
  readonly authorized = true; // `hello` is not used: it would send the token without a proof
  private stream: Duplex | undefined;
  private ended = false;
  private paused = false;
  private chunks: Buffer[] = [];
  private buffered_bytes = 0; // in `chunks`
  private fragments: Buffer[] = []; // of an incomplete message
  private fragment_bytes = 0;
  private message_bytes_max = message_bytes_max;
  private abort: () => void = () => {};

  constructor(options: NodeSocketOptions, private readonly handlers: SocketHandlers) {
    void this.open(options).catch((error: Error) => this.end(1006, error.message));
  }

  private async open(options: NodeSocketOptions): Promise<void> {
    await Promise.resolve(); // callbacks are never called from the constructor
    const url = new URL(options.url);
    const agent = options.token && url.protocol !== "wss:" && !options.socketPath ? singleConnection() : undefined;
    if (agent) {
      this.abort = () => agent.destroy();
      if (!(await proveDaemon(url, options.token!, agent))) {
        agent.destroy();
        return this.end(1006, `${url.host} did not prove that it has this token, which was not sent: the token is outdated, or another program listens on the port`, 401);
      }
      if (this.ended) return;
    }
    const key = randomBytes(16).toString("base64");
    const request = (url.protocol === "wss:" ? httpsRequest : httpRequest)({
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port || (url.protocol === "wss:" ? 443 : 80),
      path: url.pathname + url.search,
      ...every_address,
      ...(agent && { agent }),
      ...(options.socketPath && { socketPath: options.socketPath }),
      headers: {
        Host: url.host, Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": subprotocol, ...(options.token && { Authorization: `Bearer ${options.token}` }), ...options.headers,
      },
    });
    this.abort = () => request.destroy();
    request.on("error", (error) => this.end(1006, error.message));
    request.on("response", (response) => {
      response.resume();
      this.end(1006, `HTTP ${response.statusCode}`, response.statusCode);
      request.destroy();
    });
    request.on("upgrade", (response, stream, head) => this.upgraded(response, stream, head, key));
    request.end();
  }

  private upgraded(response: IncomingMessage, stream: Duplex, head: Buffer, key: string): void {
    if (this.ended) return void stream.destroy();
    const accept = createHash("sha1").update(key + handshake_guid).digest("base64");
    if (response.headers["sec-websocket-accept"] !== accept || response.headers["sec-websocket-protocol"] !== subprotocol) {
      stream.destroy();
      return this.end(1002, "the server is not an earshot daemon");
    }
    this.stream = stream;
    stream.on("error", () => {}); // followed by `close`
    stream.on("close", () => this.end(1006, ""));
    stream.on("end", () => stream.end());
    stream.on("data", (chunk: Buffer) => this.receive(chunk));
    this.handlers.opened();
    if (head.length > 0) this.receive(head);
    if (this.paused) stream.pause();
  }

  send(text: string): void {
    this.write(opcode.text, Buffer.from(text));
  }

  close(): void {
    if (this.ended) return;
    this.ended = true; // no more callbacks
    if (!this.stream) return this.abort();
    this.write(opcode.close, Buffer.from([0x03, 0xe8]));
    this.stream.end();
    this.stream.resume(); // read up to the close frame
    setTimeout(() => this.stream?.destroy(), close_ms_max).unref();
  }

  pause(): void {
    this.paused = true;
    this.stream?.pause();
  }

  limitFrames(bytes: number): void {
    if (bytes > 0) this.message_bytes_max = bytes;
  }

  resume(): void {
    this.paused = false;
    if (!this.stream) return;
    this.stream.resume();
    this.parse();
  }

  private end(code: number, reason: string, status?: number): void {
    if (this.ended) return;
    this.ended = true;
    this.stream?.destroy();
    this.handlers.closed(code, reason, status);
  }

  private write(code: number, payload: Buffer): void {
    if (!this.stream?.writable) return;
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 6 : size < 65536 ? 8 : 14);
    head[0] = 0x80 | code;
    if (size < 126) head[1] = 0x80 | size;
    else if (size < 65536) (head[1] = 0xfe), head.writeUInt16BE(size, 2);
    else (head[1] = 0xff), head.writeBigUInt64BE(BigInt(size), 2);
    const mask = randomBytes(4);
    mask.copy(head, head.length - 4);
    const masked = Buffer.from(payload);
    for (let n = 0; n < size; n++) masked[n]! ^= mask[n & 3]!;
    this.stream.write(Buffer.concat([head, masked]));
  }

  private receive(chunk: Buffer): void {
    if (this.ended) return;
    this.chunks.push(chunk);
    this.buffered_bytes += chunk.length;
    this.parse();
  }

  /** Returns the buffered bytes as one Buffer of at least `size` bytes, or `undefined` if fewer have arrived. */
  private peek(size: number): Buffer | undefined {
    if (this.buffered_bytes < size) return undefined;
    if (this.chunks[0]!.length < size) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0];
  }

  private consume(size: number): void {
    this.buffered_bytes -= size;
    this.chunks[0] = this.chunks[0]!.subarray(size);
    if (this.chunks[0].length === 0) this.chunks.shift();
  }

  private parse(): void {
    while (!this.ended && !this.paused) {
      const start = this.peek(2);
      if (!start) return;
      const masked = (start[1]! & 0x80) !== 0;
      const lengthByte = start[1]! & 0x7f;
      const headSize = lengthByte < 126 ? 2 : lengthByte === 126 ? 4 : 10;
      const head = this.peek(headSize);
      if (!head) return;
      const size = lengthByte < 126 ? lengthByte : lengthByte === 126 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
      if (masked || (head[0]! & 0x70) !== 0) return this.end(1002, "invalid frame: masked or with reserved bits");
      if (size + this.fragment_bytes > this.message_bytes_max) return this.end(1009, `message longer than ${this.message_bytes_max} bytes`);
      const frame = this.peek(headSize + size);
      if (!frame) return;
      const code = frame[0]! & 0x0f;
      const final = (frame[0]! & 0x80) !== 0;
      const payload = frame.subarray(headSize, headSize + size);
      this.consume(headSize + size);
      this.handleFrame(code, final, payload);
    }
  }

  private handleFrame(code: number, final: boolean, payload: Buffer): void {
    switch (code) {
      case opcode.ping: return this.write(opcode.pong, payload);
      case opcode.pong: return;
      case opcode.close: {
        this.write(opcode.close, payload.subarray(0, 2));
        return payload.length >= 2 ? this.end(payload.readUInt16BE(0), payload.subarray(2).toString()) : this.end(1005, "");
      }
      case opcode.text: case opcode.continuation: {
        if (final && this.fragments.length === 0) return this.handlers.message(payload.toString());
        this.fragments.push(payload);
        this.fragment_bytes += payload.length;
        if (!final) return;
        const message = Buffer.concat(this.fragments).toString();
        this.fragments = [];
        this.fragment_bytes = 0;
        return this.handlers.message(message);
      }
      default: return this.end(1002, `invalid frame: opcode ${code}`);
    }
  }
}
