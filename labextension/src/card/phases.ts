/** The phases of a job with their times, what has elapsed and what was spent waiting. */

import { ENDED, type IJobRecord } from '../api/job_types';
import { duration, ticking } from './words';

const MAX_PHASES = 12;
/** A span of time between these seconds is nothing that anybody sees. */
const TINY = 1e-6;

/** A phase as it is shown. */
export interface IStretch {
  name: string;
  start: number;
  end: number;
  seconds: number;
  /** It goes on. */
  open: boolean;
  /** Of the seconds those that no earlier phase shares: what it adds to the whole. */
  alone: number;
}

/** The moment at which the job is described: its end, else now. */
export function momentOf(record: IJobRecord, now: number): number {
  return record.finished ?? now;
}

/**
 * The job's duration: seconds from the beginning of its submission to its end, or to now.
 *
 * The one that cards, the panel and the commands show; null where its beginning, or the end of a job
 * that has ended, is not known.
 */
export function elapsed(
  { created, finished, state }: Pick<IJobRecord, 'created' | 'finished' | 'state'>,
  now: number
): number | null {
  if (created === null || (finished === null && ENDED.has(state))) {
    return null;
  }
  return Math.max((finished ?? now) - created, 0);
}

/** The duration in words, whole seconds while it goes on; empty where it is not known. */
export function elapsedWords(
  job: Pick<IJobRecord, 'created' | 'finished' | 'state'>,
  now: number
): string {
  const seconds = elapsed(job, now);
  if (seconds === null) {
    return '';
  }
  return ENDED.has(job.state) ? duration(seconds) : ticking(seconds);
}

/** The phases in order; the one that goes on counts up to now. */
export function stretches(record: IJobRecord, now: number): IStretch[] {
  const until = momentOf(record, now);
  const ended = ENDED.has(record.state);
  let reached = -Infinity;
  return record.phases
    .slice(0, MAX_PHASES)
    .map(phase => ({ ...phase, until: phase.end ?? Math.max(until, phase.start) }))
    .sort((a, b) => a.start - b.start || a.until - b.until)
    .map(({ name, start, end, until: last }) => {
      const alone = Math.max(last - Math.max(start, reached), 0);
      reached = Math.max(reached, last);
      return {
        name,
        start,
        end: last,
        seconds: Math.max(last - start, 0),
        open: end === null && !ended,
        alone
      };
    });
}

/** Seconds in the queue; null: it has not been there. */
export function queued(record: IJobRecord, now: number): number | null {
  const waits = stretches(record, now).filter(stretch => stretch.name === 'queue');
  return waits.length ? waits.reduce((sum, stretch) => sum + stretch.seconds, 0) : null;
}

/** Share of each stretch in the bar, in percent; every one can be seen. */
export function shares(found: readonly IStretch[]): number[] {
  const total = found.reduce((sum, stretch) => sum + stretch.alone, 0);
  if (total < TINY) {
    return found.map(() => 100 / Math.max(found.length, 1));
  }
  const least = found.map(stretch => Math.max((stretch.alone / total) * 100, 0.8));
  const sum = least.reduce((a, b) => a + b, 0);
  return least.map(share => (share / sum) * 100);
}
