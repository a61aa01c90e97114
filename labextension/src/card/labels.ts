/** Names and colors of a job's states, phases, events and quantities. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { IJobEvent, State } from '../api/record';
import { figure } from '../format';

/** Kinds of events that are not listed, or are shown elsewhere. */
const HIDDEN_KINDS: ReadonlySet<string> = new Set([
  'task',
  'claimed',
  'gang',
  'snapshot',
  'shipped',
  'verdict',
  'state',
  'stopping',
  'yarn_page'
]);

/** Events that are always shown: restarts, failures and warnings. */
export function notableEvents(events: readonly IJobEvent[]): IJobEvent[] {
  return events.filter(
    event =>
      event.detail &&
      (event.state === null ? !HIDDEN_KINDS.has(event.kind) : event.state === 'RESTARTING')
  );
}

/** Display name of an event. */
export function eventName(event: IJobEvent, trans: TranslationBundle): string {
  if (event.state) {
    return event.state;
  }
  const words: Record<string, string> = {
    task_failed: trans.__('task failed'),
    cancel_requested: trans.__('cancel requested'),
    preempted: trans.__('pre-empted'),
    yarn_page: trans.__('YARN page')
  };
  return words[event.kind] ?? event.kind.replace(/_/g, ' ');
}

/** Phases with a color and a name. */
export const PHASES: readonly string[] = [
  'upload',
  'queue',
  'master_start',
  'containers',
  'localizing',
  'start',
  'first_line',
  'run',
  'save'
];

/** Display name of a phase. */
export function phaseName(name: string, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    upload: trans.__('upload'),
    queue: trans.__('queue'),
    master_start: trans.__('master start'),
    containers: trans.__('containers'),
    localizing: trans.__('localizing'),
    start: trans.__('start'),
    first_line: trans.__('first line'),
    run: trans.__('run'),
    save: trans.__('save')
  };
  return words[name] ?? name;
}

/** Groups of states with the same color and icon. */
export function tone(state: State): 'wait' | 'go' | 'good' | 'bad' | 'quiet' | 'doubt' {
  switch (state) {
    case 'SUCCEEDED':
      return 'good';
    case 'FAILED':
      return 'bad';
    case 'CANCELLED':
      return 'quiet';
    case 'LOST':
    case 'RESTARTING':
      return 'doubt';
    case 'RUNNING':
    case 'FINISHING':
      return 'go';
    default:
      return 'wait';
  }
}

/** A number of cores with its unit: `0.4 cores`, `1 core`. */
export function coresText(value: number, trans: TranslationBundle): string {
  return trans._n('%2 core', '%2 cores', value, figure(value));
}
