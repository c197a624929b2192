// Growing, randomised delay between connection attempts: clients of a restarted daemon do not all reconnect at once.

export interface BackoffOptions {
  /** First delay. Default 200. */
  first_ms?: number;
  /** Longest delay. Default 10,000. */
  last_ms?: number;
  /** Returns a number in [0, 1). Default `Math.random`. */
  random?: () => number;
}

export class Backoff {
  private delay_ms: number;
  private readonly first_ms: number;
  private readonly last_ms: number;
  private readonly random: () => number;

  constructor(options: BackoffOptions = {}) {
    this.first_ms = options.first_ms ?? 200;
    this.last_ms = options.last_ms ?? 10_000;
    this.random = options.random ?? Math.random;
    this.delay_ms = this.first_ms;
  }

  /** Returns the next delay in milliseconds, half of it random, at most `last_ms`. */
  next(): number {
    const delay = this.delay_ms * (0.5 + 0.5 * this.random());
    this.delay_ms = Math.min(this.delay_ms * 2, this.last_ms);
    return delay;
  }

  reset(): void {
    this.delay_ms = this.first_ms;
  }
}
