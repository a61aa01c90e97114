/** The card of one job. */

import React from 'react';
import { ENDED, type IJobView } from '../api/job_types';
import { Actions } from './actions';
import { cancelling } from './cancelling';
import { useNow } from './clock';
import { CardContext, type ICardContext, useCard } from './context';
import { Facts, Models, Returned } from './details';
import { FailureBox } from './failure';
import { Announcer, Freshness, Head, Notes, Origin, Progress, Sentence } from './head';
import { Metrics } from './metrics';
import type { CardModel } from './model';
import { tone } from './situation';
import { Tasks } from './task_table';
import { Events, Phases } from './timeline';

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
  const moves = view !== null && !ENDED.has(view.record.state) && model.standing !== 'away';
  const clock = useNow(model.visible && moves);
  if (!view) {
    return (
      <div className="jp-Submarine-card" role="group" aria-label={model.jobId}>
        <div className="jp-Submarine-head">
          <strong className="jp-Submarine-name">{model.jobId}</strong>
        </div>
        <p className="jp-Submarine-sentence" role="status">
          {model.standing === 'away' ? model.problem : trans.__('Loading …')}
        </p>
      </div>
    );
  }
  // Old data is shown as of its own time, without a running clock.
  const now = moves ? clock : (model.time ?? lastTime(view));
  const ending = cancelling(view, model.cancelRequest, now);
  return (
    <div
      className={`jp-Submarine-card jp-Submarine-tone-${tone(view.record.state)}`}
      role="group"
      aria-label={trans.__('Job %1', view.record.name)}
      data-job={view.record.job_id}
      data-state={view.record.state}
      data-standing={model.standing}
    >
      <Head view={view} now={now} cancelling={ending} />
      <Origin view={view} />
      <Announcer view={view} cancelling={ending !== null} />
      <Sentence view={view} now={now} cancelling={ending} />
      <Freshness model={model} now={clock} />
      <Progress view={view} />
      <Phases view={view} now={now} />
      <Actions model={model} view={view} cancelling={ending} />
      <FailureBox view={view} />
      <Notes view={view} />
      <Returned result={model.result} />
      <Metrics series={model.series} />
      <Tasks model={model} view={view} now={now} linked={model.fromServer || props.trusted} />
      <Models models={model.models} now={clock} />
      <Events view={view} now={now} />
      <Facts view={view} now={clock} linked={model.fromServer || props.trusted} />
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
