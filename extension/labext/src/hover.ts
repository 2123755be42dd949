// What a word of CUDA or an option of the magic means, where the pointer rests on it.

import type { Extension } from '@codemirror/state';
import { type EditorView, hoverTooltip, type Tooltip } from '@codemirror/view';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { LanguageServer } from './language-server.js';
import { CUDA_MIME, magicLine } from './magic.js';
import { WORDS } from './words.js';

export interface Option {
  readonly flags: readonly string[];
  readonly value: string;
  readonly help: string;
}

/** `options`: of the magic, by flag; filled once a kernel has told them. The words are a language server's where one serves. */
export function hover(model: CodeEditor.IModel, options: ReadonlyMap<string, Option>, server: LanguageServer): Extension {
  return hoverTooltip((view, at) => {
    if (model.mimeType !== CUDA_MIME) return null;
    const line = view.state.doc.lineAt(at);
    const onMagic = line.number - 1 === magicLine(view.state.doc.toString());
    for (const match of line.text.matchAll(onMagic ? /(?<=\s)--?[A-Za-z][\w-]*/g : /[A-Za-z_]\w*/g)) {
      const from = line.from + match.index;
      const to = from + match[0].length;
      if (at < from || at > to) continue;
      const option = options.get(match[0]);
      const word = WORDS.get(match[0]);
      if (onMagic && option) return tooltip(from, to, `${option.flags.join(', ')} ${option.value}`.trim(), option.help);
      if (!onMagic && word && !server.serves) return tooltip(from, to, word.signature, word.sentence);
    }
    return null;
  });
}

function tooltip(pos: number, end: number, signature: string, sentence: string): Tooltip {
  return {
    pos,
    end,
    above: true,
    create: (_view: EditorView) => {
      const dom = document.createElement('div');
      dom.className = 'gk-hover';
      const code = dom.appendChild(document.createElement('code'));
      code.textContent = signature;
      const text = dom.appendChild(document.createElement('p'));
      text.textContent = sentence;
      return { dom };
    },
  };
}
