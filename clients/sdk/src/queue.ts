// Frames that wait for `for await`. Never refuses one: whoever fills it is told when it is full, and when there is room again.

export interface QueueOptions<T> {
  high: number; // full at this many, drained at half of it
  full(): void;
  drained(): void;
  /** The consumer came back for the next one: this one is handled. */
  taken(one: T): void;
}

export class Queue<T> {
  private waiting: T[] = [];
  private first = 0;
  private inHand: { one: T } | undefined;
  private asked: Array<(result: IteratorResult<T>) => void> = [];
  private blocked = false;
  private over = false;

  constructor(private readonly options: QueueOptions<T>) {}

  get size(): number {
    return this.waiting.length - this.first;
  }

  push(one: T): void {
    const asked = this.asked.shift();
    if (asked) {
      this.inHand = { one };
      asked({ done: false, value: one });
      return;
    }
    this.waiting.push(one);
    if (!this.blocked && this.size >= this.options.high) {
      this.blocked = true;
      this.options.full();
    }
  }

  next(): Promise<IteratorResult<T>> {
    if (this.inHand) {
      this.options.taken(this.inHand.one);
      this.inHand = undefined;
    }
    if (this.size === 0) {
      if (this.over) return Promise.resolve({ done: true, value: undefined });
      return new Promise((resolve) => this.asked.push(resolve));
    }
    const one = this.waiting[this.first++]!;
    if (this.first > 1024 && this.first * 2 > this.waiting.length) {
      this.waiting = this.waiting.slice(this.first);
      this.first = 0;
    }
    this.inHand = { one };
    if (this.blocked && this.size <= this.options.high / 2) {
      this.blocked = false;
      this.options.drained();
    }
    return Promise.resolve({ done: false, value: one });
  }

  /** What waits can still be taken; then iteration is over. */
  end(): void {
    this.over = true;
    for (const asked of this.asked.splice(0)) asked({ done: true, value: undefined });
  }
}
