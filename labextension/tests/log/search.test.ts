import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ISearchHit } from '../../src/api/types';
import { LogSearch, type ICount } from '../../src/log/search/search';
import { markOf, ERROR_QUERY, type IQuery } from '../../src/log/search/search_query';
import { LogSource } from '../../src/log/lines/source';
import type { IRest } from '../../src/tokens';

const QUERY: IQuery = { text: 'x+', regex: true, matchCase: true };

/** Searches texts in memory; like the server, it returns complete matches from an offset on. */
class FakeServer {
  readonly texts = new Map<string, string>();
  requests = 0;
  failure: Error | null = null;

  readonly search: IRest['search'] = (_job, where, query, onHit) => {
    this.requests++;
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
  const counts: { last: ICount | null } = { last: null };
  search.changed.connect((_, count) => {
    counts.last = count;
  });
  return { server, sources, search, grow, counts };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('counts matches in new data and in new logs', async () => {
  const { search, grow, counts } = setUp({ 'w:0': 'x a x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  expect(counts.last).toMatchObject({ total: 2, more: false });
  grow('w:0', 'x a x b x');
  grow('w:1', 'x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(counts.last).toMatchObject({ total: 4, more: false });
});

test('counts a match that was written in two parts once', async () => {
  const { search, grow, counts } = setUp({ 'w:0': 'a xx' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  expect(counts.last?.total).toBe(1);
  grow('w:0', 'a xxxx b');
  search.grown();
  await vi.runAllTimersAsync();
  expect(counts.last?.total).toBe(1);
  grow('w:0', 'a xxxx b x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(counts.last?.total).toBe(2);
});

test('sends no request while the log does not grow and limits the rate for a fast log', async () => {
  const { search, grow, server } = setUp({ 'w:0': 'x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  const before = server.requests;
  search.grown();
  await vi.runAllTimersAsync();
  expect(server.requests).toBe(before);
  for (let i = 2; i < 100; i++) {
    grow('w:0', 'x '.repeat(i));
    search.grown();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(server.requests - before).toBeLessThanOrEqual(1);
});

test('reports the number of the current match, also after wrapping around', async () => {
  const { search, sources, counts } = setUp({ 'w:0': 'x a x b x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  const [source] = sources;
  expect(source).toBeDefined();
  const from = new Map(source === undefined ? [] : [[source, 3]]);
  expect((await search.next(from, false))?.hit.offset).toBe(4);
  expect(counts.last).toMatchObject({ current: 2, total: 3 });
  const end = new Map(source === undefined ? [] : [[source, 9]]);
  expect((await search.next(end, false))?.hit.offset).toBe(0);
  expect(counts.last).toMatchObject({ current: 1 });
});

test('reports a failed search and continues counting when the log grows', async () => {
  const { search, grow, server, counts } = setUp({ 'w:0': 'x' });
  server.failure = new Error('Too many searches.');
  search.start(QUERY);
  await vi.advanceTimersByTimeAsync(10);
  expect(counts.last?.message).toBe('Too many searches.');
  await expect(search.around(QUERY, new Map(), false)).rejects.toThrow('Too many');
  server.failure = null;
  grow('w:0', 'x x');
  search.grown();
  await vi.runAllTimersAsync();
  expect(counts.last).toMatchObject({ message: '', total: 2 });
});

test('sends no request after dispose', async () => {
  const { search, grow, server } = setUp({ 'w:0': 'x' });
  search.start(QUERY);
  await vi.runAllTimersAsync();
  grow('w:0', 'x x');
  search.grown();
  search.dispose();
  const before = server.requests;
  await vi.runAllTimersAsync();
  expect(server.requests).toBe(before);
  expect(vi.getTimerCount()).toBe(0);
});

test('highlights plain text literally and nothing for an invalid expression', () => {
  const plain = markOf({ text: 'a.b', regex: false, matchCase: false });
  expect('A.B axb'.replace(plain ?? /$/, '-')).toBe('- axb');
  expect(markOf({ text: '(', regex: true, matchCase: true })).toBeNull();
  expect(markOf(null)).toBeNull();
  expect(markOf(ERROR_QUERY)?.test('ValueError: no')).toBe(true);
});
