// Small DOM helpers. Text from the kernel only ever becomes textContent.

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = '',
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

/** Writes only what changed, so that selections and screen readers are left alone. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** A text that may be cut off: its title says it whole. */
export function setLabel(node: HTMLElement, text: string): void {
  setText(node, text);
  if (node.title !== text) node.title = text;
}

export function setData(node: HTMLElement, values: Readonly<Record<string, string | number>>): void {
  for (const [key, value] of Object.entries(values)) {
    const text = String(value);
    if (node.dataset[key] !== text) node.dataset[key] = text;
  }
}

/** Keys with Ctrl, Alt or Meta are the browser's and the lab's, and Shift+Enter runs a cell. */
export function withModifier({ ctrlKey, altKey, metaKey, shiftKey, key }: KeyboardEvent): boolean {
  return ctrlKey || altKey || metaKey || (shiftKey && key === 'Enter');
}

/** Keeps exactly `rows.length` children under a parent, made once and then filled. */
export function syncRows<T, E extends HTMLElement>(
  parent: HTMLElement,
  rows: readonly T[],
  make: () => E,
  fill: (element: E, row: T) => void,
): void {
  while (parent.childElementCount > rows.length) parent.lastElementChild?.remove();
  while (parent.childElementCount < rows.length) parent.append(make());
  rows.forEach((row, i) => fill(parent.children[i] as E, row));
}
