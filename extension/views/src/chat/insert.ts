// Code of an answer to where it is used: the clipboard, or a new cell where the lab extension is there.

/** Asks the lab for a new cell below the one that an element is in; false where nobody does it. */
export function insertCell(element: HTMLElement, code: string, language: string): boolean {
  const source = language === 'cuda' || language === 'cu' ? `%%cuda\n${code}` : code;
  // Who takes it prevents the default.
  return !element.dispatchEvent(new CustomEvent('pygpukit:insert', { bubbles: true, cancelable: true, composed: true, detail: { source } }));
}

/** Puts text on the clipboard; false where the page may not. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
