// Bounded collections for the session store.

/** Keeps the newest `limit` items and counts the others. */
export class RingBuffer<T> {
  private items: T[] = [];
  private start = 0;
  /** Number of items that were dropped. */
  dropped = 0;

  constructor(readonly limit: number) {}

  get length(): number {
    return this.items.length - this.start;
  }

  push(item: T): void {
    this.items.push(item);
    if (this.length > this.limit) {
      this.start++;
      this.dropped++;
    }
    if (this.start > this.limit) this.compact(); // amortised: at most `limit` dropped items are still referenced
  }

  private compact(): void {
    this.items = this.items.slice(this.start);
    this.start = 0;
  }

  /** Returns a copy, oldest first. */
  list(): T[] {
    return this.items.slice(this.start);
  }

  at(index: number): T | undefined {
    return this.items.at(index < 0 ? (index < -this.length ? this.items.length : index) : this.start + index);
  }

  /** Removes the items that do not match. */
  filter(matches: (item: T) => boolean): void {
    this.items = this.items.slice(this.start).filter(matches);
    this.start = 0;
  }
}

/** Time series of a number in bounded space. When it is full, every second sample is removed and the sampling interval doubles. */
export class SampledSeries {
  private kept: number[] = [];
  private interval = 1; // one of `interval` pushed values is kept
  private skipped = 0;
  private newest: number | undefined;

  constructor(readonly limit: number) {}

  get last(): number | undefined {
    return this.newest;
  }

  push(value: number): void {
    this.newest = value;
    if (++this.skipped < this.interval) return;
    this.skipped = 0;
    this.kept.push(value);
    if (this.kept.length < this.limit) return;
    this.kept = this.kept.filter((_, index) => index % 2 === 1);
    this.interval *= 2;
  }

  /** Returns at most `limit` samples, oldest first. The last one is always the newest value. */
  list(): number[] {
    return this.skipped > 0 && this.newest !== undefined ? [...this.kept, this.newest] : [...this.kept];
  }

  clear(): void {
    this.kept = [];
    this.interval = 1;
    this.skipped = 0;
    this.newest = undefined;
  }
}
