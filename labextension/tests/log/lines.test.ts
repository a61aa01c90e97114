import { expect, test } from 'vitest';
import { isPlain, PLAIN, tokenize } from '../../src/log/lines/ansi';
import { align } from '../../src/log/lines/window';
import { LineReader, MAX_LINE } from '../../src/log/lines/lines';

const bytes = (text: string) => new TextEncoder().encode(text);

/** The displayed lines after pushing these bytes in chunks of `step`. */
function displayedRows(data: Uint8Array, step: number, offset = 0): [number, number, string][] {
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

const MIXED =
  'plain\n\n\u001b[31mréd 🐘\u001b[0m tail\r\n' +
  ' 10%|█ |\r 50%|██|\r100%|██|\n' +
  'kept\r\nover\rwritten\r\n\u001b]0;title\u0007\u001b[2Kx\u001b[1;38;5;196my\r';

test.each([1, 2, 3, 5, 7, 1000])('reads the same lines from chunks of %d bytes', step => {
  const rows = displayedRows(bytes(MIXED), step);
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
  expect(next).toBe(bytes(MIXED).length);
});

test('a style continues on the next line and after overwritten text', () => {
  const reader = new LineReader(0);
  const pieces = reader.push(bytes('\u001b[32ma\rb\u001b[1m\nc\u001b[m\nd\n'));
  expect(pieces.map(piece => piece.spans.at(0)?.style.fg)).toEqual([2, 2, undefined]);
  expect(pieces[1]?.spans.at(0)?.style.bold).toBe(true);
  expect(pieces[2]?.spans).toEqual([]);
});

test('splits a line without an end into pieces, but not within a character', () => {
  const text = '漢'.repeat(MAX_LINE);
  const rows = displayedRows(bytes(`${text}\n`), 1000);
  expect(rows.length).toBeGreaterThan(2);
  expect(rows.map(row => row[2]).join('')).toBe(text);
});

test('interprets only color and weight sequences', () => {
  const { spans } = tokenize(
    'a\u001b[2J\u001b[10;3H\u001b]8;;http://evil\u001b\\b\u0008\u009bc',
    PLAIN
  );
  expect(spans.map(span => span.text).join('')).toBe('abc');
  const colors = tokenize('\u001b[38;2;1;2;3mx\u001b[48;5;232my\u001b[38;5;999mz', PLAIN).spans;
  expect(colors.map(({ style }) => [style.fg, style.bg])).toEqual([
    ['1 2 3', null],
    ['1 2 3', '8 8 8']
  ]);
});

test('a page from the middle starts at a line, after a carriage return or within a line', () => {
  expect(align(bytes('tail\nline'))).toEqual({ skip: 5, kind: 'line' });
  expect(align(bytes('10%\r20%'))).toEqual({ skip: 4, kind: 'cr' });
  expect(align(bytes('é').slice(1))).toEqual({ skip: 1, kind: 'cut' });
});

/** The displayed texts, including replaced lines. */
function displayedTexts(data: Uint8Array, step: number): string[] {
  const reader = new LineReader(0);
  const rows = new Map<number, string>();
  for (let i = 0; i < data.length; i += step) {
    for (const { offset, text, replaces } of reader.push(data.slice(i, i + step))) {
      expect(replaces === true && !rows.has(offset)).toBe(false);
      rows.set(offset, text);
    }
  }
  return [...rows.values()];
}

/** Two nested tqdm bars; the inner one has its own line. */
const NESTED =
  'begin\n\router 0%' +
  [0, 50, 100].map(n => `\n\r\u001b[32minner ${n}%\u001b[0m\u001b[A`).join('') +
  '\router 50%' +
  [0, 50, 100].map(n => `\n\rinner ${n}%\u001b[A`).join('') +
  '\router 100%\n\nend\n';

test.each([1, 2, 3, 7, 11, 1000])(
  'nested progress bars keep their lines with chunks of %d bytes',
  step => {
    expect(displayedTexts(bytes(NESTED), step)).toEqual([
      'begin',
      'outer 100%',
      'inner 100%',
      'end'
    ]);
  }
);

test('a redrawn table appears once, and the cursor moves up by at most one screen', () => {
  const draw = (n: number) => `\u001b[2Ka ${n}\n\u001b[2Kb ${n}\n\u001b[2Kc ${n}\n`;
  const table = draw(1) + '\u001b[3A' + draw(2) + '\u001b[3F' + draw(3) + 'after\n';
  for (const step of [1, 5, 1000]) {
    expect(displayedTexts(bytes(table), step)).toEqual(['a 3', 'b 3', 'c 3', 'after']);
  }
  const many = Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join('');
  const rows = displayedTexts(bytes(`${many}\u001b[999Atop\u001b[999B\nlast\u001b[5`), 9);
  expect(rows.filter(row => row === 'top')).toHaveLength(1);
  expect(rows.indexOf('top')).toBe(68);
  expect(rows.at(-1)).toBe('last');
});

test.each(
  Array.from('\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\u0085\u009b\u0007\u007f')
)('removes %j from a line', control => {
  const text = `first${control}last`;
  expect(isPlain(text)).toBe(false);
  const texts = tokenize(text, PLAIN).spans.map(span => span.text);
  expect(texts.join('')).toBe('firstlast');
});
