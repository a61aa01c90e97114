/** Texts of a job's status, states, phases and events. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ENDED, type IJobEvent, type IJobRecord, type State } from '../api/record';
import { type IJobView } from '../api/types';

/** Up to this number, tasks are listed by name. */
const MAX_LISTED = 4;
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

/** One sentence about the current state of a job. */
export function statusText(view: IJobView, trans: TranslationBundle): string {
  const { record } = view;
  if (ENDED.has(record.state)) {
    return ending(view, trans);
  }
  const waits = waitingSentence(view.pending || record.pending, trans);
  const several = Math.max(view.task_count, record.tasks.length) > 1;
  switch (record.state) {
    case 'SUBMITTING':
      return trans.__('The files are being uploaded and the job is being submitted.');
    case 'PENDING':
      return waits || trans.__('The job is waiting for free resources on the cluster.');
    case 'STARTING':
      if (waits.startsWith('localizing')) {
        return `${waits.charAt(0).toUpperCase()}${waits.slice(1)}.`;
      }
      return join(
        several
          ? trans.__('%1 containers are being set up%2.', view.task_count, where(record, trans))
          : trans.__('The container is being set up%1.', where(record, trans)),
        waits
      );
    case 'RESTARTING':
      return join(
        several
          ? trans.__('The tasks are being restarted%1.', where(record, trans))
          : trans.__('The program is being restarted%1.', where(record, trans)),
        waits || record.detail
      );
    case 'FINISHING':
      return join(trans.__('The program has ended; its output is being saved.'), waits);
    default:
      return join(
        several
          ? running(view, trans)
          : trans.__('The program is running%1.', where(record, trans)),
        waits
      );
  }
}

/** The reason for waiting as a complete sentence. */
function waitingSentence(waits: string, trans: TranslationBundle): string {
  return waits.startsWith('waiting for ') ? trans.__('The job is %1', waits) : waits;
}

function ending(view: IJobView, trans: TranslationBundle): string {
  const { record } = view;
  const first =
    view.reason_sentence ||
    (record.reason
      ? trans.__('The job ended: %1.', record.reason.replace(/_/g, ' '))
      : trans.__('The job ended for an unknown reason.'));
  const detail = record.detail.trim();
  const detailSentence = detail && !/[.!?:]$/.test(detail) ? `${detail}.` : detail;
  const code =
    record.failure === null && record.exit_code && !/exit code/i.test(detailSentence)
      ? trans.__('Exit code %1.', record.exit_code)
      : '';
  return join(first, first.includes(detail) ? '' : detailSentence, code);
}

function running(view: IJobView, trans: TranslationBundle): string {
  const { tasks } = view.record;
  if (view.task_count > tasks.length) {
    return trans.__('%1 tasks are in progress.', view.task_count);
  }
  const rest = tasks.filter(task => task.state !== 'RUNNING');
  if (!rest.length) {
    return trans.__('All %1 tasks are running%2.', view.task_count, where(view.record, trans));
  }
  const others =
    rest.length <= MAX_LISTED
      ? rest.map(task => `${task.task} ${task.state}`)
      : [...new Set(rest.map(task => task.state))].map(
          state => `${rest.filter(task => task.state === state).length} ${state}`
        );
  return trans.__(
    '%1 of %2 tasks are running%3; %4.',
    tasks.length - rest.length,
    tasks.length,
    where(view.record, trans),
    others.join(', ')
  );
}

function where(record: IJobRecord, trans: TranslationBundle): string {
  const nodes = [...new Set(record.tasks.map(task => task.host).filter(Boolean))];
  if (!nodes.length) {
    return '';
  }
  return nodes.length === 1
    ? trans.__(' on %1', nodes[0] ?? '')
    : trans.__(' on %1 nodes', nodes.length);
}

function join(...parts: string[]): string {
  return parts.filter(Boolean).join(' ');
}

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
