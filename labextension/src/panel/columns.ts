/** The columns of the jobs panel: values of a job, in the second line of its row. No DOM. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';
import { percent } from '../format';

/** The text of a column; empty if the job does not have the value. */
type Column = (row: IJobRow, trans: TranslationBundle) => string;

/** State, with the progress of an active job. */
const state: Column = row =>
  row.progress === null || ENDED.has(row.state)
    ? row.state
    : `${row.state} ${percent(row.progress)}`;

/** The columns, in their order. A job with a `detail` shows it after the first one instead. */
const COLUMNS: readonly Column[] = [
  state,
  (row, trans) => (row.tasks > 1 ? trans._n('%1 task', '%1 tasks', row.tasks) : ''),
  (row, trans) => (row.gpus > 0 ? trans._n('%1 GPU', '%1 GPUs', row.gpus) : ''),
  row => row.queue ?? ''
];

/** The second line of a row: `RUNNING 42 % · 4 tasks · 2 GPUs`. */
export function columnsText(row: IJobRow, trans: TranslationBundle): string {
  const texts =
    row.detail === '' ? COLUMNS.map(column => column(row, trans)) : [state(row, trans), row.detail];
  return texts.filter(Boolean).join(' · ');
}
