// A saved picture as elements of the page. A notebook may come from anybody: what is not on the list of markup does not come in.

import { copies, draws, parsed } from './markup.js';

const NOTE = 'As it was when the notebook was saved. Run the cell for the live view.';
export const SAVED_CLASS = 'gk-saved';

/** The picture of an output's HTML, with a sentence that says what it is. */
export function savedPicture(html: string): HTMLElement {
  const picture = document.createElement('div');
  picture.className = `${SAVED_CLASS} jp-RenderedHTMLCommon`;
  const note = document.createElement('p');
  note.className = 'gk-saved-note';
  note.textContent = NOTE;
  picture.append(note, ...copies(parsed(html).body, draws));
  return picture;
}
