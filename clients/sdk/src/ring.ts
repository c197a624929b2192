// The newest of many: bounded, and it says how many went.

export class Ring<T> {
  private items: T[] = [];
  private start = 0;
  /** How many are not kept any more. */
  dropped = 0;

  constructor(readonly limit: number) {}

  get length(): number {
    return this.items.length - this.start;
  }

  push(one: T): void {
    this.items.push(one);
    if (this.length > this.limit) {
      this.start++;
      this.dropped++;
    }
    if (this.start > this.limit) this.trim(); // what went is held for no longer than as much again has come
  }

  private trim(): void {
    this.items = this.items.slice(this.start);
    this.start = 0;
  }

  /** All that are kept, the oldest first: a copy. */
  list(): T[] {
    return this.items.slice(this.start);
  }

  at(index: number): T | undefined {
    return this.items.at(index < 0 ? (index < -this.length ? this.items.length : index) : this.start + index);
  }

  /** Leaves out what does not fit. */
  keep(fits: (one: T) => boolean): void {
    this.items = this.items.slice(this.start).filter(fits);
    this.start = 0;
  }
}
