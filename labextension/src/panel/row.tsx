/** One row of the job list. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import React from 'react';
import { ENDED } from '../api/record';
import type { IJobRow } from '../api/types';
import { StateIcon } from '../card/icons';
import { elapsedText } from '../card/details/phases';
import { percent } from '../format';
import { columnsText } from './columns';
import { type IHeading, HEADING_HEIGHT, ROW_HEIGHT } from './layout';

export interface IRowProps {
  readonly row: IJobRow;
  readonly id: string;
  readonly index: number;
  /** Offset from the start of the list in pixels. */
  readonly top: number;
  readonly total: number;
  readonly active: boolean;
  /** Seconds since the epoch. */
  readonly now: number;
  readonly trans: TranslationBundle;
  readonly onOpen: (index: number) => void;
  readonly onMenu: (index: number, x: number, y: number) => void;
}

export function JobRow(props: IRowProps): React.ReactElement {
  const { row, index, now } = props;
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
      className={`jp-Submarine-jobs-row${row.workflow === '' ? '' : ' jp-mod-inRun'}`}
      style={{ top: props.top, height: ROW_HEIGHT }}
      title={[row.job_id, row.workflow_run, row.detail].filter(Boolean).join('\n')}
      onClick={() => {
        props.onOpen(index);
      }}
      onContextMenu={menu}
    >
      <StateIcon state={row.state} />
      <span className="jp-Submarine-jobs-name">{row.name || row.job_id}</span>
      <span className="jp-Submarine-jobs-time">{elapsedText(row, now)}</span>
      <span className="jp-Submarine-jobs-menu" aria-hidden="true" onClick={menu}>
        <ellipsesIcon.react tag="span" width="16px" />
      </span>
      <span className="jp-Submarine-jobs-detail">
        {row.workflow !== '' && (
          <span className="jp-Submarine-jobs-node">
            <span className="jp-Submarine-unseen">{row.workflow} </span>
            {row.workflow_node || row.workflow}
          </span>
        )}
        {columnsText(row, props.trans)}
      </span>
      {row.progress !== null && !ENDED.has(row.state) && (
        <span className="jp-Submarine-jobs-progress" aria-hidden="true">
          <span style={{ width: percent(Math.min(1, Math.max(0, row.progress))) }} />
        </span>
      )}
    </div>
  );
}

/** The heading of a workflow run. Hidden from screen readers: the rows contain the same text. */
export function RunHeading(props: {
  heading: IHeading;
  trans: TranslationBundle;
}): React.ReactElement {
  const { workflow, run, top, count } = props.heading;
  return (
    <div
      aria-hidden="true"
      className="jp-Submarine-jobs-run"
      style={{ top, height: HEADING_HEIGHT }}
      title={run}
    >
      <span className="jp-Submarine-jobs-workflow">{workflow}</span>
      <span className="jp-Submarine-jobs-runId">{run.replace(`${workflow}-`, '')}</span>
      <span className="jp-Submarine-jobs-runCount">
        {props.trans._n('%1 job', '%1 jobs', count)}
      </span>
    </div>
  );
}

export function RowMenu(props: {
  /** Label with the name of the job. */
  label: string;
  /** Distance from the edges of the frame in pixels. */
  top: number;
  right: number;
  onOpen: () => void;
}): React.ReactElement {
  const open = (event: React.SyntheticEvent): void => {
    event.preventDefault();
    event.stopPropagation();
    props.onOpen();
  };
  return (
    <button
      type="button"
      className="jp-Submarine-jobs-menuButton"
      aria-haspopup="menu"
      aria-label={props.label}
      title={props.label}
      style={{ top: props.top, right: props.right }}
      onClick={open}
      onContextMenu={open}
      onKeyDown={event => {
        if (event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10')) {
          open(event);
        }
      }}
    >
      <ellipsesIcon.react tag="span" width="16px" />
    </button>
  );
}
