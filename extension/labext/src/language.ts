// The lab's language "CUDA": known by its MIME type, which `%%cuda` cells are given.

import { LanguageSupport, StreamLanguage } from '@codemirror/language';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { CUDA_MIME } from './magic.js';
import { cudaParser } from './stream.js';

/** A cell is Python for a moment before it is CUDA: whichever language comes last stays, so Python is loaded before. */
const BEFORE = ['text/x-ipython', 'text/x-python'];

export function addCuda(languages: IEditorLanguageRegistry): void {
  languages.addLanguage({
    name: 'cuda',
    displayName: 'CUDA C++',
    mime: CUDA_MIME,
    load: async () => {
      await Promise.all(BEFORE.map((mime) => languages.getLanguage(mime)));
      return new LanguageSupport(StreamLanguage.define(cudaParser));
    },
  });
}
