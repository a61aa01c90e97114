/** A requested cancellation of a job that has not ended yet. No DOM. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { ENDED } from '../api/record';
import { type IJobView } from '../api/types';
import type { ICancelRequest } from '../tokens';
import { duration, formatTime } from '../format';

/** Seconds after which the cancellation may have failed; longer than the server's own timeout. */
const OVERDUE = 120;

export interface ICancellation {
  readonly since: number;
  /** The cancellation takes so long that it can be requested again. */
  readonly overdue: boolean;
}

/**
 * The cancellation of a job; null if there is none.
 *
 * @param request - Request of this page. Requests of other pages are among the job's events.
 */
export function cancellation(
  view: IJobView,
  request: ICancelRequest | null,
  now: number
): ICancellation | null {
  if (ENDED.has(view.record.state)) {
    return null;
  }
  const requested = view.events.filter(event => event.kind === 'cancel_requested').at(-1)?.time;
  const since = request?.since ?? requested;
  return since === undefined ? null : { since, overdue: now - since > OVERDUE };
}

/** The status text while a job is being cancelled. */
export function cancellingText(
  view: IJobView,
  { since, overdue }: ICancellation,
  now: number,
  trans: TranslationBundle
): string {
  const { state } = view.record;
  return overdue
    ? trans.__(
        'Cancellation was requested %1 ago and the job is still %2. Cancel it again or check its log.',
        duration(now - since),
        state
      )
    : trans.__(
        'Cancellation was requested at %1. The job is %2 until it has stopped.',
        formatTime(since, now),
        state
      );
}
