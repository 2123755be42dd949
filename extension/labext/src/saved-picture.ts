// A saved still as elements of the page. A notebook may come from anybody: what is not on the list of markup does not come in.

import { transcript } from './markdown.js';
import { copies, draws, parsed } from './markup.js';
import { MARKDOWN, type Still } from './view-output.js';

const NOTE = 'As it was when the notebook was saved.';
const HOW = 'Run the cell for the live view.';
/** Players, recorders and chats say themselves how to go on, for pages without the lab. */
const SAYS_HOW = /run the cell/i;
export const SAVED_CLASS = 'gk-saved';

/** What an output was saved with, with a sentence that says what it is. */
export function savedPicture({ kind, text }: Still): HTMLElement {
  const picture = document.createElement('div');
  picture.className = `${SAVED_CLASS} jp-RenderedHTMLCommon`;
  const note = document.createElement('p');
  note.className = 'gk-saved-note';
  picture.append(note, ...(kind === MARKDOWN ? [transcript(text)] : copies(parsed(text).body, draws)));
  note.textContent = SAYS_HOW.test(picture.textContent ?? '') ? NOTE : `${NOTE} ${HOW}`;
  return picture;
}
