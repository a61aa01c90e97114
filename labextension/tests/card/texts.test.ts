import { expect, test } from 'vitest';
import { elapsed, elapsedText, queued, barWidths, phaseSpans } from '../../src/card/details/phases';
import { coresText, notableEvents } from '../../src/card/labels';
import { allColumns } from '../../src/card/tasks/task_columns';
import {
  byRole,
  cores,
  ordered,
  page,
  shortContainer,
  byRelevance
} from '../../src/card/tasks/tasks';
import { duration, figure, memory, formatTime, size, runningDuration } from '../../src/format';
import { record, task, trans } from './fakes';

test.each([
  [0.44, '0.4 s'],
  [12, '12 s'],
  [185, '3 min 05 s'],
  [7620, '2 h 07 min'],
  [273600, '3 d 04 h'],
  [59.7, '1 min 00 s'],
  [-3, '0.0 s'],
  [null, '-'],
  [NaN, '-']
])('formats %j seconds as %s, as in the HTML card', (seconds, text) => {
  expect(duration(seconds)).toBe(text);
});

test('formats cores with the singular of one', () => {
  expect([0.04, 0.4, 1, 1.1, 2].map(value => coresText(value, trans))).toEqual([
    '0.04 cores',
    '0.4 cores',
    '1 core',
    '1.1 cores',
    '2 cores'
  ]);
});

test('formats a running duration without tenths', () => {
  expect([0.9, 9.97, 59.7, 61.9].map(runningDuration)).toEqual([
    '0 s',
    '9 s',
    '59 s',
    '1 min 01 s'
  ]);
});

test('formats sizes, memory and numbers', () => {
  expect([812, 3400, 1.2e6, 250e9].map(size)).toEqual(['812 B', '3.4 kB', '1.2 MB', '250 GB']);
  expect([812, 1024, 1230].map(memory)).toEqual(['812 MiB', '1 GiB', '1.2 GiB']);
  expect([0.123456, 1234567, 0.00001, 0, NaN].map(figure)).toEqual([
    '0.1235',
    '1.23e+6',
    '1.00e-5',
    '0',
    '-'
  ]);
});

test('formats an invalid time as a hyphen', () => {
  expect(formatTime(1e300)).toBe('-');
  expect(formatTime(null)).toBe('-');
  expect(formatTime(0, 1)).toMatch(/^\d\d:\d\d:\d\d$/);
  expect(formatTime(0, 1e9)).toMatch(/^19(69|70)-\d\d-\d\d /);
});

test('the duration ends now for a running job and at the end for an ended one', () => {
  expect(elapsed(record(), 1060)).toBe(60);
  expect(elapsed(record({ finished: 1030, state: 'SUCCEEDED' }), 9999)).toBe(30);
  expect(elapsed(record({ created: null }), 1060)).toBeNull();
  // The end is not known: there is no duration.
  expect(elapsed(record({ state: 'LOST' }), 1060)).toBeNull();
  expect(elapsedText(record(), 1003.9)).toBe('3 s');
  expect(elapsedText(record({ finished: 1003.9, state: 'FAILED' }), 9999)).toBe('3.9 s');
  expect(elapsedText(record({ created: null }), 1060)).toBe('');
  // The local clock is behind the clock of the cluster.
  expect(elapsed(record(), 900)).toBe(0);
});

test('the queue time is the sum of all queue phases', () => {
  const phases = [
    { name: 'queue', start: 0, end: 5 },
    { name: 'run', start: 5, end: 9 },
    { name: 'queue', start: 9, end: null }
  ];
  expect(queued(record({ phases }), 20)).toBe(16);
  expect(queued(record({ phases: [] }), 20)).toBeNull();
});

test('overlapping phases count the common time once', () => {
  const phases = [
    { name: 'run', start: 10, end: null },
    { name: 'first_line', start: 8, end: 12 },
    { name: 'start', start: 0, end: 8 }
  ];
  const found = phaseSpans(record({ phases }), 20);
  expect(found.map(one => [one.name, one.seconds, one.ownSeconds, one.open])).toEqual([
    ['start', 8, 8, false],
    ['first_line', 4, 4, false],
    ['run', 10, 8, true]
  ]);
  expect(barWidths(found).reduce((a, b) => a + b)).toBeCloseTo(100);
});

test('a phase without length is visible, and phases without length share the bar', () => {
  const phases = [
    { name: 'upload', start: 0, end: 0 },
    { name: 'run', start: 0, end: 1000 }
  ];
  const found = barWidths(phaseSpans(record({ phases, finished: 1000 }), 0));
  expect(found[0]).toBeGreaterThan(0.5);
  const none = phaseSpans(record({ phases: phases.slice(0, 1), finished: 0 }), 0);
  expect(barWidths(none)).toEqual([100]);
});

test('a job that has ended has no open phase', () => {
  const ended = record({ state: 'LOST', finished: 1030 });
  expect(phaseSpans(ended, 9999).map(one => one.open)).toEqual([false, false, false]);
});

test('orders tasks by role and index, the role of the first log first', () => {
  const tasks = [
    task(10),
    task(9),
    task(1, { task: 'ps:1', role: 'ps' }),
    task(0, { task: 'chief:0', role: 'chief' })
  ];
  expect(ordered(tasks, 'chief:0').map(one => one.task)).toEqual([
    'chief:0',
    'worker:9',
    'worker:10',
    'ps:1'
  ]);
});

test('summarizes a role by state and resource usage', () => {
  const tasks = [
    task(0, { progress: 0.2, memory_peak: 100 }),
    task(1, { progress: 0.4, memory_peak: 2048, gpu_percent: 90 }),
    task(2, { state: 'FAILED', progress: 0.9, gpu_percent: 5, memory_peak: null })
  ];
  const [worker] = byRole(tasks);
  expect(worker?.states).toEqual([
    { state: 'FAILED', count: 1 },
    { state: 'RUNNING', count: 2 }
  ]);
  expect(worker?.summary).toBe('20 % – 40 %, ≤ 2 GiB, GPU 90 %');
});

test('orders failed tasks first, then waiting ones, in pages of 50', () => {
  const tasks = Array.from({ length: 120 }, (_, n) =>
    task(n, n === 77 ? { state: 'FAILED' } : n === 100 ? { state: 'PENDING' } : {})
  );
  const rows = byRelevance(tasks);
  expect(rows.slice(0, 3).map(one => one.task)).toEqual(['worker:77', 'worker:100', 'worker:0']);
  expect(page(rows, 0).rows).toHaveLength(50);
  expect(page(rows, 2)).toMatchObject({ number: 2, pages: 3, from: 100 });
  expect(page(rows, 99).rows).toHaveLength(20);
  expect(page([], -1)).toMatchObject({ number: 0, pages: 1, rows: [] });
});

test('shortens container ids and averages used cores over the lifetime of a task', () => {
  expect(shortContainer('container_e17_1732_0001_01_000003')).toBe('000003');
  expect(shortContainer('pid-77')).toBe('pid-77');
  expect(cores(task(0), 1040)).toBe(1);
  expect(cores(task(0), 1011)).toBeNull();
});

test('restarts and warnings are notable events, expected events are not', () => {
  const event = { seq: 0, time: 0, writer: 'agent', reason: null, detail: 'x', task: null };
  const events = [
    { ...event, kind: 'task', state: null },
    { ...event, kind: 'state', state: 'RUNNING' as const },
    { ...event, kind: 'state', state: 'RESTARTING' as const },
    { ...event, kind: 'warning', state: null },
    { ...event, kind: 'warning', state: null, detail: '' }
  ];
  expect(notableEvents(events)).toEqual([events[2], events[3]]);
});

test('counts GPUs, including the one with the number 0', () => {
  const column = allColumns(trans, 0, true).find(({ key }) => key === 'gpus');
  const texts = [[], ['0'], ['GPU-8f3a', '3']].map(gpus => column?.text(task(0, { gpus })));
  expect(texts).toEqual(['', '1', '2']);
});
