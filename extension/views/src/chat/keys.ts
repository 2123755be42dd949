// Keys in a chat are the chat's, but for the one that saves the notebook.

/** Stops keys at an element; Ctrl+S (Cmd+S) goes to the page around it, as if it had been pressed there. */
export function keepKeys(element: HTMLElement): void {
  element.addEventListener('keydown', (event) => {
    event.stopPropagation(); // what is typed here is no command of the lab
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 's') return;
    // A field of text asks the lab to leave its keys alone, so the lab has not taken this one.
    const around = element.parentElement ?? document.body;
    const { key, code, keyCode, ctrlKey, metaKey, shiftKey } = event;
    const again = new KeyboardEvent('keydown', { key, code, keyCode, ctrlKey, metaKey, shiftKey, bubbles: true, cancelable: true, composed: true });
    if (!around.dispatchEvent(again)) event.preventDefault(); // the browser would save the page
  });
}
