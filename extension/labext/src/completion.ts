// Completes the words of CUDA with their meaning, also while the kernel is busy; names of the notebook come from the kernel.

import type { CompletionHandler, ICompletionContext, ICompletionProvider } from '@jupyterlab/completer';
import type { LanguageServer } from './language-server.js';
import { isCuda, magicLine } from './magic.js';
import { WORDS } from './words.js';

const RANK = 1100; // before the lab's own, so that words keep their explanation when both know them

export class CudaCompletion implements ICompletionProvider {
  readonly identifier = 'pygpukit:cuda';
  readonly rank = RANK;

  constructor(private readonly server: LanguageServer) {}

  isApplicable(context: ICompletionContext): Promise<boolean> {
    return Promise.resolve(!this.server.serves && isCuda(context.editor?.model.sharedModel.getSource() ?? ''));
  }

  fetch(request: CompletionHandler.IRequest): Promise<CompletionHandler.ICompletionItemsReply> {
    const { start, items } = completions(request.text, request.offset);
    return Promise.resolve({ start, end: request.offset, items });
  }
}

/** The words that what is written before `offset` may become; none on the magic line, behind a dot and without a letter. */
export function completions(text: string, offset: number): { start: number; items: CompletionHandler.ICompletionItem[] } {
  const before = text.slice(0, offset);
  const written = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? '';
  const start = offset - written.length;
  const line = before.split('\n').length - 1;
  if (!written || line <= magicLine(text) || /\.\s*$/.test(before.slice(0, start))) return { start, items: [] };
  const items = [...WORDS.values()]
    .filter(({ name }) => name.startsWith(written))
    .map(({ name, signature, sentence }) => ({ label: name, type: 'CUDA', documentation: `${signature}\n\n${sentence}` }));
  return { start, items };
}
