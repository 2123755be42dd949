// The markup of a view's picture: shapes, text and tables. What is not on this list is neither saved with a notebook nor shown of one.

/** What a picture is made of, and the attributes that draw it: nothing here runs, asks for anything or styles what is around it. */
const DRAWN: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    div: [],
    p: [],
    b: [],
    br: [],
    table: [],
    thead: [],
    tbody: [],
    tr: [],
    th: [],
    td: [],
    svg: ['viewBox', 'width', 'role', 'aria-label'],
    rect: ['x', 'y', 'width', 'height', 'rx', 'fill', 'opacity'],
    text: ['x', 'y', 'font-size', 'fill'],
  }),
);
/** Numbers, names and colours: no brackets, so no reference to anything. */
const PLAIN = /^[\w#%., -]*$/;
/** What styles a picture where the extension is not. */
const STYLES: readonly string[] = ['font', 'font-variant-numeric', 'max-width', 'padding', 'text-align'];
/** By which comparisons of notebooks know the picture of a live view. */
const LIVE = 'gk-live';

/** Whether an attribute is of this kind of element, and draws. */
export type Keeps = (element: string, attribute: string, value: string) => boolean;

export const draws: Keeps = (element, attribute, value) =>
  Boolean(DRAWN.get(element)?.includes(attribute)) && (attribute === 'aria-label' || PLAIN.test(value));

/** The same, and what styles a picture in its own place. */
export const drawsOrStyles: Keeps = (element, attribute, value) => {
  if (attribute === 'class') return value === LIVE;
  return attribute === 'style' ? value.split(';').every(isStyle) : draws(element, attribute, value);
};

function isStyle(declaration: string): boolean {
  const [name = '', value, ...more] = declaration.split(':');
  return STYLES.includes(name.trim()) && value !== undefined && PLAIN.test(value) && more.length === 0;
}

/** What a node holds, built anew of what is on the list, with those attributes that `keeps` names. */
export function copies(parent: Node, keeps: Keeps): Node[] {
  return [...parent.childNodes].flatMap((node): Node[] => {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.textContent ?? '')];
    return node instanceof Element && DRAWN.has(node.localName) ? [copyOf(node, keeps)] : [];
  });
}

function copyOf(element: Element, keeps: Keeps): Element {
  const { localName } = element;
  const copy = document.createElementNS(element.namespaceURI, localName);
  for (const { name, value } of element.attributes) if (keeps(localName, name, value)) copy.setAttribute(name, value);
  copy.append(...copies(element, keeps));
  return copy;
}

/** HTML as a document that is only parsed: it runs and loads nothing. */
export function parsed(html: string): Document {
  return new DOMParser().parseFromString(html, 'text/html');
}
