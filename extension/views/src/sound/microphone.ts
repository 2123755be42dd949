// The microphone as blocks of samples, by an AudioWorklet; what keeps it from recording is said in words.

const BLOCK_S = 0.05;
/** The audio thread's part: blocks of so many samples, none lost between them. */
const WORKLET = `registerProcessor('pygpukit-blocks', class extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.size = processorOptions.size;
    this.block = new Float32Array(this.size);
    this.at = 0;
  }
  process([[channel]]) {
    for (let from = 0; channel && from < channel.length; ) {
      const count = Math.min(this.size - this.at, channel.length - from);
      this.block.set(channel.subarray(from, from + count), this.at);
      from += count;
      this.at += count;
      if (this.at === this.size) {
        this.port.postMessage(this.block, [this.block.buffer]);
        this.block = new Float32Array(this.size);
        this.at = 0;
      }
    }
    return true;
  }
});`;

const REASONS: Readonly<Record<string, string>> = {
  NotAllowedError: 'The browser does not let this page use the microphone: allow it in the address bar, then try again.',
  NotFoundError: 'There is no microphone.',
  NotReadableError: 'The microphone is in use by another program, or the system keeps it.',
};
const INSECURE = 'The browser records on pages from HTTPS or localhost only: open this notebook there.';

export class Microphone {
  private constructor(
    private readonly context: AudioContext,
    private readonly stream: MediaStream,
  ) {}

  /** Opens it. Rejects with an Error whose message says what is missing and what to do. */
  static async open(rate: number, onBlock: (samples: Float32Array<ArrayBuffer>) => void, onEnd: () => void): Promise<Microphone> {
    if (!window.isSecureContext || !('mediaDevices' in navigator)) throw new Error(INSECURE);
    const audio = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await navigator.mediaDevices.getUserMedia({ audio }).catch((error: unknown) => {
      const name = error instanceof Error ? error.name : '';
      throw new Error(REASONS[name] ?? `The microphone does not open: ${String(error)}`);
    });
    const context = new AudioContext({ sampleRate: rate });
    try {
      const url = URL.createObjectURL(new Blob([WORKLET], { type: 'text/javascript' }));
      await context.audioWorklet.addModule(url).finally(() => URL.revokeObjectURL(url));
      const blocks = new AudioWorkletNode(context, 'pygpukit-blocks', { processorOptions: { size: Math.round(rate * BLOCK_S) } });
      blocks.port.onmessage = ({ data }) => onBlock(data as Float32Array<ArrayBuffer>);
      context.createMediaStreamSource(stream).connect(blocks).connect(context.destination); // silence, so that it runs
      stream.getAudioTracks().forEach((track) => track.addEventListener('ended', onEnd));
      await context.resume();
      return new Microphone(context, stream);
    } catch (error) {
      stream.getTracks().forEach((track) => track.stop());
      void context.close();
      throw new Error(`This browser does not record at ${rate} Hz: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  close(): void {
    this.stream.getTracks().forEach((track) => track.stop());
    void this.context.close();
  }
}
