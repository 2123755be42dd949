// Tokens and indentation of the CUDA mode.

import { EditorState } from '@codemirror/state';
import { getIndentation, LanguageSupport, StreamLanguage, StringStream, syntaxTree } from '@codemirror/language';
import { describe, expect, it } from 'vitest';
import { type CudaState, cudaParser } from '../src/stream.js';

/** [text, style] of every token that has a style. */
function tokens(source: string): [string, string][] {
  const state = cudaParser.startState?.(4) as CudaState;
  const out: [string, string][] = [];
  for (const line of source.split('\n')) {
    const stream = new StringStream(line, 4, 4);
    while (!stream.eol()) {
      stream.start = stream.pos;
      const style = cudaParser.token(stream, state);
      expect(stream.pos).toBeGreaterThan(stream.start);
      if (style) out.push([stream.current(), style]);
    }
  }
  return out;
}

const style = (source: string, text: string): string | undefined => tokens(source).find(([found]) => found === text)?.[1];

describe('tokens', () => {
  it('tells the words of CUDA apart', () => {
    const source = '%%cuda\n__global__ void f(float4* x) { x[threadIdx.x] = make_float4(1.0f, 2, 3, y); }';
    expect(style(source, '%%cuda')).toBe('meta');
    expect(style(source, '__global__')).toBe('keyword');
    expect(style(source, 'float4')).toBe('typeName');
    expect(style(source, 'threadIdx')).toBe('variableName.standard');
    expect(style(source, 'make_float4')).toBe('variableName.standard');
    expect(style(source, '1.0f')).toBe('number');
    expect(style(source, 'y')).toBe('variableName');
  });

  it('reads launches and comments', () => {
    expect(style('f<<<1, 2>>>(x);', '<<<')).toBe('keyword');
    expect(style('f<<<1, 2>>>(x);', '>>>')).toBe('keyword');
    expect(style('a // b __global__', '// b __global__')).toBe('lineComment');
    expect(tokens('/* a\nb */ if').map(([, kind]) => kind)).toEqual(['blockComment', 'blockComment', 'keyword']);
  });

  it('reads options on the magic line only, also below blank lines', () => {
    const source = '\n\n%%cuda -i x,y --grid 4 --name "a.h"\nint a = b --c;';
    expect(style(source, '-i')).toBe('attributeName');
    expect(style(source, '--grid')).toBe('attributeName');
    expect(style(source, '4')).toBe('number');
    expect(style(source, '"a.h"')).toBe('string');
    expect(style(source, '--c')).toBeUndefined();
    expect(style('int a;\n%%cuda', '%%cuda')).toBeUndefined();
  });

  it('reads directives and what they include', () => {
    expect(style('#include <cuda_fp16.h>', '<cuda_fp16.h>')).toBe('string');
    expect(style('  # define N 4', '# define')).toBe('meta');
    expect(style("char c = 'a';", "'a'")).toBe('string');
  });

  it('leaves braces plain: an editor is measured by a line that is one', () => {
    expect(style('void f() {', '(')).toBe('bracket');
    expect(style('x[0]', ']')).toBe('bracket');
    expect(tokens('{\n    }\n}')).toEqual([]);
  });

  it('ends on any text', () => {
    let seed = 7;
    const random = (n: number): number => (seed = (seed * 48271) % 2147483647) % n;
    const parts = ['%%cuda', '\n', '"', "'", '/*', '*/', '//', '#', '<', '>', '(', ')', '{', '}', '\\', '0x', '1e', '.', 'a', ' ', '\t', '\u00e9', '\ud83d'];
    for (let i = 0; i < 2000; i++) tokens(Array.from({ length: random(30) }, () => parts[random(parts.length)]).join(''));
  });
});

describe('indentation', () => {
  const support = new LanguageSupport(StreamLanguage.define(cudaParser));
  /** Of the last line of a source. */
  function indentation(source: string): number | null {
    const state = EditorState.create({ doc: source, extensions: [support, EditorState.tabSize.of(4)] });
    syntaxTree(state);
    return getIndentation(state, state.doc.length);
  }

  it('follows braces', () => {
    expect(indentation('%%cuda\n__global__ void f() {\n')).toBe(2);
    expect(indentation('%%cuda\n__global__ void f() {\n    if (a) {\n')).toBe(6);
    expect(indentation('%%cuda\n__global__ void f() {\n    if (a) {\n    }\n}')).toBe(0);
    expect(indentation('void f() {\n    a();\n}\n')).toBe(0);
  });

  it('aligns arguments with their parenthesis, and puts directives at the margin', () => {
    expect(indentation('void f(int a,\n')).toBe(7);
    expect(indentation('void f() {\n#')).toBe(0);
    expect(indentation('switch (a) {\ncase 1:')).toBe(0);
  });
});
