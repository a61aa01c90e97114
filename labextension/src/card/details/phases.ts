/** Phases of a job with their times, its duration and its queue time. */

import { ENDED, type IJobRecord } from '../../api/record';
import { duration, runningDuration } from '../../format';

const MAX_PHASES = 12;
/** Shorter spans are not visible, in seconds. */
const MIN_SECONDS = 1e-6;

/** A phase as shown. */
export interface IPhaseSpan {
  name: string;
  start: number;
  end: number;
  seconds: number;
  /** The phase has not ended. */
  open: boolean;
  /** Seconds that do not overlap with an earlier phase. */
  ownSeconds: number;
}

/** The time for which a job is shown: its end, otherwise now. */
export function referenceTime(record: IJobRecord, now: number): number {
  return record.finished ?? now;
}

/**
 * The duration of a job in seconds, from the start of its submission to its end or to now.
 *
 * Used by cards, the panel and the commands. Null if the start, or the end of an ended job, is
 * unknown.
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

/** The duration as text, in whole seconds while the job runs; empty if unknown. */
export function elapsedText(
  job: Pick<IJobRecord, 'created' | 'finished' | 'state'>,
  now: number
): string {
  const seconds = elapsed(job, now);
  if (seconds === null) {
    return '';
  }
  return ENDED.has(job.state) ? duration(seconds) : runningDuration(seconds);
}

/** The phases in order of their start; an open phase ends now. */
export function phaseSpans(record: IJobRecord, now: number): IPhaseSpan[] {
  const until = referenceTime(record, now);
  const ended = ENDED.has(record.state);
  let reached = -Infinity;
  return record.phases
    .slice(0, MAX_PHASES)
    .map(phase => ({ ...phase, until: phase.end ?? Math.max(until, phase.start) }))
    .sort((a, b) => a.start - b.start || a.until - b.until)
    .map(({ name, start, end, until: last }) => {
      const ownSeconds = Math.max(last - Math.max(start, reached), 0);
      reached = Math.max(reached, last);
      return {
        name,
        start,
        end: last,
        seconds: Math.max(last - start, 0),
        open: end === null && !ended,
        ownSeconds
      };
    });
}

/** Seconds in the queue; null if the job was not queued. */
export function queued(record: IJobRecord, now: number): number | null {
  const queues = phaseSpans(record, now).filter(span => span.name === 'queue');
  return queues.length ? queues.reduce((sum, span) => sum + span.seconds, 0) : null;
}

/** Width of each phase in the bar, in percent, with a visible minimum. */
export function barWidths(found: readonly IPhaseSpan[]): number[] {
  const total = found.reduce((sum, span) => sum + span.ownSeconds, 0);
  if (total < MIN_SECONDS) {
    return found.map(() => 100 / Math.max(found.length, 1));
  }
  const least = found.map(span => Math.max((span.ownSeconds / total) * 100, 0.8));
  const sum = least.reduce((a, b) => a + b, 0);
  return least.map(share => (share / sum) * 100);
}
