// The picture that a saved notebook is to show: passed on to whoever saves it, which is the lab extension.

/** Takes a picture; false when the message is something else. */
export function passOn(content: unknown): boolean {
  if (typeof content !== 'object' || content === null) return false;
  const { type, model, html } = content as Record<string, unknown>;
  if (type !== 'picture') return false;
  document.dispatchEvent(new CustomEvent('pygpukit:picture', { detail: { model, html } }));
  return true;
}
