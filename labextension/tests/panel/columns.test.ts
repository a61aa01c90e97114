import { nullTranslator } from '@jupyterlab/translation';
import { describe, expect, it } from 'vitest';
import type { IJobRow } from '../../src/api/types';
import { columnsText } from '../../src/panel/columns';

const trans = nullTranslator.load('jupyterlab');
const JOB = {
  state: 'RUNNING',
  progress: 0.42,
  tasks: 4,
  gpus: 1,
  queue: 'ml',
  detail: ''
} as IJobRow;

describe('the second line of a job', () => {
  it.each<[Partial<IJobRow>, string]>([
    [{}, 'RUNNING 42 % · 4 tasks · 1 GPU · ml'],
    [{ progress: null, tasks: 1, gpus: 0, queue: null }, 'RUNNING'],
    [{ state: 'SUCCEEDED', queue: '' }, 'SUCCEEDED · 4 tasks · 1 GPU'],
    [{ detail: 'Queue full.' }, 'RUNNING 42 % · Queue full.']
  ])('is formatted with %o', (changed, text) => {
    expect(columnsText({ ...JOB, ...changed }, trans).replace(/\u202f|\u00a0/g, ' ')).toBe(text);
  });
});
