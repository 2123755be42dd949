// Going to a notebook cell: the lab extension is asked first; without it the cell is found by its prompt.

const FLASH_MS = 1200;

/** Shows the cell with an execution count, in the notebook that this view is in; false when the page has none. */
export function revealCell(from: HTMLElement, count: number): boolean {
  if (count <= 0) return false;
  const event = new CustomEvent('pygpukit:reveal-cell', { bubbles: true, cancelable: true, detail: { count } });
  if (!from.dispatchEvent(event)) return true; // somebody took it
  const cell = findCell(from, count);
  if (!cell) return false;
  cell.scrollIntoView({ block: 'center' });
  cell.classList.add('gk-revealed');
  setTimeout(() => cell.classList.remove('gk-revealed'), FLASH_MS);
  return true;
}

/** The code cell with the prompt `[count]:`, in the own notebook first. */
export function findCell(from: HTMLElement, count: number): HTMLElement | null {
  const own = from.closest('.jp-Notebook, .jp-NotebookPanel');
  for (const root of own ? [own, document] : [document]) {
    for (const prompt of root.querySelectorAll<HTMLElement>('.jp-CodeCell .jp-InputPrompt')) {
      if (prompt.textContent?.trim() === `[${count}]:`) return prompt.closest<HTMLElement>('.jp-CodeCell');
    }
  }
  return null;
}
