/** The top of a card: state, name, id, times, status text, freshness and progress. */

import React from 'react';
import { ENDED, type IJobView } from '../api/job_types';
import { useCard } from './context';
import { cancelSentence, type ICancelling } from './cancelling';
import { Pill, StatePill } from './icons';
import type { CardModel } from './model';
import { elapsedWords, queued } from './phases';
import { sentence } from './situation';
import { duration, moment, percent, ticking } from './words';

export function Head(props: {
  view: IJobView;
  now: number;
  cancelling: ICancelling | null;
}): React.ReactElement {
  const { trans } = useCard();
  const { record } = props.view;
  const ended = ENDED.has(record.state);
  const took = elapsedWords(record, props.now);
  const waited = queued(record, props.now);
  const words = ended ? duration : (seconds: number) => ticking(seconds);
  return (
    <div className="jp-Submarine-head">
      {props.cancelling && !props.cancelling.overdue ? (
        <Pill tone="quiet" words={trans.__('CANCELLING')} />
      ) : (
        <StatePill state={record.state} />
      )}
      <strong className="jp-Submarine-name">{record.name}</strong>
      <code className="jp-Submarine-id">{record.job_id}</code>
      <span className="jp-Submarine-times">
        {took !== '' && <span title={trans.__('Time from submission to end')}>{took}</span>}
        {waited !== null && (
          <span className="jp-Submarine-quiet"> · {trans.__('queued %1', words(waited))}</span>
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

export function Sentence(props: {
  view: IJobView;
  now: number;
  cancelling: ICancelling | null;
}): React.ReactElement {
  const { trans } = useCard();
  const { view } = props;
  if (props.cancelling) {
    return (
      <p className="jp-Submarine-sentence">
        {cancelSentence(view, props.cancelling, props.now, trans)}
      </p>
    );
  }
  const advice = ENDED.has(view.record.state) && view.record.state !== 'SUCCEEDED';
  return (
    <p className="jp-Submarine-sentence">
      {sentence(view, trans)}
      {advice && view.advice && <span className="jp-Submarine-advice"> {view.advice}</span>}
    </p>
  );
}

/** Announce changes of the state to screen readers; the initial state is not announced. */
export function Announcer(props: { view: IJobView; cancelling: boolean }): React.ReactElement {
  const { trans } = useCard();
  const { record } = props.view;
  const state = props.cancelling ? trans.__('CANCELLING') : record.state;
  const before = React.useRef(state);
  const [said, say] = React.useState('');
  React.useEffect(() => {
    if (before.current !== state) {
      before.current = state;
      const why = props.cancelling ? '' : ` ${sentence(props.view, trans)}`;
      say(`${record.name}: ${state}.${why}`);
    }
  }, [state]);
  return (
    <div className="jp-Submarine-unseen" role="status" aria-live="polite">
      {said}
    </div>
  );
}

/** Time and reason if the shown data is not current. */
export function Freshness(props: { model: CardModel; now: number }): React.ReactElement | null {
  const { trans } = useCard();
  const { model } = props;
  if (model.standing === 'live' || !model.view) {
    return null;
  }
  if (model.standing === 'asking') {
    return ENDED.has(model.view.record.state) ? null : (
      <p className="jp-Submarine-note jp-Submarine-quiet">
        {trans.__('Requesting the current state …')}
      </p>
    );
  }
  const at = model.time === null ? '' : moment(model.time, props.now);
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
  const said = [...record.notes.slice(0, 5), ...record.missing.slice(0, 5)];
  const notes = [...said, ...behind].map(words => ({
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
