/** The card of one job. */

import React from 'react';
import { ENDED } from '../api/record';
import { type IJobView } from '../api/types';
import { Actions } from './actions';
import { cancellation } from './cancellation';
import { useNow } from '../clock';
import { CardContext, type ICardContext, useCard } from './context';
import { Facts, Models, ReturnValues } from './details/details';
import { FailureBox } from './details/failure';
import { Announcer, Freshness, Head, Notes, Origin, Progress, StatusText } from './header';
import { Lineage } from './details/lineage';
import { Metrics } from './details/metrics';
import type { CardModel } from './model';
import { tone } from './labels';
import { Tasks } from './tasks/task_table';
import { Events, Phases } from './details/timeline';

export interface ICardProps {
  model: CardModel;
  context: ICardContext;
  /** Whether the notebook that holds the snapshot is trusted. */
  trusted: boolean;
}

export function Card(props: ICardProps): React.ReactElement {
  return (
    <CardContext.Provider value={props.context}>
      <Body {...props} />
    </CardContext.Provider>
  );
}

function Body(props: ICardProps): React.ReactElement {
  const { trans } = useCard();
  const { model } = props;
  useModel(model);
  const { view } = model;
  const running = view !== null && !ENDED.has(view.record.state) && model.connection !== 'stale';
  const clock = useNow(model.visible && running);
  if (!view) {
    return (
      <div className="jp-Submarine-card" role="group" aria-label={model.jobId}>
        <div className="jp-Submarine-head">
          <strong className="jp-Submarine-name">{model.jobId}</strong>
        </div>
        <p className="jp-Submarine-sentence" role="status">
          {model.connection === 'stale' ? model.problem : trans.__('Loading …')}
        </p>
      </div>
    );
  }
  // Durations in old data end at the time of the data, without a running clock.
  const now = running ? clock : (model.time ?? lastTime(view));
  const cancelled = cancellation(view, model.cancelRequest, now);
  return (
    <div
      className={`jp-Submarine-card jp-Submarine-tone-${tone(view.record.state)}`}
      role="group"
      aria-label={trans.__('Job %1', view.record.name)}
      data-job={view.record.job_id}
      data-state={view.record.state}
      data-connection={model.connection}
    >
      <Head view={view} now={now} cancellation={cancelled} />
      <Origin view={view} />
      <Announcer view={view} cancellation={cancelled !== null} />
      <StatusText view={view} now={now} cancellation={cancelled} />
      <Freshness model={model} now={clock} />
      <Progress view={view} />
      <Phases view={view} now={now} />
      <Actions model={model} view={view} cancellation={cancelled} />
      <FailureBox view={view} />
      <Notes view={view} />
      <ReturnValues result={model.result} />
      <Metrics series={model.series} />
      <Tasks model={model} view={view} now={now} linked={model.fromServer || props.trusted} />
      <Models models={model.models} now={clock} />
      <Events view={view} now={now} />
      <Facts view={view} now={clock} linked={model.fromServer || props.trusted}>
        <Lineage model={model} view={view} />
      </Facts>
    </div>
  );
}

/** Render again when the model changes. */
function useModel(model: CardModel): void {
  const [, renew] = React.useReducer((n: number) => n + 1, 0);
  React.useEffect(() => {
    // The model may have changed between the first rendering and this effect.
    renew();
    const changed = (): void => {
      renew();
    };
    model.changed.connect(changed);
    return () => {
      model.changed.disconnect(changed);
    };
  }, [model]);
}

/** The latest time in a snapshot that has no time of its own. */
function lastTime(view: IJobView): number {
  const { record } = view;
  const times = [
    record.created ?? 0,
    record.finished ?? 0,
    ...record.phases.flatMap(phase => [phase.start, phase.end ?? 0])
  ];
  return Math.max(...times);
}
