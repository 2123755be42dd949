// A saved picture as elements of the page. A notebook may come from anybody: what is not on the list of names does not come in.

/** What a picture is made of, and which attributes of it are kept. Nothing here runs, asks for anything or styles what is around it. */
const KEPT: ReadonlyMap<string, readonly string[]> = new Map([
  ...['div', 'p', 'b', 'br', 'table', 'thead', 'tbody', 'tr', 'th', 'td'].map((name): [string, string[]] => [name, []]),
  ['svg', ['viewBox', 'width', 'role', 'aria-label']],
  ['rect', ['x', 'y', 'width', 'height', 'rx', 'fill', 'opacity']],
  ['text', ['x', 'y', 'font-size', 'fill']],
]);
/** Numbers, names and colours: no brackets, so no reference to anything. */
const PLAIN = /^[\w#%., -]*$/;
const NOTE = 'As it was when the notebook was saved. Run the cell for the live view.';
export const SAVED_CLASS = 'gk-saved';

/** The picture of an output's HTML, with a sentence that says what it is. */
export function savedPicture(html: string): HTMLElement {
  const picture = document.createElement('div');
  picture.className = `${SAVED_CLASS} jp-RenderedHTMLCommon`;
  const note = document.createElement('p');
  note.className = 'gk-saved-note';
  note.textContent = NOTE;
  // A document that is only parsed runs and loads nothing.
  picture.append(note, ...copies(new DOMParser().parseFromString(html, 'text/html').body));
  return picture;
}

function copies(parent: Node): Node[] {
  return [...parent.childNodes].flatMap((node): Node[] => {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.textContent ?? '')];
    const kept = node instanceof Element ? KEPT.get(node.localName) : undefined;
    return kept ? [copyOf(node as Element, kept)] : [];
  });
}

function copyOf(element: Element, kept: readonly string[]): Element {
  const copy = document.createElementNS(element.namespaceURI, element.localName);
  for (const name of kept) {
    const value = element.getAttribute(name);
    if (value !== null && (name === 'aria-label' || PLAIN.test(value))) copy.setAttribute(name, value);
  }
  copy.append(...copies(element));
  return copy;
}
