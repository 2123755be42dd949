// Steps back for a language server that speaks CUDA (clangd with jupyterlab-lsp): it gets the text of `%%cuda` cells, and
// what it offers is not offered here too.

import type { IExtractedCode, IForeignCodeExtractor, ILanguageServerManager, ILSPCodeExtractorsManager } from '@jupyterlab/lsp';
import { magicLine } from './magic.js';

/** As language servers call it, and as their configuration has to name it. */
const LANGUAGE = 'cuda';
const HOST = 'python';

/** Whether one is used: where there is one, always, or never. */
export type Wish = 'auto' | 'on' | 'off';

export class LanguageServer {
  private wish: Wish = 'auto';
  private handed = false;

  constructor(
    private readonly extractors: Pick<ILSPCodeExtractorsManager, 'register'> | null,
    private readonly servers: Pick<ILanguageServerManager, 'getMatchingServers' | 'sessionsChanged'> | null,
  ) {
    servers?.sessionsChanged.connect(() => this.handOver());
  }

  set(wish: Wish): void {
    this.wish = wish;
    this.handOver();
  }

  /** Whether completion and hover leave the words of CUDA to it. */
  get serves(): boolean {
    if (this.wish !== 'auto') return this.wish === 'on';
    return this.extractors !== null && (this.servers?.getMatchingServers({ language: LANGUAGE }).length ?? 0) > 0;
  }

  /** From now on it gets the cells. What takes them out of the notebook stays registered, and does nothing when told so. */
  private handOver(): void {
    if (this.handed || !this.extractors || !this.serves) return;
    this.handed = true;
    this.extractors.register(cudaExtractor(() => this.serves), HOST);
  }
}

/** Each `%%cuda` cell is a translation unit of its own; the magic is not part of it. */
export function cudaExtractor(enabled: () => boolean): IForeignCodeExtractor {
  return {
    language: LANGUAGE,
    fileExtension: 'cu',
    cellType: ['code'],
    standalone: true,
    hasForeignCode: (code) => enabled() && magicLine(code) >= 0,
    extractForeignCode: (code): IExtractedCode[] => {
      const lines = code.split('\n');
      const first = magicLine(code) + 1;
      return [
        {
          foreignCode: lines.slice(first).join('\n'),
          range: { start: { line: first, column: 0 }, end: { line: lines.length - 1, column: lines.at(-1)?.length ?? 0 } },
          virtualShift: null,
          hostCode: '',
        },
      ];
    },
  };
}
