import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ISearchHit } from '../../src/api/types';
import { LogSearch, type ICount } from '../../src/log/search/search';
import { markOf, ERROR_QUERY, type IQuery } from '../../src/log/search/search_query';
import { LogSource } from '../../src/log/lines/sources';
import type { IRest } from '../../src/tokens';

const QUERY: IQuery = { text: 'x+', regex: true, matchCase: true };

/** Searches texts in memory; like the server, it returns complete matches from an offset on. */
class FakeServer {
  readonly texts = new Map<string, string>();
  /** Times of the characters. */
  readonly times = new Map<string, number[]>();
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
        text: match[0],
        time: this.times.get(where.task)?.[match.index] ?? 0
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
      sources.push(new LogSource(where, text.length));
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

test('goes from match to match of several logs in order of time', async () => {
  const { server, search, sources, counts } = setUp({ 'w:0': 'x x     ', 'w:1': 'x x x' });
  server.times.set('w:0', [2, 2, 9]);
  server.times.set('w:1', [1, 1, 5, 5, 9]);
  search.start(QUERY);
  await vi.runAllTimersAsync();
  let from = new Map(sources.map(source => [source, 0]));
  const order: [string, number, number | null | undefined][] = [];
  for (let i = 0; i < 5; i++) {
    const found = await search.next(from, false);
    if (found !== null) {
      order.push([found.source.task, found.hit.offset, counts.last?.current]);
      from = new Map(from).set(found.source, found.hit.offset + 1);
    }
  }
  expect(order).toEqual([
    ['w:1', 0, 1],
    ['w:0', 0, 2],
    ['w:1', 2, 3],
    ['w:0', 2, 4],
    ['w:1', 4, 5]
  ]);
  const back = await search.next(from, true);
  expect([back?.source.task, back?.hit.offset]).toEqual(['w:1', 4]);
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
