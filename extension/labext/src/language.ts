// The lab's language "CUDA": known by its MIME type, which `%%cuda` cells are given.

import { LanguageSupport, StreamLanguage } from '@codemirror/language';
import type { IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { CUDA_MIME } from './magic.js';
import { cudaParser } from './stream.js';

export function addCuda(languages: IEditorLanguageRegistry): void {
  languages.addLanguage({
    name: 'cuda',
    displayName: 'CUDA C++',
    mime: CUDA_MIME,
    load: () => Promise.resolve(new LanguageSupport(StreamLanguage.define(cudaParser))),
  });
}
