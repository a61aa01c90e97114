/**
 * The buttons of a card. The application's commands perform the actions and ask for confirmation.
 */

import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import React from 'react';
import { safeLink, Link } from './link';
import { ENDED } from '../api/record';
import { type IJobView } from '../api/types';
import { CommandIDs } from '../tokens';
import type { ICancellation } from './cancellation';
import { useCard } from './context';
import type { CardModel } from './model';

interface IAction {
  label: string;
  command: string;
  args: ReadonlyPartialJSONObject;
  /** The action changes the job: only for its owner. */
  modifies: boolean;
  /** The action was requested and is in progress. */
  inProgress?: boolean;
}

export function Actions(props: {
  model: CardModel;
  view: IJobView;
  cancellation: ICancellation | null;
}): React.ReactElement | null {
  const { trans, has, run } = useCard();
  const { model, view } = props;
  const [busy, setBusy] = React.useState('');
  const [problem, setProblem] = React.useState('');
  // A snapshot has no actions: only the view from the server contains the permissions.
  if (!model.fromServer) {
    return null;
  }
  const available = actions(view, props.cancellation, trans).filter(
    ({ command, modifies }) => has(command) && (view.mine || !modifies)
  );
  const start = async (action: IAction): Promise<void> => {
    setBusy(action.command);
    setProblem('');
    try {
      await run(action.command, action.args);
      if (action.command === CommandIDs.saveModel) {
        await model.refreshModels();
      }
    } catch (reason) {
      setProblem(reason instanceof Error ? reason.message : String(reason));
    } finally {
      setBusy('');
    }
  };
  const page = yarnPage(view);
  return (
    <>
      <div className="jp-Submarine-actions" role="group" aria-label={trans.__('Actions')}>
        {available.map(action => (
          <button
            key={action.command}
            type="button"
            className={`jp-Submarine-button${action.command === CommandIDs.cancel ? ' jp-mod-warn' : ''}`}
            disabled={busy === action.command || action.inProgress === true}
            onClick={() => void start(action)}
          >
            {action.label}
          </button>
        ))}
        {page && (
          <Link url={page} className="jp-Submarine-button">
            {trans.__('YARN')} <span aria-hidden="true">↗</span>
          </Link>
        )}
      </div>
      {problem && (
        <p role="alert" className="jp-Submarine-note jp-Submarine-problem">
          {problem}
        </p>
      )}
    </>
  );
}

function actions(
  view: IJobView,
  cancellation: ICancellation | null,
  trans: ReturnType<typeof useCard>['trans']
): IAction[] {
  const { record } = view;
  const job = record.job_id;
  const ended = ENDED.has(record.state);
  const found: IAction[] = [
    {
      label: trans.__('Logs'),
      command: CommandIDs.logs,
      args: { job },
      modifies: false
    }
  ];
  if (view.has_tensorboard) {
    const args = { jobs: [job] };
    found.push({
      label: trans.__('TensorBoard'),
      command: CommandIDs.tensorboard,
      args,
      modifies: false
    });
  }
  if (record.state === 'RUNNING' && cancellation === null) {
    found.push({
      label: trans.__('Save model'),
      command: CommandIDs.saveModel,
      args: { job },
      modifies: true
    });
  }
  if (ended) {
    found.push({
      label: trans.__('Rerun'),
      command: CommandIDs.rerun,
      args: { job },
      modifies: true
    });
  } else {
    const inProgress = cancellation !== null && !cancellation.overdue;
    found.push({
      label: inProgress ? trans.__('Cancelling …') : trans.__('Cancel'),
      inProgress,
      command: CommandIDs.cancel,
      args: { job },
      modifies: true
    });
  }
  if (view.command) {
    found.push({
      label: trans.__('Copy as command'),
      command: CommandIDs.copyCommand,
      args: { job },
      modifies: false
    });
  }
  return found;
}

/** Page of the application on the YARN cluster, if the record has one. */
export function yarnPage(view: IJobView): string | undefined {
  const [, url] =
    Object.entries(view.record.links).find(([label]) => /^(yarn|application)\b/i.test(label)) ?? [];
  return safeLink(url);
}
