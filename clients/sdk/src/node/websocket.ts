// A WebSocket client for Node, which has none before version 22: over TCP, TLS or a Unix socket, with the token in the request, and
// with a pause that the daemon feels. RFC 6455, no extensions: the daemon does not compress.
import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { subprotocol, type Connect, type Socket, type SocketHandlers } from "../socket.js";

export interface NodeSocketOptions {
  url: string;
  /** Sent as `Authorization: Bearer`; without one `hello` must prove who this is. */
  token?: string;
  /** A Unix socket to connect to, instead of the URL's host. */
  socketPath?: string;
  headers?: Record<string, string>;
}

const message_bytes_max = 64 << 20; // the daemon's frames are far smaller: beyond, close 1009
const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const opcode = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

export function nodeSocket(options: NodeSocketOptions): Connect {
  return (handlers) => new NodeSocket(options, handlers);
}

class NodeSocket implements Socket {
  readonly authorised: boolean;
  private stream: Duplex | undefined;
  private ended = false;
  private paused = false;
  private chunks: Buffer[] = [];
  private held = 0; // bytes in chunks
  private parts: Buffer[] = []; // of a message in fragments
  private partBytes = 0;
  private abort: () => void = () => {};

  constructor(options: NodeSocketOptions, private readonly handlers: SocketHandlers) {
    this.authorised = Boolean(options.token) || options.socketPath !== undefined;
    try {
      this.open(options);
    } catch (error) {
      setImmediate(() => this.end(1006, String(error)));
    }
  }

  private open(options: NodeSocketOptions): void {
    const url = new URL(options.url);
    const key = randomBytes(16).toString("base64");
    const request = (url.protocol === "wss:" ? httpsRequest : httpRequest)({
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port || (url.protocol === "wss:" ? 443 : 80),
      path: url.pathname + url.search,
      ...(options.socketPath && { socketPath: options.socketPath }),
      headers: {
        Host: url.host, Connection: "Upgrade", Upgrade: "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Protocol": subprotocol, ...(options.token && { Authorization: `Bearer ${options.token}` }), ...options.headers,
      },
    });
    this.abort = () => request.destroy();
    request.on("error", (error) => this.end(1006, error.message));
    request.on("response", (answer) => {
      answer.resume();
      this.end(1006, `HTTP ${answer.statusCode}`, answer.statusCode);
      request.destroy();
    });
    request.on("upgrade", (answer, stream, head) => this.upgraded(answer, stream, head, key));
    request.end();
  }

  private upgraded(answer: IncomingMessage, stream: Duplex, head: Buffer, key: string): void {
    if (this.ended) return void stream.destroy();
    const accept = createHash("sha1").update(key + magic).digest("base64");
    if (answer.headers["sec-websocket-accept"] !== accept || answer.headers["sec-websocket-protocol"] !== subprotocol) {
      stream.destroy();
      return this.end(1002, "what answered is no earshot daemon");
    }
    this.stream = stream;
    stream.on("error", () => {}); // a close follows
    stream.on("close", () => this.end(1006, ""));
    stream.on("end", () => stream.end());
    stream.on("data", (chunk: Buffer) => this.take(chunk));
    this.handlers.opened();
    if (head.length > 0) this.take(head);
    if (this.paused) stream.pause();
  }

  send(text: string): void {
    this.write(opcode.text, Buffer.from(text));
  }

  close(): void {
    if (this.ended) return;
    this.ended = true; // nothing is told any more
    if (!this.stream) return this.abort();
    this.write(opcode.close, Buffer.from([0x03, 0xe8]));
    this.stream.end();
    this.stream.resume(); // to its end
    setTimeout(() => this.stream?.destroy(), 2000).unref();
  }

  pause(): void {
    this.paused = true;
    this.stream?.pause();
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

  private write(kind: number, payload: Buffer): void {
    if (!this.stream?.writable) return;
    const size = payload.length;
    const head = Buffer.alloc(size < 126 ? 6 : size < 65536 ? 8 : 14);
    head[0] = 0x80 | kind;
    if (size < 126) head[1] = 0x80 | size;
    else if (size < 65536) (head[1] = 0xfe), head.writeUInt16BE(size, 2);
    else (head[1] = 0xff), head.writeBigUInt64BE(BigInt(size), 2);
    const mask = randomBytes(4);
    mask.copy(head, head.length - 4);
    const masked = Buffer.from(payload);
    for (let n = 0; n < size; n++) masked[n]! ^= mask[n & 3]!;
    this.stream.write(Buffer.concat([head, masked]));
  }

  private take(chunk: Buffer): void {
    if (this.ended) return;
    this.chunks.push(chunk);
    this.held += chunk.length;
    this.parse();
  }

  /** What has come so far in one piece, at least this long; else nothing. */
  private front(size: number): Buffer | undefined {
    if (this.held < size) return undefined;
    if (this.chunks[0]!.length < size) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0];
  }

  private drop(size: number): void {
    this.held -= size;
    this.chunks[0] = this.chunks[0]!.subarray(size);
    if (this.chunks[0].length === 0) this.chunks.shift();
  }

  private parse(): void {
    while (!this.ended && !this.paused) {
      const short = this.front(2);
      if (!short) return;
      const masked = (short[1]! & 0x80) !== 0;
      const lengthByte = short[1]! & 0x7f;
      const headSize = lengthByte < 126 ? 2 : lengthByte === 126 ? 4 : 10;
      const head = this.front(headSize);
      if (!head) return;
      const size = lengthByte < 126 ? lengthByte : lengthByte === 126 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
      if (masked || (head[0]! & 0x70) !== 0) return this.refuse(1002, "not a frame that a server may send");
      if (size + this.partBytes > message_bytes_max) return this.refuse(1009, `a message of more than ${message_bytes_max} bytes`);
      const frame = this.front(headSize + size);
      if (!frame) return;
      const kind = frame[0]! & 0x0f;
      const final = (frame[0]! & 0x80) !== 0;
      const payload = frame.subarray(headSize, headSize + size);
      this.drop(headSize + size);
      this.frame(kind, final, payload);
    }
  }

  private frame(kind: number, final: boolean, payload: Buffer): void {
    switch (kind) {
      case opcode.ping: return this.write(opcode.pong, payload);
      case opcode.pong: return;
      case opcode.close: {
        this.write(opcode.close, payload.subarray(0, 2));
        return payload.length >= 2 ? this.end(payload.readUInt16BE(0), payload.subarray(2).toString()) : this.end(1005, "");
      }
      case opcode.text: case opcode.continuation: {
        if (final && this.parts.length === 0) return this.handlers.message(payload.toString());
        this.parts.push(payload);
        this.partBytes += payload.length;
        if (!final) return;
        const message = Buffer.concat(this.parts).toString();
        this.parts = [];
        this.partBytes = 0;
        return this.handlers.message(message);
      }
      default: return this.refuse(1002, `a frame of kind ${kind}`);
    }
  }

  private refuse(code: number, reason: string): void {
    this.end(code, reason);
  }
}
