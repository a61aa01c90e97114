/** The traceback of a failed program. A frame in a cell links to the line in the cell. */

import React from 'react';
import type { IFrame } from '../../api/record';
import type { IJobView } from '../../api/types';
import { CommandIDs } from '../../tokens';
import { useCard } from '../context';

const MAX_FRAMES = 20;

export function FailureBox(props: { view: IJobView }): React.ReactElement | null {
  const { trans } = useCard();
  const { failure, tasks } = props.view.record;
  if (!failure) {
    return null;
  }
  const rank = failure.rank;
  const several = tasks.length > 1 || rank !== null;
  const failed = several ? tasks.find(task => task.state === 'FAILED')?.task : undefined;
  const { first, left, last } = fold(failure.frames);
  return (
    <div className="jp-Submarine-failure" role="group" aria-label={trans.__('Traceback')}>
      <div className="jp-Submarine-label">
        {failed && rank !== null
          ? trans.__('Traceback of %1, rank %2, most recent call last', failed, rank)
          : failed
            ? trans.__('Traceback of %1, most recent call last', failed)
            : trans.__('Traceback, most recent call last')}
      </div>
      <ol>
        {first.map((frame, n) => (
          <Frame key={n} frame={frame} view={props.view} />
        ))}
        {left > 0 && <li className="jp-Submarine-quiet">{trans.__('… %1 more frames …', left)}</li>}
        {last.map((frame, n) => (
          <Frame key={n} frame={frame} view={props.view} />
        ))}
      </ol>
      <pre className="jp-Submarine-exception">
        <strong>{failure.type}</strong>
        {failure.message ? `: ${failure.message}` : ''}
      </pre>
      {failed && <LogLink job={props.view.record.job_id} task={failed} />}
      {failure.text && (
        <details>
          <summary>{trans.__('Original traceback')}</summary>
          <pre>{failure.text}</pre>
        </details>
      )}
    </div>
  );
}

/** A button for the log of the failed task. */
function LogLink(props: { job: string; task: string }): React.ReactElement | null {
  const { trans, has, run } = useCard();
  const { job, task } = props;
  return has(CommandIDs.logs) ? (
    <button
      type="button"
      className="jp-Submarine-link jp-Submarine-failureLog"
      onClick={() => void run(CommandIDs.logs, { job, task })}
    >
      {trans.__('Log of %1', task)}
    </button>
  ) : null;
}

function Frame(props: { frame: IFrame; view: IJobView }): React.ReactElement {
  const { trans, has, run } = useCard();
  const { frame, view } = props;
  const [problem, setProblem] = React.useState('');
  const line = frame.cell_line ?? frame.line;
  const place = frame.cell
    ? trans.__('Cell %1, line %2', frame.cell, line)
    : trans.__('%1, line %2', frame.file, frame.line);
  const cell = frame.cell_id;
  return (
    <li className={frame.cell ? 'jp-mod-cell' : ''}>
      {cell && has(CommandIDs.revealCell) ? (
        <button
          type="button"
          className="jp-Submarine-link"
          title={trans.__('Show the cell and mark the line')}
          onClick={() =>
            void run(CommandIDs.revealCell, { notebook: view.notebook, cell, line }).then(
              () => {
                setProblem('');
              },
              (reason: unknown) => {
                setProblem(reason instanceof Error ? reason.message : String(reason));
              }
            )
          }
        >
          {place}
        </button>
      ) : (
        <span>{place}</span>
      )}
      {frame.function && (
        <span className="jp-Submarine-quiet"> {trans.__('in %1', frame.function)}</span>
      )}
      {problem && <span role="alert"> {problem}</span>}
      {frame.code.trim() && <pre>{frame.code.trim()}</pre>}
    </li>
  );
}

/** The first and last frames of a long traceback (a recursion). */
export function fold(frames: readonly IFrame[]): {
  first: readonly IFrame[];
  left: number;
  last: readonly IFrame[];
} {
  const half = MAX_FRAMES / 2;
  return frames.length <= MAX_FRAMES
    ? { first: frames, left: 0, last: [] }
    : {
        first: frames.slice(0, half),
        left: frames.length - MAX_FRAMES,
        last: frames.slice(-half)
      };
}
