/** The sentence below a log: how things stand, and what to do where they stand badly. */

import type { TranslationBundle } from '@jupyterlab/translation';
import { duration, size } from '../card/words';

export interface IStatus {
  readonly phase: 'loading' | 'ready' | 'error';
  /** What went wrong; may also come while everything else works. */
  readonly message: string;
  /** Nothing more will come. */
  readonly ended: boolean;
  /** Seconds that the logs are behind, where the live path is down. */
  readonly behind: number | null;
}

export interface ILogSituation {
  readonly status: IStatus;
  /** Whether the page has its connection to the server. */
  readonly connected: boolean;
  /** How many logs there are, and their bytes in this view. */
  readonly logs: number;
  readonly total: number;
  /** Bytes that the live stream left out. */
  readonly skipped: number;
  readonly follow: boolean;
  /** Byte of the first line on the screen. */
  readonly place: number;
}

/** What to say, and whether trying again may help. */
export function situation(
  trans: TranslationBundle,
  { status, connected, logs, total, skipped, follow, place }: ILogSituation
): { text: string; retry: boolean } {
  if (status.phase === 'error') {
    return { text: `${status.message} `, retry: true };
  }
  if (status.phase === 'loading') {
    return { text: trans.__('Reading the log…'), retry: false };
  }
  const parts = [
    total === 0 ? nothing(trans, status, logs) : where(trans, total, follow, place),
    // The line in its place is gone from the screen at once where a log is that fast.
    skipped > 0 ? trans.__('skipped %1', size(skipped)) : '',
    status.message !== '' ? status.message : live(trans, status, connected, total)
  ];
  return { text: parts.filter(part => part !== '').join(' · '), retry: false };
}

function nothing(trans: TranslationBundle, status: IStatus, logs: number): string {
  if (status.ended) {
    return trans.__('The job wrote nothing here.');
  }
  return logs === 0
    ? trans.__('No log yet: it begins when the program starts.')
    : trans.__('Nothing written here yet.');
}

function where(trans: TranslationBundle, total: number, follow: boolean, place: number): string {
  return follow ? size(total) : trans.__('At %1 of %2', size(place), size(total));
}

function live(
  trans: TranslationBundle,
  status: IStatus,
  connected: boolean,
  total: number
): string {
  if (status.ended) {
    return total === 0 ? '' : trans.__('complete');
  }
  if (!connected) {
    return trans.__(
      'The connection to the Jupyter server is down; new lines come when it is back.'
    );
  }
  if (status.behind !== null) {
    return trans.__(
      'The live path to the job is down: this comes from the job directory and is %1 behind.',
      duration(status.behind)
    );
  }
  return trans.__('live');
}
