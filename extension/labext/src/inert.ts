// Whether HTML may be saved as a view's picture: it is what its copy from the list is, and reaches nothing around it.

import { copies, drawsOrStyles, parsed } from './markup.js';

/** A place for a picture, and what stands behind it: a tag or comment that is left open takes that in, one that closes too much leaves the place. */
const within = (html: string): Document => parsed(`<div><div>${html}</div><br></div>`);
const placeIn = ({ body }: Document): Element | null => body.firstElementChild?.firstElementChild ?? null;

export function isInert(html: string): boolean {
  const [source, built] = [within(html), within('')];
  const place = placeIn(source);
  if (place) placeIn(built)?.append(...copies(place, drawsOrStyles));
  return built.isEqualNode(source);
}
