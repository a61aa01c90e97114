/** Select the tasks that the table shows: by role, by page, or all of them. */

import React from 'react';
import { useCard } from '../context';
import { StateIcon } from '../icons';
import type { CardModel } from '../model';
import { type IRole, PAGE, type page } from './tasks';

/** The number of tasks that the view omits, with a button that loads them. */
export function OmittedTasks(props: {
  model: CardModel;
  loaded: number;
  total: number;
}): React.ReactElement {
  const { trans } = useCard();
  const [problem, setProblem] = React.useState('');
  const [busy, setBusy] = React.useState(false);
  const load = async (): Promise<void> => {
    setBusy(true);
    try {
      await props.model.loadTasks();
    } catch (reason) {
      setProblem(reason instanceof Error ? reason.message : String(reason));
    } finally {
      setBusy(false);
    }
  };
  return (
    <p className="jp-Submarine-quiet jp-Submarine-small">
      {trans.__('%1 of %2 tasks, the most relevant ones.', props.loaded, props.total)}{' '}
      {props.model.fromServer && (
        <button
          type="button"
          className="jp-Submarine-link"
          disabled={busy}
          onClick={() => void load()}
        >
          {trans.__('Show all')}
        </button>
      )}{' '}
      {problem}
    </p>
  );
}

/** The roles with the states of their tasks; one role can be selected. */
export function Roles(props: {
  roles: readonly IRole[];
  chosen: string;
  choose: (role: string) => void;
}): React.ReactElement {
  const { trans } = useCard();
  return (
    <div className="jp-Submarine-roles" role="group" aria-label={trans.__('Roles')}>
      {props.roles.map(({ role, size, states, summary }) => (
        <button
          key={role}
          type="button"
          className="jp-Submarine-role"
          aria-pressed={props.chosen === role}
          title={trans.__('Show only this role')}
          onClick={() => {
            props.choose(props.chosen === role ? '' : role);
          }}
        >
          <strong>
            {role} × {size}
          </strong>
          {states.map(({ state, count }) => (
            <span key={state} className="jp-Submarine-roleState">
              <StateIcon state={state} /> {count} {state}
            </span>
          ))}
          {summary && <span className="jp-Submarine-quiet">{summary}</span>}
        </button>
      ))}
    </div>
  );
}

/** Buttons for the previous and the next page. */
export function Pager(props: {
  shown: ReturnType<typeof page>;
  total: number;
  turn: (number: number) => void;
}): React.ReactElement {
  const { trans } = useCard();
  const { shown, total, turn } = props;
  const last = Math.min(shown.from + PAGE, total);
  return (
    <div className="jp-Submarine-pager">
      <button
        type="button"
        className="jp-Submarine-button"
        disabled={shown.number === 0}
        onClick={() => {
          turn(shown.number - 1);
        }}
      >
        {trans.__('Previous')}
      </button>
      <span aria-live="polite">
        {trans.__('%1 to %2 of %3, failed and waiting tasks first', shown.from + 1, last, total)}
      </span>
      <button
        type="button"
        className="jp-Submarine-button"
        disabled={shown.number === shown.pages - 1}
        onClick={() => {
          turn(shown.number + 1);
        }}
      >
        {trans.__('Next')}
      </button>
    </div>
  );
}
