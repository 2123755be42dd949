// A widget bundle in an empty page with a stand-in for anywidget's model: frames in, messages out.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Page } from '@playwright/test';

const STATIC = join(import.meta.dirname, '../../../pygpukit/jupyter/widgets/static');

export type ModuleName = 'memory' | 'scheduler' | 'device' | 'links' | 'cells' | 'chat' | 'player' | 'recorder' | 'spectrogram' | 'talk' | 'timeline';

/** Answers that the stand-in kernel gives, by action; an action that is not there is never answered. */
export type Answers = Readonly<Record<string, unknown>>;

declare global {
  interface Window {
    receive(content: unknown, frame: string | null): void;
    receiveBuffers(content: unknown, buffers: DataView[]): void;
    /** Answers a player that asks for samples from a number on. */
    answerWants(at: number): void;
    heard(): number;
    /** Blocks of samples that a recorder sent. */
    blocks: Float32Array[];
    /** States of the outputs that were opened. */
    contexts(): string[];
    unmount(): void;
    /** Draws the view anew, of the same widget. */
    again(): void;
    /** Messages about visibility. */
    readonly sent: unknown[];
    readonly requests: { action: string; args: unknown; id: number }[];
    answers: Answers;
  }
}

/** Loads static/<name>.js as anywidget does (from a Blob URL) and renders one view of it, in the page or before it comes there. */
export async function mount(page: Page, name: ModuleName, answers: Answers = {}, where: 'in the page' | 'before' = 'in the page'): Promise<void> {
  const code = readFileSync(join(STATIC, `${name}.js`), 'utf8');
  const css = readFileSync(join(STATIC, 'widgets.css'), 'utf8');
  if (!page.url().startsWith('http:')) await page.goto('about:blank');
  await page.addStyleTag({ content: css });
  await page.evaluate(async ({ source, given, before }) => {
    type Listener = (content: unknown, buffers: DataView[]) => void;
    const listeners = new Set<Listener>();
    const sent: unknown[] = [];
    Object.assign(window, { requests: [], blocks: [], answers: given });
    const model = {
      on: (_event: string, listener: Listener) => listeners.add(listener),
      off: (_event: string, listener: Listener) => listeners.delete(listener),
      send: (content: { type: string; at: number; id: number; action: string; args: unknown }, _callbacks?: undefined, buffers: ArrayBuffer[] = []) => {
        for (const buffer of buffers) window.blocks.push(new Float32Array(buffer));
        if (content.type === 'want') setTimeout(() => window.answerWants(content.at));
        if (content.type !== 'request') return sent.push(content);
        const { id, action, args } = content;
        window.requests.push({ id, action, args });
        const result = window.answers[action];
        if (result === undefined) return 0;
        const answer = typeof result === 'string' ? { ok: false, error: result } : { ok: true, result };
        return setTimeout(() => window.receive({ type: 'answer', id, ...answer }, null));
      },
    };
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    const { default: makeWidget } = (await import(url)) as {
      default: () => { initialize?(context: unknown): void; render(context: unknown): () => void };
    };
    const widget = makeWidget();
    // Two stand-ins, as anywidget gives each call a model object of its own.
    widget.initialize?.({ model });
    const receive = (content: unknown, frame: string | null): void => {
      const bytes = frame === null ? null : Uint8Array.from(atob(frame), (c) => c.charCodeAt(0));
      for (const listener of listeners) listener(content, bytes ? [new DataView(bytes.buffer)] : []);
    };
    const receiveBuffers = (content: unknown, buffers: DataView[]): void => listeners.forEach((listener) => listener(content, buffers));
    Object.assign(window, { receive, receiveBuffers, sent });
    const render = (): void => {
      const el = before ? document.createElement('div') : document.body;
      Object.assign(window, { unmount: widget.render({ model: { ...model }, el }) });
      if (before) requestAnimationFrame(() => document.body.append(el));
    };
    const again = (): void => {
      window.unmount();
      render();
    };
    Object.assign(window, { again });
    render();
  }, { source: code, given: answers, before: where === 'before' });
}

export async function sendFrame(page: Page, frame: DataView): Promise<void> {
  const base64 = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString('base64');
  await page.evaluate((text) => window.receive({ type: 'frame' }, text), base64);
}

/** Many frames in one go. */
export async function sendFrames(page: Page, frames: Iterable<DataView>): Promise<void> {
  const texts = Array.from(frames, (frame) => Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString('base64'));
  await page.evaluate((all) => all.forEach((text) => window.receive({ type: 'frame' }, text)), texts);
}

export async function sendMessage(page: Page, content: unknown): Promise<void> {
  await page.evaluate((message) => window.receive(message, null), content);
}

/** Plays a recorded trace's entries, all at once. */
export async function playTrace(page: Page, path: string): Promise<number> {
  const entries = readTrace(path);
  await page.evaluate((all) => all.forEach(({ content, buffer }) => window.receive(content, buffer)), entries);
  return entries.length;
}

/** The trace file of gp.dashboard.record(), version 1 (docs/seams.md). */
export function readTrace(path: string): { content: unknown; buffer: string | null; timeNs: number }[] {
  const data = readFileSync(path);
  if (data.toString('latin1', 0, 8) !== 'PGKTRACE' || data.readUInt16LE(8) !== 1) throw new Error(`${path} is no trace of version 1`);
  const entries: { content: unknown; buffer: string | null; timeNs: number }[] = [];
  for (let at = 16 + data.readUInt32LE(12); at < data.length; ) {
    const [kind, size, timeNs] = [data.readUInt32LE(at), data.readUInt32LE(at + 4), Number(data.readBigUInt64LE(at + 8))];
    const payload = data.subarray(at + 16, at + 16 + size);
    at += 16 + size;
    if (kind === 1) entries.push({ content: JSON.parse(payload.toString()), buffer: null, timeNs });
    else entries.push({ content: { type: kind === 2 ? 'frame' : 'history' }, buffer: payload.toString('base64'), timeNs });
  }
  return entries;
}
