import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ISearchHit } from '../../src/api/types';
import { LogSearch, type ICount } from '../../src/log/search/search';
import { markOf, ERROR_QUERY, type IQuery } from '../../src/log/search/search_query';
import { LogSource } from '../../src/log/lines/source';
import type { IRest } from '../../src/tokens';

const QUERY: IQuery = { text: 'x+', regex: true, matchCase: true };

/** A server that searches texts in memory, as ours does: whole matches from an offset on. */
class FakeServer {
  readonly texts = new Map<string, string>();
  asked = 0;
  failure: Error | null = null;

  readonly search: IRest['search'] = (_job, where, query, onHit) => {
    this.asked++;
    if (this.failure !== null) {
      return Promise.reject(this.failure);
    }
    const text = this.texts.get(where.task) ?? '';
    const hits: ISearchHit[] = [...text.matchAll(new RegExp(query.text, 'g'))]
      .map(match => ({
        line_offset: 0,
        offset: match.index,
        length: match[0].length,
        text: match[0]
      }))
      .filter(hit => (query.backward ? hit.offset < query.from : hit.offset >= query.from));
    const found = (query.backward ? hits.reverse() : hits).slice(0, query.limit);
    found.forEach(onHit);
    const next = found.length < query.limit ? null : (found.at(-1)?.offset ?? 0) + 1;
    const scanned = query.backward ? query.from : Math.max(0, text.length - query.from);
    return Promise.resolve({ next, scanned });
  };
}

function setUp(texts: Record<string, string>) {
  const server = new FakeServer();
  const sources: LogSource[] = [];
  const grow = (task: string, text: string): void => {
    server.texts.set(task, text);
    const known = sources.find(source => source.task === task);
    if (known) {
      known.length = text.length;
    } else {
      const where = { task, attempt: 'e1-a1', stream: 'stdout' };
      sources.push(new LogSource(where, text.length, sources.length));
    }
  };
  for (const [task, text] of Object.entries(texts)) {
    grow(task, text);
  }
  const search = new LogSearch(server, 'job', () => sources);
  const shown: { last: ICount | null } = { last: null };
  search.changed.connect((_, count) => {
    shown.last = count;
  });
  return { server, sources, search, grow, shown };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('the count grows with the log, and with logs that come later', async () => {
  const { search, grow, shown } = setUp({ 'w:0': 'x a x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  expect(shown.last).toMatchObject({ total: 2, more: false });
  grow('w:0', 'x a x b x');
  grow('w:1', 'x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(shown.last).toMatchObject({ total: 4, more: false });
});

test('a match that was written in two parts is one', async () => {
  const { search, grow, shown } = setUp({ 'w:0': 'a xx' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  expect(shown.last?.total).toBe(1);
  grow('w:0', 'a xxxx b');
  search.grown();
  await vi.runAllTimersAsync();
  expect(shown.last?.total).toBe(1);
  grow('w:0', 'a xxxx b x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(shown.last?.total).toBe(2);
});

test('nothing is asked while nothing grows, and seldom in a flood', async () => {
  const { search, grow, server } = setUp({ 'w:0': 'x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  const before = server.asked;
  search.grown();
  await vi.runAllTimersAsync();
  expect(server.asked).toBe(before);
  for (let i = 2; i < 100; i++) {
    grow('w:0', 'x '.repeat(i));
    search.grown();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(server.asked - before).toBeLessThanOrEqual(1);
});

test('the reader is told at which match he is, round the end', async () => {
  const { search, sources, shown } = setUp({ 'w:0': 'x a x b x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  const [source] = sources;
  expect(source).toBeDefined();
  const from = new Map(source === undefined ? [] : [[source, 3]]);
  expect((await search.next(from, false))?.hit.offset).toBe(4);
  expect(shown.last).toMatchObject({ current: 2, total: 3 });
  const end = new Map(source === undefined ? [] : [[source, 9]]);
  expect((await search.next(end, false))?.hit.offset).toBe(0);
  expect(shown.last).toMatchObject({ current: 1 });
});

test('what fails is said, and counting goes on when the log grows', async () => {
  const { search, grow, server, shown } = setUp({ 'w:0': 'x' });
  server.failure = new Error('Too many searches.');
  search.start(QUERY);
  await vi.advanceTimersByTimeAsync(10);
  expect(shown.last?.message).toBe('Too many searches.');
  await expect(search.around(QUERY, new Map(), false)).rejects.toThrow('Too many');
  server.failure = null;
  grow('w:0', 'x x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(shown.last).toMatchObject({ message: '', total: 2 });
});

test('after its end it asks for nothing', async () => {
  const { search, grow, server } = setUp({ 'w:0': 'x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  grow('w:0', 'x x');
  search.grown();
  search.dispose();
  const before = server.asked;
  await vi.runAllTimersAsync();
  expect(server.asked).toBe(before);
  expect(vi.getTimerCount()).toBe(0);
});

test('words are marked as they are, an expression that is none marks nothing', () => {
  const plain = markOf({ text: 'a.b', regex: false, matchCase: false });
  expect('A.B axb'.replace(plain ?? /$/, '-')).toBe('- axb');
  expect(markOf({ text: '(', regex: true, matchCase: true })).toBeNull();
  expect(markOf(null)).toBeNull();
  expect(markOf(ERROR_QUERY)?.test('ValueError: no')).toBe(true);
});
