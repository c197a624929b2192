// Requests for whole records that are not answered yet. They outlive a connection: what was not answered is asked again.
import type { Cursor, ErrorFrame, JsonValue, Read, RecordFrame, Stream } from "./protocol.js";

export class ReadError extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
    this.name = "ReadError";
  }
}

interface Waiting {
  message: Read;
  parts: string[];
  tries: number;
  resolve(record: JsonValue): void;
  reject(error: Error): void;
}

const tries_max = 6; // of a daemon that says `busy`
const busy_ms = 200;
const waiting_max = 64; // the daemon takes some at once: more are a mistake of the caller

export class Reads {
  private readonly waiting = new Map<string, Waiting>();
  private number = 0;
  private connected = false;

  constructor(private readonly send: (message: Read) => void) {}

  ask(stream: Stream, cursor: Cursor): Promise<JsonValue> {
    if (this.waiting.size >= waiting_max) return Promise.reject(new ReadError("busy", `${waiting_max} records are being read: wait for one`));
    return new Promise((resolve, reject) => {
      const id = `r${++this.number}`;
      const message: Read = { type: "read", id, stream, cursor };
      this.waiting.set(id, { message, parts: [], tries: 1, resolve, reject });
      if (this.connected) this.send(message);
    });
  }

  record(frame: RecordFrame): void {
    const one = this.waiting.get(frame.id);
    if (!one) return;
    one.parts[frame.part - 1] = frame.data;
    if (frame.part < frame.parts) return;
    this.waiting.delete(frame.id);
    const text = one.parts.join("");
    one.resolve(frame.json === false ? text : (JSON.parse(text) as JsonValue));
  }

  /** Was it an answer to one of these? */
  error(frame: ErrorFrame): boolean {
    const one = frame.id === undefined ? undefined : this.waiting.get(frame.id);
    if (!one) return false;
    // Of a host that is away there was patience enough: whoever asked is told, and may ask again.
    if (frame.retry && frame.code !== "host_offline" && one.tries < tries_max) {
      setTimeout(() => this.connected && this.waiting.has(one.message.id) && this.send(one.message), busy_ms * one.tries++);
      return true;
    }
    this.waiting.delete(one.message.id);
    one.reject(new ReadError(frame.code, frame.message));
    return true;
  }

  lost(): void {
    this.connected = false;
  }

  again(): void {
    this.connected = true;
    for (const one of this.waiting.values()) {
      one.parts = [];
      this.send(one.message);
    }
  }

  end(reason: string): void {
    for (const one of this.waiting.values()) one.reject(new ReadError("closed", reason));
    this.waiting.clear();
  }
}
