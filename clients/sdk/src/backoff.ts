// A growing, random pause between tries, so that a thousand clients do not come back at one moment.

export interface BackoffOptions {
  first_ms?: number; // 200
  last_ms?: number; // 10,000
  random?: () => number; // Math.random
}

export class Backoff {
  private wait: number;
  private readonly first: number;
  private readonly last: number;
  private readonly random: () => number;

  constructor(options: BackoffOptions = {}) {
    this.first = options.first_ms ?? 200;
    this.last = options.last_ms ?? 10_000;
    this.random = options.random ?? Math.random;
    this.wait = this.first;
  }

  /** The next pause: half of it is chance. Never more than `last_ms`. */
  next(): number {
    const pause = this.wait * (0.5 + 0.5 * this.random());
    this.wait = Math.min(this.wait * 2, this.last);
    return pause;
  }

  reset(): void {
    this.wait = this.first;
  }
}
