/** The phases of a job as a bar and a list; its events, the notable ones always visible. */

import React from 'react';
import type { IJobEvent } from '../../api/record';
import type { IJobView } from '../../api/types';
import { useCard } from '../context';
import { barWidths, phaseSpans } from './phases';
import { PHASES, eventName, phaseName, notableEvents } from '../labels';
import { duration, formatTime, runningDuration } from '../../format';

/** Maximum number of notable events, and of all events. */
const MAX_NOTABLE = 4;
const MAX_EVENTS = 200;

export function Phases(props: { view: IJobView; now: number }): React.ReactElement | null {
  const { trans } = useCard();
  const found = phaseSpans(props.view.record, props.now);
  if (!found.length) {
    return null;
  }
  const parts = barWidths(found);
  const kind = (name: string): string =>
    `jp-Submarine-phase-${PHASES.includes(name) ? name : 'other'}`;
  return (
    <div className="jp-Submarine-phases">
      <div className="jp-Submarine-phaseBar" aria-hidden="true">
        {found.map((phase, n) => (
          <span key={n} className={kind(phase.name)} style={{ width: `${parts[n] ?? 0}%` }} />
        ))}
      </div>
      <ol aria-label={trans.__('Phases')}>
        {found.map((phase, n) => (
          <li
            key={n}
            title={`${formatTime(phase.start, props.now)} – ${phase.open ? '…' : formatTime(phase.end, props.now)}`}
          >
            <span className={`jp-Submarine-dot ${kind(phase.name)}`} aria-hidden="true" />
            {phaseName(phase.name, trans)}{' '}
            <span className="jp-Submarine-number">
              {phase.open ? `${runningDuration(phase.seconds)} …` : duration(phase.seconds)}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

export function Events(props: { view: IJobView; now: number }): React.ReactElement | null {
  const { trans } = useCard();
  const { events, record } = props.view;
  if (!events.length) {
    return null;
  }
  const notable = notableEvents(events).slice(-MAX_NOTABLE);
  const shown = events.slice(-MAX_EVENTS);
  const left = events.length - shown.length;
  return (
    <div className="jp-Submarine-events">
      {notable.length > 0 && (
        <EventList events={notable} created={record.created} now={props.now} />
      )}
      <details>
        <summary>{trans._n('%1 event', 'All %1 events', events.length)}</summary>
        {left > 0 && (
          <p className="jp-Submarine-quiet">
            {trans.__('The newest %1 events; %2 older events are not shown.', shown.length, left)}
          </p>
        )}
        <EventList events={shown} created={record.created} now={props.now} />
      </details>
    </div>
  );
}

function EventList(props: {
  events: readonly IJobEvent[];
  created: number | null;
  now: number;
}): React.ReactElement {
  const { trans } = useCard();
  const { created } = props;
  return (
    <ul className="jp-Submarine-eventList">
      {props.events.map(event => (
        <li key={`${event.writer} ${event.seq}`}>
          <time title={formatTime(event.time, props.now)}>
            {created === null
              ? formatTime(event.time, props.now)
              : `+${duration(event.time - created)}`}
          </time>
          <span className="jp-Submarine-label">{eventName(event, trans)}</span>
          <span>
            {event.task && !event.detail.includes(event.task) ? `${event.task}: ` : ''}
            {event.detail || event.reason?.replace(/_/g, ' ')}
          </span>
        </li>
      ))}
    </ul>
  );
}
