// What a saved notebook is to show of a view: passed on to whoever saves it, which is the lab extension.

/** Takes a still; false when the message is something else. */
export function passOn(content: unknown): boolean {
  if (typeof content !== 'object' || content === null) return false;
  const { type, model, data } = content as Record<string, unknown>;
  if (type !== 'still') return false;
  document.dispatchEvent(new CustomEvent('pygpukit:still', { detail: { model, data } }));
  return true;
}
