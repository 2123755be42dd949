// How fast a page asks for samples: Jupyter's server drops what comes from a kernel faster than its limit, one million bytes in a second.

export class Pace {
  private askedAtS = 0;

  /** A page may ask for `burst` bytes at once, and for `perSecond` in the long run. */
  constructor(
    private readonly perSecond: number,
    private readonly burst: number,
    private left = burst,
  ) {}

  /** Whether so many bytes may be asked for now; then they count as asked for. */
  take(bytes: number, nowS: number): boolean {
    this.left = Math.min(this.burst, this.left + Math.max(0, nowS - this.askedAtS) * this.perSecond);
    this.askedAtS = nowS;
    if (this.left < bytes) return false;
    this.left -= bytes;
    return true;
  }
}
