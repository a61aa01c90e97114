/** Columns of the task table. */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';
import { ENDED, type ITask } from '../../api/record';
import { StateIcon } from '../icons';
import { Link } from '../link';
import { cores, exitText, shortContainer } from './tasks';
import { duration, memory, formatTime, percent } from '../../format';
import { coresText } from '../labels';

/** One column; hidden if `text` is empty for all rows. `cell` renders it. */
export interface IColumn {
  key: string;
  head: string;
  number?: boolean;
  text: (task: ITask) => string;
  cell?: (task: ITask, text: string) => React.ReactNode;
}

/** The columns that have a value in these rows. */
export function usedColumns(columns: readonly IColumn[], rows: readonly ITask[]): IColumn[] {
  return columns.filter(
    ({ key, text }) => key === 'task' || key === 'state' || rows.some(task => text(task) !== '')
  );
}

/**
 * All columns.
 *
 * @param now - The time for which the job is shown.
 * @param linked - Whether links may be followed; false for untrusted notebooks.
 */
export function allColumns(trans: TranslationBundle, now: number, linked: boolean): IColumn[] {
  const known = (value: number | null, words: (value: number) => string): string =>
    value === null ? '' : words(value);
  return [
    {
      key: 'task',
      head: trans.__('Task'),
      text: task => (/:\d+$/.test(task.task) ? task.task : `${task.role}:${task.index}`)
    },
    {
      key: 'state',
      head: trans.__('State'),
      text: task => task.state,
      cell: task => (
        <span className="jp-Submarine-state">
          <StateIcon state={task.state} /> {task.state}
        </span>
      )
    },
    {
      key: 'progress',
      head: trans.__('Progress'),
      text: ({ progress, state }) =>
        progress === null || ENDED.has(state) ? '' : percent(Math.min(Math.max(progress, 0), 1)),
      cell: ({ progress }, text) => text && <Bar done={progress ?? 0} text={text} />
    },
    { key: 'host', head: trans.__('Host'), text: task => task.host ?? '' },
    {
      key: 'container',
      head: trans.__('Container'),
      text: task => shortContainer(task.container_id ?? ''),
      cell: (task, text) => (
        <Link url={linked ? task.log_url : null} title={task.container_id ?? ''}>
          <span title={task.container_id ?? ''}>{text}</span>
        </Link>
      )
    },
    {
      key: 'started',
      head: trans.__('Started'),
      text: task => known(task.started, time => formatTime(time, now))
    },
    {
      key: 'finished',
      head: trans.__('Finished'),
      text: task => known(task.finished, time => formatTime(time, now))
    },
    {
      key: 'ran',
      head: trans.__('Ran'),
      number: true,
      text: ({ started, finished }) =>
        started === null || finished === null ? '' : duration(finished - started)
    },
    {
      key: 'cpu',
      head: trans.__('CPU'),
      number: true,
      text: task => known(cores(task, now), value => coresText(round(value), trans))
    },
    {
      key: 'memory',
      head: trans.__('Memory'),
      number: true,
      text: task => (ENDED.has(task.state) ? '' : known(task.memory_now, memory))
    },
    {
      key: 'peak',
      head: trans.__('Peak'),
      number: true,
      text: task => (task.memory_peak ? memory(task.memory_peak) : '')
    },
    {
      key: 'gpus',
      head: trans.__('GPUs'),
      number: true,
      text: ({ gpus }) => (gpus.length ? String(gpus.length) : ''),
      cell: ({ gpus }, text) => <span title={gpus.join('\n')}>{text}</span>
    },
    {
      key: 'gpu',
      head: trans.__('GPU use'),
      number: true,
      text: task =>
        [known(task.gpu_percent, value => `${value.toFixed(0)} %`), known(task.gpu_memory, memory)]
          .filter(Boolean)
          .join(', ')
    },
    {
      key: 'restarts',
      head: trans.__('Restarts'),
      number: true,
      text: task => (task.restarts ? String(task.restarts) : '')
    },
    {
      key: 'exit',
      head: trans.__('Exit'),
      number: true,
      text: task => (ENDED.has(task.state) ? exitText(task) : '')
    }
  ];
}

function round(value: number): number {
  return value < 0.095 ? Math.round(value * 100) / 100 : Math.round(value * 10) / 10;
}

function Bar(props: { done: number; text: string }): React.ReactElement {
  const width = `${Math.min(Math.max(props.done, 0), 1) * 100}%`;
  return (
    <span className="jp-Submarine-state">
      <span className="jp-Submarine-track jp-mod-small" aria-hidden="true">
        <span className="jp-Submarine-done" style={{ width }} />
      </span>
      {props.text}
    </span>
  );
}
