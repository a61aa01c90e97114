import { expect, test } from 'vitest';
import type { IJobRow } from '../../src/api/types';
import { matches } from '../../src/panel/model';
import {
  countAbove,
  HEADING_HEIGHT,
  layoutRows,
  ROW_HEIGHT,
  groupRuns
} from '../../src/panel/layout';

function row(job_id: string, workflow = '', run = '', node = ''): IJobRow {
  return {
    ...{ job_id, name: job_id, state: 'RUNNING', user: 'ada', queue: 'ml', backend: 'yarn' },
    ...{ created: 1, started: null, finished: null, progress: null, tasks: 1, gpus: 0 },
    ...{ detail: '', application_id: null, notebook: '', cell_id: '' },
    ...{ workflow, workflow_run: run, workflow_node: node }
  };
}

const rows = [
  row('a', 'nightly', 'nightly-2', 'train'),
  row('b'),
  row('c', 'nightly', 'nightly-1', 'train'),
  row('d', 'nightly', 'nightly-2', 'features'),
  row('e')
];

test('groups the jobs of a run at the position of the first one', () => {
  expect(groupRuns(rows).map(one => one.job_id)).toEqual(['a', 'd', 'b', 'c', 'e']);
  expect(groupRuns([])).toEqual([]);
});

test('does not group runs of different workflows with the same name', () => {
  const found = layoutRows(groupRuns([row('a', 'x', '1'), row('b', 'y', '1'), row('c', 'x', '1')]));
  expect(found.headings.map(one => [one.workflow, one.count])).toEqual([
    ['x', 2],
    ['y', 1]
  ]);
});

test('puts a heading above the jobs of a run and computes all positions', () => {
  const found = layoutRows(groupRuns(rows));
  const h = HEADING_HEIGHT;
  const r = ROW_HEIGHT;
  expect(found.tops).toEqual([h, h + r, h + 2 * r, 2 * h + 3 * r, 2 * h + 4 * r]);
  expect(found.headings.map(one => [one.run, one.top, one.count])).toEqual([
    ['nightly-2', 0, 2],
    ['nightly-1', h + 3 * r, 1]
  ]);
  expect(found.height).toBe(2 * h + 5 * r);
});

test('adds no headings without workflows', () => {
  const plain = [row('a'), row('b')];
  expect(groupRuns(plain)).toEqual(plain);
  expect(layoutRows(plain)).toEqual({
    tops: [0, ROW_HEIGHT],
    headings: [],
    height: 2 * ROW_HEIGHT
  });
});

test('finds the row at a vertical position among many', () => {
  const { tops } = layoutRows(Array.from({ length: 10_000 }, (_, n) => row(String(n))));
  expect(countAbove(tops, 0)).toBe(1);
  expect(countAbove(tops, 5 * ROW_HEIGHT - 1)).toBe(5);
  expect(countAbove(tops, 1e9)).toBe(10_000);
  expect(countAbove([], 10)).toBe(0);
});

test('matches a job by its workflow and by its run', () => {
  const job = row('fit-1', 'nightly', 'nightly-20261122-0230', 'train');
  expect(matches(job, { text: 'NIGHTLY', group: 'all' })).toBe(true);
  expect(matches(job, { text: '1122-0230', group: 'all' })).toBe(true);
  expect(matches(job, { text: 'weekly', group: 'all' })).toBe(false);
});
