/**
 * Layout of the job list: jobs of one workflow run are grouped under a heading. Positions are
 * calculated without the DOM, for 10,000 and more rows.
 */

import type { IJobRow } from '../api/types';

/** Heights in pixels. */
export const ROW_HEIGHT = 46;
export const HEADING_HEIGHT = 26;

/** The heading above the jobs of a run. */
export interface IHeading {
  readonly key: string;
  readonly top: number;
  readonly workflow: string;
  readonly run: string;
  /** Number of loaded jobs of the run. */
  readonly count: number;
}

export interface ILayout {
  /** Top of each row. */
  readonly tops: readonly number[];
  readonly headings: readonly IHeading[];
  readonly height: number;
}

/** Key of the workflow run of a job; empty if it was not started by a workflow. */
export function runOf({ workflow, workflow_run: run }: IJobRow): string {
  return workflow === '' ? '' : JSON.stringify([workflow, run]);
}

/** The rows with those of a run grouped at the position of its first one. */
export function groupRuns(rows: readonly IJobRow[]): IJobRow[] {
  const runs = new Map<string, IJobRow[]>();
  for (const row of rows) {
    const key = runOf(row) || row.job_id;
    const run = runs.get(key);
    if (run === undefined) {
      runs.set(key, [row]);
    } else {
      run.push(row);
    }
  }
  return [...runs.values()].flat();
}

/** The layout of grouped rows. */
export function layoutRows(rows: readonly IJobRow[]): ILayout {
  const tops: number[] = [];
  const headings: { -readonly [K in keyof IHeading]: IHeading[K] }[] = [];
  let top = 0;
  let last = '';
  for (const row of rows) {
    const key = runOf(row);
    const heading = headings[headings.length - 1];
    if (key !== '' && key !== last) {
      const { workflow, workflow_run: run } = row;
      headings.push({ key, top, workflow, run, count: 1 });
      top += HEADING_HEIGHT;
    } else if (key !== '' && heading !== undefined) {
      heading.count++;
    }
    last = key;
    tops.push(top);
    top += ROW_HEIGHT;
  }
  return { tops, headings, height: top };
}

/** Number of values in the sorted `tops` that are not below `edge`. */
export function countAbove(tops: readonly number[], edge: number): number {
  let from = 0;
  let to = tops.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((tops[middle] ?? 0) <= edge) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}
