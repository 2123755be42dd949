// Whether HTML is of the kind that pictures of views are: shapes, text and tables, nothing that runs or asks for anything.

const ELEMENTS = new Set(['div', 'p', 'b', 'br', 'svg', 'rect', 'text', 'table', 'thead', 'tbody', 'tr', 'th', 'td']);
const ATTRIBUTES = new Set(['class', 'style', 'viewBox', 'width', 'height', 'role', 'aria-label', 'x', 'y', 'rx', 'fill', 'opacity', 'font-size']);
/** Of attributes that hold CSS: what makes a page ask for something. */
const ASKS = /url|image|@|\\/i;

export function isInert(html: string): boolean {
  const { documentElement, head, body } = new DOMParser().parseFromString(html, 'text/html');
  const whole = documentElement.children.length === 2 && head.children.length === 0 && body.attributes.length === 0;
  return whole && [...body.querySelectorAll('*')].every((element) => ELEMENTS.has(element.localName) && [...element.attributes].every(isPlain));
}

function isPlain({ name, value }: Attr): boolean {
  return ATTRIBUTES.has(name) && !(['style', 'fill'].includes(name) && ASKS.test(value));
}
