// What is asked about a cell, as the text of a %%chat cell. Its length is bounded: small models have small contexts.

export const MAX_CODE = 3000;
export const MAX_ERROR = 1200;

/** Colours of terminals, and what else is no text in a traceback. */
// eslint-disable-next-line no-control-regex
const CONTROLS = /\u001b\[[0-9;]*m|[\u0000-\u0008\u000b-\u001f\u007f]/g;

/** The question; `error` is what the cell's run told, '' for one that only is to be explained. */
export function questionAbout(source: string, error: string): string {
  const [first = '', ...rest] = source.split('\n');
  const cuda = /^\s*%%cuda\b/.test(first);
  const code = cut((cuda ? rest.join('\n') : source).trim(), MAX_CODE);
  const fence = '`'.repeat(Math.max(3, ...[...code.matchAll(/`+/g)].map(([run]) => run.length + 1)));
  const block = `${fence}${cuda ? 'cuda' : 'python'}\n${code}\n${fence}`;
  const kind = cuda ? 'CUDA code' : 'Python code';
  const asked = error
    ? `This ${kind} fails. Say what is wrong in one or two sentences, then give the corrected line.\n\n${block}\n\nThe error:\n\n${cut(error.replace(CONTROLS, '').trim(), MAX_ERROR)}`
    : `Explain in a few sentences what this ${kind} does.\n\n${block}`;
  return `%%chat --new --plain\n${asked}`; // a small model says again what it said before
}

function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}\n...`;
}
