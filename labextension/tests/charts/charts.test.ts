import { expect, test } from 'vitest';
import type { ISeries } from '../../src/api/types';
import { measures, lineSummary } from '../../src/charts/measures';
import { extent, nearest, strokes, thin, ticks, timeTicks } from '../../src/charts/scale';

test.each([
  [0, 97, [0, 50, 100]],
  [0, 1.87, [0, 1, 2]],
  [0, 0, [0, 0.5, 1]],
  [5, 5, [5, 7.5, 10]],
  [-3, 3, [-5, 0, 5]]
])('ticks from %d to %d are round numbers and cover both ends', (low, high, expected) => {
  const found = ticks(low, high, 3);
  expect(found[0]).toBeLessThanOrEqual(low);
  expect(found.at(-1)).toBeGreaterThanOrEqual(high);
  expect(found.length).toBeLessThanOrEqual(6);
  expect(found).toEqual(expected);
});

test('creates ticks for numbers of any magnitude', () => {
  for (const [low, high] of [
    [1e-12, 2e-12],
    [0, 1e15],
    [-1e15, 1e15],
    [0.1, 0.1000001]
  ] as const) {
    const found = ticks(low, high, 3);
    expect(found.every(Number.isFinite)).toBe(true);
    expect(found.length).toBeLessThan(12);
    expect(found.at(-1)).toBeGreaterThanOrEqual(high - 1e-12);
  }
});

test('time ticks have round steps', () => {
  expect(timeTicks(95, 4)).toEqual([0, 30, 60, 90]);
  expect(timeTicks(4000, 4)).toEqual([0, 1800, 3600]);
  expect(timeTicks(1e8, 4).length).toBeLessThanOrEqual(4);
});

test('a reduced curve keeps the peaks, the ends and the gaps', () => {
  const t = Array.from({ length: 5000 }, (_, n) => n);
  const v = t.map(n => (n === 1234 ? 99 : n === 4321 ? -99 : n >= 2000 && n < 3000 ? null : 1));
  const found = thin({ t, v }, 100);
  expect(found.t.length).toBeLessThanOrEqual(100);
  expect(extent(found.v)).toEqual([-99, 99]);
  expect([found.t[0], found.t.at(-1)]).toEqual([0, 4999]);
  expect(found.v).toContain(null);
  expect([...found.t].sort((a, b) => a - b)).toEqual(found.t);
  const few = { t: [1, 2], v: [1, null] };
  expect(thin(few, 100)).toBe(few);
});

test('a curve with gaps has one stroke between two gaps', () => {
  const same = (x: number): number => x;
  expect(strokes({ t: [0, 1, 2, 3], v: [1, 2, null, NaN] }, same, same)).toEqual([
    '0.0,1.0 1.0,2.0'
  ]);
  expect(strokes({ t: [0, 1, 2], v: [1, null, 3] }, same, same)).toEqual(['0.0,1.0', '2.0,3.0']);
});

test('finds the nearest point', () => {
  const t = [0, 10, 20];
  expect([-5, 4, 6, 14, 99].map(time => nearest(t, time))).toEqual([0, 0, 1, 1, 2]);
  expect(nearest([], 1)).toBe(-1);
});

function series(name: string, changes: Partial<ISeries> = {}): ISeries {
  return {
    task: 'worker:0',
    attempt: 'e1-a1',
    name,
    kind: 'resource',
    unit: '',
    t: [0, 2],
    v: [50, 150],
    ...changes
  };
}

test('creates one chart per measure, scalars first, with one line per task', () => {
  const found = measures([
    series('memory'),
    series('cpu_percent', { attempt: 'e1-a2', t: [10, 12] }),
    series('cpu_percent'),
    series('cpu_percent', { task: 'worker:10' }),
    series('cpu_percent', { task: 'worker:2' }),
    series('loss', { kind: 'scalar' }),
    // A scalar of a program may have the name of a resource.
    series('memory', { kind: 'scalar' }),
    series('gpu_percent', { v: [null, null] })
  ]);
  expect(found.map(one => one.key)).toEqual([
    'scalar loss',
    'scalar memory',
    'resource cpu_percent',
    'resource memory'
  ]);
  const cpu = found[2];
  expect(cpu?.lines.map(line => line.task)).toEqual(['worker:0', 'worker:2', 'worker:10']);
  // The unit is cores.
  expect(cpu?.lines[0]?.curves).toEqual([
    { t: [0, 2], v: [0.5, 1.5] },
    { t: [10, 12], v: [0.5, 1.5] }
  ]);
});

test('summarizes the values of a line', () => {
  expect(lineSummary({ task: 'x', curves: [{ t: [0, 1, 2], v: [4, null, 2] }] })).toEqual({
    last: 2,
    mean: 3,
    low: 2,
    high: 4
  });
});
