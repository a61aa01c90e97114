/** A job that was asked to end and has not ended yet: since when, and how to say it. Knows no DOM. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ENDED, type IJobView } from '../api/job_types';
import type { ICancelRequest } from '../tokens';
import { duration, moment } from './words';

/** Seconds after which it may have failed: the server itself gives up before. */
const LONG = 120;

export interface ICancelling {
  readonly since: number;
  /** It takes so long that asking again is worth it. */
  readonly overdue: boolean;
}

/**
 * Whether a job is being cancelled.
 *
 * @param request - What this page asked for; what another page asked for is among the job's events.
 */
export function cancelling(
  view: IJobView,
  request: ICancelRequest | null,
  now: number
): ICancelling | null {
  if (ENDED.has(view.record.state)) {
    return null;
  }
  const told = view.events.filter(event => event.kind === 'cancel_requested').at(-1)?.time;
  const since = request?.since ?? told;
  return since === undefined ? null : { since, overdue: now - since > LONG };
}

/** What is said instead of why the job is in its state. */
export function cancelSentence(
  view: IJobView,
  { since, overdue }: ICancelling,
  now: number,
  trans: TranslationBundle
): string {
  const { state } = view.record;
  return overdue
    ? trans.__(
        'It was asked to end %1 ago and is still %2: cancel it again, or look at its log.',
        duration(now - since),
        state
      )
    : trans.__(
        'Cancelling: it was asked to end at %1 and is %2 until it has.',
        moment(since, now),
        state
      );
}
