// The samples of a sound that are here already, by place: chunks come in any order, late, twice, or not at all.

/** Samples of one channel that a block has; blocks begin at multiples of it. */
export const BLOCK = 16384;
/** What a page keeps of one sound, in samples of all channels; what was used longest ago goes first. */
const KEPT = 32 * 1024 * 1024;

interface Block {
  readonly channels: readonly Float32Array<ArrayBuffer>[];
  /** Samples from the block's beginning that are here, without a hole. */
  filled: number;
}

export class Chunks {
  private readonly blocks = new Map<number, Block>();

  constructor(
    readonly channels: number,
    private readonly kept = KEPT,
  ) {}

  /** Takes a chunk whose first sample is number `at`, each channel after the other. What has no beginning in its block is dropped. */
  add(at: number, samples: Float32Array): void {
    const count = Math.floor(samples.length / this.channels);
    for (let done = 0; done < count; ) {
      const number = Math.floor((at + done) / BLOCK);
      const from = at + done - number * BLOCK;
      const taken = Math.min(BLOCK - from, count - done);
      const block = this.use(number);
      if (from <= block.filled && from + taken > block.filled) {
        block.channels.forEach((channel, i) => channel.set(samples.subarray(i * count + done, i * count + done + taken), from));
        block.filled = from + taken;
      }
      done += taken;
    }
    while (this.blocks.size > 1 && this.blocks.size * BLOCK * this.channels > this.kept) {
      const [oldest = 0] = this.blocks.keys();
      this.blocks.delete(oldest);
    }
  }

  /** How many samples there are from one on without a hole, `max` at most. */
  available(from: number, max: number): number {
    let at = from;
    while (at - from < max) {
      const number = Math.floor(at / BLOCK);
      const filled = number * BLOCK + (this.blocks.get(number)?.filled ?? 0);
      if (filled <= at) break;
      at = filled;
      if (filled % BLOCK !== 0) break;
    }
    return Math.max(0, Math.min(at - from, max));
  }

  /** Copies samples that are available into one array a channel. */
  read(from: number, count: number): Float32Array<ArrayBuffer>[] {
    const read = Array.from({ length: this.channels }, () => new Float32Array(count));
    for (let done = 0; done < count; ) {
      const number = Math.floor((from + done) / BLOCK);
      const block = this.use(number);
      const start = from + done - number * BLOCK;
      const taken = Math.min(BLOCK - start, count - done);
      read.forEach((channel, i) => channel.set(block.channels[i]?.subarray(start, start + taken) ?? [], done));
      done += taken;
    }
    return read;
  }

  /** The block, now the one that was used last. */
  private use(number: number): Block {
    const channels = (): Float32Array<ArrayBuffer>[] => Array.from({ length: this.channels }, () => new Float32Array(BLOCK));
    const block = this.blocks.get(number) ?? { channels: channels(), filled: 0 };
    this.blocks.delete(number);
    this.blocks.set(number, block);
    return block;
  }
}
