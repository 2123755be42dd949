// A widget bundle in an empty page with a stand-in for anywidget's model: frames in, messages out.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Page } from '@playwright/test';

const STATIC = join(import.meta.dirname, '../../../pygpukit/jupyter/widgets/static');

declare global {
  interface Window {
    receive(content: unknown, frame: string | null): void;
    unmount(): void;
    readonly sent: unknown[];
  }
}

/** Loads static/<name>.js as anywidget does (from a Blob URL) and renders one view of it. */
export async function mount(page: Page, name: 'memory' | 'scheduler'): Promise<void> {
  const code = readFileSync(join(STATIC, `${name}.js`), 'utf8');
  const css = readFileSync(join(STATIC, 'widgets.css'), 'utf8');
  await page.goto('about:blank');
  await page.addStyleTag({ content: css });
  await page.evaluate(async (source) => {
    type Listener = (content: unknown, buffers: DataView[]) => void;
    const listeners = new Set<Listener>();
    const sent: unknown[] = [];
    const model = {
      on: (_event: string, listener: Listener) => listeners.add(listener),
      off: (_event: string, listener: Listener) => listeners.delete(listener),
      send: (content: unknown) => sent.push(content),
    };
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    const { default: makeWidget } = (await import(url)) as {
      default: () => { initialize(context: unknown): void; render(context: unknown): () => void };
    };
    const widget = makeWidget();
    // Two stand-ins, as anywidget gives each call a model object of its own.
    widget.initialize({ model });
    const unmount = widget.render({ model: { ...model }, el: document.body });
    const receive = (content: unknown, frame: string | null): void => {
      const bytes = frame === null ? null : Uint8Array.from(atob(frame), (c) => c.charCodeAt(0));
      for (const listener of listeners) listener(content, bytes ? [new DataView(bytes.buffer)] : []);
    };
    Object.assign(window, { receive, unmount, sent });
  }, code);
}

export async function sendFrame(page: Page, frame: DataView): Promise<void> {
  const base64 = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength).toString('base64');
  await page.evaluate((text) => window.receive({ type: 'frame' }, text), base64);
}

export async function sendMessage(page: Page, content: unknown): Promise<void> {
  await page.evaluate((message) => window.receive(message, null), content);
}
