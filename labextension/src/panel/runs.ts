/**
 * Jobs of one run of a workflow stand together in the panel, under a heading. Where each row stands
 * is known without drawing it, so that 10,000 of them can be placed unseen. No DOM.
 */

import type { IJobRow } from '../api/list_types';

/** Pixels; every row has the same height. */
export const ROW_HEIGHT = 46;
export const HEADING_HEIGHT = 26;

/** What stands above the jobs of a run. */
export interface IHeading {
  readonly key: string;
  readonly top: number;
  readonly workflow: string;
  readonly run: string;
  /** Jobs of the run that are known here. */
  readonly count: number;
}

export interface IPlaces {
  /** The upper edge of each row. */
  readonly tops: readonly number[];
  readonly headings: readonly IHeading[];
  readonly height: number;
}

/** The run that a job belongs to; empty for one that no workflow started. */
export function runOf({ workflow, workflow_run: run }: IJobRow): string {
  return workflow === '' ? '' : JSON.stringify([workflow, run]);
}

/** The same rows, those of a run together where its first one stands. */
export function together(rows: readonly IJobRow[]): IJobRow[] {
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

/** Where rows that stand together are placed. */
export function places(rows: readonly IJobRow[]): IPlaces {
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

/** How many of `tops`, which grow, are not below `edge`. */
export function above(tops: readonly number[], edge: number): number {
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
