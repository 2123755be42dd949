// The lab's language "CUDA": known by its MIME type, which `%%cuda` cells are given.

import { LanguageSupport, StreamLanguage } from '@codemirror/language';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { CUDA_MIME } from './magic.js';
import { cudaParser } from './stream.js';

/** One for all cells: the lab asks for it once for each cell that it makes before it has the first answer. */
let support: LanguageSupport | undefined;

export function addCuda(languages: IEditorLanguageRegistry): void {
  languages.addLanguage({
    name: 'cuda',
    displayName: 'CUDA C++',
    mime: CUDA_MIME,
    load: () => Promise.resolve((support ??= new LanguageSupport(StreamLanguage.define(cudaParser)))),
  });
}
