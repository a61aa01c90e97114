import type { ICompletionContext } from '@jupyterlab/completer';
import { expect, test, vi } from 'vitest';
import { SubmarineCompletions, isPlain, parseMagicLine } from '../src/completion/provider';

test.each([
  ['%submarine ', '%', ['']],
  ['%submarine run digits --qu', '%', ['run', 'digits', '--qu']],
  ['  %submarine show ', '%', ['show', '']],
  ['job = %submarine run ', '%', ['run', '']],
  ['x = 1\n%submarine logs a', '%', ['logs', 'a']],
  ['%%submarine --fi', '%%', ['--fi']],
  ['%submarine run "my job" --g', '%', ['run', 'my job', '--g']]
])('parses %j', (text, marks, words) => {
  expect(parseMagicLine(text, text.length)).toEqual({ marks, words });
});

test.each([
  '',
  '%submarine',
  'submarine run',
  '%submarined run ',
  '# %submarine run',
  '%submarine "a'
])('ignores %j', text => {
  expect(parseMagicLine(text, text.length)).toBeNull();
});

test('ignores text after the cursor and on other lines', () => {
  expect(parseMagicLine('%submarine sh --all\n%submarine x', 13)).toEqual({
    marks: '%',
    words: ['sh']
  });
});

test('accepts only words without spaces and shell characters', () => {
  expect(['a-1', '--queue', 'root.gpu', 'a b', 'a;b', '$(x)', "a'", ''].map(isPlain)).toEqual([
    true,
    true,
    true,
    false,
    false,
    false,
    false,
    false
  ]);
});

function provider(words: unknown, absent = false) {
  const complete = vi.fn(() => Promise.resolve(words as string[]));
  return { complete, provider: new SubmarineCompletions({ complete }, () => absent) };
}

async function labels(found: SubmarineCompletions, text: string) {
  const { start, end, items } = await found.fetch({ text, offset: text.length });
  return { start, end, labels: items.map(item => item.label) };
}

test('offers the completions of the server in place of the current word', async () => {
  const { complete, provider: found } = provider(['gpu', 'gold', 'x y', 'go;od', 7]);
  const text = 'a = 1\n%submarine run d --queue g';
  const start = text.length - 1;
  expect(await labels(found, text)).toEqual({ start, end: start + 1, labels: ['gpu', 'gold'] });
  expect(complete).toHaveBeenCalledWith(['run', 'd', '--queue', 'g'], expect.any(AbortSignal));
});

test('completes a cell magic with the collection options or those of its verb', async () => {
  const { complete, provider: found } = provider(['--gpu']);
  expect((await labels(found, '%%submarine --')).labels).toEqual(['--file', '--only']);
  expect(complete).not.toHaveBeenCalled();
  expect((await labels(found, '%%submarine run x --')).labels).toEqual(['--gpu']);
  expect((await labels(found, '%%submarine wo')).labels).toEqual(['workflow']);
  // The kernel completes these.
  expect((await labels(found, '%%submarine workflow x --')).labels).toEqual([]);
});

test('offers nothing on other lines, for an invalid response or after an error', async () => {
  const { complete, provider: found } = provider({ words: 'no list' });
  expect((await labels(found, 'import os.')).labels).toEqual([]);
  expect(complete).not.toHaveBeenCalled();
  expect((await labels(found, '%submarine r')).labels).toEqual([]);
  complete.mockRejectedValueOnce(new Error('away'));
  expect((await labels(found, '%submarine r')).labels).toEqual([]);
});

test('aborts an earlier request and a slow one', async () => {
  vi.useFakeTimers();
  const signals: AbortSignal[] = [];
  const complete = vi.fn(
    (_words: readonly string[], signal?: AbortSignal) =>
      new Promise<string[]>((_resolve, reject) => {
        if (signal) {
          signals.push(signal);
          signal.addEventListener('abort', () => {
            reject(new Error('aborted'));
          });
        }
      })
  );
  const found = new SubmarineCompletions({ complete }, () => false);
  const first = labels(found, '%submarine r');
  const second = labels(found, '%submarine ru');
  expect(signals.map(signal => signal.aborted)).toEqual([true, false]);
  await vi.advanceTimersByTimeAsync(2000);
  expect((await first).labels).toEqual([]);
  expect((await second).labels).toEqual([]);
  vi.useRealTimers();
});

test('applies only to %submarine lines and only with the server extension', async () => {
  const at = (line: string): ICompletionContext =>
    ({
      editor: { getCursorPosition: () => ({ line: 0, column: 3 }), getLine: () => line }
    }) as unknown as ICompletionContext;
  const { provider: found } = provider([]);
  expect(await found.isApplicable(at('%submarine r'))).toBe(true);
  expect(await found.isApplicable(at('print(1)'))).toBe(false);
  expect(await provider([], true).provider.isApplicable(at('%submarine r'))).toBe(false);
});
