// Where a language server speaks CUDA it gets the cells and this extension offers no words; the setting decides above that.

import type { IForeignCodeExtractor } from '@jupyterlab/lsp';
import type { ICompletionContext } from '@jupyterlab/completer';
import { Signal } from '@lumino/signaling';
import { expect, it } from 'vitest';
import { CudaCompletion } from '../src/completion.js';
import { cudaExtractor, LanguageServer } from '../src/language-server.js';

const KERNEL = '\n%%cuda -D N=4\n__global__ void f() {}\n// end';

/** The lab's two managers, with servers for these languages. */
class Lab {
  readonly registered: [IForeignCodeExtractor, string | null][] = [];
  languages: string[] = [];
  readonly sessionsChanged = new Signal<never, void>(this as never);

  readonly register = (extractor: IForeignCodeExtractor, host: string | null): void => void this.registered.push([extractor, host]);
  readonly getMatchingServers = ({ language }: { language?: string }): never[] =>
    this.languages.filter((one) => one === language) as never[];

  has(...languages: string[]): void {
    this.languages = languages;
    this.sessionsChanged.emit();
  }
}

async function offers(server: LanguageServer): Promise<boolean> {
  const context = { editor: { model: { sharedModel: { getSource: () => KERNEL } } } } as unknown as ICompletionContext;
  return new CudaCompletion(server).isApplicable(context);
}

it('steps back when a server speaks CUDA, and comes back when it has gone', async () => {
  const lab = new Lab();
  const server = new LanguageServer(lab, lab);
  lab.has('python', 'cpp');
  expect([server.serves, await offers(server), lab.registered.length]).toEqual([false, true, 0]);
  lab.has('python', 'cuda');
  expect([server.serves, await offers(server), lab.registered.length]).toEqual([true, false, 1]);
  expect(lab.registered[0]?.[1]).toBe('python');
  expect(lab.registered[0]?.[0].hasForeignCode(KERNEL, 'code')).toBe(true);
  lab.has('python');
  expect([server.serves, await offers(server), lab.registered.length]).toEqual([false, true, 1]);
  expect(lab.registered[0]?.[0].hasForeignCode(KERNEL, 'code')).toBe(false);
});

it('does as the setting says', async () => {
  const lab = new Lab();
  const server = new LanguageServer(lab, lab);
  lab.has('cuda');
  server.set('off');
  expect([server.serves, await offers(server)]).toEqual([false, true]);
  lab.has();
  server.set('on');
  expect([server.serves, await offers(server), lab.registered.length]).toEqual([true, false, 1]);
});

it('has nobody to step back for in a lab without language servers', async () => {
  const server = new LanguageServer(null, null);
  expect([server.serves, await offers(server)]).toEqual([false, true]);
  const lab = new Lab();
  lab.languages = ['cuda'];
  expect(new LanguageServer(null, lab).serves).toBe(false);
});

it('takes the text below the magic, with its place, and no other cell', () => {
  const extractor = cudaExtractor(() => true);
  expect(extractor.extractForeignCode(KERNEL)).toEqual([
    {
      foreignCode: '__global__ void f() {}\n// end',
      range: { start: { line: 2, column: 0 }, end: { line: 3, column: 6 } },
      virtualShift: null,
      hostCode: '',
    },
  ]);
  expect(extractor.extractForeignCode('%%cuda')[0]?.foreignCode).toBe('');
  for (const code of ['x = 1', '# about\n%%cuda', '%%cudacpp\nx', '']) expect(extractor.hasForeignCode(code, 'code')).toBe(false);
});
