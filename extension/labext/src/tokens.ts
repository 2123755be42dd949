// What the editor's plugin gives to the others.

import { Token } from '@lumino/coreutils';
import type { Cursors } from './cursors.js';
import type { Reports } from './reports.js';

export interface ICudaCells {
  readonly reports: Reports;
  readonly cursors: Cursors;
}

export const ICudaCells = new Token<ICudaCells>('pygpukit:ICudaCells', 'What the kernel says about %%cuda cells, and where their cursors are.');
