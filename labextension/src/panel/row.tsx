/** One job as a row of the panel. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import React from 'react';
import { ENDED } from '../api/job_types';
import type { IJobRow } from '../api/list_types';
import { StateIcon } from '../card/icons';
import { percent, duration, ticking } from '../card/words';

/** Pixels; every row has the same height, so that 10,000 of them can be placed unseen. */
export const ROW_HEIGHT = 46;

export interface IRowProps {
  readonly row: IJobRow;
  readonly id: string;
  readonly index: number;
  readonly total: number;
  readonly active: boolean;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly trans: TranslationBundle;
  readonly onOpen: (index: number) => void;
  readonly onMenu: (index: number, x: number, y: number) => void;
}

/** How long it has been going, or went. */
export function elapsed(row: IJobRow, now: number): number | null {
  const from = row.started ?? row.created;
  if (from === null) {
    return null;
  }
  const to = row.finished ?? (ENDED.has(row.state) ? null : now);
  return to === null ? null : Math.max(0, to - from);
}

/** Whole seconds while it counts, as precise as the card afterwards. */
function timeOf(row: IJobRow, time: number | null): string {
  if (time === null) {
    return '';
  }
  return ENDED.has(row.state) ? duration(time) : ticking(time);
}

export function JobRow(props: IRowProps): React.ReactElement {
  const { row, index, now } = props;
  const time = elapsed(row, now);
  const menu = (event: React.MouseEvent) => {
    event.preventDefault();
    event.stopPropagation();
    props.onMenu(index, event.clientX, event.clientY);
  };
  return (
    <div
      id={props.id}
      role="option"
      aria-selected={props.active}
      aria-setsize={props.total}
      aria-posinset={index + 1}
      className="jp-Submarine-jobs-row"
      style={{ top: index * ROW_HEIGHT, height: ROW_HEIGHT }}
      title={`${row.job_id}\n${row.detail}`}
      onClick={() => {
        props.onOpen(index);
      }}
      onContextMenu={menu}
    >
      <StateIcon state={row.state} />
      <span className="jp-Submarine-jobs-name">{row.name || row.job_id}</span>
      <span className="jp-Submarine-jobs-time">{timeOf(row, time)}</span>
      <span className="jp-Submarine-jobs-menu" aria-hidden="true" onClick={menu}>
        <ellipsesIcon.react tag="span" width="16px" />
      </span>
      <span className="jp-Submarine-jobs-detail">{detailOf(props)}</span>
      {row.progress !== null && !ENDED.has(row.state) && (
        <span className="jp-Submarine-jobs-progress" aria-hidden="true">
          <span style={{ width: percent(Math.min(1, Math.max(0, row.progress))) }} />
        </span>
      )}
    </div>
  );
}

/** State, progress and why: `RUNNING 42 % · 4 tasks · 2 GPUs`. */
function detailOf({ row, trans }: IRowProps): string {
  const parts: string[] = [row.state];
  if (row.progress !== null && !ENDED.has(row.state)) {
    parts[0] = `${row.state} ${percent(row.progress)}`;
  }
  if (row.detail !== '') {
    parts.push(row.detail);
    return parts.join(' · ');
  }
  if (row.tasks > 1) {
    parts.push(trans._n('%1 task', '%1 tasks', row.tasks));
  }
  if (row.gpus > 0) {
    parts.push(trans._n('%1 GPU', '%1 GPUs', row.gpus));
  }
  if (row.queue !== null && row.queue !== '') {
    parts.push(row.queue);
  }
  return parts.join(' · ');
}
