import { expect, test } from 'vitest';
import { PLAIN, tokenize } from '../src/log/ansi';
import { align, LineReader, MAX_LINE } from '../src/log/lines';

const bytes = (text: string) => new TextEncoder().encode(text);

/** What is on the screen after these bytes, pushed in pieces of `step`. */
function shown(data: Uint8Array, step: number, offset = 0): [number, number, string][] {
  const reader = new LineReader(offset);
  const rows: [number, number, string][] = [];
  let open = false;
  for (let i = 0; i < data.length; i += step) {
    for (const piece of reader.push(data.slice(i, i + step))) {
      if (open) {
        rows.pop();
      }
      rows.push([piece.offset, piece.end, piece.text]);
      open = piece.open;
    }
  }
  return rows;
}

const HARD =
  'plain\n\n\u001b[31mréd 🐘\u001b[0m tail\r\n' +
  ' 10%|█ |\r 50%|██|\r100%|██|\n' +
  'kept\r\nover\rwritten\r\n\u001b]0;title\u0007\u001b[2Kx\u001b[1;38;5;196my\r';

test.each([1, 2, 3, 5, 7, 1000])('the same lines however the bytes are cut: %d', step => {
  const rows = shown(bytes(HARD), step);
  expect(rows.map(row => row[2])).toEqual([
    'plain',
    '',
    'réd 🐘 tail',
    '100%|██|',
    'kept',
    'written',
    'xy'
  ]);
  let next = 0;
  for (const [offset, end] of rows) {
    expect(offset).toBe(next);
    next = end;
  }
  expect(next).toBe(bytes(HARD).length);
});

test('a style goes on in the next line and through what is overwritten', () => {
  const reader = new LineReader(0);
  const pieces = reader.push(bytes('\u001b[32ma\rb\u001b[1m\nc\u001b[m\nd\n'));
  expect(pieces.map(piece => piece.spans.at(0)?.style.fg)).toEqual([2, 2, undefined]);
  expect(pieces[1]?.spans.at(0)?.style.bold).toBe(true);
  expect(pieces[2]?.spans).toEqual([]);
});

test('a line without an end is shown in pieces, never cut in a character', () => {
  const text = '漢'.repeat(MAX_LINE);
  const rows = shown(bytes(`${text}\n`), 1000);
  expect(rows.length).toBeGreaterThan(2);
  expect(rows.map(row => row[2]).join('')).toBe(text);
});

test('only colours and weights mean something', () => {
  const { spans } = tokenize(
    'a\u001b[2J\u001b[10;3H\u001b]8;;http://evil\u001b\\b\u0008\u009bc',
    PLAIN
  );
  expect(spans.map(span => span.text).join('')).toBe('abc');
  const colours = tokenize('\u001b[38;2;1;2;3mx\u001b[48;5;232my\u001b[38;5;999mz', PLAIN).spans;
  expect(colours.map(({ style }) => [style.fg, style.bg])).toEqual([
    ['1 2 3', null],
    ['1 2 3', '8 8 8']
  ]);
});

test('a page from the middle begins at a line, after a carriage return, or cut', () => {
  expect(align(bytes('tail\nline'))).toEqual({ skip: 5, kind: 'line' });
  expect(align(bytes('10%\r20%'))).toEqual({ skip: 4, kind: 'cr' });
  expect(align(bytes('é').slice(1))).toEqual({ skip: 1, kind: 'cut' });
});
