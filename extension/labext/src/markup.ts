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
    ol: [],
    li: [],
    svg: ['viewBox', 'width', 'height', 'role', 'aria-label', 'stroke'],
    path: ['d'],
    rect: ['x', 'y', 'width', 'height', 'rx', 'fill', 'opacity'],
    text: ['x', 'y', 'font-size', 'fill'],
    img: ['alt', 'width', 'height', 'src'],
    audio: ['controls', 'src'],
  }),
);
/** Numbers, names and colours: no brackets, so no reference to anything. */
const PLAIN = /^[\w#%., -]*$/;
/** Pictures and sounds that are there themselves: nothing is asked for. */
const CONTAINED = /^data:(?:image\/png|audio\/wav);base64,[\w+/=]*$/;
/** What is nothing without that. */
const CONTAINS: readonly string[] = ['img', 'audio'];
/** What is read out and not drawn. */
const SAID: readonly string[] = ['aria-label', 'alt'];
/** What styles a picture where the extension is not. */
const STYLES: readonly string[] = ['display', 'font', 'font-variant-numeric', 'max-width', 'padding', 'text-align'];
/** By which comparisons of notebooks know the stills of views. */
const KINDS: readonly string[] = ['gk-live', 'gk-sound'];

/** Whether an attribute is of this kind of element, and draws. */
export type Keeps = (element: string, attribute: string, value: string) => boolean;

export const draws: Keeps = (element, attribute, value) =>
  Boolean(DRAWN.get(element)?.includes(attribute)) &&
  (SAID.includes(attribute) || (attribute === 'src' ? CONTAINED : PLAIN).test(value));

/** The same, and what styles a picture in its own place. */
export const drawsOrStyles: Keeps = (element, attribute, value) => {
  if (attribute === 'class') return KINDS.includes(value);
  return attribute === 'style' ? value.split(';').every(isStyle) : draws(element, attribute, value);
};

function isStyle(declaration: string): boolean {
  const [name = '', value, ...more] = declaration.split(':');
  if (name.trim() === 'display') return value?.trim() === 'block';
  return STYLES.includes(name.trim()) && value !== undefined && PLAIN.test(value) && more.length === 0;
}

/** What a node holds, built anew of what is on the list, with those attributes that `keeps` names. */
export function copies(parent: Node, keeps: Keeps): Node[] {
  return [...parent.childNodes].flatMap((node): Node[] => {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.textContent ?? '')];
    if (!(node instanceof Element) || !DRAWN.has(node.localName)) return [];
    const copy = copyOf(node, keeps);
    return CONTAINS.includes(node.localName) && !copy.hasAttribute('src') ? [] : [copy];
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
