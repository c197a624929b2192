// The course of a number, whole, in bounded space: when there are too many samples every second one goes, and later ones come half as often.

export class Samples {
  private kept: number[] = [];
  private stride = 1; // of so many that come one is kept
  private skipped = 0;
  private newest: number | undefined;

  constructor(readonly limit: number) {}

  get last(): number | undefined {
    return this.newest;
  }

  push(value: number): void {
    this.newest = value;
    if (++this.skipped < this.stride) return;
    this.skipped = 0;
    this.kept.push(value);
    if (this.kept.length < this.limit) return;
    this.kept = this.kept.filter((_, n) => n % 2 === 1);
    this.stride *= 2;
  }

  /** The oldest first; the newest is always the last one. At most `limit`. */
  list(): number[] {
    return this.skipped > 0 && this.newest !== undefined ? [...this.kept, this.newest] : [...this.kept];
  }

  clear(): void {
    this.kept = [];
    this.stride = 1;
    this.skipped = 0;
    this.newest = undefined;
  }
}
