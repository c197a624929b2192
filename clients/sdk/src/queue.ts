// Buffer between the connection and `for await`. It accepts frames above its capacity: `on_full` stops the producer, `on_drained` restarts it.

export interface FrameQueueOptions<T> {
  /** `on_full` is called at this length, `on_drained` at half of it. */
  capacity: number;
  on_full(): void;
  on_drained(): void;
  /** The consumer asked for the next item: it has finished with this one. */
  on_handled(item: T): void;
}

export class FrameQueue<T> {
  private items: T[] = [];
  private first = 0;
  private in_use: { item: T } | undefined; // returned to the consumer last
  private waiting: Array<(result: IteratorResult<T>) => void> = [];
  private full = false; // until `on_drained`
  private closed = false;

  constructor(private readonly options: FrameQueueOptions<T>) {}

  get size(): number {
    return this.items.length - this.first;
  }

  get isFull(): boolean {
    return this.full;
  }

  push(item: T): void {
    const consumer = this.waiting.shift();
    if (consumer) {
      this.in_use = { item };
      consumer({ done: false, value: item });
      return;
    }
    this.items.push(item);
    if (!this.full && this.size >= this.options.capacity) {
      this.full = true;
      this.options.on_full();
    }
  }

  next(): Promise<IteratorResult<T>> {
    if (this.in_use) {
      this.options.on_handled(this.in_use.item);
      this.in_use = undefined;
    }
    if (this.size === 0) {
      if (this.closed) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => this.waiting.push(resolve));
    }
    const item = this.items[this.first++]!;
    if (this.first > 1024 && this.first * 2 > this.items.length) {
      this.items = this.items.slice(this.first);
      this.first = 0;
    }
    this.in_use = { item };
    if (this.full && this.size <= this.options.capacity / 2) {
      this.full = false;
      this.options.on_drained();
    }
    return Promise.resolve({ done: false, value: item });
  }

  /** Iteration ends after the items that are left. */
  close(): void {
    this.closed = true;
    for (const consumer of this.waiting.splice(0)) consumer({ done: true, value: undefined });
  }
}
