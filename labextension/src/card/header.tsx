/** The top of a card: state, name, id, times, status text, freshness and progress. */

import React from 'react';
import { ENDED } from '../api/record';
import { type IJobView } from '../api/types';
import { useCard } from './context';
import { cancellingText, type ICancellation } from './cancellation';
import { Pill, StatePill } from './icons';
import type { CardModel } from './model';
import { elapsedText, queued } from './details/phases';
import { duration, formatTime, percent, runningDuration } from '../format';

export function Head(props: {
  view: IJobView;
  now: number;
  cancellation: ICancellation | null;
}): React.ReactElement {
  const { trans } = useCard();
  const { record } = props.view;
  const ended = ENDED.has(record.state);
  const elapsed = elapsedText(record, props.now);
  const queueTime = queued(record, props.now);
  const words = ended ? duration : (seconds: number) => runningDuration(seconds);
  return (
    <div className="jp-Submarine-head">
      {props.cancellation && !props.cancellation.overdue ? (
        <Pill tone="quiet" words={trans.__('CANCELLING')} />
      ) : (
        <StatePill state={record.state} />
      )}
      <strong className="jp-Submarine-name">{record.name}</strong>
      <code className="jp-Submarine-id">{record.job_id}</code>
      <span className="jp-Submarine-times">
        {elapsed !== '' && <span title={trans.__('Time from submission to end')}>{elapsed}</span>}
        {queueTime !== null && (
          <span className="jp-Submarine-quiet"> · {trans.__('queued %1', words(queueTime))}</span>
        )}
      </span>
    </div>
  );
}

/** The workflow, run and node that started the job. */
export function Origin({ view }: { view: IJobView }): React.ReactElement | null {
  const { trans } = useCard();
  const { workflow, workflow_run: run, workflow_node: node } = view.record;
  const parts = [workflow, run && trans.__('run %1', run), node].filter(Boolean);
  return workflow ? (
    <p className="jp-Submarine-quiet jp-Submarine-small jp-Submarine-origin">{parts.join(' · ')}</p>
  ) : null;
}

export function StatusText(props: {
  view: IJobView;
  now: number;
  cancellation: ICancellation | null;
}): React.ReactElement {
  const { trans } = useCard();
  const { view } = props;
  if (props.cancellation) {
    return (
      <p className="jp-Submarine-sentence">
        {cancellingText(view, props.cancellation, props.now, trans)}
      </p>
    );
  }
  const advice = ENDED.has(view.record.state) && view.record.state !== 'SUCCEEDED';
  return (
    <p className="jp-Submarine-sentence">
      {view.status}
      {advice && view.advice && <span className="jp-Submarine-advice"> {view.advice}</span>}
    </p>
  );
}

/** Announce changes of the state to screen readers; the initial state is not announced. */
export function Announcer(props: { view: IJobView; cancellation: boolean }): React.ReactElement {
  const { trans } = useCard();
  const { record } = props.view;
  const state = props.cancellation ? trans.__('CANCELLING') : record.state;
  const before = React.useRef(state);
  const [announcement, announce] = React.useState('');
  React.useEffect(() => {
    if (before.current !== state) {
      before.current = state;
      const why = props.cancellation ? '' : ` ${props.view.status}`;
      announce(`${record.name}: ${state}.${why}`);
    }
  }, [state]);
  return (
    <div className="jp-Submarine-unseen" role="status" aria-live="polite">
      {announcement}
    </div>
  );
}

/** Time and reason if the shown data is not current. */
export function Freshness(props: { model: CardModel; now: number }): React.ReactElement | null {
  const { trans } = useCard();
  const { model } = props;
  if (model.connection === 'live' || !model.view) {
    return null;
  }
  if (model.connection === 'loading') {
    return ENDED.has(model.view.record.state) ? null : (
      <p className="jp-Submarine-note jp-Submarine-quiet">
        {trans.__('Requesting the current state …')}
      </p>
    );
  }
  const at = model.time === null ? '' : formatTime(model.time, props.now);
  const what = model.fromServer
    ? trans.__('Last known state, from %1.', at)
    : at
      ? trans.__('Snapshot from %1, not the current state.', at)
      : trans.__('Snapshot stored in the notebook, not the current state.');
  return (
    <p className="jp-Submarine-note jp-Submarine-away">
      <strong>{what}</strong> {model.problem}
    </p>
  );
}

export function Progress(props: { view: IJobView }): React.ReactElement | null {
  const { trans } = useCard();
  const { record } = props.view;
  const value = record.progress;
  if (value === null || !Number.isFinite(value) || ENDED.has(record.state)) {
    return null;
  }
  const done = Math.min(Math.max(value, 0), 1);
  return (
    <div className="jp-Submarine-progress">
      <div
        className="jp-Submarine-track"
        role="progressbar"
        aria-label={trans.__('Progress')}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(done * 100)}
      >
        <div className="jp-Submarine-done" style={{ width: `${done * 100}%` }} />
      </div>
      <span>{percent(done)}</span>
    </div>
  );
}

/** Warnings, missing data, delay of the view, and hints. */
export function Notes(props: { view: IJobView }): React.ReactElement | null {
  const { trans } = useCard();
  const { record } = props.view;
  const behind =
    record.behind !== null && record.behind > 0 && !ENDED.has(record.state)
      ? [trans.__('This view may be %1 behind the program.', duration(record.behind))]
      : [];
  const warnings = record.warnings
    .slice(0, 25)
    .map(words => ({ label: trans.__('Warning'), words }));
  const stated = [...record.notes.slice(0, 5), ...record.missing.slice(0, 5)];
  const notes = [...stated, ...behind].map(words => ({
    label: trans.__('Note'),
    words
  }));
  const hints = record.hints.slice(0, 5).map(words => ({ label: trans.__('Hint'), words }));
  const all = [...warnings, ...notes, ...hints];
  return all.length ? (
    <ul className="jp-Submarine-notes">
      {all.map(({ label, words }, n) => (
        <li key={n}>
          <span className="jp-Submarine-label">{label}</span> {words}
        </li>
      ))}
    </ul>
  ) : null;
}
