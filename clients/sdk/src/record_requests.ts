// Pending `read` requests. They survive a reconnect: unanswered ones are sent again.
import type { Cursor, ErrorFrame, JsonValue, Read, RecordFrame, Stream } from "./protocol.js";

export class ReadError extends Error {
  /** `code`: of the daemon's `error` frame; `busy` for too many requests at once; `closed`. */
  constructor(readonly code: string, message: string) {
    super(message);
    this.name = "ReadError";
  }
}

interface PendingRequest {
  message: Read;
  parts: string[];
  tries: number;
  resolve(record: JsonValue): void;
  reject(error: Error): void;
}

const tries_max = 6; // while the daemon answers `busy`
const busy_delay_ms = 200;
const requests_max = 64;

export class RecordRequests {
  private readonly pending = new Map<string, PendingRequest>();
  private last_id = 0;
  private is_connected = false;

  constructor(private readonly send: (message: Read) => void) {}

  request(stream: Stream, cursor: Cursor): Promise<JsonValue> {
    if (this.pending.size >= requests_max) return Promise.reject(new ReadError("busy", `more than ${requests_max} records requested at once`));
    return new Promise((resolve, reject) => {
      const id = `r${++this.last_id}`;
      const message: Read = { type: "read", id, stream, cursor };
      this.pending.set(id, { message, parts: [], tries: 1, resolve, reject });
      if (this.is_connected) this.send(message);
    });
  }

  receive(frame: RecordFrame): void {
    const request = this.pending.get(frame.id);
    if (!request) return;
    request.parts[frame.part - 1] = frame.data;
    if (frame.part < frame.parts) return;
    this.pending.delete(frame.id);
    const text = request.parts.join("");
    request.resolve(frame.json === false ? text : (JSON.parse(text) as JsonValue));
  }

  /** Returns false if the error answers none of these requests. */
  fail(frame: ErrorFrame): boolean {
    const request = frame.id === undefined ? undefined : this.pending.get(frame.id);
    if (!request) return false;
    // An offline host may stay offline for long: the caller decides whether to retry.
    if (frame.retry && frame.code !== "host_offline" && request.tries < tries_max) {
      setTimeout(() => this.is_connected && this.pending.has(request.message.id) && this.send(request.message), busy_delay_ms * request.tries++);
      return true;
    }
    this.pending.delete(request.message.id);
    request.reject(new ReadError(frame.code, frame.message));
    return true;
  }

  disconnected(): void {
    this.is_connected = false;
  }

  connected(): void {
    this.is_connected = true;
    for (const request of this.pending.values()) {
      request.parts = [];
      this.send(request.message);
    }
  }

  close(reason: string): void {
    for (const request of this.pending.values()) request.reject(new ReadError("closed", reason));
    this.pending.clear();
  }
}
