// A saved still as elements of the page. A notebook may come from anybody: what is not on the list of markup does not come in.

import { transcript } from './markdown.js';
import { copies, draws, parsed } from './markup.js';
import { MARKDOWN, type Still } from './view-output.js';

const NOTE = 'As it was when the notebook was saved. Run the cell for the live view.';
export const SAVED_CLASS = 'gk-saved';

/** What an output was saved with, with a sentence that says what it is. */
export function savedPicture({ kind, text }: Still): HTMLElement {
  const picture = document.createElement('div');
  picture.className = `${SAVED_CLASS} jp-RenderedHTMLCommon`;
  const note = document.createElement('p');
  note.className = 'gk-saved-note';
  note.textContent = NOTE;
  picture.append(note, ...(kind === MARKDOWN ? [transcript(text)] : copies(parsed(text).body, draws)));
  return picture;
}
